package policy

import (
	"strings"
	"unicode/utf8"

	"github.com/agent-troupe/troupe/protocol"
)

// match is how far a deny or ask rule fits.
type match int

const (
	no    match = iota
	maybe       // cannot be ruled out
	yes
)

// specifier is what stands in a rule's parentheses, in the form of the tool:
// *commandSpec, *pathSpec, *hostSpec or *nameSpec; nil is every call.
type specifier any

// rule is a rule ready for use.
type rule struct {
	Rule
	tool string
	spec specifier
	mcp  []string // the ways to write a rule about MCP tools
}

func (r *rule) decides(about, reason string) Explanation {
	return Explanation{Behavior: r.Behavior, Rule: r.Rule, About: about, Reason: reason}
}

// stops says how far a deny or ask rule fits the call, and which part of it.
func (r *rule) stops(c Call, s subject, w *work) (m match, about string) {
	if !w.spend(2 + len(r.mcp)*(2+len(c.Tool)/16)) {
		return maybe, ""
	}
	if !r.names(c, true) {
		if strings.HasPrefix(r.tool, mcpPrefix) && reachesMCP(c.Tool) {
			return maybe, "" // it does not say which server
		}
		return no, ""
	}
	if r.spec == nil {
		return yes, ""
	}
	if s.script == nil && (s.unclear != "" || len(s.parts) == 0) || s.hidden != "" || s.never {
		m = maybe
	}
	if s.script != nil {
		var found match
		switch spec := r.spec.(type) {
		case *pathSpec:
			return s.script.names(spec, r.tool == "Edit", w)
		case *commandSpec:
			found, about = s.script.runs(spec, w)
		}
		if found <= m {
			about = ""
		}
		return max(m, found), about
	}
	for _, part := range s.parts {
		if got := part.stopped(r.spec, w); got > m {
			m, about = got, part.String()
		}
		if m == yes || w.exhausted() {
			break
		}
	}
	return m, about
}

// names reports whether the rule is about the call's tool. Where a name can be
// read in more than one way, wide takes any of them.
func (r *rule) names(c Call, wide bool) bool {
	switch {
	case r.tool == c.Tool, r.tool == "*", c.via != "" && r.tool == c.via:
		return true
	case isAgentTool(r.tool) && isAgentTool(c.Tool):
		return true
	case wide && strings.EqualFold(r.tool, c.Tool):
		return true
	case wide && r.tool == "Bash" && runsShell(c.Tool):
		return true
	case strings.HasPrefix(r.tool, mcpPrefix):
		return (wide || c.via == "" || c.via == "Mcp") && r.namesMCP(c, wide)
	case r.spec == nil:
		return false
	case r.tool == "Read":
		// A path that must not be read must not be written either, as with the agents.
		return readsFiles(c.Tool) || wide && (runsShell(c.Tool) || editsFiles(c.Tool) || c.Tool == "LSP")
	case r.tool == "Edit":
		return editsFiles(c.Tool) || wide && runsShell(c.Tool)
	}
	return false
}

// ParseRule parses one rule into the form of the protocol. The error is a *[ParseError].
// ParseRule checks only the outer form; [Compile] also checks the specifier.
func ParseRule(text string) (protocol.PermissionRule, error) {
	tool, content, _, err := split(Rule{Text: text, Index: -1})
	if err != nil {
		return protocol.PermissionRule{}, err
	}
	return protocol.PermissionRule{ToolName: tool, RuleContent: content}, nil
}

func parseRule(src Rule, at places) (rule, error) {
	r := rule{Rule: src}
	tool, content, offset, err := split(src)
	if err != nil {
		return r, err
	}
	r.tool = tool
	if strings.HasPrefix(tool, mcpPrefix) {
		r.mcp = spellings(tool)
	}
	bad := func(offset int, problem, fix string) (rule, error) { return r, src.bad(offset, problem, fix) }
	if offset == 0 || content == "*" {
		switch {
		case tool == "*" && src.Behavior == protocol.BehaviorAllow:
			return bad(0, "allows every tool", "name the tools")
		case tool == "*" || !strings.Contains(tool, "*"):
			return r, nil
		case !strings.HasPrefix(tool, mcpPrefix) || strings.Index(tool, "*") != len(tool)-1 || strings.Count(tool[len(mcpPrefix):], "__") < 1:
			return bad(strings.Index(tool, "*"), "has a wildcard in the tool's name", "a wildcard can only end the name of an MCP tool: mcp__server__*")
		}
		return r, nil
	}
	var wrong *flaw
	switch {
	case strings.Contains(tool, "*"), strings.HasPrefix(tool, mcpPrefix):
		return bad(offset-1, "has a specifier, which MCP tools and wildcards do not take", "leave the parentheses out")
	case tool == "Bash":
		r.spec, wrong = parseCommand(content, src.Behavior)
	case readsFiles(tool) || editsFiles(tool):
		r.spec, wrong = parsePath(content, at)
	case tool == "WebFetch":
		r.spec, wrong = parseHost(content)
	case tool == "Skill" || isAgentTool(tool):
		r.spec, wrong = parseName(content)
	default:
		return bad(offset-1, "no specifier is known for "+tool, "leave the parentheses out, for every call of the tool")
	}
	if wrong != nil {
		return bad(offset+wrong.offset, wrong.what, wrong.fix)
	}
	return r, nil
}

// flaw is what is wrong with a specifier, at a byte of it.
type flaw struct {
	offset    int
	what, fix string
}

func (r Rule) wrong(f *flaw) *ParseError {
	return &ParseError{List: string(r.Behavior), Index: r.Index, Rule: r.Text, Offset: f.offset, Problem: f.what, Fix: f.fix}
}

func (r Rule) bad(offset int, problem, fix string) error {
	return &ParseError{List: string(r.Behavior), Index: r.Index, Rule: r.Text, Offset: offset, Problem: problem, Fix: fix}
}

// split takes a rule apart. offset is where the content starts in the text, 0
// without parentheses. In the content \( \) and \\ stand for the characters.
func split(r Rule) (tool, content string, offset int, err error) {
	text := r.Text
	open := strings.IndexByte(text, '(')
	tool = text
	if open >= 0 {
		tool = text[:open]
	}
	if tool == "" {
		return "", "", 0, r.bad(0, "names no tool", "write it as Tool or Tool(specifier)")
	}
	for i, c := range tool {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("_-*.:", c) {
			return "", "", 0, r.bad(i, "has a character that no tool's name has", "write it as Tool or Tool(specifier)")
		}
	}
	if open < 0 {
		return tool, "", 0, nil
	}
	if !strings.HasSuffix(text, ")") {
		return "", "", 0, r.bad(len(text), "does not end with its closing parenthesis", "write it as Tool(specifier)")
	}
	raw := text[open+1 : len(text)-1]
	if strings.TrimSpace(raw) == "" {
		return "", "", 0, r.bad(open, "has nothing between its parentheses", "leave them out, for every call of the tool")
	}
	if !utf8.ValidString(raw) {
		return "", "", 0, r.bad(open+1, "is not UTF-8", "")
	}
	if trailing := len(raw) - len(strings.TrimRight(raw, `\`)); trailing%2 == 1 {
		return "", "", 0, r.bad(len(text)-1, "has its closing parenthesis escaped", `write a backslash as \\`)
	}
	return tool, strings.NewReplacer(`\\`, `\`, `\(`, `(`, `\)`, `)`).Replace(raw), open + 1, nil
}
