package kernel

import (
	"slices"

	"github.com/benbjohnson/clock"
)

// Worker is one goroutine while it runs actors and their tasks. A sender passes the
// worker of its goroutine: the receiver may then run on the same goroutine, once the
// present handler has returned. So a message can pass several actors and reach the
// user's function without waking a goroutine on its way. A nil worker is always
// allowed, and is what a task passes that has not returned yet: the receiver must not
// wait for it.
//
// A worker is used by one goroutine at a time.
type Worker struct {
	sys    *System
	actors []*life
	tasks  []Task
	role   *Role // held by the goroutine; nil: none
	guest  bool  // the goroutine is a user's
	seat   Seat
}

// Task is work that an actor starts. It may block. The function that it returns, or
// nil, runs after it on the same goroutine, must not block, and may pass its worker on.
type Task func() (then func(*Worker))

// Guest returns a worker for a goroutine of the user's, which has something else to do:
// it runs the actors that it sends to, and never a task.
func (s *System) Guest() *Worker { return &Worker{sys: s, guest: true} }

// Run does what was left with the worker: actors first, then one task. Other
// tasks go to other goroutines, since each may block.
func (w *Worker) Run() {
	d := w.sys.cfg.Dispatcher
	for {
		switch {
		case len(w.actors) > 0:
			d.Yield(&w.seat, true)
			l := w.actors[0]
			w.actors = slices.Delete(w.actors, 0, 1)
			if l.run(w) {
				l.schedule(nil) // the worker has more to do than to wait for its end
			}
		case len(w.tasks) > 0:
			d.Yield(&w.seat, false)
			task := w.tasks[0]
			for _, t := range w.tasks[1:] {
				w.sys.elsewhere(t)
			}
			clear(w.tasks)
			w.tasks = w.tasks[:0]
			w.perform(task)
		default:
			d.Yield(&w.seat, false)
			return
		}
	}
}

// perform runs a task, during which a role may be handed off.
func (w *Worker) perform(t Task) {
	var then func(*Worker)
	if w.role == nil {
		then = t()
	} else {
		var mine bool
		if then, mine = w.role.during(t); !mine {
			w.role = nil
		}
	}
	if then != nil {
		then(w)
	}
}

// Go runs a task: on the worker's goroutine after everything else that it does, or
// on another one.
func (s *System) Go(w *Worker, t Task) {
	if w != nil && !w.guest && s.cfg.Dispatcher.Inline(true) {
		w.tasks = append(w.tasks, t)
		return
	}
	s.elsewhere(t)
}

func (s *System) elsewhere(t Task) {
	s.cfg.Dispatcher.Go(func() {
		w := &Worker{sys: s}
		w.perform(t)
		w.Run()
	})
}

// AsClock returns the seams as the clock that a user may give a runtime: a simulation
// replaces all of them, and production only the clock. Only [SeamsOf] may use it.
func (c Config) AsClock() clock.Clock { return carrier{seams: c} }

// SeamsOf returns the seams behind a clock: those that [Config.AsClock] was called on,
// or production's with this clock. nil means the wall clock.
func SeamsOf(c clock.Clock) Config {
	if carried, ok := c.(carrier); ok {
		return carried.seams
	}
	return Config{Clock: NewClock(c)}
}

type carrier struct {
	clock.Clock // nil
	seams       Config
}
