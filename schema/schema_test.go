package schema_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/schema"
)

// Each schema is valid, and is described in the comment of Names.
func TestSchemas(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	described := 0
	for line := range strings.Lines(string(source)) {
		if name, is := strings.CutPrefix(line, "//\t"); is {
			described++
			assert.NotNil(t, schema.JSON(strings.Fields(name)[0]), line)
		}
	}
	assert.Len(t, schema.Names(), described)
	for _, name := range schema.Names() {
		var s jsonschema.Schema
		require.NoError(t, json.Unmarshal(schema.JSON(name), &s), name)
		_, err := s.Resolve(nil)
		require.NoError(t, err, name)
		assert.Equal(t, "https://json-schema.org/draft/2020-12/schema", s.Schema, name)
		assert.NotEmpty(t, s.Title, name)
	}
	assert.Nil(t, schema.JSON("none"))
	assert.Nil(t, schema.JSON("../schema/tasks"))
}
