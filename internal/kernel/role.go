package kernel

import "sync/atomic"

// Role is a job that one goroutine has at a time, such as to read from a pipe. Its
// holder may run tasks in between. To wake another goroutine for each of them costs
// more than most take, so the job is left undone meanwhile; but the dispatcher hands it
// to another goroutine if a task lasts. The goroutine that has lost the role finishes
// its task and is then like any other.
type Role struct {
	sys *System
	job func(*Worker)
	// state counts: it is odd while the holder runs a task, and the side that makes it
	// even, the end of the task or HandOff, has the role.
	state atomic.Uint64
	// wary is for how many tasks the role is given away before they begin: where
	// one has lasted the next may as well.
	wary atomic.Int32

	watched atomic.Bool // by the monitor of production
	seen    uint64      // state at its last look; guarded by its mutex
}

// wariness is how many tasks after one that lasted do not hold up the job.
const wariness = 8

// NewRole returns a role without a holder. The job returns when its worker no longer
// has the role, which it has to look at after each Run of its worker, or when there is
// nothing to do. Then the goroutine that finds work calls Start or Take.
func (s *System) NewRole(job func(*Worker)) *Role { return &Role{sys: s, job: job} }

// Start gives the role, which has no holder, to another goroutine.
func (r *Role) Start() { r.sys.cfg.Dispatcher.Go(r.Take) }

// Take does the job on this goroutine; the role must have no holder. It returns when
// the job does.
func (r *Role) Take() { r.job(&Worker{sys: r.sys, role: r}) }

// HandOff gives the role to another goroutine if its holder still runs the n-th
// task. It reports whether it did.
func (r *Role) HandOff(n uint64) bool {
	if !r.state.CompareAndSwap(n, n+1) {
		return false
	}
	r.wary.Store(wariness)
	r.Start()
	return true
}

// during runs a task and reports whether the caller still has the role.
func (r *Role) during(t Task) (then func(*Worker), mine bool) {
	if r.wary.Load() > 0 {
		r.wary.Add(-1)
		r.Start()
		return t(), false
	}
	n := r.state.Add(1)
	returned := false
	defer func() {
		mine = r.state.CompareAndSwap(n, n+1)
		if mine && !returned { // the task has ended its goroutine
			r.Start()
		}
	}()
	r.sys.cfg.Dispatcher.Watch(r, n)
	then = t()
	returned = true
	return then, false // mine is set above
}

// HasRole reports whether the goroutine still has the role that it was given.
func (w *Worker) HasRole() bool { return w.role != nil }

// EndRole gives up the role for good: the job is done.
func (w *Worker) EndRole() { w.role = nil }
