package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript"
	"github.com/agent-troupe/troupe/transcript/store"
)

// desk is a machine with an agent that stores its sessions.
type desk struct {
	*testing.T
	rt   *runtime.Runtime
	temp string // of the runtime
	home string
	cwd  string

	mu     sync.Mutex
	events []session.Event
	args   []string // of the last agent
}

// argued is an agent whose arguments are kept.
type argued struct {
	*scripted.Agent
	d *desk
}

func (a argued) Serve(l agent.Launch, p agent.Port) agent.Exit {
	a.d.mu.Lock()
	a.d.args = l.Args
	a.d.mu.Unlock()
	return a.Agent.Serve(l, p)
}

func newDesk(t *testing.T, cwd string) *desk {
	t.Helper()
	temp := t.TempDir()
	rt, err := runtime.New(runtime.Config{TempDir: temp})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Shutdown(context.Background())) })
	return &desk{T: t, rt: rt, temp: temp, home: t.TempDir(), cwd: cwd}
}

// open connects to an agent that repeats what it remembers.
func (d *desk) open(o sdk.Options) (*sdk.Client, error) {
	o.Runtime, o.Cwd = d.rt, d.cwd
	o.CleanEnv, o.Env = true, map[string]string{"HOME": d.home, "ANTHROPIC_API_KEY": "sk-x"}
	o.Backend = argued{scripted.New(scripted.WithScript(&scripted.Script{Transcript: true, Default: scripted.Steps{scripted.Text("${history}")}})), d}
	o.OnEvent = func(r session.EventRecord) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.events = append(d.events, r.Event)
	}
	c := sdk.NewClient(&o)
	return c, c.Connect(d.Context())
}

func (d *desk) ask(c *sdk.Client, text string) string {
	d.Helper()
	turn, err := c.Send(d.Context(), sdk.UserText(text))
	require.NoError(d, err)
	r, err := turn.Result(d.Context())
	require.NoError(d, err)
	return r.Result
}

// mirrorEvents returns the events of a type, once there are n of them: they come after
// what they are about.
func mirrorEvents[E session.Event](d *desk, n int) (all []E) {
	d.Helper()
	require.Eventually(d, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		all = nil
		for _, e := range d.events {
			if e, ok := e.(E); ok {
				all = append(all, e)
			}
		}
		return len(all) >= n
	}, 10*time.Second, time.Millisecond)
	return all
}

func keyOf(cwd, id string) session.StoreKey {
	return session.StoreKey{Project: transcript.FolderName(transcript.Claude, cwd), Session: id}
}

func types(t *testing.T, s session.Store, key session.StoreKey) (all []string) {
	t.Helper()
	for e, err := range s.Load(t.Context(), key) {
		require.NoError(t, err)
		var head struct{ Type string }
		require.NoError(t, json.Unmarshal(e, &head))
		all = append(all, head.Type)
	}
	return all
}

// A session continues, from a store, on a machine that never saw it.
func TestAnotherMachineGoesOn(t *testing.T) {
	t.Parallel()
	for name, flush := range map[string]session.StoreFlush{"batched": "", "eager": session.StoreEager} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parity.Covers(t, "claude/option/sessionStore")
			s, cwd := store.NewDir(t.TempDir()), t.TempDir()
			first := newDesk(t, cwd)
			o := sdk.Options{SessionStore: s, SessionStoreOptions: session.StoreOptions{Flush: flush}}
			c, err := first.open(o)
			require.NoError(t, err)
			require.Equal(t, "one", first.ask(c, "one"))
			require.NoError(t, c.Mirrored(t.Context()))
			id := c.SessionID()
			require.Equal(t, []string{"user", "assistant"}, types(t, s, keyOf(cwd, id)))
			require.Equal(t, "one | two", first.ask(c, "two"))
			require.NoError(t, c.Close(t.Context()))
			require.Equal(t, []string{"user", "assistant", "user", "assistant"}, types(t, s, keyOf(cwd, id)))
			require.Empty(t, mirrorEvents[*session.MirrorFailed](first, 0))
			require.NotEmpty(t, mirrorEvents[*session.Mirrored](first, 1))

			second := newDesk(t, cwd)
			o.Resume = id
			c, err = second.open(o)
			require.NoError(t, err)
			require.Equal(t, "one | two | three", second.ask(c, "three"))
			require.NoError(t, c.Close(t.Context()))
			require.Len(t, types(t, s, keyOf(cwd, id)), 6, "it is appended to the same transcript")
			left, err := os.ReadDir(second.home)
			require.NoError(t, err)
			require.Empty(t, left, "nothing was stored in the home directory")

			at, err := sdk.Sessions(&sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{}), Cwd: cwd, SessionStore: s})
			require.NoError(t, err)
			rows, err := at.List(t.Context(), transcript.ListOptions{})
			require.NoError(t, err)
			require.Len(t, rows, 1)
			require.Equal(t, id, rows[0].SessionID)
			require.Equal(t, "one", rows[0].FirstPrompt)

			third := newDesk(t, cwd)
			o.Resume, o.Continue = "", true
			c, err = third.open(o)
			require.NoError(t, err)
			require.Equal(t, "one | two | three | four", third.ask(c, "four"))
			require.NoError(t, c.Close(t.Context()))
		})
	}
}

// What the store does not have is resumed as without one.
func TestResumeWithoutTheStore(t *testing.T) {
	t.Parallel()
	d, s := newDesk(t, t.TempDir()), &store.Memory{}
	c, err := d.open(sdk.Options{})
	require.NoError(t, err)
	d.ask(c, "one")
	id := c.SessionID()
	require.NoError(t, c.Close(t.Context()))

	c, err = d.open(sdk.Options{SessionStore: s, Resume: id})
	require.NoError(t, err)
	require.Equal(t, "one | two", d.ask(c, "two"))
	require.NoError(t, c.Close(t.Context()))
	require.Equal(t, []string{"user", "assistant"}, types(t, s, keyOf(d.cwd, id)), "the store has what came from then on")

	c, err = d.open(sdk.Options{SessionStore: &store.Memory{}, Continue: true})
	require.NoError(t, err)
	require.Equal(t, "anew", d.ask(c, "anew"), "what this machine has is not the store's newest")
	d.mu.Lock()
	require.NotContains(t, d.args, "--continue")
	d.mu.Unlock()
	require.NoError(t, c.Close(t.Context()))

	empty := newDesk(t, t.TempDir())
	c, err = empty.open(sdk.Options{SessionStore: s, Continue: true})
	require.NoError(t, err)
	require.Equal(t, "hello", empty.ask(c, "hello"), "an empty store begins a new session")
	require.NoError(t, c.Close(t.Context()))
}

// faulty is a store whose methods fail as a test wants.
type faulty struct {
	store.Memory
	append func(n int, ctx context.Context) error
	load   error
	n      atomic.Int32
}

func (f *faulty) Append(ctx context.Context, key session.StoreKey, entries []json.RawMessage) error {
	if f.append != nil {
		if err := f.append(int(f.n.Add(1)), ctx); err != nil {
			return err
		}
	}
	return f.Memory.Append(ctx, key, entries)
}

func (f *faulty) Load(ctx context.Context, key session.StoreKey) iter.Seq2[json.RawMessage, error] {
	if f.load == nil {
		return f.Memory.Load(ctx, key)
	}
	return func(yield func(json.RawMessage, error) bool) { yield(nil, f.load) }
}

func TestAStoreThatFails(t *testing.T) {
	t.Parallel()
	errFull := errors.New("the disk is full")
	for name, c := range map[string]struct {
		append func(n int, ctx context.Context) error
		failed string // part of the only MirrorFailed; "": there is none
		stored int
	}{
		"twice": {
			append: func(n int, _ context.Context) error {
				if n <= 2 {
					return errFull
				}
				return nil
			}, stored: 2,
		},
		"for ever":  {append: func(int, context.Context) error { return errFull }, failed: "2 entries of KEY are missing from the session store: session store: append KEY: the disk is full"},
		"by panic":  {append: func(int, context.Context) error { panic("oh") }, failed: "panic while handling SessionStore.Append: oh"},
		"by a hang": {append: func(_ int, ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, failed: "append to the session store: no answer within 50ms (set by SessionStoreOptions.Append)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, s := newDesk(t, t.TempDir()), &faulty{append: c.append}
			options := session.StoreOptions{Append: time.Minute} // a busy machine is not the store's fault
			if strings.Contains(c.failed, "no answer") {
				options.Append = 50 * time.Millisecond
			}
			client, err := d.open(sdk.Options{SessionStore: s, SessionStoreOptions: options})
			require.NoError(t, err)
			require.Equal(t, "one", d.ask(client, "one"))
			require.NoError(t, client.Mirrored(t.Context()))
			require.NotEmpty(t, mirrorEvents[*session.MirrorPending](d, 1))
			key := keyOf(d.cwd, client.SessionID())
			failed := mirrorEvents[*session.MirrorFailed](d, min(len(c.failed), 1))
			if c.failed == "" {
				require.Empty(t, failed)
			} else {
				require.Len(t, failed, 1)
				require.Contains(t, failed[0].String(), strings.ReplaceAll(c.failed, "KEY", key.String()))
			}
			require.Len(t, types(t, s, key), c.stored)
			require.NoError(t, client.Close(t.Context()))
			require.NoError(t, client.Err(), "the session does not suffer")
		})
	}
}

// A result does not wait for a slow store.
func TestASlowStore(t *testing.T) {
	t.Parallel()
	d, release := newDesk(t, t.TempDir()), make(chan struct{})
	s := &faulty{append: func(_ int, ctx context.Context) error {
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	c, err := d.open(sdk.Options{SessionStore: s})
	require.NoError(t, err)
	require.Equal(t, "one", d.ask(c, "one"))
	require.Equal(t, "one | two", d.ask(c, "two"))
	require.Empty(t, mirrorEvents[*session.Mirrored](d, 0))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, c.Mirrored(ctx), context.Canceled)
	close(release)
	require.NoError(t, c.Mirrored(t.Context()))
	require.Len(t, types(t, s, keyOf(d.cwd, c.SessionID())), 4)
	require.NoError(t, c.Close(t.Context()))
}

func TestALoadThatFails(t *testing.T) {
	t.Parallel()
	id := "0b7de7f0-3c1c-4f5b-9d0e-1d7c3f0a0001"
	t.Run("error", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, t.TempDir())
		_, err := d.open(sdk.Options{SessionStore: &faulty{load: errors.New("no route")}, Resume: id})
		failed, ok := errors.AsType[*session.StoreError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, keyOf(d.cwd, id), failed.Key)
		require.ErrorContains(t, err, "session store: load "+failed.Key.String()+": no route")
	})
	t.Run("too late", func(t *testing.T) {
		t.Parallel()
		parity.Covers(t, "claude/option/loadTimeoutMs")
		d := newDesk(t, t.TempDir())
		s := &hanging{}
		_, err := d.open(sdk.Options{SessionStore: s, Resume: id, SessionStoreOptions: session.StoreOptions{Load: 20 * time.Millisecond}})
		late, ok := errors.AsType[*session.TimeoutError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, "SessionStoreOptions.Load", late.SetBy)
	})
	t.Run("a title", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, t.TempDir())
		c, err := d.open(sdk.Options{SessionStore: &faulty{load: errors.New("asked")}, Resume: "my title"})
		if err == nil {
			_ = c.Close(t.Context())
		}
		require.NotErrorIs(t, err, session.ErrClosed)
		if err != nil {
			require.NotContains(t, err.Error(), "asked", "the agent searches titles, the store does not")
		}
	})
}

// hanging never answers.
type hanging struct{ store.Memory }

func (h *hanging) Load(ctx context.Context, _ session.StoreKey) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		<-ctx.Done()
		yield(nil, ctx.Err())
	}
}

// Entries that would lead out of the directory are left out.
func TestSubagentsComeBack(t *testing.T) {
	t.Parallel()
	d, s := newDesk(t, t.TempDir()), &strange{}
	c, err := d.open(sdk.Options{SessionStore: s})
	require.NoError(t, err)
	d.ask(c, "one")
	id := c.SessionID()
	require.NoError(t, c.Close(t.Context()))
	sub := keyOf(d.cwd, id)
	sub.Subpath = "subagents/agent-a"
	require.NoError(t, s.Append(t.Context(), sub, []json.RawMessage{
		[]byte(`{"type":"agent_metadata","agentType":"Explore"}`), []byte(`{"type":"user","uuid":"u"}`),
		[]byte(`{"type":"agent_metadata","agentType":"Explore","finished":true}`),
	}))
	c, err = d.open(sdk.Options{SessionStore: s, Resume: id})
	require.NoError(t, err)
	found, err := filepath.Glob(filepath.Join(d.temp, "*", "config-*", "projects", "*", id, "subagents", "*"))
	require.NoError(t, err)
	require.Len(t, found, 2)
	require.NoError(t, c.Close(t.Context()))
}

// strange names subpaths that nobody should use.
type strange struct{ store.Memory }

func (s *strange) Subpaths(ctx context.Context, project, id string) ([]string, error) {
	all, err := s.Memory.Subpaths(ctx, project, id)
	return append(all, "", "../../../x", "/etc/passwd", "a/../../b"), err
}

func TestStoreOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		o    sdk.Options
		want string
	}{
		"nothing is stored": {sdk.Options{SessionStore: &store.Memory{}, PersistSession: session.Some(false)}, "PersistSession"},
		"no store":          {sdk.Options{SessionStoreOptions: session.StoreOptions{Load: 1}}, "SessionStoreOptions"},
		"a flush":           {sdk.Options{SessionStore: &store.Memory{}, SessionStoreOptions: session.StoreOptions{Flush: "often"}}, "SessionStoreOptions.Flush"},
		"a short lease":     {sdk.Options{SessionStore: &store.Memory{}, SessionStoreOptions: session.StoreOptions{Lease: time.Millisecond}}, "SessionStoreOptions.Lease"},
		"a negative limit":  {sdk.Options{SessionStore: &store.Memory{}, SessionStoreOptions: session.StoreOptions{Waiting: -1}}, "SessionStoreOptions.Waiting"},
		"checkpoints":       {sdk.Options{SessionStore: &store.Memory{}, EnableFileCheckpointing: session.Some(true)}, "EnableFileCheckpointing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newDesk(t, t.TempDir()).open(c.o)
			bad, ok := errors.AsType[*sdk.ConfigError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, c.want, bad.Option)
		})
	}
}

// leased is a store that knows who runs a session.
type leased struct {
	store.Memory
	holder   atomic.Pointer[session.LeaseHolder] // nil without a holder
	got      atomic.Int32
	released atomic.Int32
}

func (l *leased) Acquire(_ context.Context, id string) (release func(), err error) {
	if holder := l.holder.Load(); holder != nil {
		return nil, &session.LeaseError{SessionID: id, Holder: *holder}
	}
	l.got.Add(1)
	return func() { l.released.Add(1) }, nil
}

// A store that has leases keeps a second host out.
func TestAStoreWithLeases(t *testing.T) {
	t.Parallel()
	d, s := newDesk(t, t.TempDir()), &leased{}
	c, err := d.open(sdk.Options{SessionStore: s})
	require.NoError(t, err)
	d.ask(c, "one")
	id := c.SessionID()
	require.Empty(t, c.Warnings())
	require.NoError(t, c.Close(t.Context()))
	require.Positive(t, s.got.Load())
	require.Equal(t, s.got.Load(), s.released.Load())

	s.holder.Store(&session.LeaseHolder{Host: "build7", PID: 4711})
	_, err = d.open(sdk.Options{SessionStore: s, Resume: id})
	held, ok := errors.AsType[*session.LeaseError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, *s.holder.Load(), held.Holder)
}

// Two hosts want one session: the second one is told who has it. The lease is that of the
// first until it ends, also without a process.
func TestTwoHostsAndOneStore(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]session.Store{"memory": &store.Memory{}, "directory": store.NewDir(t.TempDir())} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cwd := t.TempDir()
			first, second := newDesk(t, cwd), newDesk(t, cwd)
			id := "0b7de7f0-3c1c-4f5b-9d0e-1d7c3f0a00" + map[string]string{"memory": "aa", "directory": "bb"}[name]
			c, err := first.open(sdk.Options{SessionStore: s, SessionID: id})
			require.NoError(t, err)
			require.Empty(t, c.Warnings())
			first.ask(c, "one")
			require.NoError(t, c.Mirrored(t.Context()))
			refused := func() {
				for _, o := range []sdk.Options{{Resume: id}, {Resume: strings.ToUpper(id)}, {SessionID: id}, {Continue: true}} {
					o.SessionStore = s
					_, err = second.open(o)
					held, ok := errors.AsType[*session.LeaseError](err)
					require.True(t, ok, "%+v: %v", o, err)
					require.Equal(t, os.Getpid(), held.Holder.PID)
					require.NotEmpty(t, held.Holder.Host)
					require.False(t, held.Lost)
				}
			}
			refused()
			require.NoError(t, c.Passivate(t.Context()))
			refused()
			require.Equal(t, "one | two", first.ask(c, "two"))
			require.NoError(t, c.Mirrored(t.Context()))

			fork, err := second.open(sdk.Options{SessionStore: s, Resume: id, ForkSession: true})
			require.NoError(t, err, "a fork only reads")
			require.Equal(t, "one | two | apart", second.ask(fork, "apart"))
			require.NoError(t, fork.Close(t.Context()))

			require.NoError(t, c.Close(t.Context()))
			c, err = second.open(sdk.Options{SessionStore: s, Resume: id})
			require.NoError(t, err)
			require.Equal(t, "one | two | three", second.ask(c, "three"))
			require.NoError(t, c.Close(t.Context()))
		})
	}
}

// A host that has lost the session to another one ends it, and writes nothing any more.
func TestALostLease(t *testing.T) {
	t.Parallel()
	var late atomic.Int64
	s := &store.Memory{Now: func() time.Time { return time.Now().Add(time.Duration(late.Load())) }}
	d := newDesk(t, t.TempDir())
	c, err := d.open(sdk.Options{SessionStore: s, SessionID: "0b7de7f0-3c1c-4f5b-9d0e-1d7c3f0a00cc", // its lease comes before its process
		SessionStoreOptions: session.StoreOptions{Lease: time.Hour}}) // and is not renewed while the test runs
	require.NoError(t, err)
	d.ask(c, "one")
	require.NoError(t, c.Mirrored(t.Context()))
	key := keyOf(d.cwd, c.SessionID())
	late.Store(int64(2 * time.Hour)) // the host slept
	other := session.LeaseHolder{Host: "build7", PID: 4711}
	_, err = s.AcquireLease(t.Context(), session.LeaseRequest{Session: key.Session, Holder: other, TTL: time.Hour})
	require.NoError(t, err)
	had := len(types(t, s, key))
	turn, err := c.Send(t.Context(), sdk.UserText("two"))
	if err == nil {
		_, _ = turn.Result(t.Context()) // its entries find out
	}
	<-c.Done()
	lost, ok := errors.AsType[*session.LeaseError](c.Err())
	require.True(t, ok, "%v", c.Err())
	require.True(t, lost.Lost)
	require.Equal(t, other, lost.Holder)
	require.ErrorContains(t, c.Err(), "the lease of session "+key.Session+" was lost to process 4711 on build7")
	require.Len(t, types(t, s, key), had)
}

// The lease of a program of this machine that has died is nobody's.
func TestALeaseOfADeadProgram(t *testing.T) {
	t.Parallel()
	d, s := newDesk(t, t.TempDir()), &store.Memory{}
	c, err := d.open(sdk.Options{SessionStore: s})
	require.NoError(t, err)
	d.ask(c, "one")
	id := c.SessionID()
	require.NoError(t, c.Close(t.Context()))

	dead := exec.Command(os.Args[0], "-test.run=^$")
	require.NoError(t, dead.Run())
	holder := session.LeaseHolder{PID: dead.Process.Pid}
	holder.Host, err = os.Hostname()
	require.NoError(t, err)
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	for _, h := range []struct {
		host, boot string
		free       bool
	}{
		{holder.Host, "", false},
		{"elsewhere", strings.TrimSpace(string(boot)), false},
		{holder.Host, strings.TrimSpace(string(boot)), len(boot) > 0},
	} {
		holder.Host, holder.Boot = h.host, h.boot
		l, err := s.AcquireLease(t.Context(), session.LeaseRequest{Session: id, Holder: holder, TTL: time.Hour})
		require.NoError(t, err)
		c, err := d.open(sdk.Options{SessionStore: s, Resume: id})
		if !h.free {
			taken, ok := errors.AsType[*session.LeaseError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, holder, taken.Holder)
			require.NoError(t, s.ReleaseLease(t.Context(), l))
			continue
		}
		require.NoError(t, err)
		require.NoError(t, c.Close(t.Context()))
	}
}

// leaseless is a store whose leases do not work at present.
type leaseless struct{ store.Memory }

func (*leaseless) AcquireLease(context.Context, session.LeaseRequest) (session.Lease, error) {
	return session.Lease{}, fmt.Errorf("locks: %w", errors.ErrUnsupported)
}

func TestAStoreThatCannotLease(t *testing.T) {
	t.Parallel()
	d, s := newDesk(t, t.TempDir()), &leaseless{}
	c, err := d.open(sdk.Options{SessionStore: s})
	require.NoError(t, err)
	d.ask(c, "one")
	require.NoError(t, c.Close(t.Context()))
	require.Len(t, types(t, s, keyOf(d.cwd, c.SessionID())), 2)
	var warned []string
	for _, w := range mirrorEvents[*session.WarningIssued](d, 1) {
		warned = append(warned, w.Problem)
	}
	require.Len(t, warned, 1, "once")
	require.Contains(t, warned[0], "SessionStore gives out no lease (locks: unsupported operation)")
}
