package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	restFirst  = "5e550000-0000-4000-8000-000000000001"
	restSecond = "5e550000-0000-4000-8000-000000000002"
)

// newHome is a world whose home has two sessions; what the model wrote in the first one
// would repaint a terminal, and its last line is torn.
func newHome(t *testing.T) (w *world, folder string) {
	t.Helper()
	home := t.TempDir()
	folder = filepath.Join(home, ".claude", "projects", "-w-proj")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	line := func(id, typ, uuid, parent, content string) string {
		return `{"type":"` + typ + `","uuid":"00000000-0000-4000-8000-00000000000` + uuid + `","parentUuid":` + parent + `,"isSidechain":false,"message":{"id":"m` + uuid +
			`","role":"` + typ + `","content":` + content + `},"sessionId":"` + id + `","cwd":"/w/proj","entrypoint":"cli","timestamp":"2026-11-22T00:00:0` + uuid + `.000Z"}` + "\n"
	}
	first := line(restFirst, "user", "1", "null", `"look at <b>this</b>"`) +
		line(restFirst, "assistant", "2", `"00000000-0000-4000-8000-000000000001"`, `[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}]`) +
		line(restFirst, "user", "3", `"00000000-0000-4000-8000-000000000002"`, `[{"type":"tool_result","tool_use_id":"t","content":"a\nb"}]`) +
		line(restFirst, "assistant", "4", `"00000000-0000-4000-8000-000000000003"`, `[{"type":"text","text":"\u001b[2Jdone <script>"}]`) + `{"type":"us`
	second := line(restSecond, "user", "1", "null", `"another"`) + line(restSecond, "assistant", "2", `"00000000-0000-4000-8000-000000000001"`, `[{"type":"text","text":"yes"}]`)
	for i, content := range []string{first, second} {
		file := filepath.Join(folder, []string{restFirst, restSecond}[i]+".jsonl")
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		at := time.Unix(1790000000-int64(i), 0)
		require.NoError(t, os.Chtimes(file, at, at))
	}
	w = newWorld()
	w.getenv = func(name string) string { return map[string]string{"HOME": home}[name] }
	return w, folder
}

func TestSessionsCommand(t *testing.T) {
	t.Parallel()
	w, folder := newHome(t)
	ok := func(args ...string) string {
		t.Helper()
		w.out, w.err = &screen{}, &screen{}
		w.stdout, w.stderr = w.out, w.err
		require.Equal(t, exitOK, w.run(append([]string{"sessions"}, args...)...), w.err)
		return w.out.String()
	}
	list := strings.Split(strings.TrimSpace(ok("list")), "\n")
	require.Len(t, list, 2)
	assert.Regexp(t, "^"+restFirst+"  .*  look at <b>this</b>$", list[0])
	assert.Contains(t, ok("list", "--limit", "1", "--offset", "1"), restSecond)
	assert.Empty(t, ok("list", "--cwd", "/elsewhere"))
	var rows []map[string]any
	require.NoError(t, json.Unmarshal([]byte(ok("list", "--json")), &rows))
	assert.Equal(t, restFirst, rows[0]["sessionId"])
	assert.JSONEq(t, "[]", ok("list", "--json", "--agent", "qoder"))

	assert.Equal(t, "user: look at <b>this</b>\n→ Bash ls\n← a (and 1 more line)\nassistant: \\x1b[2Jdone <script>\n", ok("show", restFirst))
	assert.Contains(t, w.err.String(), "1 of 5 lines of projects/-w-proj/"+restFirst+".jsonl cannot be read; the first one is line 5 (torn)")
	assert.Equal(t, ok("show", restFirst), ok("show", restFirst, "--resumed"))
	assert.Len(t, strings.Split(strings.TrimSpace(ok("show", restFirst, "--json")), "\n"), 4)

	assert.Empty(t, ok("rename", restFirst, "My", "title"))
	raw, err := os.ReadFile(filepath.Join(folder, restFirst+".jsonl"))
	require.NoError(t, err)
	assert.Contains(t, string(raw), "{\"type\":\"us\n{\"type\":\"custom-title\"", "the title is on a line of its own")
	ok("tag", restFirst, "blue")
	assert.Contains(t, ok("list"), "My title [blue]")
	ok("tag", restFirst, "--remove")
	assert.NotContains(t, ok("list"), "[blue]")

	fork := strings.TrimSpace(ok("fork", restFirst, "--up-to", "00000000-0000-4000-8000-000000000001"))
	assert.Equal(t, "user: look at <b>this</b>\n", ok("show", fork))
	assert.Contains(t, ok("list"), "My title (fork)")

	markdown := ok("export", restFirst)
	assert.Contains(t, markdown, "# Session: `My title`")
	assert.Contains(t, markdown, "```text\n\ufffd[2Jdone <script>\n```")
	page := ok("export", restFirst, "--format", "html")
	assert.NotContains(t, page, "<script>")
	assert.Contains(t, page, "done &lt;script&gt;")

	assert.Equal(t, exitUsage, w.run("sessions", "delete", fork), "without --yes")
	ok("delete", fork, "--yes")
	assert.NotContains(t, ok("list"), fork)
}

func TestSessionsRewind(t *testing.T) {
	t.Parallel()
	w, folder := newHome(t)
	project := t.TempDir()
	id := "5e550000-0000-4000-8000-000000000003"
	const prompt = "00000000-0000-4000-8000-000000000001"
	raw, err := os.ReadFile(filepath.Join(folder, restSecond+".jsonl"))
	require.NoError(t, err)
	content := strings.NewReplacer(restSecond, id, "/w/proj", project).Replace(string(raw)) +
		`{"type":"assistant","uuid":"00000000-0000-4000-8000-000000000003","parentUuid":"00000000-0000-4000-8000-000000000002","message":{"id":"m3","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"make"}}]}}` + "\n" +
		`{"type":"file-history-snapshot","messageId":"` + prompt + `","snapshot":{"messageId":"` + prompt + `","trackedFileBackups":{"a.txt":{"backupFileName":null,"version":1}},"timestamp":"x"},"isSnapshotUpdate":false}` + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(folder, id+".jsonl"), []byte(content), 0o600))
	file := filepath.Join(project, "a.txt")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	require.Equal(t, exitOK, w.run("sessions", "rewind", id, prompt), w.err)
	assert.Equal(t, "remove  "+file+"\n", w.out.String())
	assert.Contains(t, w.err.String(), "cannot be restored:\n  make\n")
	assert.FileExists(t, file, "without --yes nothing is changed")
	require.Equal(t, exitOK, w.run("sessions", "rewind", id, prompt, "--yes"), w.err)
	assert.NoFileExists(t, file)
	assert.Equal(t, exitResult, w.run("sessions", "rewind", restFirst, prompt), "a session without checkpoints")
}

// An empty list says whose sessions were looked for.
func TestNoSessionsAtAll(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--cwd", "/w/empty"}, "troupe: claude has no sessions here; --agent lists those of another agent"},
		{[]string{"--agent", "qoder"}, "troupe: qoder has no sessions here;"},
		{[]string{"--agent", "qoder", "--quiet"}, ""},
		{nil, ""},
	} {
		w, _ := newHome(t)
		require.Equal(t, exitOK, w.run(append([]string{"sessions", "list"}, c.args...)...))
		if c.says == "" {
			assert.Empty(t, w.err.String(), c.args)
		} else {
			assert.Contains(t, w.err.String(), c.says)
			assert.Empty(t, w.out.String())
		}
	}
}

func TestSessionsCommandRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"nothing":         {nil, exitUsage, "Usage: troupe sessions COMMAND"},
		"a near command":  {[]string{"lst"}, exitUsage, "did you mean troupe sessions list?"},
		"no id":           {[]string{"show"}, exitUsage, "troupe sessions show takes ID"},
		"unknown":         {[]string{"rename", "5e550000-0000-4000-8000-000000000009", "x"}, exitResult, "not found in any project directory"},
		"no id at all":    {[]string{"show", "../../x"}, exitResult, "it must be a UUID"},
		"an empty title":  {[]string{"rename", restFirst, " "}, exitResult, "the title is empty"},
		"no tag":          {[]string{"tag", restFirst}, exitUsage, "there is no tag"},
		"both":            {[]string{"tag", restFirst, "x", "--remove"}, exitUsage, "--remove takes no tag"},
		"another agent":   {[]string{"list", "--agent", "scripted"}, exitUsage, "not one of claude, qoder"},
		"unknown message": {[]string{"fork", restFirst, "--up-to", "x"}, exitResult, "there is no such message"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := newHome(t)
			assert.Equal(t, c.code, w.run(append([]string{"sessions"}, c.args...)...))
			assert.Contains(t, w.err.String(), c.says)
		})
	}
	w := newWorld()
	assert.Equal(t, exitOK, w.run("help", "sessions"))
	assert.Contains(t, w.out.String(), "troupe sessions export")
	for line := range strings.Lines(w.out.String()) {
		assert.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), width+2, line)
	}
	w = newWorld()
	assert.Equal(t, exitUsage, w.run("sessions", "list"), "without a home")
	assert.Contains(t, w.err.String(), "CLAUDE_CONFIG_DIR")
}

// What is odd in a transcript is told, whichever way it is shown; and the text of a recovery
// is no title.
func TestOddTranscriptsAreTold(t *testing.T) {
	t.Parallel()
	w, folder := newHome(t)
	file := filepath.Join(folder, restSecond+".jsonl")
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	show := func(content string, args ...string) string {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		w.out, w.err = &screen{}, &screen{}
		w.stdout, w.stderr = w.out, w.err
		require.Equal(t, exitOK, w.run(append([]string{"sessions"}, args...)...), w.err)
		return w.err.String()
	}
	const circle, mark = "1 chain of parents in the file, which leads back to its own beginning in a circle", "begins with a byte order mark"
	assert.NotContains(t, show(string(good), "show", restSecond), circle)
	assert.NotContains(t, w.err.String(), mark)
	round := strings.Replace(string(good), `"parentUuid":null`, `"parentUuid":"00000000-0000-4000-8000-000000000002"`, 1)
	assert.Contains(t, show(round, "show", restSecond), circle)
	assert.Contains(t, show(round, "show", restSecond, "--resumed"), circle)
	assert.Contains(t, show("\ufeff"+string(good), "show", restSecond), mark)

	recovered := string(good) + `{"type":"last-prompt","lastPrompt":"[Your process stopped while it was working on the last message, and was started again.] Continue where you left off.","sessionId":"` + restSecond + `"}` + "\n"
	show(recovered, "list")
	assert.Contains(t, w.out.String(), "  another\n")
	assert.NotContains(t, w.out.String(), "Your process stopped")
}
