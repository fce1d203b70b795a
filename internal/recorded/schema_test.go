package recorded_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/schema"
)

// described says by which schema a file is checked, "" for one that none describes.
func described(path string) string {
	switch name := filepath.Base(path); {
	case strings.Contains(path, "/control/"):
		return "control"
	case name == "results.jsonl", name == "journal.jsonl", name == "summary.json", name == "events.jsonl":
		return strings.TrimSuffix(strings.TrimSuffix(name, ".jsonl"), ".json")
	case strings.HasPrefix(path, "examples/") && strings.HasPrefix(name, "tasks."):
		return "tasks"
	case strings.HasPrefix(path, "internal/command/testdata/options/") && filepath.Ext(name) == ".yaml", path == "sdk/testdata/config/all.yaml",
		strings.HasPrefix(path, "examples/") && filepath.Ext(name) == ".yaml":
		return "options"
	}
	return ""
}

// values are the JSON values in a file: each line of JSONL, each item of a list in YAML, or all.
func values(t *testing.T, path string) (all []any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	texts := [][]byte{raw}
	switch filepath.Ext(path) {
	case ".jsonl":
		texts = bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
	case ".yaml":
		texts[0], err = yaml.YAMLToJSON(raw)
		require.NoError(t, err, path)
	}
	for _, text := range texts {
		var v any
		require.NoError(t, json.Unmarshal(text, &v), "%s: %s", path, text)
		if list, ok := v.([]any); ok && filepath.Ext(path) == ".yaml" {
			all = append(all, list...)
			continue
		}
		all = append(all, v)
	}
	return all
}

func resolved(t *testing.T, text []byte) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	require.NoError(t, json.Unmarshal(text, &s))
	r, err := s.Resolve(nil)
	require.NoError(t, err)
	return r
}

// withoutRequired is a schema for what earlier releases have written: keys are added, and a missing one
// is the zero value.
func withoutRequired(t *testing.T, text []byte) []byte {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal(text, &v))
	var strip func(v any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if _, list := v["required"].([]any); list {
				delete(v, "required")
			}
			for _, of := range v {
				strip(of)
			}
		case []any:
			for _, of := range v {
				strip(of)
			}
		}
	}
	strip(v)
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return raw
}

// Every example's and every recorded file keeps to its schema, and files that people write in YAML
// name theirs for editors.
func TestFilesKeepToTheirSchemas(t *testing.T) {
	t.Parallel()
	schemas, earlier, count := map[string]*jsonschema.Resolved{}, map[string]*jsonschema.Resolved{}, map[string]int{}
	for _, name := range schema.Names() {
		schemas[name], earlier[name] = resolved(t, schema.JSON(name)), resolved(t, withoutRequired(t, schema.JSON(name)))
	}
	named := regexp.MustCompile(`(?m)^(?:# yaml-language-server: \$schema=|\$schema: )(\S+)$`)
	for _, top := range []string{"../../examples", "../../internal/command/testdata", "../../sdk/testdata", "testdata"} {
		require.NoError(t, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name := described(strings.TrimPrefix(filepath.ToSlash(path), "../../"))
			if name == "" {
				return nil
			}
			for _, v := range values(t, path) {
				count[name]++
				by := schemas[name]
				if top == "testdata" {
					by = earlier[name]
				}
				assert.NoError(t, by.Validate(v), "%s: %v", path, v)
			}
			if filepath.Ext(path) != ".yaml" {
				return nil
			}
			raw, err := os.ReadFile(path)
			require.NoError(t, err)
			if at := named.FindSubmatch(raw); assert.NotNil(t, at, "%s names no schema", path) {
				_, err := os.Stat(filepath.Join(filepath.Dir(path), string(at[1])))
				assert.NoError(t, err, "%s", path)
			}
			return nil
		}))
	}
	for _, name := range schema.Names() {
		assert.NotZero(t, count[name], "no file was checked by the schema %s", name)
	}
}
