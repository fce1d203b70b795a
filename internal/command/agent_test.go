package command

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/session"
)

// A program that adds an agent gives it a name; the command does the rest.
func TestAddedAgents(t *testing.T) {
	t.Parallel()
	mine := Agent{Name: "mine", Backend: func(argument string) (session.Backend, error) {
		if argument == "" {
			return nil, errors.New("needs a region")
		}
		return scripted.New(scripted.WithTurns(scripted.Turn{Steps: scripted.Steps{scripted.Text("from " + argument)}})), nil
	}}
	for args, want := range map[string]struct {
		code      int
		out, says string
	}{
		"run --agent mine:west hi":        {exitOK, "from west\n", ""},
		"run --agent mine hi":             {exitUsage, "", "troupe: --agent mine: needs a region\n"},
		"run --agent mine:x --path /x hi": {exitUsage, "", "troupe: --path is not for the agent mine; leave it out\n"},
		"run --agent other hi":            {exitUsage, "", `troupe: --agent: "other" is not known; use mine, claude, qoder, embedded, demo, scripted[:FILE] or acp:COMMAND` + "\n"},
	} {
		w := newWorld()
		w.agents = []Agent{mine}
		assert.Equal(t, want.code, w.run(strings.Fields(args)...), "%s: %s", args, w.err)
		assert.Equal(t, want.out, w.out.String(), args)
		assert.Contains(t, w.err.String(), want.says, args)
	}
}
