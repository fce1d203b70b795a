//go:build linux

package osproc

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// leapClock jumps to the end of each wait.
type leapClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *leapClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

type noTimer struct{}

func (noTimer) Stop() bool { return false }

func (c *leapClock) AfterFunc(d time.Duration, fn func()) kernel.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	go fn()
	return noTimer{}
}

// fakeTable is a process table that a test writes. onScan runs before each
// scan and may change it.
type fakeTable struct {
	procs      map[string][]member // by marker
	scans      int
	remembered int
	killed     []int
	killErr    error
	immortal   bool
	settled    bool
	scanErr    error
	onScan     func(*fakeTable)
}

func (f *fakeTable) scan(w *wanted, found func(*sweepJob, member)) (bool, error) {
	f.scans++
	if f.onScan != nil {
		f.onScan(f)
	}
	for marker, jobs := range w.markers {
		for _, m := range slices.Clone(f.procs[marker]) {
			for _, j := range jobs {
				found(j, m)
			}
		}
	}
	return f.settled, f.scanErr
}

func (f *fakeTable) member(j *sweepJob, pid int) (member, bool) {
	for _, m := range f.procs[j.marker] {
		if m.PID == pid {
			return m, true
		}
	}
	return member{}, false
}

func (f *fakeTable) kill(j *sweepJob, m member) error {
	f.killed = append(f.killed, m.PID)
	if f.killErr == nil && !f.immortal {
		f.procs[j.marker] = slices.DeleteFunc(f.procs[j.marker], func(o member) bool { return o.PID == m.PID })
	}
	return f.killErr
}

func (*fakeTable) since(int) uint64 { return 0 }

func (f *fakeTable) remember() { f.remembered++ }

func (f *fakeTable) gone(m member) bool {
	for _, ms := range f.procs {
		if slices.ContainsFunc(ms, func(o member) bool { return o.key() == m.key() }) {
			return false
		}
	}
	return true
}

func fakeProc(pid, parent int) member {
	return member{ProcInfo: ProcInfo{PID: pid, PPID: parent, Name: "p"}, start: 1}
}

const fakeMarker = markerPrefix + "1_a"

// fakeSweeper sweeps a table of two processes.
func fakeSweeper(f *fakeTable, keep func(ProcInfo) bool) (*sweeper, *leapClock) {
	if f.procs == nil {
		f.procs = map[string][]member{fakeMarker: {fakeProc(12, 1), fakeProc(11, 1)}}
	}
	clk := &leapClock{now: time.Unix(0, 0)}
	s := new(sweeper)
	l := NewLauncher(Config{Clock: clk, KeepProcess: keep})
	s.init(l.cfg, f)
	return s, clk
}

func TestSweepEndsAfterTwoCleanScans(t *testing.T) {
	t.Parallel()
	f := &fakeTable{settled: true}
	s, _ := fakeSweeper(f, nil)
	left, err := s.sweep(t.Context(), fakeMarker, nil)
	require.NoError(t, err)
	assert.Empty(t, left)
	assert.Equal(t, []int{12, 11}, f.killed)
	assert.Equal(t, 3, f.scans, "one that found, two that did not")
}

func TestSweepStartsOverWhenAScanFindsMore(t *testing.T) {
	t.Parallel()
	f := &fakeTable{settled: true, onScan: func(f *fakeTable) {
		if f.scans == 3 { // after the first clean one
			f.procs[fakeMarker] = append(f.procs[fakeMarker], fakeProc(13, 1))
		}
	}}
	s, _ := fakeSweeper(f, nil)
	_, err := s.sweep(t.Context(), fakeMarker, nil)
	require.NoError(t, err)
	assert.Equal(t, []int{12, 11, 13}, f.killed)
	assert.Equal(t, 5, f.scans)
}

func TestSweepWaitsForUnsettledProcesses(t *testing.T) {
	t.Parallel()
	f := &fakeTable{procs: map[string][]member{}, onScan: func(f *fakeTable) { f.settled = f.scans > 4 }}
	s, _ := fakeSweeper(f, nil)
	_, err := s.sweep(t.Context(), fakeMarker, nil)
	require.NoError(t, err)
	assert.Equal(t, 6, f.scans)
}

func TestSweepReportsSurvivors(t *testing.T) {
	t.Parallel()
	endless := 100
	for _, tc := range []struct {
		name string
		f    fakeTable
		took time.Duration
		is   error
		left int
	}{
		{"they do not die", fakeTable{settled: true, immortal: true}, sweepPatience, ErrSurvivors, 2},
		{"we may not kill them", fakeTable{settled: true, killErr: syscall.EPERM}, pauseMin, ErrSurvivors, 2},
		{"we have no descriptor to kill with", fakeTable{settled: true, killErr: syscall.EMFILE}, sweepPatience, ErrSurvivors, 2},
		{"there is no process table", fakeTable{scanErr: fs.ErrNotExist}, 0, fs.ErrNotExist, 0},
		{"the process table cannot be read", fakeTable{scanErr: syscall.EMFILE}, sweepPatience, syscall.EMFILE, 0},
		{"they fork for ever", fakeTable{settled: true, immortal: true, onScan: func(f *fakeTable) {
			endless++
			f.procs[fakeMarker] = []member{fakeProc(endless, 1)}
		}}, 0, context.DeadlineExceeded, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := tc.f
			s, clk := fakeSweeper(&f, nil)
			ctx := t.Context()
			if errors.Is(tc.is, context.DeadlineExceeded) {
				var cancel context.CancelCauseFunc
				ctx, cancel = context.WithCancelCause(ctx)
				onScan := f.onScan
				f.onScan = func(f *fakeTable) {
					if onScan(f); f.scans == 10 {
						cancel(tc.is)
					}
				}
			}
			left, err := s.sweep(ctx, fakeMarker, nil)
			require.ErrorIs(t, err, tc.is)
			assert.Len(t, left, tc.left)
			assert.True(t, slices.IsSortedFunc(left, func(a, b ProcInfo) int { return a.PID - b.PID }))
			if took := clk.Now().Sub(time.Unix(0, 0)); !errors.Is(tc.is, context.DeadlineExceeded) {
				assert.GreaterOrEqual(t, took, tc.took)
				assert.Less(t, took, tc.took+time.Second)
			}
			eventually(t, func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return !s.running
			}, "the scanning task goes on")
		})
	}
}

func TestSweepLimit(t *testing.T) {
	t.Parallel()
	var clk *leapClock
	f := &fakeTable{settled: true, immortal: true, onScan: func(f *fakeTable) {
		f.procs[fakeMarker] = []member{fakeProc(1000+f.scans, 1)} // always another one
		clk.AfterFunc(time.Second, func() {})
	}}
	var s *sweeper
	s, clk = fakeSweeper(f, nil)
	left, err := s.sweep(t.Context(), fakeMarker, nil)
	require.ErrorIs(t, err, ErrSurvivors)
	assert.Len(t, left, 1)
	assert.InDelta(t, sweepLimit.Seconds(), clk.Now().Sub(time.Unix(0, 0)).Seconds(), 1.5)
}

func TestSweepsShareScans(t *testing.T) {
	t.Parallel()
	const n = 50
	procs := make(map[string][]member)
	marker := func(i int) string { return fakeMarker + string(rune('a'+i)) }
	for i := range n {
		procs[marker(i)] = []member{fakeProc(100+i, 1)}
	}
	var s *sweeper
	f := &fakeTable{settled: true, procs: procs, onScan: func(f *fakeTable) {
		for f.scans == 1 { // until all have come
			s.mu.Lock()
			all := len(s.jobs) == n
			s.mu.Unlock()
			if all {
				break
			}
		}
	}}
	s, _ = fakeSweeper(f, nil)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			_, err := s.sweep(t.Context(), marker(i), nil)
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	assert.Len(t, f.killed, n)
	assert.LessOrEqual(t, f.scans, 4)
}

// A sweep of what does not die makes long pauses. Another one that begins, or
// ends, makes the next pause a short one.
func TestAnotherSweepShortensThePause(t *testing.T) {
	t.Parallel()
	const other = fakeMarker + "b"
	var (
		s     *sweeper
		clk   *leapClock
		scans []time.Time
		joins sync.WaitGroup
	)
	f := &fakeTable{settled: true, immortal: true, onScan: func(*fakeTable) {
		scans = append(scans, clk.Now())
		if len(scans) != 20 {
			return
		}
		joins.Go(func() {
			_, err := s.sweep(t.Context(), other, nil)
			assert.NoError(t, err)
		})
		for both := false; !both; {
			s.mu.Lock()
			both = len(s.jobs) == 2
			s.mu.Unlock()
		}
	}}
	s, clk = fakeSweeper(f, nil)
	_, err := s.sweep(t.Context(), fakeMarker, nil)
	require.ErrorIs(t, err, ErrSurvivors)
	joins.Wait()
	assert.Equal(t, pauseMax, scans[19].Sub(scans[18]), "alone")
	assert.Zero(t, scans[20].Sub(scans[19]), "the other has come")
	assert.Equal(t, pauseMin, scans[21].Sub(scans[20]), "its first clean scan")
	assert.Equal(t, pauseMin, scans[22].Sub(scans[21]), "it has ended")
	assert.Equal(t, pauseMax, scans[40].Sub(scans[39]), "alone again")
}

// The scan hangs in the process table: the caller still gets away.
func TestSweepStopsAtTheContextsEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	reason, hang := errors.New("no time left"), make(chan struct{})
	f := &fakeTable{settled: true, immortal: true, onScan: func(f *fakeTable) {
		if f.scans == 3 {
			cancel(reason)
			<-hang
		}
	}}
	s, _ := fakeSweeper(f, nil)
	left, err := s.sweep(ctx, fakeMarker, nil)
	close(hang)
	require.ErrorIs(t, err, reason)
	assert.Len(t, left, 2, "what was known to be left")
}

func TestKeepProcess(t *testing.T) {
	t.Parallel()
	family := func() map[string][]member {
		return map[string][]member{fakeMarker: {
			fakeProc(10, 1), fakeProc(11, 10), fakeProc(12, 11), fakeProc(20, 1),
			{ProcInfo: ProcInfo{PID: 30, PPID: 10}, start: 1, inGroup: true},
		}}
	}
	for _, tc := range []struct {
		name   string
		keep   func(ProcInfo) bool
		killed []int
	}{
		{"nobody", func(ProcInfo) bool { return false }, []int{10, 11, 12, 20, 30}},
		{"an ancestor", func(i ProcInfo) bool { return i.PID == 10 }, []int{20, 30}},
		{"one in the middle", func(i ProcInfo) bool { return i.PID == 11 }, []int{10, 20, 30}},
		{"a panic spares nobody", func(ProcInfo) bool { panic("oops") }, []int{10, 11, 12, 20, 30}},
		{"never of the group", func(ProcInfo) bool { return true }, []int{30}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			asked := make(map[int]int)
			f := &fakeTable{settled: true, procs: family()}
			s, _ := fakeSweeper(f, func(i ProcInfo) bool {
				asked[i.PID]++
				return tc.keep(i)
			})
			left, err := s.sweep(t.Context(), fakeMarker, nil)
			require.NoError(t, err)
			assert.Empty(t, left, "what is spared is no survivor")
			assert.ElementsMatch(t, tc.killed, f.killed)
			for pid, n := range asked {
				assert.Equal(t, 1, n, "pid %d", pid)
			}
		})
	}
}
