package policy

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/agent-troupe/troupe/protocol"
)

// commandSpec is the specifier of Bash: the words of a simple command, with
// wildcards.
type commandSpec struct {
	words []wordSpec
	open  bool // more words may follow
}

// wordSpec is a word of a [commandSpec]: the text between its wildcards, or,
// without any, the whole of it.
type wordSpec []string

func (w wordSpec) literal() bool { return len(w) == 1 }

// any reports whether the word is nothing but a wildcard, which stands for any
// number of words.
func (w wordSpec) any() bool {
	return !slices.ContainsFunc(w, func(s string) bool { return s != "" }) && len(w) > 1
}

func (w wordSpec) fits(s string) bool {
	if w.literal() {
		return s == w[0]
	}
	s, found := strings.CutPrefix(s, w[0])
	if !found {
		return false
	}
	for _, middle := range w[1 : len(w)-1] {
		i := strings.Index(s, middle)
		if i < 0 {
			return false
		}
		s = s[i+len(middle):]
	}
	return strings.HasSuffix(s, w[len(w)-1])
}

func parseCommand(content string, behavior protocol.PermissionBehavior) (*commandSpec, *flaw) {
	s := &commandSpec{}
	text, prefix := strings.CutSuffix(content, ":*")
	s.open = prefix
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, &flaw{0, "is not a shell command: " + err.Error(), "quote what is meant literally"}
	}
	const one = "write one simple command of literal words and *, such as git status or git push *"
	if len(file.Stmts) != 1 {
		return nil, &flaw{0, "is not one command", one}
	}
	call, simple := file.Stmts[0].Cmd.(*syntax.CallExpr)
	if stmt := file.Stmts[0]; !simple || len(stmt.Redirs) > 0 || stmt.Negated || stmt.Background || stmt.Coprocess || len(call.Assigns) > 0 || len(call.Args) == 0 {
		return nil, &flaw{int(file.Stmts[0].Pos().Offset()), "is not one simple command", one}
	}
	for _, arg := range call.Args {
		w, ok := readWordSpec(arg)
		if !ok {
			return nil, &flaw{int(arg.Pos().Offset()), "has a word that the shell expands, and such commands always ask", one}
		}
		s.words = append(s.words, w)
	}
	if last := s.words[len(s.words)-1]; !last.literal() && last[len(last)-1] == "" {
		s.open = true
		if last.any() {
			s.words = s.words[:len(s.words)-1]
		}
	}
	if behavior == protocol.BehaviorAllow && (len(s.words) == 0 || s.words[0][0] == "") {
		return nil, &flaw{0, "allows programs that it does not name", "begin it with the program's name"}
	}
	return s, nil
}

// readWordSpec reads a word of a rule: wildcards are the stars without quotes.
func readWordSpec(w *syntax.Word) (wordSpec, bool) {
	spec := wordSpec{""}
	add := func(s string) { spec[len(spec)-1] += s }
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			for i := 0; i < len(part.Value); i++ {
				switch c := part.Value[i]; {
				case c == '\\' && i+1 < len(part.Value):
					i++
					add(part.Value[i : i+1])
				case c == '*':
					spec = append(spec, "")
				default:
					add(string(c))
				}
			}
		case *syntax.SglQuoted, *syntax.DblQuoted:
			quoted := readWord(&syntax.Word{Parts: []syntax.WordPart{part}})
			if !quoted.known {
				return nil, false
			}
			add(quoted.text)
		default:
			return nil, false
		}
	}
	return spec, true
}

// fits reports whether the words are those of the rule. They are compared one
// by one, so that no quoting can make one word look like two.
func (s *commandSpec) fits(words []string) bool {
	spec := s.words
	if s.open {
		spec = append(slices.Clone(spec), wordSpec{"", ""})
	}
	return wildcards(len(spec), len(words), func(i int) bool { return spec[i].any() }, func(i, j int) bool { return spec[i].fits(words[j]) })
}

// fixed are the literal words that the rule begins with.
func (s *commandSpec) fixed() []string {
	var words []string
	for _, w := range s.words {
		if !w.literal() {
			break
		}
		words = append(words, w[0])
	}
	return words
}

// wild reports whether the rule has a wildcard.
func (s *commandSpec) wild() bool {
	return s.open || slices.ContainsFunc(s.words, func(w wordSpec) bool { return !w.literal() })
}

// covered implements part. It is only called when all words are known.
func (c command) covered(spec specifier) (bool, string) {
	s, ok := spec.(*commandSpec)
	words := c.known()
	if !ok || len(words) != len(c.words) || !s.fits(words) {
		return false, ""
	}
	if !c.words[0].bare || !plain(words[0]) {
		return false, "the program's name is disguised"
	}
	if s.wild() {
		if why := wayOut(s, words); why != "" {
			return false, why
		}
	}
	return true, ""
}

// stopped implements part.
func (c command) stopped(spec specifier) match {
	switch s := spec.(type) {
	case *commandSpec:
		return s.stops(c, 0)
	case *pathSpec:
		if c.script.lost {
			return maybe
		}
		for _, w := range c.words {
			if s.mentioned(w.text, c.script.from) {
				return maybe
			}
		}
	}
	return no
}

// target is a file that a redirection names.
type target struct {
	text   string
	script *vocabulary
}

func (t target) String() string { return t.text }

func (t target) covered(specifier) (bool, string) { return false, "" }

func (t target) stopped(spec specifier) match {
	if s, ok := spec.(*pathSpec); ok && s.mentioned(t.text, t.script.from) {
		return maybe
	}
	return no
}

// maxNested is how deep commands in the arguments of commands are read.
const maxNested = 4

func (s *commandSpec) stops(c command, depth int) match {
	words := c.known()
	if s.runs(words) {
		return yes
	}
	if len(words) < len(c.words) {
		return maybe // whatever the shell makes of the rest
	}
	if depth < maxNested {
		for _, script := range scripts(words) {
			inner, _, _ := parseShell(script) // what is unclear about it is opaque anyway
			for _, c := range inner {
				if s.stops(c, depth+1) == yes {
					return yes
				}
			}
		}
	}
	if c.opaque || !plain(words[0]) || s.mentioned(c.script) {
		return maybe
	}
	return no
}

// runs reports whether the words surely run what the rule is about: they are
// its words, or those behind a program that runs its arguments.
func (s *commandSpec) runs(words []string) bool {
	for i := range words {
		if i > 0 && !runsArguments(words[0]) {
			return false
		}
		rest := slices.Clone(words[i:])
		if s.fits(rest) || s.joined(rest) {
			return true
		}
		if rest[0] = programName(rest[0]); s.fits(rest) || s.joined(rest) {
			return true
		}
	}
	return false
}

// joined compares the words as text, as the agents do: there a wildcard inside
// of a word reaches over the next ones.
func (s *commandSpec) joined(words []string) bool {
	if !s.wild() {
		return false
	}
	pattern := wordSpec{""}
	for i, w := range s.words {
		if i > 0 {
			pattern[len(pattern)-1] += " "
		}
		pattern[len(pattern)-1] += w[0]
		pattern = append(pattern, w[1:]...)
	}
	text := strings.Join(words, " ")
	if pattern.fits(text) {
		return true
	}
	return s.open && append(slices.Clone(pattern[:len(pattern)-1]), pattern[len(pattern)-1]+" ", "").fits(text)
}

// mentioned reports whether all that the rule names stands somewhere in the
// commands, in whatever order: git -c x push, find -exec git push, or
// ln -s /bin/git x; ./x push.
func (s *commandSpec) mentioned(script *vocabulary) bool {
	found := script.tokens
	for i, w := range s.words {
		switch {
		case !w.literal():
			if slices.ContainsFunc(w, func(piece string) bool { return !strings.Contains(script.all, strings.ToLower(piece)) }) {
				return false
			}
		case i == 0:
			if !found[programName(w[0])] {
				return false
			}
		case isOption(w[0]):
			if !found[strings.ToLower(w[0])] && !spelled(strings.ToLower(w[0]), script.options) {
				return false
			}
		case slices.ContainsFunc(tokens(w[0]), func(token string) bool { return !found[token] }):
			return false
		}
	}
	return true
}

func isOption(w string) bool { return len(w) > 1 && w[0] == '-' && w != "--" }

// spelled reports whether some of the options may be another spelling of one:
// shortened, bundled, or short for long.
func spelled(option string, given []string) bool {
	long := strings.HasPrefix(option, "--")
	letters := ""
	for _, g := range given {
		name, _, _ := strings.Cut(g, "=")
		switch isLong := strings.HasPrefix(g, "--"); {
		case isLong != long:
			return true
		case isLong:
			if strings.HasPrefix(name, option) || strings.HasPrefix(option, name) {
				return true
			}
		default:
			letters += g[1:]
		}
	}
	return !long && !strings.ContainsFunc(option[1:], func(r rune) bool { return !strings.ContainsRune(letters, r) })
}

// tokens are the pieces of a word that could be words of a command, in lower
// case.
func tokens(w string) []string {
	return strings.FieldsFunc(strings.ToLower(w), func(r rune) bool {
		return strings.ContainsRune(" \t\n'\"`\\/;|&()<>{}$=,!:@", r)
	})
}

// programName is the name that a program is known by: without its directory,
// and as a file system that does not tell cases apart would find it.
func programName(w string) string {
	return strings.TrimSuffix(strings.ToLower(path.Base(strings.ReplaceAll(w, `\`, "/"))), ".exe")
}
