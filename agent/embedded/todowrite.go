package embedded

import (
	"fmt"
	"slices"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/protocol"
)

// todoWrite is the older tool, in place of the others if CLAUDE_CODE_ENABLE_TASKS is 0.
func todoWrite() *tool {
	return &tool{
		name:   "TodoWrite",
		about:  "Replaces the list of what is to be done. Use it for work of several steps, and keep it current.",
		free:   true,
		beside: alone,
		params: []param{{
			name: "todos", about: "The whole list.", required: true,
			schema: `"type":"array","items":{"type":"object","properties":{"content":{"type":"string","minLength":1},"status":{"type":"string","enum":["pending","in_progress","completed"]},"activeForm":{"type":"string","minLength":1}},"required":["content","status","activeForm"]}`,
			take:   takeTodos,
		}},
		act: does(func(s *todos, in agent.Object) (string, agent.Object) {
			before := s.list
			if before == nil || !slices.ContainsFunc(before, unfinished) {
				before = []any{} // a list that is done is gone
			}
			return "Todos have been modified successfully. Ensure that you continue to use the todo list to track your progress. Please proceed with the current tasks if applicable",
				agent.Object{"oldTodos": before, "newTodos": in["todos"]}
		}),
	}
}

func unfinished(todo any) bool {
	o, _ := todo.(map[string]any)
	return o["status"] != "completed"
}

// takeTodos takes the list of TodoWrite.
func takeTodos(v any, at []any) (any, []issue) {
	p := param{kind: "strings"}
	if s, isText := v.(string); isText {
		var list []any
		if protocol.Unmarshal([]byte(s), &list) == nil && list != nil {
			v = list
		}
	}
	list, isList := v.([]any)
	if !isList {
		return nil, []issue{wrongKind(at, p.expects(), kindOf(v))}
	}
	taken, issues := []any{}, []issue(nil)
	for i, one := range list {
		here := append(slices.Clone(at), i)
		o, isObject := one.(map[string]any)
		if !isObject {
			issues = append(issues, wrongKind(here, "object", kindOf(one)))
			continue
		}
		todo := map[string]any{}
		for _, name := range []string{"content", "status", "activeForm"} {
			v, wrong := takeTodo(name, o, append(slices.Clone(here), name))
			issues = append(issues, wrong...)
			todo[name] = v
		}
		taken = append(taken, todo)
	}
	return taken, issues
}

// takeTodo takes a member of an entry of the list.
func takeTodo(name string, o map[string]any, at []any) (any, []issue) {
	v, given := o[name]
	if name == "status" {
		return oneOf("pending", "in_progress", "completed")(v, at)
	}
	s, isText := v.(string)
	switch {
	case !given:
		return nil, []issue{wrongKind(at, "string", "undefined")}
	case !isText:
		return nil, []issue{wrongKind(at, "string", kindOf(v))}
	case s == "":
		message := map[string]string{"content": "Content", "activeForm": "Active form"}[name] + " cannot be empty"
		return nil, []issue{{other, fmt.Sprintf("The parameter `%s` is invalid: %s", where(at), message), []member{
			{"origin", "string"}, {"code", "too_small"}, {"minimum", 1}, {"inclusive", true}, {"path", at}, {"message", message},
		}}}
	}
	return s, nil
}
