package policy

import (
	"cmp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// oddity is why a statement is more than simple commands in chains, conditions and
// while loops, which are what rules about commands may allow. The redirections that it
// does not name are separate parts.
func (p *parsed) oddity(s *syntax.Stmt) string {
	if s.Background || s.Coprocess || s.Disown {
		return "it runs in the background"
	}
	for _, r := range s.Redirs {
		if why := p.redirection(r); why != "" {
			return why
		}
	}
	if _, simple := s.Cmd.(*syntax.CallExpr); !(simple && p.alone) && writesText(s.Redirs) {
		return "it writes a text into a file, and does more"
	}
	switch c := s.Cmd.(type) {
	case nil:
		return "it has no command"
	case *syntax.CallExpr:
		for _, a := range c.Assigns {
			if !settable(a) {
				return "it sets a variable"
			}
		}
		if len(c.Args) == 0 {
			return "it has no command"
		}
		return ""
	case *syntax.BinaryCmd:
		p.alone = false
		switch c.Op {
		case syntax.AndStmt, syntax.OrStmt, syntax.Pipe, syntax.PipeAll:
			return cmp.Or(p.oddity(c.X), p.oddity(c.Y))
		}
		return "it has a pipe of another kind"
	case *syntax.TimeClause:
		if c.Stmt != nil && !c.PosixFormat {
			return p.oddity(c.Stmt)
		}
	case *syntax.IfClause:
		why := ""
		for c := c; c != nil && why == ""; c = c.Else {
			why = p.all(c.Cond, c.Then)
		}
		return why
	case *syntax.WhileClause:
		if !c.Until {
			return p.all(c.Cond, c.Do)
		}
	}
	return "it is more than simple commands"
}

// writesText reports whether a heredoc goes into a file: Claude Code 2.1.329 runs that
// as the only statement (observed).
func writesText(all []*syntax.Redirect) bool {
	text, file := false, false
	for _, r := range all {
		text = text || r.Op == syntax.Hdoc
		file = file || r.Op != syntax.Hdoc && r.Op != syntax.DplOut && r.Op != syntax.RdrIn && readWord(r.Word).text != "/dev/null"
	}
	return text && file
}

func (p *parsed) all(lists ...[]*syntax.Stmt) string {
	why := ""
	for _, s := range slices.Concat(lists...) {
		why = cmp.Or(why, p.oddity(s))
	}
	return why
}

// redirection is why a redirection is not one that is harmless, or that a rule about
// files may allow: then it is one of the targets.
func (p *parsed) redirection(r *syntax.Redirect) string {
	const why = "it has a redirection"
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		return why
	}
	switch r.Op {
	case syntax.DplOut:
		if w := readWord(r.Word); w.known && w.text != "" && strings.Trim(w.text, "0123456789") == "" {
			return ""
		}
	case syntax.RdrOut, syntax.AppOut, syntax.RdrAll, syntax.AppAll, syntax.RdrClob, syntax.RdrIn:
		if w := readWord(r.Word); w.known && w.bare {
			return ""
		}
	case syntax.Hdoc:
		if quotedMark(r.Word) && p.endsLine(int(r.Word.End().Offset())) {
			return ""
		}
	case syntax.WordHdoc:
		if readWord(r.Word).known {
			return ""
		}
	}
	return why
}

// quotedMark reports whether the text of a heredoc is taken as it is: its mark is in
// quotes.
func quotedMark(w *syntax.Word) bool {
	if len(w.Parts) != 1 {
		return false
	}
	switch q := w.Parts[0].(type) {
	case *syntax.SglQuoted:
		return !q.Dollar
	case *syntax.DblQuoted:
		return !q.Dollar && readWord(w).known
	}
	return false
}

// endsLine reports whether nothing follows on the line.
func (p *parsed) endsLine(at int) bool {
	rest, _, _ := strings.Cut(p.text[min(at, len(p.text)):], "\n")
	return strings.TrimSpace(rest) == ""
}

// heredoc is the text that "$(cat <<'X' …)" stands for, which is how commit messages
// are written.
func heredoc(c *syntax.CmdSubst) (text string, ok bool) {
	if len(c.Stmts) != 1 || c.TempFile || c.ReplyVar {
		return "", false
	}
	s := c.Stmts[0]
	call, is := s.Cmd.(*syntax.CallExpr)
	if !is || len(call.Args) != 1 || call.Args[0].Lit() != "cat" || len(call.Assigns) > 0 || s.Negated || s.Background || s.Coprocess || s.Disown || len(s.Redirs) != 1 {
		return "", false
	}
	r := s.Redirs[0]
	if r.Op != syntax.Hdoc || r.N != nil || r.Hdoc == nil || !quotedMark(r.Word) {
		return "", false
	}
	return strings.TrimRight(literally(r.Hdoc), "\n"), true
}

// literally is the text of a heredoc whose mark is in quotes.
func literally(w *syntax.Word) string {
	text := ""
	for _, part := range w.Parts {
		if lit, is := part.(*syntax.Lit); is {
			text += lit.Value
		}
	}
	return text
}

// redirected is a file that a redirection names.
type redirected struct {
	word
	read bool // it is read, and not written
}

// redirect notes the file of a redirection. A number after >& is not a file.
func (p *parsed) redirect(r *syntax.Redirect) {
	w := readWord(r.Word)
	if (r.Op == syntax.DplOut || r.Op == syntax.DplIn) && w.known && strings.Trim(w.text, "0123456789-") == "" {
		return
	}
	p.targets = append(p.targets, redirected{w, r.Op == syntax.RdrIn})
}

// settableNames are variables that change what a program prints or for which machine it
// builds, and not what it runs: Claude Code 2.1.329 runs a command that a rule allows
// with them before it (observed).
const settableNames = " CGO_ENABLED GOOS GOARCH GO111MODULE GOEXPERIMENT NODE_ENV CI FORCE_COLOR NO_COLOR PYTHONUNBUFFERED " +
	"PYTHONDONTWRITEBYTECODE RUST_BACKTRACE RUST_LOG LANG LC_ALL TZ TERM COLUMNS "

func settable(a *syntax.Assign) bool {
	return a.Name != nil && !a.Append && !a.Naked && a.Index == nil && a.Array == nil && strings.Contains(settableNames, " "+a.Name.Value+" ") &&
		(a.Value == nil || readWord(a.Value).known)
}

// swaysPrograms reports whether an assignment may make a program run what no rule sees:
// its value is not known, or is a text that a shell takes quotes out of, and its name is
// one that programs read.
func swaysPrograms(a *syntax.Assign) bool {
	if a.Name == nil || a.Value == nil && a.Array == nil || settable(a) {
		return false
	}
	name := a.Name.Value
	if strings.ToUpper(name) != name || !slices.ContainsFunc(swaying, func(part string) bool { return strings.Contains(name, part) }) {
		return false
	}
	if a.Value == nil {
		return true
	}
	w := readWord(a.Value)
	return !w.known || hidden([]string{w.text})
}

// swaying are parts of the names of variables by which programs find others.
var swaying = []string{ //nolint:gochecknoglobals // only read
	"PATH", "IFS", "ENV", "PS", "COMMAND", "LD_", "DYLD_", "GIT_", "EDITOR", "PAGER", "VISUAL", "BROWSER", "SHELL", "FLAGS", "OPT", "PRELOAD", "LESS", "MAN", "PERL",
	"PYTHON", "RUBY", "NODE", "GO", "CARGO", "RUST", "MAKE", "JAVA", "CC", "CXX", "SSH", "ASKPASS", "WRAPPER", "EXEC", "CMD", "TERMINAL",
}
