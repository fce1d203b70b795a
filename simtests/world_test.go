package simtests_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// world is one simulated run: a runtime on the seeded scheduler, one agent,
// and a record of what both sides saw.
type world struct {
	seed     uint64
	sched    *sim.Scheduler
	rt       *runtime.Runtime
	trace    bytes.Buffer
	handled  []string // every message of every actor, in order
	crashes  []kernel.Crash
	wrote    []string // content lines the agent wrote
	read     []string // content lines the user saw
	effects  []string // side effects of tools
	allowed  int      // allows that the user's gates gave
	turnErrs []error
}

// chaos decides, for the n-th message of the run, whether to kill its actor.
type chaos func(n int, actor string, at kernel.Moment) bool

func newWorld(t *testing.T, seed uint64, kill chaos) *world {
	t.Helper()
	w := &world{seed: seed, sched: sim.New(seed)}
	cfg := w.sched.Config()
	cfg.OnCrash = func(c kernel.Crash) {
		w.crashes = append(w.crashes, c)
		w.note("crash %s: %v", c.Actor, c.Reason)
	}
	cfg.Chaos = func(actor string, m any, at kernel.Moment) bool {
		if at == kernel.BeforeMessage {
			w.handled = append(w.handled, actor+" "+fmt.Sprintf("%T", m))
			w.note("%s %T", actor, m)
		}
		return kill != nil && kill(len(w.handled)-1, actor, at)
	}
	rt, err := runtime.NewOn(runtime.Config{}, cfg)
	require.NoError(t, err)
	w.rt = rt
	return w
}

func (w *world) note(format string, args ...any) {
	fmt.Fprintf(&w.trace, "%d ", w.sched.Now().UnixNano())
	fmt.Fprintf(&w.trace, format+"\n", args...)
}

func (w *world) hash() string {
	sum := sha256.Sum256(w.trace.Bytes())
	return hex.EncodeToString(sum[:])
}

// agent records what a scripted agent writes.
func (w *world) agent(s *scripted.Script) agent.Program {
	return recorder{scripted.New(scripted.WithScript(s), scripted.WithEffect(func(_, line string) error {
		w.effects = append(w.effects, line)
		w.note("effect %s", line)
		return nil
	})), w}
}

type recorder struct {
	*scripted.Agent
	w *world
}

func (r recorder) Serve(l agent.Launch, p agent.Port) agent.Exit {
	return r.Agent.Serve(l, &recordingPort{Port: p, w: r.w})
}

type recordingPort struct {
	agent.Port
	w    *world
	rest []byte
}

func (p *recordingPort) Write(b []byte) error {
	if err := p.Port.Write(b); err != nil {
		return err
	}
	p.rest = append(p.rest, b...)
	for {
		i := bytes.IndexByte(p.rest, '\n')
		if i < 0 {
			return nil
		}
		line := string(p.rest[:i])
		p.rest = p.rest[i+1:]
		p.w.note("agent %s", line)
		if f, err := protocol.ParseFrame([]byte(line)); err == nil && !strings.HasPrefix(f.Type, "control_") {
			p.w.wrote = append(p.w.wrote, line)
		}
	}
}

// spec is a session with a permission gate and a hook that allow.
func (w *world) spec(s *scripted.Script) runtime.Spec {
	return runtime.Spec{
		MCPServers: []runtime.MCPServer{echoServer{}},
		ID:         "s", Dialect: claude.New(), Program: w.agent(s),
		CanUseTool: func(_ context.Context, r *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
			w.allowed++
			w.note("allow %s", r.ToolName)
			return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, nil
		},
		Hooks: []runtime.Hook{{
			Event: protocol.HookPreToolUse, Func: func(context.Context, *session.HookCall) (json.RawMessage, error) {
				w.note("hook")
				return nil, nil
			},
		}},
	}
}

// play runs prompts through one session and closes it. It returns the error of
// the opening, if that failed.
func (w *world) play(ctx context.Context, spec runtime.Spec, prompts ...string) error {
	s, err := w.rt.Open(ctx, spec)
	if err != nil {
		return err
	}
	r, err := s.Read()
	if err != nil {
		return err
	}
	read := kernel.NewPromise[error]()
	w.sched.Go(func() { read.Resolve(w.readAll(ctx, r)) })
	for _, prompt := range prompts {
		turn, err := s.Send(ctx, &protocol.UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.StringContent(prompt)}})
		if err == nil {
			_, err = turn.Result(ctx)
		}
		if err != nil {
			w.turnErrs = append(w.turnErrs, err)
			break
		}
	}
	if err := s.AwaitIdle(ctx); err != nil {
		return err
	}
	closed := kernel.NewPromise[error]()
	w.sched.Go(func() { closed.Resolve(s.Close(ctx)) })
	if err, _ := read.Wait(ctx, w.sched); !errors.Is(err, io.EOF) {
		w.turnErrs = append(w.turnErrs, err)
	}
	closeErr, err := closed.Wait(ctx, w.sched)
	if err != nil {
		return err
	}
	return closeErr
}

// readAll reads to the end of the session, which it returns.
func (w *world) readAll(ctx context.Context, r *runtime.Reader) error {
	defer r.Close()
	for {
		m, err := r.Next(ctx)
		if err != nil {
			return err
		}
		w.read = append(w.read, string(m.Raw()))
		w.note("user %s", m.Raw())
	}
}

// finish shuts the runtime down and checks that nothing is left.
func (w *world) finish(t *testing.T) {
	t.Helper()
	require.NoError(t, w.rt.Shutdown(context.Background()), "seed %d", w.seed)
	at := w.sched.Now()
	require.NoError(t, w.sched.Run(1_000_000), "seed %d", w.seed)
	require.Equal(t, at, w.sched.Now(), "seed %d: a timer outlives the runtime", w.seed)
	require.Zero(t, w.sched.Parked(), "seed %d: tasks left waiting", w.seed)
	w.sched.Close()
}

// checkMessages is the invariant ordered-lossless: what the user saw is what
// the agent wrote, in that order, none twice and none missing.
func (w *world) checkMessages(t *testing.T, where string) {
	t.Helper()
	require.Equal(t, w.wrote, w.read, "%s: ordered-lossless", where)
}

// checkGates is the invariant fail-closed: no tool ran without an allow.
func (w *world) checkGates(t *testing.T, where string) {
	t.Helper()
	require.LessOrEqual(t, len(w.effects), w.allowed, "%s: fail-closed", where)
}

// seeds is how many seeds a simulation runs: few by default, half of them under
// the race detector, and one for each cost when the environment asks for many.
func seeds(t *testing.T, few, cost uint64) uint64 {
	t.Helper()
	v := os.Getenv("TROUPE_SEEDS")
	if v == "" && raced() {
		return max(1, few/2)
	}
	if v == "" {
		return few
	}
	n, err := strconv.ParseUint(v, 10, 64)
	require.NoError(t, err, "TROUPE_SEEDS")
	return max(few, n/cost)
}

// echoServer is an in-process MCP server with one tool.
type echoServer struct{}

func (echoServer) Name() string { return "tools" }

func (echoServer) Manifest() (initialize, toolsList json.RawMessage, err error) {
	return json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"tools","version":"1"}}`),
		json.RawMessage(`{"tools":[{"name":"echo","description":"says it back","inputSchema":{"type":"object"}}]}`), nil
}

func (echoServer) Timeout(string) time.Duration { return 0 }

func (echoServer) Handle(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
	if method != "tools/call" {
		return json.RawMessage("{}"), nil
	}
	return json.RawMessage(`{"content":[{"type":"text","text":"hey"}]}`), nil
}
