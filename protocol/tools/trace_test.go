package tools

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
)

const recordings = "../testdata/traces"

// untyped are the members that a recorded input has and its tool does not: the model,
// or the author of the recording, invented them.
var untyped = map[string]bool{
	"Bash.cmd": true, // a call made wrong on purpose
	"Bash.a":   true, // permission requests of a made-up agent
}

// TestEveryRecordedCallDecodes decodes every tool_use, every input that a
// callback was shown, and every tool_use_result of the recordings, and fails
// for a field that no type has and for a value that does not survive.
func TestEveryRecordedCallDecodes(t *testing.T) {
	t.Parallel()
	inputs, outputs := map[string]int{}, map[string]int{}
	err := filepath.WalkDir(recordings, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".ndjson" {
			return err
		}
		calls := map[string]string{} // tool use id → name
		for _, line := range recordedLines(t, path) {
			checkLine(t, path, line, calls, inputs, outputs)
		}
		return nil
	})
	require.NoError(t, err)
	for _, tool := range []string{"Agent", "Bash", "Read", "Write", "Edit", "Glob", "Grep", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "StructuredOutput", "mcp__srv__echo", "NoSuchTool"} {
		assert.Positive(t, inputs[tool], "no input of %s was recorded", tool)
	}
	for _, tool := range []string{"Agent", "Bash", "Read", "Write", "Edit", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "mcp__srv__echo"} {
		assert.Positive(t, outputs[tool], "no output of %s was recorded", tool)
	}
}

func checkLine(t *testing.T, path string, line json.RawMessage, calls map[string]string, inputs, outputs map[string]int) {
	t.Helper()
	f, err := protocol.ParseFrame(line)
	if err != nil {
		return
	}
	switch f.Type {
	case protocol.TypeControlRequest:
		if r, err := protocol.DecodeAgentRequest(f); err == nil {
			if ask, ok := r.(*protocol.CanUseToolRequest); ok {
				checkInput(t, path, ask.ToolName, ask.Input)
			}
		}
	case "assistant":
		for _, u := range protocol.ToolUses(protocol.DecodeMessage(f)) {
			calls[u.ID] = u.Name
			inputs[u.Name]++
			checkInput(t, path, u.Name, u.Input)
		}
	case "user":
		m, ok := protocol.DecodeMessage(f).(*protocol.UserMessage)
		results := protocol.ToolResults(m)
		if ok && len(results) == 1 && calls[results[0].ToolUseID] != "" {
			if name := calls[results[0].ToolUseID]; checkOutput(t, path, name, m.ToolUseResult) {
				outputs[name]++
			}
		}
	}
}

func checkInput(t *testing.T, path, name string, raw json.RawMessage) {
	t.Helper()
	in, err := DecodeInput(name, raw)
	require.NoError(t, err, "%s: %s", path, raw)
	assert.Equal(t, Canonical(name), in.Tool())
	if extra := in.extra(); extra != nil {
		for key := range *extra {
			assert.True(t, untyped[in.Tool()+"."+key], "%s: no field for %q of %s in %s", path, key, name, raw)
		}
	}
	again, err := EncodeInput(in)
	require.NoError(t, err)
	kept(t, path, raw, again)
}

// checkOutput reports whether there was an object.
func checkOutput(t *testing.T, path, name string, raw json.RawMessage) bool {
	t.Helper()
	out, err := DecodeOutput(name, raw)
	require.NoError(t, err, "%s: %s", path, raw)
	switch out.(type) {
	case nil, *Text:
		return false
	case *UnknownOutput:
		assert.Equal(t, "NoSuchTool", name)
		return false
	}
	again, err := protocol.Marshal(out)
	require.NoError(t, err)
	kept(t, path, raw, again)
	tags := map[string]bool{}
	collectTags(reflect.TypeOf(out), tags)
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) == nil {
		for key := range members {
			assert.True(t, tags[key], "%s: no field for %q of %s", path, key, name)
		}
	}
	return true
}

// collectTags finds the JSON keys of a struct, those of the structs that it
// embeds included.
func collectTags(typ reflect.Type, tags map[string]bool) {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct {
		return
	}
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			collectTags(f.Type, tags)
		}
		tags[name] = true
	}
}

// kept fails for what before has and after has not, save for zero values.
func kept(t *testing.T, path string, before, after []byte) {
	t.Helper()
	assert.Equal(t, withoutZeros(generic(t, before)), withoutZeros(generic(t, after)), path)
}

func withoutZeros(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if e = withoutZeros(e); e == nil {
				delete(v, k)
			} else {
				v[k] = e
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = withoutZeros(v[i])
		}
		if len(v) == 0 {
			return nil
		}
	case json.Number:
		if v == "0" {
			return nil
		}
	case string:
		if v == "" {
			return nil
		}
	case bool:
		if !v {
			return nil
		}
	}
	return v
}

func generic(t testing.TB, b []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v), "%s", b)
	return v
}

// cutMark stands in a recorded list for the elements that were left out.
var cutMark = regexp.MustCompile(`^(…\+\d+ more|<\d+ more>)$`)

func uncut(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = uncut(e)
		}
	case []any:
		out := make([]any, 0, len(v))
		for _, e := range v {
			if s, ok := e.(string); ok && cutMark.MatchString(s) {
				continue
			}
			out = append(out, uncut(e))
		}
		return out
	}
	return v
}

// recordedLines are the lines of the wire in a recording.
func recordedLines(t testing.TB, path string) []json.RawMessage {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	var out []json.RawMessage
	for l := range bytes.Lines(b) {
		var e struct{ Msg json.RawMessage }
		if json.Unmarshal(l, &e) != nil || len(e.Msg) == 0 || e.Msg[0] != '{' {
			continue
		}
		line, err := json.Marshal(uncut(generic(t, e.Msg)))
		require.NoError(t, err)
		out = append(out, line)
	}
	return out
}
