//go:build conformance

package conformance_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

func checkText(t *testing.T, rel release) {
	r := rel.rig(t)
	c := r.connect(r.options())
	assert.Empty(t, c.SessionID(), "it is told in the first turn")

	turn := r.send(c, "say something [[scn:text]]")
	all, err := sdk.Collect(turn.Messages(r.ctx))
	require.NoError(t, err)
	assert.Equal(t, []string{"init", "assistant text", "result success"}, outline(all))
	result, err := turn.Result(r.ctx)
	require.NoError(t, err)
	assert.Equal(t, all[len(all)-1], result)
	assert.False(t, result.Failed())
	assert.Equal(t, "Hello from the scripted model.", result.Result)
	assert.Equal(t, "completed", result.TerminalReason)
	rel.names(t, result, turn)
	assert.Empty(t, only[*sdk.UnknownMessage](all), "messages that were not understood")
	for _, m := range all {
		assert.NotEmpty(t, m.Raw())
	}
	assert.Equal(t, result.SessionID, c.SessionID())

	_, again := r.ask(c, "and again [[scn:echo second turn]]")
	assert.Equal(t, "second turn", again.Result)
	assert.Equal(t, result.SessionID, again.SessionID)
	r.close(c)

	said := map[string]bool{}
	for _, s := range r.wire.said() {
		if f, err := protocol.ParseFrame([]byte(s.text)); err == nil && s.who == "agent" {
			said[f.Type+"/"+f.Subtype] = true
		}
	}
	assert.Equal(t, rel.levels, said["system/session_state_changed"])
	assert.Equal(t, rel.levels, said["command_lifecycle/"])
}

func TestThinking(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	all, result := r.once(r.options(), "think [[scn:thinking]]")
	assert.Equal(t, []string{"init", "assistant thinking", "assistant text", "result success"}, outline(all))
	said := only[*sdk.AssistantMessage](all)
	thought, ok := said[0].Message.Content[0].(*protocol.ThinkingBlock)
	require.True(t, ok)
	assert.Equal(t, "Let me think about it.", thought.Thinking)
	assert.NotEmpty(t, thought.Signature)
	assert.Equal(t, said[0].Message.ID, said[1].Message.ID, "one message, a line for each block")
	assert.Equal(t, "Thought it through.", result.Result)
}

func TestPartialMessages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const thought, answer = "Erst überlegen …", "Grüße, 世界 👋, in many small pieces."
	r.model.Script("pieces", modelapi.Always(modelapi.Reply{
		Blocks: []modelapi.Block{modelapi.Thinking(thought), modelapi.Text(answer)}, Chunks: 9,
	}))
	o := r.options()
	o.IncludePartialMessages = true
	all, result := r.once(o, "slowly [[scn:pieces]]")

	var text, thinking strings.Builder
	var pieces int
	for _, m := range only[*sdk.PartialAssistantMessage](all) {
		e, ok := m.Event.(*protocol.ContentBlockDelta)
		if !ok {
			continue
		}
		switch d := e.Delta.(type) {
		case *protocol.DeltaText:
			text.WriteString(d.Text)
			pieces++
		case *protocol.DeltaThinking:
			thinking.WriteString(d.Thinking)
		}
	}
	assert.Equal(t, thought, thinking.String())
	assert.Equal(t, answer, text.String())
	assert.Equal(t, 9, pieces)
	assert.Equal(t, answer, result.Result)
	said := only[*sdk.AssistantMessage](all)
	require.Len(t, said, 2)
	assert.Equal(t, answer, sdk.TextOf(said[1]), "the whole is the sum of its parts")
}

func TestTexts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, partial := range []bool{true, false} {
		o := r.options()
		o.IncludePartialMessages = partial
		var text strings.Builder
		for piece, err := range sdk.Texts(sdk.Query(r.ctx, "hi [[scn:text]]", o)) {
			require.NoError(t, err)
			text.WriteString(piece)
		}
		assert.Equal(t, "Hello from the scripted model.", text.String(), "partial messages: %t", partial)
		r.nothingRuns()
	}
}

func checkAllowedToolIsNotAskedFor(t *testing.T, rel release) {
	r := rel.rig(t)
	o := r.options()
	o.AllowedTools = []string{"Bash(touch:*)"}
	o.CanUseTool = r.noAsk()
	all, result := r.once(o, r.touch("allowed"))
	assert.Equal(t, []string{"init", "assistant tool_use", "user tool_result", "assistant text", "result success"}, outline(all))
	assert.FileExists(t, r.at("allowed"))
	assert.Empty(t, result.PermissionDenials)
	assert.Equal(t, "Touch done.", result.Result)
	uses := sdk.ToolUses(only[*sdk.AssistantMessage](all)[0])
	require.Len(t, uses, 1)
	assert.Equal(t, "Bash", uses[0].Name)
	assert.Equal(t, uses[0].ID, r.toolResult(all).ToolUseID)
}

func checkQueuedMessagesAreTurnsOfTheirOwn(t *testing.T, rel release) {
	r := rel.rig(t)
	c := r.connect(r.options())
	first := r.send(c, "one [[scn:echo first]]")
	second := r.send(c, "two [[scn:echo second]]")

	all, err := sdk.Collect(second.Messages(r.ctx)) // without those of the first, which come before
	require.NoError(t, err)
	results := only[*sdk.ResultMessage](all)
	require.Len(t, results, 1)
	assert.Equal(t, "second", results[0].Result)
	for _, said := range only[*sdk.AssistantMessage](all) {
		assert.NotContains(t, sdk.TextOf(said), "first")
	}
	for turn, want := range map[*sdk.Turn]string{first: "first", second: "second"} {
		result, err := turn.Result(r.ctx)
		require.NoError(t, err)
		assert.Equal(t, want, result.Result)
		rel.names(t, result, turn)
	}
	r.close(c)
}

func checkMaxTurns(t *testing.T, rel release) {
	r := rel.rig(t)
	o := r.options()
	o.MaxTurns = sdk.Some(2)
	o.AllowedTools = []string{"Bash"}
	result, err := sdk.Run(r.ctx, "for ever [[scn:loop]]", o)
	var failed *sdk.ResultError
	require.ErrorAs(t, err, &failed)
	assert.Same(t, result, failed.Result)
	assert.Equal(t, "error_max_turns", result.Subtype)
	assert.Equal(t, "max_turns", result.TerminalReason)
	assert.Equal(t, 3, result.NumTurns)
	assert.NotEmpty(t, result.Errors)
	assert.False(t, sdk.Retryable(err))
	r.nothingRuns()
}

func checkAPIErrorIsASuccessThatFailed(t *testing.T, rel release) {
	r := rel.rig(t)
	result, err := sdk.Run(r.ctx, "fail [[scn:err400]]", r.options())
	var failed *sdk.ResultError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "success", result.Subtype)
	assert.True(t, result.IsError)
	assert.True(t, result.Failed())
	assert.Equal(t, rel.apiError, result.TerminalReason)
	assert.Equal(t, 400, result.APIErrorStatus)
	assert.Contains(t, err.Error(), "scripted 400")
	assert.False(t, sdk.Retryable(err))
	r.nothingRuns()
}

func TestAPIErrorLeavesTheSessionUsable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.connect(r.options())
	_, failed := r.ask(c, "fail [[scn:err400]]")
	assert.True(t, failed.Failed())
	_, after := r.ask(c, "and now [[scn:text]]")
	assert.False(t, after.Failed())
	_, failed = r.ask(c, "fail again [[scn:err400]]")
	assert.True(t, failed.Failed())
	r.close(c) // the agent's exit code is 1 now, which is no error of the close
}

func TestRateLimitIsRetriedByTheAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.model.Script("busy", modelapi.Always(modelapi.Reply{
		Fault:  &modelapi.Fault{Status: 429, Type: "rate_limit_error", Times: 1},
		Blocks: []modelapi.Block{modelapi.Text("At last.")},
	}))
	all, result := r.once(r.options(), "try [[scn:busy]]")
	assert.Equal(t, "At last.", result.Result)
	assert.False(t, result.Failed())
	retries := only[*protocol.APIRetryMessage](all)
	require.Len(t, retries, 1)
	assert.Equal(t, 429, retries[0].ErrorStatus)
	assert.Equal(t, "rate_limit", retries[0].Error)
	assert.Equal(t, 1, retries[0].Attempt)
}

func TestSetModel(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.Model = "first-model"
	c := r.connect(o)
	r.ask(c, "one [[scn:text]]")
	assert.Equal(t, "first-model", r.modelSaw("text").Model)

	require.NoError(t, c.SetModel(r.ctx, "second-model"))
	_, result := r.ask(c, "two [[scn:echo two]]")
	assert.Equal(t, "second-model", r.modelSaw("echo").Model)
	assert.Equal(t, "two", result.Result)
	r.close(c)
}

func TestSetPermissionMode(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.CanUseTool = r.denyAll("not yet")
	c := r.connect(o)
	_, result := r.ask(c, "write [[scn:write]]")
	assert.Len(t, result.PermissionDenials, 1)
	assert.NoFileExists(t, r.at("w1.txt"))

	require.NoError(t, c.SetPermissionMode(r.ctx, sdk.ModeAcceptEdits))
	all, result := r.ask(c, "write again [[scn:write]]")
	assert.Empty(t, result.PermissionDenials)
	assert.FileExists(t, r.at("w1.txt"))
	modes := []sdk.PermissionMode{}
	for _, m := range only[*sdk.InitMessage](all) {
		modes = append(modes, m.PermissionMode)
	}
	assert.Equal(t, []sdk.PermissionMode{sdk.ModeAcceptEdits}, modes)
	r.close(c)
}

// A change is for what is sent after it.
func TestCallsDoNotOvertakeMessages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.connect(r.options())
	turn := r.send(c, "one [[scn:echo one]]")
	require.NoError(t, c.SetModel(r.ctx, "second-model"))
	_, err := turn.Result(r.ctx)
	require.NoError(t, err)
	r.close(c)
	var order []string
	for _, s := range r.wire.said() {
		c, isControl := s.control()
		switch {
		case s.who != "host":
		case isControl:
			order = append(order, c.Request.Subtype)
		default:
			order = append(order, "user")
		}
	}
	require.GreaterOrEqual(t, len(order), 3)
	assert.Equal(t, []string{"initialize", "user", "set_model"}, order[:3])
}

func TestRefusedRequestIsAControlError(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.connect(r.options())
	err := c.SetPermissionMode(r.ctx, "no-such-mode")
	var refused *sdk.ControlError
	require.ErrorAs(t, err, &refused)
	err = c.Control(r.ctx, "no_such_request", nil, nil)
	require.ErrorAs(t, err, &refused)
	assert.Contains(t, err.Error(), "no_such_request")
	_, result := r.ask(c, "and now [[scn:text]]")
	assert.False(t, result.Failed())
	r.close(c)
}

func checkCompact(t *testing.T, rel release) {
	r := rel.rig(t)
	c := r.connect(r.options())
	// What sums it up is the model's next step of the same scenario.
	r.model.Script("number", modelapi.Say(modelapi.Text("Noted.")), modelapi.Say(modelapi.Text("A number was noted.")))
	r.ask(c, "my number is 4711 [[scn:number]]")
	all, result := r.ask(c, "/compact")
	assert.False(t, result.Failed())
	var triggers []string
	for _, b := range only[*protocol.CompactBoundaryMessage](all) {
		triggers = append(triggers, b.Metadata.Trigger)
	}
	if rel.compacted == "success" {
		assert.Equal(t, []string{"manual"}, triggers)
	} else {
		assert.Empty(t, triggers)
	}
	var statuses []string
	for _, m := range only[*protocol.StatusMessage](all) {
		statuses = append(statuses, m.Status+m.CompactResult)
	}
	assert.Equal(t, []string{"compacting", rel.compacted}, statuses)

	_, after := r.ask(c, "go on [[scn:echo after]]")
	assert.Equal(t, "after", after.Result)
	history := texts(r.modelSaw("echo"))
	if rel.compacted == "success" {
		assert.Contains(t, history, "A number was noted.")
		assert.NotContains(t, history, "my number is 4711", "the summary stands in its place")
	} else {
		assert.Contains(t, history, "my number is 4711")
	}
	r.close(c)
}
