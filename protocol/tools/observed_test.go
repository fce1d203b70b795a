package tools

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestObservedOutputs decodes calls that Claude Code 2.1.329 made for a
// scripted model, with what each of its tools gave back.
func TestObservedOutputs(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/claude-2.1.329.ndjson")
	require.NoError(t, err)
	typed := map[string]bool{}
	for line := range bytes.Lines(b) {
		var call struct {
			Tool          string
			Input, Output json.RawMessage
		}
		require.NoError(t, json.Unmarshal(line, &call))
		checkInput(t, call.Tool, call.Tool, call.Input)
		if checkOutput(t, call.Tool, call.Tool, call.Output) {
			typed[call.Tool] = true
		}
	}
	for _, tool := range []string{
		"AskUserQuestion", "Bash", "CronCreate", "CronList", "Edit", "EnterPlanMode", "EnterWorktree", "ExitPlanMode", "ExitWorktree", "Glob", "Grep", "ListAgents", "Monitor",
		"NotebookEdit", "Read", "ReportFindings", "ScheduleWakeup", "SendMessage", "Skill", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "ToolSearch", "WebSearch", "Workflow", "Write",
	} {
		assert.True(t, typed[tool], "no output of %s", tool)
	}
}

// schema is the part of a JSON schema that the test reads: the names of its properties.
type schema struct {
	Properties map[string]schema
	Items      *schema
}

// TestDeclaredInputs holds the inputs to the schemas that Claude Code 2.1.329
// declares to the model, property by property.
func TestDeclaredInputs(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/declared-claude-2.1.329.ndjson")
	require.NoError(t, err)
	n := 0
	for line := range bytes.Lines(b) {
		var d struct {
			Tool   string
			Schema schema
		}
		require.NoError(t, json.Unmarshal(line, &d))
		in, err := DecodeInput(d.Tool, nil)
		require.NoError(t, err)
		require.IsNotType(t, &UnknownInput{}, in, d.Tool)
		checkSchema(t, d.Tool, d.Schema, reflect.TypeOf(in))
		n++
	}
	assert.Greater(t, n, 30)
}

func checkSchema(t *testing.T, at string, s schema, typ reflect.Type) {
	t.Helper()
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if s.Items != nil {
		if assert.Equal(t, reflect.Slice, typ.Kind(), at) {
			checkSchema(t, at+"[]", *s.Items, typ.Elem())
		}
		return
	}
	if len(s.Properties) == 0 || !assert.Equal(t, reflect.Struct, typ.Kind(), at) {
		return
	}
	fields := map[string]reflect.Type{}
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		fields[name] = typ.Field(i).Type
	}
	for name, p := range s.Properties {
		if assert.Contains(t, fields, name, "no field for %s.%s", at, name) {
			checkSchema(t, at+"."+name, p, fields[name])
		}
	}
}
