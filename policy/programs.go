package policy

import (
	"path"
	"slices"
	"strings"
)

// programName is the name that a program is known by: without its directory,
// and as a file system that does not tell cases apart would find it.
func programName(w string) string {
	return strings.TrimSuffix(strings.ToLower(path.Base(strings.ReplaceAll(w, `\`, "/"))), ".exe")
}

// runsArguments reports whether a program runs the command in its arguments.
func runsArguments(name string) bool { return program(name).is("runs") }

// prints reports whether the command's words are text, not files.
func (c *command) prints() bool { return len(c.known) > 0 && program(c.known[0]).is("prints") }

// reads reports whether the command only reads the files in its words.
func (c *command) reads() bool { return len(c.known) > 0 && program(c.known[0]).is("reads", "prints") }

// bound reports whether what the words do depends on the directory in which they
// run: they are a program or a script there, or one that reads what to run from
// a file there. below says that it is one below the rules', where some programs do as
// they do here.
func bound(words []string, below bool) bool {
	for i, w := range words {
		u := program(w)
		switch {
		case i > 0 && !runsArguments(words[0]):
			return false
		case strings.Contains(w, "/") && !strings.HasPrefix(w, "/"):
			return true
		case below && u.is("nested"):
			return false
		case u.is("here") && !u.is("script"):
			return true
		case u.is("here", "sh"):
			file := slices.IndexFunc(words[i+1:], func(w string) bool { return !isOption(w) })
			return file < 0 || !strings.HasPrefix(words[i+1+file], "/")
		}
	}
	return false
}

// opaque reports whether nothing can be ruled out of a command: it runs its arguments,
// its input or a file as a program in its own language.
func opaque(words []string) bool {
	u, args := program(words[0]), words[1:]
	r := &reading{words: words, said: 1, seen: true}
	switch {
	case asksVersion(words), onlyChecks(words), u.is("scripted") && r.wayOut() == "":
		return false
	case programName(words[0]) == "xargs":
		at := r.inner()
		return at == 0 || !program(words[at]).free() || !program(words[at]).is("reads", "prints", "files")
	case u.is("code", "sh"):
		return true
	case u.is("lang") && len(args) > 1 && args[0] == "-m" && u.module(args[1]):
		return r.wayOut() != ""
	case u.is("lang") && (len(args) == 0 || isOption(args[0]) || args[0] == "eval"):
		return true // with the name of a script first, what it runs is not in the command
	}
	if r.wayOut() != "" {
		// A program that its options run is then a word of the command.
		return !u.is("loose") || hidden(args) || slices.ContainsFunc(args, func(w string) bool { return strings.Contains(w, unknownPart) || opaqueName(w) })
	}
	if u != nil && !u.is("any", "runs") && !r.usage.is("any", "runs") && (u.is("prints", "reads") || !u.free()) {
		return false // none of its words is a program
	}
	return slices.ContainsFunc(args, opaqueName) // whatever the program makes of it: docker run x sh -c …
}

// module reports whether an interpreter has a module of that name, which is a program
// like others.
func (u *usage) module(name string) bool {
	m := u.inner["-m"]
	return m != nil && (m.inner[name] != nil || name == "pytest" || name == "pip")
}

// asksVersion reports whether a command only says which version of a program there is.
func asksVersion(words []string) bool {
	return len(words) == 2 && program(words[0]).is("lang") && (words[1] == "--version" || words[1] == "-v" && program(words[0]).is("checks"))
}

// onlyChecks reports whether a command only looks for errors in a script.
func onlyChecks(words []string) bool {
	if len(words) != 3 || isOption(words[2]) {
		return false
	}
	u := program(words[0])
	return words[1] == "-n" && u.is("sh") || words[1] == "--check" && u.is("checks")
}

// hides is opaque for a command of which some words are not known: these may be
// anything, and more than one word.
func (c *command) hides() bool {
	if len(c.known) == len(c.words) {
		return opaque(c.known)
	}
	if len(c.known) == 0 {
		return true
	}
	texts := make([]string, len(c.words))
	unknown := false
	for i, w := range c.words {
		texts[i] = w.text
		unknown = unknown || w.odd() && !w.status
	}
	return opaque(texts) || unknown && program(texts[0]) == nil
}

// opaqueName reports whether a word names a program of which nothing can be
// ruled out.
func opaqueName(w string) bool {
	u := program(w)
	return !isOption(w) && u.is("code", "sh", "lang") && !u.is("word")
}

// hidden reports whether words could hide a command from the rules: a program
// that is not known may hand them to a shell, which takes quotes, backslashes and
// dollars out of them.
func hidden(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		return strings.ContainsAny(w, "'\"`\\$") || strings.ContainsAny(w, " \t\n") && slices.ContainsFunc(strings.Fields(w), opaqueName)
	})
}

// scripts are the arguments that are shell scripts themselves.
func scripts(words []string) []string {
	for i, w := range words {
		if program(w).is("sh") {
			return words[i+1:]
		}
		if programName(w) == "eval" {
			return []string{strings.Join(words[i+1:], " ")}
		}
		if i == 0 && !runsArguments(w) {
			return nil
		}
	}
	return nil
}

// canonical is a command under the names that its program and its subcommand are
// known by, without options before the subcommand; nil when it is the same.
func canonical(words []string) []string {
	name, rest := programName(words[0]), words[1:]
	if sub, found := strings.CutPrefix(name, "git-"); found && sub != "" { // in git's own directory
		name, rest = "git", append([]string{sub}, rest...)
	}
	u := programs()[name]
	for u != nil && len(u.inner) > 0 && len(rest) > 0 && isOption(rest[0]) {
		does, _, valued := u.option(rest[0])
		if does == unknown {
			break
		}
		rest = rest[1:]
		if valued && len(rest) > 0 {
			rest = rest[1:]
		}
	}
	if len(rest) == 0 {
		return nil
	}
	all := append([]string{name, aliasOf(name, rest[0])}, rest[1:]...)
	switch name {
	case "npm", "pnpm", "yarn":
		switch sub := all[1]; {
		case sub == "test", sub == "start", sub == "stop", sub == "restart", name != "npm" && u.inner[sub] == nil:
			all = slices.Insert(all, 1, "run")
		}
	}
	if slices.Equal(all, words) {
		return nil
	}
	return all
}

// aliasOf is the name of a subcommand that rules are compared by.
func aliasOf(name, sub string) string {
	for _, s := range aliases() {
		if slices.Contains(s.head[0], name) {
			for _, a := range s.attributes {
				if slices.Contains(a.values, sub) {
					return a.name
				}
			}
		}
	}
	return sub
}
