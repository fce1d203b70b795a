package fleet_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/journal/journaltest"
	"github.com/agent-troupe/troupe/policy"
)

// deploying is an agent that makes one call, and says what came of it.
func deploying() []scripted.Turn {
	return []scripted.Turn{
		when("was approved, once", &scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "deploy", "n": 1}, Result: "deployed"}, scripted.Text("end")),
		when("was denied by a person. not on Friday", scripted.Text("I leave it")),
		when("do", scripted.Text("Now I deploy."), &scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "deploy", "n": 1}, Result: "deployed"}, scripted.Text("end")),
	}
}

// asks waits for a call that waits for a person.
func asks(t *testing.T, h *fleet.Handle) fleet.Approval {
	t.Helper()
	var all []fleet.Approval
	require.Eventually(t, func() bool { all = h.Approvals(); return len(all) == 1 }, 20*time.Second, time.Millisecond)
	return all[0]
}

// While the task holds its process the answer goes to the agent.
func TestApprovalAtOnce(t *testing.T) {
	t.Parallel()
	for name, allow := range map[string]bool{"allow": true, "deny": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			h, _ := begun(t, fleet.Job{Tasks: tasks(1), Options: backend(deploying()...), Out: out, Approvals: &fleet.Approvals{Hold: time.Hour}})
			a := asks(t, h)
			assert.Equal(t, []any{"t0", "Bash"}, []any{a.Task, a.Tool})
			assert.JSONEq(t, `{"command":"deploy","n":1}`, string(a.Input))
			assert.Equal(t, "Now I deploy.", a.Said)
			assert.True(t, filepath.IsAbs(a.Cwd), a.Cwd)
			require.ErrorIs(t, h.Decide(t.Context(), a.ID+"x", true, ""), fleet.ErrNoApproval)
			require.NoError(t, h.Decide(t.Context(), a.ID, allow, "not on Friday"))
			require.ErrorIs(t, h.Decide(t.Context(), a.ID, true, ""), fleet.ErrNoApproval, "an answer works once")
			results, err := rest(t, h)
			require.NoError(t, err)
			r := results["t0"]
			assert.Equal(t, fleet.Accepted, r.Status, r.Error)
			assert.Len(t, r.Attempts, 1)
			transcript := read(t, out, r.Transcript)
			assert.Equal(t, allow, strings.Contains(transcript, "deployed"))
			assert.Equal(t, !allow, strings.Contains(transcript, "not on Friday"))
		})
	}
}

// A task that waits for long has no process and no place. It is resumed when it is
// decided, and the same call is allowed once.
func TestApprovalLater(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	all := tasks(2)
	all[1].Prompt = "other"
	job := fleet.Job{Tasks: all, Options: backend(append(deploying(), when("other", scripted.Text("done")))...), Out: out, Concurrency: 1, Approvals: &fleet.Approvals{Hold: -1}}
	h, events := begun(t, job)
	await(t, events, fleet.EventFinished, "t1") // in the only place
	require.Eventually(t, func() bool { return h.Snapshot().Tasks[0].State == fleet.TaskWaiting }, 20*time.Second, time.Millisecond)
	assert.Empty(t, h.Progress().Running)
	a := asks(t, h)
	require.NoError(t, h.Decide(t.Context(), a.ID, true, ""))
	results, err := rest(t, h)
	require.NoError(t, err)
	r := results["t0"]
	require.Len(t, r.Attempts, 2, r.Error)
	assert.Equal(t, []any{fleet.Accepted, fleet.Interrupted, fleet.Mode("resume")}, []any{r.Status, r.Attempts[0].Status, r.Attempts[1].Mode})
	assert.Contains(t, read(t, out, r.Transcript), "deployed")
	assert.NotContains(t, read(t, out, "transcripts/t0.1.jsonl"), "deployed", "it did not run before")
}

// Approvals survive the host, and an answer works once however the host ends.
func TestApprovalsOutliveTheHost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		decision fleet.Answer
		text     string
	}{
		"allowed": {fleet.Answer{Allow: true}, "end"},
		"denied":  {fleet.Answer{Reason: "not on Friday"}, "I leave it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, copied := t.TempDir(), t.TempDir()
			job := fleet.Job{Tasks: tasks(1), Options: backend(deploying()...), Out: out, Approvals: &fleet.Approvals{Hold: time.Hour}}
			h, _ := begun(t, job)
			a := asks(t, h)
			require.Eventually(t, func() bool { s, err := fleet.ReadJob(out); return err == nil && len(s.Approvals) == 1 }, 20*time.Second, time.Millisecond)
			text, err := os.ReadFile(filepath.Join(out, journal.Name)) // of a host that is killed now
			require.NoError(t, err)
			h.Kill()
			_, _ = rest(t, h)
			<-h.Done()
			require.NoError(t, os.WriteFile(filepath.Join(copied, journal.Name), text, 0o600))

			job.Resume, job.Out = true, copied
			h, _ = begun(t, job)
			require.Equal(t, a.ID, asks(t, h).ID, "it waits in the next host")
			assert.Equal(t, fleet.TaskWaiting, h.Snapshot().Tasks[0].State)
			h.Cancel()
			_, err = rest(t, h)
			require.ErrorAs(t, err, new(*fleet.StoppedError))
			<-h.Done()

			c.decision.ID = a.ID
			amend := fleet.Amendment{Answers: []fleet.Answer{c.decision}}
			require.ErrorIs(t, fleet.Amend(t.Context(), copied, fleet.Amendment{Answers: []fleet.Answer{{ID: "x", Allow: true}}}), fleet.ErrNoApproval)
			require.NoError(t, fleet.Amend(t.Context(), copied, amend))
			require.ErrorIs(t, fleet.Amend(t.Context(), copied, amend), fleet.ErrNoApproval)
			results, err := collect(t, job)
			require.NoError(t, err)
			assert.Equal(t, c.text, results["t0"].Text, results["t0"].Error)
			assert.Equal(t, c.decision.Allow, strings.Contains(read(t, copied, results["t0"].Transcript), "deployed"))
		})
	}
}

// Another input is another call, and so is the second time.
func TestAnApprovalIsForOneCall(t *testing.T) {
	t.Parallel()
	use := func(n int) scripted.Step {
		return &scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "deploy", "n": n}, Result: "ok"}
	}
	h, _ := begun(t, fleet.Job{Tasks: tasks(1), Options: backend(turn(use(1), use(1), use(2), scripted.Text("end"))), Out: t.TempDir(), Approvals: &fleet.Approvals{Hold: time.Hour}})
	var ids []string
	for range 3 {
		a := asks(t, h)
		ids = append(ids, a.ID)
		require.NoError(t, h.Decide(t.Context(), a.ID, true, ""))
	}
	_, err := rest(t, h)
	require.NoError(t, err)
	assert.Equal(t, ids[0]+"-2", ids[1])
	assert.NotContains(t, ids[2], ids[0])
}

// slowRecord is a disk whose journal takes its time over the next record of a kind. taken is
// closed when it has begun, and the record waits for release.
func slowRecord(kind string) (disk *journaltest.Disk, taken, release chan struct{}) {
	taken, release = make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	return &journaltest.Disk{Fail: func(op journaltest.Op) error {
		if op.Kind == journaltest.Write && strings.Contains(string(op.Data), `"kind":"`+kind+`"`) && !once.Swap(true) {
			close(taken)
			<-release
		}
		return nil
	}}, taken, release
}

// second is the answer of somebody who decides while the journal still writes the decision of
// another person. He does not wait for it.
func second(t *testing.T, decide func() error, release chan struct{}) error {
	t.Helper()
	said := make(chan error, 1)
	go func() { said <- decide() }()
	defer close(release)
	select {
	case err := <-said:
		return err
	case <-time.After(20 * time.Second):
		return nil
	}
}

// Of two people who answer one call at the same time, one decides.
func TestTwoPeopleAnswerOneCall(t *testing.T) {
	t.Parallel()
	disk, taken, release := slowRecord("decided")
	h, _ := begun(t, fleet.Job{Tasks: tasks(1), Options: backend(deploying()...), Out: t.TempDir(), FS: disk, Approvals: &fleet.Approvals{Hold: time.Hour}})
	a := asks(t, h)
	first := make(chan error, 1)
	go func() { first <- h.Decide(t.Context(), a.ID, true, "") }()
	<-taken
	require.ErrorIs(t, second(t, func() error { return h.Decide(t.Context(), a.ID, false, "no") }, release), fleet.ErrNoApproval)
	require.NoError(t, <-first)
	results, err := rest(t, h)
	require.NoError(t, err)
	assert.Equal(t, "end", results["t0"].Text)
}

// A call is not allowed unless the journal has it that the answer was used. The next host
// allows it, once.
func TestAnAnswerThatCannotBeMarkedAsUsed(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"used", "asked"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			disk := &journaltest.Disk{Fail: func(op journaltest.Op) error {
				if op.Kind == journaltest.Write && strings.Contains(string(op.Data), `"kind":"`+kind+`"`) {
					return syscall.EIO
				}
				return nil
			}}
			job := fleet.Job{Tasks: tasks(1), Options: backend(deploying()...), Out: t.TempDir(), FS: disk, Approvals: &fleet.Approvals{Hold: time.Hour}}
			h, _ := begun(t, job)
			if kind == "used" {
				require.NoError(t, h.Decide(t.Context(), asks(t, h).ID, true, ""))
			}
			_, err := rest(t, h)
			var stopped *fleet.StoppedError
			require.ErrorAs(t, err, &stopped)
			assert.Equal(t, fleet.StopJournal, stopped.Reason)
			<-h.Done()

			after := disk.Crash(disk.Ops(), func(int) int { return 0 })
			require.NotContains(t, script(t, after, "transcripts/t0.1.jsonl"), "deployed", "it did not run")
			job.FS, job.Resume = after, true
			h, _ = begun(t, job)
			if kind == "asked" {
				require.NoError(t, h.Decide(t.Context(), asks(t, h).ID, true, ""))
			}
			results, err := rest(t, h)
			require.NoError(t, err)
			assert.Equal(t, "end", results["t0"].Text, results["t0"].Error)
			assert.Equal(t, 1, strings.Count(script(t, after, results["t0"].Transcript), `"content":"deployed"`), "it ran once")
		})
	}
}

// script is a file of a disk; "": there is none.
func script(t *testing.T, disk *journaltest.Disk, name string) string {
	t.Helper()
	f, err := disk.Read(name)
	if err != nil {
		return ""
	}
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	return string(b)
}

// TestAnAnswerOfAPerson has the rule that asked, another input, and a second person who is too late.
func TestAnAnswerOfAPerson(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	all := tasks(1)
	all[0].Tags = []string{"red"}
	o := backend(when("do", &scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "deploy"}, Result: "deployed ${input}"}, scripted.Text("end")))
	o.Policy = &policy.Rules{Allow: []string{"Read"}, Ask: []string{"Bash(rm *)", "Bash(deploy)"}}
	budget := fleet.Budget{Turns: 1000}
	h, _ := begun(t, fleet.Job{Tasks: all, Options: o, Out: out, Budget: &budget, Approvals: &fleet.Approvals{Hold: time.Hour}})
	a := asks(t, h)
	assert.Equal(t, []string{"Bash(deploy)", "ask", "Options.Policy.Ask[1]"}, []string{a.Rule, a.RuleList, a.RuleFrom})
	assert.Contains(t, a.Reason, "the ask rule Bash(deploy)")
	assert.Equal(t, time.Hour, a.HoldUntil.Sub(a.At))
	assert.Empty(t, a.Diff)
	s := h.Snapshot()
	assert.NotEmpty(t, a.Session)
	assert.Equal(t, a.Session, s.Tasks[0].Session)
	assert.Equal(t, []any{1, &budget, 0.0}, []any{s.Total, s.Budget, s.Rate})
	assert.False(t, s.Started.IsZero())
	assert.Equal(t, []string{"red"}, s.Tasks[0].Tags)
	assert.Equal(t, s.Tasks[0].Since, s.Tasks[0].Began)
	assert.Empty(t, s.Decided)

	require.ErrorContains(t, h.Answer(t.Context(), fleet.Answer{ID: a.ID, Allow: true, Input: json.RawMessage(`[]`)}), "JSON object")
	require.ErrorContains(t, h.Answer(t.Context(), fleet.Answer{ID: a.ID, Input: json.RawMessage(`{}`)}), "denied")
	require.NoError(t, h.Answer(t.Context(), fleet.Answer{ID: a.ID, Allow: true, Input: json.RawMessage(`{"command":"deploy --dry","n":2}`), By: "mira"}))
	err := h.Answer(t.Context(), fleet.Answer{ID: a.ID, By: "tom"})
	var late *fleet.DecidedError
	require.ErrorAs(t, err, &late)
	require.ErrorIs(t, err, fleet.ErrNoApproval)
	assert.Equal(t, []any{"mira", true, true}, []any{late.By, late.Allow, late.Edited})
	assert.Contains(t, err.Error(), "allowed by mira")
	results, err := rest(t, h)
	require.NoError(t, err)
	assert.Equal(t, fleet.Accepted, results["t0"].Status, results["t0"].Error)
	assert.Contains(t, read(t, out, results["t0"].Transcript), `deployed {\"command\":\"deploy --dry\"`)
	s = h.Snapshot()
	require.Len(t, s.Decided, 1)
	assert.Equal(t, late.Decided, s.Decided[0])
	assert.Equal(t, []string{a.ID, "t0", "Bash"}, []string{late.ID, late.Task, late.Tool})
	assert.WithinDuration(t, a.At, late.At, time.Minute)
	assert.Positive(t, s.Rate)
	assert.Equal(t, []any{results["t0"].Ended, "", results["t0"].Started}, []any{s.Tasks[0].Ended, s.Tasks[0].Session, s.Tasks[0].Began})
	<-h.Done()
	kept, err := fleet.ReadJob(out)
	require.NoError(t, err)
	assert.Equal(t, 1, kept.Total)
	assert.Equal(t, []any{[]string{"red"}, s.Tasks[0].Ended.UTC()}, []any{kept.Tasks[0].Tags, kept.Tasks[0].Ended.UTC()})
	assert.Contains(t, read(t, out, journal.Name), `"by":"mira"`)
}
