package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/agent-troupe/troupe/sdk"
)

var errUnattended = errors.New("there is no terminal")

// question is one of those that the tool AskUserQuestion asks (observed on
// Claude Code 2.1.329).
type question struct {
	Question    string `json:"question"`
	MultiSelect bool   `json:"multiSelect"`
	Options     []struct {
		Label       string `json:"label"`
		Description string `json:"description"`
	} `json:"options"`
}

// askQuestions answers a call of AskUserQuestion: an allow whose input holds the
// answers, by question.
func (d *decider) askQuestions(ctx context.Context, req *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	var input map[string]json.RawMessage
	var questions []question
	err := json.Unmarshal(req.Input, &input)
	if err == nil {
		err = json.Unmarshal(input["questions"], &questions)
	}
	if err != nil {
		return sdk.PermissionResult{}, fmt.Errorf("the questions of %s: %w", req.ToolName, err)
	}
	answers := make(map[string]string, len(questions))
	for _, q := range questions {
		typed, err := d.ask(ctx, q.shown())
		if err != nil {
			return sdk.PermissionResult{}, err
		}
		answer := q.answer(typed)
		if answer == "" {
			return sdk.Deny("The user did not answer."), nil
		}
		answers[q.Question] = answer
	}
	if input["answers"], err = json.Marshal(answers); err != nil {
		return sdk.PermissionResult{}, err
	}
	updated, err := json.Marshal(input)
	return sdk.AllowInput(updated), err
}

func (q question) shown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n", printable(q.Question))
	for i, o := range q.Options {
		fmt.Fprintf(&b, "  %d  %s", i+1, indented(o.Label))
		if o.Description != "" {
			fmt.Fprintf(&b, " (%s)", indented(o.Description))
		}
		b.WriteString("\n")
	}
	if q.MultiSelect {
		b.WriteString("Numbers, or your own answer: ")
	} else {
		b.WriteString("A number, or your own answer: ")
	}
	return b.String()
}

// answer turns numbers into labels; anything else is an answer as it is.
func (q question) answer(typed string) string {
	typed = strings.TrimSpace(typed)
	var labels []string
	for _, word := range strings.FieldsFunc(typed, func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > len(q.Options) || len(labels) > 0 && !q.MultiSelect {
			return typed
		}
		labels = append(labels, q.Options[n-1].Label)
	}
	return strings.Join(labels, ", ")
}
