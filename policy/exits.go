package policy

import (
	"path"
	"slices"
	"strings"
)

// wayOut returns why words that match a rule with a wildcard could do more than the rule
// means: they could make the program run another program, or write any file. For a program
// that is not in programs.txt, the author of the rule is responsible.
func wayOut(s *commandSpec, words []string) string {
	r := &reading{words: words, said: len(s.fixed()), edits: edits(words)}
	if r.said > 0 && r.said < len(s.words) && r.said < len(words) {
		start, w := s.words[r.said][0], words[r.said]
		r.below = strings.Contains(start, "/") && strings.HasPrefix(w, start) && !slices.Contains(strings.Split(w, "/"), "..")
	}
	return r.wayOut()
}

// reading goes through a command along the sections of programs.txt.
type reading struct {
	words []string
	said  int  // how many words the rule spells out
	below bool // of the next it spells out the directory
	// seen is set when a command in the words is read for a rule about commands, and
	// files do not matter.
	seen bool

	usage    *usage
	operands int  // how many there were
	literal  bool // there are no options any more
	script   bool // an option has the script
	edits    bool // other rules decide about the files that it edits
}

func (r *reading) wayOut() string {
	name := programName(r.words[0])
	r.usage = program(name)
	if strings.Contains(name, unknownPart) {
		return "the program is not known"
	}
	if asksVersion(r.words) || onlyChecks(r.words) {
		return ""
	}
	if name == "ps" && !r.seen && showsEnvironments(r.words) {
		return "ps may show the environments of other processes"
	}
	if r.usage.free() {
		if r.seen && !r.usage.is("files", "reads", "prints") && hidden(r.words[1:]) {
			return name + " may hand its words to a shell"
		}
		return ""
	}
	for i := 1; i < len(r.words); i++ {
		w := r.words[i]
		switch {
		case strings.HasPrefix(w, unknownPart):
			return "a word that the shell expands may make " + name + " do more than the rule says"
		case r.operands == 0 && r.usage.inner[w] != nil:
			r.usage = r.usage.inner[w]
			adds := r.usage.is("adds") && slices.ContainsFunc(r.words[i+1:], func(w string) bool { return !isOption(w) })
			if (adds || r.usage.is("named")) && i >= r.said && !r.seen {
				return w + " is more than a rule about " + name + " says"
			}
			if r.usage.is("any") {
				return ""
			}
		case w == "--" && r.usage.is("more"):
		case r.seen && r.usage.is("execs") && (w == "-exec" || w == "-execdir" || w == "-ok" || w == "-okdir"):
			end := slices.IndexFunc(r.words[i:], func(w string) bool { return w == ";" || w == "+" })
			if end < 2 || opaque(r.words[i+1:i+end]) {
				return r.unsafe(w)
			}
			i += end
		case !r.literal && w == "--" && r.usage.options[w].effect != unknown:
			r.literal = true
		case !r.literal && len(w) > 1 && w[0] == '-':
			valued, why, done := r.option(i)
			if why != "" || done {
				return why
			}
			if valued {
				i++
			}
		default:
			why, done := r.operand(i)
			if why != "" || done {
				return why
			}
		}
	}
	if missing := r.usage.operands[min(r.operands, len(r.usage.operands)):]; !r.seen && !r.script && slices.ContainsFunc(missing, spoken) {
		return name + " runs what the rule does not say"
	}
	return ""
}

// spoken reports whether only a rule may say such an operand.
func spoken(kind string) bool {
	return kind == "tool" || kind == "sedscript" || kind == "awkscript" || kind == "said" || kind == "script" || kind == "run" || kind == "shell"
}

// option reads the option at i. valued is set when the next word is its value,
// done when nothing behind it needs a look.
func (r *reading) option(i int) (valued bool, why string, done bool) {
	w := r.words[i]
	does, value, valued := r.usage.option(w)
	at := i // of the value
	if valued && i+1 < len(r.words) {
		at = i + 1
		value = r.words[at]
	}
	free := does == harmless || does == writesFile && (r.edits && !strings.ContainsAny(value, "/*") || r.seen || value == "-" || value == "/dev/null")
	if does == givesScript {
		r.script = true
		if free = safeScriptOf(programName(r.words[0]), value); !free && at < r.said {
			free = true
		}
	}
	free = free || does == saysOutput && !strings.Contains(value, "%output") && !strings.HasPrefix(value, "@")
	reversed := strings.HasPrefix(w, "--sort=") // --sort=-size
	odd := isOption(value) && !number(value) && !reversed || r.usage.is("local") && strings.Contains(value, ":")
	switch {
	case does == unknown && i < r.said:
		return false, r.beyond(i), true
	case !free && i >= r.said, odd && at == i && i >= r.said:
		return false, r.unsafe(w), true
	case at > i && at >= r.said && (odd || !free):
		return false, r.unsafe(w + " " + value), true
	}
	return valued, "", false
}

// showsEnvironments reports whether ps may show what other processes have in their
// environments: by the letter e in a word without a dash, by -E, by a column. A word behind
// an option with a value is that.
func showsEnvironments(words []string) bool {
	for i, w := range words[1:] {
		before := words[i]
		dash := strings.HasPrefix(w, "-")
		switch {
		case strings.Contains(strings.ToLower(w), "env"):
			return true
		case strings.HasPrefix(w, "--"):
		case dash:
			if strings.Contains(w, "E") || strings.Contains(w, "a") && strings.Contains(w, "x") && strings.Contains(w, "e") { // -auxe is auxe
				return true
			}
		case i > 0 && strings.HasPrefix(before, "-") && strings.ContainsAny(before[len(before)-1:], "opquCtOgGUsk"),
			i > 0 && !strings.HasPrefix(before, "-") && strings.ContainsAny(before[len(before)-1:], "oOkUp"):
		case strings.Contains(w, "e"):
			return true
		}
	}
	return false
}

// operand reads a word that is not an option.
func (r *reading) operand(i int) (why string, done bool) {
	w, kind := r.words[i], ""
	if n := len(r.usage.operands); n > 0 {
		kind = r.usage.operands[min(r.operands, n-1)]
	}
	if strings.HasSuffix(kind, "script") && kind != "script" && r.script && r.operands == 0 {
		r.operands++
		return r.operand(i)
	}
	r.operands++
	spelled := i < r.said
	if r.usage.is("local") && strings.Contains(w, ":") && !spelled {
		return r.unsafe(w), true
	}
	switch kind {
	case "":
		if spelled {
			return r.beyond(i), true
		}
		return r.unsafe(w), true
	case "rest":
		return "", true
	case "module":
		if w == "pytest" || w == "py.test" {
			return (&reading{words: r.words[i:], said: max(r.said-i, 1), seen: r.seen}).wayOut(), true
		}
		return r.command(i, "run"), true
	case "tool":
		if u := program(w); !r.seen && !u.is("code", "sh", "lang", "runs") {
			return "", true
		}
		return r.command(i, kind), true
	case "run", "shell":
		if strings.Contains(w, "=") {
			r.operands-- // of the environment
			return "", false
		}
		return r.command(i, kind), true
	}
	if spelled || kind == "script" && i == r.said && r.below || r.fits(kind, w) || kind == "bundle" && i > 1 || kind == "below" && r.seen && strings.HasPrefix(w, "/") {
		return "", false
	}
	return r.unsafe(w), true
}

func (r *reading) fits(kind, w string) bool {
	switch kind {
	case "plain":
		return !strings.HasPrefix(w, "+") && !strings.HasPrefix(w, "@") && !strings.Contains(w, "=") && !strings.Contains(w, "::")
	case "value":
		return !strings.Contains(w, "[")
	case "arg":
		return !strings.HasPrefix(w, "+") && !strings.HasPrefix(w, "@")
	case "peer":
		return !strings.Contains(w, "@-")
	case "below":
		return !strings.ContainsAny(w[:min(1, len(w))], "/~@+:") && !strings.Contains(w, "://") && !slices.Contains(strings.Split(w, "/"), "..") && !inGit(w)
	case "package":
		scope, rest, scoped := strings.Cut(w, "/")
		return !strings.ContainsAny(w, ":~/\\+=") && !strings.HasPrefix(w, ".") || scoped && strings.HasPrefix(scope, "@") && !strings.ContainsAny(rest, ":~/\\+=")
	case "source":
		return slices.Contains([]string{".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".i", ".m", ".mm", ".o", ".a", ".so", ".s", ".S"}, path.Ext(w))
	case "fetched":
		return r.seen || slices.ContainsFunc(r.words, func(w string) bool {
			return w == "--spider" || w == "-O-" || w == "-qO-" || w == "-" || w == "/dev/null"
		})
	case "repo":
		// A directory could have hooks, and other transports are programs.
		for _, start := range []string{"https://", "http://", "ssh://", "git@"} {
			if strings.HasPrefix(w, start) {
				return !inGit(w) && !strings.Contains(w, "@-") && !strings.Contains(w, "//-") // the name for its clone
			}
		}
		return w == "origin" || w == "upstream"
	case "sedscript":
		return safeSed(w)
	case "awkscript":
		return safeAwk(w)
	case "said", "script":
		return r.seen
	case "bundle":
		return !strings.ContainsFunc(w, func(letter rune) bool {
			does, _, _ := r.usage.option("-" + string(letter))
			return does != harmless && (does != writesFile || !r.seen)
		})
	}
	return true
}

// inGit reports whether a path may lead to a repository's own files, whose
// configuration names programs.
func inGit(file string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(strings.ToLower(file), func(r rune) bool { return strings.ContainsRune(`/\: `, r) }), func(segment string) bool {
		return segment == ".git" || strings.HasPrefix(segment, ".git.") || strings.HasPrefix(segment, "git~")
	})
}

// command reads the command that a program runs.
func (r *reading) command(i int, kind string) string {
	name := r.words[0]
	filters := programName(name) == "xargs" && program(r.words[i]).free() && program(r.words[i]).is("reads")
	if i >= r.said && !r.seen && !filters {
		return name + " runs other commands, and the rule does not say which"
	}
	inner := r.words[i:]
	for n, w := range inner {
		if kind == "shell" && i+n >= r.said && strings.ContainsFunc(w, special) {
			return name + " hands " + w + " to a shell"
		}
	}
	if programName(name) == "xargs" && !program(inner[0]).free() {
		return "what xargs gives to " + inner[0] + " is not known"
	}
	return (&reading{words: inner, said: r.said - i, below: r.below, seen: r.seen}).wayOut()
}

// special reports whether a shell may take a character for more than itself.
func special(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	return !letter && !strings.ContainsRune("_-./:,@%+", r)
}

// beyond is for a rule that itself goes beyond what is known: it holds for the
// words that it says.
func (r *reading) beyond(i int) string {
	if len(r.words) > r.said {
		return "what " + r.words[r.said] + " means behind " + r.words[i] + " is not known"
	}
	return ""
}

func (r *reading) unsafe(what string) string {
	return what + " may make " + r.words[0] + " do more than the rule says"
}

// inner is where the command begins that a program runs, 0 when it is not known.
func (r *reading) inner() int {
	u := program(r.words[0])
	for i := 1; i < len(r.words); i++ {
		if !isOption(r.words[i]) {
			return i
		}
		does, _, valued := u.option(r.words[i])
		if does != harmless {
			return 0
		}
		if valued {
			i++
		}
	}
	return 0
}
