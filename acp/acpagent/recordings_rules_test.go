package acpagent_test

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/agent-troupe/troupe/acp"
)

// differences are the rules of TestRecordings, in the order of the table in docs/acp.md.
func differences() []*difference {
	rules := slices.Concat(connectionRules(), updateRules(), permissionRules(), turnRules(), sessionRules(), qoderRules())
	for _, r := range rules {
		r.used = new(atomic.Int32)
	}
	return rules
}

// code is the code of an error.
func code(e *entry) acp.ErrorCode {
	o, _ := e.value.(object)
	n, _ := o["code"].(float64)
	return acp.ErrorCode(n)
}

// number is a number inside an object, -1 if it is not there.
func number(v any, key string) float64 {
	o, _ := v.(object)
	n, ok := o[key].(float64)
	if !ok {
		return -1
	}
	return n
}

func begins(path string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(path, p) })
}

func connectionRules() []*difference {
	return []*difference{
		{
			point: "`initialize`: version 0, 2 and above", adapter: "-32022; draft 2", troupe: "version 1, the only one that is spoken",
			replaces: func(there, here *entry) bool {
				other := there.label == "error initialize" && here.label == "answer initialize" || number(there.value, "protocolVersion") == 2
				return other && number(here.asked, "protocolVersion") != 1 && number(here.value, "protocolVersion") == 1
			},
		},
		{
			point: "`initialize`: extensions", adapter: "logout, providers, steering, a system prompt, queued prompts", troupe: "the stable methods and `fork`",
			member: func(e *entry, path string, _, here any) bool {
				return e.label == "answer initialize" && here == nil &&
					begins(path, "_meta.", "agentCapabilities._meta.", "agentCapabilities.auth.", "agentCapabilities.providers", "agentCapabilities.sessionCapabilities.systemPrompt")
			},
		},
		{
			point: "`initialize`: name", adapter: "its own", troupe: "its own",
			member: func(e *entry, path string, _, _ any) bool {
				return e.label == "answer initialize" && begins(path, "agentInfo.")
			},
		},
		{
			point: "`_auth/status_update`", adapter: "sent when an agent starts", troupe: "not in the protocol",
			drops: func(lane []*entry, i int) bool { return lane[i].is("request _auth/status_update") },
		},
		{
			point: "texts of errors", adapter: "its own, with other data", troupe: "what is wrong, and `errorKind` for failures of a turn; the codes are the same",
			member: func(e *entry, path string, _, _ any) bool {
				return begins(e.label, "error") && (path == "message" || begins(path, "data"))
			},
		},
		{
			point: "a line that is not a request, notification or answer", adapter: "ignored", troupe: "-32600, under its id",
			adds: func(lane []*entry, i int) bool {
				return lane[i].label == "error" && lane[i].id == "77" && code(lane[i]) == acp.CodeInvalidRequest
			},
		},
	}
}

func updateRules() []*difference {
	first := map[string]string{"Bash": "Terminal", "Agent": "Task", "Read": "Read File", "Write": "Preparing file…", "Glob": "Find", "Grep": "grep", "AskUserQuestion": "Asking for your input", "ExitPlanMode": "Approve Plan"}
	return []*difference{
		{
			point: "`available_commands_update`", adapter: "again in the first turn", troupe: "again when the agent reports a change",
			drops: func(lane []*entry, i int) bool {
				return i > 0 && lane[i].label == "update available_commands_update" && slices.ContainsFunc(lane[:i], func(e *entry) bool { return e.label == lane[i].label })
			},
		},
		{
			point: "`usage_update` in a turn", adapter: "at each begin and end of a message of the model", troupe: "one, with the cost, at the end of a turn",
			drops: func(lane []*entry, i int) bool {
				o, _ := lane[i].value.(object)
				return lane[i].label == "update usage_update" && o["cost"] == nil && at(lane, i+1).label != "answer session/prompt"
			},
		},
		{
			point: "`usage_update`: `_meta`", adapter: "the model, and why the turn began", troupe: "nothing",
			member: func(e *entry, path string, _, here any) bool {
				return e.label == "update usage_update" && here == nil && begins(path, "_meta.")
			},
		},
		{
			point: "a prompt's answer: usage", adapter: "the tokens, also of the subscription", troupe: "nothing: it is not in the stable protocol, `usage_update` is",
			member: func(e *entry, path string, _, here any) bool {
				return e.label == "answer session/prompt" && here == nil && begins(path, "usage.", "_meta.quota.")
			},
		},
		{
			point: "`session_info_update`", adapter: "some time after a turn", troupe: "before the answer of the turn's prompt, if the title has changed",
			drops: func(lane []*entry, i int) bool { return lane[i].is("update session_info_update") },
			adds:  func(lane []*entry, i int) bool { return lane[i].is("update session_info_update") },
		},
		{
			point: "title of a call whose input is not known yet", adapter: "a general one, such as Terminal", troupe: "the tool's name",
			member: func(e *entry, path string, there, here any) bool {
				name, _ := here.(string)
				return e.label == "update tool_call" && path == "title" && there == first[name]
			},
		},
		{
			point: "a tool that was allowed", adapter: "stays `pending` until its result", troupe: "`in_progress`",
			adds: func(lane []*entry, i int) bool { return lane[i].is("update tool_call_update", "status", "in_progress") },
		},
		{
			point: "result of a tool: `toolResponse`", adapter: "a separate update with `_meta.claudeCode.toolResponse`, for an edit also the diff with its surroundings", troupe: "`rawOutput` and `content` only; the diff of an edit is that of its input",
			drops: func(lane []*entry, i int) bool {
				meta, _ := lane[i].value.(object)["_meta"].(object)
				response, _ := meta["claudeCode"].(object)
				return lane[i].is("update tool_call_update") && response["toolResponse"] != nil && text(lane[i].value, "status") == ""
			},
		},
		{
			point: "result of a tool: `rawOutput`", adapter: "blocks, if the tool wrote blocks", troupe: "always a text",
			member: func(e *entry, path string, there, here any) bool {
				return e.label == "update tool_call_update" && (begins(path, "rawOutput[") && here == nil || path == "rawOutput" && there == nil)
			},
		},
	}
}
