package fleet

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/journal/journaltest"
	"github.com/agent-troupe/troupe/sdk"
)

// unpacked is a transcript as the report's script reads it.
func unpacked(t *testing.T, data string) string {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(data)
	require.NoError(t, err)
	z, err := gzip.NewReader(bytes.NewReader(raw))
	require.NoError(t, err)
	text, err := io.ReadAll(z)
	require.NoError(t, err)
	return string(text)
}

// numbered is a text of n lines of 16 bytes.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"line\":%6d}\n", i)
	}
	return b.String()
}

// A long text has its first and its last lines, whole, and the size of the rest.
func TestTheEndsOfALongText(t *testing.T) {
	t.Parallel()
	line := func(from, to int) string { return numbered(to)[from*16:] }
	cut := func(n int) string { return fmt.Sprintf("{\"type\":\"cut\",\"bytes\":%d}\n", n) }
	for name, c := range map[string]struct{ text, want string }{
		"empty":                 {"", ""},
		"short":                 {numbered(3), numbered(3)},
		"as long as it may be":  {numbered(10), numbered(10)},
		"a line more":           {numbered(11), line(0, 5) + cut(32) + line(7, 11)},
		"long":                  {numbered(100_000), line(0, 5) + cut(16*99_991) + line(99_996, 100_000)},
		"one line":              {strings.Repeat("x", 500), cut(500)},
		"a line without an end": {numbered(20) + "half of i", line(0, 5) + cut(16*11) + line(16, 20) + "half of i"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, from := range []io.Reader{strings.NewReader(c.text), iotest.HalfReader(strings.NewReader(c.text)), iotest.DataErrReader(strings.NewReader(c.text))} {
				got, err := ends(from, 160)
				require.NoError(t, err)
				assert.Equal(t, c.want, got)
			}
		})
	}
	_, err := ends(io.MultiReader(strings.NewReader(numbered(20)), iotest.ErrReader(io.ErrUnexpectedEOF)), 160)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// The report has as much of transcripts as its bounds allow; all of them have a link.
func TestTheBoundsOfTheReport(t *testing.T) {
	t.Parallel()
	disk := &journaltest.Disk{}
	r := &reporter{env: &env{hard: t.Context(), job: Job{Options: &sdk.Options{}}}, records: &records{fs: disk, store: &dirStore{fs: disk}}}
	end := &closing{}
	for i, lines := range []int{2000, 3, 2000, 2000, 4} {
		name := transcriptOf(fmt.Sprint("t", i), 1)
		require.NoError(t, journal.WriteFile(disk, name, func(w io.Writer) error { _, err := io.WriteString(w, numbered(lines)); return err }))
		end.results = append(end.results, &TaskResult{ID: fmt.Sprint("t", i), Transcript: name})
	}
	all := r.page(Summary{}, end, bounds{each: 16_000, all: 1 << 20})
	require.Len(t, all.Packs, 5)
	for i, p := range all.Packs {
		text := unpacked(t, p.Data)
		assert.LessOrEqual(t, len(text), 16_000+40)
		assert.Equal(t, i == 1 || i == 4, !strings.Contains(text, `"type":"cut"`))
	}
	few := r.page(Summary{}, end, bounds{each: 16_000, all: len(all.Packs[0].Data) + len(all.Packs[1].Data) + len(all.Packs[4].Data)})
	require.Len(t, few.Rows, 5)
	for i, row := range few.Rows {
		assert.Equal(t, transcriptOf(row.ID, 1), row.File)
		assert.Equal(t, i != 2 && i != 3, row.Pack != "", row.ID)
	}
	require.Len(t, few.Packs, 3)
	whole, err := ends(must(disk.Read(few.Rows[2].File)), 1<<20)
	require.NoError(t, err)
	assert.Equal(t, numbered(2000), whole, "the file has all of it")
}

func must(r io.ReadCloser, err error) io.Reader {
	if err != nil {
		return iotest.ErrReader(err)
	}
	return r
}

// What the options name as secret is not in the report, wherever an agent writes it.
func TestSecretsAreNotInTheReport(t *testing.T) {
	t.Parallel()
	hidden := map[string]string{
		"the job's environment":            "job-secret-1234",
		"a longer one that begins like it": "job-secret-1234-and-more",
		"a task's environment":             "task-secret-1234",
		"one that Configure sets":          "configured-secret",
		"the environment of an MCP server": "mcp-env-secret",
		"of a task's MCP server":           "task-mcp-secret",
		"a header":                         "header-secret-1",
		"the token of a header":            "bearer-secret-1",
		"one that JSON escapes":            `quo"ted\<inside>` + "\nsecond line",
	}
	const harmless = "production"
	said := harmless
	for _, secret := range hidden {
		inner, err := json.Marshal(map[string]string{"inner": secret})
		require.NoError(t, err)
		said += "\n" + secret + "\n" + string(inner)
	}
	opts := &sdk.Options{
		Backend: scripted.New(scripted.WithScript(&scripted.Script{Transcript: true, Default: scripted.Steps{
			&scripted.ToolUse{Name: "Read", Input: map[string]any{"x": said}, Result: said}, scripted.Text(said),
		}})),
		Env: map[string]string{
			"JOB_TOKEN": hidden["the job's environment"], "Other_Key": hidden["a longer one that begins like it"],
			"PRIVATE_KEY": hidden["one that JSON escapes"], "STAGE": harmless,
		},
		MCPServers: map[string]sdk.MCPServerConfig{"web": {
			Type: "http", URL: "http://127.0.0.1:1", Env: map[string]string{"X_SECRET": hidden["the environment of an MCP server"]},
			Headers: map[string]string{"X-Session": hidden["a header"], "Authorization": "Bearer " + hidden["the token of a header"]},
		}},
	}
	own, err := json.Marshal(map[string]any{
		"env":        map[string]string{"TASK_PASSWORD": hidden["a task's environment"]},
		"mcpServers": map[string]any{"own": map[string]any{"command": "x", "env": map[string]string{"API_KEY": hidden["of a task's MCP server"]}}},
	})
	require.NoError(t, err)
	job := Job{
		Out: t.TempDir(), Options: opts, Tasks: []Task{{ID: "a", Prompt: "go"}, {ID: "b", Prompt: "go", Options: own}},
		Verify: &Verify{Check: func(context.Context, Candidate) (Verdict, error) { return Verdict{Output: said}, nil }},
		Configure: func(_ context.Context, task *Task, o *sdk.Options) error {
			if task.ID == "a" {
				o.Env = map[string]string{"AUTH": hidden["one that Configure sets"]}
			}
			return nil
		},
	}
	secretsAreNotIn(t, job, hidden, harmless)
	// A report of results that an earlier process had.
	delete(hidden, "one that Configure sets")
	job.Configure, job.Resume = nil, true
	secretsAreNotIn(t, job, hidden, harmless)
}

func secretsAreNotIn(t *testing.T, job Job, hidden map[string]string, harmless string) {
	t.Helper()
	for _, err := range Run(t.Context(), job) {
		require.NoError(t, err)
	}
	raw, err := os.ReadFile(filepath.Join(job.Out, reportFile))
	require.NoError(t, err)
	page := string(raw)
	packs := regexp.MustCompile(`id="transcript-\d+">([^<]+)<`).FindAllStringSubmatch(page, -1)
	require.Len(t, packs, 2)
	for _, p := range packs {
		page += unpacked(t, p[1])
	}
	for what, secret := range hidden {
		for _, part := range strings.FieldsFunc(secret, func(r rune) bool { return strings.ContainsRune("\"\\<>\n", r) }) {
			if len(part) > 5 {
				assert.NotContains(t, page, part, what)
			}
		}
	}
	assert.NotContains(t, page, "-and-more")
	assert.Contains(t, page, harmless)
	assert.Contains(t, page, "[redacted]")
}

// How many ran is right at each change, and a long job has few steps. How the charts look is
// tested in a browser.
func TestHowManyRan(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	attempt := func(from, to time.Duration) *TaskResult {
		return &TaskResult{Attempts: []Attempt{{Started: at.Add(from), Ended: at.Add(to)}}}
	}
	assert.Equal(t, [][2]int64{}, running(nil))
	ran := running([]*TaskResult{attempt(0, 2*time.Second), attempt(time.Second, 4*time.Second)})
	value := func(after time.Duration) (n int64) {
		for _, p := range ran {
			if p[0] <= at.Add(after).UnixMilli() {
				n = p[1]
			}
		}
		return n
	}
	for after, want := range map[time.Duration]int64{500 * time.Millisecond: 1, 1500 * time.Millisecond: 2, 3 * time.Second: 1, 4 * time.Second: 0} {
		assert.Equal(t, want, value(after), after)
	}
	var many []*TaskResult
	for i := range 5000 {
		many = append(many, attempt(time.Duration(i)*time.Second, time.Duration(i+90)*time.Second))
	}
	ran = running(many)
	assert.LessOrEqual(t, len(ran), 800)
	assert.InDelta(t, 90, value(2500*time.Second), 20)
}
