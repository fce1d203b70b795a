package troupenats

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agent "github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/contrib/nats/embedded"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/supervisor"
	"github.com/agent-troupe/troupe/transcript"
)

// testdata/recorded has a folder for each release, named like it, with the streams that it has made:
// of a job that waits for a person, of that job when it is over, and of a store of sessions. A folder
// is never changed after its release. go test -run TestRecord . -record NAME makes a new one.
var recordTo = flag.String("record", "", "write a folder of this name in testdata/recorded")

const recordedJob = "recorded"

func recordings(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/recorded/*")
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

// eachRecording plays a test for each release, with the streams of a part of its folder on a server
// that has restored them.
func eachRecording(t *testing.T, part string, play func(t *testing.T, folder string, nc *nats.Conn)) {
	t.Helper()
	for _, folder := range recordings(t) {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			nc := single(t)(t, newNetwork())
			streams, err := filepath.Glob(filepath.Join(folder, part, "*", backupState))
			require.NoError(t, err)
			require.NotEmpty(t, streams)
			for _, stream := range streams {
				restore(t, nc, filepath.Dir(stream))
			}
			play(t, filepath.Join(folder, part), nc)
		})
	}
}

// long is a result that is too large for a message on the server of the recording.
var long = strings.Repeat("so it is. ", 32<<10)

// ofRecord is the recorded job. The content of its tasks is part of the record: it makes their hashes.
func ofRecord(t *testing.T, nc *nats.Conn, worker string) fleet.Job {
	t.Helper()
	when := func(word string, steps ...scripted.Step) scripted.Turn {
		return scripted.Turn{When: word, Steps: steps}
	}
	text := "the model is overloaded"
	script := &scripted.Script{Transcript: true, Turns: []scripted.Turn{
		when("was approved, once", scripted.Text("deployed after all")),
		when("add", scripted.Text("It is 4.")),
		when("fail", &scripted.Result{Text: &text, IsError: new(true), APIErrorStatus: 529}),
		when("ask", &scripted.Result{Structured: map[string]any{"answer": 42}}),
		when("write", scripted.Text(long)),
		when("deploy", &scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "deploy"}, Result: "deployed"}, scripted.Text("deployed")),
		when("end", scripted.Text("the end")),
	}}
	// The lease of the recorded program ends while the streams are in the file.
	cfg := Config{Job: recordedJob, TTL: 5 * time.Second}
	files, err := OpenFiles(t.Context(), nc, cfg)
	require.NoError(t, err)
	return fleet.Job{
		ID: recordedJob, Out: filepath.Join(t.TempDir(), "job"), Concurrency: 1, Attempts: 2, Approvals: &fleet.Approvals{Hold: -1},
		Queue: opened(t, nc, cfg), Files: files, Worker: worker,
		Backoff: supervisor.Backoff{Initial: time.Millisecond, Max: time.Millisecond},
		Options: &sdk.Options{Backend: scripted.New(scripted.WithScript(script), scripted.WithHistory(&scripted.MemoryHistory{}))},
		Tasks: []fleet.Task{
			{ID: "add", Prompt: "add 2 and 2", Tags: []string{"sum"}, Labels: map[string]string{"kind": "sum"}},
			{ID: "fail", Prompt: "fail, please"},
			{ID: "ask", Prompt: "ask for a number"},
			{ID: "write.it", Prompt: "write much"},
			{ID: "deploy", Prompt: "deploy it"},
			{ID: "end", Prompt: "end with {{(index .Results \"add\").Text}}", After: []string{"add", "deploy"}},
		},
	}
}

// untilAsked starts the job, and returns when only the task that a person has to approve is left.
func untilAsked(t *testing.T, j fleet.Job) (*fleet.Handle, fleet.Approval) {
	t.Helper()
	h, err := fleet.Start(t.Context(), j)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		states := map[fleet.TaskState]int{}
		for _, task := range h.Snapshot().Tasks {
			states[task.State]++
		}
		return states[fleet.TaskOver] == 4 && states[fleet.TaskWaiting] == 1 && len(h.Approvals()) == 1
	}, time.Minute, 5*time.Millisecond)
	return h, h.Approvals()[0]
}

func resultsOf(t *testing.T, h *fleet.Handle) map[string]fleet.TaskResult {
	t.Helper()
	all := map[string]fleet.TaskResult{}
	for r, err := range h.Results(t.Context()) {
		require.NoError(t, err)
		all[r.ID] = r
	}
	return all
}

// TestRecord writes a folder of testdata/recorded, with -record.
func TestRecord(t *testing.T) { //nolint:paralleltest // it changes the directory of the process
	if *recordTo == "" {
		t.Skip("it writes a record, with -record NAME")
	}
	root, err := filepath.Abs(filepath.Join("testdata/recorded", *recordTo))
	require.NoError(t, err)
	t.Chdir("/") // the record has the directory of the agents
	s, err := embedded.Start(embedded.Config{Dir: t.TempDir(), MaxPayload: 256 << 10})
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	nc, err := s.Connect()
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	j := ofRecord(t, nc, "first")
	require.NoError(t, j.Files.Put(t.Context(), "notes/short", strings.NewReader("buy bread")))
	require.NoError(t, j.Files.Put(t.Context(), "notes/long", strings.NewReader(long)))
	h, call := untilAsked(t, j)
	keepStreams(t, nc, filepath.Join(root, "job-waits"))
	require.NoError(t, h.Decide(t.Context(), call.ID, true, ""))
	all := resultsOf(t, h)
	keepStreams(t, nc, filepath.Join(root, "job-over"))
	var lines bytes.Buffer
	for _, id := range slices.Sorted(maps.Keys(all)) {
		r := all[id]
		r.Text = strings.ReplaceAll(r.Text, long, "long")
		require.NoError(t, json.NewEncoder(&lines).Encode(&r))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "job-over", "results.jsonl"), lines.Bytes(), 0o600))
	result, err := sdk.Run(t.Context(), "What do the notes say?", remembering(t, nc))
	require.NoError(t, err)
	require.Equal(t, "I was given 1 messages.", result.Result)
	backUp(t, nc, "TROUPE_S_sessions", filepath.Join(root, "sessions", "TROUPE_S_sessions"))
}

func keepStreams(t *testing.T, nc *nats.Conn, to string) {
	t.Helper()
	for _, stream := range []string{queueStream(recordedJob), filesStream(recordedJob), objectStream(recordedJob)} {
		backUp(t, nc, stream, filepath.Join(to, stream))
	}
}

// A job that a program of an earlier release has begun, on a machine that is gone, is finished by one of
// this release.
func TestARecordedJobContinues(t *testing.T) {
	t.Parallel()
	eachRecording(t, "job-waits", func(t *testing.T, _ string, nc *nats.Conn) {
		t.Helper()
		h, call := untilAsked(t, ofRecord(t, nc, "second"))
		assert.Equal(t, []string{"deploy", "Bash"}, []string{call.Task, call.Tool})
		require.NoError(t, h.Decide(t.Context(), call.ID, true, ""))
		all := resultsOf(t, h)
		for id, want := range map[string]struct {
			status   fleet.Status
			attempts int
			worker   string
			text     string
		}{
			"add": {fleet.Accepted, 1, "first", "It is 4."}, "fail": {fleet.Overloaded, 2, "first", ""},
			"ask": {fleet.Accepted, 1, "first", ""}, "write.it": {fleet.Accepted, 1, "first", long},
			"deploy": {fleet.Accepted, 2, "second", "deployed after all"}, "end": {fleet.Accepted, 1, "second", "the end"},
		} {
			r := all[id]
			assert.Equal(t, want.status, r.Status, "%s: %s", id, r.Error)
			assert.Len(t, r.Attempts, want.attempts, id)
			assert.Equal(t, want.worker, r.Worker, id)
			if want.text != "" {
				assert.Equal(t, want.text, r.Text, id)
			}
		}
		assert.JSONEq(t, `{"answer":42}`, string(all["ask"].Structured))
		assert.Greater(t, all["deploy"].Fence, all["write.it"].Fence)
	})
}

// A program that takes the task reads one start, and the call that waits for a person.
func TestARecordedNote(t *testing.T) {
	t.Parallel()
	eachRecording(t, "job-waits", func(t *testing.T, _ string, nc *nats.Conn) {
		t.Helper()
		q := opened(t, nc, Config{Job: recordedJob})
		_, err := q.Lease(t.Context(), "write.it", "second")
		require.ErrorIs(t, err, queue.ErrFinished)
		_, err = q.Lease(t.Context(), "other", "second")
		require.ErrorIs(t, err, queue.ErrNotOffered)
		var l queue.Lease
		require.Eventually(t, func() bool { // the recorded lease ends
			l, err = q.Lease(t.Context(), "deploy", "second")
			return err == nil
		}, time.Minute, 20*time.Millisecond)
		assert.Equal(t, 1, l.Starts)
		var note fleet.TaskNote
		require.NoError(t, json.Unmarshal(l.Note, &note))
		assert.Equal(t, "first", note.Worker)
		assert.False(t, note.Running, "its agent does not wait")
		require.Len(t, note.Approvals, 1)
		assert.Equal(t, "Bash", note.Approvals[0].Tool)
		l, err = q.Lease(t.Context(), "end", "second")
		require.NoError(t, err)
		assert.Zero(t, l.Starts)
	})
}

// A job that was over before has its results and its files, and nothing runs again.
func TestARecordedJobThatIsOver(t *testing.T) {
	t.Parallel()
	eachRecording(t, "job-over", func(t *testing.T, folder string, nc *nats.Conn) {
		t.Helper()
		j := ofRecord(t, nc, "second")
		h, err := fleet.Start(t.Context(), j)
		require.NoError(t, err)
		all := resultsOf(t, h)
		raw, err := os.ReadFile(filepath.Join(folder, "results.jsonl"))
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
		require.Len(t, lines, len(j.Tasks))
		for _, line := range lines {
			var want fleet.TaskResult
			require.NoError(t, json.Unmarshal([]byte(line), &want))
			got := all[want.ID]
			assert.Equal(t, "first", got.Worker, want.ID)
			got.Text = strings.ReplaceAll(got.Text, long, "long")
			again, err := json.Marshal(&got)
			require.NoError(t, err)
			assert.JSONEq(t, line, string(again))
		}
		for name, want := range map[string]string{"notes/short": "buy bread", "notes/long": long} {
			f, err := j.Files.Get(t.Context(), name)
			require.NoError(t, err)
			content, err := io.ReadAll(f)
			require.NoError(t, err)
			require.NoError(t, f.Close())
			assert.Equal(t, want, string(content), name)
		}
	})
}

// remembering is an agent whose model says how many messages it was given.
func remembering(t *testing.T, nc *nats.Conn) *sdk.Options {
	t.Helper()
	m := &modeltest.Server{Script: func(r *modeltest.Request) *modeltest.Answer {
		return modeltest.Say(modeltest.Text(fmt.Sprintf("I was given %d messages.", len(r.Messages))))
	}}
	return &sdk.Options{
		Backend: agent.New(agent.Config{Model: m.Anthropic(model.Config{}), Name: "claude-sonnet-4-5", Dir: t.TempDir()}),
		Cwd:     "/", SessionStore: transcripts(t, nc, ""),
	}
}

// A session that an earlier release has stored is listed, read and continued by this one.
func TestARecordedSession(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the directory of the recorded session is /, which is another one here")
	}
	eachRecording(t, "sessions", func(t *testing.T, _ string, nc *nats.Conn) {
		t.Helper()
		sessions := &transcript.Sessions{Vendor: transcript.Claude, Store: transcripts(t, nc, ""), Dir: "/"}
		all, err := sessions.List(t.Context(), transcript.ListOptions{})
		require.NoError(t, err)
		require.Len(t, all, 1)
		var said []string
		for m, err := range sessions.Messages(t.Context(), all[0].SessionID, transcript.ShownOptions{}) {
			require.NoError(t, err)
			said = append(said, string(m.Message))
		}
		require.Len(t, said, 2)
		assert.Contains(t, said[0], "What do the notes say?")
		assert.Contains(t, said[1], "I was given 1 messages.")
		o := remembering(t, nc)
		o.Resume = all[0].SessionID
		result, err := sdk.Run(t.Context(), "And now?", o)
		require.NoError(t, err)
		assert.Equal(t, "I was given 3 messages.", result.Result)
	})
}
