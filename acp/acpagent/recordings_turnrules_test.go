package acpagent_test

import (
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/acp"
)

func permissionRules() []*difference {
	denials := []string{"Tool permission request failed: Error: client broke", "Tool permission request failed: Error: Tool use aborted", "User refused permission to run tool"}
	return []*difference{
		{
			point: "the option of a permission request that lasts", adapter: "`allow-with-updates`", troupe: "`allow-always`; the kinds are the same",
			member: func(e *entry, path string, there, here any) bool {
				return e.label == "request session/request_permission" && strings.HasSuffix(path, ".optionId") && there == "allow-with-updates" && here == "allow-always"
			},
		},
		{
			point: "result of a denied call", adapter: "its own words, and `_meta.claudeCode.nonExecutionKind`", troupe: "its own words",
			member: func(e *entry, path string, there, here any) bool {
				words, _ := there.(string)
				words = strings.TrimSuffix(strings.TrimPrefix(words, "```\n"), "\n```")
				return e.is("update tool_call_update", "status", "failed") &&
					(path == "_meta.claudeCode.nonExecutionKind" && here == nil || (path == "rawOutput" || path == "content[0].content.text") && slices.Contains(denials, words))
			},
		},
		{
			point: "the permission request of ExitPlanMode", adapter: "before the plan is known, and without it", troupe: "with the plan",
			moves: func(lane []*entry) []*entry {
				for i, e := range lane {
					if e.is("request session/request_permission", "toolCall.name", "ExitPlanMode") && at(lane, i+1).label == "update tool_call_update" {
						return slices.Concat(lane[:i], []*entry{lane[i+1], e}, lane[i+2:])
					}
				}
				return nil
			},
			member: func(e *entry, path string, there, here any) bool {
				title := e.is("update tool_call_update") && path == "title" && there == nil && here == "Approve Plan"
				return title || exitsPlan(e) && begins(path, "toolCall.rawInput", "toolCall.content")
			},
		},
		{
			point: "title and content of other permission requests", adapter: "the first line of a command, and the model's description", troupe: "also the directory, the whole command, and every part of the input that no diff shows; the description is marked as the agent's words",
			member: func(e *entry, path string, there, here any) bool {
				words, _ := here.(string)
				said, _ := there.(string)
				return e.label == "request session/request_permission" && !exitsPlan(e) &&
					(begins(path, "toolCall.content[") && (there == nil || begins(words, "In `")) || path == "toolCall.title" && strings.HasSuffix(words, ": "+said))
			},
		},
		{
			point: "the options of that request", adapter: "default, auto, bypass, no", troupe: "accept edits, default, no",
			member: func(e *entry, path string, _, _ any) bool { return exitsPlan(e) && begins(path, "options[") },
		},
		{
			point: "`elicitation/create` for AskUserQuestion", adapter: "its own words; an own answer next to a choice is a note", troupe: "its own words, the question as the description; an own answer replaces the choice",
			member: func(e *entry, path string, _, _ any) bool {
				return e.label == "request elicitation/create" && slices.Contains([]string{"requestedSchema.properties.question_0.description", "requestedSchema.properties.question_0_custom.description"}, path)
			},
		},
		{
			point: "a remark of the agent's program", adapter: "its kind in `_meta`", troupe: "an empty line behind it",
			member: func(e *entry, path string, there, here any) bool {
				x, _ := there.(string)
				return e.is("update agent_message_chunk", "_meta.claudeCode.kind", "informational") && (begins(path, "_meta.") && here == nil || path == "content.text" && here == x+"\n\n")
			},
		},
	}
}

func exitsPlan(e *entry) bool {
	return e.is("request session/request_permission", "toolCall.name", "ExitPlanMode")
}

func turnRules() []*difference {
	return []*difference{
		{
			point: "the model's API refuses (400, 401)", adapter: "the text as a chunk, then the error", troupe: "the error has the text",
			drops: func(lane []*entry, i int) bool {
				words := text(lane[i].value, "content", "text")
				return lane[i].label == "update agent_message_chunk" && begins(words, "API Error: ", "Failed to authenticate. API Error: ") && at(lane, i+1).label == "error session/prompt"
			},
		},
		{
			point: "an empty prompt", adapter: "accepted", troupe: "-32602",
			drops: func(lane []*entry, i int) bool {
				return emptyPrompt(lane[i]) && slices.Contains([]string{"update agent_message_chunk", "update usage_update"}, lane[i].label)
			},
			replaces: func(there, here *entry) bool {
				return emptyPrompt(there) && there.label == "answer session/prompt" && here.label == "error session/prompt" && code(here) == acp.CodeInvalidParams
			},
		},
		{
			point: "what a command such as `/context` wrote", adapter: "shown twice", troupe: "shown once",
			drops: func(lane []*entry, i int) bool {
				words := "## Context Usage"
				return begins(text(lane[i].value, "content", "text"), words) && begins(text(at(lane, i-1).value, "content", "text"), words)
			},
		},
		{
			point: "`/clear`", adapter: "an empty plan", troupe: "an empty plan if one is shown",
			drops: func(lane []*entry, i int) bool {
				entries, _ := lane[i].value.(object)["entries"].([]any)
				return lane[i].label == "update plan" && len(entries) == 0
			},
		},
		{
			point: "a compaction: `usage_update`", adapter: "without the cost", troupe: "with the cost",
			member: func(e *entry, path string, there, _ any) bool {
				return e.label == "update usage_update" && begins(path, "cost.") && there == nil && begins(commandOf(e), "/compact")
			},
		},
		{
			point: "a background subagent", adapter: "the prompt is answered after the turn about its end", troupe: "the prompt is answered at its own result; the later turn is outside of a prompt",
			moves: answerBeforeNotification,
		},
		{
			point: "the agent is killed in a tool, without recovery", adapter: "the call stays open", troupe: "the call fails before the answer",
			adds: func(lane []*entry, i int) bool {
				return died(lane[i]) && lane[i].is("update tool_call_update", "status", "failed") && at(lane, i+1).label == "error session/prompt"
			},
		},
		{
			point: "the next prompt after that", adapter: "-32002: the session is gone", troupe: "another agent resumes the conversation",
			adds: func(lane []*entry, i int) bool { return gone(lane[i]) && begins(lane[i].label, "update ") },
			replaces: func(there, here *entry) bool {
				return gone(there) && there.label == "error session/prompt" && here.is("answer session/prompt", "stopReason", "end_turn")
			},
		},
		{
			point: "the end of stdin in a turn", adapter: "nothing more is written", troupe: "the open calls fail, the prompt is answered with `cancelled`",
			adds: func(lane []*entry, i int) bool {
				e := lane[i]
				return e.asked != nil && e.answer == nil && (e.is("update tool_call_update", "status", "failed") || e.label == "update usage_update" || e.is("answer session/prompt", "stopReason", "cancelled"))
			},
		},
	}
}

// commandOf is the text of the prompt that runs.
func commandOf(e *entry) string {
	asked, _ := e.asked.(object)
	blocks, _ := asked["prompt"].([]any)
	if len(blocks) == 0 {
		return ""
	}
	return text(blocks[0], "text")
}

// died: the agent of the recording died in the turn.
func died(e *entry) bool {
	return e.answer != nil && strings.Contains(text(e.answer.Error, "message"), "exited unexpectedly")
}

// gone: in the recording the session of the prompt was gone.
func gone(e *entry) bool {
	return e.answer != nil && e.answer.Error != nil && text(e.answer.Error, "message") == "Resource not found"
}

// answerBeforeNotification moves the answer of a prompt behind the first of the two results that
// came before it.
func answerBeforeNotification(lane []*entry) []*entry {
	first, second := -1, -1
	for i, e := range lane {
		switch {
		case e.is("update usage_update", "_meta._claude/origin.kind", "human"):
			first = i
		case e.is("update usage_update", "_meta._claude/origin.kind", "task-notification"):
			second = i
		case e.label == "answer session/prompt" && first >= 0 && second > first:
			out := slices.Concat(lane[:first+1], []*entry{e}, lane[first+1:i], lane[i+1:])
			return out
		}
	}
	return nil
}

func emptyPrompt(e *entry) bool {
	asked, _ := e.asked.(object)
	blocks, isPrompt := asked["prompt"].([]any)
	return isPrompt && len(blocks) == 0
}
