package embedded

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/agent-troupe/troupe/agent"
)

// otherwise is a question whose reason is in words.
func otherwise(about string, suggestions any) agent.Verdict {
	return agent.Verdict{Reason: "other", About: about, Unasked: about, Ask: agent.Object{"permission_suggestions": suggestions}}
}

// oddity is the question about a command with something in it that Claude Code 2.1.329 always
// asks about (observed), also where package policy could tell that it is harmless.
func (h *hands) oddity(mode, command string) (v agent.Verdict, odd bool) {
	file, err := parsed(command)
	if err != nil {
		return v, false
	}
	const cannot = " in this command can't be checked before it runs"
	found := map[string]bool{}
	listed := map[syntax.Node]bool{} // commands that say what a loop is over
	assigns, exports, evals, finds := false, false, "", ""
	cd, vcs, git, writes := false, false, false, false
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.WordIter:
			for _, w := range n.Items {
				for _, part := range w.Parts {
					listed[part] = true
				}
			}
		case *syntax.CmdSubst, *syntax.ProcSubst:
			found["nested"] = found["nested"] || !listed[n]
			found["listed"] = found["listed"] || listed[n]
		case *syntax.ParamExp:
			found["variable"] = found["variable"] || !home(n)
		case *syntax.Redirect:
			found["heredoc"] = found["heredoc"] || n.Hdoc != nil && !quoted(n.Word)
		case *syntax.Block, *syntax.ArithmCmd:
			found["group"] = true
		case *syntax.Subshell:
			found["subshell"] = true
		case *syntax.TimeClause:
			found["time"] = true
		case *syntax.LetClause:
			evals = "let"
		case *syntax.DeclClause:
			exports = true
		case *syntax.Stmt:
			found["background"] = found["background"] || n.Background
		case *syntax.CallExpr:
			words, _ := literally(n.Args)
			assigns = assigns || len(n.Args) == 0
			if len(words) == 0 {
				break
			}
			for _, w := range n.Args {
				found["braces"] = found["braces"] || len(braces(w.Lit())) > 1
				found["range"] = found["range"] || strings.Contains(w.Lit(), "{") && strings.Contains(w.Lit(), "..")
			}
			git = git || slices.ContainsFunc(words, func(w string) bool { return filepath.Base(w) == "git" }) // also behind timeout
			switch name := filepath.Base(words[0]); name {
			case "eval", "source", ".":
				evals = words[0]
			case "cd", "pushd", "popd":
				cd = true
			case "git", "hg", "svn", "jj":
				vcs = true
			case "find":
				if i := slices.IndexFunc(words, findsMore); i >= 0 {
					finds = words[i]
				}
			case "touch", "mkdir", "rm", "rmdir", "mv", "cp", "sed":
				writes = writes || name != "sed" || slices.ContainsFunc(words, sedWrites)
			}
		}
		return true
	})
	switch {
	case found["nested"]:
		return otherwise("A nested command"+cannot, []any{}), true
	case found["heredoc"]:
		return otherwise("Heredoc with unquoted delimiter undergoes shell expansion", []any{}), true
	case evals != "":
		return otherwise("'"+evals+"' evaluates arguments as shell code", []any{}), true
	case exports:
		v := agent.Verdict{Unasked: needsApproval, Ask: agent.Object{"permission_suggestions": []any{}, "decision_reason_type": "subcommandResults"}}
		return v, true
	case assigns:
		return otherwise(needsApproval, []any{}), true
	case found["variable"]:
		return otherwise("A variable"+cannot, []any{}), true
	case found["braces"]:
		return otherwise("Brace expansion", []any{}), true
	case found["range"]:
		return otherwise("A brace pattern"+cannot, []any{}), true
	case found["group"]:
		return otherwise("A group in braces or double parentheses"+cannot, []any{}), true
	case found["subshell"]:
		return otherwise("This command uses shell operators that require approval for safety", nil), true
	case found["background"]:
		v := otherwise("This command uses the `&` background operator, which defers execution past approval-time safety checks. Approve only if you trust it.", nil)
		v.Reason, v.Ask["classifier_approvable"], v.Ask["suppress_always_allow_rule"] = "safetyCheck", false, true
		return v, true
	case cd && vcs:
		return otherwise("This command changes directory before running a version-control command, which can pick up untrusted hooks or repository configuration from the target directory. Approve only if you trust it.", nil), true
	case git && h.planted():
		return otherwise("This directory is laid out as a git repository without .git, so its files can have git run commands. Approve only if you trust it.", nil), true
	case finds != "":
		return otherwise("find with '"+finds+"' executes commands or modifies files — cannot be auto-allowed by a Bash(find:*) prefix rule", []any{}), true
	case cd && writes:
		return otherwise("Compound command contains cd with write operation - manual approval required to prevent path resolution bypass", byHand(mode, command)), true
	case found["listed"]:
		return agent.Verdict{Unasked: needsApproval, Ask: agent.Object{"permission_suggestions": nil, "decision_reason_type": "subcommandResults"}}, true
	case found["time"]:
		return otherwise(needsApproval, []any{commandRules(ruleFor(command))}), true
	}
	return v, false
}

// planted reports whether git may take the shell's directory, or one above it, for a bare
// repository, whose configuration is a file like others: in the mode acceptEdits the model may
// write it, and it can come with a clone. A .git is not written in that mode.
func (h *hands) planted() bool {
	for at := h.dir(); ; at = filepath.Dir(at) {
		if _, err := gitHead(filepath.Join(at, ".git")); err == nil {
			return false // git looks no further
		}
		if _, err := os.Lstat(filepath.Join(at, "HEAD")); err == nil || at == filepath.Dir(at) {
			return err == nil
		}
	}
}

// byHand are the suggestions about a command that no mode allows.
func byHand(mode, command string) []any {
	if mode == "acceptEdits" {
		return []any{}
	}
	return []any{commandRules(ruleFor(command)), acceptEdits()}
}

// home reports whether an expansion is that of HOME, without more.
func home(p *syntax.ParamExp) bool {
	return p.Param != nil && p.Param.Value == "HOME" && !p.Excl && !p.Length && !p.Width && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Exp == nil && p.Names == 0
}

// findsMore reports whether an option of find makes it do more than to find.
func findsMore(w string) bool {
	switch w {
	case "-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprint0", "-fprintf", "-fls":
		return true
	}
	return false
}

// sedWrites reports whether an option of sed makes it write its files.
func sedWrites(w string) bool {
	return strings.HasPrefix(w, "-i") || strings.HasPrefix(w, "--in-place")
}

// exact reports whether it is plain what a command writes: no pattern stands for files, no --
// ends the options, and cp and mv have no options.
func exact(command string) bool {
	file, err := parsed(command)
	if err != nil {
		return false
	}
	plain := true
	syntax.Walk(file, func(n syntax.Node) bool {
		c, ok := n.(*syntax.CallExpr)
		if !ok || len(c.Args) == 0 {
			return true
		}
		switch c.Args[0].Lit() {
		case "cp", "mv":
			plain = plain && !slices.ContainsFunc(c.Args[1:], func(w *syntax.Word) bool { return strings.HasPrefix(w.Lit(), "-") })
			fallthrough
		case "touch", "mkdir", "rm", "rmdir", "sed":
			for _, w := range c.Args[1:] {
				plain = plain && w.Lit() != "--"
				for _, p := range w.Parts {
					lit, is := p.(*syntax.Lit)
					plain = plain && !(is && strings.ContainsAny(lit.Value, "*?["))
				}
			}
		}
		return true
	})
	return plain
}
