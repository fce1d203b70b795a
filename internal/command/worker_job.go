package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/queue"
)

// workerJob is a job that a worker runs.
type workerJob struct {
	w      *worker
	entry  JobEntry
	handle atomic.Pointer[fleet.Handle]
	// reopened: a task was requeued, perhaps when the job had ended here.
	reopened atomic.Bool
	// The loop of the worker has these.
	limit   int
	most    int       // that limit may be, for the job on each worker; 0: what there is
	since   time.Time // it has had its handle, if it has an account
	anew    bool      // this worker has said before that the job is over
	why     string    // it does not run here
	removed bool
	err     error // of run, when that has ended

	mu     sync.Mutex
	stage  int           // how it is to end
	ending chan struct{} // closed by the first end
}

func newWorkerJob(w *worker, e JobEntry) *workerJob {
	return &workerJob{w: w, entry: e, ending: make(chan struct{})}
}

// end ends the job: 1, what runs may end; 2, it is interrupted; 3, it is killed.
func (j *workerJob) end(stage int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if stage <= j.stage {
		return
	}
	if j.stage == 0 {
		close(j.ending)
	}
	j.stage = stage
	j.tell()
}

// tell ends the job as it is to end; mu is held.
func (j *workerJob) tell() {
	h := j.handle.Load()
	switch {
	case h == nil || j.stage == 0:
	case j.stage == 1:
		h.Drain()
	case j.stage == 2:
		h.Cancel()
	default:
		h.Kill()
	}
}

// again is when a job that has stopped begins again here; 0: never.
func (j *workerJob) again() time.Duration {
	var stopped *fleet.StoppedError
	if errors.As(j.err, new(*lacking)) { // it may be installed meanwhile
		return againAfter
	}
	if errors.As(j.err, &stopped) && slices.Contains([]string{fleet.StopOutage, fleet.StopUnauthorized, fleet.StopUsageLimit, fleet.StopQueue}, stopped.Reason) {
		return againAfter
	}
	return 0
}

// run runs the job to its end here. nil: all tasks are over.
func (j *workerJob) run(ctx context.Context) error {
	if j.entry.Protocol > protocolNumber {
		return errNewer
	}
	calls, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-j.ending:
			if j.handle.Load() == nil {
				stop()
			}
		case <-calls.Done():
		}
	}()
	job, end, err := j.prepare(calls)
	if err != nil {
		return err
	}
	defer end()
	if j.anew { // it may have said so when a requeue had come already
		if err := j.w.cluster.NotOver(calls, j.entry.Job); err != nil {
			return err
		}
	}
	h, err := fleet.Start(context.WithoutCancel(ctx), *job)
	if err != nil {
		return err
	}
	if j.w.places > 0 || j.entry.Account != "" {
		h.Retune(0) // the loop gives it its places; nothing has started, since the queue was not read yet
	}
	j.mu.Lock()
	j.handle.Store(h)
	j.w.live.Store(j.entry.Job, h)
	defer j.w.live.CompareAndDelete(j.entry.Job, h)
	j.tell()
	j.mu.Unlock()
	j.w.note("job %s: %d tasks for %s", j.entry.Job, len(job.Tasks), j.entry.Agent)
	for r, err := range h.Results(context.WithoutCancel(ctx)) {
		if err != nil {
			<-h.Done()
			return err
		}
		if r.Worker == job.Worker && !r.Earlier && !j.w.s.quiet {
			j.w.note("job %s: %s: %s", j.entry.Job, r.ID, r.Status)
		}
	}
	<-h.Done()
	if !j.reopened.Load() {
		j.w.s.over(ctx, j.w.console, j.w.cluster, j.entry.Job, func(context.Context) (bool, error) { return j.reopened.Load(), nil })
	}
	return nil
}

// prepare makes the job of a specification, as this machine runs it.
func (j *workerJob) prepare(ctx context.Context) (_ *fleet.Job, end func(), err error) {
	w := j.w
	raw, err := w.cluster.Specification(ctx, j.entry.Job)
	if err != nil {
		return nil, nil, err
	}
	dir := w.dirOf(j.entry.Job)
	files := filepath.Join(dir, "files")
	if err := os.MkdirAll(files, 0o700); err != nil {
		return nil, nil, err
	}
	a := &app{process: w.process, console: w.console}
	s, places, err := a.read(raw, files)
	if err != nil {
		return nil, nil, err
	}
	s.quiet = true
	job := &s.batch.job
	job.ID, job.Title, job.Out = j.entry.Job, j.entry.Title, filepath.Join(dir, "out")
	tasks, kept, end, err := w.cluster.Open(ctx, j.entry)
	if err != nil {
		return nil, nil, err
	}
	if err := j.complete(ctx, s, places, kept); err != nil {
		end()
		return nil, nil, err
	}
	job.Queue, job.Files, job.Share, job.Affinity = tasks, kept, fleet.ShareWork, w.s.machines.affinity
	job.Move = s.machines.move
	return job, end, nil
}

// complete makes the job that was read one of this machine.
func (j *workerJob) complete(ctx context.Context, s *settings, places []place, files queue.Files) error {
	w, job := j.w, &s.batch.job
	dir := w.dirOf(j.entry.Job)
	for _, of := range []string{"places", "work"} {
		if err := os.MkdirAll(filepath.Join(dir, of), 0o700); err != nil {
			return err
		}
	}
	if w := job.Workspace; s.opts.Cwd == "" || w != nil && w.Kind != "" { // this program's directory is not for agents
		s.opts.Cwd = filepath.Join(dir, "work")
	}
	if err := s.unpack(ctx, places, files, filepath.Join(dir, "places")); err != nil {
		return err
	}
	if err := s.chooseAgent(w.process.getenv); err != nil {
		return err
	}
	if s.path == "" && s.opts.PathToExecutable == "" && !s.inCloud() {
		getenv := s.variable(w.process.getenv)
		if what := lacks(s.agent, s.machines.agentVersion, installed(getenv), w.offers.releases(ctx, getenv)); what != "" {
			return &lacking{what}
		}
	}
	if err := s.placeDemonstrations(w.process.getenv); err != nil {
		return err
	}
	s.allow(w.console)
	s.opts.Runtime = w.runtime
	job.Options = &s.opts
	if _, err := os.Stat(filepath.Join(job.Out, journal.Name)); err == nil {
		job.Resume = true
	}
	if job.Concurrency = 1; w.places == 0 {
		job.Concurrency, job.Pace = 0, &fleet.Pace{}
	}
	job.Worker = fmt.Sprintf("%s.%d.%s", w.name, os.Getpid(), w.started.Format("150405"))
	alone := *job
	alone.Queue, alone.Files, alone.Worker, alone.Share = nil, nil, "", ""
	if _, err := alone.Preview(); err != nil {
		return errors.New(s.inTerms(err.Error()))
	}
	return nil
}
