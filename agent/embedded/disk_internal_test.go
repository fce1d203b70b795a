package embedded

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/model"
)

// A tool whose disk fails changes nothing, and leaves nothing behind.
func TestToolsOnADiskThatFails(t *testing.T) {
	t.Parallel()
	for _, op := range []string{diskRead, diskMake, diskWrite, diskRename} {
		root := t.TempDir()
		path := filepath.Join(root, "a.txt")
		require.NoError(t, os.WriteFile(path, []byte("one\n"), 0o600))
		var asked []string
		h := newHands(agent.Launch{Dir: root}, backend.Seams{Rand: kernel.NewRand(new(uint64(1))), Disk: func(o, name string) error {
			asked = append(asked, o)
			assert.True(t, strings.HasPrefix(name, path), name)
			if o == op {
				return syscall.ENOSPC
			}
			return nil
		}}, func(string) bool { return false })
		r := h.edit(agent.Object{"file_path": path, "old_string": "one", "new_string": "two"})
		assert.True(t, r.IsError, op)
		assert.Equal(t, op, asked[len(asked)-1])
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, "one\n", string(content), op)
		entries, err := os.ReadDir(root)
		require.NoError(t, err)
		assert.Len(t, entries, 1, op)
	}
}

// A line that was not written whole is lost, and no line behind it.
func TestALogThatWasCutOff(t *testing.T) {
	t.Parallel()
	dir, fails := t.TempDir(), false
	open := func() *log {
		return &log{codec: model.NewAnthropic(model.AnthropicConfig{}).Codec(), dir: dir, keep: true, disk: func(op, _ string) error {
			if fails && op == diskWrite {
				return syscall.EIO
			}
			return nil
		}}
	}
	line := func(id string) []byte {
		return []byte(`{"type":"user","uuid":"` + id + `","message":{"role":"user","content":"says ` + id + `"}}` + "\n")
	}
	l := open()
	require.NoError(t, l.Append("s.jsonl", line("a")))
	fails = true
	var failed *fs.PathError
	require.ErrorAs(t, l.Append("s.jsonl", line("b")), &failed)
	fails = false
	l = open()
	_, err := l.Load("s.jsonl")
	require.NoError(t, err)
	require.NoError(t, l.Append("s.jsonl", line("c")))
	require.NoError(t, l.Append("s.jsonl", line("d")))
	l = open()
	_, err = l.Load("s.jsonl")
	require.NoError(t, err)
	all := string(l.conversation()[0])
	for id, there := range map[string]bool{"a": true, "b": false, "c": true, "d": true} {
		assert.Equal(t, there, strings.Contains(all, "says "+id), id)
	}
}
