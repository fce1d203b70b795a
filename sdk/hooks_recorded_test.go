package sdk_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// recordedLine is a line of a recording of a vendor's SDK.
type recordedLine struct {
	Dir string
	At  int64 `json:"t_ms"`
	Msg json.RawMessage
	frame
}

// frame is what the replay reads of a line.
type frame struct {
	Type      string `json:"type"`
	RequestID string `json:"request_id"`
	Request   struct {
		Type    string `json:"type"`
		Subtype string `json:"subtype"`
	} `json:"request"`
	Response struct {
		Subtype   string          `json:"subtype"`
		RequestID string          `json:"request_id"`
		Response  json.RawMessage `json:"response"`
		Error     string          `json:"error"`
	} `json:"response"`
}

func (f *frame) subject() string {
	if f.Request.Subtype != "" {
		return f.Request.Subtype
	}
	return f.Request.Type
}

// answer is a control response without its envelope: "error: …" or JSON, and "" without
// one.
func (f *frame) answer() string {
	if f.Response.Subtype == "error" {
		return "error: " + f.Response.Error
	}
	if f.Response.Response == nil {
		return "no response"
	}
	return string(f.Response.Response)
}

func recording(t *testing.T, name string) []recordedLine {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "protocol", "testdata", "traces", name))
	require.NoError(t, err)
	defer f.Close()
	var all []recordedLine
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l recordedLine
		require.NoError(t, json.Unmarshal(lines.Bytes(), &l))
		if l.Msg == nil {
			continue // an event
		}
		require.NoError(t, json.Unmarshal(l.Msg, &l.frame))
		all = append(all, l)
	}
	require.NoError(t, lines.Err())
	return all
}

// recordedAgent makes the requests that the agent of a recording made, when it
// made them, and waits for an answer where the recording has one.
type recordedAgent struct {
	now   func() time.Duration
	like  agent.Dialect
	lines []recordedLine
	skips func(request *recordedLine) bool
	deaf  map[string]bool // ids of requests that the host does not answer

	mu    sync.Mutex
	heard map[string][]string // answers of the host, by request
}

func (a *recordedAgent) AgentName() string           { return "recording" }
func (a *recordedAgent) AgentDialect() agent.Dialect { return a.like }

// Serve implements [agent.Program].
func (a *recordedAgent) Serve(_ agent.Launch, p agent.Port) agent.Exit {
	ended, sent, hello := false, false, frame{}
	next := func(wait time.Duration) { // takes a line of the host
		line, err := p.Next(wait)
		if errors.Is(err, agent.ErrWaited) {
			return
		}
		var f frame
		if ended = err != nil; ended {
			return
		}
		_ = json.Unmarshal(line, &f)
		switch {
		case f.Type == "user":
			sent = true
		case f.Type == "control_response":
			a.mu.Lock()
			a.heard[f.Response.RequestID] = append(a.heard[f.Response.RequestID], f.answer())
			a.mu.Unlock()
		case f.subject() == "initialize":
			hello = f
		case f.Type == "control_request":
			_ = p.Write([]byte(`{"type":"control_response","response":{"subtype":"success","request_id":"` + f.RequestID + `"}}` + "\n"))
		}
	}
	answered := func(id string) int {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.heard[id])
	}
	answers, skipped, initialized := map[string]int{}, map[string]bool{}, false
	for _, l := range a.lines {
		for wait := time.Duration(l.At)*time.Millisecond - a.now(); wait > 0 && !ended; wait = time.Duration(l.At)*time.Millisecond - a.now() {
			next(wait)
		}
		id := l.Response.RequestID
		switch {
		case l.Dir == "sdk->cli" && l.Type == "control_response":
			answers[id]++
			for !skipped[id] && !a.deaf[id] && answered(id) < answers[id] && !ended {
				next(-1)
			}
		case l.Dir != "cli->sdk":
		case l.Type == "control_response" && !initialized:
			for hello.Type == "" && !ended {
				next(-1)
			}
			initialized = true
			_ = p.Write(append(bytes.ReplaceAll(l.Msg, []byte(id), []byte(hello.RequestID)), '\n'))
		case l.Type == "system" && a.like == agent.Claude: // these recordings begin with a system/init, before any hook, as Claude Code never does
		case l.Type == "control_response": // of a request of that SDK's own
		case l.Type == "control_request" && a.skips(&l):
			skipped[l.RequestID] = true
		default:
			for initialized && !sent && !ended && l.Type != "system" {
				next(-1)
			}
			if !skipped[l.RequestID] {
				_ = p.Write(append(l.Msg, '\n'))
			}
		}
	}
	for !ended {
		next(-1) // late answers
	}
	return agent.Exit{}
}

// differs is an answer of ours that is meant to differ from the vendor's.
type differs struct {
	ours string // as in answers
	why  string
}

// comparison is a recording, the callbacks that do what those of the recording
// did, and what is different all the same.
type comparison struct {
	trace   string
	like    agent.Dialect
	options sdk.Options
	// except are the differences, by request, or by what the host is asked in
	// them where the recording names its requests by number.
	except map[string]differs
}

const (
	failsClosed = "a gate that fails denies in so many words, and does not show the model the error"
	noAnswer    = "what the agent took back is not answered; it ignores such answers"
	goNothing   = "nil is the empty answer; Go has no undefined"
)

func TestAnswersOfTheVendorsSDKs(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "both/ask/hook_callback", "both/ask/mcp_message", "both/ask/can_use_tool", "qoder/callback/HookCallbackMatcher")
	for name, build := range map[string]func(*testing.T, kernel.Executor) comparison{
		"claude hooks": claudeHooks, "claude permissions": claudePermissions, "claude MCP": claudeMCP,
		"claude without callbacks": claudeWithoutCallbacks,
		"qoder hooks":              qoderHooks, "qoder permissions": qoderPermissions, "qoder MCP": qoderMCP,
		"qoder without callbacks": qoderWithoutCallbacks, "qoder duplicates": qoderDuplicates,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sim.New(1)
			defer s.Close()
			c := build(t, s)
			c.run(t, s)
		})
	}
}

func (c *comparison) run(t *testing.T, s *sim.Scheduler) {
	rt, err := runtime.New(runtime.Config{Clock: s.Config().AsClock()})
	require.NoError(t, err)
	start := s.Now()
	a := &recordedAgent{
		now:  func() time.Duration { return s.Now().Sub(start) },
		like: c.like, lines: recording(t, c.trace), heard: map[string][]string{}, deaf: map[string]bool{},
		skips: func(l *recordedLine) bool {
			switch l.subject() {
			case "can_use_tool", "hook_callback", "mcp_message":
				return false
			}
			return true // of other callbacks
		},
	}
	for id, d := range c.except {
		a.deaf[id] = d.ours == ""
	}
	o := c.options
	o.Runtime, o.Backend = rt, a
	result, err := sdk.Run(t.Context(), "hello", &o)
	require.NoError(t, err)
	assert.False(t, result.Failed())
	require.NoError(t, rt.Shutdown(context.Background()))

	compared, used := 0, map[string]bool{}
	theirs := map[string][]string{}
	for _, l := range a.lines {
		if l.Dir == "sdk->cli" && l.Type == "control_response" {
			theirs[l.Response.RequestID] = append(theirs[l.Response.RequestID], l.answer())
		}
	}
	seen := map[string]bool{}
	for _, l := range a.lines {
		if l.Dir != "cli->sdk" || l.Type != "control_request" || a.skips(&l) || seen[l.RequestID] {
			continue
		}
		seen[l.RequestID] = true
		compared++
		got, want := a.heard[l.RequestID], theirs[l.RequestID]
		if d, ok := c.except[l.RequestID]; ok {
			used[l.RequestID] = true
			require.NotEmpty(t, d.why)
			assert.False(t, alike(want, got), "%s is no difference any more", l.RequestID)
			want = nil
			if d.ours != "" {
				want = []string{d.ours}
			}
		}
		assert.True(t, alike(want, got), "to %s\nthe vendor's SDK says %q\nwe say                 %q", l.Msg, want, got)
	}
	assert.Positive(t, compared, "the recording is empty")
	assert.Len(t, used, len(c.except), "differences that the recording does not have")
}

// alike compares the answers to one request.
func alike(theirs, ours []string) bool {
	if len(theirs) != len(ours) {
		return false
	}
	for i := range theirs {
		var a, b any
		if json.Unmarshal([]byte(theirs[i]), &a) != nil || json.Unmarshal([]byte(ours[i]), &b) != nil {
			if theirs[i] != ours[i] {
				return false
			}
			continue
		}
		if !same(plain(a), plain(b)) {
			return false
		}
	}
	return true
}

// cut is the mark of a text that the recording cut.
var cut = regexp.MustCompile(`…\[\d+ chars\]$`)

func same(theirs, ours any) bool {
	switch a := theirs.(type) {
	case map[string]any:
		b, ok := ours.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k := range a {
			if v, ok := b[k]; !ok || !same(a[k], v) {
				return false
			}
		}
		return true
	case []any:
		b, ok := ours.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !same(a[i], b[i]) {
				return false
			}
		}
		return true
	case string:
		b, ok := ours.(string)
		if at := cut.FindStringIndex(a); at != nil {
			return ok && strings.HasPrefix(b, a[:at[0]])
		}
		return a == b && ok
	}
	return theirs == ours
}

// plain removes from a tools/list what the vendors' schema library writes and
// the protocol has as defaults, and what ours adds to forbid unknown fields.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range []string{"execution", "$schema", "additionalProperties"} {
			delete(v, key)
		}
		for _, member := range v {
			plain(member)
		}
	case []any:
		for _, member := range v {
			plain(member)
		}
	}
	return v
}

// saysJSON is a hook that answers with given JSON.
func saysJSON(event protocol.HookEvent, answer string) sdk.Hook {
	return sdk.OnHookEvent(string(event), func(context.Context, *session.HookCall) (json.RawMessage, error) {
		if answer == "" {
			return nil, nil
		}
		return json.RawMessage(answer), nil
	})
}

var errTold = errors.New("an error")

func failing(event protocol.HookEvent) sdk.Hook {
	return sdk.OnHookEvent(string(event), func(context.Context, *session.HookCall) (json.RawMessage, error) { return nil, errTold })
}

func waiting(ex kernel.Executor, event protocol.HookEvent, o ...sdk.HookOption) sdk.Hook {
	return sdk.OnHookEvent(string(event), func(ctx context.Context, _ *session.HookCall) (json.RawMessage, error) {
		return nil, ex.Await(ctx, make(chan struct{}))
	}, o...)
}

func claudeHooks(_ *testing.T, ex kernel.Executor) comparison {
	return comparison{
		trace: "claude/sdk-recorder/cb-hooks.ndjson", like: agent.Claude,
		options: sdk.Options{Hooks: []sdk.Hook{
			sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
				deny := sdk.DenyPreToolUse("r")
				deny.Continue = sdk.Some(true)
				return deny, nil
			}, sdk.Match("Bash"), sdk.Timeout(time.Second)),
			sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
				return sdk.PreToolUseOutput{HookCommon: sdk.HookCommon{Async: true, AsyncTimeout: 500 * time.Millisecond}}, nil
			}, sdk.Match("Bash"), sdk.Timeout(time.Second)),
			failing(protocol.HookPostToolUse), saysJSON(protocol.HookUserPromptSubmit, ""), saysJSON(protocol.HookSessionStart, "null"),
			waiting(ex, protocol.HookPreCompact, sdk.Timeout(time.Second)),
			sdk.OnHookEvent("Stop", func(ctx context.Context, c *session.HookCall) (json.RawMessage, error) {
				if bytes.Contains(c.Input, []byte(`"slow"`)) {
					return nil, ex.Await(ctx, make(chan struct{}))
				}
				return json.RawMessage(`{"decision":"block","reason":"again"}`), nil
			}),
			saysJSON(protocol.HookNotification, `"a string"`),
		}},
		except: map[string]differs{
			"cli-req-3": {"error: the callback failed", "the error's text is for the operator, not for the agent"},
			"cli-req-4": {"{}", goNothing},
			"cli-req-6": {"error: no decision was made in time", "a hook that takes too long is answered for; the vendor's SDK waits"},
			"cli-req-9": {`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"No hook callback found for ID: hook_999"}}`,
				"an unknown hook without an event could be a gate"},
			"hk-slow": {"", noAnswer},
		},
	}
}

func claudePermissions(_ *testing.T, ex kernel.Executor) comparison {
	deny := func(id, why string) string {
		return `{"behavior":"deny","message":"` + why + `","toolUseID":"toolu_` + id + `"}`
	}
	return comparison{
		trace: "claude/sdk-recorder/cb-perms.ndjson", like: agent.Claude,
		options: sdk.Options{CanUseTool: func(ctx context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			switch r.ToolName {
			case "Allow":
				return sdk.AllowInput(r.Input), nil
			case "AllowNoInput", "SlowOk":
				return sdk.Allow(), nil
			case "AllowUpdated":
				return sdk.AllowInput(json.RawMessage(`{"b":2}`)), nil
			case "AllowPerms":
				return sdk.PermissionResult{Behavior: protocol.BehaviorAllow, UpdatedInput: r.Input, UpdatedPermissions: r.Suggestions()}, nil
			case "Deny":
				return sdk.Deny("no"), nil
			case "DenyInterrupt":
				return sdk.PermissionResult{Behavior: protocol.BehaviorDeny, Message: "stop", Interrupt: true}, nil
			case "Classified":
				return sdk.PermissionResult{Behavior: protocol.BehaviorDeny, Message: "x", DecisionClassification: protocol.UserReject}, nil
			case "Throw":
				return sdk.PermissionResult{}, errTold
			case "BadShape":
				return sdk.PermissionResult{Behavior: "maybe"}, nil
			case "Slow":
				return sdk.PermissionResult{}, ex.Await(ctx, make(chan struct{}))
			}
			return sdk.PermissionResult{}, nil // Null, Undefined
		}},
		except: map[string]differs{
			"cli-req-2":  {`{"behavior":"allow","toolUseID":"toolu_AllowNoInput","updatedInput":{"a":1}}`, "older releases need the input"},
			"cli-req-7":  {deny("Throw", "the callback failed"), failsClosed},
			"cli-req-8":  {deny("Null", "The host denied this tool call."), "the zero result denies; the vendor's SDK does not answer null"},
			"cli-req-9":  {deny("BadShape", "The host denied this tool call."), "what is not an allow denies"},
			"cli-req-10": {deny("Undefined", "The host denied this tool call."), "the zero result denies"},
			"slow-1":     {"", noAnswer},
		},
	}
}

func claudeWithoutCallbacks(*testing.T, kernel.Executor) comparison {
	return comparison{
		trace: "claude/sdk-recorder/cb-permsNoCallback.ndjson", like: agent.Claude,
		except: map[string]differs{
			"cli-req-1": {`{"behavior":"deny","message":"the callback failed","toolUseID":"t"}`, failsClosed},
			"cli-req-4": {`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"No hook callback found for ID: hook_0"}}`,
				"an unknown hook without an event could be a gate"},
		},
	}
}

func slowTool(name string, takes time.Duration, result string) sdk.Tool {
	return sdk.NewTool(name, "d", func(ctx context.Context, _ none) (*sdk.ToolResult, error) {
		if takes == 0 {
			return nil, mcp.Await(ctx, make(chan struct{}))
		}
		return sdk.Text(result), nil
	})
}

func claudeMCP(t *testing.T, _ kernel.Executor) comparison {
	t.Helper()
	s, err := sdk.NewMCPServer("srv", "1.2.3",
		sdk.NewTool("echo", "d", func(_ context.Context, in echoInput) (*sdk.ToolResult, error) {
			return sdk.Text(in.X + " extra:signal,sessionId,_meta,sendNotification,sendRequest"), nil
		}),
		saying("boom", nil, errPlain), saying("iserr", sdk.ErrorText("bad"), nil), slowTool("slow", 0, ""),
		sdk.NewTool("prog", "d", func(ctx context.Context, _ none) (*sdk.ToolResult, error) {
			assert.True(t, sdk.Progress(ctx, 1, 2, ""))
			return sdk.Text("p"), nil
		}),
	)
	require.NoError(t, err)
	return comparison{
		trace: "claude/sdk-recorder/cb-mcp.ndjson", like: agent.Claude,
		options: sdk.Options{SDKMCPServers: []*sdk.MCPServer{s}},
		except:  map[string]differs{"mcp-slow": {"", noAnswer}},
	}
}

func qoderHooks(_ *testing.T, ex kernel.Executor) comparison {
	deny := func(reason string) string {
		return `{"decision":"block","reason":"` + reason + `","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"` + reason + `"}}`
	}
	return comparison{
		trace: "qoder/c2s-hooks.ndjson", like: agent.Qoder,
		options: sdk.Options{Auth: sdk.QoderCLIAuth(), Hooks: []sdk.Hook{
			sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
				deny := sdk.DenyPreToolUse("r")
				deny.Continue, deny.UpdatedInput = sdk.Some(true), json.RawMessage(`{"a":1}`)
				return deny, nil
			}, sdk.Match("Bash"), sdk.Timeout(time.Second)),
			sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
				return sdk.PreToolUseOutput{HookCommon: sdk.HookCommon{Async: true, AsyncTimeout: 500 * time.Millisecond}}, nil
			}, sdk.Match("Bash"), sdk.Timeout(time.Second)),
			failing(protocol.HookStop), saysJSON(protocol.HookPostToolUse, ""), waiting(ex, protocol.HookSessionEnd, sdk.Timeout(300*time.Millisecond)),
		}},
		except: map[string]differs{
			"cli-3": {"error: the callback failed", "the error's text is for the operator, not for the agent"},
			"cli-4": {"{}", goNothing},
			"cli-6": {"error: Unknown hook callback: ", "a missing id is one that nobody registered"},
			"cli-7": {deny("Unknown hook callback: "), "an unknown hook of a gate denies"},
			"cli-9": {"error: no decision was made in time", "a hook that takes too long is answered for; the vendor's SDK waits"},
		},
	}
}

func qoderPermissions(_ *testing.T, ex kernel.Executor) comparison {
	deny := func(id, why string) string {
		return `{"behavior":"deny","message":"` + why + `","toolUseID":"` + id + `"}`
	}
	return comparison{
		trace: "qoder/c2s-perm.ndjson", like: agent.Qoder,
		options: sdk.Options{Auth: sdk.QoderCLIAuth(), CanUseTool: func(ctx context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			switch r.ToolUseID {
			case "allow":
				return sdk.Allow(), nil
			case "allow_updated":
				return sdk.AllowInput(json.RawMessage(`{"command":"pwd"}`)), nil
			case "allow_perms":
				return sdk.AllowAlways(r), nil
			case "type_disc":
				return sdk.PermissionResult{Behavior: protocol.BehaviorAllow, UpdatedPermissions: r.Suggestions()}, nil
			case "deny":
				return sdk.Deny("no"), nil
			case "deny_interrupt":
				return sdk.DenyAndStop("no"), nil
			case "deny_nomsg":
				return sdk.Deny(""), nil
			case "throw", "throw_nonerror":
				return sdk.PermissionResult{}, errTold
			case "bogus":
				return sdk.PermissionResult{Behavior: "maybe"}, nil
			case "allow_scope":
				return sdk.PermissionResult{Behavior: protocol.BehaviorAllow, PermissionScope: "session"}, nil
			case "hang", "cancelme", "cancelme2":
				return sdk.PermissionResult{}, ex.Await(ctx, make(chan struct{}))
			}
			return sdk.PermissionResult{}, nil
		}},
		except: map[string]differs{
			"cli-6":  {deny("deny_nomsg", "The host denied this tool call."), "a deny without a message gets one"},
			"cli-7":  {deny("throw", "the callback failed"), failsClosed},
			"cli-8":  {deny("throw_nonerror", "the callback failed"), failsClosed},
			"cli-9":  {deny("bogus", "The host denied this tool call."), "what is not an allow denies"},
			"cli-10": {deny("undef", "The host denied this tool call."), "the zero result denies"},
			"cli-13": {deny("hang", "the session is closing"), "a gate is denied before stdin is closed"},
			"cli-11": {`{"behavior":"allow","permissionScope":"session","toolUseID":"allow_scope","updatedInput":{"command":"ls"}}`, "a result has no fields of the caller's own"},
		},
	}
}

func qoderWithoutCallbacks(*testing.T, kernel.Executor) comparison {
	return comparison{
		trace: "qoder/c2s-no-callbacks.ndjson", like: agent.Qoder, options: sdk.Options{Auth: sdk.QoderCLIAuth()},
		except: map[string]differs{
			"cli-1": {`{"behavior":"deny","message":"the callback failed","toolUseID":"x"}`, failsClosed},
		},
	}
}

func qoderMCP(t *testing.T, _ kernel.Executor) comparison {
	t.Helper()
	type greeting struct {
		Name string  `json:"name" jsonschema:"n"`
		N    float64 `json:"n,omitempty"`
	}
	s, err := sdk.NewMCPServer("k1", "1.2.3",
		sdk.NewTool("greet", "d", func(_ context.Context, in greeting) (*sdk.ToolResult, error) {
			return sdk.Text("hi " + in.Name), nil
		}, sdk.ReadOnly()),
		sdk.NewTool("fail", "d", func(context.Context, none) (*sdk.ToolResult, error) { return nil, errors.New("tool boom") }),
		saying("rich", &sdk.ToolResult{
			Meta: mcpsdk.Meta{"m": []string{
				"signal", "sessionId", "_meta", "sendNotification", "sendRequest", "authInfo", "requestId", "requestInfo",
				"taskId", "taskStore", "taskRequestedTtl", "closeSSEStream", "closeStandaloneSSEStream",
			}},
			Content:           []mcpsdk.Content{&mcpsdk.TextContent{Text: "x"}, &mcpsdk.ImageContent{Data: []byte{0}, MIMEType: "image/png"}},
			StructuredContent: map[string]int{"a": 1}, IsError: true,
		}, nil),
		slowTool("slow", 0, ""), slowTool("slow300", 1, "slow"),
	)
	require.NoError(t, err)
	return comparison{
		trace: "qoder/c2s-mcp.ndjson", like: agent.Qoder,
		options: sdk.Options{Auth: sdk.QoderCLIAuth(), SDKMCPServers: []*sdk.MCPServer{s}},
		except: map[string]differs{
			"cli-1": {`{"mcp_response":{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"k1","version":"1.2.3"}}}}`,
				"a server's name is its key"},
			"cli-5": {`{"mcp_response":{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"MCP error -32602: Input validation error: Invalid arguments for tool greet: name: missing, expected string"}],"isError":true}}}`,
				"our words, which name the field first and all that is wrong"},
		},
	}
}

func qoderDuplicates(*testing.T, kernel.Executor) comparison {
	return comparison{
		trace: "qoder/c2s-duplicate-request-id.ndjson", like: agent.Qoder,
		options: sdk.Options{Auth: sdk.QoderCLIAuth(), CanUseTool: func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.Allow(), nil
		}},
	}
}
