package command

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestACPMistakes(t *testing.T) {
	t.Parallel()
	for args, says := range map[string]string{
		"acp hello":                "troupe acp takes no prompt",
		"acp --yes":                "there is no flag --yes",
		"acp --cwd /":              "there is no flag --cwd",
		"acp --agent nobody":       `"nobody" is not known`,
		"acp --agent scripted:no!": "no!",
	} {
		w := newWorld()
		assert.Equal(t, exitUsage, w.run(strings.Fields(args)...), args)
		assert.Contains(t, w.err.String(), says, args)
		assert.Empty(t, w.out.String(), "stdout is the protocol's")
	}
	w := newWorld()
	assert.Equal(t, exitOK, w.run("acp", "--help"))
	assert.Contains(t, w.out.String(), "Usage: troupe acp")
}
