//go:build conformance

package conformance_test

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

func TestModeDontAskDenies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.CanUseTool, o.PermissionMode = r.noAsk(), sdk.ModeDontAsk
	all, result := r.once(o, r.touch("denied"))
	assert.NoFileExists(t, r.at("denied"))
	assert.True(t, r.toolResult(all).IsError)
	assert.Len(t, result.PermissionDenials, 1)
	told := only[*protocol.PermissionDeniedMessage](all)
	require.Len(t, told, 1)
	assert.Equal(t, "mode", told[0].DecisionReasonType)
}

func TestModeBypassPermissions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.CanUseTool, o.PermissionMode = r.noAsk(), sdk.ModeBypassPermissions
	var wrong *sdk.ConfigError
	require.ErrorAs(t, sdk.NewClient(o).Connect(r.ctx), &wrong, "without the flag nothing starts")
	assert.Equal(t, "PermissionMode", wrong.Option)

	o.AllowDangerouslySkipPermissions = true
	_, result := r.once(o, r.touch("made"))
	assert.FileExists(t, r.at("made"))
	assert.Empty(t, result.PermissionDenials)
}

func TestModeBypassPermissionsInASessionWithoutTheFlag(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.CanUseTool = r.denyAll("no")
	c := r.connect(o)
	var refused *sdk.ControlError
	require.ErrorAs(t, c.SetPermissionMode(r.ctx, sdk.ModeBypassPermissions), &refused)
	assert.Equal(t, "bypass_not_launched", refused.Code)
	_, result := r.ask(c, r.touch("denied"))
	assert.Len(t, result.PermissionDenials, 1, "the gate still stands")
	assert.NoFileExists(t, r.at("denied"))
	r.close(c)
}

func TestModesThatAreNone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, mode := range []sdk.PermissionMode{sdk.ModeDelegate, sdk.ModeYolo, "x"} {
		o := r.options()
		o.PermissionMode, o.AllowDangerouslySkipPermissions = mode, true
		var wrong *sdk.ConfigError
		require.ErrorAs(t, sdk.NewClient(o).Connect(r.ctx), &wrong, mode)
		assert.Equal(t, "PermissionMode", wrong.Option)
	}
}

// planned scripts a plan, written to the file that the agent names, its
// approval, and a write.
func (r *rig) planned(text string) string {
	file := regexp.MustCompile(`\S*/plans/[\w-]+\.md`)
	r.model.Script("planned",
		func(c modelapi.Call) modelapi.Reply {
			path := file.FindString(texts(c.Request) + strings.Join(c.Request.System, "\n"))
			return modelapi.Reply{Blocks: []modelapi.Block{modelapi.ToolUse("Write", modelapi.Args{"file_path": path, "content": text})}}
		},
		modelapi.Say(modelapi.ToolUse("ExitPlanMode", modelapi.Args{})),
		modelapi.Say(modelapi.ToolUse("Write", modelapi.Args{"file_path": r.at("built"), "content": "x"})),
		modelapi.Say(modelapi.Text("Planned.")))
	return "plan it [[scn:planned]]"
}

func TestPlanApproved(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var plans []sdk.Plan
	o := r.options()
	o.PermissionMode = sdk.ModePlan
	o.CanUseTool = func(_ context.Context, ask *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		plan, ok := sdk.PlanOf(ask)
		if !ok {
			t.Errorf("asked for %s %s", ask.ToolName, ask.Input)
			return sdk.Deny("the test does not expect this"), nil
		}
		assert.True(t, ask.RequiresUserInteraction)
		plans = append(plans, plan)
		return sdk.ApprovePlan(sdk.ModeAcceptEdits), nil
	}
	c := r.connect(o)
	_, result := r.ask(c, r.planned("# The plan"))
	assert.Empty(t, result.PermissionDenials)
	assert.FileExists(t, r.at("built"), "in the mode of the approval edits are not asked about")
	require.Len(t, plans, 1)
	assert.Equal(t, "# The plan", plans[0].Text)
	written, err := os.ReadFile(plans[0].FilePath)
	require.NoError(t, err)
	assert.Equal(t, "# The plan", string(written))
	all, _ := r.ask(c, "and now [[scn:text]]")
	assert.Equal(t, sdk.ModeAcceptEdits, only[*sdk.InitMessage](all)[0].PermissionMode)
	r.close(c)
}

func TestPlanRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.PermissionMode = sdk.ModePlan
	o.CanUseTool = func(_ context.Context, ask *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		if _, ok := sdk.PlanOf(ask); ok {
			return sdk.Deny("add a test"), nil
		}
		assert.Equal(t, "mode", ask.DecisionReasonType, "%s", ask.Input)
		return sdk.Deny("no edits yet"), nil
	}
	c := r.connect(o)
	_, result := r.ask(c, r.planned("# The plan"))
	assert.Len(t, result.PermissionDenials, 2)
	assert.NoFileExists(t, r.at("built"))
	assert.Contains(t, texts(r.modelSaw("planned")), "add a test", "the model reads why")
	all, _ := r.ask(c, "and now [[scn:text]]")
	assert.Equal(t, sdk.ModePlan, only[*sdk.InitMessage](all)[0].PermissionMode, "it goes on planning")
	r.close(c)
}

func TestQuestionsForAPerson(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.model.Script("questions", modelapi.Say(modelapi.ToolUse("AskUserQuestion", modelapi.Args{"questions": []modelapi.Args{
		{"question": "Which color?", "header": "Color", "multiSelect": false, "options": []modelapi.Args{{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}}},
		{"question": "Which sizes?", "header": "Size", "multiSelect": true, "options": []modelapi.Args{{"label": "S", "description": "s"}, {"label": "M", "description": "m"}}},
	}})), modelapi.Say(modelapi.Text("Asked.")))
	o := r.options()
	o.CanUseTool = func(_ context.Context, ask *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		questions := sdk.QuestionsOf(ask)
		if assert.Len(t, questions, 2) {
			assert.Equal(t, "Blue", questions[0].Options[1].Label)
			assert.True(t, questions[1].MultiSelect)
		}
		return sdk.AnswerQuestions(ask, map[string][]string{"Which color?": {"neither"}, "Which sizes?": {"S", "M"}})
	}
	all, _ := r.once(o, "ask [[scn:questions]]")
	told := r.toolResult(all)
	assert.False(t, told.IsError)
	assert.Contains(t, told.Content.Text(), `"Which color?"="neither"`)
	assert.Contains(t, told.Content.Text(), `"Which sizes?"="S, M"`)
}

func TestQuestionsThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.CanUseTool = r.denyAll("nobody is there")
	all, result := r.once(o, "ask [[scn:ask]]")
	told := r.toolResult(all)
	assert.True(t, told.IsError)
	assert.Equal(t, "nobody is there", told.Content.Text())
	assert.Len(t, result.PermissionDenials, 1)
	assert.False(t, result.Failed(), "the turn goes on")
}

// The model may begin to plan by itself, and needs a person to end it.
func TestPlanModeOfTheModel(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.CanUseTool = r.noAsk()
	c := r.connect(o)
	all, _ := r.ask(c, "think first [[scn:enterplan]]")
	assert.False(t, r.toolResult(all).IsError)
	var modes []sdk.PermissionMode
	for _, m := range only[*protocol.StatusMessage](all) {
		if m.PermissionMode != "" {
			modes = append(modes, m.PermissionMode)
		}
	}
	assert.Equal(t, []sdk.PermissionMode{sdk.ModePlan}, modes)
	all, _ = r.ask(c, "go on [[scn:text]]")
	assert.Equal(t, sdk.ModePlan, only[*sdk.InitMessage](all)[0].PermissionMode)
	r.close(c)
}

type promptInput struct {
	ToolName  string          `json:"tool_name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
}

// A tool of an MCP server decides in place of the callback.
func TestPermissionPromptTool(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer string
		made   bool
	}{
		"allow":  {`{"behavior":"allow","updatedInput":{"command":"touch made"}}`, true},
		"deny":   {`{"behavior":"deny","message":"the tool says no"}`, false},
		"absurd": {`perhaps`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			asked := make(chan promptInput, 1)
			server, err := sdk.NewMCPServer("srv", "1", sdk.NewTool("approve", "Decides.", func(_ context.Context, in promptInput) (*sdk.ToolResult, error) {
				asked <- in
				return sdk.Text(tc.answer), nil
			}))
			require.NoError(t, err)
			o := r.options()
			o.SDKMCPServers, o.PermissionPromptToolName = []*sdk.MCPServer{server}, "mcp__srv__approve"
			_, result := r.once(o, r.run("touch made"))
			in := await(r, "the prompt tool", asked)
			assert.Equal(t, "Bash", in.ToolName)
			assert.Equal(t, "touch made", command(t, in.Input))
			if tc.made {
				assert.FileExists(t, r.at("made"))
				return
			}
			assert.NoFileExists(t, r.at("made"))
			assert.Len(t, result.PermissionDenials, 1)
		})
	}
}

func TestPermissionPromptsNone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.CanUseTool, o.PermissionPrompts = r.noAsk(), "none"
	_, result := r.once(o, r.touch("denied"))
	assert.NoFileExists(t, r.at("denied"))
	assert.Len(t, result.PermissionDenials, 1)
}

// In auto mode the agent decides by itself; what is harmless runs.
func TestModeAuto(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.CanUseTool, o.PermissionMode = r.noAsk(), sdk.ModeAuto
	all, result := r.once(o, r.touch("made"))
	assert.FileExists(t, r.at("made"))
	assert.Empty(t, result.PermissionDenials)
	assert.Equal(t, sdk.ModeAuto, only[*sdk.InitMessage](all)[0].PermissionMode)
}
