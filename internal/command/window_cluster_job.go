package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/inspect/ui"
)

// clusterJob is a job that workers share, as its queue shows it.
type clusterJob struct {
	w    *clusterWindow
	name string
	ctx  context.Context //nolint:containedctx // until which it is followed
	stop context.CancelFunc

	mu      sync.Mutex
	entry   JobEntry
	q       queue.Queue // nil until it is open
	files   queue.Files
	current bool // what was so at the beginning has been read
	paused  bool
	limit   int
	order   []string // ids of tasks
	tasks   map[string]*clusterTask
	answers map[string]*ui.DecidedError // to calls, by ticket and id: a task that was requeued may make the same call
}

// clusterTask is the last ticket of a task.
type clusterTask struct {
	fleet.TaskInfo
	Worker string `json:"worker,omitempty"`

	number int    // of the ticket
	fence  uint64 // of its lease, or of its result
	calls  []fleet.Approval
	turns  int
}

func newClusterJob(w *clusterWindow, e JobEntry) *clusterJob {
	j := &clusterJob{w: w, name: e.Job, entry: e, tasks: map[string]*clusterTask{}, answers: map[string]*ui.DecidedError{}}
	j.ctx, j.stop = context.WithCancel(w.ctx)
	return j
}

func (j *clusterJob) learn(e JobEntry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entry = e
}

// follow reads the queue until the job is not shown any more. A read that fails is tried again.
func (j *clusterJob) follow() {
	for j.ctx.Err() == nil {
		j.read()
		select {
		case <-j.ctx.Done():
		case <-time.After(clusterLook):
		}
	}
}

func (j *clusterJob) read() {
	j.mu.Lock()
	e := j.entry
	j.current = false
	j.mu.Unlock()
	q, files, end, err := j.w.cluster.Open(j.ctx, e)
	if err != nil {
		return
	}
	defer end()
	j.mu.Lock()
	j.q, j.files = q, files
	j.mu.Unlock()
	defer func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.q = nil
	}()
	for change, err := range q.Watch(j.ctx) {
		if err != nil {
			return
		}
		j.take(&change, time.Now())
	}
}

// take takes a change of the queue.
func (j *clusterJob) take(change *queue.Change, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if d := change.Decision; d != nil {
		switch d.Op {
		case "pause", "resume":
			j.paused = d.Op == "pause"
		case "retune":
			j.limit, _ = strconv.Atoi(d.Arg) // 0: as the workers say
		case "allow", "deny":
			j.answered(d)
		}
		return
	}
	if change.State == queue.Current {
		j.current = true
		return
	}
	if change.Task == "" {
		return
	}
	id, requeued, _ := strings.Cut(change.Task, "#")
	n, _ := strconv.Atoi(requeued) // "": the first ticket
	last := j.tasks[id]
	if last != nil && n < last.number {
		return
	}
	t := &clusterTask{TaskInfo: fleet.TaskInfo{ID: id, State: fleet.TaskQueued}, number: n, fence: change.Fence}
	t.read(change)
	if t.turns = t.Usage.Turns; last == nil {
		j.order = append(j.order, id)
	} else {
		t.Began, t.Since, t.Ended = last.Began, last.Since, last.Ended
	}
	j.tasks[id] = t
	if !j.current {
		return
	}
	switch { // the queue has no times: they are those of this program
	case t.State == fleet.TaskRunning && (last == nil || last.State != fleet.TaskRunning || last.Worker != t.Worker):
		t.Since = now
		if t.Began.IsZero() || last.State == fleet.TaskOver {
			t.Began, t.Ended = now, time.Time{}
		}
	case t.State == fleet.TaskOver && (last == nil || last.State != fleet.TaskOver):
		t.Ended, t.Since = now, time.Time{}
	}
}

// answered takes the answer to a call; mu is held.
func (j *clusterJob) answered(d *queue.Decision) {
	v := ui.Verdict{Allow: d.Op == "allow", Who: d.By}
	switch {
	case !v.Allow:
		v.Reason = d.Arg
	case d.Arg != "":
		v.Input = json.RawMessage(d.Arg)
	}
	j.answers[d.Task+d.ID[strings.LastIndexByte(d.ID, '.'):]] = &ui.DecidedError{Verdict: v, At: d.At}
}

// waiting are the calls of a task without an answer: its worker may not have taken note of one; mu is held.
func (j *clusterJob) waiting(t *clusterTask) []fleet.Approval {
	return slices.DeleteFunc(slices.Clone(t.calls), func(a fleet.Approval) bool { return j.answers[t.call(a.ID)] != nil })
}

// call is the key of an answer to a call of the task.
func (t *clusterTask) call(id string) string {
	if t.number > 0 {
		return t.ID + "#" + strconv.Itoa(t.number) + "." + id
	}
	return t.ID + "." + id
}

// keyOf is that of a call that waits, or of one that was answered; mu is held.
func (j *clusterJob) keyOf(call string) (key string) {
	for _, t := range j.tasks {
		if slices.ContainsFunc(t.calls, func(a fleet.Approval) bool { return a.ID == call }) {
			return t.call(call)
		}
	}
	for key := range j.answers {
		if strings.HasSuffix(key, "."+call) {
			return key
		}
	}
	return ""
}

// read takes what a change says of the task.
func (t *clusterTask) read(change *queue.Change) {
	var note fleet.TaskNote
	var r fleet.TaskResult
	switch {
	case change.State == queue.Over && json.Unmarshal(change.Result, &r) == nil:
		t.Status, t.Error, t.Attempts, t.Usage, t.OnAccept, t.Transcript = r.Status, r.Error, len(r.Attempts), r.Usage, r.OnAccept, r.Transcript
		if t.OnAccept != nil {
			t.OnAccept.Output = "" // it may have a secret, and no page shows it
		}
	case len(change.Note) > 0 && json.Unmarshal(change.Note, &note) == nil:
		t.Usage, t.calls = note.Usage, note.Approvals
	}
	t.Worker = hostOf(cmp.Or(change.Worker, note.Worker))
	switch {
	case change.State == queue.Over:
		t.State = fleet.TaskOver
	case len(t.calls) > 0:
		t.State = fleet.TaskWaiting
	case change.State == queue.Leased:
		t.State = fleet.TaskRunning
	}
}

// sums are the calls that wait, the cost and the turns so far.
func (j *clusterJob) sums() (gates int, usd float64, turns int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, t := range j.tasks {
		gates, usd, turns = gates+len(j.waiting(t)), usd+t.Usage.USD, turns+t.turns
	}
	return gates, usd, turns
}

// running yields the tasks that a worker runs.
func (j *clusterJob) running(worker string, each func(*clusterTask)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, id := range j.order {
		if t := j.tasks[id]; t.State == fleet.TaskRunning && t.Worker == worker {
			each(t)
		}
	}
}

// ID implements [ui.Job].
func (j *clusterJob) ID() string { return j.name }

// State implements [ui.Job].
func (j *clusterJob) State(context.Context) (ui.JobState, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := fleet.Snapshot{
		Job: j.entry.Job, Host: j.entry.Submitter, Live: j.entry.State == JobOpen, Paused: j.paused, Limit: j.limit, Started: j.entry.Submitted,
		ByStatus: map[fleet.Status]int{}, Total: j.entry.Tasks,
	}
	var state ui.JobState
	recent, now := 0, time.Now()
	for _, id := range j.order {
		t := j.tasks[id]
		if t.State == fleet.TaskOver {
			if s.ByStatus[t.Status]++; now.Sub(t.Ended) < 10*time.Minute {
				recent++
			}
		}
		s.Usage.USD, s.Usage.Turns, s.Usage.Credits = s.Usage.USD+t.Usage.USD, s.Usage.Turns+t.Usage.Turns, s.Usage.Credits+t.Usage.Credits
		one := *t
		if one.Worker != "" && one.Doing == "" && one.State != fleet.TaskOver {
			one.Doing = "at " + one.Worker
		}
		state.Tasks = append(state.Tasks, ui.JobTask{ID: id, State: string(t.State), Status: string(t.Status), Error: t.Error, Since: t.Since, Value: one})
		for _, a := range j.waiting(t) {
			state.Approvals = append(state.Approvals, ui.Approval{
				ID: a.ID, Task: a.Task, Attempt: a.Attempt, Tool: a.Tool, Input: a.Input, Cwd: a.Cwd, Said: a.Said, At: a.At,
				HoldUntil: a.HoldUntil, Rule: a.Rule, RuleList: a.RuleList, RuleFrom: a.RuleFrom, Reason: a.Reason, Diff: a.Diff,
			})
		}
	}
	s.Rate = float64(recent) / 10
	state.Summary = s
	return state, nil
}

// listened is how long a worker is asked, which sends what the agent of a task says as it comes.
const listened = time.Second

// Transcript implements [ui.Job]. The servers have the transcript of a task that is over; its worker is
// asked for that of a task that runs, and the answer is what comes within a second.
func (j *clusterJob) Transcript(ctx context.Context, id string, at int64) (r io.ReadCloser, err error) {
	j.mu.Lock()
	t, files := j.tasks[id], j.files
	if t == nil || j.q == nil {
		j.mu.Unlock()
		return nil, fmt.Errorf("task %s of %s: %w", id, j.name, fs.ErrNotExist)
	}
	state, worker, name := t.State, t.Worker, fmt.Sprintf("%d/%s", t.fence, t.Transcript)
	missing := state == fleet.TaskOver && t.Transcript == ""
	j.mu.Unlock()
	switch {
	case missing || state == fleet.TaskQueued:
		return nil, fmt.Errorf("task %s of %s has no transcript: %w", id, j.name, fs.ErrNotExist)
	case state == fleet.TaskOver:
		r, err = files.Get(ctx, name)
	default:
		question, _ := json.Marshal(tailOf{j.name, id}) // two texts
		heard, stop := context.WithTimeout(ctx, listened)
		defer stop()
		answer, asked := j.w.cluster.Ask(heard, worker, question)
		if asked != nil {
			return nil, fmt.Errorf("task %s of %s: %w: %w", id, j.name, fs.ErrNotExist, asked)
		}
		raw, _ := io.ReadAll(io.LimitReader(answer, maxSaid)) // until the time is over
		_ = answer.Close()
		r = io.NopCloser(bytes.NewReader(raw[:bytes.LastIndexByte(raw, '\n')+1]))
	}
	if err != nil {
		return nil, fmt.Errorf("task %s of %s: %w: %w", id, j.name, fs.ErrNotExist, err)
	}
	if _, err := io.CopyN(io.Discard, r, at); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// maxSaid is the most bytes that are read of a transcript that is being written.
const maxSaid = 16 << 20

// Do implements [ui.Job].
func (j *clusterJob) Do(ctx context.Context, c ui.Command) error {
	o := fleet.Order{Task: c.Task, By: c.Who}
	switch c.Op {
	case ui.Pause, ui.Resume:
		o.Op = string(c.Op)
	case ui.Retune:
		if o.Op, o.N = "retune", c.Limit; c.Limit < 1 {
			return fmt.Errorf("%w: a limit of each worker is from 1; pause the job to start nothing", ui.ErrUnsupported)
		}
	case ui.CancelJob, ui.CancelTask: // without a task: all tasks
		o.Op = "cancel"
	case ui.RequeueTask:
		o.Op = "requeue"
	case ui.Decide:
		if o.Op, o.Approval, o.Reason = "deny", c.Approval, c.Verdict.Reason; c.Verdict.Allow {
			o.Op, o.Reason, o.Input = "allow", "", c.Verdict.Input
		}
		o.By = cmp.Or(c.Verdict.Who, c.Who)
	default:
		return ui.ErrUnsupported
	}
	j.mu.Lock()
	q, over, first := j.q, j.entry.State == JobOver, j.answers[j.keyOf(c.Approval)]
	j.mu.Unlock()
	switch {
	case c.Op == ui.CancelJob && over:
		return fmt.Errorf("job %s: %w", j.name, ui.ErrOver)
	case c.Op == ui.Decide && first != nil:
		return first
	}
	if q == nil {
		return errors.New("the servers do not answer now: try again")
	}
	if err := fleet.Decide(ctx, q, o); err != nil {
		return ofWindow(err)
	}
	if c.Op == ui.Decide { // the queue may report the answer later
		c.Verdict.Who = o.By
		j.mu.Lock()
		if key := j.keyOf(c.Approval); key != "" && j.answers[key] == nil {
			j.answers[key] = &ui.DecidedError{Verdict: c.Verdict, At: time.Now()}
		}
		j.mu.Unlock()
	}
	if c.Op == ui.RequeueTask { // the job may have ended meanwhile
		if err := j.w.cluster.Reopen(ctx, j.name); err != nil {
			return err
		}
	}
	what := strings.TrimSpace(o.Op + " " + o.Task + o.Approval)
	switch {
	case c.Op == ui.CancelJob:
		what = "canceled"
	case o.Input != nil:
		what += " with changed input"
	}
	if o.N > 0 {
		what += " " + strconv.Itoa(o.N)
	}
	j.w.did(clusterID, o.By, "job "+j.name+": "+what)
	return nil
}

// ofWindow makes an error of a job match that of the window.
func ofWindow(err error) error {
	for is, as := range map[error]error{fleet.ErrNoTask: ui.ErrNoTask, fleet.ErrTaskOver: ui.ErrOver, fleet.ErrJobOver: ui.ErrOver, fleet.ErrNoApproval: ui.ErrDecided} {
		if errors.Is(err, is) {
			return fmt.Errorf("%w: %w", as, err)
		}
	}
	return err
}
