package sdk

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/protocol/tools"
)

// Questions of the agent to a person that arrive at CanUseTool.
type (
	// Plan is the plan that an ExitPlanMode call asks the person to approve.
	Plan struct {
		// Text is the plan in Markdown; "" if the agent keeps it in a file.
		Text     string
		FilePath string // path of the plan's file on the agent's machine; "": the agent did not say
		// AllowedPrompts describe, in words, the permissions that the plan needs.
		AllowedPrompts []tools.AllowedPrompt
	}
)

// QuestionsOf returns the questions of an AskUserQuestion call, which arrives at
// CanUseTool like any other call. It returns nil for other calls.
func QuestionsOf(r *ToolPermissionRequest) []tools.Question {
	if in, ok := inputOf[*tools.AskUserQuestionInput](r); ok {
		return in.Questions
	}
	return nil
}

// AnswerQuestions returns the answer to an AskUserQuestion call. The keys of answers are
// the texts of the questions; the values are the labels that the person chose, or the
// person's own text. Questions may be left unanswered. It is an error to answer a
// question that was not asked, or to give several answers to a question that takes one.
func AnswerQuestions(r *ToolPermissionRequest, answers map[string][]string) (PermissionResult, error) {
	in, ok := inputOf[*tools.AskUserQuestionInput](r)
	if !ok {
		return PermissionResult{}, fmt.Errorf("answer questions: a call of %s asks no questions", r.ToolName)
	}
	for _, question := range slices.Sorted(maps.Keys(answers)) {
		chosen := answers[question]
		for _, q := range in.Questions {
			if q.Question == question && !q.MultiSelect && len(chosen) > 1 {
				return PermissionResult{}, fmt.Errorf("answer questions: %q takes one answer, got %d", question, len(chosen))
			}
		}
		if len(chosen) == 0 {
			continue
		}
		if err := in.Answer(question, strings.Join(chosen, ", ")); err != nil {
			return PermissionResult{}, fmt.Errorf("answer questions: %w", err)
		}
	}
	input := map[string]json.RawMessage{}
	if err := protocol.Unmarshal(r.Input, &input); err != nil {
		return PermissionResult{}, fmt.Errorf("answer questions: %w", err)
	}
	noted, err := json.Marshal(in.Answers)
	if err != nil {
		return PermissionResult{}, fmt.Errorf("answer questions: %w", err)
	}
	input["answers"] = noted // what else is in the input stays as it is
	answered, err := json.Marshal(input)
	if err != nil {
		return PermissionResult{}, fmt.Errorf("answer questions: %w", err)
	}
	return AllowInput(answered), nil
}

// PlanOf returns the plan of an ExitPlanMode call; ok is false for other calls. Claude
// Code 2.1.329 keeps the plan in a file, and sends an empty input if the file does not
// exist (observed); plan is then the zero Plan.
func PlanOf(r *ToolPermissionRequest) (plan Plan, ok bool) {
	in, ok := inputOf[*tools.ExitPlanModeInput](r)
	if !ok {
		return Plan{}, false
	}
	return Plan{Text: in.Plan, FilePath: in.PlanFilePath, AllowedPrompts: in.AllowedPrompts}, true
}

// ApprovePlan approves the plan of an ExitPlanMode call. The agent continues in
// permission mode mode; "" means the mode before plan mode. To reject the plan, use
// [Deny]: the agent continues to plan and reads the message as the person's remarks.
func ApprovePlan(mode PermissionMode) PermissionResult {
	result := Allow()
	if mode != "" {
		result.UpdatedPermissions = []protocol.PermissionUpdate{{Type: protocol.SetMode, Mode: mode, Destination: protocol.ToSession}}
	}
	return result
}

func inputOf[In tools.Input](r *ToolPermissionRequest) (In, bool) {
	decoded, err := tools.DecodeInput(r.ToolName, r.Input)
	in, ok := decoded.(In)
	return in, ok && err == nil
}
