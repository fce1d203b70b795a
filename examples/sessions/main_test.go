package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRun(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out, ""))
	assert.Equal(t, `5e550000-0000-4000-8000-000000000001  "Another one"
-- damaged lines: 1; line 8 is torn
-- as the vendor's SDK shows it:
user: "Name the shop"
assistant: "Blue Door"
user: "A shorter one"
assistant: "Door"
-- as the agent would resume it:
user: "Name the shop"
assistant: "Blue Door"
user: "Another one"
assistant: "Corner Stone"
-- a newer branch ends with message 00000000-0000-4000-8000-000000000006: resume with ResumeSessionAt to continue there
`, out.String())
}
