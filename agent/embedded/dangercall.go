package embedded

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// knownWord is a word of a simple command: the values that it may have, and whether they are all.
type knownWord struct {
	values []string
	sure   bool
}

// call looks at a simple command.
func (d *danger) call(c *syntax.CallExpr, depth int) {
	var all []knownWord
	for _, w := range c.Args {
		d.doubt = false
		values := d.eval(w)
		word := knownWord{values, !d.doubt}
		split := slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
			_, is := p.(*syntax.ParamExp) // not quoted: the shell makes words of its value
			return is
		}) && slices.ContainsFunc(values, func(v string) bool { return strings.ContainsAny(v, " \t\n") })
		if !split {
			all = append(all, word)
			continue
		}
		for _, v := range values {
			for field := range strings.FieldsSeq(v) {
				all = append(all, knownWord{[]string{field}, word.sure})
			}
		}
	}
	d.command(all, depth)
}

// program is the name of a program that a word certainly is; "": it is not known.
func (w knownWord) program() string {
	if len(w.values) != 1 {
		return ""
	}
	return filepath.Base(w.values[0])
}

// command looks at the words of a simple command.
func (d *danger) command(all []knownWord, depth int) {
	if len(all) == 0 || d.found != "" {
		return
	}
	name := all[0].program()
	switch {
	case name == "cd", name == "pushd":
		d.move(valuesOf(all[1:]))
	case name == "find":
		d.find(valuesOf(all[1:]))
		d.inside(all, depth)
	case isShell(name):
		d.shell(name, all[1:], depth)
	case startsOther(name):
		d.inside(all, depth)
	case removes(name):
		d.removal(name, all[1:])
	case name == "" || name == "." && len(all[0].values) != 1: // the name is not known
		if slices.ContainsFunc(all, func(w knownWord) bool { return len(w.values) == 1 && recursive.MatchString(w.values[0]) }) {
			d.removal("rm", all[1:])
		}
	}
}

func valuesOf(all []knownWord) (list [][]string) {
	for _, w := range all {
		list = append(list, w.values)
	}
	return list
}

// isShell reports whether a program runs what its words, its input or a file say.
func isShell(program string) bool {
	switch program {
	case "eval", "sh", "bash", "rbash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "su", "runuser", "trap", "source", ".":
		return true
	}
	return false
}

// startsOther reports whether a program runs another one, which its words name.
func startsOther(program string) bool {
	switch program {
	case "sudo", "doas", "pkexec", "env", "command", "builtin", "exec", "nice", "nohup", "time", "timeout", "xargs", "busybox", "toybox", "stdbuf", "ionice", "setsid", "strace", "ltrace",
		"parallel", "flock", "watch", "chronic", "chroot", "unshare", "nsenter", "taskset", "chrt", "setpriv", "script", "systemd-run", "fakeroot", "unbuffer", "xvfb-run", "catchsegv", "coproc", "gosu", "sg":
		return true
	}
	return false
}

// takesScripts reports whether a program that runs another one may take it as one text.
func takesScripts(program string) bool {
	switch program {
	case "sudo", "doas", "env", "xargs", "parallel", "flock", "watch", "script", "sg", "find":
		return true
	}
	return false
}

// inside looks for a program that another one runs, behind its options, of which it knows nothing.
// So each word that may be that program counts.
func (d *danger) inside(all []knownWord, depth int) {
	removed, scripts, feeds := all[0].program() == "find", false, false
	for i, w := range all {
		scripts = scripts || slices.ContainsFunc(w.values, func(v string) bool { return takesScripts(filepath.Base(v)) })
		feeds = feeds || slices.ContainsFunc(w.values, func(v string) bool { return filepath.Base(v) == "xargs" || filepath.Base(v) == "parallel" })
		if i == 0 {
			continue
		}
		for _, v := range w.values {
			if d.found != "" || !d.spend(1) {
				return
			}
			switch name := filepath.Base(v); {
			case removes(name) && !removed:
				removed = true
				d.removal(name, all[i+1:])
			case name == "cd", name == "pushd":
				d.move(valuesOf(all[i+1:]))
			case name == "find" && all[0].program() != "find":
				d.find(valuesOf(all[i+1:]))
			case isShell(name) && v != ".":
				d.shell(name, all[i+1:], depth)
			case (v == "-s" || v == "-i" || v == "--shell" || v == "--login") && d.feeds:
				d.fed = true // sudo starts a shell
			case scripts && strings.ContainsAny(v, " \t\n;") && depth < maxScripts:
				d.script(v, depth+1)
			}
			if feeds && namesRemover(v) {
				for _, word := range slices.Clone(d.words) { // they come from what is before the pipe
					d.remove("rm", word, true)
				}
			}
		}
	}
}

// namesRemover reports whether a program, or a script, names a program that removes files.
func namesRemover(text string) bool {
	return removes(text) || slices.ContainsFunc(strings.FieldsFunc(text, separates), removes)
}

// removal looks at the words of a program that removes files.
func (d *danger) removal(name string, args []knownWord) {
	for _, w := range args {
		for _, text := range w.values {
			d.remove(name, text, w.sure)
		}
	}
}

// shell looks at what a shell may run: each of its words, and the words of the whole script if it
// reads its input, or something of which the value is not known.
func (d *danger) shell(name string, args []knownWord, depth int) {
	if depth >= maxScripts {
		return
	}
	whole := ""
	files, before := 0, ""
	for _, w := range args {
		for _, text := range w.values {
			if d.left < 0 || d.found != "" {
				return
			}
			d.script(text, depth+1)
		}
		text := w.values[0]
		whole += text + " "
		switch {
		case !w.sure:
			d.fed = true
		case text == "-c":
			files++
		case strings.HasPrefix(text, "/dev/") || strings.HasPrefix(text, "/proc/") || strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+"):
		case before != "-o" && before != "+o" && before != "-O" && before != "+O" && before != "--rcfile" && before != "--init-file":
			files++
		}
		before = text
	}
	switch name {
	case "eval":
		d.script(whole, depth+1)
	case "trap":
	case "su", "runuser":
		d.fed = d.fed || d.feeds
	default:
		d.fed = d.fed || d.feeds && (files == 0 || slices.ContainsFunc(args, func(w knownWord) bool {
			return strings.HasPrefix(w.values[0], "-") && w.values[0] != "-c" && strings.Contains(w.values[0], "s")
		}))
	}
}
