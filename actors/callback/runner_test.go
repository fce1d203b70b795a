package callback_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agent-troupe/troupe/actors/callback"
	"github.com/agent-troupe/troupe/actors/callback/callbacktest"
	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/router/routertest"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a callback actor with its host, on either set of seams.
type rig struct {
	*callbacktest.Host
	t       *testing.T
	sys     *kernel.System
	sched   *sim.Scheduler // nil in production
	prepare callback.Prepare
	ref     *kernel.Address[machine.ToCallback]

	mu     sync.Mutex
	lines  []string
	events []session.Event
}

func (r *rig) write(line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, strings.TrimSuffix(string(line), "\n"))
}

// seq is the number of a request that waits.
func (r *rig) seq(id string) uint64 {
	for _, w := range r.Waits() {
		if w.ID == id {
			return w.Seq
		}
	}
	r.t.Fatalf("%s does not wait", id)
	return 0
}

// open counts the requests that wait for a callback.
func (r *rig) open() int {
	n := 0
	for _, w := range r.Waits() {
		if strings.HasPrefix(w.What, "permission request") {
			n++
		}
	}
	return n
}

func (r *rig) emit(e session.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func newRig(t *testing.T, sched *sim.Scheduler, run func(ctx context.Context, r *callback.Request) (json.RawMessage, error), limit time.Duration) *rig {
	t.Helper()
	cfg := kernel.Config{}
	if sched != nil {
		cfg = sched.Config()
	}
	r := &rig{t: t, sys: kernel.NewSystem(cfg), sched: sched}
	var err error
	r.Host, err = callbacktest.NewHost(r.sys, routertest.Config{
		Config: machine.Config{Rules: routertest.Rules{Deny: func(_ session.Kind, _ protocol.Frame, reason string) ([]byte, string) {
			return []byte(fmt.Sprintf(`{"behavior":"deny","message":%q}`, reason)), ""
		}}},
		Emit: r.emit,
	}, r.write)
	require.NoError(t, err)
	r.ref = r.At(session.KindPermission)
	require.Empty(t, r.Waits())
	r.mu.Lock()
	r.lines = nil // initialize
	r.mu.Unlock()
	r.prepare = func(q *callback.Request) (callback.Job, error) {
		return callback.Job{
			Name: "Bash", Limit: limit, SetBy: "TestTimeout",
			Run: func(ctx context.Context) (json.RawMessage, error) { return run(ctx, q) },
		}, nil
	}
	r.start()
	return r
}

// inSim is a rig in virtual time.
func inSim(t *testing.T, run func(ctx context.Context, r *callback.Request) (json.RawMessage, error), limit time.Duration) *rig {
	t.Helper()
	r := newRig(t, sim.New(1), run, limit)
	t.Cleanup(r.sched.Close)
	return r
}

// start spawns the next incarnation of the actor.
func (r *rig) start() {
	r.t.Helper()
	up := r.Host.Start(&callback.Actor{
		Kind: session.KindPermission, Emit: r.emit, Prepare: func(q *callback.Request) (callback.Job, error) { return r.prepare(q) },
	})
	_, err := up.Wait(context.Background(), r.sys.Executor())
	require.NoError(r.t, err)
}

// read gives lines of the agent to the routing, as the reader does.
func (r *rig) read(lines ...string) {
	r.t.Helper()
	for _, line := range lines {
		f, err := protocol.ParseFrame([]byte(line))
		require.NoError(r.t, err)
		r.Put(f)
	}
}

func ask(id string) string {
	return fmt.Sprintf(`{"type":"control_request","request_id":%q,"request":{"subtype":"can_use_tool","tool_name":"Bash","input":{}}}`, id)
}

func cancel(id string) string {
	return fmt.Sprintf(`{"type":"control_cancel_request","request_id":%q}`, id)
}

// pass lets virtual time go by.
func (r *rig) pass(d time.Duration) {
	r.t.Helper()
	over := make(chan struct{})
	r.sched.AfterFunc(d, func() { close(over) })
	require.NoError(r.t, r.sched.Await(context.Background(), over))
}

// answers lists what was answered: the id, and the response or the error.
func (r *rig) answers() []string {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, line := range r.lines {
		var m struct {
			Response struct {
				RequestID string          `json:"request_id"`
				Error     string          `json:"error"`
				Response  json.RawMessage `json:"response"`
			} `json:"response"`
		}
		require.NoError(r.t, json.Unmarshal([]byte(line), &m))
		all = append(all, m.Response.RequestID+" "+string(m.Response.Response)+m.Response.Error)
	}
	return all
}

func eventsOf[E session.Event](r *rig) []E {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []E
	for _, e := range r.events {
		if e, ok := e.(E); ok {
			found = append(found, e)
		}
	}
	return found
}

const allow = `{"behavior":"allow"}`

func deny(reason string) string { return fmt.Sprintf(`{"behavior":"deny","message":%q}`, reason) }

var errOdd = errors.New("a secret of the user's")

func TestHowCallbacksEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run    func() (json.RawMessage, error)
		answer string
		failed error // nil: no event
	}{
		"with an answer":                      {func() (json.RawMessage, error) { return json.RawMessage(allow), nil }, allow, nil},
		"with nothing":                        {func() (json.RawMessage, error) { return nil, nil }, "", nil},
		"with an error":                       {func() (json.RawMessage, error) { return json.RawMessage(allow), errOdd }, deny("the callback failed"), errOdd},
		"with a panic":                        {func() (json.RawMessage, error) { panic(errOdd) }, deny("the callback failed"), errOdd},
		"with an error that the answer tells": {func() (json.RawMessage, error) { return json.RawMessage(allow), &callback.ReportedError{Err: errOdd} }, allow, errOdd},
		"with a reason to tell": {
			func() (json.RawMessage, error) {
				return nil, fmt.Errorf("x: %w", &callback.PublicError{Reason: "because", Err: errOdd})
			}, deny("because"), errOdd,
		},
		"with a refusal, which opens no gate": {
			func() (json.RawMessage, error) { return nil, &callback.RefusalError{Text: "not found", Err: errOdd} },
			deny("the callback failed"), errOdd,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := inSim(t, func(context.Context, *callback.Request) (json.RawMessage, error) { return c.run() }, time.Minute)
			r.read(ask("p"))
			r.pass(0)
			assert.Equal(t, []string{"p " + c.answer}, r.answers())
			failed := eventsOf[*session.CallbackFailed](r)
			if c.failed == nil {
				assert.Empty(t, failed)
			} else {
				require.Len(t, failed, 1)
				assert.Equal(t, "permission", failed[0].Kind)
				assert.Equal(t, "Bash", failed[0].Name)
				assert.Equal(t, "p", failed[0].RequestID)
				require.ErrorContains(t, failed[0].Err, c.failed.Error(), "the whole of it goes to the events")
			}
			r.pass(time.Hour)
			assert.Len(t, r.answers(), 1, "no deadline afterwards")
			assert.Empty(t, eventsOf[*session.LateAnswer](r))
			assert.Zero(t, r.open())
		})
	}
}

func TestAPanicKeepsItsStack(t *testing.T) {
	t.Parallel()
	r := inSim(t, func(context.Context, *callback.Request) (json.RawMessage, error) { panic("odd") }, 0)
	r.read(ask("p"))
	r.pass(0)
	var p *session.PanicError
	require.ErrorAs(t, eventsOf[*session.CallbackFailed](r)[0].Err, &p)
	assert.Equal(t, "odd", p.Value)
	assert.Contains(t, string(p.Stack), "TestAPanicKeepsItsStack")
}

func TestARequestThatCannotBePrepared(t *testing.T) {
	t.Parallel()
	r := inSim(t, nil, 0)
	r.prepare = func(*callback.Request) (callback.Job, error) { return callback.Job{Name: "Bash"}, errOdd }
	r.read(ask("p"), ask("q"))
	r.pass(0)
	assert.Equal(t, []string{"p " + deny("the callback failed"), "q " + deny("the callback failed")}, r.answers())
	require.Len(t, eventsOf[*session.CallbackFailed](r), 2)
}

func TestACallbackThatNeverReturns(t *testing.T) {
	t.Parallel()
	var cause error
	never := make(chan struct{})
	var r *rig
	r = inSim(t, func(ctx context.Context, _ *callback.Request) (json.RawMessage, error) {
		_ = r.sched.Await(ctx, never)
		cause = context.Cause(ctx)
		_ = r.sched.Await(context.Background(), never) // and does not care
		return json.RawMessage(allow), nil
	}, time.Minute)
	r.read(ask("p"))
	r.pass(time.Minute - 1)
	require.Empty(t, r.answers())
	r.pass(1)
	assert.Equal(t, []string{"p " + deny("no decision was made in time")}, r.answers())
	var timeout *session.TimeoutError
	require.ErrorAs(t, cause, &timeout, "the callback can see why")
	assert.Equal(t, session.TimeoutError{What: "permission callback for Bash", Limit: time.Minute, SetBy: "TestTimeout"}, *timeout)
	failed := eventsOf[*session.CallbackFailed](r)
	require.Len(t, failed, 1)
	require.ErrorIs(t, failed[0].Err, context.DeadlineExceeded)

	close(never)
	r.pass(0)
	assert.Len(t, r.answers(), 1, "an allow that comes after the deny changes nothing")
	assert.Equal(t, []*session.LateAnswer{{Kind: "permission", RequestID: "p"}}, eventsOf[*session.LateAnswer](r))
	assert.Len(t, eventsOf[*session.CallbackFailed](r), 1)
}

func TestAnErrorOfItsOwnForTheDeadline(t *testing.T) {
	t.Parallel()
	r := inSim(t, nil, 0)
	r.prepare = func(*callback.Request) (callback.Job, error) {
		return callback.Job{
			Name: "x", Limit: time.Second,
			Expired: func() error { return &callback.PublicError{Reason: "too slow", Err: errOdd} },
			Run: func(ctx context.Context) (json.RawMessage, error) {
				return nil, r.sched.Await(ctx, make(chan struct{}))
			},
		}, nil
	}
	r.read(ask("p"))
	r.pass(0)
	r.pass(time.Second)
	assert.Equal(t, []string{"p " + deny("too slow")}, r.answers())
	assert.Len(t, eventsOf[*session.CallbackFailed](r), 1)
}

func TestNoLimit(t *testing.T) {
	t.Parallel()
	decided := make(chan struct{})
	var r *rig
	r = inSim(t, func(ctx context.Context, _ *callback.Request) (json.RawMessage, error) {
		return json.RawMessage(allow), r.sched.Await(ctx, decided)
	}, 0)
	r.read(ask("p"))
	r.pass(1000 * time.Hour)
	require.Empty(t, r.answers(), "a person may be asleep")
	close(decided)
	r.pass(0)
	assert.Equal(t, []string{"p " + allow}, r.answers())
}

func TestTheAgentCancelsACallback(t *testing.T) {
	t.Parallel()
	ended := false
	var r *rig
	r = inSim(t, func(ctx context.Context, _ *callback.Request) (json.RawMessage, error) {
		err := r.sched.Await(ctx, make(chan struct{}))
		ended = true
		return json.RawMessage(allow), err
	}, time.Minute)
	r.read(ask("p"))
	r.pass(time.Second)
	r.read(cancel("p"))
	r.pass(0)
	assert.True(t, ended)
	r.pass(time.Hour)
	assert.Empty(t, r.answers(), "nobody is answered")
	assert.Empty(t, eventsOf[*session.CallbackFailed](r), "and nothing failed")
}

// The cancel is handled between the request's being taken and its scope; whether the
// callback has begun by then is the scheduler's choice.
func TestTheAgentCancelsBeforeTheCallbackRuns(t *testing.T) {
	t.Parallel()
	given := 0
	for seed := range uint64(20) {
		done, ran := 0, 0
		r := newRig(t, sim.New(seed), nil, 0)
		r.prepare = func(q *callback.Request) (callback.Job, error) {
			f, err := protocol.ParseFrame([]byte(cancel(q.ID())))
			require.NoError(t, err)
			r.Put(f)
			r.ref.Tell(nil, machine.Cancel{Seq: q.Seq, Kind: session.KindPermission}) // which comes before the router's
			return callback.Job{
				Run:  func(context.Context) (json.RawMessage, error) { ran++; return nil, nil },
				Done: func() { done++ },
			}, nil
		}
		r.read(ask("p"))
		r.pass(0)
		assert.Empty(t, r.answers())
		assert.Equal(t, 1, done, "what was prepared is given up")
		given += 1 - ran
		r.sched.Close()
	}
	assert.Positive(t, given, "it never came before the run")
}

func TestDoneFollowsEveryRun(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func() (json.RawMessage, error){
		"answer": func() (json.RawMessage, error) { return nil, nil },
		"error":  func() (json.RawMessage, error) { return nil, errOdd },
		"panic":  func() (json.RawMessage, error) { panic(errOdd) },
	} {
		done := 0
		r := inSim(t, nil, 0)
		r.prepare = func(*callback.Request) (callback.Job, error) {
			return callback.Job{Run: func(context.Context) (json.RawMessage, error) { return run() }, Done: func() { done++ }}, nil
		}
		r.read(ask("p"))
		r.pass(0)
		assert.Equal(t, 1, done, name)
		assert.Len(t, r.answers(), 1, name)
	}
}

func TestAnActorThatStopsEndsItsCallbacks(t *testing.T) {
	t.Parallel()
	var causes []string
	var r *rig
	r = inSim(t, func(ctx context.Context, q *callback.Request) (json.RawMessage, error) {
		err := r.sched.Await(ctx, make(chan struct{}))
		causes = append(causes, q.ID()+" "+context.Cause(ctx).Error())
		return nil, err
	}, time.Minute)
	r.read(ask("p"), ask("q"))
	r.pass(time.Second)
	require.NoError(t, kernel.StopAndWait(t.Context(), r.ref))
	r.Host.Lost("the host could not decide") // as its supervisor does
	r.pass(time.Hour)
	assert.ElementsMatch(t, []string{
		"p the session no longer waits for this callback", "q the session no longer waits for this callback",
	}, causes)
	assert.Len(t, r.answers(), 2)
	assert.Zero(t, r.open())
}

func TestTheNextIncarnationTakesWhatNobodyTook(t *testing.T) {
	t.Parallel()
	ran := 0
	r := inSim(t, func(context.Context, *callback.Request) (json.RawMessage, error) {
		ran++
		return json.RawMessage(allow), nil
	}, time.Minute)
	r.pass(0)
	require.NoError(t, kernel.StopAndWait(t.Context(), r.ref))
	r.read(ask("p")) // nobody hears it
	r.pass(time.Second)
	require.Empty(t, r.answers())
	r.start()
	r.pass(0)
	assert.Equal(t, []string{"p " + allow}, r.answers())
	assert.Equal(t, 1, ran)
}

func TestAnAnswerThatArrivesWhileNoActorLives(t *testing.T) {
	t.Parallel()
	decided := make(chan struct{})
	var r *rig
	r = inSim(t, func(context.Context, *callback.Request) (json.RawMessage, error) {
		return json.RawMessage(allow), r.sched.Await(context.Background(), decided)
	}, time.Minute)
	r.read(ask("p"))
	r.pass(0)
	require.NoError(t, kernel.StopAndWait(t.Context(), r.ref))
	r.Host.Lost("gone")
	close(decided)
	r.pass(0)
	assert.Equal(t, []string{"p " + deny("gone")}, r.answers())
	assert.Len(t, eventsOf[*session.LateAnswer](r), 1)
}

// TestAnIDThatComesAgainHasADeadlineOfItsOwn reuses a wire id while the first
// callback under it still runs.
func TestAnIDThatComesAgainHasADeadlineOfItsOwn(t *testing.T) {
	t.Parallel()
	first := make(chan struct{})
	n := 0
	var r *rig
	r = inSim(t, func(context.Context, *callback.Request) (json.RawMessage, error) {
		if n++; n == 1 {
			_ = r.sched.Await(context.Background(), first)
		} else {
			_ = r.sched.Await(context.Background(), make(chan struct{}))
		}
		return json.RawMessage(allow), nil
	}, time.Minute)
	r.read(ask("p"))
	r.pass(0)
	r.pass(time.Minute)
	require.Len(t, r.answers(), 1)
	for i := range 100 { // p is forgotten
		id := fmt.Sprint(i)
		f, err := protocol.ParseFrame([]byte(ask(id)))
		require.NoError(t, err)
		r.Put(f)
		r.Router.At.Tell(nil, machine.Answered{Seq: r.seq(id), ID: id, Kind: session.KindPermission})
		r.pass(0)
	}
	r.read(ask("p"))
	r.pass(time.Second)
	close(first)
	r.pass(time.Minute)
	got := r.answers()
	assert.Equal(t, "p "+deny("no decision was made in time"), got[len(got)-1])
	assert.Zero(t, r.open())
}

func TestAnUnknownMessageIsAFailure(t *testing.T) {
	t.Parallel()
	var crash kernel.Crash
	s := sim.New(1)
	defer s.Close()
	cfg := s.Config()
	cfg.OnCrash = func(c kernel.Crash) { crash = c }
	sys := kernel.NewSystem(cfg)
	var ref kernel.Address[machine.ToCallback]
	err := kernel.SpawnRoot(sys, "x", &ref, &callback.Actor{Kind: session.KindHook, Box: &callback.Box{}})
	require.NoError(t, err)
	ref.Tell(nil, stranger{})
	require.NoError(t, s.Run(100))
	require.ErrorContains(t, crash.Reason, "hook: unexpected message")
}

type stranger struct{}

func (stranger) ToCallback() {}

func TestTenThousandCallbacksAtOnce(t *testing.T) {
	t.Parallel()
	const n = 10_000 // below the default of Limits.Requests
	started, release := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	running := 0
	r := newRig(t, nil, func(context.Context, *callback.Request) (json.RawMessage, error) {
		mu.Lock()
		if running++; running == n {
			close(started)
		}
		mu.Unlock()
		<-release
		return json.RawMessage(allow), nil
	}, time.Hour)
	var lines []string
	for i := range n {
		lines = append(lines, ask(fmt.Sprint(i)))
	}
	r.read(lines...)
	<-started
	require.Eventually(t, func() bool { return r.Told().Gates == n }, time.Minute, time.Millisecond) // the summary comes beside the calls
	close(release)
	require.Eventually(t, func() bool { return r.open() == 0 }, time.Minute, time.Millisecond)
	seen := make(map[string]bool)
	for _, a := range r.answers() {
		id, what, _ := strings.Cut(a, " ")
		require.False(t, seen[id], "answered twice: %s", id)
		seen[id] = true
		require.JSONEq(t, allow, what)
	}
	assert.Len(t, seen, n)
	require.NoError(t, kernel.StopAndWait(t.Context(), r.ref))
}

// TestACallbackThatEndsItsGoroutine does what FailNow of a test does inside a
// callback.
func TestACallbackThatEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, func(context.Context, *callback.Request) (json.RawMessage, error) {
		goruntime.Goexit()
		return json.RawMessage(allow), nil
	}, 0)
	r.read(ask("p"))
	require.Eventually(t, func() bool { return r.open() == 0 }, time.Minute, time.Millisecond)
	assert.Equal(t, []string{"p " + deny("the callback failed")}, r.answers())
	require.NoError(t, kernel.StopAndWait(t.Context(), r.ref))
}

// TestCallbacksRaceTheirDeadlineAndTheirCancel answers, expires and cancels at
// the same time on goroutines: each request gets at most one answer.
func TestCallbacksRaceTheirDeadlineAndTheirCancel(t *testing.T) {
	t.Parallel()
	const n = 500
	r := newRig(t, nil, func(context.Context, *callback.Request) (json.RawMessage, error) {
		goruntime.Gosched()
		return json.RawMessage(allow), nil
	}, 1)
	for i := range n {
		id := fmt.Sprint(i)
		r.read(ask(id))
		if i%2 == 0 {
			r.read(cancel(id))
		}
	}
	require.Eventually(t, func() bool { return r.open() == 0 }, time.Minute, time.Millisecond)
	seen := make(map[string]int)
	for _, a := range r.answers() {
		id, _, _ := strings.Cut(a, " ")
		seen[id]++
	}
	for i := range n {
		require.LessOrEqual(t, seen[fmt.Sprint(i)], 1)
		if i%2 == 1 {
			require.Equal(t, 1, seen[fmt.Sprint(i)])
		}
	}
	require.NoError(t, kernel.StopAndWait(t.Context(), r.ref))
}
