package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// Gated is a session with a permission gate and a hook that allow, which the
// history counts, and an MCP server "tools" with the tool "echo".
func (w *world) Gated(s *scripted.Script) runtime.Spec {
	return runtime.Spec{
		ID: "s", Dialect: claude.New(), Program: w.Agent(s),
		Options: session.Options{
			SDKMCPServers: []*session.MCPServer{{MCPHandler: echo{}}},
			CanUseTool: func(_ context.Context, r *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.history.allowed++
				w.note("allow %s", r.ToolName)
				return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, nil
			},
			Hooks: []session.Hook{{
				Event: protocol.HookPreToolUse, Func: func(context.Context, *session.HookCall) (json.RawMessage, error) {
					w.Note("hook")
					return nil, nil
				},
			}},
		},
	}
}

// Play sends prompts to one session, reads all that it says, and closes it. It
// returns the error of the opening or of the closing. Errors of turns, and an
// end of the stream other than io.EOF, are in [world.TurnErrors].
func (w *world) Play(ctx context.Context, spec runtime.Spec, prompts ...string) error {
	s, err := w.Open(ctx, spec)
	if err != nil {
		return err
	}
	r, err := s.Read()
	if err != nil {
		return err
	}
	exec := w.Executor()
	read := kernel.NewPromise[error]()
	exec.Go(func() { read.Resolve(w.readAll(ctx, r)) })
	for _, prompt := range prompts {
		turn, err := s.Send(ctx, &protocol.UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.StringContent(prompt)}})
		if err == nil {
			_, err = turn.Result(ctx)
		}
		if err != nil {
			w.turnFailed(err)
			break
		}
	}
	if err := s.AwaitIdle(ctx); err != nil {
		return err
	}
	closed := kernel.NewPromise[error]()
	exec.Go(func() { closed.Resolve(s.Close(ctx)) })
	if err, _ := read.Wait(ctx, exec); !errors.Is(err, io.EOF) {
		w.turnFailed(err)
	}
	closeErr, err := closed.Wait(ctx, exec)
	if err != nil {
		return err
	}
	return closeErr
}

func (w *world) turnFailed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history.turns = append(w.history.turns, err)
}

// readAll reads to the end of the session, which it returns.
func (w *world) readAll(ctx context.Context, r *runtime.Reader) error {
	defer r.Close()
	for {
		m, err := r.Next(ctx)
		if err != nil {
			return err
		}
		w.mu.Lock()
		w.history.read = append(w.history.read, string(m.Raw()))
		w.note("user %s", m.Raw())
		w.mu.Unlock()
	}
}

// Saw is the content that the user of [world.Play] saw, a line each.
func (w *world) Saw() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.history.read)
}

// TurnErrors are those of the turns that [world.Play] sent.
func (w *world) TurnErrors() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.history.turns)
}

// Allowed is how many allows the gate of [world.Gated] gave.
func (w *world) Allowed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.history.allowed
}

// Lossless is the invariant ordered-lossless: what the user saw is what the
// agent wrote, in that order, no line twice and none missing.
func (w *world) Lossless(where string) {
	w.Helper()
	if wrote, saw := w.Wrote(), w.Saw(); !slices.Equal(wrote, saw) {
		w.Fatalf("%s: ordered-lossless: the agent wrote\n%q\nand the user saw\n%q", where, wrote, saw)
	}
}

// FailClosed is the invariant of that name: no tool ran without an allow.
func (w *world) FailClosed(where string) {
	w.Helper()
	if effects, allowed := w.Effects(), w.Allowed(); len(effects) > allowed {
		w.Fatalf("%s: fail-closed: %d allows, and the effects %q", where, allowed, effects)
	}
}

// echo is an MCP server of this process with one tool.
type echo struct{}

// Name implements [session.MCPHandler].
func (echo) Name() string { return "tools" }

// Manifest implements [session.MCPHandler].
func (echo) Manifest() (initialize, toolsList json.RawMessage, err error) {
	return json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"tools","version":"1"}}`),
		json.RawMessage(`{"tools":[{"name":"echo","description":"says it back","inputSchema":{"type":"object"}}]}`), nil
}

// Timeout implements [session.MCPHandler]: none but the session's.
func (echo) Timeout(string) time.Duration { return 0 }

// Handle implements [session.MCPHandler].
func (echo) Handle(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
	if method != "tools/call" {
		return json.RawMessage("{}"), nil
	}
	return json.RawMessage(`{"content":[{"type":"text","text":"hey"}]}`), nil
}
