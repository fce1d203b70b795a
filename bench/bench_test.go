package bench_test

import (
	"context"
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/router"
	"github.com/agent-troupe/troupe/actors/router/routertest"
	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/bench/internal/drive"
	"github.com/agent-troupe/troupe/bench/internal/fast"
	"github.com/agent-troupe/troupe/bench/internal/measure"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

const (
	delta = `{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some words of it "}},` +
		`"session_id":"00000000-0000-4000-8000-000000000000","parent_tool_use_id":null,"uuid":"00000000-0000-4000-8000-000000000001"}` + "\n"
	hookCall = `{"type":"control_request","request_id":"r1","request":{"subtype":"hook_callback","callback_id":"hook_0","tool_use_id":"t",` +
		`"input":{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"true"}}}}`
)

// BenchmarkCodec takes one stream event from bytes to its text.
func BenchmarkCodec(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(delta)))
	var s protocol.Splitter
	text := 0
	for b.Loop() {
		s.Commit(copy(s.Buffer(), delta))
		for l, ok := s.Next(); ok; l, ok = s.Next() {
			f, err := protocol.ParseFrame(l.Data)
			if err != nil {
				b.Fatal(err)
			}
			text += len(protocol.TextOf(protocol.DecodeMessage(f)))
		}
	}
	require.Positive(b, text)
}

// BenchmarkRequest decodes a hook's call and encodes the answer to it.
func BenchmarkRequest(b *testing.B) {
	b.ReportAllocs()
	var out []byte
	for b.Loop() {
		f, err := protocol.ParseFrame([]byte(hookCall))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := protocol.DecodeAgentRequest(f); err != nil {
			b.Fatal(err)
		}
		if out, err = protocol.AppendControlSuccess(out[:0], f.RequestID, json.RawMessage(`{}`)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLateInATurn takes one MCP message through a routing that remembers as many
// messages and answers as it keeps.
func BenchmarkLateInATurn(b *testing.B) {
	m := machine.New(machine.Config{Rules: routertest.Rules{}})
	now := time.Unix(1, 0)
	out := m.Step(now, machine.Connected{Gen: 1}, nil)
	init := []byte(`{"type":"control_response","response":{"subtype":"success","request_id":"` + m.Calls[0].ID + `","response":{}}}`)
	step := func(line []byte) {
		f, err := protocol.ParseFrame(line)
		if err != nil {
			b.Fatal(err)
		}
		out = m.Step(now, machine.FramesRead{Frames: []protocol.Frame{f}}, out[:0])
	}
	step(init)
	out = m.Step(now, machine.UserSent{ID: "00000000-0000-4000-8000-000000000000", Line: []byte("{}\n")}, out)
	n := 0
	round := func() {
		n++
		step([]byte(`{"type":"control_request","request_id":"` + strconv.Itoa(n) + `","request":{"subtype":"mcp_message"}}`))
		out = m.Step(now, machine.Answered{Seq: m.Seq, Response: json.RawMessage("{}")}, out[:0])
		if m.Open() > 0 {
			b.Fatal("the request was not answered")
		}
	}
	for range m.Limits().Answers {
		round()
	}
	require.True(b, m.Running())
	b.ReportAllocs()
	for b.Loop() {
		round()
	}
}

// BenchmarkRouterHop takes one request from the reader's hands through the
// router to a callback actor, which does nothing with it.
func BenchmarkRouterHop(b *testing.B) {
	sys := kernel.NewSystem(kernel.Config{})
	heard := make(chan machine.Run)
	var at kernel.Address[machine.Input]
	var parent kernel.Address[machine.LifeInput]
	var transport kernel.Address[machine.ToTransport]
	var callbacks router.Lazy
	stub(b, sys, "session", &parent, func(machine.LifeInput) {})
	stub(b, sys, "transport", &transport, func(machine.ToTransport) {})
	stub(b, sys, "callback", &callbacks.Get().Kinds[session.KindHook], func(m machine.ToCallback) {
		if run, ok := m.(machine.Run); ok {
			heard <- run
		}
	})
	require.NoError(b, kernel.SpawnRoot(sys, "router", &at, router.New(router.NewBox(router.Config{
		Clock: sys.Clock(), Emit: func(session.Event) {},
		User: user.New(user.Config{Clock: sys.Clock(), Rand: sys.Rand(), Exec: sys.Executor()}),
		Self: &at, Session: &parent, Transport: &transport, Callbacks: &callbacks,
	}, machine.Config{Rules: routertest.Rules{}}))))
	at.Tell(nil, machine.Connected{Gen: 1})
	f, err := protocol.ParseFrame([]byte(hookCall))
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		at.Tell(nil, machine.FramesRead{Frames: []protocol.Frame{f}})
		at.Tell(nil, machine.Answered{Seq: (<-heard).Seq, Response: json.RawMessage("{}")})
		f.RequestID = kernel.NewID(sys.Rand())
		f.ID = protocol.TextID(f.RequestID)
	}
}

// actorStub is an actor that calls heard for each message.
type actorStub[M any] struct{ heard func(M) }

func (actorStub[M]) Start(*kernel.Context[M]) error           { return nil }
func (s actorStub[M]) Handle(_ *kernel.Context[M], m M) error { s.heard(m); return nil }
func (actorStub[M]) Stop(*kernel.Context[M])                  {}

func stub[M any](b *testing.B, sys *kernel.System, name string, at *kernel.Address[M], heard func(M)) {
	b.Helper()
	require.NoError(b, kernel.SpawnRoot(sys, name, at, actorStub[M]{heard}))
}

// BenchmarkSession has whole turns with an agent inside this process: the time
// of one event, or of one callback, the agent's part included.
func BenchmarkSession(b *testing.B) {
	for _, mode := range []string{measure.Stream, measure.Hook, measure.Perm, measure.MCP} {
		b.Run(mode, func(b *testing.B) {
			c := sdk.NewClient(drive.Job{Backend: fast.Program{}, Mode: mode}.Options(nil))
			require.NoError(b, c.Connect(b.Context()))
			defer func() { require.NoError(b, c.Close(context.Background())) }()
			b.ReportAllocs()
			b.ResetTimer()
			turn, err := c.Send(b.Context(), sdk.UserText(measure.Prompt(mode, b.N)))
			require.NoError(b, err)
			for _, err := range turn.Messages(b.Context()) {
				require.NoError(b, err)
			}
			b.StopTimer()
		})
	}
	b.Run("open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c := sdk.NewClient(&sdk.Options{Backend: fast.Program{}})
			require.NoError(b, c.Connect(b.Context()))
			require.NoError(b, c.Close(b.Context()))
		}
	})
}
