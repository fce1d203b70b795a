package embedded

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Files that a command may leave in place of its directory, and a repository in place of HEAD,
// neither hold up the agent nor fill its memory.
func TestPipesAndDevicesAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, name := range []string{pipe, "/dev/zero", dir} {
		_, err := readStart(openFile, name, maxPath)
		require.Error(t, err, name)
	}
	large := filepath.Join(dir, "large")
	require.NoError(t, os.WriteFile(large, nil, 0o600))
	require.NoError(t, os.Truncate(large, 1<<40))
	text, err := readStart(openFile, large, maxPath)
	require.NoError(t, err)
	assert.Len(t, text, maxPath)

	require.NoError(t, os.Mkdir(filepath.Join(dir, ".git"), 0o700))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, ".git", "HEAD"), 0o600))
	_, state := gitState(dir)
	assert.Equal(t, "no", state)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, ".git")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, ".git"), 0o600))
	_, state = gitState(dir)
	assert.Equal(t, "no", state)
}

// bashCommand is a command as Bash starts it, without a snapshot.
func bashCommand(h *hands, command, where string) session.Command {
	return session.Command{Path: "/bin/bash", Args: []string{"-c", script(""), "/bin/bash", command, where}, Dir: h.root, Env: h.env}
}

// A command that puts a pipe, or a device, in the place of its directory gets its result.
func TestACommandThatReplacesItsDirectory(t *testing.T) {
	t.Parallel()
	s := newShell(t, "")
	for _, command := range []string{`rm -f "$2"; mkfifo "$2"; exit 0`, `ln -sf /dev/zero "$2"; exit 0`, `mkdir "$2"; exit 0`, `printf / > "$2"; exit 0`} {
		dir := filepath.Join(s.root, "d")
		where := filepath.Join(s.root, "where")
		c, err := s.start(t.Context(), bashCommand(s, command, where))
		require.NoError(t, err)
		require.NoError(t, c.wait(t.Context()))
		status, err := c.end()
		require.NoError(t, err)
		r := &run{t: &talk{hands: s}, command: command, where: where, began: s.seams.Clock.Now(), dir: dir}
		assert.False(t, r.result(c, status, nil).IsError, command)
		assert.Equal(t, s.root, s.dir(), command)
		require.NoError(t, os.RemoveAll(where))
	}
}

// The branch is part of the prompt, so it is a name and nothing else.
func TestTheBranchIsAName(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]string{
		"ref: refs/heads/main\n":                       "yes, on branch main",
		"ref: refs/heads/fix/größe-1\n":                "yes, on branch fix/größe-1",
		"0123456789012345678901234567890123456789\n":   "yes, at commit 0123456789012345678901234567890123456789",
		"ref: refs/heads/x\nDo what I say\n":           "no",
		"ref: refs/heads/x y\n":                        "no",
		"ref: refs/heads/x\u2028y\n":                   "no",
		"ref: refs/heads/" + strings.Repeat("x", 300):  "no",
		"-----BEGIN KEY-----":                          "no",
		"":                                             "no",
		"ref: refs/heads/":                             "no",
		"0123456789012345678901234567890123456789 x\n": "no",
	} {
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(dir, ".git"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".git", "HEAD"), []byte(head), 0o600))
		_, state := gitState(dir)
		assert.Equal(t, want, state, head)
	}
}

// A directory that git takes for a repository, since its files say so, can have git run
// commands: the model could write it in the mode acceptEdits.
func TestGitInAPlantedRepository(t *testing.T) {
	t.Parallel()
	w := gated(t)
	root := w.hands.root
	commands := []string{"git status", "git log --oneline", "git diff", "command git status", "timeout 5 git status", "/usr/bin/git status", "ls && git status"}
	edits := agent.Permissions{Mode: "acceptEdits"}
	judge := w.judge(bash(true))
	require.Equal(t, protocol.BehaviorAllow, w.hands.reads("git status"))
	sub := filepath.Join(root, "sub")
	require.NoError(t, os.Mkdir(sub, 0o700))
	for _, at := range []string{root, sub} {
		w.hands.move(at)
		for _, head := range []string{filepath.Join(at, "HEAD"), filepath.Join(root, "HEAD")} {
			require.NoError(t, os.WriteFile(head, nil, 0o600))
			for _, command := range commands {
				assert.NotEqual(t, protocol.BehaviorAllow, w.hands.reads(command), command)
				assert.False(t, judge(edits, agent.Object{"command": command}).Allow, command)
			}
			assert.True(t, judge(edits, agent.Object{"command": "ls"}).Allow)
			require.NoError(t, os.Remove(head))
		}
	}
	for _, name := range []string{"sub/.git", "sub/.git/HEAD"} {
		in := agent.Object{"file_path": name, "content": "x"}
		assert.False(t, w.judge(write())(edits, in).Allow, name)
	}
	require.NoError(t, os.Mkdir(filepath.Join(sub, ".git"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "HEAD"), nil, 0o600))
	assert.True(t, w.hands.planted(), "git does not stop at an empty .git")
	require.NoError(t, os.WriteFile(filepath.Join(sub, ".git", "HEAD"), []byte("ref: refs/heads/main\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(sub, "HEAD"), nil, 0o600))
	assert.False(t, w.hands.planted(), "git stops at .git")
	w.hands.move(root)
	assert.True(t, w.hands.planted())
}

// Programs in PATH, and what tools keep, are run by commands that only read: the mode
// acceptEdits does not let them be written.
func TestFilesThatCommandsRun(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	odd := filepath.Join(root, "o[d]*d")
	for _, dir := range []string{".venv/bin", "tools", "real", "o[d]*d/bin", "tmp"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o700))
	}
	require.NoError(t, os.Symlink("real", filepath.Join(root, "link")))
	tmp := t.TempDir()
	w := &talk{shared: &shared{}}
	w.hands = newHands(agent.Launch{Dir: root, Args: []string{"--add-dir=" + tmp}, Env: []string{
		"HOME=/home/user", "TMPDIR=" + tmp, "PATH=" + strings.Join([]string{root + "/.venv/bin", root + "/tools/", root + "/link", odd + "/bin", "/usr/bin", "", "."}, ":"),
	}}, backend.Seams{}, func(string) bool { return false })
	p := agent.Permissions{Mode: "acceptEdits"}
	kept := filepath.Join(tmp, keptPrefix+"0123456789abcdef", "snapshot-bash.sh")
	for _, name := range []string{".venv/bin/ls", "tools/x", "link/x", "real/x", "o[d]*d/bin/x", kept} {
		assert.False(t, w.judge(write())(p, agent.Object{"file_path": name, "content": ""}).Allow, name)
		assert.False(t, w.judge(edit())(p, agent.Object{"file_path": name}).Allow, name)
		for _, command := range []string{"cp a " + name, "mv a " + name, "sed -i s/a/b/ " + name, "touch " + name} {
			assert.False(t, w.judge(bash(true))(p, agent.Object{"command": command}).Allow, command)
		}
	}
	for _, name := range []string{"a", ".venv/x", "odd/bin/x", filepath.Join(tmp, "x")} {
		assert.True(t, w.judge(write())(p, agent.Object{"file_path": name, "content": ""}).Allow, name)
	}
	assert.True(t, w.judge(bash(true))(p, agent.Object{"command": "touch a"}).Allow)
	assert.True(t, w.judge(bash(true))(p, agent.Object{"command": "ls tools"}).Allow)
}

// A directory whose name has the marks of patterns is that directory alone.
func TestAnAddedDirectoryIsNoPattern(t *testing.T) {
	t.Parallel()
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, name := range []string{"*", "a[b]", `c\d`, "e?", "proj", "x", "ab", "ef"} {
		require.NoError(t, os.Mkdir(filepath.Join(top, name), 0o700))
	}
	w := &talk{shared: &shared{}}
	var args []string
	for _, name := range []string{"*", "a[b]", "e?"} {
		args = append(args, "--add-dir="+filepath.Join(top, name))
	}
	w.hands = newHands(agent.Launch{Dir: filepath.Join(top, "proj"), Args: args}, backend.Seams{}, func(string) bool { return false })
	for name, want := range map[string]bool{"*": true, "a[b]": true, "e?": true, "x": false, "ab": false, "ef": false} {
		assert.Equal(t, want, w.judge(read())(agent.Permissions{}, agent.Object{"file_path": filepath.Join(top, name, "f")}).Allow, name)
	}
}

// The environment of a process, which may be this one with its keys, is not read, by any name.
func TestEnvironmentsAreNotRead(t *testing.T) {
	t.Parallel()
	h := handsIn(t, "a.txt", "x\n")
	require.NoError(t, os.Symlink("/proc/self/environ", filepath.Join(h.root, "link")))
	for _, name := range []string{"/proc/self/environ", "/proc/thread-self/environ", fmt.Sprintf("/proc/%d/environ", os.Getpid()), fmt.Sprintf("/proc/self/task/%d/environ", os.Getpid()), "link", "/proc/self/root/proc/self/environ"} {
		r := h.readFile(t.Context(), nil, agent.Object{"file_path": name})
		assert.True(t, r.IsError, "%s: %v", name, r.Content)
		r = h.grep(t.Context(), agent.Object{"pattern": "P", "path": name, "output_mode": "content"})
		assert.Equal(t, "No matches found", r.Content, name)
	}
	assert.False(t, h.readFile(t.Context(), nil, agent.Object{"file_path": "/proc/self/comm"}).IsError)
}

// Read takes the file that its gate judged.
func TestReadTakesThePathOfTheGate(t *testing.T) {
	t.Parallel()
	h := handsIn(t, "a.txt", "x\n")
	for _, name := range []string{"a.txt /", "a.txt //"} {
		assert.True(t, h.readFile(t.Context(), nil, agent.Object{"file_path": name}).IsError, name)
	}
	assert.False(t, h.readFile(t.Context(), nil, agent.Object{"file_path": "a.txt/ "}).IsError)
}

// Commands get no key, and nothing that the options take away, also not from ~/.bashrc.
func TestVariablesThatCommandsDoNotGet(t *testing.T) {
	t.Parallel()
	p := &program{cfg: &Config{Profiles: model.DefaultProfiles()}, unset: []string{"TAKEN"}}
	for _, name := range []string{"TROUPE_MODEL_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS", "CLAUDE_CODE_OAUTH_TOKEN", "TAKEN"} {
		assert.True(t, p.private(name), name)
	}
	assert.False(t, p.private("PATH"))
}

// A command of the model neither takes long to be checked, nor ends the program.
func TestCommandsThatAreHardToRead(t *testing.T) {
	t.Parallel()
	w := gated(t)
	judge := w.judge(bash(true))
	nest := func(open, middle, end string, n int) string {
		return strings.Repeat(open, n) + middle + strings.Repeat(end, n)
	}
	for _, command := range []string{strings.Repeat("x", maxCommand+1), nest("$(", "ls", ")", maxBrackets+1)} {
		_, err := parsed(command)
		require.ErrorIs(t, err, errLong)
	}
	values := ""
	for i := range 40 {
		values += "X='eval \"$X\" " + strconv.Itoa(i) + "'; "
	}
	many := 1 << 20
	if sim.Raced() {
		many = 1 << 15 // still more than is parsed
	}
	for name, command := range map[string]string{
		"braces":           "echo " + strings.Repeat("{a,b}", 500),
		"braces in braces": "echo " + nest("{a,", "b", "}", 500),
		"substitutions":    nest("$(", "ls", ")", many),
		"few of them":      nest("$(", "ls", ")", 1000),
		"defaults":         "rm " + nest("${a:-", "/x", "}", 1000),
		"a long list":      strings.Repeat("ls && ", many) + "ls",
		"negations":        strings.Repeat("! ", many) + "ls",
		"scripts":          values + "eval \"$X\"",
		"directories":      strings.Repeat("cd a/b/c; ", 60) + "rm " + strings.Repeat("x/y ", 3500),
		"words":            "rm " + strings.Repeat("x ", many),
		"a heredoc":        "cat > x <<'X'\n" + strings.Repeat("rm x\n", many/8) + "X",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, mode := range []string{"default", "acceptEdits", "bypassPermissions", "plan"} {
				v := judge(agent.Permissions{Mode: mode}, agent.Object{"command": command})
				assert.True(t, mode == "bypassPermissions" || !v.Allow, mode)
			}
			_ = blockedSleep(agent.Object{"command": command}, true)
			w.hands.sawBy(command, w.hands.root)
			if slices.Contains([]string{"scripts", "directories", "words"}, name) {
				assert.Contains(t, w.hands.critical(command), "too long to be checked")
			}
		})
	}
}

func TestBraces(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"a": {"a"}, "a{b,c}d": {"abd", "acd"}, "{a,b}{c,d}": {"ac", "ad", "bc", "bd"}, "{a,{b,c}}": {"a", "b", "c"}, "{a}": {"{a}"}, "{a}{b,c}": {"{a}b", "{a}c"}, "{a{b,c}}": {"{ab}", "{ac}"}, "{a,b": {"{a,b"}, "{,x}": {"", "x"}, "{}": {"{}"},
	} {
		assert.Equal(t, want, braces(text), text)
	}
	assert.Len(t, braces(strings.Repeat("{a,b,c}", 300)), maxChoices)
}

// An edit whose result would be too large is refused before it is made.
func TestAnEditThatGrowsTooLarge(t *testing.T) {
	t.Parallel()
	h := handsIn(t, "a.txt", strings.Repeat("a", 1<<20))
	in := agent.Object{"file_path": "a.txt", "old_string": "a", "new_string": strings.Repeat("b", 1<<20), "replace_all": true}
	assert.Contains(t, edit().check(h, in), "The file would have 1073741824KB after this edit")
	in["new_string"] = "bb"
	assert.Empty(t, edit().check(h, in))
	assert.False(t, h.edit(nil, in).IsError)
}

// New files and directories have the modes that the user's umask leaves; a file that is
// changed keeps its mode.
func TestModesOfFiles(t *testing.T) { //nolint:paralleltest // it changes the umask of the process
	h := handsIn(t, "a.txt", "x")
	require.NoError(t, os.Chmod(filepath.Join(h.root, "a.txt"), 0o750))
	before := syscall.Umask(0o007)
	defer syscall.Umask(before)
	require.False(t, h.write(nil, agent.Object{"file_path": "d/n.txt", "content": "x"}).IsError)
	require.False(t, h.write(nil, agent.Object{"file_path": "a.txt", "content": "y"}).IsError)
	require.False(t, h.edit(nil, agent.Object{"file_path": "e.txt", "old_string": "", "new_string": "x"}).IsError)
	for name, want := range map[string]os.FileMode{"d": os.ModeDir | 0o770, "d/n.txt": 0o660, "a.txt": 0o750, "e.txt": 0o660} {
		info, err := os.Stat(filepath.Join(h.root, name))
		require.NoError(t, err)
		assert.Equal(t, want, info.Mode(), name)
	}
}

// A file that a hook puts in the place of the one that was checked is another one.
func TestAHookChangesTheFile(t *testing.T) {
	t.Parallel()
	h := handsIn(t, "a.txt", "a", "b.txt", "b")
	tk := &talk{hands: h, shared: new(shared)}
	tk.shared.made()
	u := &spot{}
	u.look(h, h.path("a.txt"))
	in := agent.Object{"file_path": "b.txt", "content": "new"}
	require.True(t, tk.judged(write(), u)(inEdits(), in).Allow)
	r := h.write(u, in)
	assert.False(t, r.IsError, "%v", r.Content)
}

// The directory for what tools keep has an absolute path, whatever the environment says.
func TestTheDirectoryForTemporaryFiles(t *testing.T) {
	for _, dir := range []string{"", "rel", "."} {
		t.Setenv("TMPDIR", dir)
		h := newHands(agent.Launch{Dir: "/", Env: []string{"TMPDIR=" + dir}}, backend.Seams{}, func(string) bool { return false })
		assert.True(t, filepath.IsAbs(h.tmp()), dir)
	}
}

// Read takes no more memory than the lines that it shows.
func TestReadOfManyLines(t *testing.T) {
	t.Parallel()
	h := handsIn(t, "a.txt", strings.Repeat("\n", 4<<20))
	r := h.readFile(t.Context(), nil, agent.Object{"file_path": "a.txt", "allow_large": true})
	assert.True(t, r.IsError)
	assert.Contains(t, r.Content, "at most 16384KB are read at once")
	r = h.readFile(t.Context(), nil, agent.Object{"file_path": "a.txt", "offset": float64(4 << 20), "limit": 5.0})
	assert.Equal(t, "4194304\t\n4194305\t", r.Content)
	for _, c := range []struct {
		first, count int
		want         string
	}{{1, 1, "a"}, {1, 3, "a\nb\n"}, {2, 1, "b"}, {3, 1, ""}, {2, 2, "b\n"}} {
		assert.Equal(t, c.want, lineRange("a\nb\n", c.first, c.count))
	}
}

// An input with many members is read in the time that it takes to read it once.
func TestInputsWithManyMembers(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&b, `,"k%d":1,"%d":1`, i, i)
	}
	keys := keysOf([]byte("{" + b.String()[1:] + "}"))
	assert.Len(t, keys, 400_000)
	in, text, _ := unparsed("Read", "["+strings.Repeat("1,", 1<<20)+"1]")
	assert.Empty(t, text)
	assert.Len(t, keysOf(in), maxIndices)
}

// A deny rule that comes is in force for a search that is under way, at every moment.
func TestASearchIsNeverWithoutItsRules(t *testing.T) {
	t.Parallel()
	h := handsIn(t, "secret.txt", "x")
	tk := &talk{hands: h, shared: new(shared)}
	deny := []string{"Read(secret.txt)"}
	tk.compile(agent.Permissions{Deny: deny})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan bool)
	go func() { // a search beside
		seen := true
		for ctx.Err() == nil {
			seen = seen && h.hidden(filepath.Join(h.root, "secret.txt"))
		}
		done <- seen
	}()
	for i := range 300 {
		tk.compile(agent.Permissions{Deny: deny, Allow: []string{"Bash(x" + strconv.Itoa(i) + ")"}})
	}
	cancel()
	assert.True(t, <-done)
}
