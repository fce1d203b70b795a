package policy

import (
	"fmt"
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
		s.parts = append(s.parts, target(t.text))
	}
	if raw, given := in["dangerouslyDisableSandbox"]; given && string(raw) != "false" {
		s.unclear, s.never = "it asks to run outside the sandbox", true
	}
	return s
}

// parsed is what was found in a shell script, wherever it stands in it.
type parsed struct {
	commands []command
	targets  []word // of redirections to and from files
	others   []word // all other words that are not of commands
	// unclear says why the script is more than literal words in simple commands,
	// chained by ; && || | and newlines; "" when it is not.
	unclear string
	read    bool // it could be parsed
}

// parse reads a script, and those in the arguments of its commands.
func (d *decision) parse(text string, depth int) (p parsed) {
	if len(text) > maxCommand || strings.Count(text, "(")+strings.Count(text, "{") > maxBrackets || !d.spend(len(text)*parseSteps) {
		p.unclear = "the command is too long to be read"
		return p
	}
	p.unclear = unseen(text)
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
		case *syntax.CallExpr:
			if len(node.Args) > 0 {
				p.commands = append(p.commands, readCommand(node))
			}
			for _, arg := range node.Args {
				seen[arg] = true
			}
		case *syntax.Redirect:
			if node.Word != nil && node.Op != syntax.WordHdoc && node.Op != syntax.Hdoc && node.Op != syntax.DashHdoc {
				p.targets = append(p.targets, readWord(node.Word))
				seen[node.Word] = true
			}
		case *syntax.Word:
			if !seen[node] {
				p.others = append(p.others, readWord(node))
			}
		case *syntax.Comment:
			p.unclear = orElse(p.unclear, "it has a comment")
		}
		return true
	})
	for _, stmt := range file.Stmts {
		p.unclear = orElse(p.unclear, oddity(stmt))
	}
	if len(p.commands) == 0 {
		p.unclear = orElse(p.unclear, "it has no command")
	}
	for i := range p.commands {
		c := &p.commands[i]
		c.forms = d.forms(c.known)
		if len(c.known) < len(c.words) || !d.spend(16*len(c.words)) {
			continue
		}
		c.opaque = opaque(c.known)
		if depth < maxNested {
			for _, script := range scripts(c.known) {
				c.inner = append(c.inner, d.parse(script, depth+1))
			}
		}
	}
	return p
}

func orElse(first, second string) string {
	if first != "" {
		return first
	}
	return second
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

// oddity is what makes a statement more than a chain of simple commands.
func oddity(s *syntax.Stmt) string {
	switch {
	case len(s.Redirs) > 0:
		return "it has a redirection"
	case s.Background || s.Coprocess || s.Disown:
		return "it runs in the background"
	case s.Negated:
		return "it has a negation"
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		switch {
		case len(c.Assigns) > 0:
			return "it sets a variable"
		case len(c.Args) == 0:
			return "it has no command"
		}
		for _, arg := range c.Args {
			if w := readWord(arg); !w.known {
				return "the shell expands a word of it"
			}
		}
		return ""
	case *syntax.BinaryCmd:
		switch c.Op {
		case syntax.AndStmt, syntax.OrStmt, syntax.Pipe:
			return orElse(oddity(c.X), oddity(c.Y))
		}
		return "it has a pipe of another kind"
	}
	return "it is more than simple commands"
}

// command is a simple command, as far as its words are known.
type command struct {
	words  []word
	known  []string // the words up to the first that is not known
	forms  []form   // what the known words run
	inner  []parsed // the scripts in its arguments
	opaque bool     // nothing can be ruled out, see [opaque]
	here   string   // the directory that it runs in, if all before it succeeded; "" when it is not known
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
}

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
	out := word{known: true, bare: true, path: true}
	var b strings.Builder
	add := func(text string, known bool) {
		out.known, out.path = out.known && known, out.path && known
		b.WriteString(text)
	}
	expand := func(p *syntax.ParamExp, first bool) {
		text := directoryOf(p, first)
		add(orElse(text, unknownPart), text != "")
		out.known = false
	}
	for i, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if i == 0 {
				if start, rest := directoryIn(part.Value); start != "" {
					out.known, out.bare = false, false
					b.WriteString(start)
					part = &syntax.Lit{Value: rest}
				}
			}
			text, ok := literal(part.Value, i == 0 && b.Len() == 0)
			out.bare = out.bare && text == part.Value
			add(text, ok)
		case *syntax.SglQuoted:
			out.bare = false
			add(part.Value, !part.Dollar)
		case *syntax.DblQuoted:
			out.bare = false
			add("", !part.Dollar)
			for j, inner := range part.Parts {
				switch inner := inner.(type) {
				case *syntax.Lit:
					add(quotedLiteral(inner.Value))
				case *syntax.ParamExp:
					expand(inner, i+j == 0)
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
		case '*', '?', '[', '$', '`', '(', ')', '<', '>':
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
