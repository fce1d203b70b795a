package acpagent

import (
	"context"
	"strings"

	"github.com/agent-troupe/troupe/acp"
	escape "github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// The options of a permission request.
const (
	allowOnce   acp.PermissionOptionID = "allow-once"
	allowAlways acp.PermissionOptionID = "allow-always"
	reject      acp.PermissionOptionID = "reject"
	planManual  acp.PermissionOptionID = "exit-plan-default"
	planEdits   acp.PermissionOptionID = "exit-plan-accept-edits"
)

// Texts that the model reads when a call is denied.
const (
	refused   = "The user refused permission to run the tool."
	unasked   = "The permission request did not reach the user, or the answer was not valid."
	cancelled = "The user cancelled."
)

// pending is a permission that the editor is asked for.
type pending struct {
	*sdk.Ask[sdk.ToolPermissionRequest, sdk.PermissionResult]
}

// deny denies it and ends the turn; a later answer of the editor has no effect.
func (p *pending) deny() { p.Answer(sdk.DenyAndStop(cancelled)) }

// ask asks the editor for a permission. The agent waits; other messages continue.
func (s *session) ask(a *sdk.Ask[sdk.ToolPermissionRequest, sdk.PermissionResult]) {
	r, p := a.Request, &pending{a}
	s.shown.mu.Lock()
	s.toolCalled(r.ToolUseID, r.ToolName, "", r.Input)
	s.shown.mu.Unlock()
	s.mu.Lock()
	s.asks[p] = true
	over := s.closed || len(s.prompts) > 0 && s.prompts[0].ctx.Err() != nil
	s.mu.Unlock()
	if over {
		p.deny()
	}
	ctx, cancel := context.WithCancel(context.Background())
	start(func() {
		<-a.Done() // answered, or withdrawn
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.asks, p)
	})
	start(func() {
		answer := s.decide(ctx, r)
		if answer.Allowed() && ctx.Err() == nil {
			s.shown.mu.Lock()
			s.toolStarted(r.ToolUseID)
			s.shown.mu.Unlock()
		}
		a.Answer(answer)
	})
}

// decide is the answer of the person: no, unless the editor says yes.
func (s *session) decide(ctx context.Context, r *sdk.ToolPermissionRequest) sdk.PermissionResult {
	if questions := sdk.QuestionsOf(r); questions != nil {
		return s.questions(ctx, r, questions)
	}
	q := acp.RequestPermissionRequest{SessionID: s.id, ToolCall: s.consent(r), Options: []acp.PermissionOption{
		{OptionID: allowOnce, Name: "Yes", Kind: acp.PermissionOptionKindAllowOnce},
	}}
	_, plan := sdk.PlanOf(r)
	switch {
	case plan:
		q.Options = []acp.PermissionOption{
			{OptionID: planEdits, Name: "Yes, and accept edits", Kind: acp.PermissionOptionKindAllowAlways},
			{OptionID: planManual, Name: "Yes, and approve edits one by one", Kind: acp.PermissionOptionKindAllowOnce},
		}
	case len(r.Suggestions()) > 0 && !r.SuppressAlwaysAllowRule:
		lasting := always(r)
		q.Options = append(q.Options, acp.PermissionOption{OptionID: allowAlways, Name: escape.Line(oneLine(lasting)), Kind: acp.PermissionOptionKindAllowAlways})
		if oneLine(lasting) != lasting {
			q.ToolCall.Content = append(q.ToolCall.Content, inText(fence("", escape.Visible(lasting))))
		}
	}
	q.Options = append(q.Options, acp.PermissionOption{OptionID: reject, Name: "No", Kind: acp.PermissionOptionKindRejectOnce})

	var answer acp.RequestPermissionResponse
	if err := s.server.conn.Call(ctx, acp.MethodSessionRequestPermission, q, &answer); err != nil {
		if ctx.Err() == nil {
			s.server.config.Logger.Warn("permission denied: the editor did not answer", "session", s.id, "tool", r.ToolName, "problem", err)
		}
		return sdk.Deny(unasked)
	}
	if answer.Outcome.Selected == nil {
		return sdk.Deny(unasked)
	}
	switch chosen := answer.Outcome.Selected.OptionID; {
	case chosen == reject:
		return sdk.Deny(refused)
	case plan && chosen == planEdits:
		return sdk.ApprovePlan(sdk.ModeAcceptEdits)
	case plan && chosen == planManual:
		return sdk.ApprovePlan(sdk.ModeDefault)
	case !plan && chosen == allowOnce:
		return sdk.Allow()
	case !plan && chosen == allowAlways && len(q.Options) == 3:
		return sdk.AllowAlways(r)
	}
	return sdk.Deny(unasked) // an option that was not offered
}

// always says what the agent's suggestions allow, all of them.
func always(r *sdk.ToolPermissionRequest) string {
	var all, rules []string
	for _, s := range r.Suggestions() {
		switch s.Type {
		case protocol.SetMode:
			if s.Mode == sdk.ModeAcceptEdits {
				all = append(all, "allow all edits during this session")
			} else {
				all = append(all, "change the mode to "+string(s.Mode))
			}
		case protocol.AddDirectories:
			all = append(all, "allow access to "+strings.Join(s.Directories, ", "))
		default:
			for _, rule := range s.Rules {
				rules = append(rules, ruleWords(rule))
			}
		}
	}
	if len(rules) > 0 {
		all = append(all, "don't ask again for "+strings.Join(rules, ", "))
	}
	switch {
	case len(all) == 0:
		return "Yes, and don't ask again"
	case len(all) == 1 && strings.HasPrefix(all[0], "allow"):
		return "Yes, " + all[0]
	}
	return "Yes, and " + strings.Join(all, ", and ")
}

// ruleWords says which calls a rule is about.
func ruleWords(r protocol.PermissionRule) string {
	if r.RuleContent == "" {
		return r.ToolName
	}
	if command := strings.TrimSuffix(strings.TrimSuffix(r.RuleContent, ":*"), " *"); r.ToolName == "Bash" {
		return command + " commands"
	}
	return r.ToolName + "(" + r.RuleContent + ")"
}
