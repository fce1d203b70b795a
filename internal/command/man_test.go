package command

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each command has a manual page with all its flags, which groff takes without a warning.
func TestManuals(t *testing.T) {
	t.Parallel()
	a := &app{}
	root := a.tree()
	pages := a.manuals(root)
	groff, _ := exec.LookPath("groff")
	for _, m := range pages {
		text := m.String()
		for _, section := range []string{".SH NAME\n" + roff(m.name) + ` \- `, ".SH \"SYNOPSIS\"\n", ".SH \"DESCRIPTION\"\n", ".SH \"SEE ALSO\"\n"} {
			assert.Equal(t, 1, strings.Count(text, section), "%s: %s", m.name, section)
		}
		for _, g := range m.page.groups {
			for _, f := range g.flags {
				assert.Equal(t, g.title != "", strings.Contains(text, `\fB\-\-`+roff(f.name)+`\fR`), "%s: --%s", m.name, f.name)
			}
		}
		if groff == "" {
			continue
		}
		cmd := exec.Command(groff, "-man", "-Kutf8", "-Tutf8", "-ww")
		var out, said bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), &out, &said
		require.NoError(t, cmd.Run(), "%s: %s", m.name, said.String())
		assert.Empty(t, said.String(), m.name)
	}
	for _, cmd := range root.Commands() {
		name := "troupe-" + cmd.Name()
		assert.Equal(t, cmd.Name() != "help", strings.Contains(pages[0].String(), ".BR "+roff(name)+" (1)"), name)
	}
}

func TestManText(t *testing.T) {
	t.Parallel()
	m := manual{name: "troupe-x", short: "do x", others: []string{"troupe", "troupe-x"}, page: page{
		text:   "Usage: troupe x A\n       troupe x B\n\nDoes x.\n.It has a \\ and 'quotes'.\n\n  set  in\n\nCommands:\n  one   the first\n",
		groups: []flagGroup{{"Flags", []flagSpec{{name: "dry-run", short: "n", help: "nothing"}, {name: "out", arg: "DIR", help: "where"}}}, {"", []flagSpec{{name: "gone"}}}},
		end:    "\nExit codes: 0 good, 1\nnot.\n",
	}}
	_, body, _ := strings.Cut(m.String(), "\n")
	assert.Equal(t, `.SH NAME
troupe\-x \- do x
.SH "SYNOPSIS"
.PP
.nf
troupe x A
       troupe x B
.fi
.SH "DESCRIPTION"
.PP
Does x.
\&.It has a \e and 'quotes'.
.PP
.nf
  set  in
.fi
.SH "COMMANDS"
.PP
.nf
  one   the first
.fi
.SH "FLAGS"
.TP
\fB\-n\fR, \fB\-\-dry\-run\fR
nothing
.TP
\fB\-\-out\fR \fIDIR\fR
where
.SH "EXIT STATUS"
.PP
0 good, 1
not.
.SH "SEE ALSO"
.BR troupe (1)
`, body)
}

func TestMan(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "man1")
	w := newWorld()
	require.Equal(t, exitOK, w.run("man", "--dir", dir), w.err.String())
	for _, name := range []string{"", "-batch"} {
		written, err := os.ReadFile(filepath.Join(dir, "troupe"+name+".1"))
		require.NoError(t, err)
		w := newWorld()
		require.Equal(t, exitOK, w.run(append([]string{"man"}, strings.Fields(strings.TrimPrefix(name, "-"))...)...))
		assert.Equal(t, string(written), w.out.String())
	}
	for args, want := range map[string]string{
		"man bathc":            `there is no command "bathc"; did you mean troupe batch?`,
		"man run --dir " + dir: "troupe man takes one command, or --dir; leave the others out",
	} {
		w := newWorld()
		assert.Equal(t, exitUsage, w.run(strings.Fields(args)...))
		assert.Equal(t, "troupe: "+want+"\n", w.err.String())
	}
	w = newWorld()
	assert.Equal(t, exitOutput, w.run("man", "--dir", "/dev/null/man"))
}
