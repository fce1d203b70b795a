package embedded

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
)

const needsApproval = "This command requires approval"

// askCommand is the question about a command that the agent's own rules do not allow. It
// decides nothing: what cannot be said of the command is left out.
func (t *talk) askCommand(g *gates, mode, command string) agent.Verdict {
	s := sight{h: t.hands, dir: t.hands.dir(), mode: mode, rules: g.reads()}
	if mode == "acceptEdits" {
		s.rules = g.edits()
	}
	return s.ask(command)
}

// sight is what a command does, as far as a question about it needs that.
type sight struct {
	h     *hands
	dir   string // in which the next command runs
	mode  string
	rules *policy.Policy // of what needs no question

	asked  []string // commands that need one
	reads  string   // the first path out of the directories that is read
	writes string   // the first path that is written
	by     string   // the program that does
	redir  bool     // the path is that of a redirection
	other  bool     // a command needs a question that is not about a path
}

func (s *sight) ask(command string) agent.Verdict {
	other := func(about string, suggestions any) agent.Verdict {
		return agent.Verdict{Reason: "other", About: about, Ask: agent.Object{"permission_suggestions": suggestions}}
	}
	whole := commandRules(ruleFor(command))
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	if err != nil {
		return other(needsApproval, []any{whole})
	}
	nested, heredoc, cd, vcs, finds := false, false, false, false, ""
	var calls []*syntax.CallExpr
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			nested = true
		case *syntax.Redirect:
			if n.Hdoc != nil && !quoted(n.Word) {
				heredoc = true
			}
		case *syntax.CallExpr:
			words, _ := literally(n.Args)
			if len(words) == 0 {
				break
			}
			calls = append(calls, n)
			name := filepath.Base(words[0])
			cd = cd || name == "cd" || name == "pushd"
			vcs = vcs || slices.Contains([]string{"git", "hg", "svn", "jj"}, name)
			if name == "find" {
				if i := slices.IndexFunc(words, func(w string) bool {
					return slices.Contains([]string{"-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprint0", "-fprintf", "-fls"}, w)
				}); i >= 0 {
					finds = words[i]
				}
			}
		}
		return true
	})
	switch {
	case nested:
		return other("A nested command in this command can't be checked before it runs", []any{})
	case heredoc:
		return other("Heredoc with unquoted delimiter undergoes shell expansion", []any{})
	case cd && vcs:
		return other("This command changes directory before running a version-control command, which can pick up untrusted hooks or repository configuration from the target directory. Approve only if you trust it.", nil)
	case finds != "":
		return other("find with '"+finds+"' executes commands or modifies files — cannot be auto-allowed by a Bash(find:*) prefix rule", []any{})
	}
	for _, stmt := range file.Stmts {
		s.stmt(command, stmt)
	}
	v := agent.Verdict{Ask: agent.Object{}}
	suggestions := []any{whole}
	switch {
	case s.other && len(calls) > 1:
		v.Ask["decision_reason_type"] = "subcommandResults"
		if s.writes == "" && len(s.asked) > 0 {
			suggestions = []any{commandRules(s.asked...)}
		}
		suggestions = append(suggestions, s.more()...)
	case s.writes != "":
		v.Blocked = s.writes
		suggestions = append(suggestions, s.more()...)
		if within(s.writes, s.h.root) {
			v.Unasked = s.by + " in '" + s.writes + "' needs approval. The path is inside the working directories for this session ('" + strings.Join(append([]string{s.h.root}, s.h.added...), "', '") + "'), and Claude Code asks before a shell command creates, changes or removes files there."
		}
	case s.reads != "":
		v.Blocked = s.reads
		dir := s.reads
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			dir = filepath.Dir(dir)
		}
		suggestions = append(suggestions, readRule(dir))
	default:
		v.Reason, v.About = "other", needsApproval
	}
	v.Ask["permission_suggestions"] = suggestions
	return v
}

// more are suggestions about the path that is written.
func (s *sight) more() (list []any) {
	if s.writes == "" {
		return nil
	}
	list = append(list, addDirectory(filepath.Dir(s.writes)))
	if !s.redir && s.mode != "acceptEdits" {
		list = append(list, acceptEdits())
	}
	return list
}

// stmt looks at a statement, and at those in it.
func (s *sight) stmt(text string, stmt *syntax.Stmt) {
	switch cmd := stmt.Cmd.(type) {
	case *syntax.BinaryCmd:
		s.stmt(text, cmd.X)
		s.stmt(text, cmd.Y)
	case *syntax.CallExpr:
		own := text[stmt.Pos().Offset():min(int(stmt.End().Offset()), len(text))]
		if !s.allowed(own) {
			s.call(own, cmd)
		}
		words, _ := literally(cmd.Args)
		if len(words) == 2 && words[0] == "cd" {
			s.dir = s.path(words[1])
		}
	default:
		if own := text[stmt.Pos().Offset():min(int(stmt.End().Offset()), len(text))]; !s.allowed(own) {
			s.other = true
		}
	}
	for _, r := range stmt.Redirs {
		s.redirect(r)
	}
}

func (s *sight) allowed(command string) bool {
	call := policy.Call{Tool: "Bash", Input: encoded(agent.Object{"command": mild(command)}), Cwd: s.dir}
	return allows(s.rules, call) == protocol.BehaviorAllow
}

// redirect notes a file that a redirection writes.
func (s *sight) redirect(r *syntax.Redirect) {
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrInOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
	default:
		return
	}
	words, known := literally([]*syntax.Word{r.Word})
	if !known || words[0] == "/dev/null" || s.mode == "acceptEdits" && s.h.inside(s.path(words[0])) {
		return
	}
	if s.writes == "" {
		s.writes, s.redir, s.by = s.path(words[0]), true, "Output redirection"
	}
}

// call looks at a simple command that needs a question.
func (s *sight) call(own string, cmd *syntax.CallExpr) {
	words, known := literally(cmd.Args)
	if len(words) == 0 || len(cmd.Assigns) > 0 {
		s.other = true
		s.asked = append(s.asked, ruleFor(own))
		return
	}
	name := filepath.Base(words[0])
	paths := operands(words)
	if !known {
		paths = nil
	}
	switch name {
	case "touch", "mkdir", "rm", "rmdir", "mv", "cp", "sed", "tee":
		if name == "sed" && !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "-i") || strings.HasPrefix(w, "--in-place") }) {
			break
		}
		for _, p := range paths {
			if p = s.path(p); s.writes == "" && !(s.mode == "acceptEdits" && s.h.inside(p)) {
				s.writes, s.by = p, name
			}
		}
		if s.writes != "" && name != "tee" {
			return
		}
	case "echo", "printf":
		return // only its redirections count
	}
	for _, p := range paths {
		if p = s.path(p); readsFiles(name) && !s.h.inside(p) {
			if s.reads == "" {
				s.reads, s.by = p, name
			}
			return
		}
	}
	s.other = true
	s.asked = append(s.asked, ruleFor(own))
}

func (s *sight) path(name string) string {
	if filepath.IsAbs(name) || strings.HasPrefix(name, "~") {
		return s.h.path(name)
	}
	return filepath.Join(s.dir, name)
}

// inside reports whether a path is in one of the session's directories, its links followed.
func (h *hands) inside(path string) bool {
	outside, _ := h.leads(path)
	return !outside
}

// readsFiles reports whether a program reads the files in its words.
func readsFiles(name string) bool {
	return slices.ContainsFunc(readOnly(), func(rule string) bool { return rule == "Bash("+name+":*)" })
}

// operands are the words of a command that may be paths.
func operands(words []string) (list []string) {
	skip := 0
	switch filepath.Base(words[0]) {
	case "grep", "rg", "sed", "tr":
		if skip = 1; slices.ContainsFunc(words, func(w string) bool { return w == "-e" || w == "-f" }) {
			skip = 0
		}
	}
	for i, w := range words[1:] {
		switch {
		case w == "--" || strings.HasPrefix(w, "-") && w != "-":
			continue
		case skip > 0:
			skip--
			continue
		case i > 0 && (words[i] == "-n" || words[i] == "-c") && strings.Trim(w, "0123456789") == "":
			continue // head -n 5
		}
		list = append(list, w)
	}
	return list
}

// literally are words that the shell does not change, up to the first that it does.
func literally(list []*syntax.Word) (words []string, all bool) {
	for _, w := range list {
		text, ok := literal(w.Parts)
		if !ok {
			return words, false
		}
		words = append(words, text)
	}
	return words, true
}

func literal(parts []syntax.WordPart) (string, bool) {
	var b strings.Builder
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(withoutBackslashes(p.Value))
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			text, ok := literal(p.Parts)
			if !ok || p.Dollar {
				return "", false
			}
			b.WriteString(text)
		default:
			return "", false
		}
	}
	return b.String(), true
}

// quoted reports whether the mark of a heredoc is quoted, so that the shell expands nothing.
func quoted(w *syntax.Word) bool {
	return w != nil && slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		lit, plain := p.(*syntax.Lit)
		return !plain || strings.Contains(lit.Value, "\\")
	})
}

// ruleFor is a rule about a command, or about those that begin like it: git push *.
func ruleFor(command string) string {
	words := strings.Fields(command)
	if len(words) > 1 && subcommand.MatchString(words[1]) && !wraps(words[0]) {
		return words[0] + " " + words[1] + " *"
	}
	return command
}

var subcommand = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// wraps reports whether a program runs what stands behind it, so that a rule about its first
// words would allow anything.
func wraps(name string) bool {
	switch name {
	case "sudo", "doas", "env", "command", "builtin", "exec", "nice", "nohup", "time", "timeout", "xargs", "sh", "bash", "zsh", "dash", "eval", "stdbuf", "setsid", "strace", "watch", "ssh", "su", "parallel", "busybox", "find", "source", ".", "python", "python3", "node", "perl", "ruby":
		return true
	}
	return strings.Contains(name, "=")
}

func encoded(v any) json.RawMessage {
	b, _ := json.Marshal(v) // objects of texts
	return b
}
