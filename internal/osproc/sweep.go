package osproc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

const (
	cleanScans    = 2                     // scans in a row that must find nothing
	sweepPatience = 5 * time.Second       // without a find or a death, until survivors are reported
	sweepLimit    = 30 * time.Second      // in all, against what forks faster than it dies
	pauseMin      = time.Millisecond      // between scans that changed nothing
	pauseMax      = 50 * time.Millisecond // the pause doubles up to this
)

// table is the system's process table. The sweeper calls it from one task at a
// time.
type table interface {
	// scan passes over all processes once and reports each live member of a
	// wanted launch. It returns false when a process could not be judged yet.
	scan(w *wanted, found func(*sweepJob, member)) (settled bool, err error)
	// remember is called once, before the first launch: what lives now is of none.
	remember()
	// member returns process pid if it is one of j's launch.
	member(j *sweepJob, pid int) (member, bool)
	// kill kills m if it still is what the scan saw.
	kill(j *sweepJob, m member) error
	// gone reports whether m has ended.
	gone(m member) bool
	// since returns when the leader pid was started, in the unit of
	// member.start; 0: that is not known. The leader is not reaped.
	since(pid int) uint64
}

// member is a process of a launch, as a scan saw it.
type member struct {
	ProcInfo
	start   uint64 // start time: with the pid it names one process for good
	inGroup bool
}

type procKey struct {
	pid   int
	start uint64
}

func (m member) key() procKey { return procKey{m.PID, m.start} }

// victim is a member that was killed and not yet seen dead.
type victim struct {
	member
	err error
}

func (v victim) hopeless() bool { return errors.Is(v.err, syscall.EPERM) }

// wanted is what a scan looks for.
type wanted struct {
	markers map[string][]*sweepJob
	groups  map[int][]*sweepJob
	since   uint64       // when the oldest leader was started, as member.start; 0: not known
	exited  map[int]bool // leaders that were dead before the scan
	fresh   bool         // of a job that no scan has looked for yet
}

// sweepJob is one call of Sweep. All but left, err and done is the scanning
// task's own.
type sweepJob struct {
	marker string
	proc   *Process // nil: a launch of an earlier host

	since    uint64 // when the leader was started, as member.start; 0: not known
	started  time.Time
	progress time.Time // of the last find or death
	dirty    bool      // this scan found something
	clean    int       // scans in a row that did not
	held     map[procKey]victim
	kept     map[procKey]bool

	done chan struct{}
	left []ProcInfo // guarded by sweeper.mu until done is closed, and so is err
	err  error
}

// sweeper serves all sweeps of a launcher with common scans. Its task lives
// while there are jobs.
type sweeper struct {
	clock kernel.Clock
	exec  kernel.Executor
	keep  func(ProcInfo) bool
	log   *slog.Logger
	table table

	mu      sync.Mutex
	jobs    []*sweepJob
	running bool
	wake    chan struct{} // closed by the next job; nil once it is
}

func (s *sweeper) init(cfg Config, t table) {
	s.clock, s.exec, s.keep, s.log, s.table = cfg.Clock, cfg.Executor, cfg.KeepProcess, cfg.Logger, t
}

// remember shows the table what is older than all launches.
func (s *sweeper) remember() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		s.table.remember()
	}
}

func (s *sweeper) sweep(ctx context.Context, marker string, p *Process) ([]ProcInfo, error) {
	j := &sweepJob{
		marker: marker, proc: p, done: make(chan struct{}),
		held: make(map[procKey]victim), kept: make(map[procKey]bool),
	}
	s.mu.Lock()
	s.jobs = append(s.jobs, j)
	switch {
	case !s.running:
		s.running = true
		s.exec.Go(s.run)
	case s.wake != nil:
		close(s.wake)
		s.wake = nil
	}
	s.mu.Unlock()

	if err := s.exec.Await(ctx, j.done); err != nil {
		// The task may be stuck in the process table, so it is not waited for.
		s.mu.Lock()
		defer s.mu.Unlock()
		s.jobs = slices.DeleteFunc(s.jobs, func(o *sweepJob) bool { return o == j })
		return j.left, fmt.Errorf("osproc: sweep of %s ended early: %w", marker, err)
	}
	return j.left, j.err
}

func (s *sweeper) run() {
	pause := pauseMin
	for {
		jobs, wake := s.current()
		if len(jobs) == 0 {
			return
		}
		moved, finished := s.round(jobs)
		if moved || finished == len(jobs) {
			pause = pauseMin // continue at once: children may have been forked
			continue
		}
		if finished > 0 {
			pause = pauseMin // the others have come a round further, too
		}
		if s.sleep(pause, wake) {
			pause = pauseMin
		} else {
			pause = min(2*pause, pauseMax)
		}
	}
}

// current returns the jobs of the next scan, and what is closed when another
// job comes; with none the task ends.
func (s *sweeper) current() ([]*sweepJob, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = len(s.jobs) > 0
	s.wake = make(chan struct{})
	return slices.Clone(s.jobs), s.wake
}

// sleep waits for d, or until another job comes, which it reports.
func (s *sweeper) sleep(d time.Duration, wake <-chan struct{}) (woken bool) {
	select {
	case <-wake:
		return true
	default:
	}
	ctx, cancel := kernel.WithTimeout(context.Background(), s.clock, &session.TimeoutError{What: "sweep", Limit: d})
	defer cancel()
	return s.exec.Await(ctx, wake) == nil
}

// round makes one scan for all jobs. moved reports that a process was found or has
// died.
func (s *sweeper) round(jobs []*sweepJob) (moved bool, finished int) {
	now := s.clock.Now()
	w := s.open(jobs, now)
	settled, err := s.table.scan(w, func(j *sweepJob, m member) {
		if s.strike(j, m) {
			j.progress, moved = now, true
		}
	})
	for _, j := range jobs {
		if s.bury(j) {
			j.progress, moved = now, true
		}
		if j.dirty || !settled || err != nil {
			j.clean = 0
		} else {
			j.clean++
		}
		if s.close(j, now, err) {
			finished++
		}
	}
	return moved, finished
}

// open starts a round: it kills the groups of new jobs, at one instant each,
// and collects what to look for.
func (s *sweeper) open(jobs []*sweepJob, now time.Time) *wanted {
	w := &wanted{markers: make(map[string][]*sweepJob), groups: make(map[int][]*sweepJob), exited: make(map[int]bool)}
	for i, j := range jobs {
		j.dirty = false
		w.markers[j.marker] = append(w.markers[j.marker], j)
		if j.proc != nil {
			j.proc.holdingGroup(func() {
				w.groups[j.proc.Group()] = append(w.groups[j.proc.Group()], j)
				select {
				case <-j.proc.exited:
					w.exited[j.proc.PID()] = true
				default:
				}
				if j.since == 0 {
					j.since = s.table.since(j.proc.PID())
				}
			})
		}
		if i == 0 || j.since < w.since {
			w.since = j.since
		}
		if !j.started.IsZero() {
			continue
		}
		j.started, j.progress, w.fresh = now, now, true
		if j.proc != nil {
			_ = j.proc.Kill()
		}
	}
	return w
}

// strike kills m unless it is to be kept. It reports whether m is new.
func (s *sweeper) strike(j *sweepJob, m member) bool {
	if !m.inGroup && s.keeps(j, m) {
		return false
	}
	_, seen := j.held[m.key()]
	j.dirty = j.dirty || !seen
	j.held[m.key()] = victim{m, s.table.kill(j, m)}
	return !seen
}

// bury forgets the victims that are dead. It reports whether there were any.
func (s *sweeper) bury(j *sweepJob) (some bool) {
	//troupe:maporder each victim is looked at for itself
	for key, v := range j.held {
		if s.table.gone(v.member) {
			delete(j.held, key)
			some = true
		}
		j.dirty = j.dirty || !v.hopeless()
	}
	return some
}

// close publishes where j stands, and ends it when that is final.
func (s *sweeper) close(j *sweepJob, now time.Time, scanErr error) bool {
	left := make([]ProcInfo, 0, len(j.held))
	for _, v := range j.held {
		left = append(left, v.ProcInfo)
	}
	slices.SortFunc(left, func(a, b ProcInfo) int { return cmp.Compare(a.PID, b.PID) })
	final := j.clean >= cleanScans || errors.Is(scanErr, fs.ErrNotExist) ||
		now.Sub(j.progress) >= sweepPatience || now.Sub(j.started) >= sweepLimit

	s.mu.Lock()
	defer s.mu.Unlock()
	j.left = left
	if !final {
		return false
	}
	j.err = sweepError(j.marker, left, scanErr)
	s.jobs = slices.DeleteFunc(s.jobs, func(o *sweepJob) bool { return o == j })
	close(j.done)
	return true
}

func sweepError(marker string, left []ProcInfo, scanErr error) error {
	if scanErr != nil {
		return fmt.Errorf("osproc: sweep of %s: only the process group was reached: %w", marker, scanErr)
	}
	if len(left) == 0 {
		return nil
	}
	names := make([]string, len(left))
	for i, p := range left {
		names[i] = p.String()
	}
	return fmt.Errorf("%w: %s: %s: end them by hand, or sweep again", ErrSurvivors, marker, strings.Join(names, ", "))
}

// keeps reports whether the user spares m or an ancestor of it in the launch.
// Each process is asked about once in a sweep.
func (s *sweeper) keeps(j *sweepJob, m member) bool {
	if s.keep == nil {
		return false
	}
	if keep, asked := j.kept[m.key()]; asked {
		return keep
	}
	j.kept[m.key()] = false
	keep := s.ask(m.ProcInfo)
	if !keep {
		if parent, ok := s.table.member(j, m.PPID); ok && !parent.inGroup {
			keep = s.keeps(j, parent)
		}
	}
	j.kept[m.key()] = keep
	return keep
}

func (s *sweeper) ask(info ProcInfo) (keep bool) {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("KeepProcess panicked: the process is not spared", "pid", info.PID, "name", info.Name, "panic", r)
			keep = false
		}
	}()
	return s.keep(info)
}
