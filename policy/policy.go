package policy

import (
	"cmp"
	"encoding/json"
	"errors"
	"path"
	"slices"

	"github.com/agent-troupe/troupe/protocol"
)

// Rules are the rules of a policy. The zero value asks about every call, except those
// that change nothing outside the agent; see [Default].
//
// A rule is the name of a tool, which matches every call of the tool, or a name with a
// specifier in parentheses:
//
//	Bash(git status)         the command with exactly these words
//	Bash(git:*), Bash(git *) commands that begin with these words
//	Read(src/**)             Read, Grep, Glob and other reading tools on such a path
//	Edit(/docs/*.md)         Edit, Write and other writing tools on such a path
//	Write(notes.txt)         any other tool with a path: only that tool
//	WebFetch(domain:go.dev)  a host; domain:*.go.dev its subdomains
//	Skill(commit), Agent(Explore)
//	mcp__server, mcp__server__*, mcp__server__tool, mcp__server__get_*
//
// Paths are gitignore patterns: //x starts at the root of the file system, ~/x at Home,
// /x at Root, ./x and a/b at Cwd, and x without a slash matches at any depth below Cwd. A
// pattern that matches a directory also matches everything below it. A shell command is
// asked about if it names a path that a Read or Edit rule denies or asks about.
type Rules struct {
	Allow []string `json:"allow,omitempty"` // calls that run without a question, unless Ask or Deny has them
	Ask   []string `json:"ask,omitempty"`   // calls that a person decides about, unless Deny has them
	Deny  []string `json:"deny,omitempty"`  // calls that never run
	// Default is what happens to a call that matches no rule. Zero: [Ask].
	Default Default `json:"default,omitempty"`

	// Cwd is the start of relative paths, Root the start of rule paths that begin with a
	// slash (empty: Cwd), and Home the directory that ~ means. Each must be an absolute
	// path with forward slashes. A rule that needs a missing one is an error of
	// [Compile]: Read(./**) needs Cwd. Package sdk fills in empty fields, Cwd with
	// Options.Cwd or this program's directory.
	Cwd  string `json:"cwd,omitempty"`
	Root string `json:"root,omitempty"` // see Cwd
	Home string `json:"home,omitempty"` // see Cwd
	// Directories are further directories, in addition to Cwd, whose files commands may
	// use. Each must be an absolute path with forward slashes. An allow rule for a command
	// that is known to use the files in its words, such as Bash(touch:*), does not match
	// paths outside Cwd and Directories, as on Claude Code 2.1.329 (observed); the rule
	// Bash matches all paths. Without Cwd, all paths match.
	Directories []string `json:"directories,omitempty"`

	// Resolve returns an absolute path with its symbolic links followed. If the file does
	// not exist, it must follow the links of the deepest parent that exists. Rules are
	// then compared with the path as written and with the resolved path: a call is denied
	// if either path is denied, and allowed if both are allowed. If Resolve returns an
	// error, no allow rule with a path matches, and every deny or ask rule with a path
	// applies. Resolve is called concurrently, for the paths of tools and for words of
	// shell commands that may be paths. nil: links are not followed. Package sdk sets
	// Resolve if the agent runs on this machine.
	Resolve func(path string) (string, error) `json:"-"`
}

// Policy is a set of compiled rules. It is safe for concurrent use.
type Policy struct {
	allow, ask, deny []rule
	places           places
	// paths is set when a deny or ask rule has a path.
	paths     bool
	byDefault Default
	warnings  []*ParseError
}

// places are those of the rules, and what is wrong with them.
func (r *Rules) places() (at places, problems []error) {
	at = places{cwd: r.Cwd, root: r.Root, home: r.Home, directories: slices.Clone(r.Directories), resolve: r.Resolve}
	at.root = cmp.Or(at.root, r.Cwd)
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
	return at, problems
}

// Compile parses the rules. The error joins a *[ParseError] for each invalid rule.
func Compile(r Rules) (*Policy, error) {
	at, problems := r.places()
	p := &Policy{places: at, byDefault: r.Default}
	problems = append(problems, r.Default.problem())
	list := func(behavior protocol.PermissionBehavior, texts []string) []rule {
		rules := make([]rule, 0, len(texts))
		for i, text := range texts {
			rule, err := parseRule(Rule{Behavior: behavior, Index: i, Text: text}, p.places)
			if err != nil {
				problems = append(problems, err)
			} else if wrong := p.check(&rule); wrong != nil {
				problems = append(problems, wrong)
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
	for i := range p.deny {
		if f := openEdits(&p.deny[i], p.deny); f != nil {
			p.warnings = append(p.warnings, p.deny[i].wrong(f))
		}
	}
	p.paths = slices.ContainsFunc(slices.Concat(p.deny, p.ask), func(r rule) bool { _, is := r.spec.(*pathSpec); return is })
	return p, nil
}

// At returns a policy with the rules of p at the places of r: its Cwd, Root, Home,
// Directories and Resolve. The other fields of r are not used. Only rules with paths are
// parsed again, so it costs a small part of [Compile]: it is for programs that have the same
// rules in many directories. Warnings are those of p.
func (p *Policy) At(r Rules) (*Policy, error) {
	at, problems := r.places()
	q := *p
	q.places = at
	for _, list := range []*[]rule{&q.deny, &q.ask, &q.allow} {
		cloned := false
		for i := range *list {
			if _, is := (*list)[i].spec.(*pathSpec); !is {
				continue
			}
			rule, err := parseRule((*list)[i].Rule, at)
			if err == nil && rule.Behavior != protocol.BehaviorAllow {
				err = q.check(&rule) // one that matches nothing there would keep nothing out
			}
			if err != nil {
				problems = append(problems, err)
				continue
			}
			if !cloned {
				*list, cloned = slices.Clone(*list), true
			}
			(*list)[i] = rule
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return &q, nil
}

// check returns what makes a deny or ask rule match nothing; of an allow rule that is a
// warning.
func (p *Policy) check(r *rule) error {
	_, content, offset, err := split(r.Rule)
	if err != nil {
		return err
	}
	f := inert(r, content, p.places)
	if f == nil {
		return nil
	}
	f.offset += offset
	if r.Behavior == protocol.BehaviorAllow {
		p.warnings = append(p.warnings, r.wrong(f))
		return nil
	}
	return r.wrong(f)
}

// Call is a tool call.
type Call struct {
	// Tool is the tool's name as the agent sends it.
	Tool string
	// Input is the tool's input, a JSON object.
	Input json.RawMessage
	// MCPServer is the server of an MCP tool, if the agent sends it. Without it, an allow
	// rule for a server matches only tools whose name can be split into server and tool in
	// one way.
	MCPServer string
	// Cwd is the directory in which the call runs, an absolute path with forward slashes.
	// Agents change it: by cd, for subagents, in worktrees. Relative paths of the call
	// start at Cwd, and also at Rules.Cwd if that is stricter. If Cwd is empty, the call
	// could run in any directory: an allow rule does not match a relative path, and every
	// deny or ask rule with a path applies to a relative path.
	Cwd string
	// Outside says that the agent found that a path of the call, perhaps a link, leads
	// out of its working directories. Allow rules for paths below Rules.Cwd and for
	// commands then do not match.
	Outside bool
	// Blocked is the path that the agent asks about, if it names one. A path outside
	// Rules.Cwd and Rules.Directories has the same effect as Outside.
	Blocked string

	via string // the tool that was called to reach Tool, if it is another
}

// Decide returns the policy's decision about the call: allow, ask or deny.
func (p *Policy) Decide(c Call) protocol.PermissionBehavior { return p.Explain(c).Behavior }

// Explain returns the policy's decision, which rule decided, and why. The work of a
// decision is bounded and takes less than 100 ms; a call that would need more is denied.
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
	var beside *Explanation // a part that needs no rule beside one that has one
	for _, part := range s.parts {
		found := Explanation{Behavior: protocol.BehaviorAsk, About: part.String(), Reason: "no rule is about it"}
		for _, r := range d.allow {
			if t, is := part.(*redirection); is {
				if !t.allowedBy(&r) {
					continue
				}
			} else if r.spec == nil || !r.names(c, false) {
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
			if c, is := part.(*command); is && fits && !d.mayEditAll(c) {
				fits, why = false, "no Edit rule allows the files that it edits"
			}
			if fits {
				found = r.decides(part.String(), "")
				break
			}
			if why != "" {
				found.Reason = why
			}
		}
		if found.Behavior != protocol.BehaviorAllow {
			if cmd, is := part.(*command); !is || c.Outside || !d.needsNoRule(cmd, s.script) {
				return found
			}
			if beside == nil {
				beside = &found
			}
			continue
		}
		parts = append(parts, found)
	}
	if beside != nil && len(parts) == 0 {
		return *beside
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
