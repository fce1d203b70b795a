package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
)

const denying = `default: [{tool_use: {name: Bash, input: {command: "git push origin main"}}}, {text: done}]`

// The line of a task that was not accepted says why: its verifier's last line, and each call
// that was denied with its reason. The first one is shown in full, and a hint says once which
// rule would have helped.
func TestBatchSaysWhy(t *testing.T) {
	t.Parallel()
	w, file := newWorld(), taskFile(t, "tasks.jsonl", strings.Repeat("{\"prompt\":\"x\"}\n", 5))
	require.Equal(t, exitResult, w.run("batch", "-a", script(t, denying), file, "-j", "1", "--verify", "echo one; echo two; exit 1"), w.err)
	text := w.err.String()
	const denied = "denied: Bash git push origin main (The host's policy denies this call: no rule is about it.)"
	assert.Contains(t, text, "[1/5] 0001 rejected: the verification rejected it; the verifier said:\n    one\n    two\n  "+denied)
	assert.Contains(t, text, "[2/5] 0002 rejected: the verification rejected it; two; "+denied+"\n")
	assert.Equal(t, 1, strings.Count(text, "hint: "), "once")
	assert.Contains(t, text, "hint: all calls of the first 3 tasks were denied; --allowed-tools 'Bash(git push *)' would allow them\n[4/5]")
	assert.Equal(t, "The host's policy denies this call: no rule is about it.", resultsIn(t, outOf(file))["0005"].Denials[0].Reason)
}

func TestRulesThatWouldAllow(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]fleet.Denial{
		"Bash(go test *)":     {Tool: "Bash", Input: `{"command":"go test ./..."}`},
		"Bash(ls *)":          {Tool: "Bash", Input: `{"command":"ls -la"}`},
		"Bash":                {Tool: "Bash", Input: `{"command":"` + strings.Repeat("x", 200) + "\u2026"},
		"Write":               {Tool: "Write", Input: `{"file_path":"/a"}`},
		"mcp__orders__lookup": {Tool: "mcp__orders__lookup"},
	} {
		assert.Equal(t, want, ruleFor(d))
	}
	assert.Empty(t, ruleHint(nil))
}

func TestDeniedCalls(t *testing.T) {
	t.Parallel()
	r := &fleet.TaskResult{Denied: 5, Denials: []fleet.Denial{
		{Tool: "Bash", Input: `{"command":"make"}`, Reason: "no"}, {Tool: "Bash", Input: `{"command":"make"}`, Reason: "no"}, {Tool: "Odd", Input: `{"a":1}`}, {Tool: "Bare"},
	}}
	assert.Equal(t, []string{"Bash make (no), 2 times", `Odd {"a":1}`, "Bare", "and 1 more call"}, deniedCalls(r))
}

// With --yes, rules add nothing and are no reason for a warning of each task.
func TestBatchYesAndRules(t *testing.T) {
	t.Parallel()
	w, file := newWorld(), taskFile(t, "tasks.jsonl", "{\"prompt\":\"x\"}\n")
	require.Equal(t, exitOK, w.run("batch", "-a", script(t, denying), file, "--yes", "--allowed-tools", "Read,Edit"), w.err)
	assert.NotContains(t, w.err.String(), "warning")
}

// A path is printed only of a file that was written.
func TestBatchNamesWhatIsThere(t *testing.T) {
	t.Parallel()
	now, dir := time.Now(), t.TempDir()
	file := filepath.Join(dir, "report.html")
	assert.False(t, writtenSince(file, now))
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	assert.True(t, writtenSince(file, now))
	assert.False(t, writtenSince(file, now.Add(time.Hour)), "of an earlier run")
}

// A prompt that begins with a slash is for the model, and a success without one is none.
func TestBatchPromptThatIsACommand(t *testing.T) {
	t.Parallel()
	w, file := newWorld(), taskFile(t, "tasks.jsonl", "{\"prompt\":\"/login page is blank\"}\n{\"prompt\":\"x\"}\n{\"prompt\":\"/usage\",\"slash\":true}\n")
	alone := script(t, `default: [{result: {text: "a table", fields: {num_turns: 0, total_cost_usd: 0, modelUsage: {}, duration_api_ms: 0}}}]`)
	require.Equal(t, exitResult, w.run("batch", "-a", alone, file), w.err)
	results := resultsIn(t, outOf(file))
	for id, why := range map[string]string{"0001": "took /login as a command", "0002": "the agent answered by itself", "0003": "took /usage as a command"} {
		assert.Equal(t, fleet.Suspicious, results[id].Status)
		assert.Contains(t, results[id].Error, why)
	}
}

func TestBatchLimits(t *testing.T) {
	t.Parallel()
	s, err := parseBatch(t, []string{"--patience", "5m", "--max-starts", "7", "tasks.jsonl"})
	require.NoError(t, err)
	assert.Equal(t, 5*time.Minute, s.batch.job.Patience)
	assert.Equal(t, 7, s.batch.job.MaxStarts)
	s, err = parseBatch(t, []string{"--patience", "0", "tasks.jsonl"})
	require.NoError(t, err)
	assert.Negative(t, s.batch.job.Patience)
	for _, wrong := range [][]string{{"--patience", "x"}, {"--max-starts", "0"}} {
		_, err = parseBatch(t, append(wrong, "tasks.jsonl"))
		require.ErrorContains(t, err, wrong[0])
	}
}
