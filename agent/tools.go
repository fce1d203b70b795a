package agent

import (
	"cmp"
	"errors"
	"slices"
	"strings"
)

// ToolCall is a tool call of the model.
type ToolCall struct {
	ID    string // "": a new id
	Name  string // the tool's name
	Input Object // the arguments
	Gate  Gate   // whether the call needs permission
	Ask   Object // members of the request for permission, which replace those of the same name
	// Unknown says that the agent has no such tool: the model reads that, and no gate is
	// asked.
	Unknown bool
	// Invalid is what is wrong with the input: the model reads it as the tool's error, and no
	// gate is asked. "": nothing is.
	Invalid string
	// Detail is what tool_use_result says of an invalid input; "": Invalid.
	Detail string
	// Check looks whether the call can work at all, after the deny rules and before any other
	// gate: what it returns the model reads as the tool's error. nil, and "": it can.
	Check func(s *Strand) (string, error)
	// Judge is the gate of an agent with a real model, in place of Gate and of the engine's
	// rules, which are those of a double. It is called before the hooks, when only Deny
	// counts, and after them, with the input that they leave. An input that a hook or the host
	// has put in place of another is shown to it at once, when only Deny counts, too.
	Judge func(p Permissions, input Object) Verdict
	// Alone says that the call waits for those before it, and those behind it wait for it.
	Alone bool
	// Run runs the tool after every gate has allowed the call. input are the arguments,
	// with the changes of the gates. nil does nothing.
	Run func(s *Strand, input Object) (ToolResult, error)
}

// ToolResult is the result of a tool call.
type ToolResult struct {
	Content    any  // string or content blocks; nil means ""
	Structured any  // tool_use_result; nil: derived from Content
	IsError    bool // the tool failed
	// Note is for a real model, which reads it behind the results of the answer's calls.
	Note string
}

// call is a ToolCall on its way.
type call struct {
	ToolCall
	input   Object // as the gates leave it
	other   bool   // a gate has put another input there, which no deny rule has seen
	stops   bool   // a hook said continue:false
	defers  bool
	halt    bool   // a refusal said interrupt
	outside string // the path for which the agent asks, since it leads out of its directories
	verdict Verdict
	running bool
	content any      // of the tool_result, for PostToolBatch
	notes   []string // of hooks, for a real model
}

// display is the tool's name for people: the last part of an MCP tool's.
func (c *call) display() string { return displayName(c.Name) }

func displayName(name string) string {
	if _, tool, ok := mcpTool(name); ok && tool != "" {
		return strings.ToUpper(tool[:1]) + tool[1:]
	}
	return name
}

// toolUseMeta is what the frame of a call says of an MCP tool; nil for another tool. Of one
// that no server has, it says less (observed on Claude Code 2.1.329).
func (e *engine) toolUseMeta(name string, id any) Object {
	server, tool, ok := mcpTool(name)
	if !ok {
		return nil
	}
	meta := Object{"id": id, "display_name": displayName(name)}
	if slices.ContainsFunc(e.host.servers, func(m *mcpServer) bool {
		return slices.ContainsFunc(m.tools, func(own string) bool { return e.mcpToolName(m.name, own) == name })
	}) {
		meta["server_display_name"], meta["tool_name"] = server, tool
	}
	return Object{"tool_use_meta": []any{meta}}
}

// mcpTool splits mcp__server__tool.
func mcpTool(name string) (server, tool string, ok bool) {
	rest, ok := strings.CutPrefix(name, "mcp__")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "__")
}

var (
	errHookStopped = errors.New("agent: a hook stopped the turn")
	errDeferred    = errors.New("agent: a hook deferred a tool call")
)

// UseTools makes one or more tool calls. It writes their assistant frames first. Then the
// calls go through their gates and run concurrently, and their tool_results are written
// in the order in which the calls end.
func (l *Lane) UseTools(calls ...ToolCall) error {
	e := l.e
	open := make([]*call, len(calls))
	for i, tc := range calls {
		c := newCall(tc)
		if c.ID == "" {
			c.ID = "toolu_" + e.ids.hex(12)
		}
		open[i] = c
		if err := l.toolUse(c); err != nil {
			return err
		}
	}
	l.endMessage("tool_use")
	return l.runTools(open)
}

// newCall is a call on its way.
func newCall(tc ToolCall) *call {
	c := &call{ToolCall: tc, input: tc.Input}
	if c.input == nil {
		c.input = Object{}
	}
	c.Input = c.input
	return c
}

// runTools takes calls through their gates and runs them.
func (l *Lane) runTools(open []*call) error {
	if l.overBudget() {
		return l.budgetError()
	}
	if err := l.stored(slices.ContainsFunc(open, func(c *call) bool { return c.Alone })); err != nil {
		l.unstoredCalls(open, err)
		return err
	}
	for left := open; len(left) > 0; {
		n := 1
		for !left[0].Alone && n < len(left) && !left[n].Alone {
			n++
		}
		if err := l.performAll(left[:n]); err != nil {
			return err
		}
		if slices.ContainsFunc(left[:n], func(c *call) bool { return c.halt }) {
			l.rejectRest(left[n:])
			break // the turn ends: no question about the others is asked
		}
		left = left[n:]
	}
	return l.afterBatch(open)
}

// performAll runs calls at once.
func (l *Lane) performAll(calls []*call) error {
	if len(calls) == 1 {
		l.perform(l.s, calls[0])
		return nil
	}
	left := len(calls)
	for _, c := range calls {
		l.e.spawn(l.scope, func(s *Strand) {
			l.perform(s, c)
			left--
		})
	}
	return l.s.join(func() bool { return left == 0 })
}

// afterBatch checks the results of a batch, which decide whether the turn continues.
func (l *Lane) afterBatch(open []*call) error {
	if err := l.scope.cause(); err != nil {
		return err
	}
	var batch []any
	for _, c := range open {
		batch = append(batch, Object{
			"tool_name": c.Name, "tool_input": c.input, "tool_use_id": c.ID, "tool_response": c.content,
		})
	}
	for _, c := range open {
		switch {
		case c.halt:
			l.halted = true
			l.haltAll()
			return errAborted
		case c.defers:
			l.deferred = c
			return errDeferred
		}
	}
	answers, err := l.hookOn(l.s, "PostToolBatch", "", "hook-"+l.e.ids.uuid(), Object{"tool_calls": batch})
	if err != nil {
		return err
	}
	var notes []string
	for _, c := range open {
		notes = append(notes, c.notes...)
	}
	for _, a := range answers {
		notes = append(notes, notesOf("PostToolBatch", "", a)...)
	}
	l.remind(notes)
	stops := l.e.cfg.Live != nil && slices.ContainsFunc(answers, func(a HookAnswer) bool { return a.stops() || a.Decision == "block" })
	if stops || slices.ContainsFunc(open, func(c *call) bool { return c.stops }) {
		return errHookStopped
	}
	if l.turn != nil && l.parent == "" {
		l.e.inject(l.turn)
	}
	return nil
}

// toolUse writes the assistant frame of a call.
func (l *Lane) toolUse(c *call) error {
	l.openTools = append(l.openTools, c)
	more := l.e.toolUseMeta(c.Name, c.ID)
	block := Object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": c.Input}
	input, err := encode(c.Input)
	if err != nil {
		return err
	}
	if l.task != nil && l.background {
		defer l.task.progress(c)
	} else if l.task != nil {
		l.task.progress(c)
	}
	return l.block(blockFrame{
		block: block, more: more,
		start:  Object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": Object{}},
		deltas: []Object{{"type": "input_json_delta", "partial_json": string(input)}},
	})
}

// perform takes a call through its gates, runs it and writes its result.
func (l *Lane) perform(s *Strand, c *call) {
	defer func() {
		l.openTools = slices.DeleteFunc(l.openTools, func(o *call) bool { return o == c })
	}()
	if err := s.scope.cause(); err != nil { // a call before it has waited, and was interrupted
		l.abortCall(c, err)
		return
	}
	g, err := l.gates(s, c)
	switch {
	case err != nil:
		l.abortCall(c, err)
		return
	case g.deferred:
		c.defers = true
		return
	case g.refused:
		c.halt = g.interrupt
		l.refusal(c, g)
		return
	}
	l.changeMode(c)
	c.running = true
	began := s.slept
	result := ToolResult{}
	if c.Run != nil {
		if result, err = c.Run(s, c.input); err != nil {
			l.abortCall(c, err)
			reportCut(err)
			return
		}
	}
	c.running = false
	if result.Note != "" {
		c.notes = append(c.notes, result.Note)
	}
	if err := l.postToolUse(s, c, &result, s.slept-began); err != nil {
		l.abortCall(c, err)
		return
	}
	l.toolResult(c, g, result)
}

// gates asks hooks and permission. A tool that does not exist has no gate.
func (l *Lane) gates(s *Strand, c *call) (gate, error) {
	if g, refused := l.disallowed(c); refused {
		return g, nil
	}
	if c.Check != nil {
		text, err := c.Check(s)
		if err != nil {
			return gate{}, err
		}
		if text != "" {
			return toolError(text), nil
		}
	}
	g, err := l.preToolUse(s, c)
	if err != nil || g.refused || g.deferred {
		return g, err
	}
	if no, refused := l.deniedOther(c); refused {
		return no, nil
	}
	g, err = l.permit(s, c, g)
	if err != nil || g.refused {
		return g, err
	}
	if no, refused := l.deniedOther(c); refused {
		return no, nil
	}
	return g, nil
}

// deniedOther is denied for an input that a gate has put in place of the model's: a deny rule wins
// over all that allows the call.
func (l *Lane) deniedOther(c *call) (g gate, refused bool) {
	if !c.other || c.Judge == nil {
		return g, false
	}
	c.other = false
	return l.denied(c, c.Judge(l.Permissions(), c.input))
}

// disallowed refuses, before any gate, what no tool is there for and what a deny rule
// names, in the words observed on Claude Code 2.1.329.
func (l *Lane) disallowed(c *call) (g gate, refused bool) {
	silent := func(text string) (gate, bool) {
		g.refuse("<tool_use_error>"+text+"</tool_use_error>", "", "")
		g.silent = true
		return g, true
	}
	if c.Judge != nil {
		return l.denied(c, c.Judge(l.Permissions(), c.input))
	}
	command, shell := c.shellCommand()
	switch i := slices.IndexFunc(l.e.perms.disallow, func(r rule) bool { return r.covers(c.Name, c.input) }); {
	case c.Unknown:
		return silent("Error: No such tool available: " + c.Name)
	case i < 0:
		return g, false
	case l.e.perms.disallow[i].content == "":
		return silent("Error: No such tool available: " + c.Name + ". " + c.Name + " is disabled for this session, in subagents as well as here.")
	case shell:
		g.refuse("Permission to use Bash with command "+command+" has been denied.", "config", "subcommandResults")
		l.reportDenial(c, g, Object{"decision_reason_type": "subcommandResults"})
		return g, true
	case c.file() != "":
		return silent("File is in a directory that is denied by your permission settings.")
	}
	g.refuse("Permission to use "+c.Name+" has been denied.", "config", "rule")
	l.reportDenial(c, g, Object{"decision_reason_type": "rule"})
	return g, true
}

// denied refuses a call of an agent with a real model: one that no tool is there for, one
// whose input is wrong, and one that a rule denies.
func (l *Lane) denied(c *call, v Verdict) (g gate, refused bool) {
	switch {
	case c.Unknown:
		return toolError("Error: No such tool available: " + c.Name), true
	case c.Invalid != "":
		g := toolError(c.Invalid)
		g.plain = cmp.Or(c.Detail, g.plain)
		return g, true
	case v.Deny == "":
		return g, false
	case v.Tagged:
		g = toolError(v.Deny)
		g.source, g.reason, g.tagged = "config", cmp.Or(v.Reason, "rule"), true
		return g, true
	}
	g.refuse(v.Deny, "config", v.Reason)
	more := Object{"decision_reason_type": v.Reason}
	if v.About != "" {
		more["decision_reason"] = v.About
	}
	l.reportDenial(c, g, more)
	return g, true
}

// toolError is a refusal that the model reads as the tool's error.
func toolError(text string) gate {
	g := gate{silent: true, plain: text}
	g.refuse("<tool_use_error>"+text+"</tool_use_error>", "", "")
	return g
}
