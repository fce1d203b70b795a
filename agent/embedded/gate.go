package embedded

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
)

// readOnly are commands that run without a question in every mode: they only read. Package
// policy knows their options that do not, and where their paths lead.
func readOnly() []string {
	var rules []string
	for _, program := range []string{
		"ls", "cat", "head", "tail", "wc", "grep", "rg", "find", "echo", "printf", "which", "ps", "sleep", "true", "false",
		"sort", "uniq", "cut", "tr", "diff", "stat", "du", "df", "test", "[", "basename", "dirname", "realpath", "cd", "sed -n",
		"nl", "od", "strings", "cmp", "comm", "paste", "fold", "column", "rev", "base64", "tac", "hexdump", "fmt", "expand", "pr", "numfmt", "readlink", "free",
		"md5sum", "sha1sum", "sha256sum", "sha512sum", "cksum", "seq", "whoami", "id", "uname", "type", "expr", "tty", "groups", "arch", "nproc", "uptime", "cal",
		"git status", "git log", "git diff", "git show", "git branch --list", "git blame", "git rev-parse", "git ls-files", "git describe", "git grep", "git cat-file",
	} {
		rules = append(rules, "Bash("+program+":*)")
	}
	return append(rules, "Bash(date)", "Bash(date -u)", "Bash(hostname)", "Bash(pwd)", "Bash(tree)", "Bash(history)", "Bash(git branch)", "Bash(git branch -a)", "Bash(git remote)", "Bash(git remote -v)",
		"Bash(git tag)", "Bash(git stash list)", "Bash(git worktree list)", "Bash(python3 --version)", "Bash(python --version)", "Bash(node --version)", "Bash(node -v)")
}

// editing are commands that run without a question in the mode acceptEdits.
func editing() []string {
	return []string{"Bash(touch:*)", "Bash(mkdir:*)", "Bash(rm:*)", "Bash(rmdir:*)", "Bash(mv:*)", "Bash(cp:*)", "Bash(sed:*)"}
}

// gates are the compiled policies of a turn. They are compiled again when the rules change.
type gates struct {
	allow, deny  []string
	dirs         []string       // that answers have added
	own          *policy.Policy // the user's rules; nil if they do not compile
	allows       *policy.Policy // those that allow, if there are others
	reads, edits func() *policy.Policy
}

// compile compiles the rules of the session and the agent's own.
func (t *talk) compile(p agent.Permissions) *gates {
	if g := t.gates; g != nil && slices.Equal(g.allow, p.Allow) && slices.Equal(g.deny, p.Deny) && slices.Equal(g.dirs, p.Directories) {
		return g
	}
	t.hands.add(p.Directories)
	added := t.hands.directories()
	all := t.shared.made()
	with := func(allow, ask, deny []string) *policy.Policy {
		return all.policy(policy.Rules{
			Allow: allow, Ask: ask, Deny: deny, Cwd: t.hands.root, Home: t.hands.home(), Directories: added, Resolve: resolve,
		})
	}
	near := func(p *policy.Policy) *policy.Policy {
		if t.hands.far() {
			return nil // where a path leads there is not known, so all commands are asked about
		}
		return p
	}
	files, writes := []string{"Read(./**)"}, []string{"Edit(./**)"}
	for _, dir := range added {
		files, writes = append(files, "Read("+filesIn(dir, "**")+")"), append(writes, "Edit("+filesIn(dir, "**")+")")
	}
	g := &gates{
		allow: p.Allow, deny: p.Deny, dirs: p.Directories, own: with(p.Allow, nil, p.Deny),
		reads: sync.OnceValue(func() *policy.Policy { return near(with(append(files, all.reads...), nil, nil)) }),
		edits: sync.OnceValue(func() *policy.Policy { return near(with(slices.Concat(writes, files, all.edits), t.hands.runs(), nil)) }),
	}
	hides := (func(string) bool)(nil)
	if len(p.Deny) > 0 {
		g.allows = with(p.Allow, nil, nil)
		hides = func(path string) bool { return g.hides(path, t.hands.dir()) }
	}
	t.hands.hide(hides, g.own) // at once: a search may be under way
	t.hands.reads = func(command string) protocol.PermissionBehavior {
		input, _ := json.Marshal(agent.Object{"command": mild(command)}) // a string
		if _, odd := t.hands.oddity("", command); odd {
			return protocol.BehaviorAsk
		}
		return allows(g.reads(), policy.Call{Tool: "Bash", Input: input, Cwd: t.hands.dir()})
	}
	t.gates = g
	return g
}

// filesIn is the pattern of files in a directory.
func filesIn(dir, pattern string) string {
	plain := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
	return "/" + strings.TrimSuffix(plain, "/") + "/" + pattern
}

// runs are rules that ask about edits of files that commands run, also those that only read:
// programs in PATH, and what tools keep. The mode acceptEdits does not let them be written.
func (h *hands) runs() (ask []string) {
	add := func(dir, pattern string) {
		if slices.ContainsFunc(append([]string{h.root, h.real}, h.directories()...), func(own string) bool { return within(dir, own) }) {
			ask = append(ask, "Edit("+filesIn(dir, pattern)+")")
		}
	}
	for _, dir := range filepath.SplitList(h.getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		add(filepath.Clean(dir), "**")
		if at, err := filepath.EvalSymlinks(dir); err == nil && at != filepath.Clean(dir) {
			add(at, "**")
		}
	}
	add(h.tmp(), keptPrefix+"*/**")
	return ask
}

// allows is what a policy decides; without one, that the call is asked about.
func allows(p *policy.Policy, call policy.Call) protocol.PermissionBehavior {
	if p == nil {
		return protocol.BehaviorAsk
	}
	return p.Decide(call)
}

// decide is what the user's rules say of a call. byRule says that a rule may be about it, such
// as a deny rule for a file that a command names: it is asked about in every mode.
func (g *gates) decide(call policy.Call) (b protocol.PermissionBehavior, byRule bool) {
	if g.own == nil {
		return protocol.BehaviorAsk, false
	}
	e := g.own.Explain(call)
	return e.Behavior, e.Behavior == protocol.BehaviorAsk && e.Rule.Text != ""
}

// byDeny reports whether a deny rule may be about a call, which asks because of it.
func (g *gates) byDeny(call policy.Call) bool {
	return g.own.Explain(call).Rule.Behavior == protocol.BehaviorDeny
}

// allowed is what the rules that allow say of a call.
func (g *gates) allowed(call policy.Call) protocol.PermissionBehavior {
	if g.allows == nil {
		return protocol.BehaviorAsk
	}
	return g.allows.Decide(call)
}

// hides reports whether a deny rule is about reading a file, or may be: by its path, or by the one
// that it has in the shell's directory, where relative rules count too.
func (g *gates) hides(path, dir string) bool {
	if g.own == nil || g.denies(path, "/") {
		return true
	}
	target, err := resolve(dir)
	if err != nil {
		target = dir
	}
	for _, at := range []string{dir, target} {
		if near, err := filepath.Rel(at, path); err == nil && within(path, at) && g.denies(near, at) {
			return true
		}
	}
	return false
}

func (g *gates) denies(path, dir string) bool {
	input, _ := json.Marshal(agent.Object{"file_path": path}) // a text
	e := g.own.Explain(policy.Call{Tool: "Read", Input: input, Cwd: dir})
	return e.Behavior == protocol.BehaviorDeny || e.Rule.Behavior == protocol.BehaviorDeny
}

// resolve follows the links of a path; of one that does not exist, those of the deepest
// directory above it that does.
func resolve(path string) (string, error) {
	at, err := filepath.EvalSymlinks(path)
	if err == nil {
		return at, nil
	}
	dir, base := filepath.Split(filepath.Clean(path))
	if dir == path || base == "" {
		return "", err
	}
	above, err := resolve(filepath.Clean(dir))
	if err != nil {
		return "", err
	}
	return filepath.Join(above, base), nil
}

// judge is the gate of one of the agent's tools.
func (t *talk) judge(own *tool) func(agent.Permissions, agent.Object) agent.Verdict {
	return func(p agent.Permissions, in agent.Object) agent.Verdict {
		g := t.compile(p)
		call := policy.Call{Tool: own.name, Cwd: t.hands.dir()}
		call.Input, _ = json.Marshal(in) // it was JSON
		if own.tree {
			call.Input, _ = json.Marshal(agent.Object{"path": own.place(t.hands, in), "pattern": "*"}) // texts
		}
		because := "mode"
		if own.name == "Bash" {
			because = "subcommandResults"
		}
		mine, byRule := g.decide(call)
		if own.tree && byRule && g.byDeny(call) {
			mine, byRule = g.allowed(call), false // what it may not read is hidden from it
		}
		command := ""
		danger := ""
		plain := call // as the agent's own rules see it
		var strange agent.Verdict
		odd := false
		if own.name == "Bash" {
			command = str(in, "command")
			danger = t.hands.critical(command)
			strange, odd = t.hands.oddity(p.Mode, command)
			plain.Input, _ = json.Marshal(agent.Object{"command": mild(command)}) // a text
		}
		switch {
		case g.own == nil && len(p.Deny) > 0:
			return agent.Verdict{Deny: "The rules of this session cannot be read, so the call was denied.", Reason: "rule"}
		case mine == protocol.BehaviorDeny && own.tree:
			return agent.Verdict{Deny: "Permission to read " + t.hands.path(own.place(t.hands, in)) + " has been denied.", Reason: "rule"}
		case mine == protocol.BehaviorDeny && own.path != "":
			return agent.Verdict{Deny: "File is in a directory that is denied by your permission settings.", Tagged: true}
		case mine == protocol.BehaviorDeny && own.remote:
			return agent.Verdict{Deny: own.name + " denied access to domain:" + hostOf(str(in, "url")) + ".", Reason: "rule"}
		case mine == protocol.BehaviorDeny && own.name != "Bash":
			return agent.Verdict{Deny: "Permission to use " + own.name + " has been denied.", Reason: "rule"}
		case mine == protocol.BehaviorDeny:
			return agent.Verdict{Deny: "Permission to use Bash with command " + str(in, "command") + " has been denied.", Reason: because}
		}
		if v := t.hands.refusedLink(own, in); v.Deny != "" {
			return v
		}
		switch {
		case own.asks:
			return agent.Verdict{}
		case byRule: // a rule may be about it: what the agent allows by itself does not count
			return agent.Verdict{Reason: "rule"}
		case danger != "":
			return dangerous(p.Mode, danger)
		case p.Mode == "bypassPermissions":
			return agent.Verdict{Allow: true, Reason: "mode"}
		case p.Mode == "plan" && own.writes && t.hands.isPlan(own.place(t.hands, in)):
			return agent.Verdict{Allow: true, Reason: "other"}
		case own.reads && !own.tree && t.hands.isPlan(own.place(t.hands, in)):
			return agent.Verdict{Allow: true}
		case own.name == agentName && p.Mode == "plan" && mine != protocol.BehaviorAllow:
			return agent.Verdict{Unchecked: unchecked(own.name)}
		case own.free || own.name == "Read" && t.hands.kept(str(in, own.path)), own.reads && t.hands.opened(own.place(t.hands, in)):
			return agent.Verdict{Allow: true}
		case mine == protocol.BehaviorAllow && own.name == "Bash":
			return agent.Verdict{Allow: true, Reason: because}
		case mine == protocol.BehaviorAllow:
			return agent.Verdict{Allow: true, Reason: "rule"}
		case odd && p.Mode != "plan":
			return strange
		case !odd && allows(g.reads(), plain) == protocol.BehaviorAllow:
			return agent.Verdict{Allow: true, Reason: because}
		case p.Mode == "plan" && own.reads:
			return agent.Verdict{Allow: true, Reason: "mode"}
		case p.Mode == "acceptEdits" && (own.name != "Bash" || exact(command)) && allows(g.edits(), plain) == protocol.BehaviorAllow:
			return agent.Verdict{Allow: true, Reason: because}
		case (own.name == "Bash" || own.remote) && p.Mode == "plan":
			return agent.Verdict{Unchecked: unchecked(own.name)}
		case own.name == "Bash":
			return t.askCommand(g, p.Mode, command)
		case own.remote:
			return askHost(in)
		}
		return t.askFile(g, p.Mode, own, in)
	}
}

// judgeMCP is the gate of a tool of an MCP server: only a rule lets it run unasked.
func (t *talk) judgeMCP(name string) func(agent.Permissions, agent.Object) agent.Verdict {
	return func(p agent.Permissions, in agent.Object) agent.Verdict {
		g := t.compile(p)
		call := policy.Call{Tool: name, Cwd: t.hands.dir()}
		call.Input, _ = json.Marshal(in) // it was JSON
		mine, byRule := g.decide(call)
		switch {
		case byRule:
			return agent.Verdict{Reason: "rule"}
		case mine == protocol.BehaviorDeny || g.own == nil && len(p.Deny) > 0:
			return agent.Verdict{Deny: "Permission to use " + name + " has been denied.", Reason: "rule"}
		case slices.Contains(t.mustAsk, name):
			return agent.Verdict{Reason: "rule"}
		case p.Mode == "bypassPermissions":
			return agent.Verdict{Allow: true, Reason: "mode"}
		case mine == protocol.BehaviorAllow:
			return agent.Verdict{Allow: true, Reason: "rule"}
		case p.Mode == "plan":
			return agent.Verdict{Unchecked: unchecked(name)}
		}
		return agent.Verdict{Ask: agent.Object{"permission_suggestions": []any{agent.Object{
			"type": "addRules", "behavior": "allow", "destination": "localSettings", "rules": []any{agent.Object{"toolName": name}},
		}}}}
	}
}
