package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/protocol"
)

// Texts a model reads when a call did not happen, as observed.
const (
	rejectedText    = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed."
	stoppedText     = " Correction to the text above: this call was stopped while running, not refused before it ran. It may have run in part or in full, and its changes may have been written. No permission prompt was involved. Work it started elsewhere (a remote command, a background process) may still be running, so check before starting the same work again. The instruction to stop and wait still stands."
	closedText      = "The user doesn't want to take this action right now. STOP what you are doing and wait for the user to tell you how to proceed."
	hookTimeoutText = "PreToolUse hook did not respond before its timeout (host client may be unreachable). The tool call was not executed; other configured hooks may not have completed."
	badAnswerText   = "The canUseTool callback returned an invalid permission result."
	askFailedText   = "Tool permission request failed: "
	streamClosed    = "AbortError: Tool permission stream closed before response received"
)

// denialInDontAsk is what the model reads of a call in the mode dontAsk (observed on
// Claude Code 2.1.329).
func denialInDontAsk(tool string) string {
	return "Permission to use " + tool + " has been denied because Claude Code is running in don't ask mode. IMPORTANT: You *may* attempt to accomplish this action using other tools that might naturally be used to accomplish this goal, e.g. using head instead of cat. But you *should not* attempt to work around this denial in malicious ways, e.g. do not use your ability to run tests to execute non-test actions. You should only try to work around this restriction in reasonable ways that do not attempt to bypass the intent behind this denial. If you believe this capability is essential to complete the user's request, STOP and explain to the user what you were trying to do and why you need this permission. Let the user decide how to proceed."
}

// Gate says whether a [ToolCall] needs permission.
type Gate string

// Values of [Gate].
const (
	GateAsk   Gate = "ask"   // the host is asked, unless a hook, the permission mode or a rule allows the call
	GateAllow Gate = "allow" // the host is not asked, as for a harmless shell command; hooks are still called
)

// gate is what the gates of a call have said so far. A refusal stands, whatever
// else is said.
type gate struct {
	allowed, ask, refused, deferred bool

	askReason      string
	text           string // of the refusal
	plain          string // of a tool's error: the text without its tags
	source, reason string // of the decision, for tool_result_meta
	kind           string // non_execution_kind; "" means permission-rule
	interrupt      bool   // the refusal ends the turn
	silent         bool   // the refusal counts as no denial
	tagged         bool   // it does, although it reads as a tool's error
}

func (g *gate) refuse(text, source, reason string) {
	if !g.refused {
		g.refused, g.text, g.source, g.reason = true, text, source, reason
	}
}

func (g *gate) allow(source, reason string) {
	g.allowed, g.source, g.reason = true, source, reason
}

// permissions is the session's permission mode and rules.
type permissions struct {
	mode      string
	mayBypass bool
	allow     []rule
	disallow  []rule
	dirs      []string // those that answers have added to the options'
}

// newPermissions takes the mode and the rules from the arguments. A real agent's rules stay
// as they are written.
func newPermissions(f flags, cwd string, live bool) permissions {
	p := permissions{
		mode:      f.last("permission-mode"),
		mayBypass: f.has("allow-dangerously-skip-permissions") || f.has("dangerously-skip-permissions") || f.has("yolo"),
		allow:     f.rules("allowedTools", "allowed-tools"),
		disallow:  f.rules("disallowedTools", "disallowed-tools"),
	}
	for _, rules := range [][]rule{p.allow, p.disallow} {
		for i, r := range rules {
			if live {
				break
			}
			if rest, relative := strings.CutPrefix(r.content, "./"); relative && r.tool != "Bash" {
				rules[i].content = path.Join("/", cwd, rest)
			}
		}
	}
	p.mode = cmp.Or(p.mode, "default")
	if f.has("dangerously-skip-permissions") || f.has("yolo") {
		p.mode = "bypassPermissions"
	}
	if p.mode == "bypassPermissions" {
		p.mayBypass = true
	}
	return p
}

func validMode(mode string) bool {
	return slices.Contains([]string{"acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "plan"}, mode)
}

// change sets the mode and reports it.
func (p *permissions) change(e *engine, mode string) {
	before := p.mode
	p.mode = mode
	e.system("status", Object{"status": nil, "permissionMode": mode})
	if e.cfg.Dialect == Qoder && (before == "plan") != (mode == "plan") {
		e.system("plan_mode_changed", Object{"plan_mode": Object{"active": mode == "plan"}})
	}
}

// decide says, before anyone is asked, whether a call may run (allow), must be
// asked about (ask), or may not run (neither). A path that leads out of the places is
// noted in the call.
func (p *permissions) decide(c *call, l places) (allow, ask bool, reason string) {
	command, shell := c.shellCommand()
	file := c.file()
	out := file != "" && !l.inside(file)
	switch {
	case p.mode == "bypassPermissions":
		return true, false, "mode"
	case anyCovers(p.allow, c.Name, c.input):
		return true, false, "rule"
	case c.Gate == GateAllow:
		return true, false, "subcommandResults"
	case c.Gate == GateAsk && !(p.mode == "acceptEdits" && edits(c.Name)):
		return false, p.mode != "dontAsk", ""
	case out:
		c.outside = file
		return false, p.mode != "dontAsk", ""
	case p.mode == "acceptEdits" && (edits(c.Name) || shell && l.editsOnly(command)):
		return true, false, "mode"
	case harmless(c.Name) || shell && l.readsOnly(command):
		return true, false, ""
	}
	return false, p.mode != "dontAsk", ""
}

func (e *engine) places() places {
	return places{e.session.cwd, append(e.flags.all("add-dir"), e.perms.dirs...)}
}

// unasked reports whether a call runs although a hook says ask: one of which
// the safety check says that it is dangerous, in bypassPermissions (observed on
// Claude Code 2.1.329). Of these the agent knows files below .git.
func (p *permissions) unasked(c *call) bool {
	name, _ := c.input["file_path"].(string)
	return p.mode == "bypassPermissions" && strings.Contains("/"+name, "/.git/")
}

// judge is decide, or the gate of an agent with a real model.
func (l *Lane) judge(c *call) (allow, ask bool, reason string) {
	e := l.e
	if c.Judge == nil {
		return e.perms.decide(c, e.places())
	}
	c.verdict = c.Judge(l.Permissions(), c.input)
	return c.verdict.Allow, e.perms.mode != "dontAsk", c.verdict.Reason
}

// permit takes a call through its second gate.
func (l *Lane) permit(s *Strand, c *call, g gate) (gate, error) {
	e := l.e
	if g.allowed && !g.ask {
		g.allow("hook", "hook")
		return g, nil
	}
	allow, ask, why := l.judge(c)
	if allow && (!g.ask || e.perms.unasked(c)) {
		g.allow("config", why)
		return g, nil
	}
	if text := c.verdict.Unchecked; text != "" && !g.ask {
		return l.unchecked(c, g, text), nil
	}
	if (ask || g.ask) && e.flags.last("permission-prompt-tool") == "stdio" {
		return l.askPermission(s, c, g)
	}
	more := Object{}
	switch {
	case e.perms.mode == "dontAsk":
		g.refuse(denialInDontAsk(c.Name), "config", "mode")
		more["decision_reason_type"] = "mode"
	case c.outside != "" && !edits(c.Name):
		g.refuse("Claude requested permissions to read from "+c.outside+", but you haven't granted it yet.", "config", "")
		more["decision_reason_type"], more["decision_reason"] = "workingDir", outsideText
		g.kind = "user-rejected"
	case c.verdict.Unasked != "":
		g.refuse(c.verdict.Unasked, "config", "")
		g.kind = "user-rejected"
	case c.Name == "Bash":
		g.refuse("This command requires approval", "config", "")
		g.kind = "user-rejected"
	default:
		g.refuse("Claude requested permissions to "+c.wants()+", but you haven't granted it yet.", "config", "")
		g.kind = "user-rejected"
	}
	l.reportDenial(c, g, more)
	return g, nil
}

// askPermission asks can_use_tool, and PermissionRequest hooks beside it; the
// first decision wins.
func (l *Lane) askPermission(s *Strand, c *call, g gate) (gate, error) {
	e := l.e
	if e.eof {
		g.refuse(askFailedText+streamClosed, "config", "other")
		return g, nil
	}
	request := Object{
		"subtype": "can_use_tool", "tool_name": c.Name, "display_name": c.display(),
		"input": c.input, "tool_use_id": c.ID,
		"permission_suggestions": []any{Object{
			"type": "addRules", "behavior": "allow", "destination": "localSettings",
			"rules": []any{Object{"toolName": c.Name}},
		}},
	}
	if d, ok := c.input["description"].(string); ok {
		request["description"] = d
	}
	if g.askReason != "" {
		request["decision_reason"], request["decision_reason_type"] = g.askReason, "hook"
		request["decision_reason_hook_event"], request["decision_reason_hook_source"] = "PreToolUse", "settings"
		if e.cfg.Live != nil {
			delete(request, "permission_suggestions")
		}
	}
	if v := c.verdict; g.askReason == "" && v.About != "" {
		request["decision_reason"], request["decision_reason_type"] = v.About, v.Reason
	}
	if c.verdict.Blocked != "" {
		request["blocked_path"] = c.verdict.Blocked
	}
	if c.outside != "" && g.askReason == "" {
		request["decision_reason"], request["decision_reason_type"] = outsideText, "workingDir"
	}
	if l.agentID != "" {
		request["agent_id"] = l.agentID
	}
	if server, _, ok := mcpTool(c.Name); ok {
		request["mcp_server"] = Object{"name": server, "source": e.sourceOf(c.Name)}
		request["server_policy_ask_only"] = true
		delete(request, "permission_suggestions")
	}
	if c.Name == "AskUserQuestion" || c.Name == "ExitPlanMode" {
		request["requires_user_interaction"] = true
		delete(request, "permission_suggestions")
	}
	e.waitsForHost(+1)
	request = request.with(c.Ask).with(c.verdict.Ask)
	maps.DeleteFunc(request, func(_ string, v any) bool { return v == nil })
	p := e.ask(l.scope, request)
	asked := Object{"tool_name": c.Name, "tool_input": c.input}
	if s := request["permission_suggestions"]; s != nil && e.cfg.Live != nil {
		asked["permission_suggestions"] = s
	}
	hooks := l.askHooks("PermissionRequest", c.Name, c.ID, asked)
	e.at(PendingPermission, nil)

	var byHook *gate
	err := s.wait(-1, func() bool {
		byHook = l.hookDecision(c, g, hooks)
		return p.settled || byHook != nil
	})
	if err != nil {
		e.withdraw(p)
		e.openAsks-- // the end of the turn has reported the state
		if errors.Is(err, errKilledTask) && e.openAsks == 0 {
			e.setState("running")
		}
		return g, err
	}
	if !p.settled {
		e.withdraw(p)
		e.waitsForHost(-1)
		return *byHook, nil
	}
	g, mode := l.readDecision(c, g, p)
	if mode != "" {
		e.perms.change(e, mode)
	}
	e.waitsForHost(-1)
	return g, nil
}

// waitsForHost counts the asks that are open; the first and the last change
// the session's state.
func (e *engine) waitsForHost(n int) {
	e.openAsks += n
	switch {
	case n > 0 && e.openAsks == n:
		e.setState("requires_action")
	case n < 0 && e.openAsks == 0:
		e.setState("running")
	}
}

// decision is the answer of can_use_tool, and of a PermissionRequest hook.
type decision struct {
	Behavior     string                      `json:"behavior"`
	UpdatedInput Object                      `json:"updatedInput"`
	Permissions  []protocol.PermissionUpdate `json:"updatedPermissions"`
	Message      *string                     `json:"message"`
	Interrupt    bool                        `json:"interrupt"`
}

// readDecision turns the answer of can_use_tool into a gate, and the mode it
// sets, if any.
func (l *Lane) readDecision(c *call, g gate, p *pending) (gate, string) {
	refuse := func(text string) (gate, string) {
		g.refuse(text, "config", "other")
		return g, ""
	}
	switch {
	case p.closed:
		return refuse(askFailedText + streamClosed)
	case !p.ok:
		return refuse(askFailedText + "Error: " + p.err)
	}
	var d decision
	if json.Unmarshal(p.body, &d) != nil {
		return refuse(badAnswerText)
	}
	switch {
	case d.Behavior == "allow" && d.UpdatedInput == nil && l.e.tr.needsInput:
		return refuse(badAnswerText + " An allow answer must carry updatedInput.")
	case d.Behavior == "allow":
		if d.UpdatedInput != nil {
			c.input, c.other = d.UpdatedInput, true
		}
		g.allow("user_temporary", "")
		return g, l.e.perms.update(d.Permissions)
	case d.Behavior == "deny" && d.Message != nil:
		g.refuse(*d.Message, "user_reject", "")
		if g.interrupt = d.Interrupt; g.interrupt {
			g.text, g.kind = rejectedText, "user-rejected"
		}
		return g, ""
	}
	return refuse(badAnswerText + ` Expected {"behavior":"allow","updatedInput":{...}} or {"behavior":"deny","message":"..."}.`)
}

// update applies updatedPermissions and returns the mode they set, "" if none.
// Those that do not say where they are kept are dropped, as observed.
func (p *permissions) update(updates []protocol.PermissionUpdate) string {
	mode := ""
	for _, u := range updates {
		list := &p.allow
		if u.Behavior == protocol.BehaviorDeny {
			list = &p.disallow
		}
		var rules []rule
		for _, r := range u.Rules {
			rules = append(rules, rule{tool: r.ToolName, content: r.RuleContent})
		}
		switch {
		case u.Destination == "":
		case u.Type == protocol.SetMode:
			mode = string(u.Mode)
		case u.Type == protocol.AddDirectories:
			p.dirs = append(p.without(u.Directories), u.Directories...)
		case u.Type == protocol.RemoveDirectories:
			p.dirs = p.without(u.Directories)
		case u.Behavior != protocol.BehaviorAllow && u.Behavior != protocol.BehaviorDeny:
		case u.Type == protocol.AddRules:
			*list = append(*list, rules...)
		case u.Type == protocol.ReplaceRules:
			*list = rules
		case u.Type == protocol.RemoveRules:
			*list = slices.DeleteFunc(*list, func(r rule) bool { return slices.Contains(rules, r) })
		}
	}
	return mode
}

// without are the directories that answers have added, but for those of list.
func (p *permissions) without(list []string) (dirs []string) {
	for _, dir := range p.dirs {
		if !slices.Contains(list, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// hookDecision returns what a PermissionRequest hook decided, nil if none has.
func (l *Lane) hookDecision(c *call, g gate, runs []*hookRun) *gate {
	for _, run := range runs {
		if !run.p.settled || !run.p.ok {
			continue
		}
		var d decision
		a := parseHookAnswer(run.p.body)
		if len(a.Specific.Decision) == 0 || json.Unmarshal(a.Specific.Decision, &d) != nil {
			continue
		}
		switch d.Behavior {
		case "allow":
			g.allow("hook", "hook")
			if d.UpdatedInput != nil {
				c.input, c.other = d.UpdatedInput, true
			}
			return &g
		case "deny":
			text := "Permission denied by hook"
			if d.Message != nil {
				text = strings.TrimSpace(*d.Message)
			}
			g.refuse(text, "hook", "hook")
			g.interrupt = d.Interrupt
			return &g
		}
	}
	return nil
}
