package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/runtime"
)

const (
	beatEvery = 10 * time.Second
	// beatFile is written when the servers have taken a heartbeat.
	beatFile = "alive"
	// shareEvery is how often the places are given to the jobs again.
	shareEvery = 200 * time.Millisecond
	// againAfter is when a job that has stopped here, but not elsewhere, begins again.
	againAfter = time.Minute
)

// worker runs jobs. Only its loop touches it.
type worker struct {
	process process
	console *console
	s       *settings
	cluster Cluster
	runtime *runtime.Runtime
	name    string // of the host
	places  int    // 0: as many as the model's API takes
	started time.Time

	jobs  map[string]*workerJob
	order []string        // of the jobs, the oldest one first
	done  map[string]bool // jobs that were over here
	over  chan *workerJob
	stage int // how many signals to end it has had

	offers offers
	live   sync.Map               // the *fleet.Handle of each job that runs, by its name
	around atomic.Pointer[around] // as of the last heartbeat
	parked map[string]time.Time   // accounts of which the others know
	soon   bool                   // there is news for a heartbeat
}

func newWorker(p process, c *console, s *settings, cluster Cluster, rt *runtime.Runtime) *worker {
	w := &worker{
		process: p, console: c, s: s, cluster: cluster, runtime: rt, started: time.Now().UTC(),
		name: cmp.Or(s.machines.servers.Name, hostName()), jobs: map[string]*workerJob{}, done: map[string]bool{}, parked: map[string]time.Time{}, over: make(chan *workerJob),
	}
	if s.batch.job.Pace == nil {
		w.places = cmp.Or(s.batch.job.Concurrency, 4)
	}
	return w
}

// play runs the jobs of the servers until a signal.
func (w *worker) play(ctx context.Context) int {
	watching, stop := context.WithCancel(ctx)
	changes, failed := make(chan JobChange), make(chan error, 1)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for change, err := range w.cluster.Watch(watching) {
			if err != nil {
				failed <- err
				return
			}
			select {
			case changes <- change:
			case <-watching.Done():
				return
			}
		}
	}()
	beats := w.beating(ctx)
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := w.cluster.Serve(watching, w.name, w.tail); err != nil {
			w.note("troupe ctl tail does not reach this worker: %v", err)
		}
	}()
	defer func() {
		stop()
		<-watched
		<-served
		beats.end()
	}()
	share, grace := time.NewTicker(shareEvery), time.NewTimer(time.Hour)
	grace.Stop()
	defer share.Stop()
	beats.tell(w.entry())
	told := time.Now()
	var lost error
	for w.stage == 0 || len(w.jobs) > 0 {
		select {
		case change := <-changes:
			if change.Drain == "" {
				w.changed(ctx, change)
			} else if change.Drain == w.name && change.Started.Equal(w.started) && w.stage == 0 {
				w.note("drained from elsewhere: nothing more starts, and what runs may end within %s", w.s.machines.grace)
				w.stage, told = 1, time.Time{}
				grace.Reset(w.s.machines.grace)
				w.escalate()
			}
		case j := <-w.over:
			w.ended(ctx, j)
		case sig := <-w.process.signals:
			w.console.toMargin()
			if w.stage == 0 {
				grace.Reset(w.s.machines.grace)
			}
			if w.stage++; w.stage == 1 {
				w.note("%v: nothing more starts, and what runs may end within %s", sig, w.s.machines.grace)
			}
			w.escalate()
			told = time.Time{}
		case <-grace.C:
			w.note("the time of --grace is over: what runs is interrupted, and other workers get it")
			w.stage = max(w.stage, 2)
			w.escalate()
		case lost = <-failed:
			w.note("%v", lost)
			w.stage = max(w.stage, 2)
			w.escalate()
		case <-share.C:
			if w.share(ctx) {
				w.soon = true
			}
			if time.Since(told) >= beatEvery || w.soon {
				told, w.soon = time.Now(), false
				beats.tell(w.entry())
			}
		}
	}
	over, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
	defer cancel()
	_ = w.cluster.Leave(over, w.name)
	if lost != nil {
		return exitDied
	}
	return exitOK
}

func (w *worker) note(format string, a ...any) {
	w.console.note("%s", printable(fmt.Sprintf(format, a...)))
}

// escalate ends the jobs as the stage says.
func (w *worker) escalate() {
	for _, name := range slices.Clone(w.order) {
		w.jobs[name].end(w.stage)
	}
}

// changed takes what the servers say about a job.
func (w *worker) changed(ctx context.Context, change JobChange) {
	j := w.jobs[change.Job]
	switch {
	case !jobName.MatchString(change.Job): // it would be a path
	case change.Removed || change.State == JobRemoving:
		if j != nil {
			j.removed = true
			j.end(3)
		} else if change.Removed {
			w.forget(change.Job)
		}
	case j != nil && change.State == JobOver: // its last results are on their way
	case j != nil && change.State == JobOpen: // the job that runs may have ended before it has read of the requeue
		j.reopened.Store(true)
	case j != nil || change.State != JobOpen || w.stage > 0:
	case !fits(w.s.machines.labels, change.Labels):
	default:
		w.order = append(w.order, change.Job)
		w.begin(ctx, newWorkerJob(w, change.JobEntry))
		slices.SortStableFunc(w.order, func(a, b string) int { return w.jobs[a].entry.Submitted.Compare(w.jobs[b].entry.Submitted) })
	}
}

// begin runs a job.
func (w *worker) begin(ctx context.Context, j *workerJob) {
	w.jobs[j.entry.Job], w.soon = j, true
	j.anew = w.done[j.entry.Job]
	go func() {
		j.err = j.run(ctx)
		w.over <- j
	}()
}

// ended takes the end of a job. One that has stopped here by something that passes begins again.
func (w *worker) ended(ctx context.Context, j *workerJob) {
	name := j.entry.Job
	switch again := j.again(); {
	case j.removed:
		w.drop(name)
		w.forget(name)
	case j.err == nil && j.reopened.Load() && w.stage == 0:
		w.done[name] = true
		w.begin(ctx, newWorkerJob(w, j.entry))
	case j.err == nil:
		w.done[name] = true
		w.drop(name)
		w.note("job %s: all tasks are over", name)
	case w.stage > 0:
		w.drop(name)
	case again > 0:
		w.note("job %s: %v; it begins again here in %s", name, j.err, again)
		next := newWorkerJob(w, j.entry)
		next.why = j.err.Error()
		w.jobs[name] = next
		go func() {
			select {
			case <-time.After(again):
				next.err = next.run(ctx)
			case <-next.ending:
				next.err = context.Canceled
			}
			w.over <- next
		}()
	default:
		// It stays, so that its heartbeat says why it does not run here.
		w.note("job %s does not run here: %v", name, j.err)
		next := newWorkerJob(w, j.entry)
		next.why = j.err.Error()
		w.jobs[name] = next
		go func() {
			<-next.ending
			next.err = context.Canceled
			w.over <- next
		}()
	}
}

func (w *worker) drop(name string) {
	delete(w.jobs, name)
	w.order = slices.DeleteFunc(w.order, func(o string) bool { return o == name })
}

// forget removes the files of a job that was removed.
func (w *worker) forget(name string) {
	delete(w.done, name)
	if err := os.RemoveAll(w.dirOf(name)); err != nil {
		w.note("job %s was removed, but its files are not: %v", name, err)
	}
}

func (w *worker) dirOf(job string) string { return filepath.Join(w.s.machines.dir, "jobs", job) }

// entry is what the worker says of itself.
func (w *worker) entry() HostEntry {
	e := HostEntry{
		Host: w.name, Machine: hostName(), PID: os.Getpid(), Version: strings.Fields(version())[1], Protocol: protocolNumber,
		Agents: installed(w.process.getenv), Labels: w.s.machines.labels, Places: w.places, Draining: w.stage > 0,
		Started: w.started, Seen: time.Now().UTC(),
	}
	for _, a := range w.process.agents {
		e.Agents = append(e.Agents, a.Name)
	}
	for _, name := range w.order {
		j := w.jobs[name]
		of := HostJob{Job: name, Account: j.entry.Account, Why: j.why}
		if h := j.handle.Load(); h != nil {
			of.Why = "" // of an earlier begin
			at := h.Progress()
			for _, r := range at.Running {
				of.Running = append(of.Running, r.ID)
			}
			of.Over, of.USD, of.Turns = at.Finished, at.Usage.USD, at.Usage.Turns
		}
		e.Running += len(of.Running)
		e.Jobs = append(e.Jobs, of)
	}
	return e
}

// beats sends heartbeats, the newest one only: the servers may be silent.
type beats struct {
	next chan HostEntry
	stop context.CancelFunc
	over chan struct{}
}

func (w *worker) beating(ctx context.Context) *beats {
	ctx, stop := context.WithCancel(ctx)
	b := &beats{make(chan HostEntry, 1), stop, make(chan struct{})}
	file := filepath.Join(w.s.machines.dir, beatFile)
	go func() {
		defer close(b.over)
		defer func() { _ = os.Remove(file) }()
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-b.next:
				e.Releases = w.offers.releases(ctx, w.process.getenv)
				err := w.cluster.Beat(ctx, e)
				if err == nil {
					err = w.look(ctx)
				}
				if err == nil {
					err = os.WriteFile(file, []byte(e.Seen.Format(time.RFC3339)+"\n"), 0o600)
				}
				if err != nil && !errors.Is(err, context.Canceled) {
					w.note("no heartbeat: %v", err)
				}
			}
		}
	}()
	return b
}

// look asks for the other hosts, and for what is known of accounts.
func (w *worker) look(ctx context.Context) error {
	at := time.Now()
	hosts, err := w.cluster.Hosts(ctx)
	if err != nil {
		return err
	}
	caps, err := w.cluster.Caps(ctx)
	if err != nil {
		return err
	}
	w.around.Store(&around{at, hosts, caps})
	return nil
}

func (b *beats) tell(e HostEntry) {
	select {
	case <-b.next:
	default:
	}
	b.next <- e
}

func (b *beats) end() {
	b.stop()
	<-b.over
}
