package sdk_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/protocol/tools"
	"github.com/agent-troupe/troupe/sdk"
)

// tool is a turn with one call. Its result is the input that the gates left.
func tool(name string, gate agent.Gate, input map[string]any) scripted.Turn {
	return turn(&scripted.ToolUse{Name: name, Gate: gate, Input: input, Result: "ran ${input}"})
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	policy := &sdk.Policy{
		Allow: []string{"Bash(git:*)", "Read(src/**)", "ExitPlanMode"},
		Ask:   []string{"Bash(git push:*)", "Read(src/secret/**)"},
		Deny:  []string{"Bash(rm *)", "Read(//etc/**)"},
		Cwd:   "/repo",
	}
	yes := func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		return sdk.Allow(), nil
	}
	command := func(c string) map[string]any { return map[string]any{"command": c} }
	file := func(p string) map[string]any { return map[string]any{"file_path": p} }
	for name, tc := range map[string]struct {
		turn   scripted.Turn
		decide sdk.CanUseTool
		asked  bool // the callback
		told   string
		runs   bool
	}{
		"an allow rule":                   {tool("Bash", "", command("git log")), yes, false, `ran {"command":"git log"}`, true},
		"an allow rule, nobody there":     {tool("Bash", "", command("git log")), nil, false, `ran {"command":"git log"}`, true},
		"an ask rule":                     {tool("Bash", "", command("git push")), yes, true, `ran {"command":"git push"}`, true},
		"an ask rule, nobody there":       {tool("Bash", "", command("git push")), nil, false, "there is nobody to ask", false},
		"no rule":                         {tool("Bash", "", command("make")), yes, true, `ran {"command":"make"}`, true},
		"no rule, nobody there":           {tool("Bash", "", command("make")), nil, false, "there is nobody to ask", false},
		"a deny rule":                     {tool("Bash", "", command("git log; rm x")), yes, false, "denies this call by the rule Bash(rm *)", false},
		"a deny rule and a harmless call": {tool("Read", agent.GateAllow, file("/etc/passwd")), yes, false, "denies this call by the rule Read(//etc/**)", false},
		"an ask rule and a harmless call": {tool("Read", agent.GateAllow, file("src/secret/x")), yes, true, `ran {"file_path":"src/secret/x"}`, true},
		"no rule and a harmless call":     {tool("Read", agent.GateAllow, file("doc/x")), yes, true, `ran {"file_path":"doc/x"}`, true},
		"no rule, harmless, nobody there": {tool("Read", agent.GateAllow, file("doc/x")), nil, false, "there is nobody to ask", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(w *world) {
				o := w.options(tc.turn)
				o.Policy, o.Cwd = policy, "/repo"
				asked := false
				if tc.decide != nil {
					o.CanUseTool = func(ctx context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
						asked = true
						return tc.decide(ctx, r)
					}
				}
				all, err := sdk.Collect(sdk.Query(w.Context(), "hi", o))
				require.NoError(w, err)
				told, failed := toolResult(w, all)
				assert.Contains(w, told, tc.told)
				assert.Equal(w, tc.runs, !failed)
				assert.Equal(w, tc.asked, asked)
			})
		})
	}
}

// The policy also applies to an input that the callback has replaced.
func TestPolicyAfterTheCallback(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.options(tool("Bash", "", map[string]any{"command": "make"}))
		o.Policy = &sdk.Policy{Deny: []string{"Bash(rm *)"}}
		o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.AllowInput(json.RawMessage(`{"command":"sudo rm -rf /"}`)), nil
		}
		all, err := sdk.Collect(sdk.Query(w.Context(), "hi", o))
		require.NoError(w, err)
		told, failed := toolResult(w, all)
		assert.True(w, failed)
		assert.Contains(w, told, "Bash(rm *)")
	})
}

func TestPolicyMistakes(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.options(bash())
		o.Policy = &sdk.Policy{Allow: []string{"Read", "Bash("}, Deny: []string{"WebSearch(x)"}, Root: "x"}
		err := sdk.NewClient(o).Connect(w.Context())
		assert.EqualError(w, err, `option Policy.Root: "x" is not an absolute path; begin it with a slash
option Policy.Deny[0]: "WebSearch(x)" at byte 9 no specifier is known for WebSearch; leave the parentheses out, for every call of the tool
option Policy.Allow[1]: "Bash(" at byte 5 does not end with its closing parenthesis; write it as Tool(specifier)`)
	})
}

func TestPolicyBesideAPromptTool(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.options(bash())
		o.Policy, o.PermissionPromptToolName = &sdk.Policy{}, "mcp__a__b"
		err := sdk.NewClient(o).Connect(w.Context())
		var wrong *sdk.ConfigError
		require.ErrorAs(w, err, &wrong)
		assert.Equal(w, "Policy", wrong.Option)
	})
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/feature/AskUserQuestion")
	ask := &sdk.ToolPermissionRequest{ToolName: "AskUserQuestion", Input: json.RawMessage(
		`{"questions":[{"question":"Which color?","header":"Color","options":[{"label":"Red","description":"r"},{"label":"Blue"}],"multiSelect":false},` +
			`{"question":"Which sizes?","options":[{"label":"S"},{"label":"M"}],"multiSelect":true,"new":1}],"metadata":{"source":"x"}}`)}
	questions := sdk.QuestionsOf(ask)
	require.Len(t, questions, 2)
	assert.Equal(t, tools.Question{Question: "Which color?", Header: "Color", Options: []tools.QuestionOption{{Label: "Red", Description: "r"}, {Label: "Blue"}}}, questions[0])
	assert.True(t, questions[1].MultiSelect)

	answered, err := sdk.AnswerQuestions(ask, map[string][]string{"Which color?": {"none of them"}, "Which sizes?": {"S", "M"}})
	require.NoError(t, err)
	assert.True(t, answered.Allowed())
	var before, after map[string]any
	require.NoError(t, json.Unmarshal(ask.Input, &before))
	require.NoError(t, json.Unmarshal(answered.UpdatedInput, &after))
	before["answers"] = map[string]any{"Which color?": "none of them", "Which sizes?": "S, M"}
	assert.Equal(t, before, after, "all else stays")

	for name, answers := range map[string]map[string][]string{
		"not asked":   {"Which shape?": {"round"}},
		"one of them": {"Which color?": {"Red", "Blue"}},
	} {
		result, err := sdk.AnswerQuestions(ask, answers)
		require.Error(t, err, name)
		assert.False(t, result.Allowed())
	}
	other := &sdk.ToolPermissionRequest{ToolName: "Bash", Input: json.RawMessage(`{}`)}
	assert.Nil(t, sdk.QuestionsOf(other))
	_, err = sdk.AnswerQuestions(other, nil)
	assert.EqualError(t, err, "answer questions: a call of Bash asks no questions")
}

func TestPlans(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/feature/Exit-Plan-Mode")
	ask := &sdk.ToolPermissionRequest{ToolName: "ExitPlanMode", Input: json.RawMessage(`{"plan":"# Do it","planFilePath":"/p.md","allowedPrompts":[{"tool":"Bash","prompt":"run tests"}]}`)}
	plan, ok := sdk.PlanOf(ask)
	require.True(t, ok)
	assert.Equal(t, "# Do it", plan.Text)
	assert.Equal(t, "/p.md", plan.FilePath)
	require.Len(t, plan.AllowedPrompts, 1)
	assert.Equal(t, "run tests", plan.AllowedPrompts[0].Prompt)
	empty, ok := sdk.PlanOf(&sdk.ToolPermissionRequest{ToolName: "ExitPlanMode"})
	assert.True(t, ok)
	assert.Zero(t, empty)
	_, ok = sdk.PlanOf(&sdk.ToolPermissionRequest{ToolName: "Bash"})
	assert.False(t, ok)

	assert.Empty(t, sdk.ApprovePlan("").UpdatedPermissions)
	approved := sdk.ApprovePlan(sdk.ModeAcceptEdits)
	assert.True(t, approved.Allowed())
	assert.Equal(t, []protocol.PermissionUpdate{{Type: protocol.SetMode, Mode: sdk.ModeAcceptEdits, Destination: protocol.ToSession}}, approved.UpdatedPermissions)
}

func TestAnswersForGood(t *testing.T) {
	t.Parallel()
	updates := []protocol.PermissionUpdate{{Type: protocol.AddRules}}
	always := sdk.AllowAlways(&sdk.ToolPermissionRequest{PermissionSuggestions: updates})
	assert.Equal(t, updates, always.UpdatedPermissions)
	assert.Equal(t, protocol.UserPermanent, always.DecisionClassification)
	for _, r := range []*sdk.ToolPermissionRequest{{}, {PermissionSuggestions: updates, SuppressAlwaysAllowRule: true}} {
		assert.Equal(t, sdk.Allow(), sdk.AllowAlways(r))
	}
	assert.Equal(t, sdk.PermissionResult{Behavior: protocol.BehaviorDeny, Message: "no", Interrupt: true, DecisionClassification: protocol.UserReject}, sdk.DenyAndStop("no"))
}
