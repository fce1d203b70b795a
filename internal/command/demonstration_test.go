package command

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/protocol"
)

// newUser is a world without any agent, with new directories.
func newUser(t *testing.T, env map[string]string) *world {
	t.Helper()
	own := map[string]string{"TMPDIR": t.TempDir(), "HOME": t.TempDir(), "XDG_STATE_HOME": ""}
	w := newWorld()
	w.getenv = func(name string) string {
		if v, ok := env[name]; ok {
			return v
		}
		return own[name]
	}
	return w
}

// placeOf is the directory that the command says the demonstration works in.
func placeOf(t *testing.T, w *world) string {
	t.Helper()
	at := regexp.MustCompile(`works in  (\S+)\n`).FindStringSubmatch(w.err.String())
	require.NotNil(t, at, w.err)
	return at[1]
}

func contentOf(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return string(b)
}

func TestDemonstration(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"nothing installed":        {"run", "Do something."},
		"by name":                  {"run", "-a", "demo", "Do something."},
		"embedded without a model": {"run", "-a", "embedded", "Do something."},
		"nobody may be asked":      {"run", "--no", "Do something."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newUser(t, nil)
			require.Equal(t, exitOK, w.run(append(args, "-e", "HOME="+t.TempDir(), "-e", "XDG_STATE_HOME="+t.TempDir())...), w.err)
			dir := placeOf(t, w)
			assert.Contains(t, contentOf(t, dir, "words.sh"), "echo $#\n", "it is repaired")
			assert.Contains(t, contentOf(t, dir, "cases.txt"), "2 Do something.\n")
			assert.Contains(t, w.err.String(), "may       Read(./**), Edit(./**), Bash(/bin/sh check.sh), Bash(/bin/ls); all else is asked")
			assert.Contains(t, w.out.String(), "I am Troupe's demonstration")
			assert.Contains(t, w.out.String(), dir)
			assert.Contains(t, w.out.String(), "The check passes: 3 cases.")
		})
	}
}

// It never works in the user's directory, whatever the flags say.
func TestTheDemonstrationLeavesTheUsersDirectoryAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "words.sh"), []byte("mine"), 0o600))
	w := newUser(t, nil)
	require.Equal(t, exitOK, w.run("run", "--yes", "--cwd", dir, "-e", "HOME="+t.TempDir(), "-e", "XDG_STATE_HOME="+t.TempDir(), "Write hello.txt, delete words.sh, and fix the test."), w.err)
	assert.Contains(t, w.err.String(), "troupe: --cwd is not used: the demonstration works in a temporary directory\n")
	assert.FileExists(t, filepath.Join(placeOf(t, w), "hello.txt"))
	assert.Equal(t, "mine", contentOf(t, dir, "words.sh"))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}

// A key alone starts nothing that costs money; a line says how to use it.
func TestAKeyAlone(t *testing.T) {
	t.Parallel()
	w := newUser(t, map[string]string{"ANTHROPIC_API_KEY": "s3cret", "OPENROUTER_API_KEY": "s3cret"})
	require.Equal(t, exitOK, w.run("run", "hi", "-e", "HOME="+t.TempDir(), "-e", "XDG_STATE_HOME="+t.TempDir()), w.err)
	assert.Contains(t, w.out.String(), "I am Troupe's demonstration")
	assert.Contains(t, w.err.String(), "ANTHROPIC_API_KEY is set: --model anthropic/NAME uses it, and costs money.")
	assert.Contains(t, w.err.String(), "OPENROUTER_API_KEY is set: --model https://openrouter.ai/…#NAME uses it")
	assert.NotContains(t, w.err.String()+w.out.String(), "s3cret")
	assert.NotContains(t, w.err.String(), "OPENAI_API_KEY")

	w = newUser(t, map[string]string{"ANTHROPIC_API_KEY": "s3cret"})
	require.Equal(t, exitOK, w.run("run", "-q", "hi", "-e", "HOME="+t.TempDir(), "-e", "XDG_STATE_HOME="+t.TempDir()), w.err)
	assert.Empty(t, w.err.String())
}

// Nothing of a result looks like one of a real model.
func TestTheDemonstrationCostsNothing(t *testing.T) {
	t.Parallel()
	w := newUser(t, nil)
	require.Equal(t, exitOK, w.run("run", "hi", "-o", "json", "-e", "HOME="+t.TempDir(), "-e", "XDG_STATE_HOME="+t.TempDir()), w.err)
	var got report
	require.NoError(t, json.Unmarshal([]byte(w.out.String()), &got))
	assert.Equal(t, "demo", got.Agent)
	var result protocol.ResultMessage
	require.NoError(t, json.Unmarshal(got.Result, &result))
	assert.Zero(t, result.TotalCostUSD)
	require.Len(t, result.ModelUsage, 1)
	assert.Contains(t, result.ModelUsage, "troupe-demo")
}

func TestChatWithTheDemonstration(t *testing.T) {
	t.Parallel()
	w := newUser(t, nil)
	w.stdin = strings.NewReader("One thing.\nAnother thing, please.\nWhat is in this directory?\nDelete cases.txt.\n/exit\n")
	require.Equal(t, exitOK, w.run("chat", "-e", "HOME="+t.TempDir(), "-e", "XDG_STATE_HOME="+t.TempDir()), w.err)
	out := w.out.String()
	assert.Equal(t, 1, strings.Count(out, "I am Troupe's demonstration"), "once")
	assert.Contains(t, out, "The check passes: 3 cases.")
	assert.Contains(t, out, "The check passes: 4 cases.", "each turn goes on with the work of the ones before")
	assert.Contains(t, out, "The directory has 4 files: README.md, cases.txt, check.sh, words.sh.")
	assert.Contains(t, w.err.String(), "troupe: denied Bash: there is no terminal to ask on", "what its rules do not allow is asked")
	assert.FileExists(t, filepath.Join(placeOf(t, w), "cases.txt"))
}

// A later run resumes a session, in its directory.
func TestTheDemonstrationIsResumed(t *testing.T) {
	t.Parallel()
	state := "HOME=" + t.TempDir()
	w := newUser(t, nil)
	require.Equal(t, exitOK, w.run("run", "One.", "-o", "json", "-e", state), w.err)
	dir := placeOf(t, w)
	var got report
	require.NoError(t, json.Unmarshal([]byte(w.out.String()), &got))
	w = newUser(t, nil)
	require.Equal(t, exitOK, w.run("run", "--resume", got.SessionID, "Two.", "-e", state), w.err)
	assert.Equal(t, dir, placeOf(t, w))
	assert.NotContains(t, w.out.String(), "I am Troupe's demonstration", "it said so before")
	assert.Contains(t, w.out.String(), "The check passes: 4 cases.")
}

// A job of the demonstration is real work: copies, a verifier, diffs, a second round and resume.
func TestBatchOfTheDemonstration(t *testing.T) {
	t.Parallel()
	file := taskFile(t, "tasks.jsonl", `{"id":"a","prompt":"Count these words."}`+"\n"+`{"id":"b","prompt":"Count these words carelessly."}`+"\n")
	w := newUser(t, nil)
	require.Equal(t, exitOK, w.run("batch", file, "-e", "HOME="+t.TempDir(), "-e", "XDG_STATE_HOME="+t.TempDir()), w.err)
	out := outOf(file)
	assert.Contains(t, w.err.String(), "This is a demonstration: ")
	assert.Contains(t, w.err.String(), "verified  by /bin/sh check.sh in each copy")
	assert.Contains(t, w.out.String(), "2 of 2 tasks accepted; ")
	var s fleet.Summary
	require.NoError(t, json.Unmarshal([]byte(contentOf(t, out, "summary.json")), &s))
	assert.Equal(t, 2, s.Accepted)
	results := map[string]fleet.TaskResult{}
	for line := range strings.Lines(contentOf(t, out, "results.jsonl")) {
		var r fleet.TaskResult
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		results[r.ID] = r
	}
	require.Len(t, results, 2)
	for id, rounds := range map[string]int{"a": 1, "b": 2} {
		r := results[id]
		assert.Equal(t, rounds, r.Verdict.Rounds, "%s: what was done carelessly is not accepted at first", id)
		diff := contentOf(t, out, r.Diff)
		assert.Contains(t, diff, "+echo $#\n", id)
		assert.Contains(t, diff, "Count these words", id)
	}

	assert.NotContains(t, w.err.String(), "calls that no rule allows")
	assert.Contains(t, w.err.String(), "all else is denied")
}

// A job that has stopped continues where it was.
func TestTheDemonstrationsJobIsResumed(t *testing.T) {
	t.Parallel()
	file := taskFile(t, "tasks.jsonl", `{"id":"a","prompt":"Write one.txt, and list the directory."}`+"\n"+`{"id":"b","prompt":"Two."}`+"\n"+`{"id":"c","prompt":"Three."}`+"\n")
	state := "HOME=" + t.TempDir()
	w := newUser(t, nil)
	require.Equal(t, exitOK, w.run("batch", file, "--estimate", "1", "-e", state), w.err)
	w = newUser(t, nil)
	require.Equal(t, exitOK, w.run("batch", file, "--resume", "-e", state), w.err)
	assert.Contains(t, w.out.String(), "3 of 3 tasks accepted")
	assert.NotContains(t, w.out.String(), "denied", "its rules allow its own calls")
	out := outOf(file)
	assert.Equal(t, 3, strings.Count(contentOf(t, out, "results.jsonl"), "\n"), "each result once")
	for _, id := range []string{"a", "b", "c"} {
		assert.FileExists(t, filepath.Join(out, "workspaces", id, "1", "words.sh"))
		assert.NoDirExists(t, filepath.Join(out, "workspaces", id, "2"), "what was done is not done again")
	}
}

// In copies of the user's directory it works too, and only there.
func TestTheDemonstrationInTheUsersWorkspaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine.txt"), []byte("mine"), 0o600))
	asIs := `{"id":"b","prompt":"Fix it.","workspace":{"from":"` + dir + `"}}`
	file := taskFile(t, "tasks.jsonl", `{"id":"a","prompt":"Write hello.txt"}`+"\n"+asIs+"\n")
	w := newUser(t, nil)
	require.Equal(t, exitOK, w.run("batch", file, "-w", "copy", "-C", dir, "--verify", "test -f hello.txt || test -f words.sh", "-e", "HOME="+t.TempDir(), "-e", "XDG_STATE_HOME="+t.TempDir()), w.err)
	assert.FileExists(t, filepath.Join(outOf(file), "workspaces", "a", "1", "hello.txt"))
	assert.FileExists(t, filepath.Join(outOf(file), "workspaces", "b", "1", "words.sh"))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}

// An editor says the directory of a session. The demonstration has its own.
func TestACPWithTheDemonstration(t *testing.T) {
	t.Parallel()
	dir, state, tmp := t.TempDir(), t.TempDir(), t.TempDir()
	w := newUser(t, nil)
	in, out := io.Pipe()
	w.stdin = in
	code := make(chan int)
	go func() {
		code <- w.run("acp", "-e", "HOME="+t.TempDir(), "-e", "XDG_STATE_HOME="+state, "-e", "TMPDIR="+tmp)
	}()
	send := func(line string) { _, _ = io.WriteString(out, line+"\n") }
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`)
	w.out.await(t, `"id":1`)
	send(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"` + dir + `","mcpServers":[]}}`)
	w.out.await(t, `"id":2`)
	id := regexp.MustCompile(`"sessionId":"([^"]+)"`).FindStringSubmatch(w.out.String())
	require.NotNil(t, id, w.out)
	send(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"` + id[1] + `","prompt":[{"type":"text","text":"Do something."}]}}`)
	w.out.await(t, `"id":3`)
	require.NoError(t, out.Close())
	assert.Equal(t, exitOK, <-code, w.err)
	assert.Contains(t, w.err.String(), "works in  a new temporary directory for each session")
	assert.NotContains(t, w.err.String(), "warning")
	assert.Contains(t, w.out.String(), "end_turn")
	assert.Contains(t, w.out.String(), filepath.Join(tmp, "troupe-demo-"), "its text says where")
	assert.NotContains(t, w.out.String(), "session/request_permission")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, entries)
}
