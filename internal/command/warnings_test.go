package command

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/fleet"
)

// Warnings of options, of the log and of a batch look the same. With --verbose they are
// lines of a log.
func TestWarningsLookAlike(t *testing.T) {
	t.Parallel()
	agent := script(t, `turns: [{steps: [{text: hi}]}]`)
	w := newWorld()
	assert.Equal(t, exitOK, w.run("run", "-q", "-a", agent, "--max-turns", "0", "go"), w.err)
	assert.Regexp(t, "^troupe: warning: option --max-turns", w.err.String())
	assert.NotContains(t, w.err.String(), "WRN")

	w = newWorld()
	assert.Equal(t, exitOK, w.run("run", "-q", "-v", "-a", agent, "--max-turns", "0", "go"), w.err)
	assert.Contains(t, w.err.String(), "WRN option --max-turns")

	w = newWorld()
	assert.Equal(t, exitOK, w.run("run", "-q", "--log-level", "error", "-a", agent, "--max-turns", "0", "go"), w.err)
	assert.Empty(t, w.err.String())

	var out strings.Builder
	p := &progress{c: &console{err: &out}}
	p.event(fleet.Event{Kind: fleet.EventWarning, Task: "one", Detail: "odd\x1b[2J"})
	p.event(fleet.Event{Kind: fleet.EventWarning, Detail: "no task has it"})
	assert.Equal(t, "troupe: warning: one: odd\\x1b[2J\ntroupe: warning: no task has it\n", out.String())

	out.Reset()
	log := (&console{err: &out}).logger(slog.LevelWarn).With("session", "s1").WithGroup("g")
	log.Error("it failed", "err", errors.New("bad\nworse"))
	log.Info("nothing to see")
	assert.Equal(t, "troupe: error: it failed, session: s1, err: bad\n        worse\n", out.String())
}
