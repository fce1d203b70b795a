package policy

import (
	"slices"
	"strings"
)

// wayOut says why words that fit a rule with a wildcard are more than the rule
// can have meant: they make the program run another one. fixed are the words
// that the rule spells out. The list is of the ways that are known; it is not
// complete, and no list could be.
func wayOut(fixed, words []string) string {
	name := programName(words[0])
	if runsArguments(name) || isShell(name) {
		// The rule has to say what is run.
		inner := 1 + slices.IndexFunc(fixed[min(1, len(fixed)):], func(w string) bool {
			return !isOption(w) && !strings.Contains(w, "=") && strings.Trim(w, "0123456789.smhd") != ""
		})
		switch {
		case inner == 0:
			return name + " runs other commands, and the rule does not say which"
		case runsArguments(name):
			return wayOut(fixed[inner:], words[inner:])
		}
	}
	leading := true // no argument yet that is not an option
	for i := 1; i < len(words); i++ {
		a := argument{text: words[i], words: words, leading: leading}
		leading = leading && isOption(words[i])
		if i < len(fixed) {
			continue // the rule itself says so
		}
		if a.runsMore(name) {
			return words[i] + " can make " + name + " run another command"
		}
	}
	return ""
}

// argument is one of a program's arguments.
type argument struct {
	text    string
	words   []string // the whole command
	leading bool     // nothing but options stands before it
}

// long reports whether it is one of the long options, perhaps shortened.
func (a argument) long(options ...string) bool {
	given, _, _ := strings.Cut(a.text, "=")
	return len(given) > 3 && strings.HasPrefix(given, "--") &&
		slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix("--"+o, given) })
}

// short reports whether it has one of the letters as an option.
func (a argument) short(letters string) bool {
	return len(a.text) > 1 && a.text[0] == '-' && a.text[1] != '-' && strings.ContainsAny(a.text[1:], letters)
}

// flag reports whether it is an option of one of the names, with one dash or
// two, with or without a value.
func (a argument) flag(names ...string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(a.text, "-"), "=")
	return a.text[:min(1, len(a.text))] == "-" && slices.Contains(names, name)
}

func (a argument) is(words ...string) bool { return slices.Contains(words, a.text) }

// runsMore reports whether it makes the program run another one.
func (a argument) runsMore(program string) bool {
	switch program {
	case "git":
		return a.runsMoreInGit()
	case "find":
		return a.is("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls") || strings.HasPrefix(a.text, "-fprint")
	case "fd", "fdfind":
		return a.short("xX") || a.long("exec", "exec-batch")
	case "rg":
		return a.long("pre", "hostname-bin") || a.is("--pre")
	case "tar", "bsdtar", "gtar":
		return a.short("IF") || a.long("to-command", "checkpoint-action", "use-compress-program", "rsh-command", "info-script", "new-volume-script")
	case "zip":
		return a.short("T") || a.long("unzip-command")
	case "rsync":
		return a.short("e") || a.long("rsh", "rsync-path")
	case "scp", "sftp":
		return a.short("oSDF")
	case "sort":
		return a.short("o") || a.long("compress-program", "output")
	case "go":
		return a.leading && a.is("run", "generate", "tool") || a.flag("exec", "toolexec", "vettool", "C")
	case "make", "gmake":
		return a.short("fCI") || a.long("eval", "file", "makefile", "directory", "include-dir") || strings.Contains(a.text, "=")
	case "man":
		return a.short("PH") || a.long("pager", "html", "preprocessor")
	case "less", "more":
		return strings.HasPrefix(a.text, "+")
	case "split":
		return a.long("filter")
	case "sdiff", "diff3":
		return a.long("diff-program")
	case "wget":
		return a.long("use-askpass", "config", "execute") || a.short("e")
	case "curl":
		return a.short("K") || a.long("config")
	case "gcc", "g++", "cc", "clang":
		return a.flag("wrapper", "fplugin", "B", "specs")
	case "hg":
		return a.long("config")
	case "svn":
		return a.long("config-option", "editor-cmd", "diff-cmd")
	case "gh":
		return a.leading && a.is("alias", "extension")
	}
	return a.changesShell(program)
}

// changesShell knows the builtins that change what later commands mean, or
// evaluate a name: even quoted, read 'x[$(rm)]' runs rm.
func (a argument) changesShell(builtin string) bool {
	switch builtin {
	case "printf":
		return strings.HasPrefix(a.text, "-v")
	case "test":
		return a.is("-v", "-R")
	case "wait", "jobs":
		return a.short("px")
	case "read", "mapfile", "readarray", "getopts", "unset", "let", "export", "declare", "typeset", "local", "readonly",
		"compgen", "complete", "bind", "zmodload", "autoload", "functions":
		return true
	}
	return false
}

// runsMoreInGit knows git's ways: options before the subcommand change its
// configuration, and some subcommands and options run what they are given.
func (a argument) runsMoreInGit() bool {
	option := strings.HasPrefix(a.text, "-")
	if a.leading {
		if option {
			return !a.is("--version", "--help", "-h", "-v", "--no-pager", "-P")
		}
		return a.is("config", "filter-branch", "difftool", "mergetool", "daemon", "shell", "instaweb", "send-email", "credential", "hook",
			"bisect", "submodule", "remote-ext", "remote-fd", "upload-pack", "receive-pack", "upload-archive", "gui", "citool", "svn", "p4")
	}
	// Letters mean different things to different subcommands.
	with := func(letters string, subcommands ...string) bool {
		return a.short(letters) && slices.ContainsFunc(subcommands, func(c string) bool { return slices.Contains(a.words, c) })
	}
	if with("cu", "clone") || with("x", "rebase") || with("O", "grep") || with("s", "merge", "pull", "rebase") {
		return true
	}
	return strings.Contains(a.text, "ext::") || a.long("upload-pack", "receive-pack", "exec", "extcmd", "open-files-in-pager",
		"ext-diff", "textconv", "config", "template", "strategy", "upload-archive")
}
