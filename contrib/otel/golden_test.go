package troupeotel_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/simtests"
)

// id makes the agent's session have the same id in each run.
const id = "00000000-0000-4000-8000-00000000000"

func message(n, text string) sdk.UserMessage {
	m := sdk.UserText(text)
	m.UUID = id + n
	return m
}

// say sends a message and returns the error of its turn.
func say(w *simtests.World, c *sdk.Client, n, text string) error {
	turn, err := c.Send(w.Context(), message(n, text))
	if err != nil {
		return err
	}
	_, err = turn.Result(w.Context())
	return err
}

func allow(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
	return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, nil
}

func closed(w *simtests.World, c *sdk.Client) {
	if err := c.Close(w.Context()); err != nil {
		w.Errorf("close: %v", err)
	}
}

// TestSpans: the spans of sessions, in testdata.
func TestSpans(t *testing.T) {
	t.Parallel()
	for name, scenario := range map[string]func(*simtests.World, *rig){
		"work": work, "interrupted": interrupted, "recovered": recovered, "passivated": passivated, "died": died,
		"refused": refused, "failures": failures, "closed in a turn": closedInATurn,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree, measured := simulate(t, scenario)
			golden(t, name, tree+"\n"+measured)
		})
	}
}

// work has two turns, tools, a hook, permissions, an in-process tool and a subagent. The
// in-process tool has a span of its own.
func work(w *simtests.World, r *rig) {
	tracer := r.provider.Tracer("the user's")
	lookup := sdk.NewTool("lookup", "Looks up.", func(ctx context.Context, _ struct{}) (*sdk.ToolResult, error) {
		_, span := tracer.Start(ctx, "user's span", trace.WithTimestamp(w.Runtime().Clock().Now()))
		w.Sleep(3 * time.Millisecond)
		span.End(trace.WithTimestamp(w.Runtime().Clock().Now()))
		return sdk.Text("found"), nil
	})
	server, err := sdk.NewMCPServer("shop", "1", lookup)
	if err != nil {
		w.Fatalf("%v", err)
	}
	o := &sdk.Options{
		Tracer: r.Session, SessionID: id + "9", Model: "opus", SDKMCPServers: []*sdk.MCPServer{server},
		CanUseTool: func(_ context.Context, req *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
			w.Sleep(10 * time.Millisecond)
			if req.ToolName == "Write" {
				return protocol.PermissionResult{Behavior: protocol.BehaviorDeny, Message: "no"}, nil
			}
			return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, nil
		},
		Hooks: []sdk.Hook{sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			w.Sleep(time.Millisecond)
			return sdk.PreToolUseOutput{}, nil
		}, sdk.Match("Bash"))},
	}
	c := w.Open(o, &scripted.Script{CostPerCall: 0.25, Turns: []scripted.Turn{
		{Steps: scripted.Steps{
			scripted.Text("let me see"),
			&scripted.ToolUse{ID: "t1", Name: "Bash", Input: map[string]any{"command": "ls"}, Gate: agent.GateAsk, Result: "a b", Takes: 20 * time.Millisecond},
			&scripted.ToolUse{ID: "t2", Name: "Write", Gate: agent.GateAsk},
			&scripted.MCPCall{ID: "t3", Server: "shop", Tool: "lookup"},
			&scripted.SubAgent{Description: "look", Prompt: "look", Type: "Explore", Report: "seen", Steps: scripted.Steps{
				&scripted.ToolUse{ID: "t5", Name: "Read", Result: "text", Takes: 5 * time.Millisecond},
			}},
			scripted.Text("done"),
		}},
		{Steps: scripted.Steps{scripted.Delay(50 * time.Millisecond), scripted.Text("again")}},
	}})
	for n, prompt := range []string{"go", "on"} {
		if err := say(w, c, string(rune('1'+n)), prompt); err != nil {
			w.Errorf("%v", err)
		}
	}
	closed(w, c)
}

// interrupted is a turn that is interrupted in a tool.
func interrupted(w *simtests.World, r *rig) {
	c := w.Open(&sdk.Options{Tracer: r.Session, SessionID: id + "9", CanUseTool: allow}, &scripted.Script{Turns: []scripted.Turn{{Steps: scripted.Steps{
		&scripted.ToolUse{ID: "t1", Name: "Bash", Gate: agent.GateAllow, Takes: time.Hour},
	}}}})
	turn, err := c.Send(w.Context(), message("1", "go"))
	if err != nil {
		w.Fatalf("%v", err)
	}
	w.Sleep(time.Second)
	if _, err := c.Interrupt(w.Context()); err != nil {
		w.Errorf("%v", err)
	}
	_, _ = turn.Result(w.Context())
	closed(w, c)
}

// recovered is a turn whose agent dies in a tool, and which another process finishes.
func recovered(w *simtests.World, r *rig) {
	o := &sdk.Options{Tracer: r.Session, SessionID: id + "9", MaxRestarts: 1, CanUseTool: allow}
	c := w.Open(o, &scripted.Script{
		Turns: []scripted.Turn{{Steps: scripted.Steps{scripted.Text("first")}}, {Steps: scripted.Steps{
			&scripted.ToolUse{ID: "t1", Name: "Bash", Gate: agent.GateAsk, Takes: time.Second}, scripted.Text("second"),
		}}},
		Resumed:   []scripted.Turn{{Steps: scripted.Steps{scripted.Text("finished")}}},
		Misbehave: scripted.Misbehaviour{Die: &scripted.Die{At: agent.PendingPermission, Only: "fresh", Signal: "KILL"}},
	})
	for n, prompt := range []string{"go", "on"} {
		if err := say(w, c, string(rune('1'+n)), prompt); err != nil {
			w.Errorf("%v", err)
		}
	}
	closed(w, c)
}

// passivated is a session that lives on without a process.
func passivated(w *simtests.World, r *rig) {
	o := &sdk.Options{Tracer: r.Session, SessionID: id + "9"}
	c := w.Open(o, &scripted.Script{Default: scripted.Steps{scripted.Text("yes")}})
	if err := say(w, c, "1", "go"); err != nil {
		w.Errorf("%v", err)
	}
	if err := c.Passivate(w.Context()); err != nil {
		w.Errorf("%v", err)
	}
	w.Sleep(time.Hour)
	if err := say(w, c, "2", "on"); err != nil {
		w.Errorf("%v", err)
	}
	closed(w, c)
}

// died is a session that ends with its agent, in a turn.
func died(w *simtests.World, r *rig) {
	c := w.Open(&sdk.Options{Tracer: r.Session, SessionID: id + "9", CanUseTool: allow}, &scripted.Script{
		Turns:     []scripted.Turn{{Steps: scripted.Steps{&scripted.ToolUse{ID: "t1", Name: "Bash", Gate: agent.GateAsk}}}},
		Misbehave: scripted.Misbehaviour{Die: &scripted.Die{At: agent.PendingPermission, Code: 3}},
	})
	if err := say(w, c, "1", "go"); err == nil {
		w.Errorf("no error")
	}
	_ = c.Close(w.Context())
}

// refused is a session that does not start.
func refused(w *simtests.World, r *rig) {
	_, err := w.Dial(&sdk.Options{Tracer: r.Session}, &scripted.Script{Misbehave: scripted.Misbehaviour{Initialize: scripted.InitializeFault{Mode: "refuse", Error: "no", Code: "x"}}})
	if err == nil {
		w.Errorf("no error")
	}
}

// failures are callbacks that fail, panic and are late, a tool that fails, and turns that do.
func failures(w *simtests.World, r *rig) {
	call := func(id string) scripted.Step {
		return &scripted.ToolUse{ID: id, Name: "Bash", Input: map[string]any{"command": id}, Gate: agent.GateAsk, Result: "ran"}
	}
	o := &sdk.Options{
		Tracer: r.Session, SessionID: id + "9", PermissionTimeout: time.Second,
		CanUseTool: func(ctx context.Context, req *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
			switch req.ToolUseID {
			case "fails":
				return protocol.PermissionResult{}, context.DeadlineExceeded
			case "panics":
				panic("planted")
			case "late":
				w.Sleep(2 * time.Second)
			}
			return allow(ctx, req)
		},
	}
	isError := true
	c := w.Open(o, &scripted.Script{Turns: []scripted.Turn{
		{Steps: scripted.Steps{call("fails"), call("panics"), call("late"), &scripted.ToolUse{ID: "broken", Name: "Read", Error: "no such file"}}},
		{Steps: scripted.Steps{&scripted.Result{IsError: &isError, APIErrorStatus: 529, Errors: []string{"overloaded"}, Fields: map[string]any{"api_error_type": "overloaded_error"}}}},
		{Steps: scripted.Steps{&scripted.Result{Subtype: protocol.ResultErrorMaxTurns}}},
	}})
	for n := range 3 {
		_ = say(w, c, string(rune('1'+n)), "go")
	}
	closed(w, c)
}

// closedInATurn is a session that is closed while a callback and a tool run.
func closedInATurn(w *simtests.World, r *rig) {
	o := &sdk.Options{Tracer: r.Session, SessionID: id + "9", CanUseTool: func(ctx context.Context, _ *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
		<-ctx.Done()
		return protocol.PermissionResult{}, context.Cause(ctx)
	}}
	c := w.Open(o, &scripted.Script{Turns: []scripted.Turn{{Steps: scripted.Steps{
		scripted.Parallel{
			&scripted.ToolUse{ID: "t1", Name: "Bash", Gate: agent.GateAllow, Takes: time.Hour},
			&scripted.ToolUse{ID: "t2", Name: "Write", Gate: agent.GateAsk},
		},
	}}}})
	if _, err := c.Send(w.Context(), message("1", "go")); err != nil {
		w.Fatalf("%v", err)
	}
	w.Sleep(time.Second)
	closed(w, c)
}

// TestTurnsOfOtherTraces: a turn is in the trace of the context that sends it, with a link
// to its session; with the context that opened the session it is below the session.
func TestTurnsOfOtherTraces(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tracer := r.provider.Tracer("the user's")
	opening, opener := tracer.Start(t.Context(), "opening")
	c := sdk.NewClient(&sdk.Options{Backend: scripted.New(), Tracer: r.Session})
	require.NoError(t, c.Connect(opening))
	sending, sender := tracer.Start(t.Context(), "request")
	for _, ctx := range []context.Context{opening, sending, context.Background()} {
		turn, err := c.Send(ctx, sdk.UserText("hello"))
		require.NoError(t, err)
		_, err = turn.Result(ctx)
		require.NoError(t, err)
	}
	require.NoError(t, c.Close(t.Context()))
	sender.End()
	opener.End()
	r.whole(t)
	var root trace.SpanContext
	var parents []trace.SpanID
	links := 0
	for _, s := range r.spans.GetSpans() {
		switch s.Name {
		case "session claude":
			root = s.SpanContext
			require.Equal(t, opener.SpanContext().SpanID(), s.Parent.SpanID())
		case "invoke_agent claude":
			parents = append(parents, s.Parent.SpanID())
			links += len(s.Links)
		}
	}
	require.Equal(t, []trace.SpanID{root.SpanID(), sender.SpanContext().SpanID(), root.SpanID()}, parents)
	require.Equal(t, 1, links)
}
