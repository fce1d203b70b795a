package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

const (
	allowQuestion = "Allow it? [y/n/a/?] "
	// deniedWithReason is what the model reads before the person's words.
	deniedWithReason = "The user denied this tool call: "
)

// verdict is what a line says about a call.
type verdict int

const (
	unclear verdict = iota
	allowed
	always
	denied
	explain
)

// judged reads an answer to [allowQuestion]. A sentence is a denial that says why; any other
// single word may be a typing mistake, and so may a sentence that begins with yes.
func judged(line string) (v verdict, reason string) {
	line = strings.TrimSpace(line)
	first, rest, several := strings.Cut(line, " ")
	switch strings.ToLower(strings.TrimRight(first, ",.:;")) {
	case "y", "yes", "a", "always":
		switch {
		case several || strings.TrimRight(first, ",.:;") != first:
			return unclear, ""
		case strings.EqualFold(first, "a"), strings.EqualFold(first, "always"):
			return always, ""
		}
		return allowed, ""
	case "n", "no":
		return denied, strings.TrimSpace(rest)
	case "?":
		return explain, ""
	}
	if several || strings.Contains(line, "\n") {
		return denied, line
	}
	return unclear, ""
}

// verdictOf asks about a call. At the end of the terminal the call is denied.
func (d *decider) verdictOf(ctx context.Context, req *sdk.ToolPermissionRequest, question string) (sdk.PermissionResult, error) {
	scope, updates := d.scope(req)
	if len(updates) > 0 {
		question += "  a allows until this session ends: " + scope + "\n"
	}
	if scope != "" {
		scope = "until this session ends: " + scope
	}
	v, reason, err := d.settle(ctx, question, scope)
	switch {
	case err != nil:
		return sdk.PermissionResult{}, err
	case v == allowed:
		return sdk.Allow(), nil
	case v == always:
		d.remember(req, updates)
		result := sdk.Allow()
		result.UpdatedPermissions = updates
		return result, nil
	case reason != "":
		return sdk.Deny(deniedWithReason + reason), nil
	}
	return sdk.Deny(deniedByUser), nil
}

// settle asks until the answer is clear: allowed, always or denied, and unclear at the end of
// the terminal. scope is what always allows besides; "": it is not offered.
func (d *decider) settle(ctx context.Context, question, scope string) (v verdict, reason string, err error) {
	for {
		line, err := d.ask(ctx, question+allowQuestion)
		if err != nil {
			return unclear, "", err
		}
		v, reason := judged(line)
		switch {
		case v == allowed, v == denied, v == always && scope != "", v == unclear && d.over():
			return v, reason, nil
		case v == explain:
			question = answersHelp(scope)
		case v == always:
			question = "This call is asked about each time.\n"
		case strings.TrimSpace(line) == "":
			question = ""
		default:
			question = fmt.Sprintf("\"%s\" is not an answer: write y, n, a, ?, or a sentence that says why not.\n", printable(strings.TrimSpace(line)))
		}
	}
}

func answersHelp(scope string) string {
	help := "  y  allow this call\n  n  deny it; what follows the n, or any other sentence, tells the agent why\n"
	if scope != "" {
		help += "  a  allow it, and " + scope + "\n"
	}
	return help + "  ?  this text\n"
}

// scope is what "always" allows in this session, in words, and as rules for the agent: those
// that it suggests, or else, without rules, the same call. "": it must not be offered.
func (d *decider) scope(req *sdk.ToolPermissionRequest) (scope string, updates []protocol.PermissionUpdate) {
	if req.SuppressAlwaysAllowRule || req.RequiresUserInteraction {
		return "", nil
	}
	var words []string
	for _, u := range req.Suggestions() {
		u.Destination = protocol.ToSession // a file of rules is not changed by a letter
		switch {
		case u.Type == protocol.AddRules && u.Behavior == protocol.BehaviorAllow:
			for _, r := range u.Rules {
				words = append(words, printable(ruleText(r)))
			}
		case u.Type == protocol.SetMode:
			words = append(words, "what the permission mode "+printable(string(u.Mode))+" allows")
		case u.Type == protocol.AddDirectories:
			words = append(words, "work in "+printable(strings.Join(u.Directories, ", ")))
		default:
			continue
		}
		updates = append(updates, u)
	}
	if len(words) == 0 {
		return "the same call", nil
	}
	return strings.Join(words, "; "), updates
}

func ruleText(r protocol.PermissionRule) string {
	if r.RuleContent == "" {
		return r.ToolName
	}
	return r.ToolName + "(" + r.RuleContent + ")"
}

// remember allows the same call from now on, unless the agent has rules for it.
func (d *decider) remember(req *sdk.ToolPermissionRequest, updates []protocol.PermissionUpdate) {
	if len(updates) > 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.always == nil {
		d.always = map[string]bool{}
	}
	d.always[callKey(req)] = true
}

func (d *decider) remembered(req *sdk.ToolPermissionRequest) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.always[callKey(req)]
}

// callKey is equal for calls of the same tool with the same input.
func callKey(req *sdk.ToolPermissionRequest) string { return req.ToolName + "\x00" + string(req.Input) }

// over reports whether the terminal has ended.
func (d *decider) over() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ended
}

// askEdited asks with the editor of the conversation.
func (d *decider) askEdited(ctx context.Context, question string) (string, error) {
	defer d.editor.hold()()
	end := strings.LastIndex(question, "\n") + 1
	d.console.say("%s", question[:end])
	line, err := d.editor.answer(ctx, question[end:])
	switch {
	case ctx.Err() != nil:
		d.console.say("(withdrawn)\n")
		return "", ctx.Err()
	case errors.Is(err, io.EOF) && !d.editor.ended(): // Ctrl-D
		d.console.say("\n")
		return "n", nil
	case err != nil:
		d.end()
		return "", nil
	}
	return line, nil
}
