package simtests

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"math"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/runtime"
)

// Strategy is how the histories of a scenario are chosen.
type Strategy int

// The strategies.
const (
	// RandomWalk draws every decision of the scheduler from the seed.
	RandomWalk Strategy = iota
	// PCT (probabilistic concurrency testing) draws a priority for each task; the one
	// with the highest runs, and at Config.Depth points the one that runs becomes the
	// last. It finds bugs that need an unlikely, but simple order.
	PCT
	// Exhaustive tries all decisions of the scheduler up to the scenario's end, one
	// history each, for scenarios that are tiny: without a session, or with one step. Faults are drawn from seed 0. It ends when all are
	// tried, or after Config.Seeds.
	Exhaustive
)

// Config says how much is explored. The zero value works.
type Config struct {
	// Seeds is how many histories are played; with -short a quarter of them. Default:
	// 100. The flag -sim.seeds and the environment's TROUPE_SEEDS take its place.
	Seeds int
	// Cost says that a history takes so many times longer than others. The number of
	// the flag and of the environment is divided by it, but stays above zero.
	// Default: 1.
	Cost int
	// First is the first seed. Default: 0. The flag -sim.seed plays that one alone.
	First uint64
	// Time ends the exploration after so much real time. Default: 0, no limit. The
	// flag -sim.time takes its place.
	Time time.Duration
	// Level is what the histories run on. Default: Simulated.
	Level Level
	// Runtime is the configuration of the runtime in the history of a seed. Clock is the
	// world's, and so are Logger and Leases by default. Default: nil, the zero value.
	Runtime func(seed uint64) runtime.Config
	// Strategy is how histories are chosen. Default: RandomWalk.
	Strategy Strategy
	// Depth is how often a priority changes in a history of PCT. Default: 3.
	Depth int
	// Steps bounds one history: more are a failure. Default: 200,000.
	Steps int
	// Twice plays each n-th seed a second time and compares the histories. Default: 0,
	// every 10th. 1: every seed. -1: none.
	Twice int
	// AllFaults applies all faults of a scenario to each seed. Default: false, each
	// seed draws which of them it has (swarm testing): some bugs show only where
	// other faults are away.
	AllFaults bool
	// Shrink is how many histories may be played to make a failing one smaller.
	// Default: 0, which is 400. -1: none.
	Shrink int
	// DoNotKeep leaves failing histories out of testdata/simtests.
	DoNotKeep bool
	// Watchdog ends the program with the stacks of the simulation when no step was
	// taken for so much real time. Default: 5 s.
	Watchdog time.Duration

	exact bool // no flag changes it: the kit's own tests
}

func (c Config) withDefaults() Config {
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	if c.Level != Simulated { // nothing to draw, to play again or to make smaller
		c.Twice, c.Shrink, c.DoNotKeep = -1, -1, true
		set(&c.Seeds, map[Level]int{Concurrent: 10, Processes: 1}[c.Level])
	}
	set(&c.Seeds, 100)
	set(&c.Steps, 200_000)
	set(&c.Depth, 3)
	set(&c.Cost, 1)
	set(&c.Twice, 10)
	set(&c.Shrink, 400)
	c.Watchdog = cmp.Or(c.Watchdog, 5*time.Second)
	return c
}

// Explore plays a scenario in many histories, each in a separate world: first the ones
// that failed before and are kept in testdata/simtests, then one for each seed. A
// failure is made smaller, kept there, and reported once, with a token and the command
// that plays it again.
//
// Every world is a testing/synctest bubble, so the rules of that package hold for
// the scenario: it must not wait for goroutines, channels or I/O from outside.
// Explore must not be called inside a bubble.
func Explore(t *testing.T, c Config, scenario func(*World)) Report {
	t.Helper()
	return exploreTo(t, t, c, scenario)
}

// Report is what an exploration came to.
type Report struct {
	Histories int // that were played for a seed, or by an exhaustive exploration
	Unseeded  int // of them, those in which goroutines that the world does not know called in at the same instant
	// In how many histories each of them was reached or happened, by name.
	Sometimes map[string]int
	Faults    map[string]int
	States    map[string]int // of sessions
	Failed    bool
	// Hash is that of all histories that were played and are not unseeded, in order. Equal
	// code and equal seeds give equal hashes, on every machine, with every number of threads,
	// and with and without the race detector.
	Hash string
	// Trace is the files that -sim.trace wrote: JSON lines, each an [Event], and a page
	// for a browser.
	Trace   []string
	Failure string // what is wrong with the history that failed, after shrinking; "": nothing
	Token   string // of that history
}

// Find is [Explore] for a scenario with a known bug, such as one in an example or in a
// test of an oracle: it fails the test if no history fails, and returns what it found. The
// histories are not kept. Report.Histories is how many it took.
func Find(t *testing.T, c Config, scenario func(*World)) Report {
	t.Helper()
	c.DoNotKeep = true
	found := exploreTo(t, &finding{t}, c, scenario)
	if !found.Failed {
		t.Errorf("simtests: no history of %d failed; the scenario has a bug that should be found", found.Histories)
	}
	return found
}

// finding is a test that does not fail when a history does.
type finding struct{ t *testing.T }

func (f *finding) Helper()                         { f.t.Helper() }
func (f *finding) Error(args ...any)               { f.t.Helper(); f.t.Log(args...) }
func (f *finding) Fatal(args ...any)               { f.t.Helper(); f.t.Fatal(args...) }
func (f *finding) Logf(format string, args ...any) { f.t.Helper(); f.t.Logf(format, args...) }

// verdict is a test as far as an exploration reports to it.
type verdict interface {
	Helper()
	Error(args ...any)
	Fatal(args ...any)
	Logf(format string, args ...any)
}

// exploreTo is Explore with a test whose name and bubbles are used, and a verdict that
// gets the failures.
func exploreTo(t *testing.T, to verdict, c Config, scenario func(*World)) Report {
	to.Helper()
	c, err := c.withFlags()
	if err != nil {
		to.Fatal(err)
	}
	x := &explorer{t: t, to: to, c: c, scenario: scenario, got: Report{
		Sometimes: make(map[string]int), Faults: make(map[string]int), States: make(map[string]int),
	}}
	if token := flagValue("sim.replay"); token != "" {
		h, err := parseToken(token)
		if err != nil {
			to.Fatal(err)
		}
		x.replay(h)
		return x.got
	}
	old, err := kept(t)
	if err != nil {
		to.Fatal(err)
	}
	for _, h := range old {
		if o := x.play(h, false); o.failed() {
			x.report(h, o, "kept in "+casesDir(t))
			return x.got
		}
	}
	x.explore()
	x.summary()
	return x.got
}

// explorer plays the histories of one scenario.
type explorer struct {
	t        *testing.T // of the bubbles
	to       verdict
	c        Config
	scenario func(*World)
	progress atomic.Int64
	got      Report
}

func (x *explorer) explore() {
	x.to.Helper()
	over := func() bool { return false }
	if x.c.Time > 0 {
		over = sim.After(x.c.Time)
	}
	next := history{Seed: x.c.First}
	if x.c.Strategy == Exhaustive {
		next.Choices = []uint16{}
	}
	for range x.c.Seeds {
		if over() {
			return
		}
		o := x.play(next, false)
		if !o.failed() && x.c.Twice > 0 && x.got.Histories%x.c.Twice == 0 {
			o = x.again(next, o)
		}
		x.count(o)
		if o.failed() {
			x.found(next, o)
			return
		}
		switch {
		case x.c.Strategy != Exhaustive:
			next.Seed++
		default:
			if next.Choices = following(o.taken, o.outOf); next.Choices == nil {
				x.to.Logf("sim: all %d histories played", x.got.Histories)
				return
			}
		}
	}
}

// following is the next list of decisions in order; nil after the last.
func following(taken, outOf []uint16) []uint16 {
	for i := len(taken) - 1; i >= 0; i-- {
		if taken[i]+1 < outOf[i] {
			next := append([]uint16{}, taken[:i+1]...)
			next[i]++
			return next
		}
	}
	return nil
}

// again plays a history a second time: it must be the same to the byte.
func (x *explorer) again(h history, first outcome) outcome {
	second := x.play(h, false)
	if first.hash == second.hash || first.unseeded || second.unseeded {
		return first
	}
	a, b := x.play(h, true), x.play(h, true)
	first.failures = append(first.failures, "deterministic: the same seed gave two histories; "+firstDifference(a.events, b.events))
	first.nondeterministic = true
	return first
}

func firstDifference(a, b []Event) string {
	for i := range min(len(a), len(b)) {
		if a[i].line() != b[i].line() {
			return fmt.Sprintf("event %d is\n\t%s\nand\n\t%s", i, a[i].line(), b[i].line())
		}
	}
	if len(a) == len(b) {
		return "they were equal when they were played again: something outside of the seed, such as the order of a map, the wall clock or a goroutine of the scenario's own, came in"
	}
	return fmt.Sprintf("one has %d events and the other %d", len(a), len(b))
}

func (x *explorer) count(o outcome) {
	x.got.Histories++
	if o.unseeded {
		x.got.Unseeded++
	} else {
		sum := sha256.Sum256([]byte(x.got.Hash + o.hash))
		x.got.Hash = hex.EncodeToString(sum[:])
	}
	for name, reached := range o.sometimes {
		n := 0
		if reached {
			n = 1
		}
		x.got.Sometimes[name] += n
	}
	for name := range o.faults {
		x.got.Faults[name]++
	}
	for name := range o.states {
		x.got.States[name]++
	}
}

// found makes a failing history smaller, keeps it, and reports it.
func (x *explorer) found(h history, o outcome) {
	x.to.Helper()
	if !o.nondeterministic && x.c.Shrink > 0 {
		h, o = x.shrink(h, o)
	}
	where := ""
	if !o.nondeterministic && !x.c.DoNotKeep {
		where = keep(x.t, h, o)
	}
	x.report(h, o, where)
}

// report fails the test.
func (x *explorer) report(h history, o outcome, where string) {
	x.to.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nseed %d, after %d histories, in %d steps", strings.Join(o.failures, "\n"), h.Seed, x.got.Histories, o.steps)
	if o.unseeded {
		b.WriteString("\nunseeded: goroutines of the scenario's own called in at the same instant; start them with World.Go")
	}
	if len(o.fired) > 0 {
		fmt.Fprintf(&b, "\nfaults: %s", strings.Join(o.fired, ", "))
	}
	if where != "" {
		fmt.Fprintf(&b, "\n%s", where)
	}
	fmt.Fprintf(&b, "\nplay it again: go test -run '^%s$' . -sim.replay=%s -sim.trace=DIR", x.t.Name(), h.token())
	x.got.Failed, x.got.Failure, x.got.Token = true, strings.Join(o.failures, "\n"), h.token()
	if flagValue("sim.trace") != "" {
		x.trace(h, x.play(h, true))
	}
	b.WriteString("\n(for the flags TestMain calls simtests.Main; without it set TROUPE_SIM_REPLAY and TROUPE_SIM_TRACE)")
	x.to.Error(b.String())
}

// replay plays one history with its trace.
func (x *explorer) replay(h history) {
	x.to.Helper()
	o := x.play(h, true)
	x.to.Logf("%d steps, hash %s, faults: %s", o.steps, o.hash, strings.Join(o.fired, ", "))
	x.trace(h, o)
	if o.failed() {
		x.got.Failed = true
		x.to.Error(strings.Join(o.failures, "\n"))
	}
}

// trace writes the trace of a history if a flag wants it.
func (x *explorer) trace(h history, o outcome) {
	x.to.Helper()
	dir := flagValue("sim.trace")
	if dir == "" {
		return
	}
	files, err := writeTrace(dir, x.t.Name(), h, o)
	if err != nil {
		x.to.Fatal(err)
	}
	x.got.Trace = files
	x.to.Logf("trace: %s", strings.Join(files, ", "))
}

// summary says what was reached, and what never was.
func (x *explorer) summary() {
	x.to.Helper()
	x.to.Logf("sim: %d histories, hash %s", x.got.Histories, x.got.Hash)
	if x.got.Unseeded > 0 {
		x.to.Logf("sim: unseeded in %d of %d histories: goroutines of the scenario's own called in at the same instant", x.got.Unseeded, x.got.Histories)
	}
	for _, name := range sortedKeys(x.got.Sometimes) {
		x.to.Logf("sim: sometimes %q: %d of %d histories", name, x.got.Sometimes[name], x.got.Histories)
	}
	for _, name := range sortedKeys(x.got.Faults) {
		x.to.Logf("sim: fault %s: %d of %d histories", name, x.got.Faults[name], x.got.Histories)
	}
	if x.got.Failed {
		return
	}
	for _, name := range sortedKeys(x.got.Sometimes) {
		if x.got.Sometimes[name] == 0 && x.got.Histories >= 100 {
			x.got.Failed = true
			x.to.Error(fmt.Sprintf("sim: sometimes %q: never in %d histories; the scenario does not reach what it is for", name, x.got.Histories))
		}
	}
}

// --- knobs -----------------------------------------------------------------

// Main registers the flags of the kit and runs the tests of a package, which calls
// it in its TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(simtests.Main(m)) }
//
// The flags are -sim.seeds=N, -sim.time=D, -sim.seed=S, -sim.replay=TOKEN and
// -sim.trace=DIR. Without Main the environment has them: TROUPE_SEEDS,
// TROUPE_SIM_TIME, TROUPE_SIM_SEED, TROUPE_SIM_REPLAY and TROUPE_SIM_TRACE.
func Main(m *testing.M) int {
	if socket := os.Getenv(relayEnv); socket != "" {
		return relay(socket)
	}
	for _, k := range knobs() {
		flag.String(k.flag, "", k.usage)
	}
	flag.Parse()
	// A world is small and soon gone: the collector would run many times in each. It runs
	// when the heap has grown by the size of what lives, to which this belongs. It is
	// never touched, so it takes no memory.
	ballast := make([]byte, 64<<20)
	defer goruntime.KeepAlive(ballast)
	return m.Run()
}

// knob is a setting of all explorations.
type knob struct{ flag, env, usage string }

func knobs() []knob {
	return []knob{
		{"sim.seeds", "TROUPE_SEEDS", "play so many histories of each simulation"},
		{"sim.time", "TROUPE_SIM_TIME", "end each simulation after so much real time"},
		{"sim.seed", "TROUPE_SIM_SEED", "play this seed alone, or with -sim.seeds so many from this one on"},
		{"sim.replay", "TROUPE_SIM_REPLAY", "play the history of a token"},
		{"sim.trace", "TROUPE_SIM_TRACE", "write the trace of the history that fails, or that -sim.replay plays, to this directory"},
	}
}

// flagValue is what a knob was set to, by its flag or in the environment.
func flagValue(name string) string {
	if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
		return f.Value.String()
	}
	for _, k := range knobs() {
		if k.flag == name {
			return os.Getenv(k.env)
		}
	}
	return ""
}

// withFlags is c as the flags want it.
func (c Config) withFlags() (Config, error) {
	c = c.withDefaults()
	if c.exact {
		return c, nil
	}
	bad := func(name, v string, err error) error { return fmt.Errorf("simtests: -%s=%s: %w", name, v, err) }
	if testing.Short() && c.Strategy != Exhaustive {
		c.Seeds = max(1, c.Seeds/4)
	}
	many := flagValue("sim.seeds")
	if v := many; v != "" {
		n, err := strconv.ParseUint(v, 10, 31)
		if err != nil {
			return c, bad("sim.seeds", v, err)
		}
		c.Seeds = max(1, int(min(n, math.MaxInt32))/c.Cost)
	}
	if v := flagValue("sim.time"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil {
			return c, bad("sim.time", v, err)
		}
		c.Time = d
	}
	if v := flagValue("sim.seed"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			return c, bad("sim.seed", v, err)
		}
		c.First = n
		if many == "" {
			c.Seeds = 1
		}
	}
	return c, nil
}
