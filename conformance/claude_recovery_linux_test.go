//go:build conformance

package conformance_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// TestASessionOutlivesItsAgent kills the agent in a turn, whose death is only to be
// reported: the turn ends with the reason, and the next process knows what was said before.
func TestASessionOutlivesItsAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.MaxRestarts, o.Recovery = 1, session.RecoverReport
	o.AllowedTools = []string{"Bash"}
	c := r.connect(o)
	_, result := r.ask(c, "my number is 4711 [[scn:echo noted]]")
	require.False(t, result.Failed())
	id := result.SessionID

	prompt, running := r.hold()
	turn := r.send(c, prompt)
	running()
	r.kill()
	_, err := turn.Result(r.ctx)
	var exit *sdk.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, "a turn", exit.During)

	_, result = r.ask(c, "and now? [[scn:text]]")
	assert.Equal(t, id, result.SessionID)
	history := texts(r.modelSaw("text"))
	assert.Contains(t, history, "user: my number is 4711")
	assert.Contains(t, history, "assistant: noted")
	r.close(c)
}

// kill kills the agent, and nothing that it has started.
func (r *rig) kill() {
	r.t.Helper()
	killed := 0
	r.wire.note("process", agentKilled)
	for _, p := range processesNaming(r.dir) {
		if strings.Contains(p.args, "stream-json") {
			require.NoError(r.t, syscall.Kill(p.pid, syscall.SIGKILL))
			killed++
		}
	}
	require.Positive(r.t, killed, "no agent runs")
}

// TestATurnOutlivesItsAgent kills the agent at moments of a turn, the first or a later
// one: the turn has its result once, and its tool runs once. The model is told that the
// agent has died, and makes no call of a tool that it is told of again.
func TestATurnOutlivesItsAgent(t *testing.T) {
	t.Parallel()
	// pay is a call that leaves a line, and then does not end.
	pay := func(r *rig) modelapi.Block {
		return shell("echo paid >> paid; " + r.holdCommand())
	}
	for name, c := range map[string]struct {
		reply func(r *rig) modelapi.Reply // of the model, in the first life
		// until waits for the moment of the death.
		until func(r *rig, c *sdk.Client, asked <-chan struct{})
		paid  int
	}{
		"the message has begun": {
			func(*rig) modelapi.Reply { return modelapi.Reply{Hang: true} },
			func(r *rig, c *sdk.Client, _ <-chan struct{}) {
				for m, err := range c.Messages(r.ctx) {
					require.NoError(r.t, err)
					if l, ok := m.(*protocol.CommandLifecycleMessage); ok && l.State == protocol.LifecycleStarted {
						return
					}
				}
			}, 0,
		},
		"the model is asked": {
			func(*rig) modelapi.Reply { return modelapi.Reply{Hang: true} },
			func(r *rig, _ *sdk.Client, _ <-chan struct{}) {
				_, err := r.model.Wait(r.ctx, func(q modelapi.Request) bool { return q.Marker.Scenario == "recover" })
				require.NoError(r.t, err)
			}, 0,
		},
		"streaming": {
			func(*rig) modelapi.Reply {
				return modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text(strings.Repeat("word ", 200))}, Chunks: 200, ChunkDelay: 100 * time.Millisecond}
			},
			func(r *rig, c *sdk.Client, _ <-chan struct{}) {
				for m, err := range c.Messages(r.ctx) {
					require.NoError(r.t, err)
					if e, ok := m.(*protocol.PartialAssistantMessage); ok && bytes.Contains(e.Raw(), []byte("text_delta")) {
						return
					}
				}
			}, 0,
		},
		"in a tool": {
			func(r *rig) modelapi.Reply { return modelapi.Reply{Blocks: []modelapi.Block{pay(r)}} },
			func(r *rig, _ *sdk.Client, _ <-chan struct{}) {
				_, err := r.model.Wait(r.ctx, func(q modelapi.Request) bool { return q.Path == "/running" })
				require.NoError(r.t, err)
			}, 1,
		},
		"a permission is asked for": {
			func(r *rig) modelapi.Reply {
				return modelapi.Reply{Blocks: []modelapi.Block{modelapi.ToolUse("Write", modelapi.Args{"file_path": r.at("paid"), "content": "paid\n"})}}
			},
			func(r *rig, _ *sdk.Client, asked <-chan struct{}) { await(r, "the permission callback", asked) }, 0,
		},
	} {
		for _, later := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, later %v", name, later), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				o := r.options()
				o.MaxRestarts, o.IncludePartialMessages = 1, name == "streaming"
				asked, asks := make(chan struct{}), atomic.Int32{}
				if name == "in a tool" {
					o.AllowedTools = []string{"Bash"}
				} else {
					o.CanUseTool = func(ctx context.Context, _ *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
						if asks.Add(1) == 1 {
							close(asked)
						}
						<-ctx.Done() // the request is void
						return sdk.Allow(), nil
					}
				}
				model := func(call modelapi.Call) modelapi.Reply {
					if bytes.Contains(call.Request.Body, []byte("Your process stopped")) || bytes.Contains(call.Request.Body, []byte("once more")) {
						return modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text("All done.")}}
					}
					return c.reply(r)
				}
				dead := make(chan struct{}) // the agent of the first life
				switch name {
				case "the message has begun": // it may have asked the model before it dies
					model = func(modelapi.Call) modelapi.Reply {
						select {
						case <-dead:
						case <-r.ctx.Done():
						}
						return modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text("All done.")}}
					}
				case "the model is asked", "streaming": // a lost message comes again as it was
					first := model
					calls := atomic.Int32{}
					model = func(call modelapi.Call) modelapi.Reply {
						if calls.Add(1) > 1 {
							return modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text("All done.")}}
						}
						return first(call)
					}
				}
				r.model.Script("recover", model, model, model, model, model)
				client := r.connect(o)
				if later {
					_, result := r.ask(client, "my number is 4711 [[scn:echo noted]]")
					require.False(t, result.Failed())
				}
				turn := r.send(client, "do it [[scn:recover]]")
				c.until(r, client, asked)
				r.kill()
				close(dead)
				died := time.Now()
				result, err := turn.Result(r.ctx)
				require.NoError(t, err)
				t.Logf("a result %v after the kill", time.Since(died).Round(time.Millisecond))
				assert.True(t, result.Recovered)
				assert.False(t, result.Failed())
				assert.Equal(t, "All done.", result.Text())
				if later {
					assert.Contains(t, texts(r.modelSaw("recover")), "user: my number is 4711")
				}
				paid, _ := os.ReadFile(r.at("paid")) // it need not exist
				assert.Equal(t, c.paid, bytes.Count(paid, []byte("paid")))
				r.eventually("what was sent", func(e session.Event) bool {
					sent, ok := e.(*session.Recovered)
					if ok {
						t.Log(sent)
					}
					return ok && sent.Message == turn.UUID()
				})
				_, result = r.ask(client, "and now? [[scn:text]]")
				assert.False(t, result.Failed())
				assert.False(t, result.Recovered)
				r.close(client)
			})
		}
	}
}

// TestAnIdleAgentThatDies is started again for the next message.
func TestAnIdleAgentThatDies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.MaxRestarts = 1
	c := r.connect(o)
	_, result := r.ask(c, "my number is 4711 [[scn:echo noted]]")
	id := result.SessionID
	require.NoError(t, c.AwaitIdle(r.ctx))
	r.kill()
	r.eventually("the death", func(e session.Event) bool { _, ok := e.(*session.Recovering); return ok })
	r.nothingRuns()
	assert.Equal(t, session.StateRecovering, c.State())
	_, result = r.ask(c, "and now? [[scn:text]]")
	assert.Equal(t, id, result.SessionID)
	assert.False(t, result.Recovered)
	assert.Contains(t, texts(r.modelSaw("text")), "assistant: noted")
	r.close(c)
}

// TestABranchOutlivesItsAgent: a session that was resumed in the middle of a history goes on
// with its own branch, and not with the one that was cut off.
func TestABranchOutlivesItsAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.connect(r.options())
	all, result := r.ask(c, "my number is 4711 [[scn:echo noted]]")
	at := ""
	for _, m := range all {
		if a, ok := m.(*sdk.AssistantMessage); ok {
			at = a.UUID
		}
	}
	require.NotEmpty(t, at)
	r.ask(c, "the old branch [[scn:echo old]]")
	r.close(c)

	o := r.options()
	o.MaxRestarts, o.Resume, o.ResumeSessionAt = 1, result.SessionID, at
	c = r.connect(o)
	r.ask(c, "the new branch [[scn:echo new]]")
	r.kill()
	r.eventually("the death", func(e session.Event) bool { _, ok := e.(*session.Recovering); return ok })
	_, result = r.ask(c, "and now? [[scn:text]]")
	require.False(t, result.Failed())
	history := texts(r.modelSaw("text"))
	assert.Contains(t, history, "user: my number is 4711")
	assert.Contains(t, history, "user: the new branch")
	assert.NotContains(t, history, "the old branch")
	r.close(c)
}

// TestAPassivatedSessionWakes: an idle agent ends, and its transcript with it is complete;
// the next message starts another one, which knows what was said before.
func TestAPassivatedSessionWakes(t *testing.T) {
	t.Parallel()
	for name, spoken := range map[string]bool{"after a turn": true, "before the first turn": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			c := r.connect(r.options())
			var id string
			if spoken {
				_, result := r.ask(c, "my number is 4711 [[scn:echo noted]]")
				require.False(t, result.Failed())
				id = result.SessionID
			}
			require.NoError(t, c.Passivate(r.ctx))
			assert.Equal(t, session.StatePassivated, c.State())
			assert.Empty(t, processesNaming(r.dir), "no process is left")

			_, result := r.ask(c, "and now? [[scn:text]]")
			require.False(t, result.Failed())
			if history := texts(r.modelSaw("text")); spoken {
				assert.Equal(t, id, result.SessionID)
				assert.Contains(t, history, "user: my number is 4711")
				assert.Contains(t, history, "assistant: noted")
			}
			r.close(c)
		})
	}
}

// TestTwoAgentsInOneSession: the second one is not started, as long as the first one runs.
func TestTwoAgentsInOneSession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.connect(r.options())
	_, result := r.ask(c, "my number is 4711 [[scn:echo noted]]")
	o := r.options()
	o.Resume = result.SessionID
	second := sdk.NewClient(o)
	var taken *session.LeaseError
	require.ErrorAs(t, second.Connect(r.ctx), &taken)
	assert.Equal(t, os.Getpid(), taken.Holder.PID)
	require.NoError(t, second.Close(r.ctx))
	r.close(c)

	o.Resume = result.SessionID
	again := r.connect(o)
	r.close(again)
}

// TestRerun kills the agent in a tool: the message goes to the next process as a new one,
// although its history has the first, and its tool runs again.
func TestRerun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.MaxRestarts, o.Recovery = 1, session.RecoverRerun
	o.AllowedTools = []string{"Bash"}
	var asked atomic.Int32
	model := func(call modelapi.Call) modelapi.Reply {
		switch asked.Add(1) {
		case 1:
			return modelapi.Reply{Blocks: []modelapi.Block{r.holding(nil)}}
		case 2:
			return modelapi.Reply{Blocks: []modelapi.Block{shell("echo paid >> paid")}}
		}
		return modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text("All done.")}}
	}
	r.model.Script("rerun", model, model, model, model)
	c := r.connect(o)
	r.ask(c, "my number is 4711 [[scn:echo noted]]") // so that the session is stored
	turn := r.send(c, "do it [[scn:rerun]]")
	_, err := r.model.Wait(r.ctx, func(q modelapi.Request) bool { return q.Path == "/running" })
	require.NoError(t, err)
	r.kill()
	result, err := turn.Result(r.ctx)
	require.NoError(t, err)
	assert.True(t, result.Recovered)
	assert.Equal(t, "All done.", result.Text())
	paid, err := os.ReadFile(r.at("paid"))
	require.NoError(t, err)
	assert.Equal(t, "paid\n", string(paid))
	r.eventually("what was sent", func(e session.Event) bool {
		sent, ok := e.(*session.Recovered)
		return ok && sent.Message == turn.UUID() && sent.Sent == session.SentRerun
	})
	r.close(c)
}
