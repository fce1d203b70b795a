//go:build linux

// Linux: the processes of commands are looked up in /proc.

package embedded

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
)

// behind is a call of a tool behind its gate, as prepare makes it. between happens after the
// gate has decided.
func behind(t *testing.T, h *hands, own *tool, p agent.Permissions, in agent.Object, between func()) (v agent.Verdict, r agent.ToolResult) {
	t.Helper()
	tk := &talk{hands: h, shared: new(shared)}
	tk.shared.made()
	u := &spot{}
	if own.check != nil {
		if text := own.check(h, in); text != "" {
			return agent.Verdict{}, failure("%s", text)
		}
		if own.writes {
			u.look(h, h.path(own.place(h, in)))
		}
	}
	if v = tk.judged(own, u)(p, in); !v.Allow {
		return v, agent.ToolResult{}
	}
	between()
	return v, own.run(context.WithValue(t.Context(), spotKey{}, u), h, in)
}

func inEdits() agent.Permissions { return agent.Permissions{Mode: "acceptEdits"} }

// A directory or file that is replaced by a link behind the gate is not followed.
func TestLinksBehindTheGate(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	for _, c := range []struct {
		name string
		own  *tool
		in   agent.Object
	}{
		{"read", read(), agent.Object{"file_path": "d/a.txt"}},
		{"write", write(), agent.Object{"file_path": "d/a.txt", "content": "new"}},
		{"write new", write(), agent.Object{"file_path": "d/n.txt", "content": "new"}},
		{"write deeper", write(), agent.Object{"file_path": "d/e/f/n.txt", "content": "new"}},
		{"edit", edit(), agent.Object{"file_path": "d/a.txt", "old_string": "secret", "new_string": "x"}},
		{"grep", grep(), agent.Object{"pattern": "secret", "path": "d", "output_mode": "content"}},
		{"grep a file", grep(), agent.Object{"pattern": "secret", "path": "d/a.txt", "output_mode": "content"}},
		{"glob", glob(), agent.Object{"pattern": "*", "path": "d"}},
	} {
		for _, target := range []string{outside, ".git"} {
			h := handsIn(t, "d/a.txt", "secret inside", ".git/a.txt", "secret of git")
			at := target
			if target == ".git" {
				at = filepath.Join(h.root, ".git")
			}
			require.NoError(t, os.WriteFile(filepath.Join(at, "a.txt"), []byte("secret outside"), 0o600))
			v, r := behind(t, h, c.own, inEdits(), c.in, func() {
				require.NoError(t, os.Rename(filepath.Join(h.root, "d"), filepath.Join(h.root, "moved")))
				require.NoError(t, os.Symlink(at, filepath.Join(h.root, "d")))
			})
			assert.True(t, v.Allow, c.name)
			assert.NotContains(t, fmt.Sprint(r.Content), "secret outside", c.name)
			content, err := os.ReadFile(filepath.Join(at, "a.txt"))
			require.NoError(t, err)
			assert.Equal(t, "secret outside", string(content), c.name)
			assert.NoFileExists(t, filepath.Join(at, "n.txt"), c.name)
			assert.NoDirExists(t, filepath.Join(at, "e"), c.name)
		}
	}
}

// A link that is put in place of the file itself is not followed.
func TestFilesThatBecomeLinks(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "o.txt")
	for _, c := range []struct {
		own *tool
		in  agent.Object
	}{
		{read(), agent.Object{"file_path": "a.txt"}},
		{write(), agent.Object{"file_path": "a.txt", "content": "new"}},
		{edit(), agent.Object{"file_path": "a.txt", "old_string": "secret", "new_string": "x"}},
		{grep(), agent.Object{"pattern": "secret", "path": "a.txt", "output_mode": "content"}},
	} {
		h := handsIn(t, "a.txt", "secret inside")
		require.NoError(t, os.WriteFile(outside, []byte("secret outside"), 0o600))
		_, r := behind(t, h, c.own, inEdits(), c.in, func() {
			require.NoError(t, os.Remove(filepath.Join(h.root, "a.txt")))
			require.NoError(t, os.Symlink(outside, filepath.Join(h.root, "a.txt")))
		})
		assert.NotContains(t, fmt.Sprint(r.Content), "secret outside", c.own.name)
		content, err := os.ReadFile(outside)
		require.NoError(t, err)
		assert.Equal(t, "secret outside", string(content), c.own.name)
	}
}

// A file that changes between check and run is not written, nor is one that comes or goes.
func TestFilesThatChangeBehindTheGate(t *testing.T) {
	t.Parallel()
	at := func(h *hands) string { return filepath.Join(h.root, "a.txt") }
	for name, c := range map[string]struct {
		files  []string
		change func(h *hands) error
		left   string // the content of the file in the end; "" without a file
	}{
		"changed": {[]string{"a.txt", "one two"}, func(h *hands) error { return os.WriteFile(at(h), []byte("ONE two"), 0o600) }, "ONE two"},
		"gone":    {[]string{"a.txt", "one two"}, func(h *hands) error { return os.Remove(at(h)) }, ""},
		"new":     {nil, func(h *hands) error { return os.WriteFile(at(h), []byte("theirs"), 0o600) }, "theirs"},
	} {
		for _, own := range []*tool{write(), edit()} {
			in := agent.Object{"file_path": "a.txt", "content": "mine", "old_string": "two", "new_string": "2"}
			if c.files == nil {
				in["old_string"] = ""
			}
			h := handsIn(t, c.files...)
			_, r := behind(t, h, own, inEdits(), in, func() { require.NoError(t, c.change(h)) })
			assert.True(t, r.IsError, "%s %s", own.name, name)
			content, err := os.ReadFile(at(h))
			if c.left == "" {
				require.ErrorIs(t, err, os.ErrNotExist, "%s %s", own.name, name)
				continue
			}
			assert.Equal(t, c.left, string(content), "%s %s", own.name, name)
			entries, err := os.ReadDir(h.root)
			require.NoError(t, err)
			assert.Len(t, entries, 1, "%s %s: nothing else is left", own.name, name)
		}
	}
	h := handsIn(t, "a.txt", "one two")
	_, r := behind(t, h, edit(), inEdits(), agent.Object{"file_path": "a.txt", "old_string": "two", "new_string": "2"}, func() {})
	assert.False(t, r.IsError, "%v", r.Content)
}

// A process that swaps a directory for a link all the time gets nothing in or out.
func TestAgainstAProcessThatSwapsLinks(t *testing.T) {
	t.Parallel()
	outside, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(outside, "a.txt"), []byte("secret outside"), 0o600))
	h := handsIn(t, "d/a.txt", "inside", "x/y", "")
	require.NoError(t, os.Symlink(outside, filepath.Join(h.root, "link")))
	swap := exec.CommandContext(t.Context(), "/bin/sh", "-c", "while :; do mv -T d real && mv -T link d && mv -T d link && mv -T real d; done 2>/dev/null")
	swap.Dir = h.root
	swap.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, swap.Start())
	defer func() {
		_ = syscall.Kill(-swap.Process.Pid, syscall.SIGKILL) // it runs without end
		_ = swap.Wait()
	}()
	p := inEdits()
	for i := range 10 {
		for _, c := range []struct {
			own *tool
			in  agent.Object
		}{
			{read(), agent.Object{"file_path": "d/a.txt"}},
			{grep(), agent.Object{"pattern": ".", "path": "d", "output_mode": "content"}},
			{grep(), agent.Object{"pattern": "outside", "output_mode": "content"}},
			{write(), agent.Object{"file_path": "d/n.txt", "content": fmt.Sprint(i)}},
			{write(), agent.Object{"file_path": fmt.Sprintf("d/e%d/n.txt", i), "content": ""}},
			{edit(), agent.Object{"file_path": "d/a.txt", "old_string": "i", "new_string": "i", "replace_all": true}},
			{write(), agent.Object{"file_path": "d/a.txt", "content": "inside"}},
		} {
			_, r := behind(t, h, c.own, p, c.in, func() {})
			assert.NotContains(t, fmt.Sprint(r.Content), "secret outside", c.own.name)
		}
	}
	entries, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing was written outside")
	content, err := os.ReadFile(filepath.Join(outside, "a.txt"))
	require.NoError(t, err)
	assert.Equal(t, "secret outside", string(content))
}
