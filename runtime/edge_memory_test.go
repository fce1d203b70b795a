package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// stage is where an edge test plays: on the production seams, or on one seed
// of the simulation, where time is virtual.
type stage struct {
	*testing.T
	ctx   context.Context
	rt    *runtime.Runtime
	sched *sim.Scheduler // nil in production
}

// onStages plays a test in production and on a few seeds of the simulation.
func onStages(t *testing.T, play func(s *stage)) {
	t.Helper()
	t.Run("production", func(t *testing.T) {
		t.Parallel()
		onGoroutines(t, play)
	})
	t.Run("simulation", func(t *testing.T) {
		t.Parallel()
		for seed := range sim.Seeds(t, 4, 200) {
			inSimulation(t, seed, runtime.Config{}, play)
		}
	})
}

// onGoroutines plays a test on the production seams. Nothing may be left.
func onGoroutines(t *testing.T, play func(s *stage)) {
	t.Helper()
	w := production(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	play(&stage{T: t, ctx: ctx, rt: w.Runtime})
	w.Finish()
}

// inSimulation plays a test on one seed. Nothing may be left, not even a task
// that waits.
func inSimulation(t *testing.T, seed uint64, cfg runtime.Config, play func(s *stage)) {
	t.Helper()
	w := newWorldWith(t, seed, cfg)
	w.Mute = true // nothing of a stage reads it, and some measure memory
	play(&stage{T: t, ctx: context.Background(), rt: w.Runtime, sched: w.Sched})
	w.Finish()
}

// await waits as a task of the stage does.
func (s *stage) await(done <-chan struct{}) {
	s.Helper()
	require.NoError(s, s.rt.Executor().Await(s.ctx, done))
}

// task runs fn beside the test.
func (s *stage) task(fn func()) <-chan struct{} {
	done := make(chan struct{})
	s.rt.Executor().Go(func() {
		defer close(done)
		fn()
	})
	return done
}

// pass lets time go by, which is virtual in simulation: it ends when nothing
// else is left to do before.
func (s *stage) pass(d time.Duration) {
	s.Helper()
	over := make(chan struct{})
	s.rt.Clock().AfterFunc(d, func() { close(over) })
	s.await(over)
}

// spec is a session with a puppet for an agent.
func (s *stage) spec(p puppet) runtime.Spec {
	return runtime.Spec{
		Dialect: claude.New(), Program: p,
		Options: session.Options{
			Graces:         session.Graces{EOF: 200 * time.Millisecond, Terminate: 100 * time.Millisecond, Output: 200 * time.Millisecond},
			InterruptGrace: 100 * time.Millisecond,
		},
	}
}

func (s *stage) open(spec runtime.Spec) *runtime.Session {
	s.Helper()
	sess, err := s.rt.Open(s.ctx, spec)
	require.NoError(s, err)
	return sess
}

func (s *stage) send(sess *runtime.Session) *runtime.Turn {
	s.Helper()
	turn, err := sess.Send(s.ctx, userText("hi"))
	require.NoError(s, err)
	return turn
}

// read reads a turn to its end and returns the lines.
func (s *stage) read(turn *runtime.Turn) []string {
	s.Helper()
	var lines []string
	for m, err := range turn.Messages(s.ctx) {
		require.NoError(s, err)
		lines = append(lines, string(m.Raw()))
	}
	return lines
}

func (s *stage) close(sess *runtime.Session) {
	s.Helper()
	require.NoError(s, sess.Close(s.ctx))
}

// puppet is an agent in memory that does what the function does with its hand.
// initialize is answered before, and what the host wants after, until it
// closes stdin.
type puppet func(h *hand)

func (puppet) AgentName() string { return "puppet" }

// Serve implements [agent.Program].
func (p puppet) Serve(_ agent.Launch, port agent.Port) (exit agent.Exit) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case exited:
			exit = agent.Exit(r)
		default:
			panic(r)
		}
	}()
	h := &hand{port: port}
	h.answer(h.request("initialize").RequestID, `{}`)
	p(h)
	h.serve()
	return agent.Exit{}
}

// exited unwinds a puppet that is over.
type exited agent.Exit

// hand is a puppet's end of the pipe.
type hand struct {
	port agent.Port
	kept []protocol.Frame // heard while time passed
}

// write writes bytes as they are.
func (h *hand) write(b []byte) {
	if h.port.Write(b) != nil {
		panic(exited{Code: 1})
	}
}

// say writes lines.
func (h *hand) say(lines ...string) {
	for _, line := range lines {
		h.write([]byte(line + "\n"))
	}
}

// hear returns the host's next line.
func (h *hand) hear() protocol.Frame {
	if len(h.kept) > 0 {
		f := h.kept[0]
		h.kept = h.kept[1:]
		return f
	}
	f, _ := h.next(-1)
	return f
}

// next waits for the host's next line, at most for d; negative: without a limit.
func (h *hand) next(d time.Duration) (protocol.Frame, bool) {
	for {
		line, err := h.port.Next(d)
		switch {
		case err == nil:
			f, err := protocol.ParseFrame(line)
			if err != nil {
				panic(err) // the host writes nothing but frames
			}
			return f, true
		case errors.Is(err, agent.ErrWaited):
			return protocol.Frame{}, false
		case errors.Is(err, agent.ErrTerminated):
			panic(exited{Code: 143})
		default:
			panic(exited{}) // the end of stdin, or of the agent
		}
	}
}

// pass lets time go by; what is heard meanwhile is kept.
func (h *hand) pass(d time.Duration) {
	for {
		f, ok := h.next(d)
		if !ok {
			return
		}
		h.kept = append(h.kept, f)
	}
}

// request reads until a control request of that subtype comes.
func (h *hand) request(subtype string) protocol.Frame {
	for {
		if f := h.hear(); f.Type == protocol.TypeControlRequest && f.Subtype == subtype {
			return f
		}
	}
}

// prompt reads until a user message comes and returns its uuid.
func (h *hand) prompt() string {
	for {
		if f := h.hear(); f.Type == "user" {
			return f.UUID()
		}
	}
}

// answer answers a control request of the host.
func (h *hand) answer(id, body string) {
	h.say(fmt.Sprintf(`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":%s}}`, id, body))
}

// ask makes a control request.
func (h *hand) ask(id, request string) {
	h.say(fmt.Sprintf(`{"type":"control_request","request_id":%q,"request":%s}`, id, request))
}

// reply reads until the answer to a request of the agent's comes.
func (h *hand) reply(id string) protocol.Frame {
	for {
		if f := h.hear(); f.Type == protocol.TypeControlResponse && f.RequestID == id {
			return f
		}
	}
}

// fence returns what the host wrote before it answered a request that is made
// now: whatever it had to say to what was said before.
func (h *hand) fence(id string) []protocol.Frame {
	h.ask(id, `{"subtype":"fence"}`)
	var before []protocol.Frame
	for {
		f := h.hear()
		if f.Type == protocol.TypeControlResponse && f.RequestID == id {
			return before
		}
		before = append(before, f)
	}
}

// serve grants what the host wants until it closes stdin, which ends serve.
func (h *hand) serve() {
	for {
		if f := h.hear(); f.Type == protocol.TypeControlRequest {
			h.answer(f.RequestID, `{}`)
		}
	}
}

// assistantLine is the n-th line, of text of that size.
func assistantLine(n, size int) string {
	return `{"type":"assistant","uuid":"a-` + strconv.Itoa(n) + `","session_id":"s","message":{"role":"assistant","content":[{"type":"text","text":"` +
		strings.Repeat("x", size) + `"}]}}`
}

// partialLine is a piece of text, which gives way where it must.
func partialLine(n, size int) string {
	return `{"type":"stream_event","uuid":"p-` + strconv.Itoa(n) +
		`","session_id":"s","parent_tool_use_id":null,"event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` +
		strings.Repeat("x", size) + `"}}}`
}

// noteLine is of an unknown type, and costs no decoding.
func noteLine(n, size int) string {
	return `{"type":"note","uuid":"n-` + strconv.Itoa(n) + `","v":"` + strings.Repeat("x", size) + `"}`
}

func resultLine(uuid string) string {
	return fmt.Sprintf(`{"type":"result","subtype":"success","uuid":"r-%s","session_id":"s","user_message_uuid":%q,"is_error":false,"num_turns":1,"result":"done"}`, uuid, uuid)
}

// reports is what a session reports.
type reports struct {
	mu    sync.Mutex
	all   []session.Event
	watch []*watch
}

type watch struct {
	match func(session.Event) bool
	done  chan struct{}
}

// listen makes spec report to what it returns.
func listen(spec *runtime.Spec) *reports {
	r := &reports{}
	spec.Options.OnEvent = func(record session.EventRecord) { r.take(record.Event) }
	return r
}

func (r *reports) take(e session.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, e)
	for _, w := range r.watch {
		if w.match != nil && w.match(e) {
			w.match = nil
			close(w.done)
		}
	}
}

// seen is closed once an event that matches was reported, before or after the
// call.
func (r *reports) seen(match func(session.Event) bool) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &watch{match: match, done: make(chan struct{})}
	for _, e := range r.all {
		if w.match != nil && w.match(e) {
			w.match = nil
			close(w.done)
		}
	}
	r.watch = append(r.watch, w)
	return w.done
}

// entered is closed once the session was in that state.
func (r *reports) entered(state session.State) <-chan struct{} {
	return r.seen(func(e session.Event) bool {
		changed, ok := e.(*session.StateChanged)
		return ok && changed.To == state.String()
	})
}

// reported returns the events of one type, once the session has ended and
// reported all of them.
func reported[E session.Event](s *stage, r *reports) []E {
	s.Helper()
	s.await(r.seen(func(e session.Event) bool { _, over := e.(*session.Ended); return over }))
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []E
	for _, e := range r.all {
		if e, ok := e.(E); ok {
			found = append(found, e)
		}
	}
	return found
}

// footprint is the memory that this process holds for Go, right after a
// collection, in bytes.
func footprint() int64 {
	goruntime.GC() // what a pool holds outlives one collection
	debug.FreeOSMemory()
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}

const mib = 1 << 20

// scaled is the small volume by default, and the full one when TROUPE_SCALE is
// set.
func scaled(small, full int) int {
	if os.Getenv("TROUPE_SCALE") != "" {
		return full
	}
	return small
}

// volume is how many bytes a test writes that has to be more than is ever kept.
func volume() int {
	if testing.Short() || sim.Raced() {
		return 24 * mib
	}
	return 64 * mib
}

// newID is an argument that no other process of the machine has.
func newID() string { return "troupe-test-" + kernel.NewID(kernel.NewRand(nil)) }

// object reads a JSON object.
func object(t testing.TB, raw []byte) map[string]any {
	t.Helper()
	var o map[string]any
	require.NoError(t, json.Unmarshal(raw, &o), "%s", raw)
	return o
}

// TestMemoryWhateverTheAgentWrites lets agents write without end whatever a
// host might want to keep: the memory is bounded.
func TestMemoryWhateverTheAgentWrites(t *testing.T) { // alone: it measures memory
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // garbage leaves holes, which do not count as memory of a session
	pad := strings.Repeat("x", 64<<10)
	request := func(id, body string) string {
		return `{"type":"control_request","request_id":"` + id + `","request":` + body + `}`
	}
	for name, c := range map[string]struct {
		line   func(id string) string
		volume int  // bytes written; 0: much
		deaf   bool // the agent reads nothing
		drops  bool // the user wants no messages
		most   int  // bytes of memory; 0: aboveIdle
		fills  bool // with less the pipes would not be full
	}{
		"noise":                   {line: func(string) string { return pad }},
		"lines that are too long": {line: func(string) string { return strings.Repeat(pad, 80) }},
		"messages":                {line: func(id string) string { return `{"type":"note","id":"` + id + `"}` }},
		"messages amid the unread": {line: func(id string) string {
			return `{"type":"note"}` + "\n" + `{"type":"keep_alive","v":"` + pad[:32<<10] + `"}`
		}},
		"frames for nobody": {line: func(string) string { return `{"type":"transcript_mirror","v":"` + pad + `"}` }},
		"answers to nothing": {line: func(id string) string {
			return `{"type":"control_response","response":{"subtype":"success","request_id":"` + id + pad + `"}}`
		}},
		"cancels of nothing":         {line: func(id string) string { return `{"type":"control_cancel_request","request_id":"` + id + pad + `"}` }},
		"requests that are answered": {volume: scaled(8*mib, 1024*mib), line: func(id string) string { return request(id, `{"subtype":"`+pad+`"}`) }},
		"results of nothing":         {line: func(string) string { return `{"type":"result","result":"` + pad + `"}` }, volume: scaled(8*mib, 1024*mib), drops: true},
		"requests nobody knows":      {line: func(id string) string { return request(id, `{"subtype":"x"}`) }, deaf: true},
		"one request over and over":  {line: func(string) string { return request("q", `{"subtype":"`+pad[:60<<10]+`"}`) }, deaf: true, fills: true},
		"gates nobody decides": {volume: scaled(20*mib, 1024*mib), line: func(id string) string {
			return request(id, `{"subtype":"can_use_tool","tool_name":"Bash","input":{"v":"`+pad+`"}}`)
		}},
		// 4,096 of them wait, each with a task whose stack is 5 KiB.
		"gates that are tiny": {most: 48 * mib, volume: scaled(6*mib, 256*mib), line: func(id string) string {
			return request(id, `{"subtype":"can_use_tool","tool_name":"Bash","input":{}}`) + "\n" + `{"type":"keep_alive","v":"` + pad[:1<<10] + `"}`
		}},
		"gates that are taken back": {line: func(id string) string {
			return request(id, `{"subtype":"can_use_tool","tool_name":"Bash","input":{"v":"`+pad+`"}}`) +
				"\n" + `{"type":"control_cancel_request","request_id":"` + id + `"}`
		}},
		// Their answers are as long, and large answers have a queue of 32 MiB.
		"long request ids": {most: 2 * aboveIdle, line: func(id string) string { return request(id+strings.Repeat(pad, 12), `{"subtype":"x"}`) }},
		"tasks without end": {line: func(id string) string {
			return `{"type":"system","subtype":"task_started","task_id":"` + id + pad[:200] + `"}`
		}, volume: scaled(4*mib, 256*mib), drops: true},
		"long task ids": {line: func(id string) string {
			return `{"type":"system","subtype":"task_started","task_id":"` + id + pad + `"}`
		}, drops: true},
	} {
		t.Run(name, func(t *testing.T) {
			inSimulation(t, 1, runtime.Config{}, func(s *stage) {
				if c.volume == 0 {
					c.volume = scaled(40*mib, 1024*mib)
				}
				switch { // the bound is proved without the detector, which is slow
				case c.fills:
				case testing.Short() && !c.deaf:
					c.volume /= 32
				case testing.Short() || sim.Raced():
					c.volume /= 8
				}
				spec := s.spec(func(h *hand) {
					h.prompt()
					for n, wrote := 0, 0; wrote < c.volume; n++ {
						line := c.line("q" + strconv.Itoa(n))
						h.say(line)
						wrote += len(line)
						for heard := !c.deaf; heard; {
							_, heard = h.next(0)
						}
					}
					if c.deaf {
						s.pass(time.Hour)
					}
				})
				spec.Options.MaxLine = 4 * mib
				spec.Options.Discard = c.drops
				spec.Options.Limits.Requests = 4096 // each has a task, of which the race detector takes 8,128
				spec.Options.CanUseTool = func(ctx context.Context, _ *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
					return protocol.PermissionResult{}, s.rt.Executor().Await(ctx, nil)
				}
				sess := s.open(spec)
				idle := footprint()
				s.send(sess)
				reader := s.task(func() {
					for _, err := range sess.Messages(s.ctx) {
						assert.NoError(s, err)
						s.await(sess.Done()) // and reads no more
					}
				})
				s.pass(time.Second) // by then nothing moves
				peak := footprint() - idle
				t.Logf("%d MiB", peak/mib)
				assert.Less(s, peak, int64(max(c.most, aboveIdle)))
				s.close(sess)
				s.await(reader)
			})
		})
	}
}

// TestAnIdleSessionForgetsItsAnswers compares sessions that are idle after a turn
// of 1,200 callbacks with large answers to sessions that are idle after a turn
// without any.
func TestAnIdleSessionForgetsItsAnswers(t *testing.T) { // alone: it measures memory
	const size = 8 << 10
	sessions, callbacks := 10, 1200
	if sim.Raced() || testing.Short() {
		sessions, callbacks = 2, 200
	}
	weigh := func(t *testing.T, k callbackKind, n int) (each int64) {
		t.Helper()
		onGoroutines(t, func(s *stage) {
			before := heap()
			for range sessions {
				spec := s.spec(func(h *hand) {
					uuid := h.prompt()
					for i := range n {
						id := fmt.Sprintf("%032d", i)
						h.ask(id, k.request)
						h.reply(id)
					}
					h.say(resultLine(uuid))
				})
				k.install(&spec, time.Minute, func(context.Context) (int, error) { return size, nil })
				sess := s.open(spec)
				_, err := s.send(sess).Result(s.ctx)
				require.NoError(s, err)
			}
			each = (heap() - before) / int64(sessions)
		})
		return each
	}
	for _, k := range callbackKinds() {
		if k.name == "model policy" {
			continue // its answers are small
		}
		t.Run(k.name, func(t *testing.T) {
			weigh(t, k, 1) // what is made once
			none, many := weigh(t, k, 0), weigh(t, k, callbacks)
			t.Logf("%d bytes idle, %d after %d callbacks", none, many, callbacks)
			assert.Less(t, many, 2*none)
		})
	}
}

// heap is the memory that is in use, in bytes.
func heap() int64 {
	goruntime.GC()
	goruntime.GC() // what a pool holds outlives one collection
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
