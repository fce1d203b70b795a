//go:build conformance

package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// noAsk is for tests in which nothing is left to ask.
func (r *rig) noAsk() sdk.CanUseTool {
	return func(_ context.Context, ask *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		r.t.Errorf("asked for %s", ask.ToolName)
		return sdk.Deny("the test does not expect this"), nil
	}
}

func (r *rig) denyAll(message string) sdk.CanUseTool {
	return func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		return sdk.Deny(message), nil
	}
}

func TestPermissionAllowed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var asked atomic.Int32
	o := r.options()
	o.CanUseTool = func(_ context.Context, ask *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		asked.Add(1)
		assert.Equal(t, "Bash", ask.ToolName)
		assert.Equal(t, "touch allowed", command(t, ask.Input))
		assert.NotEmpty(t, ask.ToolUseID)
		return sdk.Allow(), nil
	}
	all, result := r.once(o, r.touch("allowed"))
	assert.EqualValues(t, 1, asked.Load())
	assert.FileExists(t, r.at("allowed"))
	assert.False(t, r.toolResult(all).IsError)
	assert.Empty(t, result.PermissionDenials)
}

func checkPermissionAllowedWithAnotherInput(t *testing.T, rel release) {
	r := rel.rig(t)
	o := r.options()
	o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		return sdk.AllowInput(input(t, "touch instead")), nil
	}
	all, _ := r.once(o, r.touch("original"))
	assert.FileExists(t, r.at("instead"))
	assert.NoFileExists(t, r.at("original"))
	use := sdk.ToolUses(only[*sdk.AssistantMessage](all)[0])[0]
	assert.Equal(t, "touch original", command(t, use.Input), "the message shows what the model wrote")
}

func checkPermissionDenied(t *testing.T, rel release) {
	r := rel.rig(t)
	o := r.options()
	o.CanUseTool = r.denyAll("not on a Sunday")
	all, result := r.once(o, r.touch("denied"))
	assert.NoFileExists(t, r.at("denied"))
	told := r.toolResult(all)
	assert.True(t, told.IsError)
	assert.Equal(t, "not on a Sunday", told.Content.Text())
	require.Len(t, result.PermissionDenials, 1)
	assert.Equal(t, "Bash", result.PermissionDenials[0].ToolName)
	assert.Equal(t, told.ToolUseID, result.PermissionDenials[0].ToolUseID)
	assert.False(t, result.Failed(), "the turn goes on")
	seen := r.modelSaw("touch").ToolResults()
	require.Len(t, seen, 1)
	assert.Equal(t, "not on a Sunday", seen[0].Text)
	assert.True(t, seen[0].IsError)
}

func TestPermissionDeniedWithInterrupt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		return sdk.PermissionResult{Message: "stop it", Interrupt: true}, nil
	}
	c := r.connect(o)
	all, result := r.ask(c, r.touch("denied"))
	assert.NoFileExists(t, r.at("denied"))
	assert.True(t, r.toolResult(all).IsError)
	assert.Equal(t, "error_during_execution", result.Subtype)
	assert.Equal(t, "aborted_tools", result.TerminalReason)
	assert.Len(t, r.model.Requests(), 1, "the model has no say in it")
	_, after := r.ask(c, "and now [[scn:text]]")
	assert.False(t, after.Failed(), "the session goes on")
	r.close(c)
}

// A gate that does not decide is a gate that denies, in words that do not tell
// the model what went wrong in the host.
func checkPermissionCallbackThatDoesNotDecide(t *testing.T, rel release) {
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	for name, decide := range map[string]sdk.CanUseTool{
		"zero": func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.PermissionResult{}, nil
		},
		"error": func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.Allow(), errors.New("secret trouble")
		},
		"panic": func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			panic("secret trouble")
		},
		"never": func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			<-never
			return sdk.Allow(), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rel.rig(t)
			o := r.options()
			o.CanUseTool = decide
			if name == "never" {
				o.PermissionTimeout = 500 * time.Millisecond
			}
			all, result := r.once(o, r.touch("denied"))
			assert.NoFileExists(t, r.at("denied"))
			told := r.toolResult(all)
			assert.True(t, told.IsError)
			assert.NotContains(t, told.Content.Text(), "secret")
			assert.Len(t, result.PermissionDenials, 1)
			assert.False(t, result.Failed())
			if name == "zero" {
				assert.Empty(t, r.failed())
			} else {
				assert.Len(t, r.failed(), 1)
			}
		})
	}
}

// About calls of one message that only read the agent asks at once, about
// others one after another; each question is answered for itself.
func TestPermissionForParallelCalls(t *testing.T) {
	t.Parallel()
	for name, readOnly := range map[string]bool{"read-only": true, "others": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			options := []sdk.ToolOption{sdk.AlwaysLoad()}
			if readOnly {
				options = append(options, sdk.ReadOnly())
			}
			var open, asked atomic.Int32
			all := make(chan struct{}) // closed when all three are open
			o := r.options()
			o.SDKMCPServers = []*sdk.MCPServer{r.server("srv", sdk.NewTool("echo", "Says it again.", echo, options...))}
			o.CanUseTool = func(ctx context.Context, ask *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				asked.Add(1)
				if n := open.Add(1); !readOnly {
					assert.EqualValues(t, 1, n, "one at a time")
				} else if n == 3 {
					close(all)
				}
				defer open.Add(-1)
				if readOnly {
					select {
					case <-all:
					case <-ctx.Done():
						return sdk.PermissionResult{}, ctx.Err()
					}
				}
				var in echoInput
				if err := json.Unmarshal(ask.Input, &in); err != nil || in.X == "two" {
					return sdk.Deny("not two"), err
				}
				return sdk.Allow(), nil
			}
			call := func(x string) modelapi.Block { return modelapi.ToolUse("mcp__srv__echo", modelapi.Args{"x": x}) }
			_, result := r.once(o, r.calls(call("one"), call("two"), call("three")))
			assert.EqualValues(t, 3, asked.Load())
			assert.Len(t, result.PermissionDenials, 1)
			told := r.told() // in the order in which they came
			slices.SortFunc(told, func(a, b modelapi.Content) int { return strings.Compare(a.ToolUseID, b.ToolUseID) })
			var words []string
			for _, c := range told {
				words = append(words, c.Text)
			}
			assert.Equal(t, []string{"again: one", "not two", "again: three"}, words)
		})
	}
}

func TestPermissionThatChangesTheMode(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var asked atomic.Int32
	o := r.options()
	o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		asked.Add(1)
		return sdk.PermissionResult{Behavior: protocol.BehaviorAllow, UpdatedPermissions: []protocol.PermissionUpdate{
			{Type: protocol.SetMode, Mode: sdk.ModeAcceptEdits, Destination: protocol.ToSession},
		}}, nil
	}
	c := r.connect(o)
	r.ask(c, "write [[scn:write]]")
	all, _ := r.ask(c, "write again [[scn:planwrite]]")
	assert.EqualValues(t, 1, asked.Load(), "the second one needs no answer")
	assert.FileExists(t, r.at("planned.txt"))
	assert.Equal(t, sdk.ModeAcceptEdits, only[*sdk.InitMessage](all)[0].PermissionMode)
	r.close(c)
}

// The hook and the callback are asked at the same time. The first answer wins,
// and the other one is not wanted any more.
func TestPermissionRequestHookAnswersFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	asked, ended := make(chan struct{}, 1), make(chan error, 1)
	o := r.options()
	o.CanUseTool = func(ctx context.Context, _ *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		close(asked)
		<-ctx.Done()
		ended <- ctx.Err()
		return sdk.Deny("too late"), nil
	}
	o.Hooks = []sdk.Hook{sdk.OnPermissionRequest(func(ctx context.Context, _ *protocol.PermissionRequestInput) (sdk.PermissionRequestOutput, error) {
		select {
		case <-asked:
		case <-ctx.Done():
		}
		yes := sdk.Allow()
		return sdk.PermissionRequestOutput{Decision: &yes}, nil
	})}
	_, result := r.once(o, r.touch("allowed"))
	assert.FileExists(t, r.at("allowed"))
	assert.Empty(t, result.PermissionDenials)
	require.ErrorIs(t, await(r, "the end of the callback's context", ended), context.Canceled)
}

func TestQuestionForAPerson(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.CanUseTool = func(_ context.Context, ask *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		assert.Equal(t, "AskUserQuestion", ask.ToolName)
		assert.True(t, ask.RequiresUserInteraction)
		var in map[string]any
		if err := json.Unmarshal(ask.Input, &in); err != nil {
			return sdk.PermissionResult{}, err
		}
		in["answers"] = map[string]string{"Which color?": "Blue"}
		answered, err := json.Marshal(in)
		return sdk.AllowInput(answered), err
	}
	all, result := r.once(o, "ask [[scn:ask]]")
	assert.Equal(t, "Asked.", result.Result)
	assert.Contains(t, r.toolResult(all).Content.Text(), "Blue")
}
