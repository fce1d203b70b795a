package simtests

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-troupe/troupe/actors/hooks"
	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// PartError says that a part cannot be called as the test wants: a name or an input
// is wrong. The part itself did not run.
type PartError struct {
	Part    string // such as "hook PreToolUse" or "tool refund of MCP server shop"
	Problem string // what is wrong with the call
}

// Error implements error.
func (e *PartError) Error() string { return fmt.Sprintf("simtests: %s: %s", e.Part, e.Problem) }

// CallHook calls a hook as an agent does: in a separate session, which checks the
// hook's options, decodes the input, limits the time and checks the output.
//
// input is a value that encodes to a JSON object: the event's input type, such as
// *sdk.PreToolUseInput, a map or a json.RawMessage. Keys that every input has and
// that are absent or empty in it (hook_event_name, session_id, transcript_path, cwd)
// are filled in.
//
// The output is what the agent gets. Of a hook that fails, panics or takes too long
// it is what the agent gets in its place, such as the denial of a gate, and the error
// wraps the failure. An input of another event, and one that the hook's matcher does
// not take, are a *[PartError].
//
// CallHook is safe for concurrent use, and may be called in a testing/synctest
// bubble. It is not for a [World], whose sessions call hooks themselves.
func CallHook(ctx context.Context, h sdk.Hook, input any) (protocol.HookJSONOutput, error) {
	var out protocol.HookJSONOutput
	part := "hook " + string(h.Event)
	in, err := hookInput(h, input)
	if err != nil {
		return out, err
	}
	id, _ := in["tool_use_id"].(string)
	id = cmp.Or(id, "toolu_test")
	p := &probe{request: func(hello *protocol.InitializeRequest) (agent.Object, error) {
		for _, m := range hello.Hooks[h.Event] {
			for _, callback := range m.HookCallbackIDs {
				return agent.Object{"subtype": "hook_callback", "callback_id": callback, "input": in, "tool_use_id": id}, nil
			}
		}
		return nil, &PartError{part, "the session does not register it"}
	}}
	answer, err := p.ask(ctx, &sdk.Options{Hooks: []sdk.Hook{h}})
	if answer == nil {
		return out, about(part, err)
	}
	if unread := json.Unmarshal(answer, &out); unread != nil {
		err = errors.Join(err, unread)
	}
	return out, about(part, err)
}

// hookInput is the input of a hook's call, complete.
func hookInput(h sdk.Hook, input any) (agent.Object, error) {
	part := "hook " + string(h.Event)
	in, err := object(part, "the input", input)
	if err != nil {
		return nil, err
	}
	if event, _ := in["hook_event_name"].(string); event != "" && event != string(h.Event) {
		return nil, &PartError{part, "the input is of the event " + event}
	}
	for key, value := range map[string]string{
		"hook_event_name": string(h.Event), "session_id": "00000000-0000-4000-8000-000000000000",
		"transcript_path": "/transcript.jsonl", "cwd": "/",
	} {
		if had, _ := in[key].(string); had == "" {
			in[key] = value
		}
	}
	raw, err := protocol.Marshal(in)
	if err != nil {
		return nil, &PartError{part, err.Error()}
	}
	// An invalid pattern is an error of the session's options.
	if called, err := hooks.Matches(h.Event, h.Matcher, raw); err == nil && !called {
		return nil, &PartError{part, fmt.Sprintf("its matcher %q does not take the input, so the agent does not call it", h.Matcher)}
	}
	return in, nil
}

// CallTool calls a tool of an in-process MCP server as an agent does: in a separate
// session, through the checks of the tool's arguments and result, and within its time
// limit. No hook and no permission is asked about the call; see [AskPermission].
//
// tool is the name that the server gives it, without mcp__. args is a value that
// encodes to a JSON object; nil is an empty one.
//
// The result is what the model gets, also of a call that failed (IsError): wrong
// arguments, an error of the handler. Of a handler that panics the error wraps the
// *session.PanicError, and the result is what the model gets in its place. A server or tool
// that does not exist is a *[PartError], an error of the MCP protocol a *mcp.RPCError of
// package actors/mcp.
//
// CallTool is safe for concurrent use, and may be called in a testing/synctest
// bubble.
func CallTool(ctx context.Context, server *sdk.MCPServer, tool string, args any) (*sdk.ToolResult, error) {
	if !server.Usable() {
		return nil, &PartError{"tool " + tool, "the MCP server is nil or empty"}
	}
	part := fmt.Sprintf("tool %s of MCP server %s", tool, server.Name())
	if args == nil {
		args = struct{}{}
	}
	in, err := object(part, "args", args)
	if err != nil {
		return nil, err
	}
	result, err := rpc[*sdk.ToolResult](ctx, server, "tools/call", agent.Object{"name": tool, "arguments": in})
	if err == nil && result == nil {
		err = &PartError{part, "the server answered with neither a result nor an error"}
	}
	if err == nil && result.IsError { // to the model a tool that does not exist is such a result, too
		list, failed := rpc[*mcpsdk.ListToolsResult](ctx, server, "tools/list", nil)
		if failed == nil && !slices.ContainsFunc(list.Tools, func(t *mcpsdk.Tool) bool { return t.Name == tool }) {
			return result, &PartError{part, "the server has no such tool"}
		}
	}
	return result, about(part, err)
}

// rpc makes a JSON-RPC request of a server in a separate session.
func rpc[Result any](ctx context.Context, server *sdk.MCPServer, method string, params agent.Object) (result Result, err error) {
	message := agent.Object{"jsonrpc": "2.0", "id": 1, "method": method}
	if params != nil {
		message["params"] = params
	}
	p := &probe{request: func(*protocol.InitializeRequest) (agent.Object, error) {
		return agent.Object{"subtype": "mcp_message", "server_name": server.Name(), "message": message}, nil
	}}
	answer, err := p.ask(ctx, &sdk.Options{SDKMCPServers: []*sdk.MCPServer{server}})
	if answer == nil {
		return result, err
	}
	var body struct {
		Response struct {
			Result Result        `json:"result"`
			Error  *mcp.RPCError `json:"error"`
		} `json:"mcp_response"`
	}
	if unread := json.Unmarshal(answer, &body); unread != nil {
		return result, errors.Join(err, unread)
	}
	if failed := body.Response.Error; failed != nil {
		err = errors.Join(err, failed)
	}
	return body.Response.Result, err
}

// Permission is what became of a tool call that a session was asked about.
type Permission struct {
	Allowed bool
	// Asked reports whether Options.CanUseTool was called. A rule of the policy, a
	// hook, the mode or the agent itself may decide without it.
	Asked bool
	// Input is what the tool runs with, an object: the input of the call, unless a
	// hook or CanUseTool changed it. Of a denied call nil.
	Input json.RawMessage
	// Message is what the model reads in place of a result. Of an allowed call "".
	Message string
	// Interrupt reports whether the denial also ends the turn.
	Interrupt bool
}

// AskPermission makes a tool call in a session with these options and reports what
// the gates say: the PreToolUse and PermissionRequest hooks, Options.Policy, the agent's own rules and mode
// (AllowedTools, DisallowedTools, PermissionMode), and CanUseTool. The tool does not
// run. The agent is the scripted one; it asks about the calls that Claude Code was
// observed to ask about.
//
// tool is the name that the agent calls it by, such as Bash or mcp__shop__refund.
// input is a value that encodes to a JSON object; nil is an empty one.
//
// A denial is not an error. An error of CanUseTool or of a hook is one: it denied the call, and the
// Permission says what the model reads. An empty name, and an input that is no object, are a
// *[PartError]; options that cannot work are those of sdk.Client.Connect.
//
// Backend, Spawner, Runtime and Resume of the options do not count. AskPermission is safe
// for concurrent use, and may be called in a testing/synctest bubble.
func AskPermission(ctx context.Context, o *sdk.Options, tool string, input any) (Permission, error) {
	part := "permission for " + tool
	if tool == "" {
		return Permission{}, &PartError{part, "the tool has no name"}
	}
	if input == nil {
		input = struct{}{}
	}
	in, err := object(part, "the input", input)
	if err != nil {
		return Permission{}, err
	}
	var own sdk.Options
	if o != nil {
		own = *o
	}
	own.Hooks = slices.DeleteFunc(slices.Clone(own.Hooks), func(h sdk.Hook) bool {
		return h.Event != protocol.HookPreToolUse && h.Event != protocol.HookPermissionRequest
	})
	if own.Cwd == "" {
		if own.Cwd, err = os.Getwd(); err != nil { // a real agent inherits it
			return Permission{}, about(part, err)
		}
	}
	call := &gated{tool: tool, input: in}
	if decide := own.CanUseTool; decide != nil {
		own.CanUseTool = func(ctx context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			call.mu.Lock()
			call.got.Asked = true
			call.mu.Unlock()
			return decide(ctx, r)
		}
	}
	s, err := openPart(ctx, call, &own)
	if err != nil {
		return Permission{}, about(part, err)
	}
	err = call.play(ctx, s.client)
	failed := s.close(ctx)
	call.mu.Lock()
	defer call.mu.Unlock()
	return call.got, about(part, errors.Join(err, failed))
}

// object is v as a JSON object.
func object(part, what string, v any) (agent.Object, error) {
	raw, err := protocol.Marshal(v)
	if err != nil {
		return nil, &PartError{part, what + " is not JSON: " + err.Error()}
	}
	var o agent.Object
	if json.Unmarshal(raw, &o) != nil || o == nil {
		return nil, &PartError{part, what + " is no JSON object"}
	}
	return o, nil
}

func about(part string, err error) error {
	var p *PartError
	if err == nil || errors.As(err, &p) {
		return err
	}
	return fmt.Errorf("simtests: %s: %w", part, err)
}
