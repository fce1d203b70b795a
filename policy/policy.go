package policy

import (
	"encoding/json"
	"errors"
	"path"
	"slices"

	"github.com/agent-troupe/troupe/protocol"
)

// Rules are what a policy is made of. The zero value asks about every call but
// those that change nothing outside of the agent, see [Ask].
//
// A rule is the name of a tool, for every call of it, or a name with a
// specifier in parentheses:
//
//	Bash(git status)         the command with exactly these words
//	Bash(git:*), Bash(git *) the command with these words first
//	Read(src/**)             Read, Grep, Glob and their kin on such a path
//	Edit(/docs/*.md)         Edit, Write and their kin on such a path
//	Write(notes.txt)         any other tool with a path: that tool alone
//	WebFetch(domain:go.dev)  a host; domain:*.go.dev its subdomains
//	Skill(commit), Agent(Explore)
//	mcp__server, mcp__server__*, mcp__server__tool, mcp__server__get_*
//
// Paths are gitignore patterns: //x from the root of the file system, ~/x from
// Home, /x from Root, ./x and a/b from Cwd, and x alone at any depth below Cwd.
// What a pattern matches it matches with everything below. A shell command that
// names a path that a Read or Edit rule denies or asks about asks, too.
type Rules struct {
	Allow []string `json:"allow,omitempty"` // calls that run without a question, unless Ask or Deny has them
	Ask   []string `json:"ask,omitempty"`   // calls that a person decides on, unless Deny has them
	Deny  []string `json:"deny,omitempty"`  // calls that never run
	// Default says what happens to a call that no rule names. Zero: [Ask].
	Default Default `json:"default,omitempty"`

	// Cwd is where relative paths start, Root where the paths of rules that
	// begin with a slash do (empty: Cwd), and Home what ~ stands for. Each is
	// an absolute path with forward slashes; a rule that needs a missing one
	// does not compile: Read(./**) needs Cwd. Package sdk fills in those that are
	// empty, Cwd with Options.Cwd or this program's directory.
	Cwd  string `json:"cwd,omitempty"`
	Root string `json:"root,omitempty"` // see Cwd
	Home string `json:"home,omitempty"` // see Cwd
	// Directories are those besides Cwd that commands may name paths in, as
	// absolute paths with forward slashes. A rule about a command that is known
	// to work on the files in its words, such as Bash(touch:*), does not allow
	// paths outside of Cwd and Directories, as with Claude Code 2.1.329
	// (observed); Bash alone does. Without Cwd all paths are allowed.
	Directories []string `json:"directories,omitempty"`

	// Resolve follows the symbolic links of an absolute path. For a file that
	// does not exist it returns what the path will stand for once the file is
	// made: the links of its deepest existing parent are followed. Rules are
	// then about the path as it is written and about what it stands for: denied
	// when either is, allowed when both are. Where it returns an error, no allow
	// rule with a path fits, and no deny or ask rule with a path is ruled out.
	// It is called for the paths of tools and for words of shell commands that
	// may be paths, concurrently. nil: links are not followed; package sdk sets
	// it where the agent runs on this machine.
	Resolve func(path string) (string, error) `json:"-"`
}

// Policy is rules ready for use. It may be used concurrently.
type Policy struct {
	allow, ask, deny []rule
	places           places
	// paths is set when a deny or ask rule has a path.
	paths     bool
	byDefault Default
}

// Compile parses the rules. Its error joins a *[ParseError] for each rule that
// is wrong.
func Compile(r Rules) (*Policy, error) {
	p := &Policy{places: places{cwd: r.Cwd, root: r.Root, home: r.Home, directories: slices.Clone(r.Directories), resolve: r.Resolve}, byDefault: r.Default}
	if p.places.root == "" {
		p.places.root = r.Cwd
	}
	problems := []error{r.Default.problem()}
	for _, place := range []struct{ name, value string }{{"Cwd", r.Cwd}, {"Root", r.Root}, {"Home", r.Home}} {
		if place.value != "" && !path.IsAbs(place.value) {
			problems = append(problems, &ParseError{List: place.name, Index: -1, Rule: place.value, Problem: "is not an absolute path", Fix: "begin it with a slash"})
		}
	}
	for i, dir := range r.Directories {
		if !path.IsAbs(dir) {
			problems = append(problems, &ParseError{List: "Directories", Index: i, Rule: dir, Problem: "is not an absolute path", Fix: "begin it with a slash"})
		}
	}
	list := func(behavior protocol.PermissionBehavior, texts []string) []rule {
		rules := make([]rule, 0, len(texts))
		for i, text := range texts {
			rule, err := parseRule(Rule{Behavior: behavior, Index: i, Text: text}, p.places)
			if err != nil {
				problems = append(problems, err)
			}
			rules = append(rules, rule)
		}
		return rules
	}
	p.deny = list(protocol.BehaviorDeny, r.Deny)
	p.ask = list(protocol.BehaviorAsk, r.Ask)
	p.allow = list(protocol.BehaviorAllow, r.Allow)
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	p.paths = slices.ContainsFunc(slices.Concat(p.deny, p.ask), func(r rule) bool { _, is := r.spec.(*pathSpec); return is })
	return p, nil
}

// Call is a tool call.
type Call struct {
	// Tool is the name as the agent gives it.
	Tool string
	// Input is the tool's input, a JSON object.
	Input json.RawMessage
	// MCPServer is the server of an MCP tool, if the agent says so. Without it
	// a rule about a server allows only tools whose name can be split one way.
	MCPServer string
	// Cwd is the directory in which the call runs, an absolute path with forward
	// slashes. Agents change it: by cd, for subagents, in worktrees. Relative
	// paths of the call count from it, and from Rules.Cwd where that is stricter.
	// A call without it is judged as if it could run anywhere: an allow rule with
	// a relative path asks, and no deny or ask rule about a path is ruled out for
	// a relative one.
	Cwd string
	// Outside says that the agent found a path of the call, perhaps a link, to
	// lead out of its working directories. A rule about paths below Rules.Cwd
	// then does not allow the call, nor does a rule about commands.
	Outside bool
	// Blocked is the path that the agent asks about, if it names one. A path
	// outside of Rules.Cwd and Rules.Directories counts like Outside.
	Blocked string

	via string // the tool that was called to reach Tool, if it is another
}

// Decide says what the rules make of the call: allow, ask or deny.
func (p *Policy) Decide(c Call) protocol.PermissionBehavior { return p.Explain(c).Behavior }

// Explain decides, and says which rule decided and why. The work that it does is
// bounded and takes less than 100 milliseconds; a call that would take more is
// denied.
func (p *Policy) Explain(c Call) Explanation { return p.explain(c, &work{left: maxWork}) }

func (p *Policy) explain(c Call, w *work) Explanation {
	d := &decision{Policy: p, work: w}
	if path.IsAbs(c.Cwd) {
		d.dir = path.Clean(c.Cwd)
	}
	c = throughMCP(c, w)
	if c.Blocked != "" && d.places.cwd != "" && !d.within(d.dir, c.Blocked) {
		c.Outside = true
	}
	why := d.byRules(c)
	if w.exhausted() {
		return w.denied()
	}
	return p.orDefault(c, why)
}

// byRules decides by the rules alone: a call that no rule names asks.
func (d *decision) byRules(c Call) Explanation {
	s := d.read(c)
	doubt, found := Explanation{}, false
	for _, r := range d.deny {
		m, about := r.stops(c, s, d.work)
		if m == yes {
			return r.decides(about, "")
		}
		if m == maybe && !found {
			doubt, found = r.decides(about, doubtful(s)), true
			doubt.Behavior = protocol.BehaviorAsk
		}
	}
	for _, r := range d.ask {
		if m, about := r.stops(c, s, d.work); m != no {
			why := ""
			if m == maybe {
				why = doubtful(s)
			}
			return r.decides(about, why)
		}
	}
	if found && (d.byDefault != Deny || d.allowed(c, s).Behavior == protocol.BehaviorAllow) {
		return doubt
	}
	return d.allowed(c, s)
}

func doubtful(s subject) string {
	if s.unclear != "" {
		return "cannot be ruled out: " + s.unclear
	}
	return "cannot be ruled out"
}

// allowed looks for allow rules that together fit all of the call.
func (d *decision) allowed(c Call, s subject) Explanation {
	ask := Explanation{Behavior: protocol.BehaviorAsk, Reason: s.unclear}
	if s.never {
		return ask
	}
	if name := d.guarded(c, s); name != "" {
		ask.About, ask.Reason = name, "no rule allows it to be written or removed"
		return ask
	}
	for _, r := range d.allow {
		if r.spec == nil && r.names(c, false) {
			return r.decides("", "")
		}
	}
	if s.unclear != "" {
		return ask
	}
	var parts []Explanation
	for _, part := range s.parts {
		found := Explanation{Behavior: protocol.BehaviorAsk, About: part.String(), Reason: "no rule is about it"}
		for _, r := range d.allow {
			if r.spec == nil || !r.names(c, false) {
				continue
			}
			if spec, is := r.spec.(*pathSpec); is && c.Outside && spec.inCwd {
				found.Reason = "it leads out of the directory that the rule is about"
				continue
			}
			if _, is := r.spec.(*commandSpec); is && c.Outside {
				found.Reason = "it names a path outside of the agent's directories"
				continue
			}
			fits, why := part.covered(r.spec, d.work)
			if fits {
				found = r.decides(part.String(), "")
				break
			}
			if why != "" {
				found.Reason = why
			}
		}
		if found.Behavior != protocol.BehaviorAllow {
			return found
		}
		parts = append(parts, found)
	}
	if len(parts) == 0 {
		ask.Reason = "no rule is about it"
		return ask
	}
	all := parts[0]
	if len(parts) > 1 {
		all.Parts = parts
	}
	return all
}
