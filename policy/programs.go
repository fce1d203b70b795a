package policy

import (
	"slices"
	"strings"
)

// runsArguments reports whether a program runs the command in its arguments.
func runsArguments(name string) bool {
	switch programName(name) {
	case "env", "command", "builtin", "exec", "nohup", "nice", "ionice", "chrt", "taskset", "time", "timeout", "stdbuf",
		"setsid", "unbuffer", "setarch", "noglob", "nocorrect", "-", "sudo", "doas", "pkexec", "runuser", "chroot", "unshare", "nsenter",
		"xargs", "parallel", "busybox", "toybox", "strace", "ltrace", "watch", "flock", "systemd-run", "faketime", "caffeinate":
		return true
	}
	return false
}

// opaque reports whether nothing can be ruled out of a command: it runs what
// stands in its arguments, its input or a file, in a language of its own.
func opaque(words []string) bool {
	name, args := programName(words[0]), words[1:]
	if isShell(name) {
		return true
	}
	if isInterpreter(name) && (len(args) == 0 || isOption(args[0]) || args[0] == "eval") {
		return true // with the name of a script first, what it runs is not in the command
	}
	if slices.ContainsFunc(args, opaqueName) {
		return true // whatever the program makes of it: docker run x sh -c …
	}
	return runsUnseen(words)
}

// isShell reports whether a program runs commands that are written in a
// language of its own, or changes what later commands mean.
func isShell(name string) bool {
	if short := strings.TrimSuffix(strings.TrimRight(name, "0123456789.-"), "-static"); short != name && short != "" && isShell(short) {
		return true
	}
	switch name {
	case "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "yash", "fish", "csh", "tcsh", "rbash", "nu", "elvish", "xonsh", "rc", "es", "pwsh", "powershell", "cmd", "busybox", "toybox",
		"eval", "source", ".", "trap", "alias", "enable", "hash", "fc", "xargs", "parallel", "su", "ssh", "script", "watch", "at", "batch", "crontab",
		"awk", "gawk", "mawk", "nawk", "sed", "ed", "ex", "vi", "vim", "view", "vimdiff", "rview", "gvim", "nvim", "emacs",
		"osascript", "expect", "gdb", "lldb", "tclsh", "systemd-run", "m4", "gnuplot", "irb", "ipython", "guile", "racket", "ocaml", "scala", "ghci",
		"elixir", "iex", "erl", "octave", "jshell", "groovy", "dc", "psql", "mysql", "sqlite":
		return true
	}
	return false
}

// opaqueName reports whether a word names a program of which nothing can be
// ruled out.
func opaqueName(w string) bool {
	name := programName(w)
	switch name {
	case ".", "at", "ed", "ex", "r", "watch", "script", "batch", "hash", "enable", "view", "rc", "es", "nu", "scala", "elixir", "mysql", "sqlite", "psql", "octave", "ocaml", "racket", "groovy":
		return false // more often something else
	}
	return !isOption(w) && (isInterpreter(name) || isShell(name))
}

func isInterpreter(name string) bool {
	name = strings.TrimRight(name, "0123456789.")
	switch name {
	case "python", "pypy", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "luajit", "r", "rscript", "julia", "tsx", "ts-node":
		return true
	}
	return false
}

// scripts are the arguments that are shell scripts themselves.
func scripts(words []string) []string {
	for i, w := range words {
		switch programName(w) {
		case "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "su", "script", "watch":
			return words[i+1:]
		case "eval":
			return []string{strings.Join(words[i+1:], " ")}
		}
		if i == 0 && !runsArguments(w) {
			return nil
		}
	}
	return nil
}
