package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded/demo"
)

func TestTheAnswer(t *testing.T) {
	t.Parallel()
	opts := demo.Options()
	opts.Env = map[string]string{"TMPDIR": t.TempDir(), "XDG_STATE_HOME": t.TempDir()}
	var out strings.Builder
	require.NoError(t, ask(t.Context(), opts, &out))
	assert.Contains(t, out.String(), "I am Troupe's demonstration")
	assert.Contains(t, out.String(), "The directory has 4 files: README.md, cases.txt, check.sh, words.sh.\n")
}
