package fleet_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
)

var update = flag.Bool("update", false, "write the schemas of this package's types anew")

// constants are the values of a type in a file of this package.
func constants(t *testing.T, file, name string) (all []any) {
	t.Helper()
	source, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	ast.Inspect(source, func(n ast.Node) bool {
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

// typeSchemas are the schemas of types that are written as texts. more are further values of each enumeration.
func typeSchemas(t *testing.T, more ...any) map[reflect.Type]*jsonschema.Schema {
	t.Helper()
	enum := func(file, name string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "string", Enum: append(constants(t, file, name), more...)}
	}
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[fleet.Status]():        enum("result.go", "Status"),
		reflect.TypeFor[fleet.Family]():        enum("result.go", "Family"),
		reflect.TypeFor[fleet.Mode]():          enum("result.go", "Mode"),
		reflect.TypeFor[fleet.OnAcceptState](): enum("result.go", "OnAcceptState"),
		reflect.TypeFor[fleet.TaskState]():     enum("snapshot.go", "TaskState"),
		reflect.TypeFor[fleet.EventKind]():     enum("event.go", "EventKind"),
		reflect.TypeFor[fleet.Duration]():      {Type: "string", Description: "such as 1m30s"},
		reflect.TypeFor[time.Time]():           {Type: "string", Format: "date-time"},
		reflect.TypeFor[json.RawMessage]():     {},
	}
}

// open lets objects have more keys: later releases add some.
func open(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if more := s.AdditionalProperties; more != nil && more.Not != nil {
		s.AdditionalProperties = nil
	}
	for _, of := range append([]*jsonschema.Schema{s.Items, s.AdditionalProperties}, s.AnyOf...) {
		open(of)
	}
	for _, of := range s.Properties {
		open(of)
	}
}

// generated are the schemas of what a job writes, without further keys.
func generated(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	of := func(typ reflect.Type, more ...any) *jsonschema.Schema {
		s, err := jsonschema.ForType(typ, &jsonschema.ForOptions{TypeSchemas: typeSchemas(t, more...)})
		require.NoError(t, err, typ)
		return s
	}
	all := map[string]*jsonschema.Schema{
		"results": of(reflect.TypeFor[fleet.TaskResult]()), "summary": of(reflect.TypeFor[fleet.Summary]()), "events": of(reflect.TypeFor[fleet.Event]()),
		"control": {AnyOf: []*jsonschema.Schema{of(reflect.TypeFor[fleet.Snapshot]()), {Type: "array", Items: of(reflect.TypeFor[fleet.Approval]())}}},
		"journal": {},
	}
	kinds := fleet.JournalKinds()
	for _, name := range []string{"approvals.go", "on_accept.go", "resume.go"} {
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, found := range regexp.MustCompile(`(?m)^\tkind[A-Z]\w* += "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
			require.Contains(t, kinds, found[1], "JournalKinds has each kind of record")
		}
	}
	kinds["header"] = reflect.TypeFor[journal.Header]()
	zero := 0.0
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		all["journal"].AnyOf = append(all["journal"].AnyOf, &jsonschema.Schema{
			Type: "object", Required: []string{"seq", "synced", "at", "kind", "data", "crc"}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
			PropertyOrder: []string{"seq", "synced", "at", "kind", "task", "attempt", "data", "crc"},
			Properties: map[string]*jsonschema.Schema{
				"seq": {Type: "integer", Minimum: &zero}, "synced": {Type: "integer"}, "at": {Type: "string", Format: "date-time"}, "kind": {Const: jsonschema.Ptr[any](kind)},
				"task": {Type: "string"}, "attempt": {Type: "integer"}, "data": of(kinds[kind], ""), "crc": {Type: "string", Pattern: "^[0-9a-f]{8}$"},
			},
		})
	}
	titles := map[string]string{
		"results": "a line of results.jsonl", "summary": "summary.json of a job", "events": "a line of troupe batch --events",
		"control": "an answer of a job's control server", "journal": "a line of journal.jsonl, format 1",
	}
	for name, s := range all {
		s.Schema, s.Title = "https://json-schema.org/draft/2020-12/schema", titles[name]
	}
	return all
}

// The schemas are those of the types, and what real jobs write keeps to them.
func TestSchemas(t *testing.T) {
	t.Parallel()
	for name, s := range generated(t) {
		open(s)
		want, err := json.MarshalIndent(s, "", "  ")
		require.NoError(t, err)
		same(t, "../schema/"+name+".schema.json", append(want, '\n'))
	}
	strict := map[string]*jsonschema.Resolved{}
	for name, s := range generated(t) {
		resolved, err := s.Resolve(nil)
		require.NoError(t, err)
		strict[name] = resolved
	}
	valid := func(name string, raw []byte) (v map[string]any) {
		require.NoError(t, json.Unmarshal(raw, &v))
		require.NoError(t, strict[name].Validate(v), "%s: %s", name, raw)
		return v
	}

	out, text := t.TempDir(), "no"
	var events []byte
	job := fleet.Job{
		Tasks: tasks(3), Out: out, Attempts: 2, Verify: &fleet.Verify{Command: "test $TROUPE_TASK != t1"},
		Options: backend(when("do 2", &scripted.Result{Text: &text, IsError: new(true), APIErrorStatus: 529, Cost: 0.5}), when("do", scripted.Text("done"))),
		OnEvent: func(e fleet.Event) {
			line, err := json.Marshal(e)
			assert.NoError(t, err)
			events = append(append(events, line...), '\n')
		},
	}
	_, err := collect(t, job)
	require.NoError(t, err)
	seen := map[any]bool{}
	for _, line := range lines(read(t, out, "results.jsonl")) {
		v := valid("results", []byte(line))
		seen[v["status"]] = true
		v["status"] = "new"
		require.Error(t, strict["results"].Validate(v))
	}
	require.Greater(t, len(seen), 1, "%v", seen)
	valid("summary", []byte(read(t, out, "summary.json")))
	for _, line := range lines(string(events)) {
		valid("events", []byte(line))
	}
	for _, line := range lines(read(t, out, journal.Name)) {
		v := valid("journal", []byte(line))
		v["data"] = map[string]any{"no": "such key"}
		require.Error(t, strict["journal"].Validate(v))
	}
	snapshot, err := fleet.ReadJob(out)
	require.NoError(t, err)
	raw, err := json.Marshal(snapshot)
	require.NoError(t, err)
	valid("control", raw)
}

// same compares a file with what it has to be, or writes it.
func same(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, want, 0o600))
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "%s: run go test ./fleet -run Schema -update", file)
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
	same(t, "../schema/tasks.schema.json", append(want, '\n'))
}
