//go:build conformance

package conformance_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// TestApprovals lets a call wait without a process. Its session is resumed after the
// answer, and what was approved runs once.
func TestApprovals(t *testing.T) {
	t.Parallel()
	for _, rel := range releases() {
		for name, allow := range map[string]bool{"allowed": true, "denied": false} {
			t.Run(string(rel.agent)+", "+name, func(t *testing.T) {
				t.Parallel()
				r := rel.rig(t)
				r.model.Script("deploy", modelapi.Say(shell("echo ran >> deployed")), modelapi.Say(modelapi.Text("Finished.")))
				o := r.options()
				o.Isolation, o.PermissionMode, o.CanUseTool = session.IsolationShared, sdk.ModeDefault, nil
				h, err := fleet.Start(r.ctx, fleet.Job{
					Tasks: []fleet.Task{{ID: "a", Prompt: "go [[scn:deploy]]"}}, Options: o,
					Out: filepath.Join(r.root, "out"), Approvals: &fleet.Approvals{Hold: -1},
				})
				require.NoError(t, err)
				require.Eventually(t, func() bool { s := h.Snapshot(); return len(s.Tasks) == 1 && s.Tasks[0].State == fleet.TaskWaiting }, turnLimit, 10*time.Millisecond)
				r.nothingRuns()
				assert.NoFileExists(t, r.at("deployed"))
				waiting := h.Approvals()
				require.Len(t, waiting, 1)
				require.NoError(t, h.Decide(r.ctx, waiting[0].ID, allow, "not today"))
				var result fleet.TaskResult
				for one, err := range h.Results(r.ctx) {
					require.NoError(t, err)
					result = one
				}
				require.Equal(t, fleet.Accepted, result.Status, result.Error)
				require.Len(t, result.Attempts, 2)
				assert.Equal(t, fleet.Mode("resume"), result.Attempts[1].Mode)
				assert.Equal(t, result.Attempts[0].Session, result.Attempts[1].Session)
				var told string
				for _, q := range r.model.Requests() {
					for _, m := range q.Messages {
						for _, c := range m.Content {
							told += c.Text
						}
					}
				}
				if allow {
					ran, err := os.ReadFile(r.at("deployed"))
					require.NoError(t, err)
					assert.Equal(t, "ran\n", string(ran))
					assert.Contains(t, told, "was approved, once")
				} else {
					assert.NoFileExists(t, r.at("deployed"))
					assert.Contains(t, told, "not today")
				}
			})
		}
	}
}
