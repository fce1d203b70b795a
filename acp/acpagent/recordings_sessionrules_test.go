package acpagent_test

import (
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/acp"
)

func sessionRules() []*difference {
	return []*difference{
		{
			point: "names and descriptions of modes and options", adapter: "its own", troupe: "its own; the ids are the same",
			member: func(e *entry, path string, _, here any) bool {
				if here == nil || !settingsLine(e.label) {
					return false
				}
				return path == "configOptions[1].description" || (begins(path, "modes.availableModes[", "configOptions[0].")) && (strings.HasSuffix(path, "name") || strings.HasSuffix(path, "description"))
			},
		},
		{
			point: "mode `bypassPermissions`", adapter: "offered", troupe: "offered if the host allows it",
			member: func(e *entry, path string, _, here any) bool {
				return here == nil && settingsLine(e.label) && begins(path, "modes.availableModes[4].", "configOptions[0].options[4].")
			},
		},
		{
			point: "effort, fast mode and ultracode as options", adapter: "offered", troupe: "not in this release",
			member: func(e *entry, path string, _, here any) bool {
				return here == nil && settingsLine(e.label) && begins(path, "configOptions[2].", "configOptions[3].", "configOptions[4].")
			},
		},
		{
			point: "a change of the mode or the model", adapter: "`config_option_update` for `set_mode`, `current_mode_update` for the option `mode`, nothing for other options", troupe: "`config_option_update` always, before it `current_mode_update` for a mode",
			adds: func(lane []*entry, i int) bool {
				return lane[i].label == "update current_mode_update" && at(lane, i+2).label == "answer session/set_mode" ||
					lane[i].label == "update config_option_update" && at(lane, i+1).label == "answer session/set_config_option"
			},
		},
		{
			point: "`session/load` and `session/resume`: answer", adapter: "with the session's id", troupe: "as in the protocol, without",
			member: func(e *entry, path string, _, here any) bool {
				return (e.label == "answer session/load" || e.label == "answer session/resume") && path == "sessionId" && here == nil
			},
		},
		{
			point: "`session/fork`: commands of the copy", adapter: "not recorded: its recording ends with the answer", troupe: "`available_commands_update`",
			adds: func(lane []*entry, i int) bool {
				return len(lane) == 1 && lane[i].label == "update available_commands_update"
			},
		},
		{
			point: "`session/load` of an id that is not a UUID", adapter: "-32603", troupe: "-32002",
			member: func(e *entry, path string, there, here any) bool {
				return e.label == "error session/load" && path == "code" && there == float64(acp.CodeInternalError) && here == float64(acp.CodeResourceNotFound)
			},
		},
	}
}

// settingsLine: the line has the modes and options of a session.
func settingsLine(label string) bool {
	return slices.Contains([]string{"answer session/new", "answer session/load", "answer session/resume", "answer session/fork", "answer session/set_config_option", "update config_option_update"}, label)
}

// qoderRules are about qodercli, which was not logged in when it was recorded.
func qoderRules() []*difference {
	rules := []*difference{
		{
			point: "qodercli: `initialize`", adapter: "a login, its own name, queued prompts", troupe: "no logins; log in with the agent's program",
			member: func(e *entry, path string, _, here any) bool {
				return e.label == "answer initialize" && (begins(path, "agentInfo.") || here == nil && begins(path, "authMethods[0].", "agentCapabilities._meta."))
			},
		},
		{
			point: "qodercli: requests without a login", adapter: "-32000, all but `session/close`", troupe: "-32000 when an agent is started; before that unknown sessions and wrong parameters are errors, and sessions on disk can be listed and deleted",
			member: func(e *entry, path string, there, here any) bool {
				return code(e) == acp.CodeAuthenticationRequired && path == "code" && isCode(here, acp.CodeResourceNotFound, acp.CodeInvalidParams)
			},
			replaces: func(there, here *entry) bool {
				return code(there) == acp.CodeAuthenticationRequired && (here.label == "answer session/list" || here.label == "answer session/delete")
			},
		},
		{
			point: "qodercli: texts of errors", adapter: "its own", troupe: "what is wrong",
			member: func(e *entry, path string, _, _ any) bool {
				return begins(e.label, "error") && (path == "message" || begins(path, "data"))
			},
		},
		{
			point: "qodercli: `authenticate` with its login", adapter: "waits for a browser", troupe: "-32602",
			adds: func(lane []*entry, i int) bool {
				return lane[i].label == "error authenticate" && lane[i].answer == nil && code(lane[i]) == acp.CodeInvalidParams
			},
		},
		{
			point: "qodercli: a broken line", adapter: "ignored", troupe: "-32700",
			adds: func(lane []*entry, i int) bool {
				return lane[i].label == "error" && code(lane[i]) == acp.CodeParseError
			},
		},
		{
			point: "qodercli: the end of stdin", adapter: "keeps running and has to be killed", troupe: "ends",
			member: func(e *entry, path string, there, here any) bool {
				return e.label == "exit" && there == "killed" && here == "by itself"
			},
		},
	}
	for _, r := range rules {
		r.qoder = true
	}
	return rules
}

func isCode(here any, codes ...acp.ErrorCode) bool {
	n, ok := here.(float64)
	return ok && slices.Contains(codes, acp.ErrorCode(n))
}
