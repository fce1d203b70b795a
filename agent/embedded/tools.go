package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/internal/jsonshape"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/protocol"
)

// tool is one of the agent's own tools.
type tool struct {
	name, about string
	params      []param
	// beside reports whether the call can run beside others: one that only reads. nil: yes.
	beside func(h *hands, in agent.Object) bool
	// path is the parameter that names a file, which the gate looks at; "": none does.
	path   string
	writes bool // it writes that file
	tree   bool // it looks at all that is below, and without a path at the shell's directory
	// fix makes of an input what the tool's parameters are called, where that is safe, and
	// returns a note for the model. nil does nothing.
	fix func(t *tool, in agent.Object) (note string)
	// check looks whether the call can work at all, as a task. nil if there is nothing to check.
	check func(h *hands, in agent.Object) string
	// run does the work, as a task.
	run func(ctx context.Context, h *hands, in agent.Object) agent.ToolResult
	// look is check on the strand, for what the engine knows; act is run on it, for a tool
	// that does more than one piece of work. nil: check and run are used.
	look func(l *agent.Lane, in agent.Object) string
	act  func(t *talk, l *agent.Lane, s *agent.Strand, id string, in agent.Object) (agent.ToolResult, error)
	old  string // a name that the tool had
	// before is check on the strand for a tool that needs both: what the engine knows, and tasks. It
	// may change the input.
	before func(t *talk, l *agent.Lane, s *agent.Strand, in agent.Object) (string, error)
	reads  bool // it only reads files
	free   bool // it runs without a question
	asks   bool // it asks the user, whatever the mode and the rules
	asker  bool // it is offered only if the host answers questions
	byRule bool // it is offered only if a rule allows it, or the options name it
	// bySkills says that it is offered only if the agent has skills.
	bySkills bool
	remote   bool              // it reaches servers: the gate looks at the host of its url
	open     bool              // it takes members that no parameter has
	shape    *jsonshape.Schema // the schema of its input, in place of parameters
	// late says that the model sees it only once a session needs it. It runs in any case.
	late func(h *hands) bool
}

// toolbox are the tools, in the order in which the model sees them.
// background says whether commands can run in the background, todo has the to-do tools.
func toolbox(background bool, todo []*tool) []*tool {
	box := append([]*tool{
		agentTool(background), askUserQuestion(), bash(background), edit(), enterPlanMode(), exitPlanMode(), glob(), grep(), notebookEdit(), read(), skillTool(), taskStop(), webFetch(), write(),
	}, todo...)
	slices.SortFunc(box, func(a, b *tool) int { return strings.Compare(a.name, b.name) })
	return box
}

// namesOf are the names of tools, as system/init says them.
func namesOf(box []*tool) (names []string) {
	for _, t := range box {
		name := t.name
		if name == agentName {
			name = oldAgentName
		}
		names = append(names, name)
	}
	return names
}

// toolNames are the names of all tools that there are.
func toolNames() []string { return namesOf(toolbox(true, append(taskTools(), todoWrite()))) }

// place is the path that a call is about.
func (t *tool) place(h *hands, in agent.Object) string {
	name := str(in, t.path)
	if t.name == "Glob" {
		name, _ = globbed(in)
	}
	if name = strings.TrimSpace(name); t.tree && name == "" {
		return h.dir()
	} else if t.tree {
		return name
	}
	return str(in, t.path)
}

// schema is the JSON schema of the tool's input, as short as it can be: each request has it.
// The rules that it leaves out, such as those about other members, are checked when the tool is called.
func (t *tool) schema() json.RawMessage {
	if t.shape != nil {
		return t.shape.Listed
	}
	b := []byte(`{"type":"object","properties":{`)
	required := []string{}
	for _, p := range t.params {
		if p.hidden {
			continue
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		rules := p.schema
		if rules == "" {
			rules = `"type":"` + p.kind + `"` + p.more
		}
		about := []byte(nil)
		if p.about != "" {
			about, _ = json.Marshal(p.about) // a text
			about = append([]byte(`,"description":`), about...)
		}
		b = fmt.Appendf(b, "%q:{%s%s}", p.name, rules, about)
		if p.required {
			required = append(required, p.name)
		}
	}
	b = append(b, '}')
	if len(required) > 0 {
		list, _ := json.Marshal(required) // texts
		b = append(append(b, `,"required":`...), list...)
	}
	return append(b, '}')
}

// toolList is the encoded list of tools: those of the agent, and of MCP servers. It stays the same
// for a turn but for tools of the agent that are seen late, which stand at the end. It is encoded
// again only when it has changed.
func (t *talk) toolList(l *agent.Lane) []byte {
	changed := t.tools == nil
	if changed || !t.listed {
		mcp := l.MCPTools()
		changed = changed || !sameTools(mcp, t.mcp)
		t.listed, t.offers, t.mcp = true, t.shared.names(t.offered(l)), mcp
	}
	var names, late []string
	for _, name := range t.offers {
		i := slices.IndexFunc(t.box, func(own *tool) bool { return own.name == name })
		switch {
		case i < 0 || t.box[i].late == nil:
			names = append(names, name)
		case t.box[i].late(t.hands):
			late = append(late, name)
		}
	}
	names = append(names, late...)
	if !changed && slices.Equal(names, t.named) {
		return t.tools
	}
	names = t.shared.names(names)
	of := toolList{first: t.box[0], names: names, mcp: t.mcp, output: l.OutputSchema(), kinds: described(t.kinds)}
	if t.up == nil { // a sub-agent is not resumed
		t.noteTools(l, t.mcp)
	}
	t.named, t.tools = names, t.shared.tools(of, func() []byte {
		var list []model.Tool
		add := func(isLate bool) {
			for _, own := range t.box {
				if slices.Contains(names, own.name) && isLate == (own.late != nil) {
					about := own.about
					if own.name == agentName {
						about += of.kinds
					}
					list = append(list, model.Tool{Name: own.name, Description: about, Schema: own.schema()})
				}
			}
		}
		add(false)
		for _, s := range of.mcp {
			if !slices.Contains(names, l.MCPToolName(s.Server, s.Name)) {
				continue
			}
			var in struct {
				Description string          `json:"description"`
				Schema      json.RawMessage `json:"inputSchema"`
			}
			_ = protocol.Unmarshal(s.Tool, &in) // the engine has read it
			list = append(list, model.Tool{Name: l.MCPToolName(s.Server, s.Name), Description: in.Description, Schema: in.Schema})
		}
		add(true)
		return t.cfg.Model.Codec().Tools(list)
	})
	return t.tools
}

// useTools runs the calls of an answer. The engine says their results, in the order in which
// they come.
func (t *talk) useTools(l *agent.Lane, uses []*model.Block) error {
	var calls []agent.ToolCall
	t.compile(l.Permissions())
	t.hands.serve(l.Model())
	for _, b := range uses {
		calls = append(calls, t.prepare(l, b))
	}
	return l.RunTools(calls...)
}

// prepare makes the engine's call of a block.
func (t *talk) prepare(l *agent.Lane, b *model.Block) agent.ToolCall {
	c := agent.ToolCall{ID: b.ID, Name: b.Name}
	var in agent.Object
	if protocol.Unmarshal(b.Input, &in) != nil || in == nil {
		in = agent.Object{}
	}
	c.Input = in
	if t.up != nil {
		t.tally.add(b.Name, in)
	}
	offered := t.offered(l)
	if server, name, mine := l.MCPTool(b.Name); mine && (t.up == nil || slices.Contains(offered, b.Name)) {
		c.Unknown = name == ""
		c.Alone = true
		c.Judge = t.judgeMCP(b.Name)
		c.Run = func(s *agent.Strand, in agent.Object) (agent.ToolResult, error) {
			t.called(b.Name)
			defer t.mayChange()
			return t.callMCP(s, l, server, name, b.Name, b.ID, in)
		}
		return c
	}
	i := slices.IndexFunc(t.box, func(own *tool) bool { return own.name == b.Name || own.old == b.Name && own.old != "" })
	if i < 0 || !slices.Contains(offered, t.box[i].name) {
		c.Invalid = t.noSuchTool(b.Name, offered)
		c.Judge = func(agent.Permissions, agent.Object) agent.Verdict { return agent.Verdict{} }
		return c
	}
	own := t.box[i]
	c.Name = own.name
	raw, note := b.Input, ""
	if b.BadInput != "" {
		raw, c.Invalid, c.Detail = unparsed(own.name, b.BadInput)
		in = agent.Object{}
		_ = protocol.Unmarshal(raw, &in) // it is an object
	}
	if c.Invalid == "" {
		if own.fix != nil {
			note = own.fix(own, in)
		}
		if issues := own.coerce(in, keysOf(raw)); len(issues) > 0 {
			c.Invalid, c.Detail = faulty(own.name, issues)
		}
	}
	c.Input = in
	at := &spot{}
	c.Judge = t.judged(own, at)
	c.Alone = own.beside != nil && !own.beside(t.hands, in) ||
		own.name == "Bash" && t.hands.moves(str(in, "command")) ||
		own.remote && t.limited // the money for one question about a page is spent before the next is asked
	if own.look != nil {
		c.Check = func(*agent.Strand) (string, error) { return own.look(l, in), nil }
	}
	if own.before != nil {
		c.Check = func(s *agent.Strand) (string, error) { return own.before(t, l, s, in) }
	}
	if own.check != nil {
		c.Check = func(s *agent.Strand) (string, error) {
			text := ""
			err := s.Do(func(context.Context) error {
				if text = own.check(t.hands, in); text == "" && own.writes {
					at.look(t.hands, t.hands.path(own.place(t.hands, in)))
				}
				return nil
			})
			if err != nil { // the task may still write
				return "", err
			}
			return text, nil
		}
	}
	asked := maps.Clone(in)
	c.Run = func(s *agent.Strand, in agent.Object) (r agent.ToolResult, err error) {
		if own.shape != nil {
			return t.takeOutput(l, own.shape, raw, asked, in)
		}
		t.called(own.name)
		if own.writes || own.name == "Bash" && !own.beside(t.hands, in) {
			defer t.mayChange()
		}
		if own.act != nil {
			return own.act(t, l, s, b.ID, in)
		}
		if own.writes {
			if no, err := t.track(s, l.SessionID(), at, t.hands.path(own.place(t.hands, in))); err != nil || no != "" {
				return failure("%s", no), err
			}
		}
		var done agent.ToolResult
		err = s.Do(func(ctx context.Context) error {
			done = own.run(context.WithValue(ctx, spotKey{}, at), t.hands, in)
			if text, plain := done.Content.(string); plain && !done.IsError {
				done.Content = text + note
			}
			return nil
		})
		if err != nil { // the task may still write
			return agent.ToolResult{}, err
		}
		return done, nil
	}
	return c
}

// noSuchTool is what the model reads when it calls a tool that it does not have, as observed.
func (t *talk) noSuchTool(name string, offered []string) string {
	text := "Error: No such tool available: " + name
	for _, own := range offered {
		if own != name && strings.EqualFold(own, name) {
			return text + ". Tool names are case-sensitive: call " + own + " instead."
		}
	}
	if t.up != nil && slices.ContainsFunc(t.box, func(own *tool) bool { return own.name == name }) {
		return text + ". " + name + " is not among the tools available here. Continue with the tools you have."
	}
	if slices.Contains(strings.Fields(claudeTools), name) {
		return text + ". " + name + " is disabled for this session, in subagents as well as here."
	}
	return text
}

// claudeTools are the tools that Claude Code 2.1.329 knows.
const claudeTools = `Agent AskUserQuestion Bash CronCreate CronDelete CronList Edit EnterPlanMode EnterWorktree
	ExitPlanMode ExitWorktree Glob Grep ListAgents Monitor NotebookEdit Read ReportFindings ScheduleWakeup SendMessage
	Skill TaskCreate TaskGet TaskList TaskStop TaskUpdate TodoWrite WebFetch WebSearch Workflow Write`

// failure is a result that is an error.
func failure(format string, args ...any) agent.ToolResult {
	return agent.ToolResult{IsError: true, Content: fmt.Sprintf(format, args...)}
}
