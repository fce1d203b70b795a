package sdk_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// flusher is an agent that notes what it is asked to flush, and when its stdin ends.
type flusher struct {
	dialect agent.Dialect
	flush   func(f *flusher, r *agent.Request) bool
	turn    func(*agent.Turn) error // nil: no output

	mu  sync.Mutex
	saw []string
}

func (*flusher) AgentName() string { return "flusher" }

func (f *flusher) Serve(l agent.Launch, p agent.Port) agent.Exit {
	x := agent.Open(l, p, agent.Config{
		Dialect: f.dialect,
		Turn: func(t *agent.Turn) error {
			if f.turn == nil {
				return nil
			}
			return f.turn(t)
		},
		Control: func(r *agent.Request) bool {
			if r.Subtype == "initialize" || r.Subtype == "interrupt" {
				return false
			}
			f.note(r.Subtype)
			return f.flush != nil && f.flush(f, r)
		},
		At: func(m agent.Moment) *agent.Exit {
			if m.Point == agent.AfterResult {
				f.note("result")
			}
			return nil
		},
	}).Run()
	f.note("end")
	return x
}

func (f *flusher) note(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.saw = append(f.saw, what)
}

func (f *flusher) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.saw)
}

// gateInFlush answers a flush when the host has answered requests of the agent's.
func gateInFlush(f *flusher, r *agent.Request) bool {
	if r.Subtype != "flush_memory" {
		return false
	}
	r.Later(func(s *agent.Strand) {
		for _, ask := range []agent.Object{
			{"subtype": "can_use_tool", "tool_name": "Write", "tool_use_id": "t", "input": agent.Object{"file_path": "/m"}},
			{"subtype": "memory_should_generate", "callbackId": "memory_should_generate_0", "input": agent.Object{}},
		} {
			a, err := s.Ask(ask, 0)
			if err != nil || !a.OK {
				f.note("refused: " + a.Error)
				return
			}
			f.note(string(a.Body))
		}
		r.Serve()
	})
	return true
}

func TestFlushBeforeTheEndOfStdin(t *testing.T) {
	t.Parallel()
	deaf := func(*flusher, *agent.Request) bool { return true }
	const allowed = `{"behavior":"allow","updatedInput":{"file_path":"/m"},"toolUseID":"t"}`
	for name, c := range map[string]struct {
		agent *flusher
		off   bool
		want  []string
		limit time.Duration
	}{
		"both, in order": {&flusher{dialect: agent.Qoder}, false, []string{"result", "flush_memory", "flush_skill_evolution", "end"}, 0},
		"nothing is on":  {&flusher{dialect: agent.Qoder}, true, []string{"result", "end"}, 0},
		"Claude Code":    {&flusher{dialect: agent.Claude}, true, []string{"result", "end"}, 0},
		"gates meanwhile": {&flusher{dialect: agent.Qoder, flush: gateInFlush}, false,
			[]string{"result", "flush_memory", allowed, `{"run":true}`, "flush_skill_evolution", "end"}, 0},
		"no answer": {&flusher{dialect: agent.Qoder, flush: deaf}, false, []string{"result", "flush_memory", "end"}, 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(w *world) {
				f := &flusher{dialect: c.agent.dialect, flush: c.agent.flush}
				o := &sdk.Options{
					Runtime: w.rt, Backend: sdk.InMemory(f, f.dialect), Graces: session.Graces{Flush: c.limit},
					CanUseTool: func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
						return sdk.Allow(), nil
					},
				}
				if f.dialect == agent.Qoder {
					o.Auth = sdk.QoderCLIAuth()
				}
				if !c.off {
					o.Memory, o.Evolution = &session.Memory{}, &session.Evolution{Skill: &session.SkillEvolution{}}
					o.ShouldGenerateMemory = func(context.Context, *protocol.TurnInfo) (protocol.ShouldRunReply, error) {
						return protocol.ShouldRunReply{Run: true}, nil
					}
				}
				l := record(o)
				start := w.rt.Clock().Now()
				_, err := sdk.Run(w.Context(), "hi", o)
				require.NoError(w, err)
				warnings := 0
				for _, e := range w.events(l) {
					if _, ok := e.(*session.WarningIssued); ok {
						warnings++
					}
				}
				assert.Equal(w, c.want, f.seen())
				assert.Equal(w, c.limit > 0, warnings > 0)
				if w.sim != nil {
					assert.Less(w, w.rt.Clock().Now().Sub(start), 8*time.Second)
				}
			})
		})
	}
}

// tooLate is an answer that an agent gets while its session closes. A busy machine may hold an
// agent up for longer than it takes to be quiet.
const tooLate = "too late"

func (f *flusher) noteAnswer(a agent.Answer) {
	if a.Closed || strings.Contains(string(a.Body), "the session is closing") {
		f.note(tooLate)
		return
	}
	f.note(string(a.Body))
}

// TestAGateAfterTheResult is an agent that asks for a permission when its turn is
// over, and has nothing to flush.
func TestAGateAfterTheResult(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]time.Duration{"at once": 0, "a little later": 20 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(w *world) {
				f := &flusher{dialect: agent.Qoder}
				f.turn = func(t *agent.Turn) error {
					if err := t.Finish(agent.Result{}); err != nil {
						return err
					}
					for range 3 {
						if err := t.Sleep(pause); err != nil {
							return err
						}
						a, err := t.Strand().Ask(agent.Object{"subtype": "can_use_tool", "tool_name": "Write", "tool_use_id": "t", "input": agent.Object{}}, 0)
						if err != nil {
							return err
						}
						f.noteAnswer(a)
					}
					return nil
				}
				_, err := sdk.Run(w.Context(), "hi", &sdk.Options{
					Runtime: w.rt, Backend: sdk.InMemory(f, f.dialect), Auth: sdk.QoderCLIAuth(),
					CanUseTool: func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
						return sdk.Allow(), nil
					},
				})
				require.NoError(w, err)
				const allowed = `{"behavior":"allow","updatedInput":{},"toolUseID":"t"}`
				seen := f.seen()
				for i := len(seen) - 2; w.sim == nil && i > 0 && seen[i] == tooLate; i-- {
					seen[i] = allowed
				}
				assert.Equal(w, []string{"result", allowed, allowed, allowed, "end"}, seen)
			})
		})
	}
}

// TestAnAgentThatIsNotQuiet continues to ask after its result. Whether it is quiet is
// looked at once at a time, however much it asks.
func TestAnAgentThatIsNotQuiet(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		requests := 300
		if w.sim == nil {
			requests = 20 // in time that passes
		}
		f := &flusher{dialect: agent.Qoder}
		f.turn = func(t *agent.Turn) error {
			if err := t.Finish(agent.Result{}); err != nil {
				return err
			}
			for range requests {
				if err := t.Sleep(5 * time.Millisecond); err != nil {
					return err
				}
				a, err := t.Strand().Ask(agent.Object{"subtype": "can_use_tool", "tool_name": "Write", "tool_use_id": "t", "input": agent.Object{}}, 0)
				if err != nil {
					return err
				}
				f.noteAnswer(a)
			}
			return nil
		}
		answered := 0
		_, err := sdk.Run(w.Context(), "hi", &sdk.Options{
			Runtime: w.rt, Backend: sdk.InMemory(f, f.dialect), Auth: sdk.QoderCLIAuth(),
			CanUseTool: func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				answered++ // one after the other
				return sdk.Allow(), nil
			},
		})
		require.NoError(w, err)
		if w.sim == nil {
			late := 0
			for _, answer := range f.seen() {
				if answer == tooLate {
					late++
				}
			}
			assert.GreaterOrEqual(w, answered+late, requests)
			return
		}
		assert.Equal(w, requests, answered)
		assert.Less(w, w.sim.Steps(), 25*requests, "timers that look for the same")
	})
}
