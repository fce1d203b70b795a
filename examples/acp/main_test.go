package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain is the agent, too: the example starts its own program.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == asAgent {
		if err := serve(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestTheCallThatRemovesIsAsked(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	var out strings.Builder
	require.NoError(t, run(t.Context(), nil, &out))
	assert.Contains(t, out.String(), "I am Troupe's demonstration")
	assert.Equal(t, 1, strings.Count(out.String(), "-- the agent asks for"))
	assert.Contains(t, out.String(), `-- the agent asks for Bash: {"command":"rm -rf build"`)
	assert.Contains(t, out.String(), "- README.md has 7 lines.\n- To delete build did not work: ")
	assert.Contains(t, out.String(), "-- success, 1 call denied\n")
}
