package runtime

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// places limits how many processes there are at a time. A session has a place from before
// its first process starts until its last one is gone, but not while it is passivated.
// Between the two processes of a recovery it keeps its place while no other session waits
// for one, or while something waits for its next process. The lock of the admission guards
// all fields.
type places struct {
	queue   queue
	holders map[*place]struct{} // that have one
	users   int                 // sessions that have had one
	making  int                 // passivations under way
	timer   kernel.Timer        // looks again at those that stay; nil: none
}

// place is what a session has of the places of its kind. Below the empty line, all is
// guarded by the same lock.
type place struct {
	session *Session
	request AdmissionRequest
	spawner any // of its processes; nil if they run on this machine

	of     *places   // nil before the first request
	ticket *ticket   // nil if it neither has a place nor waits for one
	dead   bool      // its process has died, and it has not asked for the next one
	moving bool      // it is being passivated to make room
	stays  time.Time // when it was idle and refused; zero if it was not asked
}

// roomAgain is how long a session that would not make room is left alone: what keeps its
// process, such as a background task, may end without a change of its state.
const roomAgain = 5 * time.Second

func newPlaces(limit int) *places {
	return &places{
		holders: make(map[*place]struct{}),
		queue:   queue{limits: Admission{MaxSessions: limit}, byGroup: make(map[string]int)},
	}
}

// placeOf is the place of a session's processes; nil without a limit.
func (a *admission) placeOf(ctx context.Context, spec *Spec, s *Session) *place {
	p := &place{session: s, request: requestOf(ctx)}
	p.request.NotBefore = time.Time{} // it is over
	limit := a.queue.limits.MaxProcesses
	if spec.Options.Spawner != nil {
		limit, p.spawner = a.queue.limits.MaxSpawned, identity(spec.Options.Spawner, s)
	}
	if limit <= 0 {
		return nil
	}
	return p
}

// occupy gets a place for the next process of a session. granted is called under the lock,
// once there is one.
func (a *admission) occupy(p *place, granted func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	admit := func() {
		p.of.holders[p] = struct{}{}
		granted()
	}
	p.dead = false
	switch t := p.ticket; {
	case t == nil:
	case t.granted: // it follows another process
		granted()
		return
	default:
		t.admit = admit
		return
	}
	if p.of == nil {
		if p.of = a.places[p.spawner]; p.of == nil {
			limit := a.queue.limits.MaxProcesses
			if p.spawner != nil {
				limit = a.queue.limits.MaxSpawned
			}
			p.of = newPlaces(limit)
			a.places[p.spawner] = p.of
		}
		p.of.users++
	}
	p.ticket = &ticket{AdmissionRequest: p.request, admit: admit}
	p.of.queue.ask(a.clock.Now(), p.ticket)
	a.makeRoom(p.of)
}

// retire ends the use of a place with its session.
func (a *admission) retire(p *place) {
	a.vacate(p)
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.of == nil {
		return
	}
	if p.of.users--; p.of.users == 0 {
		if p.of.timer != nil {
			p.of.timer.Stop()
		}
		delete(a.places, p.spawner)
	}
	p.of = nil
}

// vacate gives a session's place back, or no longer waits for one.
func (a *admission) vacate(p *place) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.freePlace(p)
}

// freePlace is vacate; the lock is held.
func (a *admission) freePlace(p *place) {
	t := p.ticket
	if t == nil {
		return
	}
	p.ticket, p.stays, p.dead = nil, time.Time{}, false
	delete(p.of.holders, p)
	p.of.queue.leave(a.clock.Now(), t)
}

// died says that the session's process has died, and that another may follow.
func (a *admission) died(p *place) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.of != nil {
		p.dead = true
		a.makeRoom(p.of)
	}
}

// vacant takes the places of sessions whose process has died and which need none, and reports
// whether there are some that may soon be so.
func (a *admission) vacant(p *places) (later bool) {
	if len(p.queue.waiting) == 0 {
		return false
	}
	dead := slices.Collect(func(yield func(*place) bool) {
		for h := range p.holders { //troupe:maporder sorted below
			if h.dead && !yield(h) {
				return
			}
		}
	})
	slices.SortFunc(dead, func(a, b *place) int { return strings.Compare(a.session.id, b.session.id) })
	for _, h := range dead {
		if h.session.core.User.Wanted() {
			later = true
			continue
		}
		a.freePlace(h)
	}
	return later
}

// waits reports whether the session waits for a place, and since when.
func (a *admission) waits(p *place) (since time.Time, waits bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t := p.ticket; t != nil && !t.granted {
		return t.since, true
	}
	return time.Time{}, false
}

// idle says that a session has begun to be idle.
func (a *admission) idle(p *place) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.of != nil {
		a.makeRoom(p.of)
	}
}

// makeRoom has as many idle sessions give up their processes as sessions wait for a place,
// those first that are idle longest. The lock is held.
func (a *admission) makeRoom(p *places) {
	if a.vacant(p) {
		a.again(p)
	}
	for p.making < len(p.queue.waiting) && !a.closed {
		yields, since := p.idlest()
		if yields == nil {
			return
		}
		yields.moving = true
		p.making++
		a.exec.Go(func() { a.passivate(p, yields, since) })
	}
}

// idlest is the next session to passivate, or nil.
func (p *places) idlest() (idlest *place, since time.Time) {
	for h := range p.holders { //troupe:maporder the smallest of all is the same in any order
		if h.moving || h.session.core.State() != session.StateReady {
			continue
		}
		at := h.session.stateSince()
		if h.stays.Equal(at) {
			continue
		}
		if idlest == nil || at.Before(since) || at.Equal(since) && h.session.id < idlest.session.id {
			idlest, since = h, at
		}
	}
	return idlest, since
}

func (a *admission) passivate(of *places, p *place, since time.Time) {
	err := p.session.Passivate(context.Background()) // it has the limits of a close
	a.mu.Lock()
	defer a.mu.Unlock()
	p.moving = false
	of.making--
	switch {
	case err == nil:
		a.stat.MadeRoom++
	case p.ticket != nil:
		p.stays = since
		a.again(of)
	}
	a.makeRoom(of)
}

// again has lookAgain called in a while.
func (a *admission) again(p *places) {
	if p.timer == nil {
		p.timer = a.clock.AfterFunc(roomAgain, func() { a.lookAgain(p) })
	}
}

func (a *admission) lookAgain(p *places) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p.timer = nil
	for h := range p.holders {
		h.stays = time.Time{}
	}
	a.makeRoom(p)
}
