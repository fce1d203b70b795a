package policy

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// maxCommand bounds what is parsed, in bytes: the parser recurses, and the
// commands of a gate are short.
const maxCommand = 16 << 10

// readShell takes a shell command apart into its simple commands.
func (p *Policy) readShell(in input) subject {
	text, _, ok := in.text("command")
	if !ok || strings.TrimSpace(text) == "" {
		return subject{unclear: "the input has no command", never: true}
	}
	commands, targets, unclear := parseShell(text)
	s := subject{unclear: unclear}
	for _, c := range commands {
		s.parts = append(s.parts, c)
	}
	for _, t := range targets {
		s.parts = append(s.parts, t)
	}
	if dir, given, ok := in.text("dir_path"); given && (!ok || dir != "") { // Qoder's
		at, known := p.places.absolute(dir)
		s.elsewhere = !ok || !known || at != path.Clean(p.places.cwd)
	}
	if raw, given := in["dangerouslyDisableSandbox"]; given && string(raw) != "false" {
		s.unclear, s.never = "it asks to run outside the sandbox", true
	}
	return s
}

// parseShell finds the simple commands of a script and the targets of its
// redirections, wherever they stand in it. unclear says why the script is more than literal words in simple commands,
// chained by ; && || | and newlines; "" when it is not.
func parseShell(text string) (commands []command, targets []target, unclear string) {
	if len(text) > maxCommand {
		return nil, nil, "the command is too long to be read"
	}
	if what := unseen(text); what != "" {
		unclear = what
	}
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
	file, err := parser.Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, nil, fmt.Sprintf("the command cannot be read: %v", err)
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.CallExpr:
			if len(node.Args) > 0 {
				commands = append(commands, readCommand(node))
			}
		case *syntax.Redirect:
			if node.Word != nil {
				targets = append(targets, target{text: readWord(node.Word).text})
			}
		case *syntax.Comment:
			unclear = orElse(unclear, "it has a comment")
		}
		return true
	})
	for _, stmt := range file.Stmts {
		unclear = orElse(unclear, oddity(stmt))
	}
	if len(commands) == 0 {
		unclear = orElse(unclear, "it has no command")
	}
	said := vocabularyOf(commands)
	for i := range targets {
		targets[i].script = said
	}
	for i := range commands {
		commands[i].script = said
		if words := commands[i].known(); len(words) == len(commands[i].words) {
			commands[i].opaque = opaque(words)
		}
	}
	return commands, targets, unclear
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
	script *vocabulary // of all that stand with it
	opaque bool        // nothing can be ruled out, see [opaque]
}

// word is a word of a command after quotes are taken away.
type word struct {
	text  string
	known bool // the shell does not change it any more
	bare  bool // it was written without quotes and backslashes
}

func readCommand(c *syntax.CallExpr) command {
	var all command
	for _, arg := range c.Args {
		all.words = append(all.words, readWord(arg))
	}
	return all
}

// readWord reads a word that the shell does not change. Of a word that it does,
// text is what can be read.
func readWord(w *syntax.Word) word {
	out := word{known: true, bare: true}
	var b strings.Builder
	for i, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			text, ok := literal(part.Value, i == 0)
			out.known = out.known && ok
			out.bare = out.bare && text == part.Value
			b.WriteString(text)
		case *syntax.SglQuoted:
			out.bare = false
			out.known = out.known && !part.Dollar
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			out.bare = false
			out.known = out.known && !part.Dollar
			for _, inner := range part.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					out.known = false
					continue
				}
				text, ok := quotedLiteral(lit.Value)
				out.known = out.known && ok
				b.WriteString(text)
			}
		default:
			out.known, out.bare = false, false
		}
	}
	out.text = b.String()
	return out
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
		case '*', '?', '[', '{', '$', '`', '(', ')', '<', '>':
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
func (c command) String() string {
	texts := make([]string, len(c.words))
	for i, w := range c.words {
		switch {
		case !w.known:
			texts[i] = w.text + "…"
		case w.text == "" || strings.ContainsAny(w.text, " \t\n'\"\\|&;<>()$`*?[]{}#!~"):
			texts[i] = "'" + strings.ReplaceAll(w.text, "'", `'\''`) + "'"
		default:
			texts[i] = w.text
		}
	}
	return strings.Join(texts, " ")
}

// known are the command's words up to the first that is not known.
func (c command) known() []string {
	var texts []string
	for _, w := range c.words {
		if !w.known {
			break
		}
		texts = append(texts, w.text)
	}
	return texts
}
