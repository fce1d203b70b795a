package policy

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// maxCommand bounds what is parsed, in bytes: the parser recurses, and the
// commands of a gate are short.
const maxCommand = 16 << 10

// maxBrackets bounds the nesting of what is parsed.
const maxBrackets = 1 << 10

// maxNested is how deep commands in the arguments of commands are read.
const maxNested = 4

// readShell takes a shell command apart into its simple commands.
func (d *decision) readShell(in input) subject {
	text, _, ok := in.text("command")
	if !ok || strings.TrimSpace(text) == "" {
		return subject{unclear: "the input has no command", never: true}
	}
	if dir, given, ok := in.text("dir_path"); given && (!ok || dir != "") { // Qoder's
		if at, known := d.places.absolute(d.dir, dir); ok && known {
			d.dir = at
		} else {
			d.dir = ""
		}
	}
	p := d.parse(text, 0)
	s := subject{unclear: p.unclear, script: d.script(p)}
	for i := range p.commands {
		s.parts = append(s.parts, &p.commands[i])
	}
	for _, t := range p.targets {
		if t.text != "/dev/null" || !t.known {
			r := d.redirection(t)
			if s.script.moves {
				r.files = nil // it may count from another directory
			}
			s.parts = append(s.parts, r)
		}
	}
	if p.hides || !p.read {
		s.hidden = cmp.Or(p.unclear, "it may run what is not in it")
	}
	if raw, given := in["dangerouslyDisableSandbox"]; given && string(raw) != "false" {
		s.unclear, s.never = "it asks to run outside the sandbox", true
	}
	return s
}

// parsed is what was found in a shell script, wherever it stands in it.
type parsed struct {
	commands []command
	targets  []redirected // files that are read and written
	others   []word       // all other words that are not of commands
	// unclear says why the script is more than literal words in simple commands,
	// chained by ; && || | and newlines; "" when it is not.
	unclear string
	read    bool   // it could be parsed
	text    string // as it is written
	alone   bool   // it is one statement
	hides   bool   // it cannot be seen what it runs
}

// parse reads a script, and those in the arguments of its commands.
func (d *decision) parse(text string, depth int) (p parsed) {
	if len(text) > maxCommand || strings.Count(text, "(")+strings.Count(text, "{") > maxBrackets || !d.spend(len(text)*parseSteps) {
		p.unclear = "the command is too long to be read"
		return p
	}
	p.text, p.unclear = text, unseen(text)
	p.hides = p.unclear != ""
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
	file, err := parser.Parse(strings.NewReader(text), "")
	if err != nil {
		p.unclear = fmt.Sprintf("the command cannot be read: %v", err)
		return p
	}
	p.read = true
	seen := map[*syntax.Word]bool{} // the words of commands and redirections
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.Comment:
			if strings.Contains(node.Text, "\n") {
				// The parser takes a backslash at the end of a comment for a continued
				// line. Shells do not.
				p.unclear, p.hides, p.read = "it has a comment that ends with a backslash", true, false
			}
		case *syntax.Assign:
			p.hides = p.hides || swaysPrograms(node)
		case *syntax.CmdSubst:
			if _, is := heredoc(node); is {
				return false // a text
			}
		case *syntax.CallExpr:
			if len(node.Args) > 0 {
				c := readCommand(node)
				for i, arg := range node.Args {
					c.words[i].veiled = c.words[i].veiled || slices.ContainsFunc(arg.Parts, func(part syntax.WordPart) bool { return continued(part, text) })
				}
				p.commands = append(p.commands, c)
			}
			for _, arg := range node.Args {
				seen[arg] = true
			}
		case *syntax.Redirect:
			if node.Word != nil && node.Op != syntax.WordHdoc && node.Op != syntax.Hdoc && node.Op != syntax.DashHdoc {
				p.redirect(node)
				seen[node.Word] = true
			} else if node.Hdoc != nil && quotedMark(node.Word) {
				seen[node.Hdoc] = true
				p.others = append(p.others, word{text: literally(node.Hdoc), known: true, path: true})
			}
		case *syntax.CaseItem:
			for _, pattern := range node.Patterns {
				seen[pattern] = true // it is compared with a word, and not with files
			}
		case *syntax.Word:
			if !seen[node] {
				p.others = append(p.others, readWord(node))
			}
		}
		return true
	})
	p.alone = len(file.Stmts) == 1
	for _, stmt := range file.Stmts {
		p.unclear = cmp.Or(p.unclear, p.oddity(stmt))
	}
	if len(p.commands) == 0 {
		p.unclear = cmp.Or(p.unclear, "it has no command")
	}
	for i := range p.commands {
		c := &p.commands[i]
		c.forms = d.forms(c.known)
		if !d.spend(16 * len(c.words)) {
			continue
		}
		c.opaque = c.hides()
		if words := c.known; len(words) == len(c.words) && len(words) > 3 && words[0] == "git" && words[1] == "-C" && path.IsAbs(words[2]) && d.isCwd(path.Clean(words[2])) {
			c.same = true
			c.opaque = opaque(append([]string{words[0]}, words[3:]...))
		}
		if len(c.known) == len(c.words) && depth < maxNested {
			for _, script := range scripts(c.known) {
				c.inner = append(c.inner, d.parse(script, depth+1))
			}
		}
	}
	return p
}

// continued reports whether a text in double quotes has a line that a backslash continues,
// which the parser takes out.
func continued(part syntax.WordPart, script string) bool {
	quoted, is := part.(*syntax.DblQuoted)
	if !is || quoted.End().Offset() > uint(len(script)) {
		return false
	}
	return strings.Contains(script[quoted.Pos().Offset():quoted.End().Offset()], "\\\n")
}

// unseen finds characters that a reader would take for something else. Shells
// disagree on which of them separate words.
func unseen(text string) string {
	for i, r := range text {
		switch {
		case r == utf8.RuneError:
			return "it is not UTF-8"
		case r == '\n' || r == '\t' || unicode.IsPrint(r):
		default:
			return fmt.Sprintf("it has the invisible character %U at byte %d", r, i)
		}
	}
	return ""
}

// command is a simple command, as far as its words are known.
type command struct {
	words  []word
	known  []string // the words up to the first that is not known
	forms  []form   // what the known words run
	inner  []parsed // the scripts in its arguments
	opaque bool     // nothing can be ruled out, see [opaque]
	here   string   // the directory that it runs in, if all before it succeeded; "" when it is not known
	same   bool     // it is git -C, with the directory of the rules
	below  bool     // that is below the directory of the rules
	away   bool     // it may run in another directory than the rules'
	// outside is a path in its words that leads, or may lead, out of the rules'
	// directories, if any.
	outside string
	// guarded is what it names that no rule allows to be written, if anything.
	guarded string
}

// word is a word of a command after quotes are taken away.
type word struct {
	text  string // with unknownPart for what is not known
	known bool   // the shell does not change it any more
	bare  bool   // it was written without quotes and backslashes
	// path is set when the text, as a path, is what the shell makes of the word:
	// it is known, or is so behind ~, $HOME or $PWD, the last of which is left
	// out of the text.
	path bool
	// glob is set when the shell changes it, and all that it changes are patterns of
	// files; status when all that it changes is $?.
	glob, status bool
	coded        bool // it has characters by their numbers, as in $'\x65'
	// veiled is set when the agent is not sure where the word ends, or what the shell makes of
	// it: a quoted text with a line that begins with #, or one that a backslash continues, a
	// blank behind a backslash, braces with dots. [observed]
	veiled bool
}

var (
	veiledBare = regexp.MustCompile(`\\[ \t]|\{.*(,|\.\.)|(,|\.\.).*\{`)
	veiledText = regexp.MustCompile(`\n[ \t]*#|\\\n`)
)

// odd reports whether a word may become anything.
func (w word) odd() bool { return !w.known && !w.glob }

func readCommand(c *syntax.CallExpr) command {
	var all command
	for _, arg := range c.Args {
		w := readWord(arg)
		if w.known && len(all.known) == len(all.words) {
			all.known = append(all.known, w.text)
		}
		all.words = append(all.words, w)
	}
	return all
}

// readWord reads a word that the shell does not change. Of a word that it does,
// text is what can be read.
func readWord(w *syntax.Word) word {
	out := word{known: true, bare: true, path: true, glob: true, status: true}
	var b strings.Builder
	add := func(text string, known bool) {
		out.known, out.path = out.known && known, out.path && known
		out.glob, out.status = out.glob && known, out.status && known
		b.WriteString(text)
	}
	expand := func(p *syntax.ParamExp, first bool) {
		if p.Short && p.Param != nil && p.Param.Value == "?" {
			out.known, out.path, out.glob = false, false, false
			b.WriteString(unknownPart)
			return
		}
		text := directoryOf(p, first)
		add(cmp.Or(text, unknownPart), text != "")
		out.known, out.glob, out.status = false, false, false
	}
	for i, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if i == 0 {
				if start, rest := directoryIn(part.Value); start != "" {
					out.known, out.bare, out.glob, out.status = false, false, false, false
					b.WriteString(start)
					part = &syntax.Lit{Value: rest}
				}
			}
			first := i == 0 && b.Len() == 0
			text, ok := literal(part.Value, first)
			out.bare = out.bare && text == part.Value
			out.veiled = out.veiled || veiledBare.MatchString(part.Value)
			glob := out.glob
			add(text, ok)
			if _, plain := literal(strings.NewReplacer("*", "x", "?", "x", "[", "x").Replace(part.Value), first); plain {
				out.glob = glob
			}
		case *syntax.SglQuoted:
			out.bare = false
			out.coded = out.coded || part.Dollar && strings.Contains(part.Value, `\`)
			out.veiled = out.veiled || veiledText.MatchString(part.Value)
			add(part.Value, !part.Dollar)
		case *syntax.DblQuoted:
			out.bare = false
			add("", !part.Dollar)
			for j, inner := range part.Parts {
				switch inner := inner.(type) {
				case *syntax.Lit:
					raw, dollar := inner.Value, ""
					if j == len(part.Parts)-1 && strings.HasSuffix(raw, "$") && !strings.HasSuffix(raw, `\$`) {
						raw, dollar = raw[:len(raw)-1], "$" // at the end of a text it is a letter
					}
					text, ok := quotedLiteral(raw)
					add(text+dollar, ok)
					out.veiled = out.veiled || veiledText.MatchString(inner.Value)
				case *syntax.ParamExp:
					expand(inner, i+j == 0)
				case *syntax.CmdSubst:
					text, ok := heredoc(inner)
					add(cmp.Or(text, unknownPart), ok)
				default:
					add(unknownPart, false)
				}
			}
		case *syntax.ParamExp:
			expand(part, i == 0)
			out.bare = false
		default:
			out.bare = false
			add(unknownPart, false)
		}
	}
	out.text = b.String()
	out.glob, out.status = out.glob && !out.known, out.status && !out.known
	return out
}

// directoryIn splits what stands for a directory off the start of a word.
func directoryIn(raw string) (start, rest string) {
	name, rest, more := strings.Cut(raw, "/")
	if more {
		rest = "/" + rest
	}
	switch name {
	case "~":
		return "~", rest
	case "~+":
		return ".", rest
	}
	return "", raw
}

// directoryOf is what a variable at the start of a word stands for, as a path;
// "" when that is not known.
func directoryOf(p *syntax.ParamExp, first bool) string {
	switch {
	case !first || p.Param == nil || p.Excl || p.Length || p.Width || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Exp != nil || p.Names != 0:
	case p.Param.Value == "PWD":
		return "."
	case p.Param.Value == "HOME":
		return "~"
	}
	return ""
}

// literal takes the backslashes out of unquoted text. ok is false when bash or
// zsh would still expand something in it: a pattern, braces, a tilde, zsh's
// =command, a dollar.
func literal(raw string, first bool) (text string, ok bool) {
	var b strings.Builder
	ok = true
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch c {
		case '\\':
			i++
			switch {
			case i == len(raw):
				ok = false
			case raw[i] != '\n':
				b.WriteByte(raw[i])
			}
			continue
		case '{':
			ok = ok && plainBrace(raw[i:])
		case '[':
			ok = ok && raw == "[" // a command: test
		case '*', '?', '$', '`', '(', ')', '<', '>':
			ok = false
		case '~':
			// Also behind the = and : of words that look like assignments.
			ok = ok && (i > 0 || !first) && (i == 0 || raw[i-1] != '=' && raw[i-1] != ':')
		case '=':
			ok = ok && (i > 0 || !first)
		}
		b.WriteByte(c)
	}
	return b.String(), ok
}

// plainBrace reports whether a shell leaves the brace that a text begins with: there is
// no list and no range in it, as in {} and HEAD@{1}.
func plainBrace(raw string) bool {
	inside, _, closed := strings.Cut(raw[1:], "}")
	return closed && !strings.ContainsFunc(inside, func(r rune) bool { return r != '_' && !isHostRune(unicode.ToLower(r)) || r == '.' })
}

// quotedLiteral is literal for text in double quotes.
func quotedLiteral(raw string) (text string, ok bool) {
	var b strings.Builder
	ok = true
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '\\' && i+1 < len(raw) && strings.IndexByte("\\\"$`\n", raw[i+1]) >= 0:
			i++
			if raw[i] != '\n' {
				b.WriteByte(raw[i])
			}
			continue
		case c == '$' || c == '`':
			ok = false
		}
		b.WriteByte(raw[i])
	}
	return b.String(), ok
}

// String is the command as one could type it.
func (c *command) String() string {
	texts := make([]string, len(c.words))
	for i, w := range c.words {
		switch {
		case !w.known:
			texts[i] = strings.ReplaceAll(w.text, unknownPart, "") + "…"
		case w.text == "" || strings.ContainsAny(w.text, " \t\n'\"\\|&;<>()$`*?[]{}#!~"):
			texts[i] = "'" + strings.ReplaceAll(w.text, "'", `'\''`) + "'"
		default:
			texts[i] = w.text
		}
	}
	return strings.Join(texts, " ")
}
