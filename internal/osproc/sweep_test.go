//go:build linux

// Linux: processes that left their group are found in /proc.

package osproc

import (
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The whole tree is looked for from outside, by its arguments.
func TestNothingOfTheTreeSurvives(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		mode   string
		args   []string
		leaves bool // the leader exits by itself
	}{
		{mode: "child"},
		{mode: "session"},
		{mode: "leave", leaves: true},
		{mode: "orphan"},
		{mode: "stubborn"},
		{mode: "headless"},
		{mode: "hopper"},
		{mode: "breeder"},
	} {
		for _, kill := range []bool{true, false} {
			t.Run(tc.mode+map[bool]string{true: " kill and sweep", false: " sweep alone"}[kill], func(t *testing.T) {
				t.Parallel()
				token := newToken()
				p := launchAgent(t, NewLauncher(Config{}), agent(token, tc.mode, tc.args...))
				requireReady(t, p)
				require.NotEmpty(t, withToken(token))
				if tc.leaves {
					awaitExit(t, p)
				}
				if kill {
					require.NoError(t, p.Kill())
					awaitExit(t, p)
				}
				left, err := p.Sweep(testContext(t))
				require.NoError(t, err)
				assert.Empty(t, left)
				assert.Empty(t, withToken(token))
				awaitExit(t, p)
				_, err = p.Reap()
				require.NoError(t, err)
				assert.False(t, isAlive(p.PID()))
				assert.Empty(t, withToken(token))
			})
		}
	}
}

// One that exits as soon as its child runs is never where the last look found
// it. What escaped would go on hopping, so it is looked for more than once.
func TestHoppersDoNotEscape(t *testing.T) {
	t.Parallel()
	l := NewLauncher(Config{})
	for range fewer(5, 2) {
		token := newToken()
		p := launchAgent(t, l, agent(token, "hopper"))
		requireReady(t, p)
		finish(t, p)
		for range 5 {
			require.Empty(t, withToken(token))
		}
	}
}

// procIDs are processes of a list that a test makes up.
func procIDs(pids ...int) (ids []procID) {
	for _, pid := range pids {
		ids = append(ids, procID{pid, uint64(pid)})
	}
	return ids
}

func TestScanListsAgainWhenAProcessVanished(t *testing.T) {
	t.Parallel()
	p := launchAgent(t, NewLauncher(Config{}), agent(newToken(), "wait"))
	requireReady(t, p)
	const never = 1 << 30
	for _, tc := range []struct {
		name    string
		lists   [][]int
		found   int
		settled bool
	}{
		{"newcomers behind one that is gone", [][]int{{never}, {never, never + 1}, {p.PID(), never}}, 1, true},
		{"nobody is gone", [][]int{{os.Getppid()}, {p.PID()}}, 0, true},
		{"nobody is judged twice", [][]int{{p.PID(), never}, {p.PID()}}, 1, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			table := newTable(func(int) bool { return true }, noLeader).(*procfs)
			table.list = func() ([]procID, error) {
				next := tc.lists[0]
				tc.lists = tc.lists[1:]
				return procIDs(next...), nil
			}
			j, found := new(sweepJob), 0
			settled, err := table.scan(&wanted{markers: map[string][]*sweepJob{p.Marker(): {j}}},
				func(*sweepJob, member) { found++ })
			require.NoError(t, err)
			assert.Equal(t, tc.settled, settled)
			assert.Equal(t, tc.found, found)
		})
	}

	table := newTable(nil, noLeader).(*procfs)
	lists := 0
	table.list = func() ([]procID, error) { lists++; return procIDs(never + lists), nil }
	settled, err := table.scan(new(wanted), nil)
	require.NoError(t, err)
	assert.False(t, settled, "it gives up for now when each list is old at once")
}

func TestSweepAfterReap(t *testing.T) {
	t.Parallel()
	token := newToken()
	p := launchAgent(t, NewLauncher(Config{}), agent(token, "leave"))
	requireReady(t, p)
	awaitExit(t, p)
	_, err := p.Reap()
	require.NoError(t, err)
	require.Len(t, withToken(token), 1, "the child has a session of its own")
	left, err := p.Sweep(testContext(t))
	require.NoError(t, err)
	assert.Empty(t, left)
	assert.Empty(t, withToken(token))
}

func TestSweepLeavesOtherLaunchesAlone(t *testing.T) {
	t.Parallel()
	l := NewLauncher(Config{})
	mine, other, nested := newToken(), newToken(), newToken()
	p := launchAgent(t, l, agent(mine, "session"))
	q := launchAgent(t, l, agent(other, "session"))
	requireReady(t, p)
	requireReady(t, q)
	// What q's tree launches carries q's marker and one of its own.
	c := agent(nested, "session")
	c.Env = append(c.Env, q.Marker()+"=1", "NOISE_"+p.Marker()+"=1", "X="+p.Marker()+"=1")
	r := launchAgent(t, l, c)
	requireReady(t, r)

	finish(t, p)
	assert.Empty(t, withToken(mine))
	assert.Len(t, withToken(other), 2)
	assert.Len(t, withToken(nested), 2, "a marker's name inside another variable is no marker")

	finish(t, q)
	assert.Empty(t, withToken(other))
	assert.Empty(t, withToken(nested), "a nested launch goes with the outer one")
}

func TestKeepProcessSparesADaemonAndItsChildren(t *testing.T) {
	t.Parallel()
	token := newToken()
	var mu sync.Mutex
	var asked []ProcInfo
	l := NewLauncher(Config{KeepProcess: func(i ProcInfo) bool {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, i)
		return slices.Contains(i.Args, "keep")
	}})
	p := launchAgent(t, l, agent(token, "daemons"))
	requireReady(t, p)
	requireReady(t, p)
	require.Len(t, withToken(token), 4)
	finish(t, p)

	kept := withToken(token)
	t.Cleanup(func() {
		for _, pid := range kept {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	require.Len(t, kept, 2, "the daemon and its child")
	mu.Lock()
	defer mu.Unlock()
	assert.Len(t, asked, 3, "each once, and nobody of the group")
	for _, i := range asked {
		assert.Contains(t, i.Args, token)
		assert.NotEqual(t, p.Group(), i.Group)
		assert.Equal(t, "exe", i.Name)
		assert.Positive(t, i.PPID)
	}
}

func TestSweepsAtTheSameTime(t *testing.T) {
	t.Parallel()
	n := fewer(20, 8)
	l := NewLauncher(Config{})
	token := newToken()
	procs := make([]*Process, n)
	for i := range procs {
		procs[i] = launchAgent(t, l, agent(token, "session"))
		requireReady(t, procs[i])
	}
	require.Len(t, withToken(token), 2*n)
	var wg sync.WaitGroup
	for _, p := range procs {
		wg.Go(func() { finish(t, p) })
	}
	wg.Wait()
	assert.Empty(t, withToken(token))
}

// On a kernel without pidfd a victim is named by its pid and its start time.
func TestKillByPID(t *testing.T) {
	t.Parallel()
	p := launchAgent(t, NewLauncher(Config{}), agent(newToken(), "wait"))
	requireReady(t, p)
	table := newTable(func(int) bool { return true }, noLeader).(*procfs)
	m, ok := table.member(&sweepJob{marker: p.Marker(), proc: p}, p.PID())
	require.True(t, ok)
	assert.True(t, m.inGroup)
	other := m
	other.start++
	require.NoError(t, table.killByPID(other))
	assert.True(t, isAlive(p.PID()))
	assert.True(t, table.gone(other))
	assert.False(t, table.gone(m))
	require.NoError(t, table.killByPID(m))
	awaitExit(t, p)
	assert.True(t, table.gone(m))
}

func TestTableNeverNamesTheHost(t *testing.T) {
	t.Parallel()
	table := newTable(func(int) bool { return true }, noLeader).(*procfs)
	for _, pid := range []int{0, 1, os.Getpid()} {
		_, ok := table.member(&sweepJob{marker: "PATH"}, pid)
		assert.False(t, ok)
	}
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	line, err := os.ReadFile("/proc/self/stat")
	require.NoError(t, err)
	st, err := parseStat(line)
	require.NoError(t, err)
	assert.Equal(t, os.Getppid(), st.parent)
	assert.Equal(t, syscall.Getpgrp(), st.group)
	assert.Positive(t, st.threads)
	assert.NotZero(t, st.start)
	assert.NotZero(t, st.envEnd)
	assert.False(t, st.dead())

	odd := "42 (a) b (c) " + string(line[strings.LastIndexByte(string(line), ')')+2:])
	st, err = parseStat([]byte(odd[:4] + "x) Z (" + odd[4:]))
	require.NoError(t, err)
	assert.Equal(t, os.Getppid(), st.parent, "a name may hold anything")

	for _, bad := range []string{"", "1", "1 (a", "1 )a(", "1 (a) S 2 3"} {
		_, err := parseStat([]byte(bad))
		assert.Error(t, err, bad)
	}
}

func FuzzParseStat(f *testing.F) {
	line, err := os.ReadFile("/proc/self/stat")
	require.NoError(f, err)
	f.Add(line)
	f.Add([]byte("1 (a) S"))
	f.Fuzz(func(t *testing.T, line []byte) {
		st, err := parseStat(line)
		if err != nil {
			assert.Zero(t, st)
		}
	})
}

func FuzzEachMarker(f *testing.F) {
	f.Add([]byte("A=1\x00" + markerPrefix + "1_a=1\x00"))
	f.Add([]byte(markerPrefix))
	f.Fuzz(func(t *testing.T, env []byte) {
		var want, got []string
		for _, entry := range strings.Split(string(env), "\x00") {
			if name, _, ok := strings.Cut(entry, "="); ok && strings.HasPrefix(name, markerPrefix) {
				want = append(want, name)
			}
		}
		eachMarker(env, func(name []byte) { got = append(got, string(name)) })
		assert.Equal(t, want, got)
	})
}

func BenchmarkSweep(b *testing.B) {
	l := NewLauncher(Config{})
	for b.Loop() {
		if _, err := l.SweepMarker(b.Context(), markerPrefix+"nobody"); err != nil {
			b.Fatal(err)
		}
	}
}
