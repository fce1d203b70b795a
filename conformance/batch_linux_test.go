//go:build conformance

package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance"
	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
)

// ofSession finds the id of a session in the arguments of its agent.
var ofSession = regexp.MustCompile(`--(?:session-id|resume)=([0-9a-f-]{36})`)

// TestBatch gives 15 tasks to six agents at a time. The endpoint has its limit in the middle,
// two agents are killed, and so is the host: each task has its one result all the same.
func TestBatch(t *testing.T) {
	t.Parallel()
	const count = 15
	r := newRig(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*turnLimit)
	defer cancel()

	// Tasks 7 to 11 meet a limit of the endpoint, twice each.
	r.model.Script("job",
		func(c modelapi.Call) modelapi.Reply {
			reply := modelapi.Reply{Blocks: []modelapi.Block{shell("echo ran >> task-" + c.Arg)}}
			if c.Arg >= "07" && c.Arg <= "11" {
				reply.Fault = &modelapi.Fault{Status: 429, Type: "rate_limit_error", Times: 2, RetryAfter: time.Second}
			}
			return reply
		},
		func(c modelapi.Call) modelapi.Reply {
			return modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text("finished " + c.Arg)}, Delay: 200 * time.Millisecond}
		})
	var tasks bytes.Buffer
	for n := range count {
		fmt.Fprintf(&tasks, "{\"id\":\"t%02d\",\"prompt\":\"do number %02d [[scn:job %02d]]\"}\n", n+1, n+1, n+1)
	}
	file, out := filepath.Join(r.root, "tasks.jsonl"), filepath.Join(r.root, "out")
	require.NoError(t, os.WriteFile(file, tasks.Bytes(), 0o600))
	troupe := filepath.Join(t.TempDir(), "troupe") // outside of the rig, so that its agents alone name it
	built, err := exec.CommandContext(ctx, "go", "build", "-o", troupe, "../cmd/troupe").CombinedOutput()
	require.NoError(t, err, "%s", built)

	var notes bytes.Buffer
	host := func(more ...string) *exec.Cmd {
		args := append([]string{"batch", file, "--agent", "claude", "--path", r.agent.CLI(t), "--out", out, "--add-dir", r.dir, "--concurrency", "6", "--yes"}, more...)
		c := exec.CommandContext(ctx, troupe, args...)
		c.Dir, c.Env, c.Stderr = r.dir, conformance.OfflineEnv(r.model.URL(), r.home), &notes
		require.NoError(t, c.Start())
		return c
	}
	asked := func(task string, step int) { // the model, for this step of a task
		t.Helper()
		_, err := r.model.Wait(ctx, func(q modelapi.Request) bool {
			return q.Marker.Scenario == "job" && q.Marker.Arg == task && q.Marker.Step == step
		})
		require.NoError(t, err, "%s", &notes)
	}
	killed := map[string]int{} // session
	killOne := func() {
		t.Helper()
		for _, p := range processesNaming(r.root) {
			session := ofSession.FindStringSubmatch(p.args)
			if session == nil || !strings.Contains(p.args, "--input-format stream-json") || strings.HasPrefix(p.args, troupe) {
				continue
			}
			killed[session[1]]++
			p.kill()
			return
		}
		t.Fatal("no agent runs")
	}
	first := host()
	asked("04", 1)
	killOne()
	asked("08", 0)
	killOne()
	asked("10", 0)
	require.NoError(t, first.Process.Signal(syscall.SIGKILL))
	require.Error(t, first.Wait())
	require.NoError(t, host("--resume").Wait(), "%s", &notes)

	texts := map[string]string{}
	for _, r := range inLines[fleet.TaskResult](t, filepath.Join(out, "results.jsonl")) {
		assert.NotContains(t, texts, r.ID)
		assert.Equal(t, fleet.Accepted, r.Status, "%s: %s", r.ID, r.Error)
		texts[r.ID] = r.Text
	}
	results, kills, hosts, starts := map[string]int{}, map[string]int{}, 0, 0
	for _, line := range inLines[journal.Record](t, filepath.Join(out, journal.Name)) {
		switch line.Kind {
		case "result":
			results[line.Task]++
		case "host":
			hosts++
		case "starting":
			starts++
			var start struct {
				Session string `json:"session"`
			}
			require.NoError(t, json.Unmarshal(line.Data, &start))
			kills[line.Task] += killed[start.Session]
			delete(killed, start.Session)
		}
	}
	require.Equal(t, 2, hosts)
	assert.Empty(t, killed, "a killed agent belongs to a task")
	for n := range count {
		id := fmt.Sprintf("t%02d", n+1)
		assert.Contains(t, texts[id], "finished "+id[1:])
		assert.Equal(t, 1, results[id], "results of %s in the journal", id)
		ran, err := os.ReadFile(r.at("task-" + id[1:]))
		require.NoError(t, err)
		// The line of a command may be lost with its agent, and the scripted model does not look:
		// it may run again for the kill of the host, and for each of the agent.
		assert.LessOrEqual(t, strings.Count(string(ran), "ran"), 2+kills[id], id)
	}
	assert.Len(t, texts, count)
	assert.Greater(t, starts, count, "some tasks were started again")
	t.Logf("%d tasks, %d starts", count, starts)
}

// inLines reads a file that has an object on each line.
func inLines[T any](t *testing.T, name string) []T {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	var all []T
	for line := range strings.Lines(string(text)) {
		var v T
		require.NoError(t, json.Unmarshal([]byte(line), &v), line)
		all = append(all, v)
	}
	return all
}
