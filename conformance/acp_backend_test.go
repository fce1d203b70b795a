//go:build conformance

package conformance_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/acp/acpclient"
	"github.com/agent-troupe/troupe/conformance"
	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// overACP are the options of a session with an agent of the Agent Client Protocol. decide
// answers its permission requests.
func (r *rig) overACP(decide sdk.CanUseTool, command ...string) *sdk.Options {
	r.hosted = true // the wire has another protocol
	o := r.options()
	o.Backend, o.SettingSources, o.AdditionalDirectories, o.CanUseTool = acpclient.Backend(command...), sdk.Options{}.SettingSources, nil, decide
	o.SystemPrompt = sdk.Options{}.SystemPrompt // the protocol has no place for one
	return o
}

// adapter are the options of a session with the vendor's adapter, and Claude Code behind it.
func (r *rig) adapter(decide sdk.CanUseTool) *sdk.Options {
	o := r.overACP(decide, conformance.Node.CLI(r.t), conformance.ACPAdapter.CLI(r.t))
	o.Env["CLAUDE_CODE_EXECUTABLE"] = r.agent.CLI(r.t)
	return o
}

func allow(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	return sdk.Allow(), nil
}

func deny(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	return sdk.Deny("no"), nil
}

// calls are the calls of tools, each with its result: "NAME ok", "NAME failed" or "NAME open".
func calls(all []sdk.Message) []string {
	var found []string
	for _, m := range all {
		a, ok := m.(*sdk.AssistantMessage)
		if !ok {
			continue
		}
		for _, b := range a.Message.Content {
			use, ok := b.(*sdk.ToolUseBlock)
			if !ok {
				continue
			}
			state := " open"
			for _, m := range all {
				for _, result := range sdk.ToolResults(m) {
					switch {
					case result.ToolUseID != use.ID:
					case result.IsError:
						state = " failed"
					default:
						state = " ok"
					}
				}
			}
			found = append(found, use.Name+state)
		}
	}
	return found
}

// TestACPExampleAgent: the example agent of the official package is the agent of a session.
func TestACPExampleAgent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		decide sdk.CanUseTool
		calls  []string
		text   string
	}{
		"allowed": {allow, []string{"read ok", "edit ok"}, " Perfect! I've successfully updated the configuration. The changes have been applied."},
		"denied":  {deny, []string{"read ok", "edit failed"}, " I understand you prefer not to make that change. I'll skip the configuration update."},
		"an error": {func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.Allow(), errors.New("no")
		}, []string{"read ok", "edit failed"}, " I understand you prefer not to make that change. I'll skip the configuration update."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			asked := make(chan *sdk.ToolPermissionRequest, 9)
			all, result := r.once(r.overACP(func(ctx context.Context, q *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				asked <- q
				return c.decide(ctx, q)
			}, "node", conformance.ACPExample.CLI(t)), "hello")
			require.False(t, result.Failed(), "%+v", result)
			assert.Equal(t, c.text, result.Result)
			assert.Equal(t, "end_turn", result.StopReason)
			assert.Equal(t, c.calls, calls(all))
			require.Len(t, asked, 1)
			q := <-asked
			assert.Equal(t, "edit", q.ToolName)
			assert.Equal(t, "Modifying critical configuration file", q.Title)
			assert.Contains(t, string(q.Input), "/home/user/project/config.json")
		})
	}
}

// TestACPExampleAgentPrompts: a second prompt waits for the first, which the example agent would
// cancel; an interrupt ends the first with one result.
func TestACPExampleAgentPrompts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	interrupted := make(chan struct{})
	c := r.connect(r.overACP(func(ctx context.Context, q *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		select { // the first prompt does not end before it is interrupted
		case <-interrupted:
		case <-ctx.Done():
		}
		return deny(ctx, q)
	}, "node", conformance.ACPExample.CLI(t)))
	first, second := r.send(c, "one"), r.send(c, "two")
	read := r.read(c)
	read.until("the first call", func(m sdk.Message) bool { return len(sdk.ToolResults(m)) > 0 })
	_, err := c.Interrupt(r.ctx)
	require.NoError(t, err)
	close(interrupted)
	result, err := first.Result(r.ctx)
	require.NoError(t, err)
	assert.Equal(t, protocol.ResultErrorDuringExecution, result.Subtype)
	result, err = second.Result(r.ctx)
	require.NoError(t, err)
	assert.Equal(t, protocol.ResultSuccess, result.Subtype)
	r.close(c)
}

// TestACPAdapterAgent: the vendor's adapter is the agent of a session, with Claude Code behind it.
func TestACPAdapterAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.model.Script("denied", modelapi.Say(shell("touch denied")), modelapi.Say(modelapi.Text("Not done.")))
	r.model.Script("bad", modelapi.Always(modelapi.Reply{Fault: &modelapi.Fault{Status: 400, Type: "invalid_request_error", Times: 9}}))
	touch := r.touch("made")
	o := r.adapter(func(_ context.Context, q *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		if q.ToolName == "Bash" && command(t, q.Input) == "touch made" {
			return sdk.Allow(), nil
		}
		return sdk.Deny("no"), nil
	})
	o.IncludePartialMessages = true
	c := r.connect(o)

	all, result := r.ask(c, "hello [[scn:text]]")
	assert.False(t, result.Failed())
	assert.NotEmpty(t, result.Result)
	var streamed string
	for _, m := range only[*protocol.PartialAssistantMessage](all) {
		if d, ok := m.Event.(*protocol.ContentBlockDelta); ok {
			if text, ok := d.Delta.(*protocol.DeltaText); ok {
				streamed += text.Text
			}
		}
	}
	assert.Equal(t, result.Result, streamed)
	assert.True(t, slices.ContainsFunc(all, func(m sdk.Message) bool {
		u, ok := m.(*protocol.UnknownMessage) // what has no counterpart is passed on unchanged
		return ok && bytes.Contains(u.Raw(), []byte(`"sessionUpdate":"usage_update"`))
	}))

	all, result = r.ask(c, touch)
	assert.Equal(t, "Touch done.", result.Result)
	assert.Equal(t, []string{"Bash ok"}, calls(all))
	assert.FileExists(t, r.at("made"))

	all, result = r.ask(c, "it [[scn:denied]]")
	assert.Equal(t, "Not done.", result.Result)
	assert.Equal(t, []string{"Bash failed"}, calls(all))
	assert.Len(t, result.PermissionDenials, 1)
	assert.NoFileExists(t, r.at("denied"))

	_, result = r.ask(c, "it [[scn:bad]]")
	assert.Equal(t, protocol.ResultErrorDuringExecution, result.Subtype)

	require.NoError(t, c.SetPermissionMode(r.ctx, "plan"))
	_, result = r.ask(c, "again [[scn:text]]")
	assert.False(t, result.Failed())
	var control *sdk.ControlError
	require.ErrorAs(t, c.SetPermissionMode(r.ctx, "no-such-mode"), &control)
	id := c.SessionID()
	r.close(c)

	// Another process continues the conversation: the model gets what was said before.
	o.Resume = id
	_, result = r.once(o, "once more [[scn:text]]")
	assert.False(t, result.Failed())
	assert.Equal(t, id, result.SessionID)
	assert.Contains(t, texts(r.modelSaw("text")), "hello [[scn:text]]")
}

// TestACPAdapterInterrupt: an interrupt ends a command that runs, the call has a result, and the
// next prompt works.
func TestACPAdapterInterrupt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	prompt, running := r.hold()
	c := r.connect(r.adapter(allow))
	turn := r.send(c, prompt)
	running()
	_, err := c.Interrupt(r.ctx)
	require.NoError(t, err)
	all, err := sdk.Collect(turn.Messages(r.ctx))
	require.NoError(t, err)
	assert.Equal(t, []string{"Bash failed"}, calls(all))
	result, ok := all[len(all)-1].(*sdk.ResultMessage)
	require.True(t, ok)
	assert.Equal(t, protocol.ResultErrorDuringExecution, result.Subtype)
	_, result = r.ask(c, "hello [[scn:text]]")
	assert.False(t, result.Failed())
	r.close(c)
	assert.Empty(t, r.held())
}
