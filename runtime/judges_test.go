package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// kind is the breaker of a kind; it is missing if it was not used.
func (w *rig) kind(kind session.BreakerKind) (all []runtime.Breaker) {
	for _, b := range w.Tree(context.Background()).Breakers {
		if b.Kind == kind {
			all = append(all, b)
		}
	}
	return all
}

// spawning starts the agents of a spec by a spawner, as those of another machine.
func (w *rig) spawning(script *scripted.Script, env map[string]string) runtime.Spec {
	spec := w.spec(script)
	spec.Options.Spawner = &transport.InMemory{Clock: w.Clock(), Exec: w.Executor(), Program: spec.Program}
	spec.Program, spec.Options.Env = nil, env
	return spec
}

// overloaded is the result of a turn that the model's API did not take.
func overloaded(status int) scripted.Turn {
	text, failed := fmt.Sprintf("API Error: %d", status), true
	return scripted.Turn{Steps: scripted.Steps{scripted.Text("no"), &scripted.Result{
		IsError: &failed, Text: &text, APIErrorStatus: status, TerminalReason: "api_error",
	}}}
}

// TestAProviderThatFails: results of all sessions open its breaker, which lets no agent
// start; running ones continue, and one good result closes it.
func TestAProviderThatFails(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	env := map[string]string{"ANTHROPIC_BASE_URL": "https://user:secret@models.example:8443/v1", "ANTHROPIC_API_KEY": "k"}
	script := &scripted.Script{Turns: []scripted.Turn{overloaded(529), overloaded(429), overloaded(503)}, Default: scripted.Steps{scripted.Delay(time.Second), scripted.Text("yes")}}
	a, b := w.open(w.spawning(script, env)), w.open(w.spawning(script, env))
	for _, s := range []*runtime.Session{a, a, b, b} {
		texts(t, w.send(s, "go"))
		assert.Equal(t, session.BreakerClosed, w.kind(session.BreakerProvider)[0].State)
	}
	texts(t, w.send(a, "go"))
	provider := w.kind(session.BreakerProvider)
	require.Len(t, provider, 1)
	assert.Equal(t, "claude at models.example", provider[0].Name)
	assert.Equal(t, session.BreakerOpen, provider[0].State)
	assert.Contains(t, provider[0].LastFailure, "status 503: API Error: 503")

	_, err := w.Open(context.Background(), w.spawning(script, env))
	var open *session.BreakerOpenError
	require.ErrorAs(t, err, &open)
	assert.Equal(t, session.BreakerProvider, open.Kind)
	assert.NotContains(t, err.Error(), "secret")
	texts(t, w.send(b, "go")) // the third of its turns fails, which says nothing new
	assert.Equal(t, session.BreakerOpen, w.kind(session.BreakerProvider)[0].State)
	env["ANTHROPIC_API_KEY"] = "another"
	require.NoError(t, w.open(w.spawning(script, env)).Close(t.Context()), "another account")
	env["ANTHROPIC_API_KEY"] = "k"
	texts(t, w.send(b, "go"))
	for _, provider := range w.kind(session.BreakerProvider) {
		assert.Equal(t, session.BreakerClosed, provider.State)
	}
	require.NoError(t, w.open(w.spawning(script, env)).Close(t.Context()))
}

// TestTheProbeOfAProvider is a session, whose first result decides; one without a
// result makes room for the next.
func TestTheProbeOfAProvider(t *testing.T) {
	t.Parallel()
	w := configured(t, runtime.Config{Breakers: runtime.Breakers{Provider: runtime.BreakerPolicy{Failures: 1, CoolDown: time.Minute, MaxCoolDown: time.Minute}}})
	env := map[string]string{"ANTHROPIC_API_KEY": "k"}
	bad := &scripted.Script{Turns: []scripted.Turn{overloaded(529)}, Default: scripted.Steps{scripted.Delay(time.Second), scripted.Text("yes")}}
	good := &scripted.Script{Default: scripted.Steps{scripted.Delay(time.Second), scripted.Text("yes")}}
	texts(t, w.send(w.open(w.spawning(bad, env)), "go"))
	w.Pass(time.Minute)
	probe := w.open(w.spawning(good, env))
	assert.Equal(t, session.BreakerHalfOpen, w.kind(session.BreakerProvider)[0].State)
	_, err := w.Open(context.Background(), w.spawning(good, env))
	require.ErrorAs(t, err, new(*session.BreakerOpenError))
	require.NoError(t, probe.Close(t.Context()))
	probe = w.open(w.spawning(bad, env))
	texts(t, w.send(probe, "go"))
	assert.Equal(t, session.BreakerOpen, w.kind(session.BreakerProvider)[0].State)
	w.Pass(time.Minute)
	probe = w.open(w.spawning(good, env))
	texts(t, w.send(probe, "go"))
	assert.Equal(t, session.BreakerClosed, w.kind(session.BreakerProvider)[0].State)
}

// tools is a server whose tool does as its arguments say.
type tools struct {
	handle func(ctx context.Context) (json.RawMessage, error)
	calls  int
}

func (*tools) Name() string { return "tools" }
func (*tools) Manifest() (initialize, list json.RawMessage, err error) {
	return json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"tools","version":"1"}}`),
		json.RawMessage(`{"tools":[{"name":"work","inputSchema":{"type":"object"}}]}`), nil
}
func (*tools) Timeout(string) time.Duration { return time.Second }
func (s *tools) Handle(ctx context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
	if method != "tools/call" {
		return json.RawMessage("{}"), nil
	}
	s.calls++
	return s.handle(ctx)
}

// TestAnInProcessServerThatFails: sessions that share it share its breaker.
func TestAnInProcessServerThatFails(t *testing.T) {
	t.Parallel()
	answer := func(context.Context) (json.RawMessage, error) {
		return json.RawMessage(`{"content":[{"type":"text","text":"done"}]}`), nil
	}
	for name, c := range map[string]struct {
		handle func(w *rig) func(context.Context) (json.RawMessage, error)
		calls  int // that reach the server, of ten
		last   string
	}{
		"it panics": {func(*rig) func(context.Context) (json.RawMessage, error) {
			return func(context.Context) (json.RawMessage, error) { panic("secret") }
		}, 5, "mcp__tools__work: it panicked"},
		"it is gone": {func(*rig) func(context.Context) (json.RawMessage, error) {
			return func(context.Context) (json.RawMessage, error) { return nil, errors.New("connection lost") }
		}, 5, "mcp__tools__work: connection lost"},
		"it does not answer": {func(w *rig) func(context.Context) (json.RawMessage, error) {
			return func(ctx context.Context) (json.RawMessage, error) {
				return nil, w.Executor().Await(ctx, never)
			}
		}, 5, "mcp__tools__work: no answer within 1s"},
		"it hangs, and does not heed its context": {func(w *rig) func(context.Context) (json.RawMessage, error) {
			let := make(chan struct{})
			w.Cleanup(func() { close(let); w.Quiet() }) // before the world is finished
			return func(context.Context) (json.RawMessage, error) {
				return nil, w.Executor().Await(context.Background(), let)
			}
		}, 5, "mcp__tools__work: no answer within 1s"},
		"its tool fails, which is the model's concern": {func(*rig) func(context.Context) (json.RawMessage, error) {
			return func(context.Context) (json.RawMessage, error) {
				return json.RawMessage(`{"content":[{"type":"text","text":"no such file"}],"isError":true}`), nil
			}
		}, 10, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := inSim(t, 1)
			server := &tools{}
			server.handle = c.handle(w)
			open := func() *runtime.Session {
				script := &scripted.Script{Default: scripted.Steps{&scripted.ToolUse{Name: "mcp__tools__work"}, scripted.Text("so")}}
				spec := w.spec(script)
				spec.Options.CanUseTool = allow
				spec.Options.SDKMCPServers = []*session.MCPServer{{MCPHandler: server}}
				return w.open(spec)
			}
			a, b := open(), open()
			for range 5 {
				texts(t, w.send(a, "go"))
				texts(t, w.send(b, "go"))
			}
			all := w.kind(session.BreakerMCPServer)
			require.Len(t, all, 1)
			assert.Equal(t, "tools", all[0].Name)
			assert.Equal(t, c.calls, server.calls)
			assert.Equal(t, c.last, all[0].LastFailure)
			if c.last == "" {
				assert.Equal(t, session.BreakerClosed, all[0].State)
				return
			}
			assert.Equal(t, session.BreakerOpen, all[0].State)
			assert.Contains(t, strings.Join(w.Wrote(), ""), "the breaker of MCP server tools is open since", "the model reads why")
			server.handle = answer
			w.Pass(time.Minute)
			texts(t, w.send(a, "go"))
			assert.Equal(t, c.calls+1, server.calls)
			assert.Equal(t, session.BreakerClosed, w.kind(session.BreakerMCPServer)[0].State)
		})
	}
}

// TestProgressOfACallThatIsOver starts no process of a passivated session: the agent waits for it
// no longer, though the tool still runs.
func TestProgressOfACallThatIsOver(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	let, progress := make(chan struct{}), func() error { return nil }
	server := &tools{handle: func(ctx context.Context) (json.RawMessage, error) {
		notify, _ := mcp.NotifierFromContext(ctx)
		progress = func() error {
			return notify("notifications/progress", json.RawMessage(`{"progressToken":"of another call","progress":1}`))
		}
		assert.NoError(t, progress(), "it is open")
		return nil, w.Executor().Await(context.Background(), let)
	}}
	spec := w.spec(&scripted.Script{Default: scripted.Steps{&scripted.ToolUse{Name: "mcp__tools__work"}, scripted.Text("so")}})
	spec.Options.CanUseTool = allow
	spec.Options.SDKMCPServers = []*session.MCPServer{{MCPHandler: server}}
	s := w.open(spec)
	texts(t, w.send(s, "go"))
	w.Pass(time.Minute)
	require.NoError(t, s.Passivate(t.Context()))
	_, before := w.Agents()
	require.ErrorContains(t, progress(), "the call is over")
	w.Pass(time.Minute)
	_, after := w.Agents()
	assert.Equal(t, before, after)
	assert.Equal(t, session.StatePassivated, s.State())
	close(let)
	w.Quiet()
	require.NoError(t, s.Close(t.Context()))
}
