package view_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/protocol/view"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ tool, input, want string }{
		"edit": {
			"Edit", `{"file_path":"/w/a.go","old_string":"one\ntwo\nthree\n","new_string":"one\n2\nand\nthree\n"}`,
			"--- a/w/a.go\n+++ b/w/a.go\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+and\n three\n",
		},
		"several": {
			"MultiEdit", `{"file_path":"a","edits":[{"old_string":"x","new_string":"y"},{"old_string":"z","new_string":""}]}`,
			"--- a/a\n+++ b/a\n@@ -1,1 +1,1 @@\n-x\n+y\n@@ -1,1 +1,0 @@\n-z\n",
		},
		"write":       {"Write", `{"file_path":"a","content":"x\ny"}`, "--- /dev/null\n+++ b/a\n@@ -1,0 +1,2 @@\n+x\n+y\n"},
		"the same":    {"Edit", `{"file_path":"a","old_string":"x\nx","new_string":"x\nx"}`, "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n x\n x\n"},
		"repetition":  {"Edit", `{"file_path":"a","old_string":"x\nx","new_string":"x"}`, "--- a/a\n+++ b/a\n@@ -1,2 +1,1 @@\n x\n-x\n"},
		"another":     {"Bash", `{"file_path":"a","content":"x"}`, ""},
		"no path":     {"Edit", `{"old_string":"x"}`, ""},
		"no content":  {"Write", `{"file_path":"a"}`, ""},
		"not JSON":    {"Edit", `{`, ""},
		"not objects": {"Edit", `{"file_path":"a","old_string":7}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, view.Diff(c.tool, json.RawMessage(c.input)))
		})
	}
	input, _ := json.Marshal(map[string]string{"file_path": "a", "content": strings.Repeat("line\n", 100_000)})
	long := view.Diff("Write", input)
	assert.LessOrEqual(t, len(long), 64<<10+100)
	assert.Contains(t, long, "bytes of the diff are not shown\n")
}
