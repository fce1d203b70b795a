package embedded

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
)

// Files after edits, as observed of Claude Code 2.1.329. want "" is an edit that is
// refused.
func TestEdits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, old, next, want string }{
		{"a.txt", "one\ntwo\nthree\n", "two", "", "one\nthree\n"},
		{"a.txt", "two two\n", "two", "x", ""},
		{"a.txt", "one\n", "one", "1  \n2\t\r\n3\u00a0", "1\n2\r\n3\n"},
		{"a.md", "one\n", "one", "1  ", "1  \n"},
		{"a.MDX", "one\n", "one", "1  ", "1  \n"},
		{"a.markdown", "one\n", "one", "1  ", "1\n"},
		{"a.txt", "café\n", `caf\u00e9`, `th\u00e9`, "thé\n"},
		{"a.txt", `caf\u00e9` + "\n", "café", "thé", `th\u00e9` + "\n"},
		{"a.txt", `caf\u00E9` + "\n", "café", "thé", `th\u00E9` + "\n"},
		{"a.txt", "x😀y\n", `\ud83d\ude00`, "z", "xzy\n"},
		{"a.txt", `x\ud83d\ude00y` + "\n", "😀", "z", "xzy\n"},
		{"a.txt", `caf\u00e9 ünï`, "café ünï", "x", ""},
		{"a.txt", "say “hi” it’s\n", `"hi" it's`, `"ho" it's`, "say “ho” it’s\n"},
		{"a.txt", "a\r\nb\r\n", "b", "c\r\nd", "a\r\nc\r\nd\r\n"},
		{"a.txt", "a\r\nb\r\n", "a\nb", "c", "c\r\n"},
		{"a.txt", " \n", "", "y", "y"},
		{"a.txt", "\xef\xbb\xbf \n", "", "y", "\xef\xbb\xbfy"},
		{"a.txt", "x\n", "", "y", ""},
		{"a.txt", "x\n", "x", "$& $1", "$& $1\n"},
		{"a.txt", "tab\there\n", `tab\there`, "x", ""},
		{"a.txt", "\xfe\xff\x00o", "o", "x", ""},
	} {
		h := handsIn(t, c.name, c.text)
		in := agent.Object{"file_path": " " + c.name, "old_string": c.old, "new_string": c.next}
		problem := edit().check(h, in)
		if c.want == "" {
			assert.NotEmpty(t, problem, "%q in %q", c.old, c.text)
			continue
		}
		require.Empty(t, problem, "%q in %q", c.old, c.text)
		assert.False(t, h.edit(nil, in).IsError)
		got, err := os.ReadFile(filepath.Join(h.root, c.name))
		require.NoError(t, err)
		assert.Equal(t, c.want, string(got), "%q in %q", c.old, c.text)
	}
}

func TestWhatIsNoFile(t *testing.T) {
	t.Parallel()
	h := handsIn(t, "a.txt", "x")
	for path, want := range map[string]string{"/dev/zero": "Cannot read '/dev/zero'", "/proc/self/mem": "Cannot read", "/dev/fd/0": "Cannot read", "/dev/null": "", "a.txt": ""} {
		got := read().check(h, agent.Object{"file_path": path})
		if want == "" {
			assert.Empty(t, got, path)
			continue
		}
		assert.Contains(t, got, want)
	}
	assert.Contains(t, h.readFile(t.Context(), nil, agent.Object{"file_path": "/dev/null"}).Content, "the contents are empty")
	assert.Equal(t, "/dev/null exists but is not a regular file (a device, FIFO or socket). Write only creates or overwrites regular files.", write().check(h, agent.Object{"file_path": "/dev/null"}))
	assert.Equal(t, "/dev/null exists but is not a regular file (a device, FIFO or socket). Edit only changes regular files.", edit().check(h, agent.Object{"file_path": "/dev/null", "old_string": "a", "new_string": "b"}))
	assert.Equal(t, "Error calling tool (Edit): ENOTDIR: not a directory, stat '"+h.root+"/a.txt/b'", edit().check(h, agent.Object{"file_path": "a.txt/b", "old_string": "a", "new_string": "b"}))
	assert.Equal(t, " is a directory, not a file. To create a file inside it, include the file name in file_path.", write().check(h, agent.Object{"file_path": ""}))
}

// The state that a command gives a file is known if the model has written the file, and not
// if it has read it (observed).
func TestCommandsOnFilesOfTheModel(t *testing.T) {
	t.Parallel()
	h := handsIn(t, "read.txt", "one\n", "edited.txt", "one\n", "empty.txt", "")
	at := func(name string) string { return filepath.Join(h.root, name) }
	h.readFile(t.Context(), nil, agent.Object{"file_path": "read.txt"})
	h.readFile(t.Context(), nil, agent.Object{"file_path": "edited.txt"})
	assert.False(t, h.edit(nil, agent.Object{"file_path": "edited.txt", "old_string": "one", "new_string": "1"}).IsError)
	assert.Contains(t, h.write(nil, agent.Object{"file_path": "empty.txt", "content": "x"}).Content, "File created successfully", "an empty file counts as none")
	began := time.Now()
	change := func(command string) {
		for _, name := range []string{"read.txt", "edited.txt", "empty.txt"} {
			require.NoError(t, os.WriteFile(at(name), []byte(command), 0o600))
			require.NoError(t, os.Chtimes(at(name), began, began))
		}
		h.refresh(command, began)
	}
	in := func(name string) agent.Object { return agent.Object{"file_path": name, "content": "mine"} }
	change("echo x > f")
	assert.Equal(t, staleText, write().check(h, in("read.txt")))
	assert.Empty(t, write().check(h, in("edited.txt")))
	assert.Empty(t, write().check(h, in("empty.txt")))
	change("sed -i s/a/b/ f")
	assert.Equal(t, staleText, write().check(h, in("edited.txt")))
}
