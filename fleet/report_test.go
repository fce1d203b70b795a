package fleet_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
)

// What an agent wrote is text in the report, wherever it stands.
func TestTheReportIsInert(t *testing.T) {
	t.Parallel()
	const evil = "</script></pre><script>alert(1)</script><img src=x onerror=alert(2)><a href=\"javascript:alert(3)\">x</a>{{.}}\x1b[31m\u2028"
	const secret = "sk-very-secret-value"
	yes, text := true, evil
	opts := backend(
		when("good", &scripted.ToolUse{Name: evil, Input: map[string]any{"x": evil}, Result: evil}, scripted.Text(evil+secret)),
		when("bad", &scripted.Result{IsError: &yes, Text: &text}),
	)
	opts.Env = map[string]string{"MY_API_KEY": secret}
	out := t.TempDir()
	results, err := collect(t, fleet.Job{
		ID: evil, Options: opts, Out: out, Tasks: []fleet.Task{
			{ID: "a", Prompt: "good", Tags: []string{evil}, Verify: &fleet.Verify{Command: "printf '%s' '" + strings.ReplaceAll(evil, "'", "") + "'"}},
			{ID: "b", Prompt: "bad"},
		},
	})
	require.NoError(t, err)
	require.Equal(t, fleet.Accepted, results["a"].Status, results["a"].Error)
	page := read(t, out, "report.html")
	assert.Equal(t, 3, strings.Count(page, "<script"), "two transcripts and the report's own")
	assert.Equal(t, 3, strings.Count(page, "</script"))
	for _, live := range []string{"<img", "onerror=alert(2)>", `href="javascript:`, secret, "alert(1)<"} {
		assert.NotContains(t, page, live)
	}
	assert.Contains(t, page, "[redacted]")
	assert.Contains(t, page, "&lt;script&gt;alert(1)")
	assert.Contains(t, page, "default-src &#39;none&#39;")
	assert.Equal(t, 1, strings.Count(page, `class="limit"`)+strings.Count(page, `<span class="agent">failed</span>`))
}

// Without a single result the report says so, too.
func TestAnEmptyReport(t *testing.T) {
	t.Parallel()
	out, yes, text := t.TempDir(), true, "log in"
	_, err := collect(t, fleet.Job{Tasks: tasks(1), Options: backend(turn(&scripted.Result{APIErrorStatus: 401, IsError: &yes, Text: &text})), Out: out})
	require.Error(t, err)
	assert.Contains(t, read(t, out, "report.html"), "stopped: unauthorized")
}
