//go:build linux

// Linux: agents are shell scripts, and errors are those of its kernel.

package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/internal/osproc"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// badStart is a way to start an agent that cannot work.
type badStart struct {
	spoil func(t *testing.T, o *session.Options)
	is    error    // what the error is
	says  []string // what its text names
}

// file makes a file in a directory of the test.
func file(t *testing.T, mode fs.FileMode, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	require.NoError(t, os.Chmod(path, mode))
	return path
}

func badStarts() map[string]badStart {
	program := func(mode fs.FileMode, content string) func(*testing.T, *session.Options) {
		return func(t *testing.T, o *session.Options) {
			t.Helper()
			o.PathToExecutable = file(t, mode, content)
		}
	}
	env := func(kv ...string) func(*testing.T, *session.Options) {
		return func(_ *testing.T, o *session.Options) {
			o.PathToExecutable = ""
			for i := 0; i < len(kv); i += 2 {
				o.Env[kv[i]] = kv[i+1]
			}
		}
	}
	return map[string]badStart{
		"missing binary": {func(_ *testing.T, o *session.Options) {
			o.PathToExecutable = "/nowhere/at/all/agent"
		}, fs.ErrNotExist, []string{"/nowhere/at/all/agent", "install it, or give its path"}},
		"missing name": {env("PATH", "/nowhere:/nowhere/else"), fs.ErrNotExist,
			[]string{"claude", "/nowhere/else", "install it, or give its path"}},
		"empty PATH":    {env("PATH", ""), osproc.ErrEmptyPath, []string{"claude", "set PATH"}},
		"relative PATH": {env("PATH", "bin:."), osproc.ErrEmptyPath, []string{"claude", "set PATH"}},
		"no PATH": {func(_ *testing.T, o *session.Options) {
			o.PathToExecutable, o.UnsetEnv = "", []string{"PATH"}
		}, osproc.ErrEmptyPath, []string{"claude", "set PATH"}},
		"empty environment": {func(_ *testing.T, o *session.Options) {
			o.PathToExecutable, o.CleanEnv = "", true
		}, osproc.ErrEmptyPath, []string{"claude", "set PATH"}},
		"not executable":      {program(0o600, "#!/bin/sh\n"), fs.ErrPermission, []string{"make it executable"}},
		"a directory":         {func(t *testing.T, o *session.Options) { o.PathToExecutable = t.TempDir() }, syscall.EISDIR, nil},
		"not a program":       {program(0o700, "just words"), syscall.ENOEXEC, []string{"not a program of this system"}},
		"missing interpreter": {program(0o700, "#!/nowhere/sh\n"), fs.ErrNotExist, []string{"interpreter"}},
		"missing directory": {func(_ *testing.T, o *session.Options) {
			o.Cwd = "/nowhere/at/all"
		}, fs.ErrNotExist, []string{"/nowhere/at/all", "must be an existing directory"}},
		"file as directory": {func(t *testing.T, o *session.Options) {
			o.Cwd = file(t, 0o600, "")
		}, syscall.ENOTDIR, []string{"must be an existing directory"}},
		"environment too large": {func(_ *testing.T, o *session.Options) {
			for i := range 40 {
				o.Env[fmt.Sprintf("LARGE%d", i)] = strings.Repeat("x", 100<<10)
			}
		}, syscall.E2BIG, []string{"pass long values by file"}},
	}
}

func TestEdgeStartCannotWork(t *testing.T) {
	r := newRig(t)
	type start struct {
		badStart
		spec runtime.Spec
	}
	cases := make(map[string]start)
	for name, c := range badStarts() { // before anything forks: a child would hold the programs open for writing
		spec := r.spec(t, hello)
		c.spoil(t, &spec.Options)
		spec.Options.Env["SECRET"] = "hunter2"
		spec.Options.Limits.Initialize = 10 * time.Minute // nothing is waited for
		cases[name] = start{c, spec}
	}
	together(t, cases, func(t *testing.T, c start) {
		s, err := r.rt.Open(limit(t), c.spec)
		require.Nil(t, s)
		var start *session.StartError
		require.ErrorAs(t, err, &start)
		require.ErrorIs(t, err, c.is)
		for _, text := range c.says {
			assert.ErrorContains(t, err, text)
		}
		assert.NotContains(t, err.Error(), "hunter2")
	})
	assert.Empty(t, r.rt.Sessions())
}

// TestEdgeThousandFailingStarts fails in every way at once, a thousand times,
// while good sessions start among them.
func TestEdgeThousandFailingStarts(t *testing.T) {
	r := newRig(t)
	ctx := limit(t)
	var specs []runtime.Spec
	for _, c := range badStarts() {
		if errors.Is(c.is, syscall.E2BIG) {
			continue // a thousand large environments prove nothing more
		}
		spec := r.spec(t, hello)
		spec.Dialect = qoder.New() // whose login goes by file
		spec.Options.Auth = &session.Auth{Type: session.AuthAccessToken, AccessToken: "hunter2"}
		c.spoil(t, &spec.Options)
		specs = append(specs, spec)
	}
	const good = 4
	failing := 1000
	if testing.Short() {
		failing = 400 // more than the bound on threads
	}
	before := threads(t)
	var wg sync.WaitGroup
	errs := make([]error, failing)
	for i := range failing {
		wg.Go(func() { _, errs[i] = r.rt.Open(ctx, specs[i%len(specs)]) })
	}
	for range good {
		spec := r.spec(t, hello)
		wg.Go(func() {
			s, err := r.rt.Open(ctx, spec)
			if assert.NoError(t, err) {
				assert.NoError(t, s.Close(ctx))
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.ErrorAs(t, err, new(*session.StartError))
	}
	// Some come with a busy machine, whose threads sit in the kernel; never one for each start.
	assert.Less(t, threads(t)-before, 250, "a failing start costs no thread")
	assert.Empty(t, r.rt.Sessions())
	assert.Empty(t, entries(t, r.temp), "the logins are gone with the failure")
}

// initFault is something that goes wrong before the session is ready.
type initFault struct {
	misbehave string
	limit     time.Duration // for initialize
	check     func(t *testing.T, s *runtime.Session, err error)
}

func TestEdgeInitialize(t *testing.T) {
	r := newRig(t)
	refused := func(t *testing.T, _ *runtime.Session, err error) {
		t.Helper()
		var refusal *session.ControlError
		require.ErrorAs(t, err, &refusal)
		assert.Equal(t, "nope", refusal.Code)
		assert.ErrorContains(t, err, "not today")
	}
	never := func(t *testing.T, _ *runtime.Session, err error) {
		t.Helper()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "initialize: no answer within")
		assert.ErrorContains(t, err, "Limits.Initialize")
	}
	works := func(t *testing.T, s *runtime.Session, err error) {
		t.Helper()
		require.NoError(t, err)
		turn, err := s.Send(t.Context(), userText("hi"))
		require.NoError(t, err)
		result, err := turn.Result(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "hello", result.Result)
	}
	exits := func(code int, signal string) func(*testing.T, *runtime.Session, error) {
		return func(t *testing.T, _ *runtime.Session, err error) {
			t.Helper()
			var exit *session.ExitError
			require.ErrorAs(t, err, &exit)
			assert.Equal(t, session.ExitStatus{Code: code, Signal: signal}, exit.Status)
			assert.Equal(t, "initialize", exit.During)
		}
	}
	stubborn := ", ignore_eof: true, trap_term: true"
	together(t, map[string]initFault{
		"refused":                     {"initialize: {mode: refuse, error: not today, code: nope}", 0, refused},
		"refused by one that stays":   {"initialize: {mode: refuse, error: not today, code: nope}" + stubborn, 0, refused},
		"refused late":                {"initialize: {mode: refuse, error: not today, code: nope, delay: 200ms}", 0, refused},
		"never answered":              {"initialize: {mode: never}", 200 * time.Millisecond, never},
		"never, by one that stays":    {"initialize: {mode: never}" + stubborn, 200 * time.Millisecond, never},
		"never read":                  {"never_read: true", 200 * time.Millisecond, never},
		"answered late":               {"initialize: {delay: 300ms}", 0, works},
		"answered too late":           {"initialize: {delay: 2s}", 100 * time.Millisecond, never},
		"answered twice":              {"initialize: {mode: twice}", 0, works},
		"answered twice, late":        {"initialize: {mode: twice, delay: 200ms}", 0, works},
		"answered with nothing":       {"initialize: {mode: empty}", 0, works},
		"exit 0 before the answer":    {"die: {at: before-init-response}", 0, exits(0, "")},
		"exit 3 before the answer":    {"die: {at: before-init-response, code: 3}", 0, exits(3, "")},
		"killed before the answer":    {"die: {at: before-init-response, signal: KILL}", 0, exits(-1, "SIGKILL")},
		"refused, with grandchildren": {"initialize: {mode: refuse, error: not today, code: nope}, children: [{token: TOKEN, session: true, hold_stdout: true, trap_term: true}]", 0, refused},
		"never, with grandchildren":   {"initialize: {mode: never}, children: [{token: TOKEN, reparent: true, session: true}]", 200 * time.Millisecond, never},
	}, func(t *testing.T, c initFault) {
		spec := r.spec(t, hello+"misbehave: {"+c.misbehave+"}")
		spec.Options.Limits.Initialize = c.limit
		s, err := r.rt.Open(limit(t), spec)
		c.check(t, s, err)
		if s != nil {
			require.NoError(t, s.Close(limit(t)))
		}
		assert.Empty(t, withToken(t, tokenOf(spec)), "no-orphans")
	})
}

// TestEdgeExitBeforeInitialize is an agent that ends, or is not one, before it
// has read a line.
func TestEdgeExitBeforeInitialize(t *testing.T) {
	r := newRig(t)
	type program struct {
		script string
		status session.ExitStatus
		says   string
		spec   runtime.Spec
	}
	cases := map[string]program{
		"silent":             {script: "exit 0"},
		"complains":          {script: "echo 'no such model' >&2; exit 1", status: session.ExitStatus{Code: 1}, says: "no such model"},
		"complains on wrong": {script: "echo 'Usage: agent'; exit 2", status: session.ExitStatus{Code: 2}, says: "Usage: agent"},
		"killed":             {script: "kill -KILL $$", status: session.ExitStatus{Code: -1, Signal: "SIGKILL"}},
		"closes stdin":       {script: "exec 0<&-; read -r x; exit 7", status: session.ExitStatus{Code: 7}},
	}
	for name, c := range cases { // before anything forks
		c.spec = r.spec(t, hello)
		c.spec.Options.Graces.EOF, c.spec.Options.Graces.Output = patience, patience // it ends by itself
		c.spec.Options.PathToExecutable = file(t, 0o700, "#!/bin/sh\n"+c.script+"\n")
		cases[name] = c
	}
	together(t, cases, func(t *testing.T, c program) {
		_, err := r.rt.Open(limit(t), c.spec)
		var exit *session.ExitError
		require.ErrorAs(t, err, &exit)
		assert.Equal(t, c.status, exit.Status)
		assert.Equal(t, "initialize", exit.During)
		assert.ErrorContains(t, err, c.says)
	})
}

// TestEdgeOpenGivenUp ends the caller's context at some moment of the start.
func TestEdgeOpenGivenUp(t *testing.T) {
	r := newRig(t)
	cases := make(map[string]time.Duration)
	for ms := range 12 {
		cases[fmt.Sprint(5*ms, " ms")] = time.Duration(5*ms) * time.Millisecond
	}
	together(t, cases, func(t *testing.T, d time.Duration) {
		ctx, cancel := context.WithTimeout(limit(t), d)
		defer cancel()
		spec := r.spec(t, hello+"misbehave: {initialize: {mode: never}, ignore_eof: true, trap_term: true, children: [{token: TOKEN, session: true}]}")
		s, err := r.rt.Open(ctx, spec)
		require.Nil(t, s)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Empty(t, withToken(t, tokenOf(spec)), "no-orphans")
	})
	assert.Empty(t, r.rt.Sessions())
}

// TestEdgeInitializeLimitByTheClock has an agent that never answers, and every
// default in force: the error comes at 120 s, the process is gone by the end
// of the ladder.
func TestEdgeInitializeLimitByTheClock(t *testing.T) {
	t.Parallel()
	for seed := range sim.Seeds(t, 10, 10) {
		w := newWorld(t, seed)
		began := w.Sched.Now()
		_, err := w.Open(context.Background(), w.Gated(&scripted.Script{
			Misbehave: scripted.Misbehaviour{Initialize: scripted.InitializeFault{Mode: "never"}, IgnoreEOF: true, TrapTerm: true},
		}))
		var over *session.TimeoutError
		require.ErrorAs(t, err, &over)
		require.Equal(t, 120*time.Second, over.Limit)
		require.Equal(t, 120*time.Second+7*time.Second, w.Sched.Now().Sub(began), "seed %d: 2 s after EOF and 5 s after SIGTERM", seed)
		w.Finish()
	}
}

// TestEdgeInitializeByTheClock answers initialize at and around its limit, once or
// twice, well or badly, and closes. The first event counts.
func TestEdgeInitializeByTheClock(t *testing.T) {
	t.Parallel()
	for seed := range sim.Seeds(t, 3, 40) {
		for _, mode := range []string{"", "twice", "refuse", "empty"} {
			for _, delay := range []time.Duration{0, 119 * time.Second, 120 * time.Second, 121 * time.Second, 123 * time.Second} {
				where := fmt.Sprintf("seed %d, mode %q, after %v", seed, mode, delay)
				w := newWorld(t, seed)
				spec := w.Gated(&scripted.Script{
					Turns: []scripted.Turn{{Steps: scripted.Steps{scripted.Text("hello")}}},
					Misbehave: scripted.Misbehaviour{
						Initialize: scripted.InitializeFault{Mode: mode, Delay: delay}, ExitDelay: time.Second,
					},
				})
				unexpected := 0
				spec.Options.OnEvent = func(r session.EventRecord) {
					if _, ok := r.Event.(*session.UnexpectedFrame); ok {
						unexpected++
					}
				}
				err := w.Play(context.Background(), spec, "hi")
				w.Finish()
				switch {
				case delay > 120*time.Second || delay == 120*time.Second && errors.Is(err, context.DeadlineExceeded):
					require.ErrorIs(t, err, context.DeadlineExceeded, where)
				case mode == "refuse":
					require.ErrorAs(t, err, new(*session.ControlError), where)
				case mode == "empty": // an agent that has not taken the hooks does not call them
					require.NoError(t, err, where)
					require.NotEmpty(t, w.TurnErrors(), where)
					require.ErrorAs(t, w.TurnErrors()[0], new(*session.GatesOffError), where)
				default:
					require.NoError(t, err, where)
					require.Empty(t, w.TurnErrors(), where)
					w.Lossless(where)
					if mode == "twice" {
						require.Equal(t, 1, unexpected, "%s: the second answer is for nobody", where)
					}
				}
			}
		}
	}
}

func qoderSpec(t *testing.T, r *watched, script string) runtime.Spec {
	t.Helper()
	spec := r.spec(t, "dialect: qoder\n"+script)
	spec.Dialect = qoder.New()
	spec.Options.Auth = &session.Auth{Type: session.AuthAccessToken, AccessToken: "hunter2"}
	return spec
}

func TestEdgeProtocolVersion(t *testing.T) {
	r := newRig(t)
	turn := "turns: [{steps: [{tool_use: {name: Bash, gate: ask, takes: 10s}}, {text: hello}]}]\n"
	together(t, map[string]struct {
		version string
		fits    bool
	}{
		"same": {"1.4.0", true}, "newer minor": {"1.99.0", true}, "newer major": {"2.0.0", false},
		"older major": {"0.9.1", false}, "no number": {"latest", true}, "far future": {"10.0", false},
	}, func(t *testing.T, c struct {
		version string
		fits    bool
	}) {
		script := turn
		if c.fits {
			script = hello
		}
		spec := qoderSpec(t, r, script+"protocol_version: '"+c.version+"'\n")
		spec.Options.CanUseTool = allow
		ctx := limit(t)
		s, err := r.rt.Open(ctx, spec)
		if err == nil {
			var sent *runtime.Turn
			if sent, err = s.Send(ctx, userText("hi")); err == nil {
				_, err = sent.Result(ctx)
			}
		}
		if c.fits {
			require.NoError(t, err)
			require.NoError(t, s.Close(ctx))
			return
		}
		var wrong *session.ProtocolVersionError
		require.ErrorAs(t, err, &wrong)
		assert.Equal(t, &session.ProtocolVersionError{Backend: "qoder", Version: c.version, Major: "1"}, wrong)
		if s != nil {
			ended(ctx, t, s)
			assert.Equal(t, session.StateFailed, s.State())
			require.ErrorAs(t, s.Err(), &wrong)
		}
		assert.Empty(t, withToken(t, tokenOf(spec)), "no-orphans")
	})
}

// TestEdgeContradictingOptions: everything that is wrong is said at once, and
// nothing was started, nor a file written.
func TestEdgeContradictingOptions(t *testing.T) {
	r := newRig(t)
	contradiction := func(o *session.Options) {
		o.PermissionMode = "sometimes"
		o.PermissionPromptToolName = "mcp__ask__me"
		o.AllowedTools = []string{"Bash(ls", "Read"}
		o.TaskBudget = session.Some(0)
		o.ExtraArgs = map[string]session.Opt[string]{"output-format": session.Some("text"), "a b": {}}
		o.Continue, o.Resume = true, "4b7f9ee4-3f4c-4b6c-9d5c-0a1b2c3d4e5f"
	}
	common := []string{"PermissionMode", "PermissionPromptToolName", "AllowedTools", "TaskBudget", `ExtraArgs["output-format"]`, `ExtraArgs["a b"]`}
	t.Run("claude", func(t *testing.T) {
		spec := r.spec(t, hello)
		contradiction(&spec.Options)
		spec.Options.CanUseTool = allow
		spec.Options.SessionID = "mine"
		spec.Options.Auth = &session.Auth{Type: session.AuthAccessToken, AccessToken: "hunter2"}
		spec.Options.Proxy = "http://user:hunter2@proxy"
		spec.Options.Spawner = noSpawner{t}
		_, err := r.rt.Open(limit(t), spec)
		assert.Subset(t, options(err), append(common, "SessionID", "Auth", "Proxy"))
		for _, e := range session.ConfigErrors(err) {
			assert.Equal(t, "claude", e.Backend)
			assert.NotEmpty(t, e.Problem, e.Option)
		}
		assert.NotContains(t, err.Error(), "hunter2")
	})
	t.Run("qoder", func(t *testing.T) {
		spec := qoderSpec(t, r, hello)
		contradiction(&spec.Options)
		spec.Options.CanUseTool = allow
		spec.Options.Auth = nil
		spec.Options.Effort = "high"
		spec.Options.Sandbox = &session.Sandbox{}
		spec.Options.Title = "t"
		spec.Options.Spawner = noSpawner{t}
		_, err := r.rt.Open(limit(t), spec)
		assert.Subset(t, options(err), append(common, "Auth", "Effort", "Sandbox", "Title"))
	})
	assert.Empty(t, r.rt.Sessions())
	assert.Empty(t, entries(t, r.temp))
}

// noSpawner fails the test when anything is started.
type noSpawner struct{ t *testing.T }

func (n noSpawner) Spawn(context.Context, session.Command) (session.Process, error) {
	n.t.Error("something was started")
	return nil, errors.New("not to be started")
}

// TestEdgeProtocolVersionInSimulation is the wrong version under any order of
// events: the user learns why, at whichever call.
func TestEdgeProtocolVersionInSimulation(t *testing.T) {
	t.Parallel()
	for seed := range sim.Seeds(t, 20, 10) {
		w := newWorld(t, seed)
		spec := w.Gated(&scripted.Script{Dialect: agent.Qoder, ProtocolVersion: "2.0.0"})
		spec.Dialect, spec.Options.Auth = qoder.New(), &session.Auth{Type: session.AuthQoderCLI}
		s, err := w.Open(context.Background(), spec)
		if err == nil {
			var turn *runtime.Turn
			if turn, err = s.Send(context.Background(), userText("hi")); err == nil {
				_, err = turn.Result(context.Background())
			}
		}
		require.ErrorAs(t, err, new(*session.ProtocolVersionError), "seed %d", seed)
		w.Finish()
	}
}

// TestEdgeOpenWaitsForItsOptions: what an option sends after initialize is part
// of the start, and a session whose agent refuses it is not opened.
func TestEdgeOpenWaitsForItsOptions(t *testing.T) {
	t.Parallel()
	for seed := range sim.Seeds(t, 20, 10) {
		for refuse := range 2 {
			w := newWorld(t, seed)
			script := &scripted.Script{Dialect: agent.Qoder}
			script.Misbehave.AnswerDelay = time.Second
			if refuse > 0 {
				script.Misbehave.Refuse = []string{"set_plan_mode"}
			}
			spec := w.Gated(script)
			spec.Dialect, spec.Options.Auth = qoder.New(), &session.Auth{Type: session.AuthQoderCLI}
			spec.Options.PlanMode = session.Some(true)
			began := w.Sched.Now()
			s, err := w.Open(context.Background(), spec)
			if refuse > 0 {
				var refusal *session.ControlError
				require.ErrorAs(t, err, &refusal, "seed %d", seed)
				require.Equal(t, "set_plan_mode", refusal.Request)
				require.Nil(t, s)
			} else {
				require.NoError(t, err, "seed %d", seed)
				require.GreaterOrEqual(t, w.Sched.Now().Sub(began), time.Second, "seed %d", seed)
			}
			w.Finish()
		}
	}
}
