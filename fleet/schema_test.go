package fleet_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
)

var update = flag.Bool("update", false, "write results.schema.json anew")

const schemaFile = "results.schema.json"

// constants are the values of a type in result.go.
func constants(t *testing.T, name string) (all []any) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "result.go", nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if of, ok := spec.Type.(*ast.Ident); ok && of.Name == name {
			for _, v := range spec.Values {
				text, err := strconv.Unquote(v.(*ast.BasicLit).Value)
				require.NoError(t, err)
				all = append(all, text)
			}
		}
		return true
	})
	require.NotEmpty(t, all)
	return all
}

// results.schema.json is that of the type, and real results keep to it.
func TestSchemaOfResults(t *testing.T) {
	t.Parallel()
	enum := func(name string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "string", Enum: constants(t, name)}
	}
	s, err := jsonschema.For[fleet.TaskResult](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[fleet.Status](): enum("Status"),
		reflect.TypeFor[fleet.Family](): enum("Family"),
		reflect.TypeFor[fleet.Mode]():   enum("Mode"),

		reflect.TypeFor[fleet.OnAcceptState](): enum("OnAcceptState"),
		reflect.TypeFor[fleet.Duration]():      {Type: "string", Description: "such as 1m30s"},
		reflect.TypeFor[time.Time]():           {Type: "string", Format: "date-time"},
		reflect.TypeFor[json.RawMessage]():     {},
	}})
	require.NoError(t, err)
	s.Schema, s.Title = "https://json-schema.org/draft/2020-12/schema", "a line of results.jsonl"
	want, err := json.MarshalIndent(s, "", "  ")
	require.NoError(t, err)
	want = append(want, '\n')
	if *update {
		require.NoError(t, os.WriteFile(schemaFile, want, 0o600))
	}
	got, err := os.ReadFile(schemaFile)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "run go test ./fleet -run Schema -update")

	out, text := t.TempDir(), "no"
	_, err = collect(t, fleet.Job{
		Tasks: tasks(3), Out: out, Attempts: 2, Verify: &fleet.Verify{Command: "test $TROUPE_TASK != t1"},
		Options: backend(when("do 2", &scripted.Result{Text: &text, IsError: new(true), APIErrorStatus: 529, Cost: 0.5}), when("do", scripted.Text("done"))),
	})
	require.NoError(t, err)
	resolved, err := s.Resolve(nil)
	require.NoError(t, err)
	seen := map[any]bool{}
	for _, line := range lines(read(t, out, "results.jsonl")) {
		var v map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &v))
		require.NoError(t, resolved.Validate(v), line)
		seen[v["status"]] = true
		v["status"] = "new"
		require.Error(t, resolved.Validate(v))
	}
	require.Greater(t, len(seen), 1, "%v", seen)
}

// schema/tasks.schema.json is that of a task in a file.
func TestSchemaOfTasks(t *testing.T) {
	t.Parallel()
	duration := &jsonschema.Schema{Type: "string", Title: "a duration such as 90s", Pattern: `^([0-9]+([.][0-9]*)?(ns|us|µs|ms|s|m|h))+$`, Examples: []any{"90s"}}
	s, err := jsonschema.For[fleet.Task](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[fleet.Duration]():      duration,
		reflect.TypeFor[fleet.WorkspaceKind](): {Type: "string", Enum: []any{"", "copy", "worktree"}},
		reflect.TypeFor[time.Time]():           {Type: "string", Title: "a time such as 2026-12-01T08:00:00Z", Pattern: `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}`, Examples: []any{"2026-12-01T08:00:00Z"}},
		reflect.TypeFor[json.RawMessage]():     {Type: "object"},
	}})
	require.NoError(t, err)
	s.Schema, s.Title = "https://json-schema.org/draft/2020-12/schema", "a task of troupe batch"
	s.Required = nil // the id has a default
	for key, example := range map[string]any{
		"workspace": map[string]any{"kind": "worktree"}, "budget": map[string]any{"usd": 5}, "verify": map[string]any{"command": "go test ./..."},
		"tags": []any{"a", "b"}, "after": []any{"a"}, "turns": []any{"then commit"}, "labels": map[string]any{"model": "opus"}, "options": map[string]any{"model": "opus"},
	} {
		require.Contains(t, s.Properties, key)
		s.Properties[key].Examples = []any{example}
	}
	want, err := json.MarshalIndent(s, "", "  ")
	require.NoError(t, err)
	want = append(want, '\n')
	const file = "../schema/tasks.schema.json"
	if *update {
		require.NoError(t, os.WriteFile(file, want, 0o600))
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "run go test ./fleet -run Schema -update")
}
