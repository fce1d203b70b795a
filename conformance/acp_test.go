//go:build conformance

package conformance_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance"
	"github.com/agent-troupe/troupe/conformance/modelapi"
)

// acpLine is a line that testdata/acp-editor.mjs prints.
type acpLine struct {
	Kind   string
	Update struct {
		Kind    string `json:"sessionUpdate"`
		Status  string
		Content json.RawMessage
	}
	Options    []string
	StopReason string
	Error      int
	IDs        []string
	Code       json.RawMessage
	Result     json.RawMessage
}

// acpEditor has the client of the official npm package drive troupe acp, with the real
// CLI behind it.
func acpEditor(r *rig, prompts ...string) []acpLine {
	r.t.Helper()
	sdk := conformance.ACPSDK.CLI(r.t)
	troupe := filepath.Join(r.t.TempDir(), "troupe")
	out, err := exec.CommandContext(r.ctx, "go", "build", "-o", troupe, "../cmd/troupe").CombinedOutput()
	require.NoError(r.t, err, "%s", out)
	script, err := filepath.Abs("testdata/acp-editor.mjs")
	require.NoError(r.t, err)
	args := append([]string{script, r.dir}, prompts...)
	args = append(args, "--", troupe, "acp", "--agent", "claude", "--path", r.agent.CLI(r.t), "--add-dir", r.dir)
	cmd := exec.CommandContext(r.ctx, "node", args...)
	var printed, notes bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &notes
	cmd.Env = append(conformance.OfflineEnv(r.model.URL(), r.home), "ACP_SDK="+sdk)
	require.NoError(r.t, cmd.Run(), "%s", &notes)
	var lines []acpLine
	for text := range strings.Lines(printed.String()) {
		var l acpLine
		require.NoError(r.t, json.Unmarshal([]byte(text), &l), text)
		lines = append(lines, l)
	}
	return lines
}

// outlineACP is what the editor was told, in short.
func outlineACP(lines []acpLine) (out []string) {
	for _, l := range lines {
		switch u := l.Update; {
		case u.Kind == "available_commands_update" || u.Kind == "usage_update" || u.Kind == "session_info_update":
		case u.Kind == "agent_message_chunk" && len(out) > 0 && out[len(out)-1] == u.Kind: // one for each delta
		case l.Kind == "update":
			out = append(out, strings.TrimSpace(u.Kind+" "+u.Status))
		case l.Kind == "answer" && l.Error != 0:
			out = append(out, "error")
		case l.Kind == "answer":
			out = append(out, l.StopReason)
		case l.Kind == "permission":
			out = append(out, "permission")
		case l.Kind == "history":
			out = append(out, l.Kind)
		}
	}
	return out
}

func TestACP(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	touch := r.touch("made")
	r.model.Script("denied", modelapi.Say(shell("touch denied")), modelapi.Say(modelapi.Text("Not done.")))
	r.model.Script("hold", modelapi.Say(r.holding(nil)), modelapi.Say(modelapi.Text("Hold done.")))
	r.model.Script("bad", modelapi.Always(modelapi.Reply{Fault: &modelapi.Fault{Status: 400, Type: "invalid_request_error", Times: 9}}))
	lines := acpEditor(r, "hello [[scn:text]]", touch, "deny: it [[scn:denied]]", "cancel: it [[scn:hold]]", "bad [[scn:bad]]")
	call := []string{"tool_call pending", "tool_call_update", "permission"}
	want := []string{"agent_message_chunk", "end_turn"}
	want = append(append(want, call...), "tool_call_update in_progress", "tool_call_update completed", "agent_message_chunk", "end_turn")
	want = append(append(want, call...), "tool_call_update failed", "agent_message_chunk", "end_turn")
	want = append(append(want, call...), "tool_call_update in_progress", "tool_call_update failed", "cancelled")
	want = append(want, "error", "history")
	told := outlineACP(lines)
	require.GreaterOrEqual(t, len(told), len(want), told)
	assert.Equal(t, want, told[:len(want)])
	assert.FileExists(t, r.at("made"))
	assert.NoFileExists(t, r.at("denied"))
	history := told[len(want):]
	assert.Equal(t, []string{"user_message_chunk", "agent_message_chunk", "user_message_chunk", "tool_call pending", "tool_call_update completed", "agent_message_chunk"}, history[:min(6, len(history))])
	assert.True(t, slices.ContainsFunc(lines, func(l acpLine) bool { return l.Update.Kind == "session_info_update" }), "a title")
	for _, l := range lines {
		switch l.Kind {
		case "list":
			assert.Len(t, l.IDs, 1)
		case "exit":
			assert.Equal(t, "0", string(l.Code)) // also if an update had no reader any more
		}
	}
	_, err := os.Stat(filepath.Join(r.home, ".claude"))
	assert.NoError(t, err)
}
