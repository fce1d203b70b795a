package jobs

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
)

// waiting starts a job, and returns when it has an approval to decide, or is over.
func waiting(t *testing.T, j fleet.Job) (*fleet.Handle, []fleet.Approval) {
	t.Helper()
	h, err := fleet.Start(t.Context(), j)
	require.NoError(t, err)
	t.Cleanup(func() { h.Kill(); <-h.Done() })
	go func() {
		for range h.Results(t.Context()) {
		}
	}()
	deadline := time.After(2 * time.Minute)
	for {
		if all := h.Approvals(); len(all) > 0 {
			return h, all
		}
		select {
		case <-h.Done():
			return h, nil
		case <-deadline:
			t.Fatal("nothing happens")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// "With --approvals a person decides what no rule decides" (docs/fleets.md). Without
// --approvals the same calls are denied. With it they must wait, and not run because the
// agent itself does not ask about them.
func TestApprovalsAreForAllCallsWithoutARule(t *testing.T) {
	for name, c := range map[string]struct {
		use  scripted.ToolUse
		mode sdk.PermissionMode
	}{
		"a read":               {scripted.ToolUse{Name: "Read", Input: map[string]any{"file_path": ".env"}}, ""},
		"a command that reads": {scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "cat .env"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir, out := t.TempDir(), t.TempDir()
			write(t, filepath.Join(dir, ".env"), "TOKEN=x\n")
			use := c.use
			use.Effect = "ran"
			if f, ok := use.Input["file_path"].(string); ok {
				use.Input["file_path"] = filepath.Join(dir, f)
			}
			ran := filepath.Join(t.TempDir(), "ran")
			o := &sdk.Options{Cwd: dir, PermissionMode: c.mode, Backend: scripted.New(
				scripted.WithScript(&scripted.Script{Transcript: true, Default: scripted.Steps{&use, scripted.Text("done")}}), scripted.WithHistory(&scripted.MemoryHistory{}),
				scripted.WithEffect(func(string, string) error { return os.WriteFile(ran, nil, 0o600) }))}
			j := fleet.Job{Tasks: []fleet.Task{{ID: "t", Prompt: "x"}}, Options: o, Out: out, Attempts: 1}
			r := collect(t, j)["t"]
			if exists(ran) {
				t.Fatalf("without approvals it has run: %s", r.Status)
			}
			j.Out, j.Approvals = t.TempDir(), &fleet.Approvals{Hold: time.Hour}
			_, asked := waiting(t, j)
			if len(asked) == 0 || exists(ran) {
				t.Errorf("no rule allows the call, nobody was asked, and it has run (%v)", exists(ran))
			}
		})
	}
}
