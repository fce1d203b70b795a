package hooks

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/protocol/tools"
	"github.com/agent-troupe/troupe/session"
)

// Agents compare a matcher with their own engines, and drop a hook whose matcher their
// engine refuses, silently: a gate behind (?i)bash or \ABash\z is never asked (observed
// on Claude Code 2.1.329). So only matchers that every engine reads alike go to the
// agent; all others are registered without a matcher and compared here.

// CheckPattern returns a *[session.PatternError] for a matcher that is not valid.
func CheckPattern(event protocol.HookEvent, pattern string) error {
	_, err := compile(event, pattern)
	return err
}

// matcher compares the subject of an event: the name of a tool, or the source,
// trigger or type of an event that belongs to no tool. The zero value matches
// everything.
type matcher struct {
	wire  string         // what the agent compares; "": everything
	names []string       // compared as wholes; nil: pattern
	expr  *regexp.Regexp // nil, with names nil: everything
}

// Characters of a list of names. Claude Code 2.1.329 takes commas, spaces and
// dashes for a part of a list too, 2.1.197 for a part of a regular expression
// (observed).
const (
	nameChars   = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
	listChars   = nameChars + "|"
	looserChars = listChars + ", -"
)

// compile returns the matcher of a pattern. A list of names is compared name by
// name, each as a whole; anything else is a regular expression, which may match
// anywhere in the subject.
func compile(event protocol.HookEvent, pattern string) (matcher, error) {
	switch {
	case pattern == "" || pattern == "*":
		return matcher{wire: pattern}, nil
	case strings.Trim(pattern, listChars) == "" && !namesServer(split(pattern)), subjectKey(event) == "":
		return matcher{wire: pattern}, nil
	case strings.Trim(pattern, looserChars) == "":
		return matcher{names: split(pattern)}, nil
	}
	expr, err := regexp.Compile(pattern)
	if err != nil {
		return matcher{}, &session.PatternError{Pattern: pattern, Err: err}
	}
	return matcher{expr: expr}, nil
}

// Matches reports whether a hook with this pattern is called for an input of the event,
// whichever side of a session compares them. The error is a *[session.PatternError].
func Matches(event protocol.HookEvent, pattern string, input json.RawMessage) (bool, error) {
	m, err := compile(event, pattern)
	if err != nil {
		return false, err
	}
	if strings.Trim(m.wire, "*") != "" && subjectKey(event) != "" {
		m = matcher{names: split(pattern)} // the agent's part
	}
	return m.matches(event, input), nil
}

// Unknown returns the names of a list that no subject of the event is known by: a hook is not
// called through them, unless the agent is newer than this package. Nil for a regular
// expression, and for events whose subjects have any name.
func Unknown(event protocol.HookEvent, pattern string) []string {
	known := func(name string) bool { return slices.Contains(Subjects(event), name) }
	switch {
	case pattern == "*" || strings.Trim(pattern, looserChars) != "":
		return nil
	case subjectKey(event) == "tool_name":
		known = func(name string) bool {
			_, server := serverOf(name)
			return server || tools.Known(name) || slices.Contains(oldTools(), name)
		}
	case Subjects(event) == nil:
		return nil
	}
	var unknown []string
	for _, name := range split(pattern) {
		if !known(name) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// Subjects returns what a matcher of the event is compared with, if that is a list of words
// (observed on Claude Code 2.1.329); nil if it may be anything.
func Subjects(event protocol.HookEvent) []string {
	switch event {
	case protocol.HookSessionStart:
		return []string{"startup", "resume", "clear", "compact", "fork"}
	case protocol.HookSetup:
		return []string{"init", "maintenance"}
	case protocol.HookPreCompact, protocol.HookPostCompact:
		return []string{"manual", "auto"}
	case protocol.HookConfigChange:
		return []string{"user_settings", "project_settings", "local_settings", "policy_settings", "skills"}
	case protocol.HookInstructionsLoaded:
		return []string{"session_start", "nested_traversal", "path_glob_match", "include", "compact"}
	case protocol.HookDirectoryAdded:
		return []string{"slash_command", "register_repo_root"}
	case protocol.HookStopFailure:
		return []string{"rate_limit", "overloaded", "authentication_failed", "oauth_org_not_allowed", "account_on_hold", "verification_required",
			"billing_error", "invalid_request", "model_not_found", "server_error", "max_output_tokens", "cloud_credential_error", "unknown"}
	}
	return nil
}

// Ignored reports whether the agent calls the hooks of an event whatever their matchers are.
func Ignored(event protocol.HookEvent) bool {
	return subjectKey(event) == "" && event != protocol.HookFileChanged && slices.Contains(protocol.HookEvents(), event)
}

// oldTools are tools of releases before those that package tools describes, and names
// that lists of tools in hooks still have.
func oldTools() []string {
	return []string{"BashOutput", "LS", "MultiEdit", "NotebookRead", "PowerShell", "SlashCommand", "TodoRead"}
}

func split(pattern string) []string {
	names := strings.FieldsFunc(pattern, func(c rune) bool { return c == '|' || c == ',' })
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// namesServer reports whether one of the names is that of an MCP server, which
// no tool has as a whole.
func namesServer(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { _, server := serverOf(name); return server })
}

// serverOf returns what the names of a server's tools begin with, if the name is
// a server's: mcp__ or mcp__server, with or without the underscores behind.
func serverOf(name string) (prefix string, ok bool) {
	rest, ok := strings.CutPrefix(name, "mcp__")
	if !ok {
		return "", false
	}
	server, tool, cut := strings.Cut(rest, "__")
	switch {
	case server == "" && !cut:
		return "mcp__", true
	case tool == "":
		return "mcp__" + server + "__", true
	}
	return "", false
}

// here reports whether the matcher is compared on this side.
func (m matcher) here() bool { return m.names != nil || m.expr != nil }

// matches reports whether the hook wants the call. A call without a known subject
// matches: a gate is called once too often rather than not at all.
func (m matcher) matches(event protocol.HookEvent, input json.RawMessage) bool {
	if !m.here() {
		return true
	}
	subjects := subjectsOf(event, input)
	if subjects == nil {
		return true
	}
	return slices.ContainsFunc(subjects, m.fits)
}

func (m matcher) fits(subject string) bool {
	if m.expr != nil {
		return m.expr.MatchString(subject)
	}
	return slices.ContainsFunc(m.names, func(name string) bool {
		prefix, server := serverOf(name)
		return name == subject || server && strings.HasPrefix(subject, prefix)
	})
}

// subjectKey is the key of the input that a matcher is compared with, by event
// (observed on Claude Code 2.1.329); "" for events without one.
func subjectKey(event protocol.HookEvent) string {
	switch event {
	case protocol.HookPreToolUse, protocol.HookPostToolUse, protocol.HookPostToolUseFailure,
		protocol.HookPermissionRequest, protocol.HookPermissionDenied:
		return "tool_name"
	case protocol.HookUserPromptExpansion:
		return "command_name"
	case protocol.HookSessionStart, protocol.HookConfigChange, protocol.HookDirectoryAdded:
		return "source"
	case protocol.HookPreModelSwitch, protocol.HookPostModelSwitch:
		return "to_model"
	case protocol.HookSetup, protocol.HookPreCompact, protocol.HookPostCompact:
		return "trigger"
	case protocol.HookNotification:
		return "notification_type"
	case protocol.HookSessionEnd:
		return "reason"
	case protocol.HookStopFailure:
		return "error"
	case protocol.HookSubagentStart, protocol.HookSubagentStop:
		return "agent_type"
	case protocol.HookElicitation, protocol.HookElicitationResult:
		return "mcp_server_name"
	case protocol.HookInstructionsLoaded:
		return "load_reason"
	}
	return ""
}

// subjectsOf returns the names by which the subject of an event is known, or nil.
func subjectsOf(event protocol.HookEvent, input json.RawMessage) []string {
	var members map[string]json.RawMessage
	var subject string
	key := subjectKey(event)
	if protocol.Unmarshal(input, &members) != nil || protocol.Unmarshal(members[key], &subject) != nil || subject == "" {
		return nil
	}
	switch key {
	case "tool_name":
		return append([]string{subject}, otherNames(subject)...)
	case "to_model": // its window is not compared
		name, _, _ := strings.Cut(subject, "[")
		return []string{subject, name}
	}
	return []string{subject}
}

// otherNames are the older names of a tool, by which agents match it too, and
// Bash for the other tools that run commands (observed on Claude Code 2.1.329).
func otherNames(tool string) []string {
	switch tool {
	case "Agent":
		return []string{"Task"}
	case "TaskStop":
		return []string{"KillShell", "KillBash"}
	case "TaskOutput":
		return []string{"BashOutput", "AgentOutput", "AgentOutputTool"}
	case "Monitor", "PowerShell":
		return []string{"Bash"}
	}
	return nil
}
