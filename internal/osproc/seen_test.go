//go:build linux

package osproc

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// knows returns what t remembers of a process.
func (t *procfs) knows(pid int) *seenProc {
	i := slices.IndexFunc(t.seen, func(p *seenProc) bool { return p.pid == pid })
	if i < 0 {
		return nil
	}
	return t.seen[i]
}

// scanned returns the pids that a scan for j finds.
func scanned(t *testing.T, table *procfs, w *wanted) (pids []int) {
	t.Helper()
	_, err := table.scan(w, func(_ *sweepJob, m member) { pids = append(pids, m.PID) })
	require.NoError(t, err)
	return pids
}

func TestAScanReadsAProcessOnce(t *testing.T) {
	t.Parallel()
	p := launchAgent(t, NewLauncher(Config{}), agent(newToken(), "wait"))
	requireReady(t, p)
	mine := &wanted{markers: map[string][]*sweepJob{p.Marker(): {new(sweepJob)}}}
	others := &wanted{markers: map[string][]*sweepJob{markerPrefix + "other": {new(sweepJob)}}}
	leader := false
	table := newTable(func(int) bool { return leader }, noLeader).(*procfs)

	assert.Empty(t, scanned(t, table, others))
	known := table.knows(p.PID())
	require.NotNil(t, known)
	assert.Equal(t, []string{p.Marker()}, known.markers)
	assert.Equal(t, []int{p.PID()}, scanned(t, table, mine), "of the markers that the scan before has read")
	assert.Same(t, known, table.knows(p.PID()))

	known.markers = nil
	assert.Empty(t, scanned(t, table, mine), "what was read once is not read again")
	leader = true
	assert.Equal(t, []int{p.PID()}, scanned(t, table, mine), "a leader had the environment of its host until exec")
	known.markers = nil
	assert.Empty(t, scanned(t, table, mine), "once it is read as a leader that is over")

	known.markers = []string{p.Marker() + "dropped"}
	dropped := &wanted{markers: map[string][]*sweepJob{p.Marker() + "dropped": {new(sweepJob)}}}
	assert.Empty(t, scanned(t, table, dropped), "what is about to be killed is read again")

	known.markers, known.inode = nil, known.inode+1
	assert.Equal(t, []int{p.PID()}, scanned(t, table, mine), "another process of the same number")
	assert.NotSame(t, known, table.knows(p.PID()))
}

func TestAScanSkipsWhatIsOlderThanTheLeaders(t *testing.T) {
	t.Parallel()
	p := launchAgent(t, NewLauncher(Config{}), agent(newToken(), "wait"))
	requireReady(t, p)
	table := newTable(func(int) bool { return true }, noLeader).(*procfs)
	w := &wanted{markers: map[string][]*sweepJob{p.Marker(): {new(sweepJob)}}, since: table.since(p.PID())}
	require.NotZero(t, w.since)
	assert.Equal(t, []int{p.PID()}, scanned(t, table, w))
	parent := table.knows(os.Getppid())
	require.NotNil(t, parent)
	assert.Equal(t, parent.start >= w.since, parent.read)
	w.since++
	assert.Empty(t, scanned(t, table, w))
}

// A list is made again when a process was born since the last one was begun, and
// in any case at the begin of each sweep.
func TestAScanListsOnlyWhatMayBeNew(t *testing.T) {
	t.Parallel()
	table := newTable(func(int) bool { return true }, noLeader).(*procfs)
	lists, last, during := 0, "10", ""
	table.list = func() ([]procID, error) {
		lists++
		if during != "" {
			last, during = during, ""
		}
		return procIDs(os.Getppid(), 1<<30), nil // the second is gone when it is looked at
	}
	table.last = func() string { return last }
	table.remember()
	for i, step := range []struct {
		last, during string
		fresh        bool
		lists        int
	}{
		{last: "10", lists: 2},               // nothing says that the number ever changes
		{last: "11", lists: 1},               // changed
		{last: "11", lists: 0},               // did not
		{last: "11", fresh: true, lists: 1},  // a new sweep
		{last: "12", during: "13", lists: 1}, // somebody was born while the list was made
		{last: "13", lists: 1},
		{last: "13", lists: 0},
		{last: "12", lists: 1}, // pids start again
		{last: "", lists: 1},   // not known
		{last: "", lists: 1},
	} {
		lists, last, during = 0, step.last, step.during
		assert.Empty(t, scanned(t, table, &wanted{fresh: step.fresh}))
		assert.Equal(t, step.lists, lists, "step %d", i)
	}
}

// The number is of this system: it changes with each process.
func TestANewProcessHasANewPID(t *testing.T) {
	t.Parallel()
	table := newTable(nil, noLeader).(*procfs)
	before := table.lastPID()
	launchAgent(t, NewLauncher(Config{}), agent(newToken(), "wait"))
	if before != "" { // a kernel without checkpoints does not tell
		assert.NotEqual(t, before, table.lastPID())
	}
}

// What lives before the first launch is not read, unless it may be of an earlier host.
func TestWhatIsOlderThanTheLaunchesIsNotRead(t *testing.T) {
	t.Parallel()
	p := launchAgent(t, NewLauncher(Config{}), agent(newToken(), "wait"))
	requireReady(t, p)
	table := newTable(func(int) bool { return false }, noLeader).(*procfs)
	table.remember()
	w := &wanted{markers: map[string][]*sweepJob{p.Marker(): {new(sweepJob)}}, since: 1}
	assert.Empty(t, scanned(t, table, w))
	assert.False(t, table.knows(p.PID()).read)
	w.since = 0
	assert.Equal(t, []int{p.PID()}, scanned(t, table, w))

	l, f := NewLauncher(Config{}), &fakeTable{settled: true}
	l.sweeper.table = f
	for range 2 {
		finish(t, launchAgent(t, l, agent(newToken(), "leave")))
	}
	assert.Equal(t, 1, f.remembered)
}

// An exited leader is in the process table until it is reaped. No scan lists
// again because of it.
func TestADeadProcessIsNewsOnce(t *testing.T) {
	t.Parallel()
	p := launchAgent(t, NewLauncher(Config{}), agent(newToken(), "wait"))
	requireReady(t, p)
	require.NoError(t, p.Kill())
	awaitExit(t, p)
	for _, known := range []bool{false, true} {
		table := newTable(func(int) bool { return true }, noLeader).(*procfs)
		lists := 0
		table.list = func() ([]procID, error) { lists++; return procIDs(p.PID()), nil }
		w := &wanted{groups: map[int][]*sweepJob{p.Group(): {new(sweepJob)}}, exited: map[int]bool{p.PID(): known}}
		for range 3 {
			assert.Empty(t, scanned(t, table, w))
		}
		assert.Equal(t, map[bool]int{false: 4, true: 3}[known], lists)
	}
}

func TestProcessesAreListedWithTheirInodes(t *testing.T) {
	t.Parallel()
	table := newTable(nil, noLeader).(*procfs)
	ids, err := table.listProcs()
	require.NoError(t, err)
	assert.True(t, slices.IsSortedFunc(ids, func(a, b procID) int { return a.pid - b.pid }))
	i := slices.IndexFunc(ids, func(id procID) bool { return id.pid == os.Getpid() })
	require.GreaterOrEqual(t, i, 0)
	mine := ids[i].inode
	require.NotZero(t, mine)
	ids, err = table.listProcs()
	require.NoError(t, err)
	i = slices.IndexFunc(ids, func(id procID) bool { return id.pid == os.Getpid() })
	assert.Equal(t, mine, ids[i].inode, "the same process")

	for _, bad := range []string{"", "short", string(make([]byte, 24)), "12345678" + "12345678" + "\xff\xff" + "4" + "1\x00\x00\x00\x00"} {
		assert.Empty(t, appendProcs(nil, []byte(bad)), "%q", bad)
	}
}

func noLeader(int) []string { return nil }

// The launcher knows the markers of its leaders. One of another launch is not read.
func TestAScanDoesNotReadOtherLeaders(t *testing.T) {
	t.Parallel()
	l := NewLauncher(Config{})
	p := launchAgent(t, l, agent(newToken(), "wait"))
	requireReady(t, p)
	table := newTable(l.leads, l.carried).(*procfs)
	assert.Empty(t, scanned(t, table, &wanted{markers: map[string][]*sweepJob{markerPrefix + "other": {new(sweepJob)}}}))
	known := table.knows(p.PID())
	require.NotNil(t, known)
	assert.False(t, known.met)
	assert.False(t, known.read)
	for name, w := range map[string]*wanted{
		"its marker": {markers: map[string][]*sweepJob{p.Marker(): {new(sweepJob)}}},
		"its group":  {groups: map[int][]*sweepJob{p.PID(): {new(sweepJob)}}},
	} {
		assert.Equal(t, []int{p.PID()}, scanned(t, table, w), name)
	}
}
