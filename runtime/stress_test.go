package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	gort "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// The behaviour of a callback of the stress test. The agent chooses it, so that both
// sides know the expected outcome.
const (
	doesAllow  = "allow"  // it answers yes
	doesDeny   = "deny"   // it answers no
	doesFail   = "fail"   // it returns an error beside a yes
	doesPanic  = "panic"  // …
	doesGoexit = "goexit" // it ends its goroutine
	doesHang   = "hang"   // it waits until its context ends; the agent takes its request back
	doesDeaf   = "deaf"   // the same, but it does not heed its context, and says yes later
)

// plan is one request of the agent.
type plan struct {
	id, kind, does string
	delay          time.Duration
	cancel         bool
}

func (p *plan) input() string {
	return fmt.Sprintf(`{"does":%q,"delay":%d}`, p.does, p.delay)
}

// line is the request on the wire.
func (p *plan) line(n int) string {
	var request string
	switch p.kind {
	case "permission":
		request = fmt.Sprintf(`{"subtype":"can_use_tool","tool_name":"Bash","input":%s,"tool_use_id":"t%d"}`, p.input(), n)
	case "hook":
		request = fmt.Sprintf(`{"subtype":"hook_callback","callback_id":"hook_0","tool_use_id":"t%d","input":{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":%s}}`, n, p.input())
	case "watcher":
		request = fmt.Sprintf(`{"subtype":"hook_callback","callback_id":"hook_1","tool_use_id":"t%d","input":{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":%s}}`, n, p.input())
	default: // a tool
		request = fmt.Sprintf(`{"subtype":"mcp_message","server_name":"srv","message":{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"progressToken":%d}}}}`,
			n, p.kind, p.input(), n)
	}
	return fmt.Sprintf(`{"type":"control_request","request_id":%q,"request":%s}`, p.id, request)
}

// taken is how the agent takes the request back.
func (p *plan) taken(n int) string {
	if p.kind == "read" || p.kind == "write" {
		return fmt.Sprintf(`{"type":"control_request","request_id":"cancel-%s","request":{"subtype":"mcp_message","server_name":"srv","message":{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}}}`, p.id, n)
	}
	return fmt.Sprintf(`{"type":"control_cancel_request","request_id":%q}`, p.id)
}

// wrong says what is wrong with an answer. ended says that the turn had ended: what
// the agent took back in it may be denied then, since the session closes.
func (p *plan) wrong(answer string, ended bool) string {
	yes := map[string]string{
		"permission": `"behavior":"allow"`, "hook": `"permissionDecision":"allow"`, "watcher": `"additionalContext"`,
		"read": `"text":"did it"`, "write": `"text":"did it"`,
	}[p.kind]
	said := strings.Contains(answer, yes)
	if may := p.does == doesAllow || p.does == doesDeaf && p.kind != "hook"; said && !may {
		return "it says yes"
	}
	if p.does == doesAllow && !said && !(p.cancel && ended) {
		return "it does not say yes"
	}
	return ""
}

func plans(r *rand.Rand, n int) []*plan {
	kinds := []string{"permission", "hook", "watcher", "read", "write"}
	acts := []string{doesAllow, doesAllow, doesAllow, doesDeny, doesFail, doesPanic, doesGoexit, doesHang, doesDeaf}
	all := make([]*plan, n)
	for i := range all {
		p := &plan{id: fmt.Sprint("r", i), kind: kinds[r.IntN(len(kinds))], does: acts[r.IntN(len(acts))], delay: time.Duration(r.IntN(4)) * time.Millisecond}
		p.cancel = p.does == doesHang || p.does == doesDeaf || r.IntN(8) == 0
		all[i] = p
	}
	return all
}

// stressAgent asks everything at once, takes some of it back, and ends its turn
// when all the rest is answered.
type stressAgent struct {
	seed uint64
	n    int

	mu       sync.Mutex
	problems []string
	answered int
}

func (a *stressAgent) AgentName() string { return "stress" }

func (a *stressAgent) problem(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.problems = append(a.problems, fmt.Sprintf(format, args...))
}

// Serve implements [agent.Program].
func (a *stressAgent) Serve(_ agent.Launch, p agent.Port) agent.Exit {
	r := rand.New(rand.NewPCG(a.seed, 1))
	all := plans(r, a.n)
	byID := map[string]*plan{}
	answers := map[string]int{}
	waiting := 0
	ended := false // the turn
	say := func(lines ...string) { _ = p.Write([]byte(strings.Join(lines, "\n") + "\n")) }
	for {
		line, err := p.Next(-1)
		if err != nil {
			return agent.Exit{}
		}
		var f struct {
			Type      string
			RequestID string `json:"request_id"`
			Response  struct {
				RequestID string `json:"request_id"`
			}
		}
		if err := json.Unmarshal(line, &f); err != nil {
			a.problem("%v: %s", err, line)
		}
		switch f.Type {
		case "control_request": // initialize, progress, interrupt
			say(fmt.Sprintf(`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{}}}`, f.RequestID))
		case "user":
			lines := make([]string, 0, 2*a.n)
			var cancels []string
			for i, q := range all {
				byID[q.id] = q
				lines = append(lines, q.line(i))
				if q.cancel {
					cancels = append(cancels, q.taken(i))
					if q.kind == "read" || q.kind == "write" {
						byID["cancel-"+q.id] = &plan{id: "cancel-" + q.id, kind: "watcher", does: doesDeny}
						waiting++
					}
				} else {
					waiting++
				}
			}
			r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
			r.Shuffle(len(cancels), func(i, j int) { cancels[i], cancels[j] = cancels[j], cancels[i] })
			say(append(lines, cancels...)...)
		case "control_response":
			id := f.Response.RequestID
			q := byID[id]
			switch answers[id]++; {
			case q == nil:
				a.problem("an answer to %s, which was never asked", id)
			case answers[id] > 1:
				a.problem("%s was answered %d times", id, answers[id])
			case q.wrong(string(line), ended) != "":
				a.problem("%s %s: %s: %s", q.kind, q.does, q.wrong(string(line), ended), line)
			}
			if q != nil && !q.cancel && answers[id] == 1 {
				waiting--
				if waiting == 0 {
					a.mu.Lock()
					a.answered++
					a.mu.Unlock()
					ended = true
					say(`{"type":"result","subtype":"success","is_error":false,"duration_ms":1,"duration_api_ms":1,"num_turns":1,"result":"ok","stop_reason":"end_turn","session_id":"s","total_cost_usd":0,"usage":{},"modelUsage":{},"permission_denials":[],"uuid":"u"}`)
				}
			}
		}
	}
}

// act is what a callback does by the agent's wish.
type act struct {
	Does  string
	Delay time.Duration
}

var errStress = errors.New("a callback of the stress test")

// play acts, and reports whether the callback says yes.
func play(ctx context.Context, rt *runtime.Runtime, exit func(), input json.RawMessage) (bool, error) {
	var a act
	if err := json.Unmarshal(input, &a); err != nil {
		return false, err
	}
	pause := func(ctx context.Context) error {
		over := make(chan struct{})
		rt.Clock().AfterFunc(a.Delay, func() { close(over) })
		return rt.Executor().Await(ctx, over)
	}
	switch a.Does {
	case doesHang:
		return true, rt.Executor().Await(ctx, make(chan struct{}))
	case doesDeaf:
		_ = rt.Executor().Await(ctx, make(chan struct{}))
		return true, pause(context.Background())
	}
	if err := pause(ctx); err != nil {
		return false, err
	}
	switch a.Does {
	case doesFail:
		return true, errStress
	case doesPanic:
		panic(errStress)
	case doesGoexit:
		exit()
	}
	return a.Does == doesAllow, nil
}

// stressOptions have callbacks that obey the agent.
func stressOptions(t *testing.T, rt *runtime.Runtime, exit func()) *sdk.Options {
	t.Helper()
	tool := func(ctx context.Context, input json.RawMessage) (*sdk.ToolResult, error) {
		sdk.Progress(ctx, 1, 2, "")
		yes, err := play(ctx, rt, exit, input)
		if !yes {
			return sdk.ErrorText("no"), err
		}
		return sdk.Text("did it"), err
	}
	timely := sdk.Timeout(time.Hour) // all run at once, for longer than a hook has by itself
	schema := json.RawMessage(`{"type":"object"}`)
	srv, err := sdk.NewMCPServer("srv", "1",
		sdk.RawTool("read", "d", schema, tool, sdk.ReadOnly()), sdk.RawTool("write", "d", schema, tool, sdk.MaxConcurrent(1000)))
	require.NoError(t, err)
	return &sdk.Options{
		Runtime: rt, SDKMCPServers: []*sdk.MCPServer{srv},
		CanUseTool: func(ctx context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			yes, err := play(ctx, rt, exit, r.Input)
			if !yes {
				return sdk.Deny("no"), err
			}
			return sdk.Allow(), err
		},
		Hooks: []sdk.Hook{
			sdk.OnPreToolUse(func(ctx context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
				yes, err := play(ctx, rt, exit, in.ToolInput)
				if !yes {
					return sdk.DenyPreToolUse("no"), err
				}
				return sdk.PreToolUseOutput{PermissionDecision: protocol.HookAllow}, err
			}, timely),
			sdk.OnPostToolUse(func(ctx context.Context, in *sdk.PostToolUseInput) (sdk.PostToolUseOutput, error) {
				yes, err := play(ctx, rt, exit, in.ToolInput)
				if !yes {
					return sdk.PostToolUseOutput{}, err
				}
				return sdk.PostToolUseOutput{AdditionalContext: "yes"}, err
			}, timely),
		},
	}
}

// stress runs sessions at the same time, each with so many callbacks at once.
// exit ends the task of a callback.
func stress(t *testing.T, rt *runtime.Runtime, exit func(), seed uint64, sessions, callbacks int) {
	t.Helper()
	o := stressOptions(t, rt, exit)
	var mu sync.Mutex
	left, done := sessions, make(chan struct{})
	var errs []error
	agents := make([]*stressAgent, sessions)
	for i := range agents {
		agents[i] = &stressAgent{seed: seed*1000 + uint64(i), n: callbacks}
		rt.Executor().Go(func() {
			own := *o
			own.Backend = agents[i]
			_, err := sdk.Run(context.Background(), "go", &own)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
			}
			if left--; left == 0 {
				close(done)
			}
		})
	}
	require.NoError(t, rt.Executor().Await(t.Context(), done), "seed %d", seed)
	require.NoError(t, errors.Join(errs...), "seed %d", seed)
	for i, a := range agents {
		a.mu.Lock() // one that was killed may still be at it
		defer a.mu.Unlock()
		assert.Empty(t, a.problems, "seed %d, session %d", seed, i)
		assert.Equal(t, 1, a.answered, "seed %d, session %d: not all was answered", seed, i)
	}
	assert.Empty(t, rt.Sessions(), "seed %d: sessions left open", seed)
}

// noServerBreaker lets every call of a tool through: here tools fail all the time.
func noServerBreaker() runtime.Breakers {
	return runtime.Breakers{MCPServer: runtime.BreakerPolicy{Failures: -1}}
}

// TestStressCallbacks: every request is answered once, no gate is opened by a
// callback that failed, and nothing is left.
func TestStressCallbacks(t *testing.T) {
	t.Parallel()
	t.Run("production", func(t *testing.T) {
		t.Parallel()
		rt, err := runtime.New(runtime.Config{Breakers: noServerBreaker()})
		require.NoError(t, err)
		sessions, callbacks := stressSessions, stressCallbacks
		if testing.Short() {
			sessions, callbacks = 40, 100
		}
		stress(t, rt, gort.Goexit, 1, sessions, callbacks)
		require.NoError(t, rt.Shutdown(context.Background()))
	})
	t.Run("simulation", func(t *testing.T) {
		t.Parallel()
		for seed := range sim.Seeds(t, 10, 50) {
			w := newWorldWith(t, seed, runtime.Config{Breakers: noServerBreaker()})
			stress(t, w.Runtime, func() { panic(errStress) }, seed, 4, 40) // the simulation's tasks cannot end their goroutine
			w.Quiet()
			w.Finish()
		}
	})
}
