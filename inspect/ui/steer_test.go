package ui_test

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/inspect/ui"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// fakeJob is a job whose tasks do not run.
type fakeJob struct {
	id string

	mu       sync.Mutex
	state    ui.JobState
	commands []ui.Command
	err      error         // of Do
	wait     chan struct{} // Do waits for it, if it is there
}

type fakeSummary struct {
	Job    string `json:"job"`
	Paused bool   `json:"paused"`
}

type fakeTask struct {
	ID    string `json:"id"`
	State string `json:"state"`
	Error string `json:"error,omitempty"`
}

func newJob() *fakeJob {
	return &fakeJob{id: "job", state: ui.JobState{Summary: fakeSummary{Job: "job"}}}
}

// set changes a task.
func (j *fakeJob) set(t fakeTask, status string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	one := ui.JobTask{ID: t.ID, State: t.State, Status: status, Error: t.Error, Value: t}
	for i := range j.state.Tasks {
		if j.state.Tasks[i].ID == t.ID {
			j.state.Tasks[i] = one
			return
		}
	}
	j.state.Tasks = append(j.state.Tasks, one)
}

func (j *fakeJob) ID() string { return j.id }

func (j *fakeJob) State(context.Context) (ui.JobState, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.state
	s.Tasks, s.Approvals = append([]ui.JobTask{}, s.Tasks...), append([]ui.Approval{}, s.Approvals...)
	return s, nil
}

func (j *fakeJob) Transcript(_ context.Context, task string, at int64) (io.ReadCloser, error) {
	if task != "t" {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(strings.NewReader(strings.Repeat("{\"type\":\"user\",\"message\":{}}\n", 3)[at:])), nil
}

func (j *fakeJob) Do(_ context.Context, c ui.Command) error {
	if j.wait != nil {
		<-j.wait
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if c.Op == ui.Decide && j.err == nil && c.Approval != "c" {
		return ui.ErrDecided
	}
	if j.err == nil {
		j.commands = append(j.commands, c)
		if c.Op == ui.Decide {
			j.state.Approvals = nil
		}
	}
	return j.err
}

// waits makes the call c wait for a person.
func (j *fakeJob) waits() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state.Approvals = append(j.state.Approvals, ui.Approval{ID: "c", Task: "t", Tool: "Bash", Input: json.RawMessage(`{"command": "rm \u001b[2J\u202e"}`), Said: "I clean up.", At: time.Unix(1, 0), Rule: "Bash(rm:*)", Reason: `ask: the ask rule Bash(rm:*) is about "rm \x1b[2J"`})
}

// TestEachChange is every endpoint that changes something, with and without the right to.
func TestEachChange(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t)
	openSession(t, rt, "s", nil, nil)
	rt.Account("main").Join(rt.Clock().Now(), &runtime.AccountPace{}, nil)
	job := newJob()
	job.waits()
	cfg := open()
	cfg.Jobs = func() []ui.Job { return []ui.Job{job} }
	p := serve(t, ui.Handler(rt, cfg)).enter("mira")
	closed := cfg
	closed.Access.Steer = false
	readonly := serve(t, ui.Handler(rt, closed)).enter("jon")
	p.awaitEvents(rt)
	for _, c := range []struct {
		path, body string
		status     int
		did        string // in the text of the event
	}{
		{"api/sessions/s/interrupt", "", 202, "interrupt of the turn"},
		{"api/sessions/s/close", "", 202, "close"},
		{"api/sessions/none/close", "", 404, ""},
		{"api/jobs/job/pause", "", 202, "paused"},
		{"api/jobs/job/resume", "", 202, "resumed"},
		{"api/jobs/none/resume", "", 404, ""},
		{"api/jobs/job/retune", `{"limit": 7}`, 202, "retuned to 7"},
		{"api/jobs/job/retune", `{}`, 400, ""},
		{"api/jobs/job/retune", `{"limit": 7, "other": 1}`, 400, ""},
		{"api/jobs/job/cancel", `{"confirm": "job"}`, 202, "canceled"},
		{"api/jobs/job/cancel", `{"confirm": "other"}`, 400, ""},
		{"api/jobs/job/tasks/t%2Fx/cancel", "", 202, "task t/x canceled"},
		{"api/jobs/job/tasks/t/requeue", "", 202, "task t requeued"},
		{"api/accounts/main/park", `{"for_ms": 60000, "why": "lunch"}`, 202, "parked for 1m0s"},
		{"api/accounts/main/park", `{"for_ms": 0}`, 202, "unparked"},
		{"api/accounts/main/park", `{"for_ms": -1}`, 400, ""},
		{"api/accounts/none/park", `{"for_ms": 1}`, 404, ""},
		{"api/accounts/main/retune", `{"limit": 3}`, 202, "retuned to 3"},
		{"api/accounts/main/retune", `{}`, 400, ""},
		{"api/accounts/none/retune", `{"limit": 3}`, 404, ""},
		{"api/approvals/job:c", `{"allow": true}`, 200, "allowed Bash of t"},
	} {
		status, text, _ := readonly.do(http.MethodPost, c.path, c.body, nil)
		assert.Equal(t, http.StatusForbidden, status, c.path)
		assert.Contains(t, text, "Access.Steer")
		status, _, _ = p.do(http.MethodPost, c.path, c.body, func(r *http.Request) { r.Header.Del("X-Troupe-Csrf") })
		assert.Equal(t, http.StatusForbidden, status, c.path)
		require.Equal(t, c.did == "", len(p.events(func() {
			status, text, _ = p.do(http.MethodPost, c.path, c.body, nil)
			assert.Equal(t, c.status, status, "%s %s: %s", c.path, c.body, text)
		}, c.did)) == 0, c.path)
	}
	var ops []string
	for _, c := range job.commands {
		ops = append(ops, string(c.Op)+" "+c.Task+c.Approval)
	}
	assert.Equal(t, []string{"pause ", "resume ", "retune ", "cancel ", "cancel_task t/x", "requeue_task t", "decide c"}, ops, "nothing else reached the job")
	assert.Equal(t, 7, job.commands[2].Limit)
	assert.Equal(t, "mira", job.commands[6].Verdict.Who)
	assert.Empty(t, rt.Accounts()[0].Parked)
	assert.Equal(t, 3, rt.Accounts()[0].Limit)
	assert.Len(t, rt.Accounts(), 1, "an account is not made by its name")
	require.Eventually(t, func() bool { return rt.Session("s") == nil }, 10*time.Second, time.Millisecond)
}

// events returns the events by mira that have the text, if there is one, of what do does.
func (p *page) events(do func(), text string) (found []string) {
	p.t.Helper()
	if text == "" {
		do()
		return nil
	}
	p.follow("", func(f frame) bool {
		if f.kind == "hello" {
			do()
		}
		if f.kind == "event" && f.data["who"] == "mira" && strings.Contains(f.data["text"].(string), text+" by mira") {
			found = append(found, f.data["text"].(string))
		}
		return len(found) > 0
	})
	return found
}

// TestErrorsOfAJob are those that a person meets.
func TestErrorsOfAJob(t *testing.T) {
	t.Parallel()
	job := newJob()
	cfg := open()
	cfg.Jobs = func() []ui.Job { return []ui.Job{job, newJob()} }
	p := serve(t, ui.Handler(newRuntime(t), cfg)).enter("mira")
	for err, want := range map[error]int{ui.ErrNoTask: 404, ui.ErrOver: 409, ui.ErrUnsupported: 422, io.ErrUnexpectedEOF: 500} {
		job.err = err
		status, _, _ := p.do(http.MethodPost, "api/jobs/job/tasks/t/cancel", "", nil)
		assert.Equal(t, want, status, err)
	}
	for err, want := range map[error]int{&ui.DecidedError{}: 409, ui.ErrDecided: 410, ui.ErrOver: 410, ui.ErrUnsupported: 422, io.ErrUnexpectedEOF: 500} {
		job.err = err
		job.waits()
		w := serve(t, ui.Handler(newRuntime(t), cfg)).enter("mira") // another one has no answers yet
		status, _, _ := w.do(http.MethodPost, "api/approvals/job:c", `{"allow": true}`, nil)
		assert.Equal(t, want, status, err)
	}
}

// TestTwoPeopleAnswer has one answer that counts.
func TestTwoPeopleAnswer(t *testing.T) {
	t.Parallel()
	job := newJob()
	job.waits()
	job.wait = make(chan struct{})
	cfg := open()
	cfg.Jobs = func() []ui.Job { return []ui.Job{job} }
	w := ui.Handler(newRuntime(t), cfg)
	mira := serve(t, w).enter("mira")
	jon := (&page{t: t, w: w, http: browser(t), base: mira.base}).enter("jon")
	type outcome struct {
		status int
		text   string
	}
	outcomes := make(chan outcome, 2)
	for _, p := range []*page{mira, jon} {
		go func() {
			status, text, _ := p.do(http.MethodPost, "api/approvals/job:c", `{"reason": "Keep it.", "allow": false}`, nil)
			outcomes <- outcome{status, text}
		}()
	}
	close(job.wait)
	a, b := <-outcomes, <-outcomes
	if a.status != http.StatusOK {
		a, b = b, a
	}
	assert.Equal(t, http.StatusOK, a.status)
	assert.Equal(t, http.StatusConflict, b.status)
	assert.JSONEq(t, a.text, b.text, "the second learns what the first has said")
	var first struct {
		Who, Reason string
		Allow       bool
	}
	require.NoError(t, json.Unmarshal([]byte(b.text), &first))
	assert.Contains(t, []string{"mira", "jon"}, first.Who)
	assert.Equal(t, "Keep it.", first.Reason)
	assert.Len(t, job.commands, 1)
	status, _, _ := jon.do(http.MethodPost, "api/approvals/job:never", `{"allow": true}`, nil)
	assert.Equal(t, http.StatusGone, status)
	for _, body := range []string{`{"allow": false, "input": {}}`, `{"allow": true, "input": [1]}`, `{"allow": 1}`} {
		status, _, _ = jon.do(http.MethodPost, "api/approvals/job:c", body, nil)
		assert.Equal(t, http.StatusBadRequest, status, body)
	}
}

// TestTheDesk answers calls: as they are, with another input, and with a reason.
func TestTheDesk(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t)
	cfg := open()
	cfg.Desk = ui.NewDesk(rt)
	p := serve(t, ui.Handler(rt, cfg)).enter("mira")
	var list struct {
		Approvals []ui.Approval `json:"approvals"`
	}
	for body, want := range map[string]sdk.PermissionResult{
		`{"allow": true}`: sdk.Allow(),
		`{"allow": true, "input": {"command": "pwd"}}`: sdk.AllowInput(json.RawMessage(`{"command": "pwd"}`)),
		`{"allow": false, "reason": "Not today."}`:     sdk.Deny("A person has denied this call. Not today."),
		`{}`: sdk.Deny("A person has denied this call."),
	} {
		results := make(chan sdk.PermissionResult, 1)
		s := openSession(t, rt, "", []scripted.Turn{{Steps: scripted.Steps{&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "ls"}, Gate: "ask"}}}},
			func(spec *runtime.Spec) {
				spec.Options.CanUseTool = func(ctx context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
					result, err := cfg.Desk.CanUseTool(ctx, r)
					results <- result
					return result, err
				}
			})
		send(t, s, "go")
		require.Eventually(t, func() bool { p.read("api/approvals", &list); return len(list.Approvals) == 1 }, 10*time.Second, time.Millisecond)
		call := list.Approvals[0]
		assert.Equal(t, s.ID(), call.Session)
		assert.Equal(t, "Bash", call.Tool)
		assert.JSONEq(t, `{"command": "ls"}`, string(call.Input))
		assert.True(t, call.Answer)
		status, text, _ := p.do(http.MethodPost, "api/approvals/"+call.ID, body, nil)
		require.Equal(t, http.StatusOK, status, text)
		assert.Equal(t, want, <-results)
		p.read("api/approvals", &list)
		assert.Empty(t, list.Approvals)
		require.NoError(t, s.Close(t.Context()))
	}
}

// TestQuestionsOfAnInteractiveClient are answered at the window or by the program.
func TestQuestionsOfAnInteractiveClient(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t)
	cfg := open()
	cfg.Desk = ui.NewDesk(rt)
	p := serve(t, ui.Handler(rt, cfg)).enter("mira")
	call := scripted.Turn{Steps: scripted.Steps{&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "ls"}, Gate: "ask"}}}
	c := sdk.NewInteractive(&sdk.Options{Runtime: rt, Backend: scripted.New(scripted.WithScript(&scripted.Script{Turns: []scripted.Turn{call, call}}))})
	require.NoError(t, c.Connect(t.Context()))
	defer func() { assert.NoError(t, c.Close(t.Context())) }()
	var list struct {
		Approvals []ui.Approval `json:"approvals"`
	}
	n := 0
	ask := func() {
		_, err := c.Send(t.Context(), sdk.UserText("go"))
		require.NoError(t, err)
	}
	ask()
	for u, err := range c.Updates(t.Context()) {
		require.NoError(t, err)
		if _, over := u.Message.(*protocol.ResultMessage); over {
			if n == 2 {
				break
			}
			ask()
		}
		if u.Permission == nil {
			continue
		}
		n++
		cfg.Desk.Ask("s", u.Permission)
		p.read("api/approvals", &list)
		require.Len(t, list.Approvals, 1)
		answer := func() int {
			status, _, _ := p.do(http.MethodPost, "api/approvals/"+list.Approvals[0].ID, `{"allow": true}`, nil)
			return status
		}
		if n == 1 {
			assert.Equal(t, http.StatusOK, answer())
			assert.False(t, u.Permission.Answer(sdk.Deny("")), "one answer counts")
		} else {
			assert.True(t, u.Permission.Answer(sdk.Deny("")))
			assert.Equal(t, http.StatusGone, answer())
		}
	}
	assert.Equal(t, 2, n)
}

// TestACallThatIsWithdrawn is one whose session has ended.
func TestACallThatIsWithdrawn(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t)
	cfg := open()
	cfg.Desk = ui.NewDesk(rt)
	p := serve(t, ui.Handler(rt, cfg)).enter("mira")
	s := openSession(t, rt, "", []scripted.Turn{{Steps: scripted.Steps{&scripted.ToolUse{Name: "Bash", Input: map[string]any{}, Gate: "ask"}}}},
		func(spec *runtime.Spec) { spec.Options.CanUseTool = cfg.Desk.CanUseTool })
	var id string
	ticks := 0
	p.follow("", func(f frame) bool {
		switch f.kind {
		case "tick":
			if ticks++; ticks == 2 { // the first look, which says nothing of the calls that it finds, is over
				send(t, s, "go")
			}
		case "approval":
			id = f.data["id"].(string)
			require.NoError(t, s.Kill(t.Context()))
		case "decided":
			assert.Equal(t, id, f.data["id"])
			assert.NotContains(t, f.data, "allow")
			return true
		}
		return false
	})
	status, _, _ := p.do(http.MethodPost, "api/approvals/"+id, `{"allow": true}`, nil)
	assert.Equal(t, http.StatusGone, status)
}

// TestWithoutContent is a window that shows no text of agents and people.
func TestWithoutContent(t *testing.T) {
	t.Parallel()
	job := newJob()
	job.waits()
	for _, content := range []bool{true, false} {
		p := serve(t, ui.Handler(newRuntime(t), ui.Config{Access: inspect.Access{Content: content}, Jobs: func() []ui.Job { return []ui.Job{job} }})).enter("")
		status, text, _ := p.get("api/approvals")
		assert.Equal(t, http.StatusOK, status)
		assert.Contains(t, text, "Bash")
		assert.Equal(t, content, strings.Contains(text, "rm "), text)
		assert.Equal(t, content, strings.Contains(text, "clean up"), text)
		assert.Contains(t, text, `"rule":"Bash(rm:*)"`)
		assert.NotContains(t, text, "\x1b")
		assert.NotContains(t, text, "\u202e")
	}
}

// TestTasksByChange is a page that follows a job.
func TestTasksByChange(t *testing.T) {
	t.Parallel()
	job := newJob()
	for _, id := range []string{"a", "b", "c"} {
		job.set(fakeTask{ID: id, State: "queued"}, "")
	}
	cfg := open()
	cfg.Jobs = func() []ui.Job { return []ui.Job{job} }
	p := serve(t, ui.Handler(newRuntime(t), cfg)).enter("")
	cursor := ""
	part := func() (ids []string, more bool) {
		var answer struct {
			Tasks  []fakeTask
			Cursor string
			More   bool
		}
		p.read("api/jobs/job/tasks?limit=2&after="+cursor, &answer)
		for _, t := range answer.Tasks {
			ids = append(ids, t.ID+" "+t.State)
		}
		cursor = answer.Cursor
		return ids, answer.More
	}
	ids, more := part()
	assert.Equal(t, []string{"a queued", "b queued"}, ids)
	assert.True(t, more)
	job.set(fakeTask{ID: "a", State: "running"}, "")
	ids, more = part()
	assert.Equal(t, []string{"c queued", "a running"}, ids)
	assert.False(t, more)
	ids, _ = part()
	assert.Empty(t, ids)
	ticks := 0
	p.follow("", func(f frame) bool {
		switch f.kind {
		case "tick":
			if ticks++; ticks == 2 { // the first look, which says nothing of what it finds, is over
				job.set(fakeTask{ID: "b", State: "over", Error: "no\u202e"}, "rejected")
			}
		case "task":
			assert.Equal(t, "job", f.data["job"])
			assert.Equal(t, []any{map[string]any{"id": "b", "state": "over", "error": "no\u202e"}}, f.data["tasks"])
			return true
		}
		return false
	})
	var whole struct {
		Total    int
		States   map[string]int
		Failures []struct {
			Status, Error string
			Count         int
		}
		Running []fakeTask
	}
	p.read("api/jobs/job", &whole)
	assert.Equal(t, 3, whole.Total)
	assert.Equal(t, map[string]int{"queued": 1, "running": 1, "over": 1}, whole.States)
	require.Len(t, whole.Failures, 1)
	assert.Equal(t, "rejected", whole.Failures[0].Status)
	assert.Equal(t, "a", whole.Running[0].ID)
}
