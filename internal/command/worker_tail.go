package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/queue"
)

// tailOf is what troupe ctl tail asks a worker.
type tailOf struct {
	Job  string `json:"job"`
	Task string `json:"task"`
}

// tail answers a [tailOf] with the lines of the transcript, until the attempt ends.
func (w *worker) tail(ctx context.Context, question []byte, to io.Writer) error {
	var of tailOf
	if err := json.Unmarshal(question, &of); err != nil {
		return err
	}
	at, runs := w.live.Load(of.Job)
	h, _ := at.(*fleet.Handle)
	if !runs {
		return errors.New("the worker does not run the job")
	}
	task := func() (t fleet.TaskInfo) {
		all := h.Snapshot().Tasks
		if i := slices.IndexFunc(all, func(t fleet.TaskInfo) bool { return t.ID == of.Task }); i >= 0 {
			t = all[i]
		}
		return t
	}
	goes := func(t *fleet.TaskInfo) bool { return t.State == fleet.TaskRunning || t.State == fleet.TaskWaiting }
	t := task()
	if !goes(&t) || t.Transcript == "" {
		return errors.New("the task does not run there any more")
	}
	l := &lines{ctx: ctx, goes: func() bool { now := task(); return goes(&now) && now.Transcript == t.Transcript }}
	f, err := l.open(journal.Dir(filepath.Join(w.dirOf(of.Job), "out")), t.Transcript)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for line, err := range l.each {
		if err == nil {
			_, err = to.Write(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tailRemote prints what the agent of a task says on its worker, until the attempt ends; or what the last
// attempt of a task has said that is over.
func (s *settings) tailRemote(ctx context.Context, c *console, cluster Cluster, q queue.Queue, files queue.Files, e *JobEntry, id string) int {
	v, err := look(ctx, q, e)
	if err != nil {
		return machinesFailed(c, err)
	}
	i := slices.IndexFunc(v.Tasks, func(t fleet.TaskInfo) bool { return t.ID == id })
	if i < 0 {
		c.note("the job has no task %q, or no worker has seen it yet", printable(id))
		return exitResult
	}
	var said io.ReadCloser
	switch t := &v.Tasks[i]; {
	case t.State == fleet.TaskOver && t.Transcript != "":
		said, err = files.Get(ctx, fmt.Sprintf("%d/%s", v.fences[id], t.Transcript))
	case t.State == fleet.TaskRunning || t.State == fleet.TaskWaiting:
		question, _ := json.Marshal(tailOf{e.Job, id}) // two texts
		said, err = cluster.Ask(ctx, hostOf(v.by[id]), question)
	default:
		c.note("%s does not run", printable(id))
		return exitResult
	}
	if err != nil {
		return machinesFailed(c, fmt.Errorf("%s: %w", id, err))
	}
	defer func() { _ = said.Close() }()
	l := &lines{ctx: ctx, in: bufio.NewReader(said), goes: func() bool { return false }}
	p := &textPrinter{console: c}
	if err := errors.Join(p.play(l.messages), p.endTurn(nil)); err != nil && ctx.Err() == nil {
		return machinesFailed(c, fmt.Errorf("%s: %w", id, err))
	}
	return exitOK
}

// hostOf is the host in the name that a worker has in queues: see workerJob.complete.
func hostOf(worker string) string {
	for range 2 {
		if at := strings.LastIndexByte(worker, '.'); at >= 0 {
			worker = worker[:at]
		}
	}
	return worker
}
