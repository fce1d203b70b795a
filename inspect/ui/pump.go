package ui

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

const (
	beat      = 250 * time.Millisecond // changed rows are merged for so long
	beats     = 4                      // a tick is each so many of them
	maxRows   = 200                    // of one frame
	sweepMany = 2000                   // with more sessions than this the registry is read each 5 s, else each second; see describe
	manyRows  = 50                     // of one frame, with more than sweepMany sessions
	calmTurn  = 5 * time.Second        // a turn that runs for less needs no whole description
	maxEvents = 200                    // frames of kind event in a second; a page reads no more
	rowLimit  = 50 * time.Millisecond  // for one session to describe itself
	maxBirths = 100                    // next lives of actors that are looked for at a time
	maxLooks  = 40                     // for each of them, one a beat
	maxEnded  = 256                    // rows of sessions that have ended
	maxError  = 500                    // characters of an error
	nearest   = 6                      // waits in a tick
)

// pump makes frames of what happens in the runtime, as long as there are readers.
type pump struct {
	w *Window

	mu     sync.Mutex
	dirty  []string        // sessions whose row may have changed, the oldest first
	marked map[string]bool // these; true: one of its actors has failed
	events int             // since the last tick
	shown  int             // of these, those that became frames
	births []birth
	ends   map[string]*session.Ended // of sessions whose end was not sent yet

	readers sync.WaitGroup // of the events of other hosts

	rows  map[string]*row // of the beat alone
	other map[string]*row // of other hosts, by host and id; of the beat alone
	hosts []hostJSON      // other programs, as the stream has said; of the beat alone
	over  []string        // sessions that have ended since the pump began; of the beat alone
	n     int             // beats so far
	seen  jobsSeen        // of the beat alone
}

func (w *Window) pump(outer context.Context) {
	p := &pump{w: w, marked: map[string]bool{}, ends: map[string]*session.Ended{}, rows: map[string]*row{}}
	ctx, stop := context.WithCancel(outer)
	defer stop()
	over := make(chan struct{})
	w.exec.Go(func() {
		defer close(over)
		for e := range w.rt.EventsWhere(ctx, p.heard) {
			p.event(e)
		}
		stop() // at the end of the runtime
	})
	for _, t := range w.rt.Outline() {
		r := rowOf(&t)
		p.rows[r.ID] = &r
	}
	defer w.lives.end()
	for ctx.Err() == nil {
		w.lives.follow(ctx, w)
		p.beat(ctx)
		w.pause(ctx, beat)
	}
	_ = w.exec.Await(context.Background(), over) // its context has ended
	p.readers.Wait()
	if outer.Err() == nil {
		w.hub.finish()
	}
}

// pause lets a time go by, or the rest of ctx.
func (w *Window) pause(ctx context.Context, d time.Duration) {
	over := make(chan struct{})
	defer w.clock.AfterFunc(d, func() { close(over) }).Stop()
	_ = w.exec.Await(ctx, over)
}

// mark notes that the row of a session may have changed.
func (p *pump) mark(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noteChange(id, false)
}

// noteChange is mark; hurt says that one of its actors has failed. mu is held.
func (p *pump) noteChange(id string, hurt bool) {
	before, marked := p.marked[id]
	if !marked {
		p.dirty = append(p.dirty, id)
	}
	if !marked || hurt && !before {
		p.marked[id] = hurt || before
	}
}

// heard takes note of an event, on the goroutine of its session, and reports whether the task that reads
// the bus is to have it: to wake that task for each change of state would cost a busy program much more.
func (p *pump) heard(r *session.EventRecord) bool {
	_, failed := r.Event.(*session.ActorFailed)
	_, supervised := r.Event.(*session.Supervision)
	_, ended := r.Event.(*session.Ended)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events++
	if r.Session != "" {
		p.noteChange(r.Session, failed || supervised)
	}
	return ended || r.Event.Level() >= slog.LevelInfo
}

// actorFrame is a moment in the life of an actor.
type actorFrame struct {
	Session     string    `json:"session"`
	Name        string    `json:"name"` // as in the tree, with the incarnation
	Incarnation int       `json:"incarnation"`
	State       string    `json:"state"` // crashed, restarting or running
	Restarts    int       `json:"restarts"`
	LastFailure string    `json:"last_failure,omitempty"`
	At          time.Time `json:"at"`
}

// event takes an event, on the task that reads the bus.
func (p *pump) event(r session.EventRecord) {
	p.mu.Lock()
	show := r.Event.Level() >= slog.LevelInfo && p.shown < maxEvents
	if show {
		p.shown++
	}
	p.mu.Unlock()
	switch e := r.Event.(type) {
	case *session.ActorFailed:
		name := actorName(e.Actor)
		p.w.hub.publish("actor", "", actorFrame{Session: r.Session, Name: name, Incarnation: incarnation(name), State: "crashed", LastFailure: fmt.Sprint(e.Reason), At: r.At})
	case *session.Supervision:
		p.supervised(&r, e)
	case *session.Ended:
		p.mu.Lock()
		p.ends[r.Session] = e
		p.mu.Unlock()
	}
	if show {
		of := inspect.EventOf(r)
		p.w.hub.publish("event", "", steered{of, of.By, ""})
	}
	if r.Session != "" { // once more: the row may have what the frames above say only now
		p.mark(r.Session)
	}
}

// actorName is the name of an actor in the tree of its session: its path without the fleet
// and, below the session's own actor, without that.
func actorName(path string) string {
	parts := strings.Split(path, "/")
	if len(parts) > 2 {
		return strings.Join(parts[2:], "/")
	}
	return parts[len(parts)-1]
}

func incarnation(name string) int {
	n, _ := strconv.Atoi(name[strings.LastIndexByte(name, '#')+1:])
	return n
}

// supervised shows what a supervisor does about a crash.
func (p *pump) supervised(r *session.EventRecord, e *session.Supervision) {
	switch d := e.Decision.(type) {
	case *supervisor.RestartScheduled:
		for _, child := range d.Children {
			if strings.HasSuffix(d.Supervisor, "/callbacks") {
				child = "callbacks/" + child // as in the tree
			}
			p.w.hub.publish("actor", "", actorFrame{Session: r.Session, Name: child, State: "restarting", LastFailure: fmt.Sprint(d.Reason), At: r.At})
		}
	case *supervisor.Restarted:
		p.mu.Lock()
		p.births = append(p.births[max(0, len(p.births)-maxBirths+1):], birth{r.Session, d.Children, maxLooks})
		p.mu.Unlock()
	}
}

// birth is a next life of actors that has been asked for.
type birth struct {
	session string
	names   []string
	looks   int // how often it is still looked for
}

// born shows the next lives of actors, once they run.
func (p *pump) born(ctx context.Context) {
	p.mu.Lock()
	births := p.births
	p.births = nil
	p.mu.Unlock()
	for _, b := range births {
		s := p.w.rt.Session(b.session)
		if s == nil {
			continue
		}
		t := p.w.briefly(ctx, s)
		for i := range t.Actors {
			a := &t.Actors[i]
			base, _, _ := strings.Cut(a.Name, "#")
			base = base[strings.LastIndexByte(base, '/')+1:]
			if a.State != "running" || !slices.Contains(b.names, base) {
				continue
			}
			b.names = slices.DeleteFunc(slices.Clone(b.names), func(name string) bool { return name == base })
			p.w.hub.publish("actor", "", actorFrame{
				Session: t.ID, Name: a.Name, Incarnation: incarnation(a.Name), State: a.State, Restarts: a.Restarts, LastFailure: a.LastFailure, At: t.At,
			})
		}
		if b.looks--; b.looks > 0 && len(b.names) > 0 {
			p.mu.Lock()
			p.births = append(p.births, b)
			p.mu.Unlock()
		}
	}
}

// beat sends what has changed since the last one.
func (p *pump) beat(ctx context.Context) {
	if p.n%beats == 0 {
		p.sweep()
	}
	p.flush(ctx)
	p.born(ctx)
	if p.n%beats == 0 {
		p.look(ctx)
		p.tick()
		p.seen.look(ctx, p.w)
	}
	p.n++
}

// sweep compares the registry with the rows: the bus drops events of a runtime that has more
// of them than one task can read.
func (p *pump) sweep() {
	if p.many() && p.n%(5*beats) != 0 {
		return
	}
	there := map[string]bool{}
	for _, s := range p.w.rt.Sessions() {
		there[s.ID()] = true
		if r := p.rows[s.ID()]; r == nil || r.State != s.State() {
			p.mark(s.ID())
		}
	}
	var ids []string
	for id := range p.rows { //troupe:maporder gone sorts them
		if !there[id] {
			ids = append(ids, id)
		}
	}
	p.gone(ids)
}

// many reports whether there are so many sessions that not each of them can be asked now and then.
func (p *pump) many() bool { return len(p.rows) > p.w.sweepMany }

// gone sends the last rows of sessions that have ended. The pages keep maxEnded of them.
func (p *pump) gone(ids []string) {
	slices.Sort(ids)
	for part := range slices.Chunk(ids, maxRows) {
		var last []*row
		for _, id := range part {
			p.mu.Lock()
			end := p.ends[id]
			delete(p.ends, id)
			p.mu.Unlock()
			r := *p.rows[id]
			delete(p.rows, id)
			r.State, r.StateSince, r.Wait, r.Waits, r.RSS = session.StateClosed, p.w.clock.Now(), nil, 0, 0
			if end != nil && end.Reason != nil {
				r.State, r.Error = session.StateFailed, cut(end.Reason.Error(), maxError)
			}
			last = append(last, &r)
			p.over = append(p.over, id)
		}
		p.w.hub.publish("session", "", map[string][]*row{"sessions": last})
	}
	if n := len(p.over) - maxEnded; n > 0 {
		p.w.hub.publish("gone", "", map[string][]string{"ids": p.over[:n]})
		p.over = slices.Clone(p.over[n:])
	}
}

// cut is the beginning of a text.
func cut(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// flush sends the rows that have changed, the oldest change first. Those that work are read
// again now and then: what a session waits for changes without an event.
func (p *pump) flush(ctx context.Context) {
	most := maxRows
	if p.many() {
		most = manyRows
	}
	p.mu.Lock()
	ids := p.dirty[:min(len(p.dirty), most)]
	p.dirty = p.dirty[len(ids):] // append makes a new array now and then, without these
	hurt := map[string]bool{}
	for _, id := range ids {
		if p.marked[id] {
			hurt[id] = true
		}
		delete(p.marked, id)
	}
	p.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	changed := make([]*row, 0, len(ids))
	var gone []string
	for _, id := range ids {
		s := p.w.rt.Session(id)
		if s == nil {
			if p.rows[id] != nil {
				gone = append(gone, id)
				continue
			}
			p.mu.Lock()
			delete(p.ends, id) // it came and went between two beats
			p.mu.Unlock()
			continue
		}
		last := p.rows[id]
		r := p.describe(ctx, s, last, hurt[id])
		if last == nil || !last.same(&r) {
			p.rows[id] = &r
			changed = append(changed, &r)
		}
	}
	p.gone(gone)
	if len(changed) > 0 {
		p.w.hub.publish("session", "", map[string][]*row{"sessions": changed})
	}
}

// describe makes the row of a session. Of many sessions it asks only those that are in trouble, or wait
// for something: the rows of the others are made of what is known without a question, and pages ask
// for those that a person sees.
func (p *pump) describe(ctx context.Context, s *runtime.Session, last *row, hurt bool) row {
	if last == nil || hurt || !p.many() {
		t := p.w.briefly(ctx, s)
		return rowOf(&t)
	}
	t := s.Outline()
	if t.State != session.StateReady && (t.State != session.StateRunning || t.At.Sub(t.TurnSince) > calmTurn) {
		t = p.w.briefly(ctx, s)
		return rowOf(&t)
	}
	r := rowOf(&t)
	r.RSS, r.lives, r.Restarts = last.RSS, last.lives, r.Restarts+last.lives
	return r
}

// tickFrame is the pulse of the page.
type tickFrame struct {
	At     time.Time      `json:"at"`
	States map[string]int `json:"states"` // of all hosts
	// Of are those of each host, where a window shows several: a page shows all of them, or one.
	Of    map[string]map[string]int `json:"states_of,omitempty"`
	Rates rates                     `json:"rates"`
	Waits []*wait                   `json:"waits"` // nearest to their limits, of all hosts and of each
}

type rates struct {
	Events  int `json:"events"`  // in the last second
	Skipped int `json:"skipped"` // of these, INFO and above that were not sent: there were too many
}

// all are the rows of all hosts.
func (p *pump) all() iter.Seq2[string, *row] {
	return func(yield func(string, *row) bool) {
		for _, rows := range []map[string]*row{p.rows, p.other} {
			for id, r := range rows { //troupe:maporder the reader counts, and sorts what it keeps
				if !yield(id, r) {
					return
				}
			}
		}
	}
}

func (p *pump) tick() {
	f := tickFrame{At: p.w.clock.Now(), States: map[string]int{}, Of: map[string]map[string]int{}, Waits: []*wait{}}
	p.mu.Lock()
	f.Rates.Events = p.events
	p.events, p.shown = 0, 0
	p.mu.Unlock()
	for _, r := range p.all() {
		f.States[r.State.String()]++
		if r.Host != "" {
			if f.Of[r.Host] == nil {
				f.Of[r.Host] = map[string]int{}
			}
			f.Of[r.Host][r.State.String()]++
		}
		if r.Wait != nil && r.Wait.LimitMS > 0 {
			f.Waits = append(f.Waits, r.Wait.of(r))
		}
	}
	slices.SortFunc(f.Waits, func(a, b *wait) int { return a.compare(b, f.At) })
	n, of := 0, map[string]int{}
	f.Waits = slices.DeleteFunc(f.Waits, func(w *wait) bool {
		n++
		of[w.Host]++
		return n > nearest && (w.Host == "" || of[w.Host] > nearest)
	})
	p.w.hub.publish("tick", "", f)
}

// briefly describes a session. One that does not answer at once has no waits and actors.
func (w *Window) briefly(ctx context.Context, s *runtime.Session) runtime.SessionTree {
	ctx, stop := context.WithCancelCause(ctx)
	defer w.clock.AfterFunc(rowLimit, func() { stop(context.DeadlineExceeded) }).Stop()
	return s.Tree(ctx)
}
