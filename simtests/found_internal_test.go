package simtests

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
)

// told is a test that keeps what it is told.
type told struct {
	errors []string
	logs   []string
}

func (s *told) Helper()           {}
func (s *told) Error(args ...any) { s.errors = append(s.errors, fmt.Sprint(args...)) }
func (s *told) Fatal(args ...any) { panic(fmt.Sprint(args...)) }
func (s *told) Logf(format string, args ...any) {
	s.logs = append(s.logs, fmt.Sprintf(format, args...))
}

// explored plays a scenario and returns the one failure that is reported, "" for
// none.
func explored(t *testing.T, c Config, scenario func(*World)) string {
	t.Helper()
	c.DoNotKeep, c.exact = true, true
	s := &told{}
	r := exploreTo(t, s, c, scenario)
	require.Equal(t, r.Failed, len(s.errors) > 0)
	require.LessOrEqual(t, len(s.errors), 1, "reported once: %q", s.errors)
	return strings.Join(s.errors, "")
}

// What goes wrong in a scenario is reported by the name of the promise.
func TestExploreFinds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config   Config
		scenario func(*World)
		want     []string
	}{
		"an assertion": {Config{Seeds: 3}, func(w *World) { require.Equal(w, 1, 2) }, []string{"Not equal", "-sim.replay=sim1-"}},
		"a panic":      {Config{Seeds: 3}, func(*World) { panic("oh") }, []string{"the scenario panicked: oh"}},
		"a panic of a task": {Config{Seeds: 3}, func(w *World) {
			w.Go(func() { panic("oh") })
		}, []string{"the scenario panicked: oh"}},
		"a task that waits for ever": {Config{Seeds: 3}, func(w *World) {
			w.Go(func() { leftOfAScenario(make(chan struct{})) })
		}, []string{"liveness"}},
		"a goroutine that is left": {Config{Seeds: 3, Shrink: -1}, func(*World) {
			ch := make(chan struct{})
			go leftOfAScenario(ch)
		}, []string{"no-orphans", "leftOfAScenario"}},
		"a session without an end": {Config{Seeds: 3}, func(w *World) {
			o := &sdk.Options{}
			o.Limits.Stall = -1
			c := w.Open(o, &scripted.Script{Default: scripted.Steps{scripted.Delay(1000 * time.Hour)}})
			_, _ = c.Send(w.Context(), sdk.UserText("go"))
		}, []string{"liveness"}},
		"steps without an end": {Config{Seeds: 1, Steps: 300}, func(w *World) {
			for !w.Failed() {
				w.Sleep(time.Second)
			}
		}, []string{"liveness", "budget of steps"}},
		"two histories of one seed": {Config{Seeds: 40, Twice: 1}, func(w *World) {
			m := map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true, 6: true}
			for k := range m {
				w.Note("%d", k)
			}
		}, []string{"deterministic: the same seed gave two histories"}},
		"what never happens": {Config{Seeds: 100}, func(w *World) { w.Sometimes("it rains", false) }, []string{`"it rains": never in 100 histories`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := explored(t, c.config, c.scenario)
			for _, want := range c.want {
				assert.Contains(t, got, want)
			}
		})
	}
}

func leftOfAScenario(ch chan struct{}) { <-ch }

// lostUpdate is a bug that needs one order of two tasks and a fault.
func lostUpdate(w *World) {
	w.Faults(SlowCallback(0.25, "", time.Second), Noise(0.5), SplitWrites(0.5), AgentExit(0.3, 1))
	balance := 10
	for range 3 {
		w.Go(func() {
			seen := balance
			w.Sleep(0)
			balance = seen - 1
		})
	}
	w.Run()
	c, err := w.Dial(nil, nil)
	if err == nil {
		_ = c.Close(w.Context())
	}
	if err != nil && balance != 7 {
		w.Errorf("lost: the balance is %d", balance)
	}
}

// A failing history is made smaller: of faults those alone that matter, and of
// decisions a few. Its token plays it again.
func TestShrinkAndReplay(t *testing.T) {
	got := explored(t, Config{Seeds: 500}, lostUpdate)
	require.Contains(t, got, "lost: the balance is")
	assert.NotContains(t, got, "Noise")
	assert.NotContains(t, got, "SplitWrites")
	assert.Equal(t, 1, strings.Count(got, "AgentExit(1)@"), got)
	_, token, ok := strings.Cut(got, "-sim.replay=")
	require.True(t, ok)
	token, _, _ = strings.Cut(token, " ")
	h, err := parseToken(token)
	require.NoError(t, err)
	assert.Less(t, len(h.Choices), 60, "%v", h.Choices)

	t.Setenv("TROUPE_SIM_REPLAY", token)
	dir := t.TempDir()
	t.Setenv("TROUPE_SIM_TRACE", dir)
	again := explored(t, Config{}, lostUpdate)
	assert.Contains(t, again, "lost: the balance is")
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, files, 2)

	t.Setenv("TROUPE_SIM_REPLAY", "sim1-nonsense")
	assert.PanicsWithValue(t, `simtests: "sim1-nonsense" is not a token of a simulation, such as sim1-42: invalid character 'o' in literal null (expecting 'u')`,
		func() { explored(t, Config{}, lostUpdate) })
}

// A failing history is kept, and played before all others.
func TestFailuresAreKept(t *testing.T) {
	t.Chdir(t.TempDir())
	s := &told{}
	exploreTo(t, s, Config{Seeds: 500, exact: true}, lostUpdate)
	require.Len(t, s.errors, 1)
	require.Contains(t, s.errors[0], "kept in testdata/simtests/TestFailuresAreKept/")
	s = &told{}
	r := exploreTo(t, s, Config{Seeds: 1, First: 1_000_000, exact: true}, lostUpdate)
	require.Len(t, s.errors, 1)
	assert.Contains(t, s.errors[0], "lost: the balance is")
	assert.Zero(t, r.Histories, "the kept one failed first")
	s = &told{}
	exploreTo(t, s, Config{Seeds: 1}, func(*World) {}) // the bug is gone
	assert.Empty(t, s.errors)
}

func TestTokens(t *testing.T) {
	t.Parallel()
	for _, h := range []history{{}, {Seed: 42}, {Seed: 1<<64 - 1}, {Seed: 3, Choices: []uint16{}, Faults: []string{}}, {Seed: 3, Choices: []uint16{1, 0, 7}, Faults: []string{"Noise@3"}}} {
		got, err := parseToken(h.token())
		require.NoError(t, err)
		assert.Equal(t, h, got)
	}
	for _, bad := range []string{"", "42", "sim1-", "sim1-x", "sim1-x!!", "sim1-xAAAA", "sim2-3"} {
		_, err := parseToken(bad)
		require.Error(t, err, bad)
	}
}

// Equal seeds have equal histories, whatever the number of threads.
func TestThreadsDoNotMatter(t *testing.T) {
	hashes := func(procs int) []string {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		var all []string
		x := &explorer{t: t, to: t, c: Config{}.withDefaults(), scenario: lostUpdate}
		for seed := range uint64(5) {
			all = append(all, x.play(history{Seed: seed}, false).hash)
		}
		return all
	}
	assert.Equal(t, hashes(1), hashes(8))
}
