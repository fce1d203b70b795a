package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/protocol"
)

// defaultHookTimeout is how long the engine waits for a hook whose matcher
// names no timeout.
const defaultHookTimeout = 60 * time.Second

func hookLimit(m protocol.HookMatcher) time.Duration {
	if m.Timeout <= 0 {
		return defaultHookTimeout
	}
	return time.Duration(m.Timeout * float64(time.Second))
}

// matches reports whether m takes subject (a tool's name, a sub-agent's type):
// all of it, or alternatives, or a regular expression.
func matches(m protocol.HookMatcher, subject string) bool {
	if m.Matcher == "" || m.Matcher == "*" || m.Matcher == subject {
		return true
	}
	re, err := regexp.Compile("^(?:" + m.Matcher + ")$")
	return err == nil && re.MatchString(subject)
}

// hookRun is one callback asked and what came of it.
type hookRun struct {
	p        *pending
	id       string
	deadline time.Duration // in the engine's time
	timedOut bool
	answer   HookAnswer
}

// HookAnswer is the answer of a hook callback. The zero value lets the agent continue.
type HookAnswer struct {
	Continue      *bool           `json:"continue"`           // nil: true
	StopReason    string          `json:"stopReason"`         // reason for Continue false
	SystemMessage string          `json:"systemMessage"`      // for the person
	Async         bool            `json:"async"`              // true: the engine does not wait for the hook
	Decision      string          `json:"decision"`           // block, approve; "": no decision
	Reason        string          `json:"reason"`             // reason for Decision
	Specific      HookSpecific    `json:"hookSpecificOutput"` // fields of the event
	Raw           json.RawMessage `json:"-"`                  // the answer, unchanged

	valid bool // an object, or nothing at all
}

// HookSpecific has the fields of a hook's answer that depend on its event.
type HookSpecific struct {
	HookEventName            string          `json:"hookEventName"`            // such as PreToolUse
	PermissionDecision       string          `json:"permissionDecision"`       // allow, deny, ask, defer; "": no decision
	PermissionDecisionReason string          `json:"permissionDecisionReason"` // for the model or the person
	UpdatedInput             Object          `json:"updatedInput"`             // nil: unchanged
	AdditionalContext        string          `json:"additionalContext"`        // for the model
	UpdatedToolOutput        json.RawMessage `json:"updatedToolOutput"`        // nil: unchanged
	UpdatedMCPToolOutput     json.RawMessage `json:"updatedMCPToolOutput"`     // nil: unchanged
	Decision                 json.RawMessage `json:"decision"`                 // decision about a PermissionRequest
}

// stops reports whether the hook wants the turn to end.
func (a HookAnswer) stops() bool { return a.Continue != nil && !*a.Continue }

// hooked reports whether a callback is registered for the event and subject.
func (e *engine) hooked(event, subject string) bool {
	for _, m := range e.host.hooks[protocol.HookEvent(event)] {
		if matches(m, subject) && len(m.HookCallbackIDs) > 0 {
			return true
		}
	}
	return false
}

// askHooks writes a hook_callback for each callback that covers subject.
func (l *Lane) askHooks(event, subject, toolUseID string, input Object) []*hookRun {
	e := l.e
	if e.eof { // the host can no longer answer; only gates must deny
		return nil
	}
	base := Object{
		"session_id": e.session.id, "transcript_path": e.transcriptPath(), "cwd": l.cwd(),
		"prompt_id": e.session.prompt, "hook_event_name": event,
	}
	if speaksOfMode(event) {
		base["permission_mode"] = e.perms.mode
	}
	if level := e.effort(); level != "" && !beforeModel(event) {
		base["effort"] = Object{"level": level}
	}
	if l.agentID != "" {
		base["agent_id"], base["agent_type"] = l.agentID, l.agentType
	}
	if toolUseID == "" {
		toolUseID = e.ids.uuid() // always present, also where there is no tool
	}
	var runs []*hookRun
	for _, m := range e.host.hooks[protocol.HookEvent(event)] {
		if !matches(m, subject) {
			continue
		}
		for _, id := range m.HookCallbackIDs {
			run := &hookRun{id: id, deadline: e.now() + hookLimit(m)}
			run.p = e.ask(l.scope, Object{
				"subtype": "hook_callback", "callback_id": id,
				"input": base.with(input), "tool_use_id": toolUseID,
			})
			runs = append(runs, run)
		}
	}
	return runs
}

func speaksOfMode(event string) bool {
	switch event {
	case "MessageDisplay", "SubagentStart", "PreCompact", "PostCompact", "SessionStart":
		return false
	}
	return true
}

// collect waits for the answers of runs. One that does not come in time is
// taken back. An error answer counts as an empty one, as observed.
func (l *Lane) collect(s *Strand, event string, runs []*hookRun) error {
	for _, run := range runs {
		switch err := s.await(run.p, max(run.deadline-l.e.now(), 0)); {
		case errors.Is(err, ErrTimeout):
			run.timedOut = true
		case err != nil:
			return err
		case run.p.closed:
		case !run.p.ok:
			l.e.hookFailed(event, run)
		default:
			run.answer = parseHookAnswer(run.p.body)
			if !run.answer.valid {
				l.e.hookFailed(event, run)
			}
		}
	}
	return nil
}

func (e *engine) hookFailed(event string, run *hookRun) {
	e.stderr("Error in hook callback " + run.id + ": " + run.p.err)
	if e.cfg.Dialect == Qoder {
		return
	}
	e.system("informational", Object{
		"content": event + ": Hook callback " + run.id +
			" failed: the SDK host replied with an error or an invalid answer. Its answer was treated as empty.",
		"level": "warning", "tag": "hook_callback_failed",
	})
}

// parseHookAnswer reads an answer; anything but an object says nothing.
func parseHookAnswer(raw json.RawMessage) HookAnswer {
	var a HookAnswer
	if len(raw) == 0 || string(raw) == "null" {
		return HookAnswer{valid: true}
	}
	if json.Unmarshal(raw, &a) != nil {
		return HookAnswer{}
	}
	a.Raw, a.valid = raw, true
	return a
}

// Hook calls the callbacks that the host registered for event, and returns their
// answers. Matchers are compared with subject. Without callbacks it returns at once.
func (l *Lane) Hook(event, subject string, input Object) ([]HookAnswer, error) {
	return l.hookOn(l.s, event, subject, "", input)
}

func (l *Lane) hookOn(s *Strand, event, subject, toolUseID string, input Object) ([]HookAnswer, error) {
	if !l.e.hooked(event, subject) {
		return nil, nil
	}
	runs := l.askHooks(event, subject, toolUseID, input)
	if err := l.collect(s, event, runs); err != nil {
		return nil, err
	}
	answers := make([]HookAnswer, len(runs))
	for i, run := range runs {
		answers[i] = run.answer
		l.says(event, subject, run.answer)
	}
	return answers, nil
}

// preToolUse is the first gate of a call.
func (l *Lane) preToolUse(s *Strand, c *call) (gate, error) {
	e := l.e
	if !e.hooked("PreToolUse", c.Name) {
		return gate{}, nil
	}
	if e.eof {
		return gate{refused: true, text: closedText, source: "config"}, nil
	}
	runs := l.askHooks("PreToolUse", c.Name, c.ID, Object{
		"tool_name": c.Name, "tool_input": c.input, "tool_use_id": c.ID,
	})
	if err := l.collect(s, "PreToolUse", runs); err != nil {
		return gate{}, err
	}
	var g gate
	for _, run := range runs {
		a := run.answer
		l.says("PreToolUse", c.Name, a)
		c.notes = append(c.notes, notesOf("PreToolUse", c.Name, a)...)
		switch {
		case run.timedOut:
			g.refuse(hookTimeoutText, "", "")
			g.silent = true
		case run.p.closed:
			g.refuse(closedText, "config", "")
		}
		decision, reason := a.Specific.PermissionDecision, a.Specific.PermissionDecisionReason
		if decision == "" && a.Decision == "block" { // the older form
			decision, reason = "deny", a.Reason
		}
		c.stops = c.stops || a.stops()
		if a.Specific.UpdatedInput != nil {
			c.input, c.other = a.Specific.UpdatedInput, true
		}
		switch decision {
		case "deny":
			g.refuse("PreToolUse:"+c.Name+" hook error: "+cmp.Or(strings.TrimSpace(reason), "Blocked by hook"), "hook", "hook")
		case "defer":
			g.deferred = true
		case "ask":
			g.ask, g.askReason = true, reason
		case "allow":
			g.allowed = true
		}
	}
	return g, nil
}
