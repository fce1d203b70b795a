package simtests_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/simtests"
)

// prompts are the user's; behind a result, an API may have a reminder before it in the same text.
var prompts = regexp.MustCompile(`(?m)^work`)

// worker is a model that works in four steps, and then says that it is done. It is a function
// of the conversation, so that a repeated request has the same answer, and no two calls of a
// session are the same.
func worker(r *modeltest.Request) *modeltest.Answer {
	n, said, prompt := 0, 0, "" // answers, and those since the prompt
	for i, m := range r.Messages {
		if m.Role == model.Assistant {
			n, said = n+1, said+1
			continue
		}
		for j, b := range m.Blocks {
			switch ended := strings.Contains(b.Text, "<task-notification>"); {
			case b.Kind != model.Text:
			case prompts.MatchString(b.Text):
				prompt, said = b.Text, 0
			case strings.Contains(b.Text, "hook additional context: "):
			case ended && i > 0 && j == 0 && r.Messages[i-1].Role == model.Assistant: // a turn of the agent's own
				said = 10
			case ended:
			default:
				said = 0
			}
		}
	}
	bash := func(format string) model.Block {
		return modeltest.Call("Bash", map[string]any{"command": fmt.Sprintf(format, n)})
	}
	switch {
	case said == 0 && n%2 == 1:
		return modeltest.Say(modeltest.Thinking("where am I"), bash("cat a.txt # %d"))
	case said == 0:
		return modeltest.Say(modeltest.Thinking("where am I"), modeltest.Text("I look."), modeltest.Call("Read", map[string]any{"file_path": "a.txt"}), bash("cat a-%d"))
	case said == 1 && strings.Contains(prompt, "watch"):
		return modeltest.Say(bash("cat b-%d"), modeltest.Call("Bash", map[string]any{"command": fmt.Sprintf("watch %d", n), "run_in_background": true}))
	case said == 1:
		return modeltest.Say(bash("cat b-%d"), bash("cat c-%d"), bash("pay %d"))
	case said == 2 && n%3 == 1:
		return modeltest.Say(modeltest.Call("Write", map[string]any{"file_path": "a.txt", "content": fmt.Sprintf("anew %d\nend\n", n)}), bash("pay %d"))
	case said == 2:
		return modeltest.Say(modeltest.Text("I write."),
			modeltest.Call("Write", map[string]any{"file_path": fmt.Sprintf("new-%d.txt", n), "content": fmt.Sprintf("content %d\n", n)}),
			modeltest.Call("Edit", map[string]any{"file_path": "a.txt", "old_string": "end\n", "new_string": fmt.Sprintf("line %d\nend\n", n)}))
	case said == 3 && slices.Contains(r.Tools, "mcp__shop__buy"):
		return modeltest.Say(bash("ship %d"), modeltest.Call("mcp__shop__buy", map[string]any{"item": fmt.Sprint("tea ", n)}),
			modeltest.Call("Bash", map[string]any{"command": fmt.Sprintf("serve %d", n), "run_in_background": true}))
	case said == 3:
		return modeltest.Say(bash("ship %d"))
	}
	return modeltest.Say(modeltest.Text(fmt.Sprintf("done after %d", n)))
}

// workplace is a directory with a file.
func workplace(w *simtests.World) string {
	dir := filepath.Join(w.Dir(), "work")
	require.NoError(w, os.MkdirAll(dir, 0o700))
	require.NoError(w, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\nend\n"), 0o600))
	return dir
}

func TestEmbeddedInACalmWorld(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(40), Cost: 5, Twice: 1}, func(w *simtests.World) {
		dir := workplace(w)
		s := &modeltest.Server{Script: worker}
		c := w.OpenEmbedded(&sdk.Options{Cwd: dir, CanUseTool: allowAll}, &simtests.Embedded{
			Server: s, OpenAI: w.Rand().IntN(2) == 0, Rests: w.Rand().IntN(2) == 0, Unasked: []string{"cat "},
		})
		for i := range 2 {
			turn, err := c.Send(w.Context(), sdk.UserText("work"))
			require.NoError(w, err)
			r, err := turn.Result(w.Context())
			require.NoError(w, err)
			assert.Equal(w, fmt.Sprintf("done after %d", 4+5*i), r.Result)
		}
		require.NoError(w, c.Close(w.Context()))
		content, err := os.ReadFile(filepath.Join(dir, "a.txt"))
		require.NoError(w, err)
		assert.Equal(w, "anew 7\nend\n", string(content))
	})
}

// embeddedWeather is all that goes wrong about an embedded agent.
func embeddedWeather() []simtests.Fault {
	all := append(simtests.ModelFaults(0.03), simtests.CommandFaults(0.05)...)
	return append(append(all, simtests.DiskFaults(0.01)...),
		simtests.AgentCrash(0.01), simtests.CrashInTool(0.03), simtests.CrashWaiting(0.02, 5*time.Second), simtests.CancelInFlight(0.05),
		simtests.StallStdout(0.01, time.Second), simtests.BlockStdin(0.03, 3*time.Second), simtests.SplitWrites(0.02),
		simtests.SlowCallback(0.1, "", 20*time.Second), simtests.PanicCallback(0.03, ""), simtests.ErrorCallback(0.05, ""), simtests.ZeroCallback(0.03, ""),
		simtests.KillActor(0.004), simtests.KillInside(0.01), simtests.ClockJump(0.002, time.Minute), simtests.HostShutdown(0.0005), simtests.StayAfterEOF(0.1),
	)
}

// embeddedWork is a user of embedded agents, who interrupts, passivates, resumes and forks.
func embeddedWork(w *simtests.World) {
	dir := workplace(w)
	e := &simtests.Embedded{
		Server: &modeltest.Server{Script: worker}, OpenAI: w.Rand().IntN(4) == 0, Rests: w.Rand().IntN(2) == 0, Unasked: []string{"cat "},
		Run: func(command string) simtests.Ran {
			out := command + "\n"
			if strings.HasPrefix(command, "cat a.txt") {
				content, err := os.ReadFile(filepath.Join(dir, "a.txt"))
				require.NoError(w, err)
				out = string(content)
			}
			return simtests.Ran{Output: out, Takes: time.Duration(w.Rand().IntN(3)) * time.Second}
		},
	}
	e.Config.Retries = []int{0, 0, 1, -1}[w.Rand().IntN(4)]
	w.Faults(embeddedWeather()...)
	switch w.Rand().IntN(8) {
	case 0:
		w.Faults(simtests.ModelFault(0.8, "ModelDown", func(*rand.Rand) modeltest.Fault { return modeltest.Fault{Status: 529} }))
	case 1:
		w.Faults(simtests.ModelFault(0.6, "ModelCutsOff", func(rng *rand.Rand) modeltest.Fault { return modeltest.Fault{BreakAt: 700 + rng.IntN(500)} }))
	}
	if w.Rand().IntN(3) == 0 {
		e.DieAt(1+w.Rand().IntN(120), w.Rand().IntN(2) == 0)
	}
	if w.Rand().IntN(2) == 0 {
		w.Go(func() { outsider(w, filepath.Join(dir, "a.txt")) })
	}
	s := &sales{bought: map[string]bool{}, allowed: map[string]bool{}}
	id, fork := "", false
	for range 1 + w.Rand().IntN(3) {
		next := embeddedTalk(w, e, s, dir, id, fork)
		if next == "" {
			break
		}
		id, fork = next, w.Rand().IntN(3) == 0
	}
	w.Run()
	if after := e.AfterDeath(); after != nil && id != "" {
		clear(s.bought) // which of it came before the death is not known
		w.Sometimes("the host dies, and the next one goes on", embeddedTalk(w, after, s, dir, id, false) != "")
	}
	w.Run()
}

// sales are what the host's MCP tool has done.
type sales struct{ bought, allowed map[string]bool }

// shop is the host's MCP server. It sells each item once in a session, and only if it was allowed.
func (s *sales) shop(w *simtests.World) *sdk.MCPServer {
	type in struct {
		Item string `json:"item"`
	}
	server, err := sdk.NewMCPServer("shop", "1", sdk.NewTool("buy", "buys an item", func(_ context.Context, in in) (*sdk.ToolResult, error) {
		if s.bought[in.Item] {
			w.Errorf("once: %s was bought before", in.Item)
		}
		if !s.allowed[in.Item] {
			w.Errorf("gated: %s is bought, and was not allowed", in.Item)
		}
		s.bought[in.Item] = true
		return sdk.Text("bought"), nil
	}))
	require.NoError(w, err)
	return server
}

// outsider is another program that changes a file now and then.
func outsider(w *simtests.World, name string) {
	for i := range 1 + w.Rand().IntN(8) {
		w.Sleep(time.Duration(w.Rand().IntN(3000)) * time.Millisecond)
		content, err := os.ReadFile(name)
		require.NoError(w, err)
		require.NoError(w, os.WriteFile(name, fmt.Appendf(content, "another program's line %d\n", i), 0o600))
	}
}

// task is a prompt for the worker: each differs.
func task(w *simtests.World) string {
	return fmt.Sprintf("work%s on T-%09d", []string{"", " and watch"}[w.Rand().IntN(2)], w.Rand().IntN(1_000_000_000))
}

// meddlers are hooks that add to what the model reads, change results, and end turns or prevent that.
func meddlers(w *simtests.World) []sdk.Hook {
	say := func(event, text string) sdk.Hook {
		return sdk.OnHookEvent(event, func(context.Context, *session.HookCall) (json.RawMessage, error) {
			switch n := w.Rand().IntN(1_000_000_000); n % 12 {
			case 0:
				w.Sometimes("a hook meddles", true)
				return json.RawMessage(text), nil
			case 1, 2:
				return json.RawMessage(fmt.Sprintf(`{"hookSpecificOutput":{"hookEventName":%q,"additionalContext":"note %09d"}}`, event, n)), nil
			}
			return json.RawMessage(`{}`), nil
		})
	}
	return []sdk.Hook{
		say("UserPromptSubmit", `{"decision":"block","reason":"not this"}`),
		say("PostToolUse", `{"continue":false,"stopReason":"enough"}`),
		say("PostToolUse", `{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":"another text"}}`),
		sdk.OnStop(func(_ context.Context, in *protocol.StopInput) (sdk.FeedbackOutput, error) {
			if !in.StopHookActive && w.Rand().IntN(3) == 0 {
				return sdk.FeedbackOutput{Decision: protocol.DecisionBlock, Reason: "look again"}, nil
			}
			return sdk.FeedbackOutput{}, nil
		}),
	}
}

// amended is the input of a command with a word more.
func amended(w *simtests.World, input json.RawMessage, word string) json.RawMessage {
	var in struct{ Command string }
	require.NoError(w, json.Unmarshal(input, &in))
	return json.RawMessage(fmt.Sprintf(`{"command":%q}`, in.Command+" "+word))
}

// embeddedTalk is one client. It returns the session's id.
func embeddedTalk(w *simtests.World, e *simtests.Embedded, s *sales, dir, resume string, fork bool) string {
	o := &sdk.Options{
		OnEvent: func(r sdk.EventRecord) {
			if e, ok := r.Event.(*session.TurnStalled); ok {
				w.Errorf("liveness: a turn stands still for %v, and nothing that happens here takes so long", e.Idle)
			}
		},
		Cwd: dir, Resume: resume, ForkSession: fork && resume != "", MaxRestarts: w.Rand().IntN(3), MaxTurns: sdk.Some(4 + w.Rand().IntN(12)),
		CanUseTool: func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			var bought struct{ Item string }
			switch n := w.Rand().IntN(8); {
			case n < 2:
				return sdk.Deny("not now"), nil
			case r.ToolName == "mcp__shop__buy":
				require.NoError(w, json.Unmarshal(r.Input, &bought))
				s.allowed[bought.Item] = true
			case n == 2 && r.ToolName == "Bash":
				return sdk.AllowInput(amended(w, r.Input, "safely")), nil
			}
			return sdk.Allow(), nil
		},
	}
	if w.Rand().IntN(3) == 0 {
		o.SDKMCPServers = []*sdk.MCPServer{s.shop(w)}
	}
	if e.Tools != nil {
		server := sdk.MCPServerConfig{Command: "shop-server"}
		if w.Rand().IntN(3) == 0 { // a person is asked despite the rule
			server.Tools = []session.MCPToolPolicy{{Name: "buy", PermissionPolicy: session.AlwaysAsk}}
			o.AllowedTools = []string{"mcp__shop__buy"}
		}
		o.SDKMCPServers, o.MCPServers = nil, map[string]sdk.MCPServerConfig{"shop": server}
	}
	if w.Rand().IntN(4) == 0 {
		o.MaxBudgetUSD = sdk.Some(0.0004 * float64(1+w.Rand().IntN(12)))
	}
	if w.Rand().IntN(2) == 0 {
		o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			switch n := w.Rand().IntN(8); {
			case n == 0:
				return sdk.DenyPreToolUse("a hook says no"), nil
			case n == 1 && in.ToolName == "Bash":
				return sdk.PreToolUseOutput{UpdatedInput: amended(w, in.ToolInput, "carefully")}, nil
			}
			return sdk.PreToolUseOutput{}, nil
		})}
	}
	if w.Rand().IntN(3) == 0 {
		o.Hooks = append(o.Hooks, meddlers(w)...)
	}
	if w.Rand().IntN(4) == 0 {
		o.FallbackModel = "claude-haiku-4-5"
	}
	if o.MaxRestarts > 0 && w.Rand().IntN(2) == 0 {
		o.Recovery = []session.Recovery{session.RecoverContinue, session.RecoverRerun, session.RecoverReport}[w.Rand().IntN(3)]
	}
	c, err := w.DialEmbedded(o, e)
	if err != nil {
		return ""
	}
	w.Go(func() { _ = w.Read(c, nil) }) // its error is that of the session
	for range 1 + w.Rand().IntN(3) {
		turn, err := c.Send(w.Context(), sdk.UserText(task(w)))
		if err != nil {
			break
		}
		if w.Rand().IntN(4) == 0 {
			w.Go(func() {
				w.Sleep(time.Duration(w.Rand().IntN(4000)) * time.Millisecond)
				_, _ = c.Send(w.Context(), sdk.UserText(task(w))) // it may have died
			})
		}
		ctx, cancel := context.WithTimeout(w.Context(), 3*time.Hour) // longer than all limits together
		if w.Rand().IntN(3) == 0 {
			w.Sleep(time.Duration(w.Rand().IntN(8000)) * time.Millisecond)
			_, _ = c.Interrupt(ctx) // it may have died
		}
		r, err := turn.Result(ctx)
		if ctx.Err() != nil {
			w.Errorf("liveness: a turn has not ended in three hours")
		}
		cancel()
		w.Sometimes("a turn ends well", err == nil && !r.Failed())
		w.Sometimes("a turn fails", err != nil || r.Failed())
		if w.Rand().IntN(4) == 0 {
			_ = c.Passivate(w.Context()) // it may be in use, or over
		}
	}
	_ = c.Close(w.Context()) // one that has died says so
	return c.SessionID()
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(40), Cost: 4, First: 2_000_000}, embeddedWork)
}

// TestPlantedBugsOfEmbedded is for tools/simmutate.
func TestPlantedBugsOfEmbedded(t *testing.T) {
	t.Parallel()
	planted(t, 20, embeddedWork)
}

// planted looks for a bug that tools/simmutate has planted in the embedded agent, and keeps nothing.
func planted(t *testing.T, seeds int, work func(*simtests.World)) {
	t.Helper()
	simtests.Explore(t, simtests.Config{Seeds: fewer(seeds), Cost: 10, Twice: -1, Shrink: -1, DoNotKeep: true}, work)
}
