package kernel

import "slices"

// Turn is what one goroutine does for actors: it runs those that were told
// with [Address.TellAfter], one after the other, and is left with the tasks that
// they want to have run. So a message can pass several actors and reach the
// user's function without waking a goroutine on its way.
//
// A nil Turn, which is all that there is outside of production, prolongs
// nothing: actors and tasks go to the dispatcher and to the executor. A Turn is
// used by one goroutine at a time.
type Turn struct {
	exec   Executor
	actors []*life
	tasks  []func()
}

// Turner is whoever has a turn: a [Turn], or the context of an actor.
type Turner interface{ turn() *Turn }

func (t *Turn) turn() *Turn { return t }

// NewTurn returns a turn for a task that tells actors.
func (s *System) NewTurn() *Turn {
	if !s.prolong {
		return nil
	}
	return s.newTurn()
}

func (s *System) newTurn() *Turn { return &Turn{exec: s.cfg.Executor} }

// Run runs the actors that were told, and those that they told.
func (t *Turn) Run() {
	if t == nil {
		return
	}
	for len(t.actors) > 0 {
		next := t.actors[0]
		t.actors = slices.Delete(t.actors, 0, 1)
		if !next.run(t) {
			next.schedule(nil) // whoever has the turn has more to do
		}
	}
}

// Left reports whether Finish has anything to do.
func (t *Turn) Left() bool { return t != nil && len(t.tasks) > 0 }

// Finish runs the tasks that the actors left: all but the last on goroutines of
// their own. They may block, so the caller has nothing else to do.
func (t *Turn) Finish() {
	if !t.Left() {
		return
	}
	last := len(t.tasks) - 1
	for _, task := range t.tasks[:last] {
		t.exec.Go(task)
	}
	t.tasks[last]()
}

// spread gives what is left to others.
func (t *Turn) spread() {
	if t == nil {
		return
	}
	for _, l := range t.actors {
		l.schedule(nil)
	}
	for _, task := range t.tasks {
		t.exec.Go(task)
	}
	t.actors, t.tasks = nil, nil
}
