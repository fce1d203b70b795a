package embedded

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
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
	for _, op := range []string{diskRead, diskMake, diskWrite, diskSync, diskRename} {
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
		r := h.edit(nil, agent.Object{"file_path": path, "old_string": "one", "new_string": "two"})
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

// A file that is used again while a sync that was under way when it was to be closed has not
// ended stays open: what is written to it then is synced, too.
func TestASyncThatOutlivesItsTurn(t *testing.T) {
	t.Parallel()
	began, end := make(chan struct{}, 1), make(chan struct{})
	name := filepath.Join(t.TempDir(), "s.jsonl")
	syncs := 0 // by one goroutine at a time
	f := &file{disk: func(op, path string) error {
		if op == diskSync && path == name {
			if syncs++; syncs == 1 {
				began <- struct{}{}
				<-end
			}
		}
		return nil
	}}
	require.NoError(t, f.append(name, []byte("a\n")))
	first := make(chan error, 1)
	go func() { first <- f.sync() }()
	<-began
	require.ErrorIs(t, f.sync(), errBusy)
	f.close(false)
	require.NoError(t, f.append(name, []byte("b\n")))
	close(end)
	require.NoError(t, <-first)
	require.NoError(t, f.sync())
	assert.Equal(t, 2, syncs)
	f.close(false)
	assert.Nil(t, f.out)
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, "a\nb\n", string(content))

	require.NoError(t, f.append(name, []byte("c\n"))) // a sync that outlives the session closes the file
	syncs, end = 0, make(chan struct{})
	go func() { first <- f.sync() }()
	<-began
	f.close(true)
	assert.NotNil(t, f.out)
	close(end)
	require.NoError(t, <-first)
	assert.Nil(t, f.out)
}

// A resumed conversation has the messages of the running one, wherever requests came between
// its lines.
func TestMessagesOfAResumedConversation(t *testing.T) {
	t.Parallel()
	const asks = "" // a request
	line := func(kind, model, content string) string {
		return `{"type":"` + kind + `","uuid":"u","message":{"id":"m","model":"` + model + `","content":` + content + `}}`
	}
	user := func(text string) string { return line("user", "", strconv.Quote(text)) }
	result := line("user", "", `[{"type":"tool_result","tool_use_id":"c","content":"x"}]`)
	call := line("assistant", "x", `[{"type":"tool_use","id":"c","name":"Read","input":{}}]`)
	failed := line("assistant", synthetic, `[{"type":"text","text":"API Error"}]`)
	for name, lines := range map[string][]string{
		"a request fails":                       {user("a"), asks, failed, user("b"), asks},
		"a request behind a result fails":       {user("a"), asks, call, result, asks, failed, user("b"), asks},
		"a request is interrupted":              {user("a"), asks, user("[Request interrupted by user]"), user("b"), asks},
		"a request behind a result, too":        {user("a"), asks, call, result, asks, user("[Request interrupted by user]"), user("b"), asks},
		"a call is interrupted":                 {user("a"), asks, call, result, user("[Request interrupted by user for tool use]"), user("b"), asks},
		"an empty answer":                       {user("a"), asks, user(emptyText), asks},
		"an empty answer behind a result":       {user("a"), asks, call, result, asks, user(emptyText), asks, user("b"), asks},
		"two prompts before a request":          {user("a"), user("b"), asks},
		"a message that joins the turn":         {user("a"), asks, call, result, user("b"), asks},
		"a line without content, then a prompt": {line("user", "", "[]"), user("b"), asks},
	} {
		running := &log{codec: model.NewAnthropic(model.AnthropicConfig{}).Codec()}
		loaded := &log{codec: running.codec}
		for _, l := range lines {
			if l == asks {
				running.conversation()
				continue
			}
			running.fold([]byte(l))
			loaded.fold([]byte(l))
		}
		assert.Equal(t, string(bytes.Join(running.conversation(), []byte("\n"))), string(bytes.Join(loaded.conversation(), []byte("\n"))), name)
	}
}
