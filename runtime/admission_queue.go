package runtime

import (
	"cmp"
	"runtime/debug"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// queue decides which session starts when. It is a value: no clock, no goroutine. Equal
// inputs at equal times have equal effects.
type queue struct {
	limits  Admission
	live    int
	byGroup map[string]int
	waiting []*ticket  // in the order of their arrival
	next    time.Time  // no start before it, if StartsPerSecond is set
	started int        // so far; the first ones come more slowly
	byLabel []labelled // by the index in limits.Labels
	rand    kernel.Rand
	machine HostUsage
	checked time.Time   // when machine was measured
	unknown bool        // that has panicked
	failed  func(error) // reports it, and does not wait
	recent  []time.Time // starts that have not grown yet; only with MaxMemory
}

// ticket is a session that wants to start, or lives.
type ticket struct {
	AdmissionRequest
	since   time.Time
	granted bool
	admit   func() // notifies the session that waits
}

// labelled is what is counted for a limit for labels.
type labelled struct {
	live int
	next time.Time // no start before it
}

const (
	// checkEvery is how often the machine is measured while sessions wait.
	checkEvery = time.Second
	// growing is how long a session takes to reach its size.
	growing = 10 * time.Second
	// memoryEach is the default of Admission.MemoryEach.
	memoryEach = 400 << 20
)

// rampUp is the number of starts after which StartsPerSecond is reached, from a quarter of
// it on: the first agents show whether the others can follow.
const rampUp = 8

// ask queues a ticket.
func (q *queue) ask(now time.Time, t *ticket) (wake time.Time) {
	t.since = now
	q.waiting = append(q.waiting, t)
	return q.settle(now)
}

// leave takes a ticket back, whether it was granted or still waits.
func (q *queue) leave(now time.Time, t *ticket) (wake time.Time) {
	if t.granted {
		t.granted = false
		q.live--
		if q.byGroup[t.Group]--; q.byGroup[t.Group] == 0 {
			delete(q.byGroup, t.Group)
		}
		q.label(t, -1)
	} else {
		q.waiting = slices.DeleteFunc(q.waiting, func(w *ticket) bool { return w == t })
	}
	return q.settle(now)
}

// settle admits what may start now, and returns when to look again; zero: when something
// changes.
func (q *queue) settle(now time.Time) (wake time.Time) {
	for {
		i, later := q.best(now)
		if i < 0 {
			return later
		}
		if q.limits.StartsPerSecond > 0 && now.Before(q.next) {
			return q.next
		}
		if q.full(now) {
			return q.checked.Add(checkEvery)
		}
		if q.limits.StartsPerSecond > 0 {
			q.next = now.Add(q.pause())
		}
		t := q.waiting[i]
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.live++
		q.started++
		q.byGroup[t.Group]++
		q.label(t, 1)
		q.delay(now, t)
		if q.limits.MaxMemory > 0 {
			q.recent = append(q.recent, now)
		}
		t.granted = true
		t.admit()
	}
}

// pause is the time from a start to the next one.
func (q *queue) pause() time.Duration {
	whole := time.Duration(float64(time.Second) / q.limits.StartsPerSecond)
	if q.started >= rampUp {
		return whole
	}
	early := float64(whole) / (0.25 + 0.75*float64(q.started)/rampUp)
	return time.Duration(early) + time.Duration(q.rand.Int64N(int64(early)/4+1))
}

// full reports whether the machine has no room for one more session.
func (q *queue) full(now time.Time) bool {
	if !q.limits.measured() {
		return false
	}
	if q.checked.IsZero() || now.Sub(q.checked) >= checkEvery {
		q.measure(now)
	}
	q.recent = slices.DeleteFunc(q.recent, func(at time.Time) bool { return now.Sub(at) >= growing })
	if q.unknown {
		return q.live > 0 || q.limits.MinFreeDisk > 0
	}
	if q.limits.MinFreeDisk > 0 && q.machine.FreeDisk < q.limits.MinFreeDisk {
		return true
	}
	expected := q.machine.Memory + int64(len(q.recent)+1)*cmp.Or(q.limits.MemoryEach, memoryEach)
	return q.limits.MaxMemory > 0 && expected > q.limits.MaxMemory && q.live > 0
}

// measure asks for the state of the machine. A function of the user's that panics is asked again
// at the next time, and reported once until it returns.
func (q *queue) measure(now time.Time) {
	q.checked = now
	defer func() {
		p := recover()
		if p != nil && !q.unknown {
			q.failed(&session.PanicError{Value: p, Message: "Admission.Measure", Stack: debug.Stack()})
		}
		q.unknown = p != nil
	}()
	q.machine = q.limits.Measure()
}

// best is the ticket to admit next: the highest priority, of the group with the fewest
// sessions, that came first. -1: there is no room for any before later; if that is zero,
// before something changes.
func (q *queue) best(now time.Time) (best int, later time.Time) {
	if q.limits.MaxSessions > 0 && q.live >= q.limits.MaxSessions {
		return -1, time.Time{}
	}
	best = -1
	for i, t := range q.waiting {
		if most := q.limits.Groups[t.Group]; most > 0 && q.byGroup[t.Group] >= most {
			continue
		}
		room, due := q.labels(t)
		if !room {
			continue
		}
		if t.NotBefore.After(due) {
			due = t.NotBefore
		}
		if now.Before(due) {
			if later.IsZero() || due.Before(later) {
				later = due
			}
			continue
		}
		if best >= 0 {
			b := q.waiting[best]
			if t.Priority < b.Priority || t.Priority == b.Priority && q.byGroup[t.Group] >= q.byGroup[b.Group] {
				continue
			}
		}
		best = i
	}
	return best, later
}

// label counts a session at the limits for its labels.
func (q *queue) label(t *ticket, n int) {
	if q.byLabel == nil {
		q.byLabel = make([]labelled, len(q.limits.Labels))
	}
	for i := range q.limits.Labels {
		if q.limits.Labels[i].holds(t) {
			q.byLabel[i].live += n
		}
	}
}

// delay sets when the next session with the labels of the ticket may start.
func (q *queue) delay(now time.Time, t *ticket) {
	for i := range q.limits.Labels {
		if l := &q.limits.Labels[i]; l.StartsPerSecond > 0 && l.holds(t) {
			q.byLabel[i].next = now.Add(time.Duration(float64(time.Second) / l.StartsPerSecond))
		}
	}
}

// labels reports whether the limits for labels leave room for the ticket, and from when on.
func (q *queue) labels(t *ticket) (room bool, due time.Time) {
	for i := range q.byLabel {
		l := &q.limits.Labels[i]
		if !l.holds(t) {
			continue
		}
		if l.Max > 0 && q.byLabel[i].live >= l.Max {
			return false, time.Time{}
		}
		if q.byLabel[i].next.After(due) {
			due = q.byLabel[i].next
		}
	}
	return true, due
}

// holds reports whether the limit is for the ticket.
func (l *LabelLimit) holds(t *ticket) bool {
	for name, value := range l.Labels {
		if got, ok := t.Labels[name]; !ok || got != value {
			return false
		}
	}
	return true
}
