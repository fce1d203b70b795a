package policy

import (
	"cmp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/agent-troupe/troupe/protocol"
)

// commandSpec is the specifier of Bash: the words of a simple command, with
// wildcards.
type commandSpec struct {
	words []wordSpec
	open  bool       // more words may follow
	all   []wordSpec // the words, and a wildcard where more may follow
	texts []wordSpec // the words as one text, for [commandSpec.joined]
	first string     // how the first word begins
	// program is the first word where it is literal, as a name, family the same
	// without its version, and named the rule under the names that its
	// subcommand is known by.
	program, family string
	named           *commandSpec
	local           bool // it names a path that counts from a directory
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
		return nil, &flaw{int(file.Stmts[0].Pos().Offset()), notSimple(file.Stmts[0], text), one}
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
	s.finish()
	return s, nil
}

// notSimple says what keeps a rule from being about a program.
func notSimple(s *syntax.Stmt, text string) string {
	switch s.Cmd.(type) {
	case *syntax.DeclClause, *syntax.LetClause, *syntax.TimeClause, *syntax.CoprocClause, *syntax.TestClause:
		word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
		return "begins with " + word + ", which the shell runs itself: no rule is about it"
	}
	return "is not one simple command"
}

// finish derives what is needed to compare the words with those of a call.
func (s *commandSpec) finish() {
	s.all = s.words
	if s.open {
		s.all = append(slices.Clone(s.words), wordSpec{"", ""})
	}
	if fixed := s.fixed(); len(fixed) > 0 && s.named == nil {
		s.program = programName(fixed[0])
		s.family = familyName(s.program)
		named := &commandSpec{words: slices.Clone(s.words), open: s.open}
		named.words[0] = wordSpec{s.program}
		if len(fixed) > 1 && !isOption(fixed[1]) {
			if other := canonical([]string{s.program, fixed[1]}); other != nil {
				named.words = slices.Concat(literals(other), s.words[2:])
			}
		}
		named.named = named
		named.finish()
		s.named = named
	}
	s.local = slices.ContainsFunc(s.words, func(w wordSpec) bool { return relative(strings.Join(w, "*")) })
	if !s.wild() {
		return
	}
	pattern := wordSpec{""}
	for i, w := range s.words {
		if i > 0 {
			pattern[len(pattern)-1] += " "
		}
		pattern[len(pattern)-1] += w[0]
		pattern = append(pattern, w[1:]...)
	}
	s.texts = []wordSpec{pattern}
	s.first, _, _ = strings.Cut(pattern[0], " ")
	if s.open {
		s.texts = append(s.texts, append(slices.Clone(pattern[:len(pattern)-1]), pattern[len(pattern)-1]+" ", ""))
	}
}

func literals(words []string) []wordSpec {
	var all []wordSpec
	for _, w := range words {
		all = append(all, wordSpec{w})
	}
	return all
}

// relative reports whether a word names a path that counts from a directory.
func relative(word string) bool {
	return slices.ContainsFunc(strings.Split(word, "="), func(piece string) bool {
		return strings.Contains(piece, "/") && !strings.Contains(piece, "://") && !strings.HasPrefix(piece, "/") && !strings.HasPrefix(piece, "~/")
	})
}

// fits reports whether the words are those of the rule. They are compared one
// by one, so that no quoting can make one word look like two.
func (s *commandSpec) fits(words []string, w *work) bool {
	return w.wildcards(len(s.all), len(words), func(i int) bool { return s.all[i].any() }, func(i, j int) bool { return s.all[i].fits(words[j], w) })
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

// covered implements part.
func (c *command) covered(spec specifier, w *work) (bool, string) {
	s, ok := spec.(*commandSpec)
	if !ok || !w.spend(64*len(c.words)) {
		return false, ""
	}
	texts, why := c.plain()
	if why != "" {
		return false, why
	}
	if !c.words[0].bare || !plain(texts[0]) {
		return false, "the program's name is disguised"
	}
	if i := slices.IndexFunc(c.words, func(w word) bool { return w.veiled }); i >= 0 {
		return false, "a word of it has a line that begins with #, a backslash before a blank or a line's end, or braces with dots: write it as a heredoc, or in quotes"
	}
	why = ""
	for at := range c.runs(texts) {
		fits, reason := c.fits(s, texts, at, w)
		if fits {
			return true, ""
		}
		why = cmp.Or(why, reason)
	}
	return false, why
}

// needsQuotes reports whether a character has a meaning in a shell, or in a rule.
func needsQuotes(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./:@", r)
}

// fits reports whether a rule is about the words from one of them on.
func (c *command) fits(s *commandSpec, texts []string, at int, w *work) (bool, string) {
	if !s.fits(texts[at:], w) {
		return false, ""
	}
	for i := range min(len(s.fixed()), len(texts)-at) {
		if !c.words[at+i].known {
			return false, "the shell expands a word of it" // the rule has it as it is
		}
		if !c.words[at+i].bare && !strings.ContainsFunc(texts[at+i], needsQuotes) {
			return false, texts[at+i] + " is in quotes, and the rule is not"
		}
	}
	switch {
	case c.away && (s.local || bound(texts[at:], c.below)):
		return false, "it may run in another directory than that of the rules"
	case c.outside != "":
		return false, c.outside + " may lead out of the directories of the policy"
	case s.wild():
		if c.same && at == 0 && len(s.fixed()) < 2 {
			texts = append([]string{texts[0]}, texts[3:]...)
		}
		why := wayOut(s, texts[at:])
		return why == "", why
	}
	return !slices.ContainsFunc(c.words[at:], func(w word) bool { return !w.known }), ""
}

// stopped implements part. Deny and ask rules are held against the script.
func (c *command) stopped(specifier, *work) match { return no }

// target is a text that a word of a script is shown as.
type target string

func (t target) String() string { return string(t) }

// redirection is a file that a redirection names.
type redirection struct {
	text  string
	files []filePart // by each of its names; none when they are not known
	read  bool
}

// redirection is a redirection as the rules see it.
func (d *decision) redirection(r redirected) *redirection {
	t := &redirection{text: r.text, read: r.read}
	if !r.known || strings.HasPrefix(r.text, "/dev/") || !d.within(d.dir, r.text) {
		return t
	}
	clean, ok := d.places.absolute(d.dir, r.text)
	if !ok {
		return t
	}
	names, ok := d.names(clean)
	for _, name := range names {
		f := newFile(name, false)
		if !ok || f.odd != "" || slices.ContainsFunc(f.file, oddName.MatchString) {
			return t
		}
		t.files = append(t.files, f)
	}
	return t
}

func (t *redirection) String() string { return t.text }

// covered implements part. Like Claude Code 2.1.329 (observed), it takes rules about
// reading for what is read, and for what is written only rules that name paths.
func (t *redirection) covered(spec specifier, w *work) (bool, string) {
	s, ok := spec.(*pathSpec)
	if len(t.files) == 0 || spec != nil && !ok || spec == nil && !t.read {
		return false, ""
	}
	return !slices.ContainsFunc(t.files, func(f filePart) bool { return ok && !s.exact.fits(f.file, w) }), ""
}

// allowedBy reports whether a rule is about the kind of the redirection.
func (t *redirection) allowedBy(r *rule) bool {
	return t.read && r.tool == "Read" || !t.read && r.tool == "Edit"
}

func (t *redirection) stopped(specifier, *work) match { return no }

// stops says how far a deny or ask rule fits a command. named is set when all
// that the rule names stands somewhere in the script.
func (s *commandSpec) stops(c *command, named bool, w *work) match {
	if !w.spend(4) {
		return maybe
	}
	got := s.runs(c.forms, w)
	if got == yes {
		return yes
	}
	if got == maybe || named || c.opaque || len(c.known) == 0 || !plain(c.known[0]) {
		return maybe // whatever the shell makes of the rest
	}
	if len(c.known) < len(c.words) && !s.excludes(c.forms) {
		return maybe
	}
	return no
}

// excludes reports whether a command that begins with known words is not the rule's,
// whatever the rest of its words is: it is another program, or another subcommand.
func (s *commandSpec) excludes(forms []form) bool {
	if s.program == "" {
		return false
	}
	fixed := s.named.fixed()
	for i := range forms {
		f := &forms[i]
		if f.family != s.family && (len(f.canonical) == 0 || f.canonical[0] != s.named.program) {
			continue
		}
		words := f.words
		if len(f.canonical) > 0 {
			words = f.canonical
		}
		if len(fixed) < 2 || len(words) < 2 || isOption(fixed[1]) || isOption(words[1]) || fixed[1] == words[1] {
			return false
		}
	}
	return true
}

// maxWrapped bounds the programs that run others in one command.
const maxWrapped = 64

// form is one way to read a command: the words from one of them on, as the
// program that is named there sees them.
type form struct {
	words     []string
	name      string // of the program, without its directory
	family    string // the same without its version
	canonical []string
}

// forms are the command, and those behind programs that run their arguments.
func (d *decision) forms(words []string) []form {
	var all []form
	for i := range words {
		if i > 0 && (i > maxWrapped || !runsArguments(words[0])) || !d.spend(64+len(words)/4) {
			break
		}
		name := programName(words[i])
		all = append(all, form{words[i:], name, familyName(name), canonical(words[i:])})
	}
	return all
}

// runs says how far the words run what the rule is about: surely when they are
// its words, or those behind a program that runs its arguments, by any name of
// the program and of its subcommand; perhaps when the program is of the same
// family.
func (s *commandSpec) runs(forms []form, w *work) match {
	found := no
	for i := range forms {
		f := &forms[i]
		if !w.spend(8) || s.are(f.words, w) {
			return yes
		}
		if s.named == nil || f.family != s.family && len(f.canonical) == 0 {
			if f.name != f.words[0] && s.are(f.with(f.name), w) {
				return yes
			}
			continue
		}
		if len(f.canonical) > 0 && s.named.are(f.canonical, w) {
			return yes
		}
		if f.family == s.family {
			same := f.with(s.program)
			if s.named.are(same, w) || f.name != s.program && s.namedFits(same, w) {
				if f.name == s.program {
					return yes
				}
				found = maybe
			}
		}
	}
	return found
}

// with are the words with another name of the program.
func (f *form) with(name string) []string { return append([]string{name}, f.words[1:]...) }

func (s *commandSpec) namedFits(words []string, w *work) bool {
	other := canonical(words)
	return len(other) > 0 && s.named.are(other, w)
}

// are reports whether the words are those of the rule, one by one or as text.
func (s *commandSpec) are(words []string, w *work) bool {
	return s.fits(words, w) || s.joined(words, w)
}

// joined compares the words as text, as the agents do: there a wildcard inside
// of a word reaches over the next ones.
func (s *commandSpec) joined(words []string, w *work) bool {
	if len(s.texts) == 0 || !strings.HasPrefix(words[0], s.first) || !w.spend(2+len(words)) {
		return false
	}
	text := strings.Join(words, " ")
	return slices.ContainsFunc(s.texts, func(pattern wordSpec) bool { return pattern.fits(text, w) })
}

// mentioned reports whether all that the rule names stands somewhere in the
// commands, in whatever order: git -c x push, find -exec git push, or
// ln -s /bin/git x; ./x push.
func (s *commandSpec) mentioned(script *script, work *work) bool {
	if !work.spend(8 + len(s.words)*(2+len(script.all)/64+len(script.options)/8)) {
		return true
	}
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

// tokens are the pieces, in lower case, of a word that could be words of a command.
func tokens(w string) []string {
	return strings.FieldsFunc(strings.ToLower(w), func(r rune) bool {
		return strings.ContainsRune(" \t\n'\"`\\/;|&()<>{}$=,!:@", r)
	})
}
