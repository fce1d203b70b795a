package recorded_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/control"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/supervisor"
)

var record = flag.String("record", "", "write a folder of this name in testdata")

// releases are the folders of testdata.
func releases(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/*")
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

// job is the recorded job. The content of its tasks is part of the record.
func job(out string) fleet.Job {
	when := func(word string, steps ...scripted.Step) scripted.Turn {
		return scripted.Turn{When: word, Steps: steps}
	}
	text := "the model is overloaded"
	script := &scripted.Script{Transcript: true, Turns: []scripted.Turn{
		when("was approved, once", scripted.Text("deployed after all")),
		when("add", scripted.Text("It is 4.")),
		when("fail", &scripted.Result{Text: &text, IsError: new(true), APIErrorStatus: 529}),
		when("ask", &scripted.Result{Structured: map[string]any{"answer": 42}}),
		when("deploy", &scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "deploy"}, Result: "deployed"}, scripted.Text("deployed")),
		when("end", scripted.Text("the end")),
	}}
	return fleet.Job{
		ID: "recorded", Out: out, Concurrency: 1, Attempts: 2, Approvals: &fleet.Approvals{Hold: -1},
		Backoff: supervisor.Backoff{Initial: time.Millisecond, Max: time.Millisecond},
		Options: &sdk.Options{Backend: scripted.New(scripted.WithScript(script), scripted.WithHistory(&scripted.MemoryHistory{}))},
		Tasks: []fleet.Task{
			{ID: "add", Prompt: "add 2 and 2", Tags: []string{"sum"}, Labels: map[string]string{"kind": "sum"}},
			{ID: "fail", Prompt: "fail, please"},
			{ID: "ask", Prompt: "ask for a number"},
			{ID: "deploy", Prompt: "deploy it"},
			{ID: "end", Prompt: "end with {{(index .Results \"add\").Text}}", After: []string{"add", "deploy"}},
		},
	}
}

// waiting is where its tasks stand while it waits for a person.
func waiting() []fleet.TaskState {
	return []fleet.TaskState{fleet.TaskOver, fleet.TaskOver, fleet.TaskOver, fleet.TaskWaiting, fleet.TaskQueued}
}

// begin runs the job until it waits for a person.
func begin(t *testing.T, out string, onEvent func(fleet.Event)) (*fleet.Handle, fleet.Approval) {
	t.Helper()
	j := job(out)
	j.OnEvent = onEvent
	h, err := fleet.Start(t.Context(), j)
	require.NoError(t, err)
	waits := func() bool {
		var states []fleet.TaskState
		for _, task := range h.Snapshot().Tasks {
			states = append(states, task.State)
		}
		return slices.Equal(states, waiting()) && len(h.Approvals()) == 1
	}
	require.Eventually(t, waits, 30*time.Second, time.Millisecond)
	return h, h.Approvals()[0]
}

// rest returns the results of a job, by task.
func rest(t *testing.T, h *fleet.Handle) map[string]fleet.TaskResult {
	t.Helper()
	all := map[string]fleet.TaskResult{}
	for r, err := range h.Results(t.Context()) {
		require.NoError(t, err)
		all[r.ID] = r
	}
	return all
}

func copyDir(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, os.CopyFS(to, os.DirFS(from)))
}

// TestRecord writes a folder of testdata, with -record.
func TestRecord(t *testing.T) {
	if *record == "" {
		t.Skip("it writes a record, with -record NAME")
	}
	root, err := filepath.Abs(filepath.Join("testdata", *record))
	require.NoError(t, err)
	cassette, err := os.ReadFile("../../simtests/testdata/claude.jsonl")
	require.NoError(t, err)
	t.Chdir("/") // the record has the directory of the agents
	require.NoError(t, os.MkdirAll(root, 0o755))
	out := filepath.Join(t.TempDir(), "job")
	var events bytes.Buffer
	lines := json.NewEncoder(&events)
	h, call := begin(t, out, func(e fleet.Event) { assert.NoError(t, lines.Encode(e)) })
	server, err := control.Listen(h, out, inspect.Config{})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- server.Serve() }()
	snapshot, err := control.Read(t.Context(), out)
	require.NoError(t, err)
	writeJSON(t, filepath.Join(root, "control", "job.json"), snapshot)
	writeJSON(t, filepath.Join(root, "control", "approvals.json"), h.Approvals())
	require.NoError(t, server.Close())
	require.NoError(t, <-served)
	keep(t, out, filepath.Join(root, "job-waits"))
	require.NoError(t, h.Decide(t.Context(), call.ID, true, ""))
	rest(t, h)
	keep(t, out, filepath.Join(root, "job-over"))
	require.NoError(t, os.WriteFile(filepath.Join(root, "job-over", "events.jsonl"), events.Bytes(), 0o600))
	recordStore(t, filepath.Join(root, "store"))
	require.NoError(t, os.WriteFile(filepath.Join(root, "cassette.jsonl"), cassette, 0o600))
}

func writeJSON(t *testing.T, name string, v any) {
	t.Helper()
	raw, err := json.MarshalIndent(v, "", "  ")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, append(raw, '\n'), 0o600))
}

// keep copies what a job has kept, but for what is large and is made anew, and what belongs to a process.
func keep(t *testing.T, from, to string) {
	t.Helper()
	for _, name := range []string{journal.Name, "results.jsonl", "summary.json", "transcripts"} {
		info, err := os.Stat(filepath.Join(from, name))
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(t, err)
		if info.IsDir() {
			copyDir(t, filepath.Join(from, name), filepath.Join(to, name))
			continue
		}
		raw, err := os.ReadFile(filepath.Join(from, name))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(to, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(to, name), raw, 0o600))
	}
}

// A job that an earlier release has begun is finished by this one, and nothing runs twice.
func TestAJobGoesOn(t *testing.T) {
	t.Parallel()
	for _, release := range releases(t) {
		t.Run(filepath.Base(release), func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "job")
			copyDir(t, filepath.Join(release, "job-waits"), out)
			before, err := fleet.ReadJob(out)
			require.NoError(t, err)
			require.Len(t, before.Approvals, 1)
			j := job(out)
			j.Resume = true
			h, err := fleet.Start(t.Context(), j)
			require.NoError(t, err)
			require.Eventually(t, func() bool { return len(h.Approvals()) == 1 }, 30*time.Second, time.Millisecond)
			require.NoError(t, h.Decide(t.Context(), before.Approvals[0].ID, true, ""))
			all := rest(t, h)
			for id, want := range map[string]struct {
				status   fleet.Status
				attempts int
				earlier  bool
			}{
				"add": {fleet.Accepted, 1, true}, "fail": {fleet.Overloaded, 2, true}, "ask": {fleet.Accepted, 1, true},
				"deploy": {fleet.Accepted, 3, false}, // the agent of this process does not have the session: once more, from the begin
				"end":    {fleet.Accepted, 1, false},
			} {
				r := all[id]
				assert.Equal(t, want.status, r.Status, "%s: %s", id, r.Error)
				assert.Len(t, r.Attempts, want.attempts, id)
				assert.Equal(t, want.earlier, r.Earlier, id)
			}
			assert.Equal(t, "It is 4.", all["add"].Text)
			assert.JSONEq(t, `{"answer":42}`, string(all["ask"].Structured))
			assert.Equal(t, "the end", all["end"].Text)
		})
	}
}

// A job that is over has its results, also for the commands that only read.
func TestAJobThatIsOver(t *testing.T) {
	t.Parallel()
	for _, release := range releases(t) {
		t.Run(filepath.Base(release), func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "job")
			copyDir(t, filepath.Join(release, "job-over"), out)
			j := job(out)
			j.Resume = true
			h, err := fleet.Start(t.Context(), j)
			require.NoError(t, err)
			all := rest(t, h)
			raw, err := os.ReadFile(filepath.Join(release, "job-over", "results.jsonl"))
			require.NoError(t, err)
			lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
			require.Len(t, lines, 5)
			for _, line := range lines {
				var want fleet.TaskResult
				require.NoError(t, json.Unmarshal([]byte(line), &want))
				got := all[want.ID]
				require.True(t, got.Earlier, want.ID)
				got.Earlier, got.Err = false, nil
				again, err := json.Marshal(got)
				require.NoError(t, err)
				assert.JSONEq(t, line, string(again))
			}
		})
	}
}

// The client of this release reads the answers of an earlier release's control server.
func TestAnswersOfControl(t *testing.T) {
	t.Parallel()
	for _, release := range releases(t) {
		t.Run(filepath.Base(release), func(t *testing.T) {
			t.Parallel()
			var snapshot fleet.Snapshot
			readJSON(t, filepath.Join(release, "control", "job.json"), &snapshot)
			var states []fleet.TaskState
			for _, task := range snapshot.Tasks {
				states = append(states, task.State)
			}
			assert.Equal(t, waiting(), states)
			var calls []fleet.Approval
			readJSON(t, filepath.Join(release, "control", "approvals.json"), &calls)
			require.Len(t, calls, 1)
			assert.Equal(t, []string{"deploy", "Bash"}, []string{calls[0].Task, calls[0].Tool})
		})
	}
}

func readJSON(t *testing.T, name string, to any) {
	t.Helper()
	raw, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, to))
}

// A journal of a later format is refused, with both numbers, and not changed.
func TestALaterFormat(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "job")
	copyDir(t, filepath.Join(releases(t)[0], "job-over"), out)
	name := filepath.Join(out, journal.Name)
	raw, err := os.ReadFile(name)
	require.NoError(t, err)
	head, rest, _ := strings.Cut(string(raw), "\n")
	body := strings.Replace(head[:strings.LastIndex(head, `,"crc":`)]+"}", `"format":1`, `"format":2`, 1)
	later := fmt.Sprintf("%s,\"crc\":\"%08x\"}\n%s", body[:len(body)-1], crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli)), rest)
	require.NoError(t, os.WriteFile(name, []byte(later), 0o600))
	j := job(out)
	j.Resume = true
	_, err = fleet.Start(t.Context(), j)
	require.ErrorContains(t, err, "it has format 2, and this release reads format 1")
	after, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, later, string(after))
}
