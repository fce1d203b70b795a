package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

func manPage() page {
	return page{text: `Usage: troupe man [COMMAND]
       troupe man --dir DIR

Prints the manual page of a command, or of troupe itself, for man and groff. The second form writes
all pages into a directory. They say what the help says.

  troupe man run | man -l -
  troupe man --dir ~/.local/share/man/man1
`, groups: []flagGroup{{"Flags", []flagSpec{
		{name: "dir", arg: "DIR", help: "write all pages into this directory, which is made", set: text(func(s *settings) *string { return &s.into })},
		helpFlag(),
	}}}}
}

// manual is troupe man.
func (a *app) manual(root func() *cobra.Command) action {
	return func(_ context.Context, _ process, c *console, s *settings) int {
		if s.into != "" && len(s.words) > 0 || len(s.words) > 1 {
			return c.usage(&usageError{"troupe man takes one command, or --dir", "leave the others out"})
		}
		pages := a.manuals(root())
		if s.into != "" {
			if err := writeManuals(s.into, pages); err != nil {
				return c.outputLost(err)
			}
			return exitOK
		}
		name := "troupe"
		if len(s.words) > 0 {
			name += "-" + s.words[0]
		}
		for _, m := range pages {
			if m.name == name {
				return c.print(m.String())
			}
		}
		return c.usage(unknownCommand(s.words[0], root().Commands()))
	}
}

func writeManuals(dir string, pages []manual) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // everyone may read it
		return err
	}
	for _, m := range pages {
		if err := os.WriteFile(filepath.Join(dir, m.name+".1"), []byte(m.String()), 0o644); err != nil { //nolint:gosec // everyone may read it
			return err
		}
	}
	return nil
}

// manual is the manual page of a command.
type manual struct {
	name, short string
	page        page
	others      []string
}

// manuals are the pages of troupe and of its commands.
func (a *app) manuals(root *cobra.Command) (all []manual) {
	var names []string
	add := func(cmd *cobra.Command, name string) {
		all = append(all, manual{name: name, short: cmd.Short, page: a.made[cmd].page})
		names = append(names, name)
	}
	add(root, "troupe")
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() && cmd.Name() != "help" {
			add(cmd, "troupe-"+cmd.Name())
		}
	}
	for i := range all {
		all[i].others = names
	}
	return all
}

// String is the page in the language of man(7).
func (m *manual) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" %q \"Troupe manual\"\n.SH NAME\n%s \\- %s\n", strings.ToUpper(roff(m.name)), currentVersion().Version, roff(m.name), roff(m.short))
	writeProse(&b, m.page.text, "DESCRIPTION")
	for _, g := range m.page.groups {
		if g.title != "" {
			fmt.Fprintf(&b, ".SH %q\n", strings.ToUpper(g.title))
			for _, f := range g.flags {
				writeManFlag(&b, f)
			}
		}
	}
	writeProse(&b, m.page.end, "NOTES")
	var others []string
	for _, other := range m.others {
		if other != m.name {
			others = append(others, ".BR "+roff(other)+" (1)")
		}
	}
	fmt.Fprintf(&b, ".SH \"SEE ALSO\"\n%s\n", strings.Join(others, " ,\n"))
	return b.String()
}

func writeManFlag(b *strings.Builder, f flagSpec) {
	head := `\fB\-\-` + roff(f.name) + `\fR`
	if f.short != "" {
		head = `\fB\-` + f.short + `\fR, ` + head
	}
	if f.arg != "" {
		head += ` \fI` + roff(f.arg) + `\fR`
	}
	fmt.Fprintf(b, ".TP\n%s\n%s\n", head, roff(f.help))
}

// writeProse writes the text of a help: paragraphs, of which those that are set in keep their lines.
// first is the section of text without a title.
func writeProse(b *strings.Builder, text, first string) {
	section := func(title string) {
		fmt.Fprintf(b, ".SH %q\n", title)
		first = ""
	}
	for part := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		lines := strings.Split(strings.Trim(part, "\n"), "\n")
		if usage, ok := strings.CutPrefix(lines[0], "Usage: "); ok {
			section("SYNOPSIS")
			lines[0] = usage
			literal(b, lines)
			first = "DESCRIPTION"
			continue
		}
		if codes, ok := strings.CutPrefix(lines[0], "Exit codes: "); ok {
			section("EXIT STATUS")
			lines[0] = codes
		}
		titles := map[string]string{"Usage:": "SYNOPSIS", "Exit codes:": "EXIT STATUS", "Commands:": "COMMANDS"}
		if title := titles[lines[0]]; title != "" {
			section(title)
			lines = lines[1:]
		}
		if first != "" {
			section(first)
		}
		for len(lines) > 0 {
			n := 1
			set := strings.HasPrefix(lines[0], " ")
			for n < len(lines) && strings.HasPrefix(lines[n], " ") == set {
				n++
			}
			if set {
				literal(b, lines[:n])
			} else {
				b.WriteString(".PP\n")
				for _, line := range lines[:n] {
					b.WriteString(roff(line) + "\n")
				}
			}
			lines = lines[n:]
		}
	}
}

// literal writes lines that stay as they are.
func literal(b *strings.Builder, lines []string) {
	b.WriteString(".PP\n.nf\n")
	for _, line := range lines {
		b.WriteString(roff(line) + "\n")
	}
	b.WriteString(".fi\n")
}

// roff is a line of text for man(7).
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
