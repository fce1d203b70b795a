package embedded

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/protocol"
)

// askUserQuestion is the tool AskUserQuestion, as Claude Code 2.1.329 has it (observed). The
// host answers by allowing the call with answers in its input.
func askUserQuestion() *tool {
	host := func(name string) param {
		return param{name: name, kind: "record", hidden: true}
	}
	return &tool{
		name:  "AskUserQuestion",
		about: "Asks the user one to four questions, each with two to four options. The user can also answer in other words.",
		asks:  true,
		asker: true,
		params: []param{
			{
				name: "questions", required: true, take: takeQuestions,
				schema: `"type":"array","items":{"type":"object","properties":{"question":{"type":"string"},"header":{"type":"string"},"options":{"type":"array","items":{"type":"object","properties":{"label":{"type":"string"},"description":{"type":"string"}},"required":["label","description"]}},"multiSelect":{"type":"boolean"}},"required":["question","header","options"]}`,
			},
			host("answers"), host("annotations"), host("metadata"),
		},
		act: func(_ *talk, _ *agent.Lane, _ *agent.Strand, _ string, in agent.Object) (agent.ToolResult, error) {
			return answers(in), nil
		},
	}
}

// answers is what the model reads of the user's answers.
func answers(in agent.Object) agent.ToolResult {
	given, _ := in["answers"].(map[string]any)
	if o, isObject := in["answers"].(agent.Object); isObject {
		given = o
	}
	questions, _ := in["questions"].([]any)
	structured := agent.Object{"questions": questions, "answers": agent.Object(given)}
	if given == nil {
		structured["answers"] = agent.Object{}
	}
	remarks, _ := in["annotations"].(map[string]any)
	if len(remarks) > 0 {
		structured["annotations"] = remarks
	}
	var said []string
	plain := true // only options were chosen
	for _, one := range questions {
		q, _ := one.(map[string]any)
		text, _ := q["question"].(string)
		answer, answered := given[text].(string)
		if !answered {
			continue
		}
		said = append(said, `"`+text+`"="`+answer+`"`)
		plain = plain && chosen(q, answer)
		remark, _ := remarks[text].(map[string]any)
		if notes, _ := remark["notes"].(string); notes != "" {
			said[len(said)-1] += " (the user's notes: " + notes + ")"
			plain = false
		}
	}
	all := strings.Join(said, ", ")
	switch {
	case len(said) == 0:
		return agent.ToolResult{Content: "The user did not answer the questions.", Structured: structured}
	case plain:
		return agent.ToolResult{Content: "Your questions have been answered: " + all + ". You can now continue with these answers in mind.", Structured: structured}
	}
	return agent.ToolResult{Content: "The user answered: " + all + ". Read the answers carefully — they may request clarification, changes, or that you not proceed — and follow what they actually say.", Structured: structured}
}

// chosen reports whether an answer is an option of the question, or several if it takes several.
func chosen(q map[string]any, answer string) bool {
	options, _ := q["options"].([]any)
	is := func(s string) bool {
		return slices.ContainsFunc(options, func(o any) bool {
			option, _ := o.(map[string]any)
			return option["label"] == s
		})
	}
	if several, _ := q["multiSelect"].(bool); is(answer) || !several {
		return is(answer)
	}
	for part := range strings.SplitSeq(answer, ", ") {
		if !is(part) {
			return false
		}
	}
	return true
}

const fewOptions = "This call included a question with fewer than 2 options, so it was rejected and the person never saw it. Ask again with two to four options for each question, or ask in plain text."

// takeQuestions takes the questions of AskUserQuestion.
func takeQuestions(v any, at []any) (any, []issue) {
	list, issues := sized(v, at, 1, 4)
	if list == nil {
		return nil, issues
	}
	taken, unique := []any{}, true
	var texts []any
	for i, one := range list {
		here := append(slices.Clone(at), i)
		q, wrong := object(one, here, "question", "header")
		issues = append(issues, wrong...)
		if q == nil {
			continue
		}
		options, wrong := sized(notGivenFor(q, "options"), append(slices.Clone(here), "options"), 2, 4)
		if len(options) < 2 && options != nil {
			wrong[0].sort, wrong[0].line = told, fewOptions
		}
		issues = append(issues, wrong...)
		var labels []any
		for j, o := range options {
			option, wrong := object(o, append(slices.Clone(here), "options", j), "label", "description")
			issues = append(issues, wrong...)
			if option != nil {
				labels = append(labels, option["label"])
			}
		}
		several := param{kind: "boolean"}
		if _, given := q["multiSelect"]; !given {
			q["multiSelect"] = false
		}
		if q["multiSelect"], wrong = several.value(q["multiSelect"], append(slices.Clone(here), "multiSelect")); len(wrong) > 0 {
			issues = append(issues, wrong...)
		}
		unique = unique && distinct(labels)
		texts, taken = append(texts, q["question"]), append(taken, q)
	}
	if len(issues) == 0 && !(unique && distinct(texts)) {
		message := "Question texts must be unique, option labels must be unique within each question"
		issues = append(issues, issue{sort: other, line: message, members: []member{{"code", "custom"}, {"path", []any{}}, {"message", message}}})
	}
	return taken, issues
}

func distinct(list []any) bool {
	for i, v := range list {
		if slices.Contains(list[:i], v) {
			return false
		}
	}
	return true
}

func notGivenFor(o map[string]any, name string) any {
	if v, given := o[name]; given {
		return v
	}
	return notGiven{}
}

// sized takes a list with so many elements, also as the text of one. The list is nil if v is
// something else.
func sized(v any, at []any, least, most int) ([]any, []issue) {
	if s, isText := v.(string); isText {
		var list []any
		if protocol.Unmarshal([]byte(s), &list) == nil && list != nil {
			v = list
		}
	}
	list, isList := v.([]any)
	if !isList {
		return nil, []issue{wrongKind(at, "array", kindOf(v))}
	}
	size := func(code, bound, message string, n int) []issue {
		return []issue{{sort: other, line: "The parameter `" + where(at) + "` is invalid: " + message, members: []member{
			{"origin", "array"}, {"code", code}, {bound, n}, {"inclusive", true}, {"path", at}, {"message", message},
		}}}
	}
	switch {
	case len(list) < least:
		return append([]any{}, list...), size("too_small", "minimum", "Too small: expected array to have >="+strconv.Itoa(least)+" items", least)
	case len(list) > most:
		return list, size("too_big", "maximum", "Too big: expected array to have <="+strconv.Itoa(most)+" items", most)
	}
	return list, nil
}

// object takes an object with these texts, as a copy.
func object(v any, at []any, texts ...string) (map[string]any, []issue) {
	o, isObject := v.(map[string]any)
	if !isObject {
		return nil, []issue{wrongKind(at, "object", kindOf(v))}
	}
	var issues []issue
	for _, name := range texts {
		if s := notGivenFor(o, name); kindOf(s) != "string" {
			issues = append(issues, wrongKind(append(slices.Clone(at), name), "string", kindOf(s)))
		}
	}
	return maps.Clone(o), issues
}
