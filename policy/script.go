package policy

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// script is a shell command as deny and ask rules see it: with the scripts in
// its arguments, and with all that any of its words could name.
type script struct {
	commands []*command
	tokens   map[string]bool
	options  []string // in lower case
	all      string   // the words in lower case
	from     []string // the directories that relative paths may count from
	lost     bool     // they may count from anywhere
	moves    bool     // it changes the directory
	unread   bool     // there was something that could not be parsed
	mentions []mention
}

// mention is a path that a word of the script names.
type mention struct {
	filePart
	about fmt.Stringer // the command or the word
	glob  bool         // a * in it stands for any text
	reads bool         // the program that gets it only reads
}

const (
	// maxDirectories bounds the directories that a script may be in.
	maxDirectories = 16
	// maxMentions bounds the paths that a script may name.
	maxMentions = 4096
)

// script finds out what a parsed script names.
func (d *decision) script(p parsed) *script {
	s := &script{tokens: map[string]bool{}, lost: d.dir == "", unread: !p.read}
	s.from = slices.DeleteFunc(d.directories(), func(dir string) bool { return dir == "" })
	var all strings.Builder
	s.collect(d, p, &all, d.dir, !d.isCwd(d.dir))
	s.all = all.String()
	if !d.paths {
		return s
	}
	seen := map[string]bool{}
	for _, dir := range s.from {
		s.mention(d, seen, mention{about: target(dir)}, ".", dir, true)
	}
	s.mentionAll(d, seen, p)
	return s
}

// collect goes through the commands in the order in which they stand. It returns
// whether the last of them may leave the shell in another directory than the
// rules'.
func (s *script) collect(d *decision, p parsed, all *strings.Builder, here string, away bool) bool {
	for i := range p.commands {
		c := &p.commands[i]
		c.here, c.away = here, away
		c.below = here != "" && d.places.cwd != "" && strings.HasPrefix(here, d.places.cwd+"/")
		c.outside, c.guarded = d.outside(c), d.guardedWord(c)
		s.lost = s.lost || c.unreadScript()
		s.commands = append(s.commands, c)
		for i, w := range c.known {
			if !d.spend(4 + len(w)) {
				return away
			}
			for _, token := range tokens(w) {
				s.tokens[token] = true
			}
			if i == 0 {
				s.tokens[programName(w)] = true
			}
			if isOption(w) {
				s.options = append(s.options, strings.ToLower(w))
			}
			all.WriteString(strings.ToLower(w) + " ")
		}
		here, away = s.move(d, c)
		s.moves = s.moves || here != c.here
		for _, inner := range c.inner {
			away = s.collect(d, inner, all, here, away) || away
		}
	}
	return away
}

// unreadScript reports whether a word that the shell expands is itself a script: the
// names in that script are not known.
func (c *command) unreadScript() bool {
	at := 0
	for at < len(c.words)-1 && runsArguments(c.words[at].text) {
		at++
	}
	u, args := program(c.words[at].text), c.words[at+1:]
	unknown := func(w word) bool { return !w.known }
	switch {
	case programName(c.words[at].text) == "eval", programName(c.words[at].text) == "trap":
		return slices.ContainsFunc(args, unknown)
	case !u.is("sh"):
		return false
	}
	script := slices.IndexFunc(args, func(w word) bool { return !isOption(w.text) })
	return script >= 0 && !args[script].known && slices.ContainsFunc(args[:script], func(w word) bool { return strings.Contains(w.text, "c") })
}

// move follows cd. It returns the directory after the command, if it succeeds,
// and whether that may be another than the rules'.
func (s *script) move(d *decision, c *command) (here string, away bool) {
	at := 0
	for at < len(c.words)-1 && runsArguments(c.words[at].text) {
		at++
	}
	switch c.words[at].text {
	case "cd", "pushd", "chdir":
	case "popd":
		s.lost = true
		return "", true
	default:
		return c.here, c.away
	}
	var to []word
	for _, w := range c.words[at+1:] {
		if !isOption(w.text) {
			to = append(to, w)
		}
	}
	target := "~"
	if len(to) > 0 {
		target = to[0].text
	}
	if len(to) > 1 || len(to) == 1 && (!to[0].path || strings.ContainsAny(target[:min(1, len(target))], "-+")) || len(s.from) > maxDirectories {
		s.lost = true
		return "", true
	}
	here, known := d.places.absolute(c.here, target)
	if strings.Count(here, "/") > maxDepth/2 {
		s.lost = true // paths that count from there would be too long as well
		return "", true
	}
	s.lost = s.lost || !known
	for _, dir := range slices.Clone(s.from) {
		if next, ok := d.places.absolute(dir, target); ok && strings.Count(next, "/") <= maxDepth/2 && !slices.Contains(s.from, next) {
			s.from = append(s.from, next)
		}
	}
	return here, c.away || !d.isCwd(here)
}

// mentionAll finds the paths in all words.
func (s *script) mentionAll(d *decision, seen map[string]bool, p parsed) {
	here := d.dir
	for i := range p.commands {
		c := &p.commands[i]
		here = c.here
		prints, reads := c.prints(), c.reads()
		for i, w := range c.words {
			m := mention{about: c, reads: reads}
			s.pieces(d, seen, m, w, here, prints || i == 0 && !strings.Contains(w.text, "/"))
		}
		for _, inner := range c.inner {
			s.mentionAll(d, seen, inner)
		}
	}
	for _, w := range p.targets {
		s.pieces(d, seen, mention{about: target(w.text), reads: w.read}, w.word, here, false)
	}
	for _, w := range p.others {
		s.pieces(d, seen, mention{about: target(w.text)}, w, here, true)
	}
}

// pieces finds the paths in a word: .env, --file=.env, HEAD:.env, 'cat .env'.
// The word as a whole surely is one, unless unsure is set or it is an option.
func (s *script) pieces(d *decision, seen map[string]bool, m mention, w word, here string, unsure bool) {
	if w.text == "" || !d.spend(4*len(w.text)) {
		return
	}
	unsure = unsure || isOption(w.text)
	s.lost = s.lost || w.coded
	if !w.path {
		s.globs(d, seen, m, w.text, here, unsure)
		unsure = true
	}
	s.mention(d, seen, m, w.text, here, unsure)
	pieces := strings.FieldsFunc(w.text, func(r rune) bool { return strings.ContainsRune(" \t\n'\"`;|&()<>{}$=:@,"+unknownPart, r) })
	if isOption(w.text) && len(w.text) > 2 {
		pieces = append(pieces, w.text[2:]) // -ffile
	}
	for _, piece := range pieces {
		s.mention(d, seen, m, piece, here, true)
		if plain := unescaped(piece); plain != piece {
			s.mention(d, seen, m, plain, here, true)
		}
	}
}

// unescaped takes the % escapes of URLs out of a text.
func unescaped(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

// mention notes a path, seen from each of the directories. It is surely the one
// that is meant from the directory that the command runs in. A rule may also be
// meant from there although it counts from Rules.Cwd: Claude Code 2.1.329 takes
// it for both (observed).
func (s *script) mention(d *decision, seen map[string]bool, m mention, text, here string, unsure bool) {
	for _, dir := range append([]string{here}, s.from...) {
		clean, ok := d.places.absolute(dir, text)
		if !ok {
			continue
		}
		ruled := d.dir != "" && here == d.dir && dir == d.places.cwd
		unsure := unsure || dir != here && !ruled && !path.IsAbs(text)
		key := clean
		if m.glob {
			key += "*"
		}
		if !unsure && m.reads {
			key += "\x00r"
		} else if !unsure {
			key += "\x00"
		}
		if seen[key] {
			continue
		}
		seen[key] = true
		if len(s.mentions) >= maxMentions {
			s.lost = true
			return
		}
		names, resolved := []string{clean}, true
		if !strings.Contains(clean, manyMark) {
			names, resolved = d.names(clean)
		}
		for _, name := range names {
			m.filePart = newFile(name, false)
			if strings.Contains(name, `\`) && m.odd != "" && !inProcess(name) {
				// Where a backslash separates directories, it may be another path.
				s.mention(d, seen, m, strings.ReplaceAll(text, `\`, "/"), here, true)
				m.filePart = newFile(strings.ReplaceAll(name, `\`, "\x02"), false)
			}
			m.unsure = unsure
			if m.glob {
				markGlobs(m.folded)
			}
			if !resolved {
				m.odd = "the path does not resolve"
			}
			s.mentions = append(s.mentions, m)
		}
	}
}

// names says how far a deny or ask rule about a path fits the script. A rule
// about edits does not surely fit what is only read.
func (s *script) names(spec *pathSpec, edits bool, w *work) (m match, about string) {
	if s.lost || s.unread {
		m = maybe
	}
	for i := range s.mentions {
		f := &s.mentions[i]
		if !w.spend(4) {
			return m, about
		}
		got := no
		switch {
		case f.odd != "":
			got = maybe
		case f.glob && !spec.folded.meets(f.folded, w), !f.glob && !spec.folded.holds(f.folded, w):
		case f.unsure || edits && f.reads || f.glob && !spec.exact.holds(f.file, w):
			got = maybe
		default:
			return yes, f.about.String()
		}
		if got > m {
			m, about = got, f.about.String()
		}
	}
	return m, about
}

// runs says how far a deny or ask rule about a command fits the script.
func (s *script) runs(spec *commandSpec, w *work) (m match, about string) {
	named := spec.mentioned(s, w)
	for _, c := range s.commands {
		got := spec.stops(c, named, w)
		if got > m {
			m, about = got, c.String()
		}
		if m == yes || w.exhausted() {
			break
		}
	}
	if m == no && s.unread {
		m = maybe
	}
	return m, about
}
