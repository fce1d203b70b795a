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

// A line that was not written whole is lost with the program, and no line behind it. In the
// same life the rest of it is written with the next one. No line follows one that is lost.
func TestALogThatWasCutOff(t *testing.T) {
	t.Parallel()
	dir, fails := t.TempDir(), ""
	open := func() *log {
		l := &log{codec: model.NewAnthropic(model.AnthropicConfig{}).Codec(), dir: dir, keep: true}
		l.file.disk = func(op, _ string) error {
			if op == fails {
				return syscall.EIO
			}
			return nil
		}
		return l
	}
	line := func(id, parent string) []byte {
		return []byte(`{"type":"user","uuid":"` + id + `","parentUuid":"` + parent + `","message":{"role":"user","content":"says ` + id + `"}}` + "\n")
	}
	said := func(there string) {
		t.Helper()
		l := open()
		_, err := l.Load("s.jsonl")
		require.NoError(t, err)
		all := string(l.conversation()[0])
		for _, id := range "abcdefg" {
			assert.Equal(t, strings.ContainsRune(there, id), strings.Contains(all, "says "+string(id)), "%c", id)
		}
	}
	l := open()
	require.NoError(t, l.Append("s.jsonl", line("a", "")))
	fails = diskWrite
	var failed *fs.PathError
	require.ErrorAs(t, l.Append("s.jsonl", line("b", "a")), &failed)
	fails = ""
	said("a")
	fails = diskWrite
	require.ErrorAs(t, l.Append("s.jsonl", line("c", "b")), &failed)
	fails = ""
	require.NoError(t, l.Append("s.jsonl", line("d", "c")))
	said("abcd")
	require.NoError(t, l.Sync())
	l.Rest()

	fails = diskWrite
	require.ErrorAs(t, l.Append("s.jsonl", line("e", "d")), &failed)
	fails = ""
	l = open() // after a crash
	_, err := l.Load("s.jsonl")
	require.NoError(t, err)
	require.NoError(t, l.Append("s.jsonl", line("f", "d")))
	require.NoError(t, l.Append("s.jsonl", line("g", "f")))
	said("abcdfg")

	fails = diskSync
	require.ErrorAs(t, l.Sync(), &failed)
	fails = ""
	require.ErrorAs(t, l.Append("s.jsonl", line("h", "g")), &failed, "nobody knows what the disk has")
}
