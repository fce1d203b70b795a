package runtime

import (
	"slices"
	"time"
)

// queue decides which session starts when. It is a value: no clock, no goroutine. Equal
// inputs at equal times have equal effects.
type queue struct {
	limits  Admission
	live    int
	byGroup map[string]int
	waiting []*ticket // in the order of their arrival
	next    time.Time // no start before it, if StartsPerSecond is set
	started int       // so far; the first ones come more slowly
}

// ticket is a session that wants to start, or lives.
type ticket struct {
	AdmissionRequest
	since   time.Time
	granted bool
	admit   func() // tells the one who waits
}

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
	} else {
		q.waiting = slices.DeleteFunc(q.waiting, func(w *ticket) bool { return w == t })
	}
	return q.settle(now)
}

// settle admits what may start now, and returns when to look again; zero: when something
// changes.
func (q *queue) settle(now time.Time) (wake time.Time) {
	for {
		i := q.best()
		if i < 0 {
			return time.Time{}
		}
		if q.limits.StartsPerSecond > 0 {
			if now.Before(q.next) {
				return q.next
			}
			rate := q.limits.StartsPerSecond * min(1, 0.25+0.75*float64(q.started)/rampUp)
			q.next = now.Add(time.Duration(float64(time.Second) / rate))
		}
		t := q.waiting[i]
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.live++
		q.started++
		q.byGroup[t.Group]++
		t.granted = true
		t.admit()
	}
}

// best is the ticket to admit next: the highest priority, of the group with the fewest
// sessions, that came first. -1: there is no room.
func (q *queue) best() int {
	if q.limits.MaxSessions > 0 && q.live >= q.limits.MaxSessions {
		return -1
	}
	best := -1
	for i, t := range q.waiting {
		if most := q.limits.Groups[t.Group]; most > 0 && q.byGroup[t.Group] >= most {
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
	return best
}
