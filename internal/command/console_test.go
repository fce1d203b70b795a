package command

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whatever a caller forgets, nothing that steers a terminal leaves the command.
func TestNothingSteersTheTerminal(t *testing.T) {
	t.Parallel()
	const evil = "a\x1b]52;c;ZXZpbA==\a\x1b[2J\x1b[8mhidden\u009b31m\u202e\r\x9b2J\x7fz"
	for name, color := range map[string]bool{"in colour": true, "plain": false} {
		for where, write := range map[string]func(*console){
			"note":       func(c *console) { c.note("%v", errors.New(evil)) },
			"say":        func(c *console) { c.say("%s", evil) },
			"usage":      func(c *console) { c.usage(errors.New(evil)) },
			"the log":    func(c *console) { c.logger(slog.LevelInfo).Info(evil, evil, evil) },
			"bytes":      func(c *console) { _, _ = c.Write([]byte(evil)) },
			"bars":       func(c *console) { _, _ = c.err.Write([]byte(c.legible(evil))) },
			"painted":    func(c *console) { c.say("%s", c.paint(bold, evil)) },
			"print":      func(c *console) { c.print(evil) },
			"text":       func(c *console) { require.NoError(t, c.text(evil)) },
			"line":       func(c *console) { require.NoError(t, c.line([]byte(evil))) },
			"many lines": func(c *console) { c.note("%s", evil+"\n"+evil) },
		} {
			t.Run(where+", "+name, func(t *testing.T) {
				t.Parallel()
				var out bytes.Buffer
				c := &console{out: &out, err: &out, outTTY: true, errTTY: true, color: color}
				write(c)
				got := out.String()
				assert.Contains(t, got, "hidden")
				plain := ownStyles.ReplaceAllString(got, "")
				assert.Equal(t, printable(plain), plain)
				assert.False(t, !color && strings.Contains(got, "\x1b"))
				assert.Equal(t, where == "painted" && color, strings.HasPrefix(got, "\x1b[1ma"))
			})
		}
	}
}

// A program that reads stdout gets every byte.
func TestStdoutOfAPipeIsAsItIs(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := &console{out: &out, err: &out}
	require.NoError(t, c.text("a\x1b[2J"))
	require.NoError(t, c.line([]byte("b\u202e")))
	assert.Equal(t, "a\x1b[2Jb\u202e\n", out.String())
}
