package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/agent-troupe/troupe/sdk"
)

// gate decides about calls. decide may run for many calls at once.
type gate struct {
	scratch string
	person  *person
}

func (g *gate) decide(ctx context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	switch r.ToolName {
	case "Read", "Glob", "Grep":
		return sdk.Allow(), nil
	case "Write":
		return g.move(r)
	case "AskUserQuestion":
		return g.answer(ctx, r)
	}
	said, there := g.person.asked(ctx, fmt.Sprintf("may it use %s with %s? (yes, always, no why, stop)", r.ToolName, r.Input))
	answer, why, _ := strings.Cut(said, " ")
	switch {
	case !there:
		return sdk.Deny("Nobody is there to ask."), nil
	case answer == "y" || answer == "yes":
		return sdk.Allow(), nil
	case answer == "always":
		return sdk.AllowAlways(r), nil
	case answer == "stop":
		return sdk.DenyAndStop("The user ends the turn."), nil
	}
	return sdk.Deny("The user said no. " + why), nil
}

// move changes the path of a write to the scratch directory.
func (g *gate) move(r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	input := map[string]any{}
	if err := json.Unmarshal(r.Input, &input); err != nil {
		return sdk.PermissionResult{}, err // an error and the zero result both deny
	}
	path, _ := input["file_path"].(string)
	input["file_path"] = filepath.Join(g.scratch, filepath.Base(path))
	moved, err := json.Marshal(input)
	return sdk.AllowInput(moved), err
}

// answer passes the agent's questions to the person.
func (g *gate) answer(ctx context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	answers := map[string][]string{}
	for _, q := range sdk.QuestionsOf(r) {
		text := q.Question
		for i, o := range q.Options {
			text += fmt.Sprintf(" [%d] %s", i+1, o.Label)
		}
		said, there := g.person.asked(ctx, text)
		if !there {
			return sdk.Deny("Nobody is there to ask."), nil
		}
		if n, err := strconv.Atoi(said); err == nil && n >= 1 && n <= len(q.Options) {
			said = q.Options[n-1].Label
		}
		answers[q.Question] = []string{said} // a label, or the person's own words
	}
	return sdk.AnswerQuestions(r, answers)
}
