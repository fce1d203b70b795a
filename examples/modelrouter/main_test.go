package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func Example() {
	if err := run(context.Background(), "scripted", "Compare.", "", os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// main -> performance
	// web_fetch -> lite
	// compact -> auto
	// subagent -> auto
	// of_a_later_release -> auto
	// Theirs is longer.
}

func TestTheKeyIsNotShown(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), "scripted", "Compare.", "s3cret", &out))
	assert.Contains(t, out.String(), "subagent -> the user's own")
	assert.NotContains(t, out.String(), "s3cret")
}
