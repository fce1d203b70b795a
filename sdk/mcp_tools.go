package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/internal/jsonshape"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// toolServer serves tools without a connection and without goroutines.
type toolServer struct {
	info   map[string]string // serverInfo
	list   json.RawMessage   // result of tools/list
	byName map[string]*toolDef
	order  *mcp.Semaphore // nil: no order
}

func (s *toolServer) manifest() (initialize, tools json.RawMessage, err error) {
	initialize, err = s.initialize(protocolVersions[0])
	return initialize, s.list, err
}

func (s *toolServer) initialize(version string) (json.RawMessage, error) {
	return protocol.Marshal(map[string]any{
		"protocolVersion": version,
		// The vendors' SDKs announce listChanged, too (observed on the Claude
		// Agent SDK 0.3.329 and the Qoder SDK 1.0.39).
		"capabilities": map[string]any{"tools": map[string]bool{"listChanged": true}},
		"serverInfo":   s.info,
	})
}

func (s *toolServer) timeout(tool string) time.Duration {
	if d := s.byName[tool]; d != nil {
		return d.timeout
	}
	return 0
}

// semaphoreOf is where calls of a tool wait for each other. One is enough: what
// runs alone on the server also runs alone as a tool.
func (s *toolServer) semaphoreOf(d *toolDef) *mcp.Semaphore {
	if s.order != nil && !d.annotations.ReadOnly {
		return s.order
	}
	return d.semaphore
}

func (s *toolServer) enter(tool string) *mcp.Ticket {
	if d := s.byName[tool]; d != nil {
		return s.semaphoreOf(d).Enter()
	}
	return nil
}

func (s *toolServer) fresh() servant              { return s }
func (s *toolServer) close(context.Context) error { return nil }

func (s *toolServer) handle(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	switch method {
	case "initialize":
		return s.initialize(negotiate(params))
	case "ping":
		return json.RawMessage("{}"), nil
	case "tools/list":
		return s.list, nil
	case "tools/call":
		return s.call(ctx, params)
	}
	return nil, &mcp.RPCError{Code: mcp.CodeMethodNotFound, Message: "Method not found"}
}

func (s *toolServer) call(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	var p callParams
	if err := protocol.Unmarshal(params, &p); err != nil {
		return nil, &mcp.RPCError{Code: mcp.CodeInvalidParams, Message: "tools/call: params: " + err.Error()}
	}
	d := s.byName[p.Name]
	if d == nil {
		return refusal("Tool %s not found", p.Name), nil
	}
	// The bridge takes a place when the call arrives; without one this is it.
	place, ok := mcp.PlaceFromContext(ctx).(*mcp.Ticket)
	if sem := s.semaphoreOf(d); !ok || !place.At(sem) {
		place = sem.Enter()
	}
	defer place.Leave()
	result, err := d.call(ctx, place, p.Arguments, p.Meta)
	if bad, ok := errors.AsType[*jsonshape.Misfit](err); ok {
		return refusal("Input validation error: Invalid arguments for tool %s: %s", d.name, bad), nil
	}
	return result, err
}

// callParams are the params of tools/call.
type callParams struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Meta      json.RawMessage `json:"_meta"`
}

// refusal is the result of a call that no tool has seen. The words before the
// reason are the vendors' (observed on the Claude Agent SDK 0.3.329 and the
// Qoder SDK 1.0.39).
func refusal(format string, args ...any) json.RawMessage {
	return mcp.ErrorResult(fmt.Sprintf("MCP error %d: ", mcp.CodeInvalidParams) + fmt.Sprintf(format, args...))
}

// call runs the tool once. Its error is a *jsonshape.Misfit, the cause of ctx, or
// a *session.PanicError.
func (d *toolDef) call(ctx context.Context, place *mcp.Ticket, args, meta json.RawMessage) (result json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, &session.PanicError{Value: p, Message: "tool " + d.name, Stack: debug.Stack()}
		}
	}()
	checked, err := d.schema.Check(args)
	if err != nil {
		return nil, err
	}
	if err := place.Wait(ctx); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	c := newToolCall(meta)
	defer c.end()
	r, err := d.run(context.WithValue(ctx, toolCallKey{}, c), checked)
	if _, panicked := errors.AsType[*session.PanicError](err); panicked {
		return nil, err // of what the tool called: its text is not for the model
	}
	switch _, bad := errors.AsType[*jsonshape.Misfit](err); {
	case bad:
		return nil, err
	case err != nil && err.Error() == "":
		r = ErrorText(fmt.Sprintf("tool %s failed and did not say why", d.name))
	case err != nil:
		r = ErrorText(err.Error())
	}
	return encodeResult(d.name, r), nil
}
