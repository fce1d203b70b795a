//go:build conformance

package conformance_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// What a hook says reaches whom it is for: the model, the user, the session.
func TestWhatHooksSay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.model.Script("both", modelapi.Say(shell("touch made")), modelapi.Say(shell("exit 3")), modelapi.Say(modelapi.Text("Done.")),
		modelapi.Say(modelapi.Text("Done in the end.")))
	c := r.connect(r.hooked(
		sdk.OnUserPromptSubmit(func(context.Context, *protocol.UserPromptSubmitInput) (sdk.UserPromptSubmitOutput, error) {
			return sdk.UserPromptSubmitOutput{SessionTitle: "titled by a hook"}, nil
		}),
		pre(sdk.PreToolUseOutput{AdditionalContext: "context of the call", HookCommon: sdk.HookCommon{SystemMessage: "a word to the user"}}),
		post(sdk.PostToolUseOutput{Decision: protocol.DecisionBlock, Reason: "look at it again"}),
		sdk.OnPostToolUseFailure(func(context.Context, *protocol.PostToolUseFailureInput) (sdk.FeedbackOutput, error) {
			return sdk.FeedbackOutput{Decision: protocol.DecisionBlock, Reason: "three means no"}, nil
		}),
		sdk.OnStop(func(_ context.Context, in *protocol.StopInput) (sdk.FeedbackOutput, error) {
			if in.StopHookActive {
				return sdk.FeedbackOutput{}, nil
			}
			return sdk.FeedbackOutput{AdditionalContext: "context of the stop"}, nil
		})))
	all, result := r.ask(c, "do both [[scn:both]]")
	assert.Equal(t, "Done in the end.", result.Result, "it was sent back to work")
	assert.FileExists(t, r.at("made"))
	seen := texts(r.modelSaw("both"))
	for _, part := range []string{"context of the call", "look at it again", "three means no", "context of the stop"} {
		assert.Contains(t, seen, part)
	}
	assert.NotContains(t, seen, "a word to the user")
	var notices []string
	for _, m := range only[*protocol.InformationalMessage](all) {
		notices = append(notices, m.Content)
	}
	assert.Contains(t, notices, "PreToolUse:Bash says: a word to the user")
	names := []string{}
	for _, s := range answered[protocol.StatusResponse](questions{r, c}, protocol.GetStatusRequest{}).Sections {
		for _, row := range s.Rows {
			if row.Label == "Session name" {
				names = append(names, row.Value)
			}
		}
	}
	assert.Equal(t, []string{"titled by a hook"}, names)
	r.close(c)
}

// asked is how often the model was asked for a message.
func (r *rig) asked() (n int) {
	for _, q := range r.model.Requests() {
		if q.Endpoint == modelapi.Messages {
			n++
		}
	}
	return n
}

// Whichever hook ends the turn, the model is not asked again.
func TestHooksThatEndTheTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ends := sdk.HookCommon{Continue: sdk.Some(false), StopReason: "enough"}
	var phase protocol.HookEvent // changes between turns alone
	at := func(event protocol.HookEvent) sdk.HookCommon {
		if phase == event {
			return ends
		}
		return sdk.HookCommon{}
	}
	c := r.connect(r.hooked(
		sdk.OnUserPromptSubmit(func(context.Context, *protocol.UserPromptSubmitInput) (sdk.UserPromptSubmitOutput, error) {
			return sdk.UserPromptSubmitOutput{HookCommon: at(protocol.HookUserPromptSubmit)}, nil
		}),
		sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			return sdk.PreToolUseOutput{HookCommon: at(protocol.HookPreToolUse)}, nil
		}),
		sdk.OnPostToolUse(func(context.Context, *sdk.PostToolUseInput) (sdk.PostToolUseOutput, error) {
			return sdk.PostToolUseOutput{HookCommon: at(protocol.HookPostToolUse)}, nil
		}),
		sdk.OnPostToolBatch(func(context.Context, *protocol.PostToolBatchInput) (sdk.FeedbackOutput, error) {
			if phase == protocol.HookPostToolBatch {
				return sdk.FeedbackOutput{Decision: protocol.DecisionBlock, Reason: "enough"}, nil
			}
			return sdk.FeedbackOutput{}, nil
		}),
		sdk.OnStop(func(context.Context, *protocol.StopInput) (sdk.FeedbackOutput, error) {
			return sdk.FeedbackOutput{HookCommon: at(protocol.HookStop)}, nil
		})))
	asked := 0
	for _, tc := range []struct {
		event  protocol.HookEvent
		reason string
		calls  int // of the model
		made   bool
	}{
		{protocol.HookUserPromptSubmit, "", 0, false},
		{protocol.HookPreToolUse, "hook_stopped", 1, true}, // it does not keep the tool from running
		{protocol.HookPostToolUse, "hook_stopped", 1, true},
		{protocol.HookPostToolBatch, "hook_stopped", 1, true},
		{protocol.HookStop, "stop_hook_prevented", 2, true},
		{"", "completed", 2, true},
	} {
		phase = tc.event
		_, result := r.ask(c, r.touch("made-"+string(tc.event)))
		assert.Equal(t, tc.reason, result.TerminalReason, tc.event)
		assert.False(t, result.Failed(), tc.event)
		assert.Equal(t, asked+tc.calls, r.asked(), tc.event)
		asked = r.asked()
		if tc.made {
			assert.FileExists(t, r.at("made-"+string(tc.event)))
		} else {
			assert.NoFileExists(t, r.at("made-"+string(tc.event)))
		}
	}
	r.close(c)
}

func TestPermissionRequestHookChangesTheCall(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.CanUseTool = func(ctx context.Context, _ *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		<-ctx.Done() // the hook is faster
		return sdk.PermissionResult{}, ctx.Err()
	}
	verdict := sdk.AllowInput(input(t, "touch instead"))
	verdict.UpdatedPermissions = []protocol.PermissionUpdate{{Type: protocol.SetMode, Mode: sdk.ModeAcceptEdits, Destination: protocol.ToSession}}
	o.Hooks = []sdk.Hook{sdk.OnPermissionRequest(func(_ context.Context, in *protocol.PermissionRequestInput) (sdk.PermissionRequestOutput, error) {
		assert.NotEmpty(t, in.PermissionSuggestions)
		return sdk.PermissionRequestOutput{Decision: &verdict}, nil
	}, sdk.Match("Bash"))}
	c := r.connect(o)
	_, result := r.ask(c, r.touch("original"))
	assert.Empty(t, result.PermissionDenials)
	assert.FileExists(t, r.at("instead"))
	assert.NoFileExists(t, r.at("original"))
	all, _ := r.ask(c, "and now [[scn:text]]")
	assert.Equal(t, sdk.ModeAcceptEdits, only[*sdk.InitMessage](all)[0].PermissionMode)
	r.close(c)
}

// A prompt that is blocked may be kept out of what the user is shown, too.
func TestPromptHookSuppressesThePrompt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	suppress := false // changes between turns alone
	c := r.connect(r.hooked(sdk.OnUserPromptSubmit(func(context.Context, *protocol.UserPromptSubmitInput) (sdk.UserPromptSubmitOutput, error) {
		return sdk.UserPromptSubmitOutput{Decision: protocol.DecisionBlock, Reason: "it holds a password", SuppressOriginalPrompt: suppress}, nil
	})))
	for _, suppress = range []bool{false, true} {
		_, result := r.ask(c, "my password is 4711")
		assert.Contains(t, result.Result, "it holds a password")
		if suppress {
			assert.NotContains(t, result.Result, "4711")
		} else {
			assert.Contains(t, result.Result, "4711")
		}
	}
	r.close(c)
	require.Empty(t, r.model.Requests())
}
