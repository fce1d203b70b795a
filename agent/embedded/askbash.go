package embedded

import (
	"encoding/json"
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
	s := sight{h: t.hands, dir: t.hands.dir(), mode: mode, free: g.reads(), edits: g.edits()}
	if mode == "acceptEdits" {
		s.free = s.edits
	}
	return s.ask(command)
}

// sight is what a command does, as far as a question about it needs that.
type sight struct {
	h     *hands
	dir   string // in which the next command runs
	mode  string
	free  *policy.Policy // of what needs no question
	edits *policy.Policy // and of which files may be written

	calls   int      // simple commands
	parts   int      // those that need a question
	each    []any    // a rule for each of them
	pipe    bool     // one writes to another
	asked   []string // commands that need a question which is not about a path
	rules   []string // about them
	other   bool     // there is such a command
	reads   string   // the first path out of the directories that is read
	writes  string   // the first path that is written
	glob    string   // the same as it is written, if it is a pattern
	by      string   // what does that, for people
	program string   // which program does
	redir   bool     // a redirection does
	flags   string   // a program that writes, with options that change where
}

func (s *sight) ask(command string) agent.Verdict {
	whole := commandRules(ruleFor(command))
	file, err := parsed(command)
	if err != nil {
		return otherwise(needsApproval, []any{whole})
	}
	for _, stmt := range file.Stmts {
		s.stmt(command, stmt)
	}
	places := "'" + strings.Join(append([]string{s.h.root}, s.h.directories()...), "', '") + "'"
	v := agent.Verdict{Ask: agent.Object{}}
	suggestions := []any{whole}
	switch {
	case s.flags != "":
		v := otherwise(s.flags+" command with flags requires manual approval", byHand(s.mode, command))
		v.Unasked = s.flags + " with flags requires manual approval to ensure path safety. For security, Claude Code cannot automatically validate " + s.flags + " commands that use flags, as some flags like --target-directory=PATH can bypass path validation."
		return v
	case s.parts > 1 && !s.pipe:
		v.Unasked = "This Bash command contains multiple operations. The following parts require approval: " + strings.Join(s.asked, ", ")
		v.Ask["decision_reason_type"], v.Ask["permission_suggestions"] = "subcommandResults", nil
		if len(s.each) > 0 {
			v.Ask["permission_suggestions"] = []any{addRules("localSettings", s.each...)}
		}
		return v
	case s.other && s.calls > 1:
		parts := "part requires approval: "
		if len(s.asked) > 1 {
			parts = "parts require approval: "
		}
		v.Unasked = "This Bash command contains multiple operations. The following " + parts + strings.Join(s.asked, ", ")
		v.Ask["decision_reason_type"] = "subcommandResults"
		switch {
		case s.writes != "" && s.parts > 1:
			suggestions = []any{commandRules(s.rules[0])}
		case s.writes == "" && len(s.rules) > 0:
			suggestions = nil
			for _, r := range s.rules {
				suggestions = append(suggestions, commandRules(r))
			}
		}
		suggestions = append(suggestions, s.more()...)
	case s.writes != "":
		v.Blocked = s.writes
		suggestions = append(suggestions, s.more()...)
		v.Unasked = s.by + " '" + s.writes + "' needs approval. The path is outside the working directories for this session (" + places + "). Allowing runs the command as written."
		if s.h.inside(s.writes) {
			v.Unasked = s.by + " '" + s.writes + "' needs approval. The path is inside the working directories for this session (" + places + "), and Claude Code asks before a shell command creates, changes or removes files there."
		}
		if s.glob == "" && s.h.inside(s.writes) && !s.mayWrite(s.writes) {
			v.Reason, v.About = "safetyCheck", "Claude requested permissions to edit "+s.writes+" which is a sensitive file."
			v.Unasked, v.Ask["classifier_approvable"] = v.About, true
			suggestions = s.more()
		}
		if s.glob != "" {
			v.Blocked, v.Reason = s.glob, "other"
			v.About = "Glob patterns are not allowed in write operations. Please specify an exact file path."
			v.Unasked = v.About
		}
	case s.reads != "":
		v.Blocked = s.reads
		v.Unasked = s.by + " '" + s.reads + "' was blocked. For security, Claude Code may only " + verb(s.program) + " the allowed working directories for this session: " + places + "."
		suggestions = append(suggestions, readRule(directoryOf(s.reads)))
	default:
		v.Reason, v.About = "other", needsApproval
		if len(s.rules) == 1 {
			suggestions = []any{commandRules(s.rules[0])}
		}
	}
	if s.pipe && v.Blocked != "" {
		v.Blocked, v.Ask["decision_reason_type"] = "", "subcommandResults"
	}
	v.Ask["permission_suggestions"] = suggestions
	return v
}

// mayWrite reports whether the mode acceptEdits lets the file be written.
func (s *sight) mayWrite(path string) bool {
	call := policy.Call{Tool: "Write", Input: encoded(agent.Object{"file_path": path, "content": ""}), Cwd: s.dir}
	return allows(s.edits, call) == protocol.BehaviorAllow
}

// verb is what a program does with files, for people.
func verb(program string) string {
	switch program {
	case "cat":
		return "concatenate files from"
	case "cd":
		return "change directories to"
	case "ls":
		return "list files in"
	case "find":
		return "search files in"
	case "grep", "rg":
		return "search for patterns in files from"
	case "head":
		return "read the beginning of files from"
	case "tail":
		return "read the end of files from"
	case "wc":
		return "count lines/words/bytes in files from"
	case "sort":
		return "sort contents of files from"
	case "stat":
		return "read file stats from"
	case "diff":
		return "compare files from"
	case "cut":
		return "extract columns from files in"
	case "file":
		return "examine file types in"
	case "nl":
		return "number lines in files from"
	case "jq":
		return "process JSON from files in"
	case "sed":
		return "edit files in"
	case "uniq":
		return "filter duplicate lines from files in"
	case "strings":
		return "extract strings from files in"
	case "awk":
		return "process text from files in"
	case "":
		return "read files in"
	}
	return "access files in"
}

// more are suggestions about the path that is written.
func (s *sight) more() (list []any) {
	if s.writes == "" {
		return nil
	}
	list = append(list, addDirectory(directoryOf(s.writes)))
	if !s.redir {
		list = append(list, s.mayAccept()...)
	}
	return list
}

func (s *sight) mayAccept() []any {
	if s.mode == "acceptEdits" {
		return nil
	}
	return []any{acceptEdits()}
}

// stmt looks at a statement, and at those in it.
func (s *sight) stmt(text string, stmt *syntax.Stmt) {
	switch cmd := stmt.Cmd.(type) {
	case *syntax.BinaryCmd:
		s.pipe = s.pipe || cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll
		s.stmt(text, cmd.X)
		s.stmt(text, cmd.Y)
	case *syntax.CallExpr:
		reads, writes, other := s.reads, s.writes, len(s.asked)
		own := strings.TrimSpace(strings.TrimSuffix(text[stmt.Pos().Offset():min(int(stmt.End().Offset()), len(text))], ";"))
		s.calls++
		if !s.allowed(own) {
			s.reads, s.writes = "", ""
			s.call(own, cmd)
			for _, r := range stmt.Redirs {
				s.redirect(r)
			}
			s.part(own, len(s.asked) > other)
			if reads != "" || writes != "" { // the first counts
				s.reads, s.writes = reads, writes
			}
		}
		words, _ := literally(cmd.Args)
		if len(words) == 2 && words[0] == "cd" {
			s.dir = s.path(words[1])
		}
		return
	default:
		if own := text[stmt.Pos().Offset():min(int(stmt.End().Offset()), len(text))]; !s.allowed(own) {
			s.mark(own)
		}
	}
	for _, r := range stmt.Redirs {
		s.redirect(r)
	}
}

func (s *sight) allowed(command string) bool {
	call := policy.Call{Tool: "Bash", Input: encoded(agent.Object{"command": mild(command)}), Cwd: s.dir}
	return allows(s.free, call) == protocol.BehaviorAllow
}

// redirect notes a file that a redirection writes, or reads out of the directories.
func (s *sight) redirect(r *syntax.Redirect) {
	words, known := s.words([]*syntax.Word{r.Word})
	if !known || words[0] == "/dev/null" {
		return
	}
	path := s.path(words[0])
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrInOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
		if s.writes == "" && !(s.mode == "acceptEdits" && s.h.inside(path) && s.mayWrite(path)) {
			s.writes, s.redir, s.by = path, true, "Output redirection to"
		}
	case syntax.RdrIn:
		if s.reads == "" && !s.h.inside(path) {
			s.reads, s.by = path, "Input redirection from"
		}
	}
}

// call looks at a simple command that needs a question.
func (s *sight) call(own string, cmd *syntax.CallExpr) {
	words, known := s.words(cmd.Args)
	if len(words) == 0 || len(cmd.Assigns) > 0 {
		s.mark(own)
		return
	}
	name := filepath.Base(words[0])
	paths := operands(words)
	if !known {
		paths = nil
	}
	switch name {
	case "touch", "mkdir", "rm", "rmdir", "mv", "cp", "sed", "tee":
		if name == "sed" && slices.Contains(words, "-n") && !slices.ContainsFunc(words, sedWrites) {
			break
		}
		if (name == "cp" || name == "mv") && slices.ContainsFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-") && w != "--" }) {
			s.flags = name
			return
		}
		for _, p := range paths {
			glob := strings.ContainsAny(p, "*?[")
			if at := s.path(p); s.writes == "" && (glob || !(s.mode == "acceptEdits" && s.h.inside(at) && s.mayWrite(at))) {
				s.writes, s.by, s.program = at, name+" in", name
				if glob {
					s.glob = p
				}
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
				s.reads, s.by, s.program = p, name+" in", name
			}
			return
		}
	}
	if len(cmd.Args) > 0 && readsFiles(name) && s.redirects(own) {
		return
	}
	s.mark(own)
}

// redirects reports whether a command needs a question only because of its redirections.
func (s *sight) redirects(own string) bool {
	i := strings.IndexAny(own, "<>")
	return i > 0 && s.allowed(strings.TrimRight(own[:i], " \t0123456789&"))
}

// part notes a rule for a command that needs a question. other says that it is not about a
// path.
func (s *sight) part(own string, other bool) {
	s.parts++
	switch {
	case s.reads != "":
		s.each = append(s.each, readRuleOf(directoryOf(s.reads)))
	case other || s.writes != "" && !s.redir:
		s.each = append(s.each, agent.Object{"toolName": "Bash", "ruleContent": ruleFor(own)})
	}
	if !other {
		s.asked = append(s.asked, own)
	}
}

// mark notes a command that needs a question which is not about a path.
func (s *sight) mark(own string) {
	s.other = true
	rule := own
	if i := strings.IndexAny(own, "<>"); i > 0 && !strings.ContainsAny(own, "'\"\\") {
		rule = strings.TrimRight(own[:i], " \t0123456789&")
	}
	s.asked, s.rules = append(s.asked, own), append(s.rules, ruleFor(rule))
}

// words is literally, with what HOME is.
func (s *sight) words(list []*syntax.Word) (words []string, all bool) {
	for _, w := range list {
		text, ok := literalAt(w.Parts, s.h.home())
		if !ok {
			return words, false
		}
		words = append(words, text)
	}
	return words, true
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
	switch name {
	case "sed", "jq", "tree", "file", "awk":
		return true
	}
	return slices.ContainsFunc(readOnly(), func(rule string) bool { return rule == "Bash("+name+":*)" })
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
