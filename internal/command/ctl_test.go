package command

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/control"
)

// ctl runs troupe ctl, and returns what it says.
func ctl(t *testing.T, want int, args ...string) string {
	t.Helper()
	w := newWorld()
	require.Equal(t, want, w.run(append([]string{"ctl"}, args...)...), "%s%s", w.out, w.err)
	return w.out.String() + w.err.String()
}

const talking = `default: [{text: "I begin."}, {delay: 1h}]`

// A job is steered from another shell, and its journal when nobody runs it.
func TestCtl(t *testing.T) {
	t.Parallel()
	file := taskFile(t, "t.jsonl", strings.Repeat("{\"prompt\":\"x\"}\n", 4))
	w := newWorld()
	code := w.start("batch", "-a", script(t, talking), file, "-j", "1")
	say := func() string {
		w := newWorld()
		w.run("ctl", file)
		return w.out.String() + w.err.String()
	}
	require.Eventually(t, func() bool { return strings.Contains(say(), "1 running, 3 queued, 0 over") }, time.Minute, 10*time.Millisecond)
	tail := newWorld()
	tailed := tail.start("ctl", file, "tail", "0001")
	tail.out.await(t, "I begin.")
	ctl(t, exitOK, file, "pause")
	assert.Contains(t, ctl(t, exitOK, file), "paused, process ")
	ctl(t, exitOK, file, "cancel", "0001", "0002")
	assert.Equal(t, exitOK, <-tailed, "the attempt has ended: %s", tail.err)
	assert.Contains(t, ctl(t, exitOK, file, "results"), "0002                 canceled       it was canceled by hand")
	assert.Contains(t, ctl(t, exitResult, file, "cancel", "none"), `task "none": the job has no task with this id`)
	ctl(t, exitOK, file, "requeue", "0002")
	assert.Contains(t, ctl(t, exitOK, outOf(file)), "0 running, 3 queued, 1 over, 1 canceled")
	ctl(t, exitOK, file, "retune", "2")
	ctl(t, exitOK, file, "resume")
	require.Eventually(t, func() bool { return strings.Contains(say(), "2 running, 1 queued") }, time.Minute, 10*time.Millisecond)
	w.err.await(t, "the job continues")
	w.signal <- os.Interrupt
	w.signal <- os.Interrupt
	assert.Equal(t, 130, <-code)

	assert.Contains(t, say(), "not running (process ")
	assert.Contains(t, say(), "0002                 to resume")
	assert.Contains(t, ctl(t, exitOK, file, "tail", "0001"), "I begin.", "from the journal's files")
	assert.Contains(t, ctl(t, exitResult, file, "pause"), "no process")
	assert.Contains(t, ctl(t, exitOK, file, "cancel", "0002"), "troupe batch --resume obeys")
	var j fleet.Snapshot
	require.NoError(t, json.Unmarshal([]byte(ctl(t, exitOK, file, "--json")), &j))
	assert.Len(t, j.Tasks, 4)
	w = newWorld()
	assert.Equal(t, exitResult, w.run("batch", "-a", script(t, answering), file, "--resume"))
	assert.Contains(t, w.out.String(), "2 of 4 tasks accepted, 2 canceled")
}

// The command of --on-accept is run again for those whose command has failed, and tasks are
// requeued by their status.
func TestCtlByStatus(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "t.jsonl")
	require.NoError(t, os.WriteFile(file, []byte("{\"prompt\":\"x\"}\n{\"prompt\":\"x\"}\n{\"prompt\":\"x\"}\n"), 0o600))
	args := []string{
		"batch", "-a", script(t, answering), file, "-C", dir, "--verify", "test $TROUPE_TASK != 0003 -o -e good", "--retries", "0",
		"--on-accept", "echo x >>$TROUPE_TASK; test $TROUPE_TASK != 0002 -o -e fixed", "-q",
	}
	w := newWorld()
	assert.Equal(t, exitResult, w.run(args...))
	assert.Contains(t, w.err.String(), "the command of --on-accept is failed for 1 task; troupe ctl "+filepath.Join(dir, "t.out")+" on-accept TASK")
	assert.Contains(t, ctl(t, exitOK, file), "on-accept failed: exit code 1")
	assert.Contains(t, ctl(t, exitResult, file, "requeue", "--status", "rejectd"), "there are: accepted, rejected")
	assert.Contains(t, ctl(t, exitOK, file, "requeue", "--status", "rejected"), "0003: no process runs the job")
	assert.Contains(t, ctl(t, exitOK, file, "on-accept", "--status", "failed"), "0002: no process runs the job")
	assert.Contains(t, ctl(t, exitResult, file, "on-accept", "0003"), "was not accepted")
	for _, name := range []string{"fixed", "good"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	w = newWorld()
	assert.Equal(t, exitOK, w.run(append(args, "--resume")...), w.err)
	for name, want := range map[string]string{"0001": "x\n", "0002": "x\nx\n", "0003": "x\n"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, want, string(text), name)
	}
}

func TestCtlMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no directory": {nil, exitUsage, "needs the directory"},
		"no job":       {[]string{dir}, exitResult, "has no journal of a job"},
		"a typo":       {[]string{dir, "puase"}, exitUsage, "did you mean pause?"},
		"no number":    {[]string{dir, "retune", "0"}, exitUsage, "a number from 1"},
		"no task":      {[]string{dir, "cancel"}, exitUsage, "the ids of tasks"},
		"two tasks":    {[]string{dir, "tail", "a", "b"}, exitUsage, "one task"},
		"too many":     {[]string{dir, "pause", "a"}, exitUsage, "no arguments"},
		"json":         {[]string{dir, "pause", "--json"}, exitUsage, "--json"},
		"no job here":  {[]string{dir, "cancel", "a"}, exitResult, "has no journal of a job"},
		"status":       {[]string{dir, "cancel", "--status", "rejected"}, exitUsage, "--status is for requeue"},
		"both":         {[]string{dir, "requeue", "a", "--status", "rejected"}, exitUsage, "contradict each other"},
		"on-accept":    {[]string{dir, "on-acept", "a"}, exitUsage, "did you mean on-accept?"},
		"help":         {[]string{"--help"}, exitOK, "requeue TASK..."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Contains(t, ctl(t, c.code, c.args...), c.want)
		})
	}
}

// A call that waits is answered from another shell.
func TestApprovalsCommand(t *testing.T) {
	t.Parallel()
	file := taskFile(t, "t.jsonl", "{\"prompt\":\"x\"}\n")
	agent := script(t, `default: [{tool_use: {name: Bash, input: {command: "rm -rf \\e[2J"}, result: gone}}, {text: "ended"}]`)
	for name, c := range map[string]struct{ command, says string }{"allow": {"allow", "gone"}, "deny": {"deny", "not today"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			w := newWorld()
			code := w.start("batch", "-a", agent, file, "--approvals", "-O", out)
			list := func() string {
				w := newWorld()
				w.run("approvals", out)
				return w.out.String()
			}
			require.Eventually(t, func() bool { return strings.Contains(list(), "Bash") }, time.Minute, 10*time.Millisecond)
			assert.NotContains(t, list(), "\x1b", "nothing steers the terminal")
			id, _, _ := strings.Cut(list(), " ")
			w.err.await(t, "0001 waits for an approval: troupe approvals "+out+" ("+id)
			args := []string{"approvals", out, c.command, id[:6]}
			if c.command == "deny" {
				args = append(args, "not", "today")
			}
			other := newWorld()
			require.Equal(t, exitOK, other.run(args...), other.err)
			other = newWorld()
			other.run(args...)
			assert.Equal(t, exitOK, <-code, w.err)
			text, err := os.ReadFile(filepath.Join(out, "transcripts/0001.1.jsonl"))
			require.NoError(t, err)
			assert.Contains(t, string(text), c.says)
			other = newWorld()
			assert.Equal(t, exitResult, other.run(args...))
			assert.Contains(t, other.err.String(), "no call with this id waits")
			assert.Equal(t, "no call waits for a person\n", list())
		})
	}
	for _, args := range [][]string{{"approvals"}, {"approvals", file, "alow", "x"}, {"approvals", file, "allow"}, {"batch", file, "-a", agent, "--approvals", "--yes"},
		{"batch", file, "-a", agent, "--webhook", "https://x.example"}, {"batch", file, "-a", agent, "--approvals", "--webhook", "https://x.example"}, {"batch", file, "-a", agent, "--approvals", "--webhook", "http://x.example"}} {
		w := newWorld()
		assert.Equal(t, exitUsage, w.run(args...), args)
	}
}

// asked is a job of four tasks whose calls wait: three are alike but for the description, in
// directories of their own.
func asked(t *testing.T) (out string, job *world, code <-chan int) {
	t.Helper()
	call := func(prompt, command, description string) string {
		return fmt.Sprintf(`  - {match: %q, steps: [{text: "I look\nfirst %s"}, {tool_use: {name: Bash, input: {command: %q, description: %q}, result: "ran %s"}}, {text: ended}]}`, prompt, prompt, command, description, prompt) + "\n"
	}
	agent := script(t, "turns:\n"+call("one", "make x", "Makes x")+call("two", "make x", "Make the x")+call("three", "make y", "Makes x")+call("four", "make x", ""))
	file := taskFile(t, "t.jsonl", "{\"prompt\":\"one\"}\n{\"prompt\":\"two\"}\n{\"prompt\":\"three\"}\n{\"prompt\":\"four\"}\n")
	out = t.TempDir()
	job = newWorld()
	code = job.start("batch", "-a", agent, file, "--approvals", "-j", "4", "-O", out)
	require.Eventually(t, func() bool {
		w := newWorld()
		w.run("approvals", out)
		return strings.Count(w.out.String(), "  command: ") == 4
	}, time.Minute, 10*time.Millisecond)
	return out, job, code
}

// transcriptOf is what became of a task of asked.
func transcriptOf(t *testing.T, out string, n int) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(out, fmt.Sprintf("transcripts/%04d.1.jsonl", n)))
	require.NoError(t, err)
	return string(text)
}

// Calls that wait are asked about as in a chat, and "always" is for those like it.
func TestApprovalsAsk(t *testing.T) {
	t.Parallel()
	out, job, code := asked(t)
	w, keys := attended(t)
	asking := w.start("approvals", out, "ask")
	w.err.await(t, "The agent said: I look\n    first ")
	w.err.await(t, "Bash in /")
	w.err.await(t, "Allow it? [y/n/a/?] ")
	answers := 0
	_, _ = io.WriteString(keys, "yse\n")
	w.err.await(t, "is not an answer: write y, n, a, ?, or a sentence that says why not.\nAllow it? [y/n/a/?] ")
	_, _ = io.WriteString(keys, "?\n")
	w.err.await(t, "  ?  this text\nAllow it? [y/n/a/?] ")
	assert.Contains(t, w.err.String(), "  a  allow it, and all calls like it")
	for answers < 2 { // x, with those like it, and y, in whatever order
		answers++
		text := w.err.String()
		typed := "a\n"
		if strings.LastIndex(text, "command: make y") > strings.LastIndex(text, "command: make x") {
			typed = "not that one\n"
		}
		before := strings.Count(text, "\nTask ")
		_, _ = io.WriteString(keys, typed)
		require.Eventually(t, func() bool {
			now := w.err.String()
			return strings.Count(now, "\nTask ") > before && strings.LastIndex(now, allowQuestion) > strings.LastIndex(now, "\nTask ") ||
				strings.Contains(now, "no call waits")
		}, time.Minute, time.Millisecond)
	}
	assert.Equal(t, exitOK, <-asking, w.err)
	assert.Equal(t, 2, strings.Count(w.err.String(), "allowed, like before: Bash in task 000"), w.err)
	assert.Equal(t, exitOK, <-code, job.err)
	for i, said := range []string{"ran one", "ran two", "not that one", "ran four"} {
		assert.Contains(t, transcriptOf(t, out, i+1), said)
	}
}

// A command answers one call, and with --like those like it.
func TestApprovalsLike(t *testing.T) {
	t.Parallel()
	out, job, code := asked(t)
	id := func(command string) string {
		w := newWorld()
		w.run("approvals", out, "--json")
		var all []fleet.Approval
		require.NoError(t, json.Unmarshal([]byte(w.out.String()), &all))
		for _, a := range all {
			if strings.Contains(string(a.Input), command) {
				return a.ID
			}
		}
		return "none"
	}
	w := newWorld()
	assert.Equal(t, exitUsage, w.run("approvals", out, "--like"))
	w = newWorld()
	assert.Equal(t, exitUsage, w.run("approvals", out, "ask"))
	assert.Contains(t, w.err.String(), "needs a terminal")
	w, keys := attended(t) // somebody who goes away decides nothing
	_ = keys.Close()
	assert.Equal(t, exitResult, w.run("approvals", out, "ask"))
	assert.Contains(t, w.err.String(), "4 calls without an answer")

	w = newWorld()
	require.Equal(t, exitOK, w.run("approvals", out, "deny", id("make x")[:8], "--like", "use", "ninja"), w.err)
	w = newWorld()
	require.Equal(t, exitOK, w.run("approvals", out, "allow", id("make y")), w.err)
	assert.Equal(t, exitOK, <-code, job.err)
	for i, said := range []string{"use ninja", "use ninja", "ran three", "use ninja"} {
		assert.Contains(t, transcriptOf(t, out, i+1), said)
	}
}

// Calls are alike if tool and input are, whatever the order of keys; large numbers stay apart.
func TestLikeIt(t *testing.T) {
	t.Parallel()
	call := func(tool, input string) fleet.Approval {
		return fleet.Approval{ID: "x", Tool: tool, Input: json.RawMessage(input)}
	}
	for name, c := range map[string]struct {
		one, other fleet.Approval
		like       bool
	}{
		"the order":         {call("T", `{"a":1,"b":2}`), call("T", `{"b":2,"a":1}`), true},
		"the description":   {call("Bash", `{"command":"a","description":"b"}`), call("Bash", `{"command":"a"}`), true},
		"of another tool":   {call("T", `{"description":"b"}`), call("T", `{"description":"c"}`), false},
		"the command":       {call("Bash", `{"command":"a"}`), call("Bash", `{"command":"a "}`), false},
		"the sandbox":       {call("Bash", `{"command":"a"}`), call("Bash", `{"command":"a","dangerouslyDisableSandbox":true}`), false},
		"the tool":          {call("Write", `{"a":1}`), call("Edit", `{"a":1}`), false},
		"large numbers":     {call("T", `{"a":9007199254740993}`), call("T", `{"a":9007199254740992}`), false},
		"what is not JSON":  {call("T", `{`), call("T", `{`), false},
		"what is no object": {call("T", `[1]`), call("T", `[1]`), true},
	} {
		c.other.ID = "y"
		like := likeIt([]fleet.Approval{c.one, c.other}, "x")
		assert.Equal(t, c.like, len(like) == 1, name)
	}
}

// Each call that waits is posted, signed; a webhook that fails ends nothing.
func TestWebhook(t *testing.T) {
	t.Parallel()
	const secret = "0123456789abcdef"
	got := make(chan error, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = control.Verify(secret, r.Header, body, time.Now(), time.Minute)
		}
		got <- err
	}))
	defer server.Close()
	file := taskFile(t, "t.jsonl", "{\"prompt\":\"x\"}\n")
	w := newWorld()
	w.getenv = func(name string) string { return map[string]string{envWebhookSecret: secret}[name] }
	code := w.start("batch", "-a", script(t, `default: [{tool_use: {name: Bash, input: {command: x}}}]`), file, "--approvals", "--webhook", server.URL)
	require.NoError(t, <-got)
	w.signal <- os.Interrupt
	w.signal <- os.Interrupt
	assert.Equal(t, 130, <-code)
}
