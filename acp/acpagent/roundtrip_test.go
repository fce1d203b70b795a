package acpagent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/acp/acpagent"
	"github.com/agent-troupe/troupe/acp/acpclient"
	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// served is a process of troupe acp in memory.
type served struct {
	config func() acpagent.Config
	mu     sync.Mutex
	errs   []error
}

func (*served) AgentName() string { return "troupe acp" }

// Serve implements [agent.Program].
func (s *served) Serve(_ agent.Launch, port agent.Port) agent.Exit {
	ctx, kill := context.WithCancelCause(context.Background())
	defer kill(nil)
	in := &portReader{port: port, over: kill}
	err := acpagent.Serve(ctx, in, portWriter{port}, s.config())
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, agent.ErrKilled) {
		return agent.Exit{Signal: "KILL"}
	}
	if err != nil && !errors.Is(err, agent.ErrTerminated) {
		s.errs = append(s.errs, err)
		return agent.Exit{Code: 1}
	}
	return agent.Exit{}
}

// portReader reads the lines of a port.
type portReader struct {
	port agent.Port
	over context.CancelCauseFunc // after a signal
	rest []byte
}

func (r *portReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		line, err := r.port.Next(-1)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				r.over(err)
			}
			return 0, io.EOF
		}
		r.rest = append(append(r.rest, line...), '\n')
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

type portWriter struct{ port agent.Port }

func (w portWriter) Write(p []byte) (int, error) { return len(p), w.port.Write(p) }

// told is what a user gets of a session, in short. The user reads messages and answers
// questions concurrently, so the two have no common order.
type told struct {
	messages []string

	mu        sync.Mutex
	questions []string
}

func (s *told) add(format string, args ...any) {
	s.messages = append(s.messages, fmt.Sprintf(format, args...))
}

// message adds what a message says.
func (s *told) message(m protocol.Message) {
	parent := func(id string) string {
		if id != "" {
			return " of " + id
		}
		return ""
	}
	switch m := m.(type) {
	case *protocol.AssistantMessage:
		for _, b := range m.Message.Content {
			switch b := b.(type) {
			case *protocol.TextBlock:
				s.add("text%s %q", parent(m.ParentToolUseID), b.Text)
			case *protocol.ThinkingBlock:
				s.add("thinking%s %q", parent(m.ParentToolUseID), b.Thinking)
			case *protocol.ToolUseBlock:
				s.add("call%s %s %s %s", parent(m.ParentToolUseID), b.ID, b.Name, b.Input)
			}
		}
	case *protocol.UserMessage:
		for _, r := range protocol.ToolResults(m) {
			s.add("result of call %s %q error=%t", r.ToolUseID, r.Content.Text(), r.IsError)
		}
	case *protocol.ResultMessage:
		s.add("result %s %q %s denied=%d", m.Subtype, m.Result, m.StopReason, len(m.PermissionDenials))
	}
}

const roundTrip = `
turns:
- match: first
  steps:
  - thinking: Let me think.
  - partial: {text: "One, two, three.", chunk: 4}
  - tool_use: {id: t1, name: Read, input: {file_path: /work/a.txt}, result: inside}
  - text: Now I run it.
  - tool_use: {id: t2, name: Bash, input: {command: make, description: Build}, result: "built\n", gate: ask}
  - tool_use: {id: t3, name: Bash, input: {command: rm -r /work}, result: gone, gate: ask}
  - tool_use: {id: t4, name: mcp__other__thing, input: {n: 12345678901234567890, deep: {list: [1, null, "x"]}}, error: no such thing}
  - agent:
      description: Look around
      prompt: Look.
      type: Explore
      steps:
      - tool_use: {id: t6, name: Grep, input: {pattern: x}, result: found}
      report: I found it.
  - text: All done.
- match: second
  steps:
  - text: "Multi\nline, \"quotes\", ünïcödé and \u2028."
- match: silent
  steps: []
`

// playRoundTrip plays the script in a session, and returns what its user is told.
func playRoundTrip(t *testing.T, o *sdk.Options) *told {
	t.Helper()
	drawn := regexp.MustCompile("toolu_[0-9a-f]+")
	all := &told{}
	o.IncludePartialMessages = true
	o.Cwd = "/"
	o.CanUseTool = func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		all.mu.Lock()
		defer all.mu.Unlock()
		all.questions = append(all.questions, fmt.Sprintf("%s %s %s", r.ToolUseID, r.ToolName, r.Input))
		if strings.Contains(string(r.Input), "rm -r") {
			return sdk.Deny("not that"), nil
		}
		return sdk.Allow(), nil
	}
	c := sdk.NewClient(o)
	require.NoError(t, c.Connect(t.Context()))
	for _, prompt := range []string{"first", "second", "silent"} {
		turn, err := c.Send(t.Context(), sdk.UserText(prompt))
		require.NoError(t, err)
		for m, err := range turn.Messages(t.Context()) {
			require.NoError(t, err)
			all.message(m)
		}
	}
	require.NoError(t, c.Close(t.Context()))
	for i, line := range all.messages { // ids that the agent draws
		all.messages[i] = drawn.ReplaceAllString(line, "ID")
	}
	return all
}

// TestRoundTrip: a session over the protocol tells its user the same as the session behind it.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		newRuntime := func() *runtime.Runtime {
			rt, err := runtime.New(runtime.Config{Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			return rt
		}
		behind, front := newRuntime(), newRuntime()
		script := func() sdk.Options {
			parsed, err := scripted.Parse([]byte(roundTrip))
			require.NoError(t, err)
			return sdk.Options{Runtime: behind, Backend: scripted.New(scripted.WithScript(parsed))}
		}
		direct := script()
		want := playRoundTrip(t, &direct)

		program := &served{config: func() acpagent.Config { return acpagent.Config{Options: script()} }}
		got := playRoundTrip(t, &sdk.Options{
			Runtime: front, Backend: acpclient.Backend("troupe", "acp"),
			Spawner: transport.InMemory{Clock: kernel.NewClock(nil), Exec: kernel.GoExecutor{}, Program: program},
		})
		// The protocol has no place for the reason of a denial.
		for i, line := range want.messages {
			want.messages[i] = strings.Replace(line, "not that", "The user refused permission to run the tool.", 1)
		}
		assert.Equal(t, want.messages, got.messages)
		assert.Equal(t, want.questions, got.questions)
		assert.Empty(t, program.errs)
		assert.Len(t, want.questions, 3)
		assert.Len(t, want.messages, 20, "the script has been played")
		require.NoError(t, front.Shutdown(t.Context()))
		require.NoError(t, behind.Shutdown(t.Context()))
	})
}

// TestFleetOverACP: tasks run with an agent of the protocol. Without CanUseTool nobody allows a call.
func TestFleetOverACP(t *testing.T) {
	t.Parallel()
	for name, decide := range map[string]sdk.CanUseTool{"denied": nil, "allowed": func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		return sdk.Allow(), nil
	}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			effects := &atomic.Int32{}
			program := &served{config: func() acpagent.Config {
				return acpagent.Config{Options: sdk.Options{Backend: countedBash(t, effects)}}
			}}
			job := fleet.Job{
				Tasks: []fleet.Task{{ID: "a", Prompt: "install"}, {ID: "b", Prompt: "install"}, {ID: "c", Prompt: "install"}},
				Options: &sdk.Options{
					Backend: acpclient.Backend("troupe", "acp"), CanUseTool: decide,
					Spawner: transport.InMemory{Clock: kernel.NewClock(nil), Exec: kernel.GoExecutor{}, Program: program},
				},
			}
			done := 0
			for r, err := range fleet.Run(t.Context(), job) {
				require.NoError(t, err)
				assert.Equal(t, fleet.Accepted, r.Status, "%+v", r)
				assert.Equal(t, "It is done.", r.Text)
				assert.NotEmpty(t, r.SessionID)
				done++
			}
			assert.Equal(t, 3, done)
			want := int32(3)
			if decide == nil {
				want = 0
			}
			assert.Equal(t, want, effects.Load(), "side effects")
		})
	}
}

func countedBash(t *testing.T, n *atomic.Int32) sdk.Backend {
	script, err := scripted.Parse([]byte(bash))
	require.NoError(t, err)
	return scripted.New(scripted.WithScript(script), scripted.WithEffect(func(string, string) error { n.Add(1); return nil }))
}
