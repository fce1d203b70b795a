package kernel

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// patience is how long a job may be left undone for a task, and nearly twice
	// that at most.
	patience = time.Millisecond
	// quick is what a task takes that is not worth waking another goroutine for.
	quick = 100 * time.Microsecond
)

// Relief keeps up a job that is one goroutine's at a time, as to read from a
// pipe, while that goroutine runs a task. To wake another goroutine for each
// task costs more than most tasks take. So nobody does the job while a task runs
// if the last one was quick; but another goroutine takes it over from a task
// that has run for [patience], as Go's scheduler takes a processor from a system
// call that lasts.
//
// It is used by whoever does the job at the time.
type Relief struct {
	overseer *overseer
	exec     Executor
	job      func()
	quick    atomic.Bool // the last task was

	// Guarded by overseer.mu.
	turns uint64 // how often the job was left for a task
	at    int    // place in overseer.posts
	left  bool   // the job is left undone
	seen  bool   // it was already so when the overseer last looked
}

// NewRelief returns the relief of a job, which is done until it returns. Tasks
// may end their goroutine instead of returning.
func (s *System) NewRelief(job func()) *Relief {
	return &Relief{overseer: &s.overseer, exec: s.cfg.Executor, job: job}
}

// During runs the task, and reports whether the caller has to go on with the
// job; otherwise another goroutine has it by now.
func (r *Relief) During(task func()) (resume bool) {
	if !r.quick.Load() {
		r.exec.Go(r.job)
		r.run(task)
		return false
	}
	turn := r.overseer.leave(r)
	ended := true
	defer func() {
		if ended && r.overseer.resume(r, turn) {
			r.exec.Go(r.job)
		}
	}()
	r.run(task)
	ended = false
	return r.overseer.resume(r, turn)
}

// Meanwhile runs the task and then the job, which another goroutine takes over
// from a task that takes its time. In a simulation the job comes first.
func (s *System) Meanwhile(task, job func()) {
	if !s.prolong {
		job()
		task()
		return
	}
	r := s.NewRelief(job)
	r.quick.Store(true)
	if r.During(task) {
		job()
	}
}

func (r *Relief) run(task func()) {
	began := time.Now()
	task()
	r.quick.Store(time.Since(began) < quick)
}

// overseer looks after the jobs that are left undone. It has a timer only while
// there are some, and no goroutine.
type overseer struct {
	mu    sync.Mutex
	posts []*Relief
	timer *time.Timer
	armed bool
	busy  bool // a job was left since the last look
}

// leave notes that a job is left undone.
func (o *overseer) leave(r *Relief) (turn uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r.turns++
	r.left, r.seen, r.at = true, false, len(o.posts)
	o.posts = append(o.posts, r)
	o.busy = true
	if !o.armed {
		o.arm()
	}
	return r.turns
}

func (o *overseer) arm() {
	o.armed = true
	if o.timer == nil {
		o.timer = time.AfterFunc(patience, o.look)
		return
	}
	o.timer.Reset(patience)
}

// resume reports whether the job is still the one's who left it at that turn.
func (o *overseer) resume(r *Relief, turn uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !r.left || r.turns != turn {
		return false
	}
	o.remove(r)
	return true
}

func (o *overseer) remove(r *Relief) {
	last := len(o.posts) - 1
	o.posts[r.at] = o.posts[last]
	o.posts[r.at].at = r.at
	o.posts[last] = nil
	o.posts = o.posts[:last]
	r.left = false
}

// look gives the jobs to others that have been left since the last look, and
// goes on looking while jobs are left.
func (o *overseer) look() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := len(o.posts) - 1; i >= 0; i-- {
		r := o.posts[i]
		if r.seen {
			o.remove(r)
			r.exec.Go(r.job)
		}
		r.seen = true
	}
	if o.armed = false; o.busy || len(o.posts) > 0 {
		o.arm()
	}
	o.busy = false
}
