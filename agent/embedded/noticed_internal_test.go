package embedded

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
)

// Commands that show a file, so that the model knows it (observed).
func TestFilesThatCommandsShow(t *testing.T) {
	t.Parallel()
	for command, shows := range map[string]bool{
		"cat F": true, "cat -n F": true, "cat ./F": true, "head -50 F": true, "head F": true, "cat F && echo x": true, "echo x; cat F": true, "sed -n 1,9p F": true,
		"nl F": true, "cat R/F": true, "cat 'F'": true, `cat "F"`: true, "cat F; true": true, "cat F\n": true,
		"cat F F": false, "head -2 F": false, "tail F": false, "cat F | head -1": false, "cat F | cat": false, "cat < F": false, "sed -n 1,2p F": false, "grep o F": false,
		"awk 1 F": false, "cat F > /dev/null": false, "cat F 2>/dev/null": false, "cd . && cat F": false, "cat -A F": false, "cat F || true": false, "cat $PWD/F": false,
		"if true; then cat F; fi": false, "cat F &": false, "! cat F": false, "cat *": false, "cat (": false,
	} {
		h := handsIn(t, "f.txt", "one\ntwo\nthree\n")
		h.sawBy(strings.NewReplacer("F", "f.txt", "R", h.root).Replace(command), h.root)
		read, same := h.knows(filepath.Join(h.root, "f.txt"), []byte("one\ntwo\nthree\n"))
		assert.Equal(t, shows, read && same, command)
	}
}

func TestCommandsThatChangeFiles(t *testing.T) {
	t.Parallel()
	h := handsIn(t, "a.txt", "1", "b.txt", "1", "c.txt", "1", "d.txt", "1", "e.txt", "1", "f.txt", "1", "g.txt", "1", "unread.txt", "1")
	began := time.Now()
	note := func(command string, names ...string) string {
		for _, n := range names {
			require.NoError(t, os.Chtimes(filepath.Join(h.root, n), began, began))
		}
		return h.noticed(command, began)
	}
	for _, n := range []string{"a.txt", "b.txt", "c.txt", "d.txt", "e.txt", "f.txt"} {
		assert.False(t, h.readFile(t.Context(), nil, agent.Object{"file_path": n}).IsError)
	}
	assert.Empty(t, note("sed -i s/1/2/ g.txt unread.txt", "unread.txt", "g.txt"))
	assert.Equal(t, "[This command modified 1 file you've previously read: a.txt. Call Read before editing.]", note("true; sed -n -i s/1/2/ a.txt", "a.txt"))
	assert.Empty(t, note("echo x > a.txt", "a.txt"), "only commands that change files in place")
	assert.Equal(t, "[This command modified 2 files you've previously read: a.txt, b.txt. Call Read before editing.]", note("sed -i s/1/2/ a.txt b.txt", "b.txt"))
	assert.Equal(t, "[This command modified 6 files you've previously read: a.txt, b.txt, c.txt, d.txt, e.txt and 1 more. Call Read before editing.]", note("sed -i s/1/2/ *", "c.txt", "d.txt", "e.txt", "f.txt"))
}

// Older models may not write what they have not read (observed).
func TestOlderModels(t *testing.T) {
	t.Parallel()
	for model, older := range map[string]bool{
		"claude-sonnet-4-5": true, "claude-opus-4-1-20250805": true, "claude-3-5-haiku-latest": true, "us.anthropic.claude-sonnet-4-20250514-v1:0": true, "claude-haiku-4-5": true,
		"claude-opus-5-5": false, "gpt-5": false, "qwen3:8b": false, "claude-sonnet-5": false,
	} {
		h := handsIn(t, "a.txt", "one\n")
		h.serve(model)
		edits := agent.Object{"file_path": "a.txt", "old_string": "one", "new_string": "1"}
		if !older {
			assert.Empty(t, edit().check(h, edits), model)
			assert.Empty(t, write().check(h, edits), model)
			continue
		}
		assert.Equal(t, unreadText, edit().check(h, edits), model)
		assert.Equal(t, unreadText, write().check(h, edits), model)
		assert.Empty(t, write().check(h, agent.Object{"file_path": "new.txt"}), model)
		assert.False(t, h.readFile(t.Context(), nil, agent.Object{"file_path": "a.txt", "limit": 1.0}).IsError)
		assert.Empty(t, edit().check(h, edits), "a part is enough")
	}
}
