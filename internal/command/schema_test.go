package command

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/schema"
)

func TestSchema(t *testing.T) {
	t.Parallel()
	w := newWorld()
	require.Equal(t, exitOK, w.run("schema"))
	names := strings.Fields(w.out.String())
	assert.Equal(t, schema.Names(), names)
	help := schemaPage()
	for _, name := range names {
		assert.Contains(t, help.String(), "\n  "+name+" ")
		w := newWorld()
		require.Equal(t, exitOK, w.run("schema", name))
		assert.Equal(t, string(schema.JSON(name)), w.out.String())
	}
	for args, want := range map[string]string{
		"schema resluts": "there is no schema resluts; did you mean results?",
		"schema x":       "there is no schema x; write one of " + strings.Join(names, ", "),
		"schema a b":     "troupe schema takes one name; write one of " + strings.Join(names, ", "),
	} {
		w := newWorld()
		assert.Equal(t, exitUsage, w.run(strings.Fields(args)...))
		assert.Equal(t, "troupe: "+want+"\n", w.err.String())
	}
	w = newWorld()
	completions, _ := completed(t, w, "schema", "r")
	assert.Equal(t, []string{"results"}, completions)
}
