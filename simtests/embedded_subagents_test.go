package simtests_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/simtests"
)

// foreman is a model that works with subagents: two that it waits for, of which each has
// another, and one in the background. It is a function of the conversation, and no two calls of a
// session are the same.
func foreman(r *modeltest.Request) *modeltest.Answer {
	n, said, job := 0, 0, ""
	for i, m := range r.Messages {
		if m.Role == model.Assistant {
			n, said = n+1, said+1
			continue
		}
		for _, b := range m.Blocks {
			name := jobIn.FindStringSubmatch(b.Text)
			sum := progress.FindStringSubmatch(b.Text)
			switch {
			case b.Kind != model.Text:
			case i == 0 && name != nil:
				job = name[1]
				if sum != nil { // of a conversation that was compacted
					n, _ = strconv.Atoi(sum[1]) // digits
				}
			case prompts.MatchString(b.Text):
				said = 0
			}
		}
	}
	switch {
	case strings.Contains(r.Prompt(), asksToSum):
		return modeltest.Say(modeltest.Text(fmt.Sprintf("<summary>Progress: %d steps</summary>", n)))
	case job != "":
		return labourer(job, n, r.N)
	}
	call := func(i int, background bool) model.Block {
		in := map[string]any{"description": "a job", "prompt": fmt.Sprintf("job %d-%d", n, i)}
		if !background {
			in["run_in_background"] = false
		}
		return modeltest.Call("Agent", in)
	}
	bash := func(format string) model.Block {
		return modeltest.Call("Bash", map[string]any{"command": fmt.Sprintf(format, n)})
	}
	last := r.Last()
	switch {
	case len(r.Messages) > 1 && r.Messages[len(r.Messages)-2].Role == model.Assistant && len(last.Blocks) == 1 && strings.Contains(last.Blocks[0].Text, "<task-notification>"):
		return modeltest.Say(modeltest.Text("I see"))
	case said == 0:
		return modeltest.Say(modeltest.Text("I ask others."), bash("cat a-%d"), call(0, false), call(1, false))
	case said == 1:
		return modeltest.Say(call(2, true), bash("pay %d"))
	case said == 2:
		return modeltest.Say(modeltest.Call("Write", map[string]any{"file_path": fmt.Sprintf("new-%d.txt", n), "content": fmt.Sprintf("content %d\n", n)}), bash("ship %d"))
	}
	return modeltest.Say(modeltest.Text("done"))
}

const asksToSum = "You now write the summary"

// jobIn is the task of a subagent, which its summary repeats.
var jobIn = regexp.MustCompile(`(?m)^job (\S+)$`)

// labourer is the subagent that does a job, in its nth answer. A fault may have spoilt the summary
// that says n, so it names the request in what it does.
func labourer(job string, n, request int) *modeltest.Answer {
	now := fmt.Sprintf("%s-at-%d", job, request)
	bash := func(what string) model.Block {
		return modeltest.Call("Bash", map[string]any{"command": what + " " + now})
	}
	switch {
	case n == 0:
		return modeltest.Say(modeltest.Thinking("what is it"), modeltest.Text("I look."), modeltest.Call("Read", map[string]any{"file_path": "a.txt"}), bash("cat b"))
	case n == 1: // a window of 12,000 tokens is full after it
		return &modeltest.Answer{Usage: model.Usage{Input: 11_000, Output: 5}, Blocks: []model.Block{
			bash("pay"), modeltest.Call("Write", map[string]any{"file_path": "made-" + now + ".txt", "content": "made by " + now + "\n"}),
			modeltest.Call("Edit", map[string]any{"file_path": "a.txt", "old_string": "end\n", "new_string": "line of " + now + "\nend\n"}), // as others do
		}}
	case n == 2 && (strings.Count(job, "-") < 2 || strings.Contains(job, "-1-0") && strings.Count(job, "-") < 5): // no more than three deep
		return modeltest.Say(modeltest.Call("Agent", map[string]any{"description": "a part", "prompt": "job " + job + "-0"}), bash("cat c"))
	}
	return modeltest.Say(modeltest.Text("report of " + job))
}

func TestSubagentsInACalmWorld(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(30), Cost: 8, Twice: 1}, func(w *simtests.World) {
		dir := workplace(w)
		s := &modeltest.Server{Script: foreman}
		c := w.OpenEmbedded(&sdk.Options{Cwd: dir, CanUseTool: allowAll}, &simtests.Embedded{
			Server: s, OpenAI: w.Rand().IntN(2) == 0, Rests: w.Rand().IntN(2) == 0, Unasked: []string{"cat "},
		})
		for range 2 {
			turn, err := c.Send(w.Context(), sdk.UserText("work"))
			require.NoError(w, err)
			r, err := turn.Result(w.Context())
			require.NoError(w, err)
			assert.Equal(w, "done", r.Result)
			_, err = c.AwaitDone(w.Context())
			require.NoError(w, err)
			require.NoError(w, c.AwaitIdle(w.Context()))
		}
		require.NoError(w, c.Close(w.Context()))
		made, err := filepath.Glob(filepath.Join(dir, "made-*.txt"))
		require.NoError(w, err)
		assert.Len(w, made, 14, "of two turns, each with three, one of each, and one of one of these")
	})
}

// subagentWork is a user of an agent with subagents, who interrupts and stops some of them.
func subagentWork(w *simtests.World) {
	dir, sums := workplace(w), 0
	script := func(r *modeltest.Request) *modeltest.Answer {
		if strings.Contains(r.Prompt(), asksToSum) {
			sums++
		}
		return foreman(r)
	}
	e := &simtests.Embedded{
		Server: &modeltest.Server{Script: script}, OpenAI: w.Rand().IntN(4) == 0, Rests: w.Rand().IntN(2) == 0, Unasked: []string{"cat "},
		Run: func(command string) simtests.Ran {
			return simtests.Ran{Output: command + "\n", Takes: time.Duration(w.Rand().IntN(3)) * time.Second}
		},
	}
	w.Faults(embeddedWeather()...)
	if w.Rand().IntN(2) == 0 {
		e.Config.Window, e.Config.MaxTokens = 12_000, 1000
	}
	if w.Rand().IntN(3) == 0 {
		e.DieAt(1+w.Rand().IntN(200), w.Rand().IntN(2) == 0)
	}
	id := ""
	for range 1 + w.Rand().IntN(2) {
		next := subagentTalk(w, e, dir, id)
		if next == "" {
			break
		}
		id = next
	}
	w.Run()
	if after := e.AfterDeath(); after != nil && id != "" {
		w.Sometimes("the host dies with subagents, and the next one goes on", subagentTalk(w, after, dir, id) != "")
	}
	w.Run()
	w.Sometimes("the conversation of a subagent is compacted", sums > 0)
}

// subagentTalk is one client. It returns the session's id.
func subagentTalk(w *simtests.World, e *simtests.Embedded, dir, resume string) string {
	var tasks []string
	o := &sdk.Options{
		Cwd: dir, Resume: resume, MaxRestarts: w.Rand().IntN(3),
		CanUseTool: func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			switch w.Rand().IntN(8) {
			case 0:
				return sdk.Deny("not now"), nil
			case 1:
				return sdk.DenyAndStop("not at all"), nil
			}
			return sdk.Allow(), nil
		},
		OnMessage: func(m sdk.Message) {
			if m, ok := m.(*protocol.TaskStartedMessage); ok {
				tasks = append(tasks, m.TaskID)
			}
		},
	}
	if w.Rand().IntN(3) == 0 {
		o.MaxBudgetUSD = sdk.Some(0.0004 * float64(4+w.Rand().IntN(30)))
	}
	if w.Rand().IntN(2) == 0 {
		o.Hooks = []sdk.Hook{
			sdk.OnPreToolUse(func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
				switch n := w.Rand().IntN(8); {
				case n == 0:
					return sdk.DenyPreToolUse("a hook says no"), nil
				case n == 1 && in.ToolName == "Bash":
					return sdk.PreToolUseOutput{UpdatedInput: amended(w, in.ToolInput, "carefully")}, nil
				}
				return sdk.PreToolUseOutput{}, nil
			}),
			sdk.OnSubagentStop(func(_ context.Context, in *protocol.SubagentStopInput) (sdk.FeedbackOutput, error) {
				if !in.StopHookActive && w.Rand().IntN(3) == 0 {
					return sdk.FeedbackOutput{Decision: protocol.DecisionBlock, Reason: "look again"}, nil
				}
				return sdk.FeedbackOutput{}, nil
			}),
		}
	}
	c, err := w.DialEmbedded(o, e)
	if err != nil {
		return ""
	}
	w.Go(func() { _ = w.Read(c, nil) }) // its error is that of the session
	for range 1 + w.Rand().IntN(2) {
		turn, err := c.Send(w.Context(), sdk.UserText(task(w)))
		if err != nil {
			break
		}
		ctx, cancel := context.WithTimeout(w.Context(), 6*time.Hour) // longer than all limits together
		switch w.Rand().IntN(5) {
		case 0:
			w.Sleep(time.Duration(w.Rand().IntN(12000)) * time.Millisecond)
			_, _ = c.Interrupt(ctx) // it may have died
		case 1:
			w.Sleep(time.Duration(w.Rand().IntN(12000)) * time.Millisecond)
			if len(tasks) > 0 {
				_ = c.StopTask(ctx, tasks[w.Rand().IntN(len(tasks))]) // likewise
			}
		}
		r, err := turn.Result(ctx)
		if ctx.Err() != nil {
			w.Errorf("liveness: a turn has not ended in six hours")
		}
		if err == nil && r.SubagentStats != nil {
			s := r.SubagentStats
			w.Sometimes("a subagent is stopped", s.Killed.User > 0)
			w.Sometimes("a subagent fails", s.Failed > 0)
			if ended := s.Completed + s.Failed + s.Killed.User + s.Killed.Parent + s.Killed.System; ended > s.Spawned {
				b, _ := json.Marshal(s) // numbers
				w.Errorf("usage: more subagents have ended than were started: %s", b)
			}
		}
		w.Sometimes("a turn with subagents ends well", err == nil && !r.Failed())
		cancel()
		if w.Rand().IntN(2) == 0 {
			ctx, cancel := context.WithTimeout(w.Context(), 6*time.Hour)
			_, _ = c.AwaitDone(ctx) // it may have died
			if ctx.Err() != nil {
				w.Errorf("liveness: a subagent in the background has not ended in six hours")
			}
			cancel()
		}
	}
	_ = c.Close(w.Context()) // one that has died says so
	return c.SessionID()
}

func TestSubagents(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(40), Cost: 6, First: 3_000_000}, subagentWork)
}

// TestPlantedBugsOfSubagents is for tools/simmutate.
func TestPlantedBugsOfSubagents(t *testing.T) {
	t.Parallel()
	planted(t, 20, subagentWork)
}
