package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// Admission limits how many sessions a runtime has, and how fast they start. A session
// that finds no room waits in [Runtime.Start] and [Runtime.Open], and so in the functions
// of package sdk. Its place is free again when its processes are gone. The zero value
// limits nothing.
type Admission struct {
	// MaxSessions is the most sessions at a time. Default: 0, no limit.
	MaxSessions int
	// MaxProcesses is the most sessions that have a process at a time, or an agent in this
	// process; those of Options.Spawner do not count. A passivated session has no process,
	// see [Session.Passivate]. A process that finds no room waits, in the state admitting
	// or passivated, by the priority and the group of its session; MaxWait does not end
	// that. While one waits, idle sessions are passivated, those first that are idle
	// longest. Default: 0, no limit.
	MaxProcesses int
	// MaxSpawned is the same for the processes of each Options.Spawner. Spawners that cannot
	// be compared have a session each. Default: 0, no limit.
	MaxSpawned int
	// Groups has the most sessions of a group at a time, see [WithAdmission]. Default: no
	// limit for groups that are not named.
	Groups map[string]int
	// StartsPerSecond is the most sessions that start in a second. The first ones come more
	// slowly, from a quarter of it on, and up to a quarter later still, by chance: programs
	// that are started together should not start their agents in step. Default: 0, no limit.
	StartsPerSecond float64
	// Labels limit sessions by their labels, see [AdmissionRequest.Labels]. Default: no limits.
	Labels []LabelLimit
	// MaxMemory is how many bytes all processes under this one may have in memory before no
	// more session starts. A session that started in the last 10 s counts with MemoryEach,
	// too, because it has not grown yet. One session is always admitted. Default: 0, no limit.
	MaxMemory int64
	// MemoryEach is what a new session is expected to need. Default: 0, which is 400 MiB.
	MemoryEach int64
	// MinFreeDisk is how many bytes must be free in DiskDir for a session to start. Default:
	// 0, no limit.
	MinFreeDisk int64
	// DiskDir is the directory of MinFreeDisk. Default: "", the working directory.
	DiskDir string
	// Measure returns the state of the machine, once a second at most. It must return
	// quickly. While it panics the machine counts as full, and a [session.WarningIssued] event of
	// the runtime says so once. nil: that of this machine, on Linux; elsewhere MaxMemory and
	// MinFreeDisk need it.
	Measure func() HostUsage
	// MaxWait is the longest time in the queue; then the error is a *[session.TimeoutError].
	// Default: 0, as long as the context allows.
	MaxWait time.Duration
}

// LabelLimit limits the sessions that have all of its labels. Package fleet gives each
// session the labels "account", which is Job.Account, and "agent", the name of
// Options.Backend.
type LabelLimit struct {
	Labels map[string]string // at least one
	// Max is the most sessions at a time. Default: 0, no limit.
	Max int
	// StartsPerSecond is the most of them that start in a second. Default: 0, no limit.
	StartsPerSecond float64
}

// HostUsage is the measured use of this machine, which Admission.MaxMemory and MinFreeDisk limit.
type HostUsage struct {
	Memory   int64 // bytes that the processes under this one have in memory
	FreeDisk int64 // bytes that are free in Admission.DiskDir
}

// AdmissionRequest says which place a session has in the queue. The zero value is the
// group "" with the priority 0.
type AdmissionRequest struct {
	// Group is a name for sessions that belong together, such as those of one user or job.
	// Among equal priorities the group with the fewest sessions comes first.
	Group string
	// Priority: higher ones come first, of all groups.
	Priority int
	// Labels are compared with Admission.Labels. Do not modify them. Default: none.
	Labels map[string]string
	// NotBefore is the earliest start. The time until then counts for Admission.MaxWait.
	// Default: zero, at once.
	NotBefore time.Time
	// Job, Task and Attempt say in [SessionTree] what the session works on. They do not change
	// its place. Package fleet sets them. Default: "", "", 0.
	Job, Task string
	Attempt   int // from 1; 0: none
}

// AdmissionStat is what [Runtime.AdmissionStat] returns. Its JSON form has durations in
// milliseconds, as oldest_ms and wait_time_ms, and Host as memory and free_disk.
type AdmissionStat struct {
	Live     int            // sessions that have a place
	ByGroup  map[string]int // the same, by group
	Queued   int            // sessions that wait for one
	Oldest   time.Duration  // how long the first of these has waited
	Admitted int64          // sessions that got a place, so far
	Waited   int64          // of these, sessions that had to wait
	WaitTime time.Duration  // of all of these together
	Host     HostUsage      // as it was measured last; zero without MaxMemory and MinFreeDisk
	GaveUp   int64          // sessions that gave up waiting: MaxWait, the context, a close, or a shutdown
	// Processes and ProcessesQueued are the sessions that have a place for a process, and
	// those that wait for one, with MaxProcesses or MaxSpawned.
	Processes, ProcessesQueued int
	MadeRoom                   int64 // sessions that were passivated for others, so far
}

// admissionJSON is the JSON form of an [AdmissionStat].
type admissionJSON struct {
	Live            int            `json:"live"`
	ByGroup         map[string]int `json:"by_group"`
	Queued          int            `json:"queued"`
	OldestMS        int64          `json:"oldest_ms"`
	Admitted        int64          `json:"admitted"`
	Waited          int64          `json:"waited"`
	WaitTimeMS      int64          `json:"wait_time_ms"`
	GaveUp          int64          `json:"gave_up"`
	Processes       int            `json:"processes"`
	ProcessesQueued int            `json:"processes_queued"`
	MadeRoom        int64          `json:"made_room"`
	Memory          int64          `json:"memory"`
	FreeDisk        int64          `json:"free_disk"`
}

// MarshalJSON implements [json.Marshaler].
func (s AdmissionStat) MarshalJSON() ([]byte, error) {
	return json.Marshal(admissionJSON{
		s.Live, s.ByGroup, s.Queued, s.Oldest.Milliseconds(), s.Admitted, s.Waited, s.WaitTime.Milliseconds(),
		s.GaveUp, s.Processes, s.ProcessesQueued, s.MadeRoom, s.Host.Memory, s.Host.FreeDisk,
	})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *AdmissionStat) UnmarshalJSON(raw []byte) error {
	var j admissionJSON
	if err := json.Unmarshal(raw, &j); err != nil {
		return err
	}
	*s = AdmissionStat{
		j.Live, j.ByGroup, j.Queued, time.Duration(j.OldestMS) * time.Millisecond, j.Admitted, j.Waited, time.Duration(j.WaitTimeMS) * time.Millisecond,
		HostUsage{j.Memory, j.FreeDisk}, j.GaveUp, j.Processes, j.ProcessesQueued, j.MadeRoom,
	}
	return nil
}

type admissionKey struct{}

// WithAdmission returns a context for starting a session: [Runtime.Start], [Runtime.Open],
// sdk.Run, sdk.Client.Connect and others take the session's place in the queue from it.
func WithAdmission(ctx context.Context, r AdmissionRequest) context.Context {
	return context.WithValue(ctx, admissionKey{}, r)
}

func requestOf(ctx context.Context) AdmissionRequest {
	r, _ := ctx.Value(admissionKey{}).(AdmissionRequest)
	return r
}

// admission is the queue of a runtime. A lock guards it and no actor owns it, like the
// breakers: nothing blocks under the lock, and a place cannot be lost with an actor.
// Under the lock run the clock, and Admission.Measure once a second.
type admission struct {
	clock kernel.Clock
	exec  kernel.Executor

	mu     sync.Mutex
	queue  queue
	timer  kernel.Timer // nil: none
	closed bool
	stat   AdmissionStat
	places map[any]*places                       // by the spawner of the processes; nil: those of this machine
	all    map[*ticket]*kernel.Promise[struct{}] // that wait
}

func newAdmission(limits Admission, sys *kernel.System) *admission {
	if limits.Measure == nil {
		limits.Measure = func() HostUsage { return measure(limits.DiskDir) }
	}
	return &admission{
		clock: sys.Clock(), exec: sys.Executor(),
		places: make(map[any]*places),
		queue:  queue{limits: limits, byGroup: make(map[string]int), rand: sys.Rand()}, all: make(map[*ticket]*kernel.Promise[struct{}]),
	}
}

func (l *Admission) validate() []error {
	var wrong []error
	if l.MaxSessions < 0 || l.MaxProcesses < 0 || l.MaxSpawned < 0 || l.StartsPerSecond < 0 || l.MaxWait < 0 || l.MaxMemory < 0 || l.MemoryEach < 0 || l.MinFreeDisk < 0 {
		wrong = append(wrong, &session.ConfigError{Option: "Admission", Problem: "has a negative limit", Fix: "give 0 for no limit"})
	}
	for i, limit := range l.Labels {
		if len(limit.Labels) == 0 || limit.Max < 0 || limit.StartsPerSecond < 0 || limit.Max == 0 && limit.StartsPerSecond == 0 {
			wrong = append(wrong, &session.ConfigError{Option: fmt.Sprintf("Admission.Labels[%d]", i), Problem: "has no labels, or no limit above 0", Fix: "name a label, and give Max or StartsPerSecond, or leave the limit out"})
		}
	}
	if l.measured() && l.Measure == nil && !canMeasure {
		wrong = append(wrong, &session.ConfigError{Option: "Admission.Measure", Problem: "is nil, and memory and disk can be measured on Linux only", Fix: "set Measure, or leave out MaxMemory and MinFreeDisk"})
	}
	return wrong
}

// measured reports whether the machine has to be measured.
func (l *Admission) measured() bool { return l.MaxMemory > 0 || l.MinFreeDisk > 0 }

// limited reports whether there is anything to wait for.
func (l *Admission) limited() bool {
	return l.MaxSessions > 0 || l.StartsPerSecond > 0 || len(l.Groups) > 0 || len(l.Labels) > 0 || l.measured()
}

// wait is the wait of a session for its place. The lock of the admission guards it.
type wait struct {
	turn   *kernel.Promise[struct{}] // nil before it waits
	closed bool                      // before it had a place
}

// giveUp ends the wait of a session that is closed: it has no actor yet that could. One that has
// its place is left alone.
func (a *admission) giveUp(w *wait) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.closed = true
	if w.turn != nil {
		w.turn.Fail(session.ErrClosed)
	}
}

// enter waits for a place, which the caller returns with leave; nil without limits.
func (a *admission) enter(ctx context.Context, w *wait) (*ticket, error) {
	request := requestOf(ctx)
	if !a.queue.limits.limited() && request.NotBefore.IsZero() {
		return nil, nil //nolint:nilnil // no place is needed
	}
	t := &ticket{AdmissionRequest: request}
	turn := kernel.NewPromise[struct{}]()
	if granted, err := a.ask(t, turn, w); err != nil {
		return nil, err
	} else if granted { // the usual case
		return t, nil
	}
	limit := &session.TimeoutError{What: "admission of a session", Limit: a.queue.limits.MaxWait, SetBy: "Admission.MaxWait"}
	ctx, cancel := kernel.WithTimeout(ctx, a.clock, limit)
	defer cancel()
	_, err := turn.Wait(ctx, a.exec)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.stat.Waited++
		a.stat.WaitTime += a.clock.Now().Sub(t.since)
		a.admitted(t)
		return t, nil
	}
	delete(a.all, t)
	a.stat.GaveUp++
	a.wake(a.queue.leave(a.clock.Now(), t)) // it may have been granted meanwhile
	return nil, err
}

// ask queues a ticket, and reports whether it was granted at once. Later turn says so.
func (a *admission) ask(t *ticket, turn *kernel.Promise[struct{}], w *wait) (granted bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return false, session.ErrShutdown
	case w.closed:
		return false, session.ErrClosed
	}
	w.turn = turn
	t.admit = func() { turn.Resolve(struct{}{}) }
	a.all[t] = turn
	a.wake(a.queue.ask(a.clock.Now(), t))
	if t.granted {
		a.admitted(t)
	}
	return t.granted, nil
}

func (a *admission) admitted(t *ticket) {
	delete(a.all, t)
	t.admit = nil
}

// leave gives a place back.
func (a *admission) leave(t *ticket) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wake(a.queue.leave(a.clock.Now(), t))
}

// wake looks at the queue again at the time; the lock is held.
func (a *admission) wake(at time.Time) {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	if at.IsZero() || a.closed {
		return
	}
	a.timer = a.clock.AfterFunc(at.Sub(a.clock.Now()), func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.wake(a.queue.settle(a.clock.Now()))
	})
}

// close refuses all that wait, and all that come.
func (a *admission) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.wake(time.Time{})
	for _, turn := range a.all { //troupe:maporder each of them is told the same
		turn.Fail(session.ErrShutdown)
	}
}

// AdmissionStat returns how full the runtime is. Without Config.Admission it is zero.
func (rt *Runtime) AdmissionStat() AdmissionStat {
	a := rt.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.stat
	s.Live, s.Queued, s.ByGroup = a.queue.live, len(a.queue.waiting), maps.Clone(a.queue.byGroup)
	s.Host, s.Admitted = a.queue.machine, int64(a.queue.started)
	for _, p := range a.places {
		s.Processes += p.queue.live
		s.ProcessesQueued += len(p.queue.waiting)
	}
	if s.Queued > 0 {
		s.Oldest = a.clock.Now().Sub(a.queue.waiting[0].since)
	}
	return s
}
