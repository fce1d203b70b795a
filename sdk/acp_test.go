package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/acp/acpclient"
	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// hasError reports whether err is or wraps an error of type E.
func hasError[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// acpWorld is a session with an agent of the Agent Client Protocol, on virtual time.
type acpWorld struct {
	agent   *acpAgent
	options sdk.Options
	client  *sdk.Client

	messages []string // that were read

	mu     sync.Mutex
	events []session.Event
}

// overACP runs a test with a scripted agent.
func overACP(t *testing.T, a *acpAgent, o *sdk.Options, test func(t *testing.T, w *acpWorld)) {
	t.Helper()
	leasedACP(t, a, o, nil, test)
}

// leasedACP is overACP with leases.
func leasedACP(t *testing.T, a *acpAgent, o *sdk.Options, leases session.Leases, test func(t *testing.T, w *acpWorld)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		rt, err := runtime.New(runtime.Config{Logger: slog.New(slog.DiscardHandler), Leases: leases})
		require.NoError(t, err)
		w := &acpWorld{agent: a, options: *o}
		w.options.Runtime = rt
		w.options.Backend = acpclient.Backend("agent", "--acp")
		w.options.Spawner = transport.InMemory{Clock: kernel.NewClock(nil), Exec: kernel.GoExecutor{}, Program: a}
		w.options.OnEvent = func(r session.EventRecord) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, r.Event)
		}
		w.client = sdk.NewClient(&w.options)
		test(t, w)
		_ = w.client.Close(t.Context())
		assert.NoError(t, rt.Shutdown(t.Context()))
	})
}

// describeMessage is what a test compares of a message.
func describeMessage(m protocol.Message) string {
	switch m := m.(type) {
	case *protocol.AssistantMessage:
		return "assistant " + describeBlocks(m.Message.Content)
	case *protocol.UserMessage:
		return "user " + describeBlocks(m.Message.Content)
	case *protocol.ResultMessage:
		return fmt.Sprintf("result %s %q", m.Subtype, m.Result)
	case *protocol.InitMessage:
		return "init " + m.SessionID
	case *protocol.UnknownMessage:
		var is struct {
			Type   string          `json:"type"`
			Update json.RawMessage `json:"update"`
			Method string          `json:"method"`
		}
		_ = json.Unmarshal(m.Raw(), &is)
		return is.Type + " " + is.Method + string(is.Update)
	}
	return fmt.Sprintf("%T", m)
}

func describeBlocks(all protocol.Content) string {
	var parts []string
	for _, b := range all {
		switch b := b.(type) {
		case *protocol.TextBlock:
			parts = append(parts, fmt.Sprintf("text %q", b.Text))
		case *protocol.ThinkingBlock:
			parts = append(parts, fmt.Sprintf("thinking %q", b.Thinking))
		case *protocol.ToolUseBlock:
			parts = append(parts, fmt.Sprintf("call %s %s %s", b.ID, b.Name, b.Input))
		case *protocol.ToolResultBlock:
			parts = append(parts, fmt.Sprintf("result of %s %q %t", b.ToolUseID, b.Content.Text(), b.IsError))
		default:
			parts = append(parts, b.BlockType())
		}
	}
	return strings.Join(parts, ", ")
}

// ask sends a message and reads until its result.
func (w *acpWorld) ask(t *testing.T, text string) (*protocol.ResultMessage, error) {
	t.Helper()
	_, err := w.client.Send(t.Context(), sdk.UserText(text))
	require.NoError(t, err)
	return w.read(t)
}

// read reads until the next result.
func (w *acpWorld) read(t *testing.T) (*protocol.ResultMessage, error) {
	t.Helper()
	for m, err := range w.client.Messages(t.Context()) {
		if err != nil {
			return nil, err
		}
		w.messages = append(w.messages, describeMessage(m))
		if r, ok := m.(*protocol.ResultMessage); ok {
			return r, nil
		}
	}
	return nil, errors.New("no result")
}

// warnings are the warnings so far.
func (w *acpWorld) warnings() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, e := range w.events {
		if e, ok := e.(*session.WarningIssued); ok {
			all = append(all, e.Problem)
		}
	}
	return strings.Join(all, "\n")
}

func TestACPSession(t *testing.T) {
	t.Parallel()
	a := &acpAgent{prompt: func(p *acpPlay, text string) string {
		p.update(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`)
		p.say("one ")
		p.say("two")
		p.update(`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"Read it","kind":"read","status":"pending","rawInput":{}}`)
		p.update(`{"sessionUpdate":"tool_call_update","toolCallId":"t1","rawInput":{"path":"/a"}}`)
		p.update(`{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"inside"}}]}`)
		p.update(`{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}`)
		p.update(`{"sessionUpdate":"plan","entries":[]}`)
		p.update(`{"sessionUpdate":"of_next_year","x":[1]}`)
		p.update(`{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":0.25,"currency":"USD"}}`)
		p.say("done with " + text)
		return `{"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":4}}`
	}}
	overACP(t, a, &sdk.Options{Cwd: "/", Env: map[string]string{"A": "b"}}, func(t *testing.T, w *acpWorld) {
		require.NoError(t, w.client.Connect(t.Context()))
		for _, text := range []string{"x", "y"} {
			r, err := w.ask(t, text)
			require.NoError(t, err)
			assert.Equal(t, "done with "+text, r.Result)
			assert.Equal(t, "acp-1", r.SessionID)
			assert.InDelta(t, 0.25, r.TotalCostUSD, 1e-9)
			assert.False(t, r.Failed())
		}
		assert.Equal(t, "acp-1", w.client.SessionID())
		assert.Equal(t, []string{
			"init acp-1",
			`assistant thinking "hm"`, `assistant text "one two"`,
			`assistant call t1 read {"path":"/a"}`, `user result of t1 "inside" false`,
			`acp_update {"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}`,
			`acp_update {"sessionUpdate":"plan","entries":[]}`, `acp_update {"sessionUpdate":"of_next_year","x":[1]}`,
			`acp_update {"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":0.25,"currency":"USD"}}`,
			`assistant text "done with x"`, `result success "done with x"`,
		}, w.messages[:11])
		assert.Equal(t, []string{"initialize", "session/new", "session/prompt", "session/prompt"}, a.methods())
		assert.JSONEq(t, `{"cwd":"/","mcpServers":[]}`, a.params("session/new"))
		assert.JSONEq(t, `{"sessionId":"acp-1","prompt":[{"type":"text","text":"y"}]}`, a.params("session/prompt"))
	})
}

// permissionUpdate is a request of the scripted agent, with the options that it offers.
func permissionUpdate(options ...string) string {
	var all []string
	for _, o := range options {
		all = append(all, fmt.Sprintf(`{"optionId":"id-%s","name":"n","kind":%q}`, o, o))
	}
	return `{"sessionId":"acp-1","toolCall":{"toolCallId":"t1","title":"Run ls","kind":"execute","rawInput":{"command":"ls","n":12345678901234567890}},"options":[` + strings.Join(all, ",") + `]}`
}

func TestACPPermission(t *testing.T) {
	t.Parallel()
	all := []string{"allow_always", "allow_once", "reject_always", "reject_once"}
	allow := func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		if r.ToolName != "execute" || r.Title != "Run ls" || string(r.Input) != `{"command":"ls","n":12345678901234567890}` {
			return sdk.Deny("not what was asked: " + r.ToolName + string(r.Input)), nil
		}
		return sdk.Allow(), nil
	}
	cases := map[string]struct {
		decide  sdk.CanUseTool
		options []string
		want    string // the option; "": cancelled
		warns   string
		result  string // subtype
	}{
		"allowed": {allow, all, "id-allow_once", "", "success"},
		"denied": {func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.Deny("no"), nil
		}, all, "id-reject_once", "", "success"},
		"nobody to ask": {nil, all, "id-reject_once", "", "success"},
		"an error": {func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.Allow(), assert.AnError
		}, all, "id-reject_once", "", "success"},
		"zero": {func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.PermissionResult{}, nil
		}, all, "id-reject_once", "", "success"},
		"only for good":     {allow, []string{"allow_always", "reject_always"}, "", "allow_once", "success"},
		"no way to say no":  {nil, []string{"allow_once"}, "", "reject_once", "success"},
		"no options at all": {allow, nil, "", "allow_once", "success"},
		"another input": {func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.AllowInput(json.RawMessage(`{"command":"ls -l"}`)), nil
		}, all, "id-reject_once", "", "success"},
		"the same input": {func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.AllowInput(json.RawMessage(`{"n":12345678901234567890, "command":"ls"}`)), nil
		}, all, "id-allow_once", "", "success"},
		"and stop": {func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.DenyAndStop("no"), nil
		}, all, "id-reject_once", "", "error_during_execution"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &acpAgent{prompt: func(p *acpPlay, _ string) string {
				outcome, ok := p.ask(permissionUpdate(c.options...))
				if !ok {
					return "exit"
				}
				if c.result != "success" {
					p.untilCancelled()
					return `{"stopReason":"cancelled"}`
				}
				p.say(outcome)
				return `{"stopReason":"end_turn"}`
			}}
			overACP(t, a, &sdk.Options{CanUseTool: c.decide}, func(t *testing.T, w *acpWorld) {
				require.NoError(t, w.client.Connect(t.Context()))
				r, err := w.ask(t, "x")
				require.NoError(t, err)
				assert.Equal(t, c.result, r.Subtype)
				if c.result == "success" {
					want := `{"outcome":{"outcome":"cancelled"}}`
					if c.want != "" {
						want = `{"outcome":{"outcome":"selected","optionId":"` + c.want + `"}}`
					}
					assert.JSONEq(t, want, r.Result)
				}
				if c.want != "id-allow_once" && c.warns != "allow_once" {
					assert.Len(t, r.PermissionDenials, 1)
				}
				synctest.Wait()
				assert.Contains(t, w.warnings(), c.warns)
			})
		})
	}
}

func TestACPInterrupt(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	a := &acpAgent{prompt: func(p *acpPlay, text string) string {
		if text != "long" {
			p.say("short")
			return `{"stopReason":"end_turn"}`
		}
		outcome, _ := p.ask(permissionUpdate("allow_once", "reject_once"))
		p.say(outcome)
		p.untilCancelled()
		p.say("last words")
		return `{"stopReason":"cancelled"}`
	}}
	o := &sdk.Options{CanUseTool: func(ctx context.Context, _ *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		close(asked)
		<-ctx.Done()
		return sdk.Allow(), nil // too late
	}}
	overACP(t, a, o, func(t *testing.T, w *acpWorld) {
		require.NoError(t, w.client.Connect(t.Context()))
		for _, text := range []string{"long", "next"} {
			_, err := w.client.Send(t.Context(), sdk.UserText(text))
			require.NoError(t, err)
		}
		<-asked
		_, err := w.client.Interrupt(t.Context())
		require.NoError(t, err)
		r, err := w.read(t)
		require.NoError(t, err)
		assert.Equal(t, protocol.ResultErrorDuringExecution, r.Subtype)
		r, err = w.read(t)
		require.NoError(t, err)
		assert.Equal(t, "short", r.Result)
		assert.Contains(t, strings.Join(a.requests(), "\n"), `answer {"outcome":{"outcome":"cancelled"}}`)
		assert.Contains(t, w.messages, `assistant text "{\"outcome\":{\"outcome\":\"cancelled\"}}last words"`)
		assert.Contains(t, w.messages, `user result of t1 "The turn ended without a result of this call. It may or may not have taken effect." true`)
	})
}

// TestACPStartThatFails: an agent that does not open the session ends the start with a typed error.
func TestACPStartThatFails(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		agent *acpAgent
		o     sdk.Options
		as    func(error) bool
		text  string
	}{
		"another version":        {&acpAgent{answers: map[string]string{"initialize": `{"protocolVersion":2}`}}, sdk.Options{}, hasError[*session.ProtocolVersionError], "version 2"},
		"no agent of it":         {&acpAgent{answers: map[string]string{"initialize": `{}`}}, sdk.Options{}, hasError[*session.ControlError], "no protocolVersion"},
		"initialize is refused":  {&acpAgent{answers: map[string]string{"initialize": `{"code":-32603,"message":"broken","data":{"a":1}}`}}, sdk.Options{}, hasError[*session.ControlError], `broken: {"a":1}`},
		"a login is needed":      {&acpAgent{answers: map[string]string{"initialize": `{"protocolVersion":1,"authMethods":[{"id":"l","name":"Log in","description":"with the browser"}]}`, "session/new": `{"code":-32000,"message":"Authentication required"}`}}, sdk.Options{}, hasError[*session.AuthError], "Log in (with the browser)"},
		"session/new is refused": {&acpAgent{answers: map[string]string{"session/new": `{"code":-32602,"message":"no such directory"}`}}, sdk.Options{}, hasError[*session.ControlError], "no such directory"},
		"session/new is odd":     {&acpAgent{answers: map[string]string{"session/new": `[]`}}, sdk.Options{}, hasError[*session.ControlError], "cannot be read"},
		"no session id":          {&acpAgent{answers: map[string]string{"session/new": `{}`}}, sdk.Options{}, hasError[*session.ControlError], "no sessionId"},
		"cannot resume":          {&acpAgent{}, sdk.Options{Resume: "acp-1"}, hasError[*session.UnsupportedCapabilityError], "loadSession"},
		"not found":              {&acpAgent{capabilities: `{"loadSession":true}`, answers: map[string]string{"session/load": `{"code":-32002,"message":"gone"}`}}, sdk.Options{Resume: "acp-1"}, hasError[*session.ControlError], "gone"},
		"no http servers":        {&acpAgent{}, sdk.Options{MCPServers: map[string]session.MCPServerConfig{"a": {Type: "http", URL: "http://x"}}}, hasError[*session.UnsupportedCapabilityError], "mcpCapabilities.http"},
		"no more directories":    {&acpAgent{}, sdk.Options{AdditionalDirectories: []string{"/b"}}, hasError[*session.UnsupportedCapabilityError], "additionalDirectories"},
		"no such mode":           {&acpAgent{answers: map[string]string{"session/new": `{"sessionId":"acp-1","modes":{"currentModeId":"a","availableModes":[{"id":"a","name":"A"}]}}`}}, sdk.Options{PermissionMode: "plan"}, hasError[*session.UnsupportedCapabilityError], `mode "plan" (it has a)`},
		"no modes":               {&acpAgent{}, sdk.Options{PermissionMode: "plan"}, hasError[*session.UnsupportedCapabilityError], "category mode"},
		"no models":              {&acpAgent{}, sdk.Options{Model: "m"}, hasError[*session.UnsupportedCapabilityError], "category model"},
		"exits at once":          {&acpAgent{answers: map[string]string{"initialize": "exit"}}, sdk.Options{}, hasError[*session.ExitError], "7"},
		"exits later":            {&acpAgent{answers: map[string]string{"session/new": "exit"}}, sdk.Options{}, hasError[*session.ExitError], "7"},
		"prints garbage":         {&acpAgent{first: "Welcome!", answers: map[string]string{"initialize": "silence"}}, sdk.Options{}, hasError[*session.TimeoutError], "Welcome!"},
		"says nothing":           {&acpAgent{answers: map[string]string{"session/new": "silence"}}, sdk.Options{InitializeTimeout: time.Second}, hasError[*session.TimeoutError], "1s"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			overACP(t, c.agent, &c.o, func(t *testing.T, w *acpWorld) {
				err := w.client.Connect(t.Context())
				require.Error(t, err)
				require.ErrorContains(t, err, c.text)
				require.True(t, c.as(err), "%T: %v", err, err)
			})
		})
	}
}

// takenLeases has every lease but those that it grants.
type takenLeases struct {
	grants string // the only id; "": none
	asked  chan string
}

func (l takenLeases) Acquire(_ context.Context, id string) (func(), error) {
	l.asked <- id
	if id == l.grants {
		return func() {}, nil
	}
	return nil, &session.LeaseError{SessionID: id, Holder: session.LeaseHolder{Host: "h", PID: 7}}
}

// TestACPLease: the agent may take the lease of its own id, as troupe acp does, so the session
// takes another one. Its error has the agent's id.
func TestACPLease(t *testing.T) {
	t.Parallel()
	a := &acpAgent{capabilities: `{"loadSession":true}`}
	for _, grants := range []string{"acp:s1", ""} {
		l := takenLeases{grants: grants, asked: make(chan string, 9)}
		leasedACP(t, a, &sdk.Options{Resume: "s1"}, l, func(t *testing.T, w *acpWorld) {
			err := w.client.Connect(t.Context())
			assert.Equal(t, "acp:s1", <-l.asked)
			if grants != "" {
				require.NoError(t, err)
				return
			}
			taken, ok := errors.AsType[*session.LeaseError](err)
			require.True(t, ok, "%v", err)
			assert.Equal(t, "s1", taken.SessionID)
			assert.Equal(t, 7, taken.Holder.PID)
		})
	}
}
