package fleet

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/supervisor"
)

type seeded struct{ *rand.Rand }

func (s seeded) Int64N(n int64) int64 { return s.Rand.Int64N(n) }

func testRules(seed uint64) rules {
	return rules{
		concurrency: 3, attempts: 3, starts: 6, rand: seeded{rand.New(rand.NewPCG(seed, 1))},
		backoff: supervisor.Backoff{Initial: time.Second, Max: time.Minute},
	}
}

// planWorld plays the driver of a machine: it ends attempts as the test draws it, writes the
// journal, and checks after each step what must always be so.
type planWorld struct {
	t        *rapid.T
	p        *machine
	now      time.Time
	specs    map[string]spec
	runs     map[string]launch
	finished map[string]Status
	starts   map[string]int
	base     map[string]int  // starts before the last requeue
	canceled map[string]bool // while it ran
	counted  map[string]int  // attempts since then that count against rules.attempts
	clearing []int           // slots
	alarm    time.Time
	halted   bool
	stopped  bool
	trace    []string
	journal  history // of what the effects have written
	records  []journal.Record
}

func (w *planWorld) step(in input) {
	unread := len(w.p.unread)
	out := w.p.step(w.now, in, nil)
	require.Len(w.t, w.p.unread, unread, "no reader has a result that is not durable")
	for id, n := range w.p.nodes {
		require.True(w.t, n.unkept == nil || n.result == nil || n.requeued > 0, "%s has a result that is not durable", id)
	}
	w.write(in, out)
	w.p.written()
	w.agrees()
	for _, e := range out {
		for _, d := range bare([]effect{e}) {
			w.trace = append(w.trace, fmt.Sprintf("%T%+v", d, d))
		}
		require.False(w.t, w.halted, "halt is the last effect")
		switch e := e.(type) {
		case launch:
			w.launched(e)
		case finish:
			_, twice := w.finished[e.id]
			require.False(w.t, twice, "two results of %s", e.id)
			w.finished[e.id] = e.status
			require.True(w.t, !w.canceled[e.id] || e.status == Canceled, "%s was canceled and is %s", e.id, e.status)
			if e.status == Overloaded || e.status == Crashed || e.status == ContextFull {
				require.Equal(w.t, w.p.rules.attempts, w.counted[e.id], "%s is over after another number of attempts", e.id)
			}
		case clearUp:
			require.True(w.t, w.specs[e.id].clears)
			require.NotContains(w.t, w.clearing, e.slot)
			for id, l := range w.runs {
				require.NotEqual(w.t, l.slot, e.slot, "%s uses the slot", id)
			}
			w.clearing = append(w.clearing, e.slot)
		case canceling:
			require.Contains(w.t, w.runs, e.id)
			w.canceled[e.id] = true
		case requeued:
			require.Equal(w.t, e.runs, w.runs[e.id].id != "")
			delete(w.finished, e.id)
			delete(w.canceled, e.id)
			w.base[e.id], w.counted[e.id] = w.starts[e.id], 0
		case again:
			require.NotContains(w.t, w.finished, e.id)
		case setAlarm:
			require.False(w.t, e.at.Before(w.now))
			w.alarm = e.at
		case halt:
			w.halted = true
			require.Empty(w.t, w.runs)
		}
	}
	require.LessOrEqual(w.t, len(w.runs), max(w.p.rules.concurrency, 7))
}

// write writes into the journal what an input and its effects say.
func (w *planWorld) write(in input, out []effect) {
	put := func(kind, task string, attempt int, data any) {
		raw, err := json.Marshal(data)
		require.NoError(w.t, err)
		w.records = append(w.records, journal.Record{Kind: kind, Task: task, Attempt: attempt, Data: raw, At: w.now})
		require.NoError(w.t, w.journal.apply(&w.records[len(w.records)-1]))
	}
	if in, ok := in.(added); ok {
		for i := range in.specs {
			put(kindAdmitted, in.specs[i].id, 0, admittedRecord{})
		}
	}
	var started []launch
	for _, e := range out {
		switch e := e.(type) {
		case launch:
			started = append(started, e)
		case again:
			put(kindAttempt, e.id, e.number, e.record)
		case finish:
			put(kindResult, e.id, len(e.result.Attempts), resultRecord{*e.result, e.starts, e.base})
		case canceling:
			put(kindCanceled, e.id, 0, struct{}{})
		case requeued:
			put(kindRequeued, e.id, 0, struct{}{})
		}
	}
	for _, l := range started { // an attempt says so itself, after the batch
		put(kindStarting, l.id, l.number, startingRecord{Mode: l.mode, Session: l.session, Space: space{Dir: "/work/" + l.id}})
		put(kindTurn, l.id, l.number, turnRecord{Turns: l.turns, Usage: Usage{USD: 0.25}})
	}
}

// agrees checks that a host which reads the journal now knows what this one knows.
func (w *planWorld) agrees() {
	var all Usage
	for _, n := range w.p.nodes {
		all.add(n.total())
	}
	require.InDelta(w.t, all.USD, w.p.usage.USD, 1e-9, "what the job has used is what its tasks have used")
	for id, n := range w.p.nodes {
		k := w.journal.tasks[id]
		require.Equal(w.t, n.starts, k.starts, "starts of %s", id)
		require.Equal(w.t, n.base, k.base, "the last requeue of %s", id)
		require.Equal(w.t, n.requeued, k.requeued, "void results of %s", id)
		require.Equal(w.t, n.result == nil, k.result == nil, "the result of %s", id)
		require.Equal(w.t, n.status, k.status, id)
		if n.result != nil {
			require.Equal(w.t, n.result.Status, k.result.Status, id)
		}
		if n.state == nodeRuns { // the journal has it when the attempt ends
			continue
		}
		require.Equal(w.t, n.total(), k.total(), "usage of %s", id)
		require.Len(w.t, k.tries, len(n.tries), id)
		if n.result == nil {
			require.Equal(w.t, n.attempts, k.attempts, "attempts of %s that count", id)
			require.Equal(w.t, n.usage, k.usage, "usage of %s since it was requeued", id)
			if next := k.next; n.begun() {
				require.Equal(w.t, []any{n.next.mode, n.next.session, n.next.turns, n.next.why}, []any{next.mode, next.session, next.turns, next.why}, "how %s goes on", id)
			}
		}
	}
}

// compacted checks that a journal which was compacted says the same of the tasks.
func (w *planWorld) compacted() {
	small := history{tasks: map[string]*node{}}
	for _, rec := range compact(w.records) {
		require.NoError(w.t, small.apply(&rec))
	}
	for id, n := range w.journal.tasks {
		k := small.tasks[id]
		require.Equal(w.t, []int{n.starts, n.base, n.requeued}, []int{k.starts, k.base, k.requeued}, "starts of %s", id)
		require.Equal(w.t, n.total(), k.total(), "usage of %s", id)
	}
}

func (w *planWorld) launched(l launch) {
	require.False(w.t, w.stopped, "%s was started after a stop", l.id)
	require.NotContains(w.t, w.finished, l.id)
	require.NotContains(w.t, w.runs, l.id)
	require.False(w.t, w.p.paused, "%s was started in a pause", l.id)
	w.starts[l.id]++
	require.Equal(w.t, w.starts[l.id], l.number)
	s := w.specs[l.id]
	require.False(w.t, w.now.Before(s.notBefore), "%s was started too early", l.id)
	for _, before := range s.after {
		if w.starts[l.id] > w.base[l.id]+1 {
			break // it had begun before the other was requeued
		}
		require.Equal(w.t, Accepted, w.finished[before], "%s came before %s", l.id, before)
	}
	require.NotContains(w.t, w.clearing, l.slot)
	require.LessOrEqual(w.t, len(w.clearing), w.p.rules.concurrency)
	for id, other := range w.runs {
		require.NotEqual(w.t, other.slot, l.slot)
		require.True(w.t, s.exclusive == "" || w.specs[id].exclusive != s.exclusive, "%s and %s exclude each other", id, l.id)
	}
	if l.mode == modeResume {
		require.NotEmpty(w.t, l.session)
		require.NotEmpty(w.t, l.space, "a session is resumed only where it worked")
		require.False(w.t, s.clean && l.why != "host" && l.why != string(Interrupted))
	}
	w.runs[l.id] = l
	require.LessOrEqual(w.t, len(w.runs), w.p.rules.concurrency)
}

func (w *planWorld) end(id string) {
	l := w.runs[id]
	delete(w.runs, id)
	o := rapid.SampledFrom([]outcome{
		{status: Accepted}, {status: Accepted}, {status: Accepted}, {status: Failed, why: "no"},
		{status: Overloaded, retry: true, why: "529"}, {status: Crashed, retry: true, why: "exit"},
		{status: ContextFull, poisoned: true, why: "long"},
	}).Draw(w.t, "outcome")
	o.space = "/work/" + id
	if l.mode != modeFresh {
		require.Equal(w.t, "/work/"+id, l.space)
	}
	if rapid.Bool().Draw(w.t, "session") {
		o.session = fmt.Sprint("session of ", id)
	}
	o.free = o.retry && rapid.IntRange(0, 4).Draw(w.t, "free") == 0
	o.usage.USD = 1
	o.left = &report{how: l.mode, Session: o.session, place: space{Dir: o.space}}
	if (o.retry || o.poisoned) && !o.free && w.p.nodes[id].asked == steerNone {
		w.counted[id]++
	}
	w.step(ended{id, o})
}

func play(t *rapid.T, seed uint64) *planWorld {
	r := testRules(seed)
	r.concurrency = rapid.IntRange(1, 5).Draw(t, "concurrency")
	if rapid.Bool().Draw(t, "threshold") {
		r.failOn.Count = rapid.IntRange(1, 5).Draw(t, "failures")
	}
	if rapid.Bool().Draw(t, "budget") {
		r.budget = &Budget{USD: float64(rapid.IntRange(1, 30).Draw(t, "usd"))}
	}
	w := &planWorld{
		t: t, p: newMachine(r), now: time.Unix(1000, 0), specs: map[string]spec{}, runs: map[string]launch{},
		finished: map[string]Status{}, starts: map[string]int{}, base: map[string]int{}, canceled: map[string]bool{}, counted: map[string]int{},
		journal: history{tasks: map[string]*node{}},
	}
	var all []spec
	for i := range rapid.IntRange(1, 12).Draw(t, "tasks") {
		s := spec{id: fmt.Sprint("t", i), order: i, priority: rapid.IntRange(0, 2).Draw(t, "priority"), clean: rapid.Bool().Draw(t, "clean")}
		s.clears = rapid.Bool().Draw(t, "clears")
		s.exclusive = rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "exclusive")
		if i > 0 && rapid.IntRange(0, 3).Draw(t, "depends") == 0 {
			s.after = []string{fmt.Sprint("t", rapid.IntRange(0, i-1).Draw(t, "on"))}
		}
		if in := rapid.IntRange(-5, 20).Draw(t, "due in"); in >= 0 {
			s.notBefore = w.now.Add(time.Duration(in) * time.Second)
		}
		w.specs[s.id] = s
		all = append(all, s)
	}
	cut := rapid.IntRange(0, len(all)).Draw(t, "cut")
	w.step(added{specs: all[:cut]})
	w.step(added{specs: all[cut:], last: true})
	asked := 0
	for n := 0; !w.halted; n++ {
		require.Less(t, n, 2000, "it never ends")
		running := slices.Sorted(func(yield func(string) bool) {
			for id := range w.runs {
				if !yield(id) {
					return
				}
			}
		})
		w.stopped = w.p.stopped != nil
		switch what := rapid.IntRange(0, 30).Draw(t, "what"); {
		case what == 0:
			w.stopped = true
			w.step(drained{Stop{Reason: StopDrained}})
		case what == 1:
			w.step(retuned{rapid.IntRange(1, 6).Draw(t, "retune")})
		case what < 5 && asked < 15:
			asked++
			id := rapid.SampledFrom(all).Draw(t, "about").id
			do := rapid.SampledFrom([]steer{steerCancel, steerRequeue}).Draw(t, "do")
			_, over := w.finished[id]
			w.step(steered{id: id, what: do})
			if status, is := w.finished[id]; do == steerCancel && !over && w.runs[id].id == "" {
				require.True(t, is && status == Canceled, "%s is %q", id, status)
			}
		case len(w.clearing) > 0 && (what < 12 || len(running) == 0 && !w.p.paused):
			i := rapid.IntRange(0, len(w.clearing)-1).Draw(t, "cleared")
			slot := w.clearing[i]
			w.clearing = slices.Delete(w.clearing, i, i+1)
			w.step(cleared{slot})
		case what == 5:
			w.step(paused{!w.p.paused})
		case len(running) > 0:
			w.end(rapid.SampledFrom(running).Draw(t, "ends"))
		case w.p.paused:
			w.step(paused{false})
		default:
			require.False(t, w.alarm.IsZero(), "nothing runs, nothing is waited for, and it is not over")
			w.now = w.alarm
			w.step(woken{})
		}
	}
	if w.p.stopped == nil {
		require.Len(t, w.finished, len(all), "each task has its result")
	}
	w.compacted()
	for id, n := range w.starts {
		require.LessOrEqual(t, n-w.base[id], 6, id)
	}
	return w
}

func TestAPlanKeepsItsPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { play(t, 1) })
}

// Equal inputs have equal effects.
func TestAPlanIsDeterministic(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		var traces [2][]string
		for i := range traces {
			gen := rapid.Custom(func(t *rapid.T) []string { return play(t, seed).trace })
			traces[i] = gen.Example(int(seed))
		}
		assert.Equal(t, traces[0], traces[1])
	}
}

// bare leaves out of effects what carries them out, and not what is decided.
func bare(all []effect) (decided []effect) {
	for _, e := range all {
		switch d := e.(type) {
		case tell:
			continue
		case launch:
			d.with = nil
			e = d
		case again:
			e = again{id: d.id, due: d.due, counts: d.counts}
		case finish:
			e = finish{id: d.id, status: d.status, why: d.why}
		case clearUp:
			e = clearUp{id: d.id, slot: d.slot}
		}
		decided = append(decided, e)
	}
	return decided
}

func one(r rules, s ...spec) (*machine, []effect) {
	p := newMachine(r)
	return p, p.step(time.Unix(0, 0), added{specs: s, last: true}, nil)
}

func TestPriorities(t *testing.T) {
	t.Parallel()
	r := testRules(1)
	r.concurrency = 2
	_, effects := one(r, spec{id: "a", order: 0}, spec{id: "b", order: 1}, spec{id: "c", order: 2, priority: 1})
	require.Len(t, effects, 2)
	assert.Equal(t, "c", effects[0].(launch).id)
	assert.Equal(t, "a", effects[1].(launch).id)
}

// A task whose host died under it again and again must not end the next host as well.
func TestQuarantine(t *testing.T) {
	t.Parallel()
	p := newMachine(testRules(1))
	effects := p.step(time.Unix(0, 0), added{specs: []spec{{id: "a"}, {id: "b"}}, last: true, past: map[string]*node{
		"a": {starts: 6, next: launch{mode: modeResume, session: "s", space: "/w"}},
		"b": {starts: 5, next: launch{mode: modeResume, session: "s", space: "/w", turns: 1}},
	}}, nil)
	effects = bare(effects)
	require.Len(t, effects, 2)
	assert.Equal(t, finish{id: "a", status: Quarantined, why: "it was started 6 times without an end"}, effects[0])
	assert.Equal(t, launch{id: "b", number: 6, mode: modeResume, session: "s", space: "/w", turns: 1}, effects[1])
}

// An attempt that is nobody's fault does not count against the attempts of the task.
func TestAFreeFailureDoesNotCount(t *testing.T) {
	t.Parallel()
	r := testRules(1)
	r.attempts, r.starts = 2, 20
	p, _ := one(r, spec{id: "a"})
	at := time.Unix(0, 0)
	end := func(free bool) []effect {
		out := p.step(at, ended{"a", outcome{status: Crashed, retry: true, free: free, why: "exit"}}, nil)
		at = at.Add(time.Hour)
		return p.step(at, woken{}, out)
	}
	for range 5 {
		out := end(true)
		require.Equal(t, []string{"a"}, launched(out))
		require.False(t, out[0].(again).counts)
	}
	out := end(false)
	require.Equal(t, []string{"a"}, launched(out))
	require.True(t, out[0].(again).counts)
	require.Equal(t, []string{"a"}, launched(end(true)))
	assert.Equal(t, finish{id: "a", status: Crashed}, bare(end(false))[0])
}

// A task that is over since an earlier process is not run again when the ones before it
// are closed.
func TestTasksThatAreOverWithThoseBeforeThem(t *testing.T) {
	t.Parallel()
	p := newMachine(testRules(1))
	over := &node{starts: 1, status: Accepted}
	effects := p.step(time.Unix(0, 0), added{
		specs: []spec{{id: "a"}, {id: "b", order: 1, after: []string{"a"}}, {id: "c", order: 2, after: []string{"b"}}}, last: true,
		past: map[string]*node{"a": over, "b": over},
	}, nil)
	assert.Equal(t, []effect{launch{id: "c", number: 1, mode: modeFresh}}, bare(effects))
}

// The slot of a task that is over is free when its workspace is cleared up. One that was
// canceled between two attempts has a slot of its own for that.
func TestASlotIsFreeAfterTheTeardown(t *testing.T) {
	t.Parallel()
	r := testRules(1)
	r.concurrency = 1
	p, _ := one(r, spec{id: "a", clears: true}, spec{id: "b", order: 1, clears: true}, spec{id: "c", order: 2}, spec{id: "d", order: 3})
	now := time.Unix(0, 0)
	assert.Equal(t, []effect{finish{id: "a", status: Accepted}, clearUp{id: "a", slot: 0}, launch{id: "b", number: 1, mode: modeFresh, slot: 1}},
		bare(p.step(now, ended{"a", outcome{status: Accepted}}, nil)))
	effects := bare(p.step(now, ended{"b", outcome{status: Crashed, retry: true, after: time.Hour}}, nil))
	assert.Equal(t, launch{id: "c", number: 1, mode: modeFresh, slot: 1}, effects[1])
	assert.Equal(t, []effect{finish{id: "b", status: Canceled, why: whyCanceled}, clearUp{id: "b", slot: 2}, answered{}}, bare(p.step(now, steered{id: "b", what: steerCancel}, nil)))
	assert.Equal(t, []effect{finish{id: "c", status: Accepted}}, bare(p.step(now, ended{"c", outcome{status: Accepted}}, nil)), "two are cleared up, and one may run")
	assert.Equal(t, []effect{launch{id: "d", number: 1, mode: modeFresh}}, bare(p.step(now, cleared{0}, nil)))
}

// What comes after a task that begins anew waits for it, unless it has begun.
func TestAfterATaskThatBeginsAnew(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	requeue := func(p *machine, id string) []effect { return p.step(now, steered{id: id, what: steerRequeue}, nil) }
	begin := func(t *testing.T) *machine {
		t.Helper()
		p, _ := one(testRules(1), spec{id: "a"}, spec{id: "b", order: 1, after: []string{"a"}})
		require.Equal(t, []string{"b"}, launched(p.step(now, ended{"a", outcome{status: Accepted}}, nil)))
		return p
	}
	end := func(p *machine, id string) []effect { return p.step(now, ended{id, outcome{status: Accepted}}, nil) }
	t.Run("it rests between two attempts", func(t *testing.T) {
		t.Parallel()
		p := begin(t)
		p.step(now, ended{"b", outcome{status: Crashed, retry: true, after: time.Hour}}, nil)
		require.Equal(t, []string{"a"}, launched(requeue(p, "a")))
		now := now.Add(2 * time.Hour)
		assert.Equal(t, []string{"b"}, launched(p.step(now, woken{}, nil)), "it has begun")
	})
	t.Run("it is requeued, too", func(t *testing.T) {
		t.Parallel()
		p := begin(t)
		p.step(now, ended{"b", outcome{status: Crashed, retry: true, after: time.Hour}}, nil)
		require.Equal(t, []string{"a"}, launched(requeue(p, "a")))
		assert.Equal(t, []effect{requeued{id: "b"}, answered{}}, requeue(p, "b"))
		assert.Equal(t, []string{"b"}, launched(end(p, "a")))
	})
	t.Run("it is requeued, too, while it runs", func(t *testing.T) {
		t.Parallel()
		p := begin(t)
		require.Equal(t, []string{"a"}, launched(requeue(p, "a")))
		assert.Equal(t, []effect{requeued{id: "b", runs: true}, answered{}}, requeue(p, "b"))
		assert.Equal(t, []effect{again{id: "b", due: now}}, bare(end(p, "b")))
		assert.Equal(t, []string{"b"}, launched(end(p, "a")))
	})
	t.Run("it waits for a person since an earlier process", func(t *testing.T) {
		t.Parallel()
		p := newMachine(testRules(1))
		effects := p.step(now, added{last: true, specs: []spec{{id: "a"}, {id: "b", order: 1, after: []string{"a"}}},
			past: map[string]*node{"a": {starts: 1, base: 1}, "b": {starts: 1, asks: true}}}, nil)
		require.Equal(t, []string{"a"}, launched(effects))
		assert.Equal(t, []string{"b"}, launched(p.step(now, decided{task: "b"}, nil)), "it has begun")
	})
	t.Run("again and again", func(t *testing.T) {
		t.Parallel()
		p := begin(t)
		end(p, "b")
		for range 3 {
			require.Equal(t, []string{"a"}, launched(requeue(p, "a")))
			require.Empty(t, launched(requeue(p, "b")))
			require.Equal(t, []string{"b"}, launched(end(p, "a")))
			end(p, "b")
		}
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	p, effects := one(testRules(1), spec{id: "a"})
	require.Len(t, effects, 1)
	effects = p.step(time.Unix(0, 0), ended{"a", outcome{status: Overloaded, retry: true, after: 5 * time.Minute}}, nil)
	assert.Equal(t, []effect{again{id: "a", due: time.Unix(300, 0), counts: true}, setAlarm{time.Unix(300, 0)}}, bare(effects))
	assert.Empty(t, p.step(time.Unix(299, 0), woken{}, nil))
	effects = p.step(time.Unix(300, 0), woken{}, nil)
	require.Len(t, effects, 1)
	assert.IsType(t, launch{}, effects[0])
}

func TestTheBudgetIsAskedBeforeEachStart(t *testing.T) {
	t.Parallel()
	r := testRules(1)
	r.concurrency, r.budget = 1, &Budget{USD: 10}
	p, _ := one(r, spec{id: "a"}, spec{id: "b", order: 1}, spec{id: "c", order: 2, budget: &Budget{USD: 1}})
	effects := p.step(time.Unix(0, 0), ended{"a", outcome{status: Accepted, usage: Usage{USD: 8}}}, nil)
	require.Len(t, effects, 3)
	assert.Equal(t, warnBudget{"usd"}, effects[0])
	assert.InDelta(t, 2, effects[2].(launch).usd, 1e-9)
	effects = p.step(time.Unix(0, 0), ended{"b", outcome{status: Accepted, usage: Usage{USD: 3}}}, nil)
	assert.Equal(t, []effect{finish{id: "b", status: Accepted}, halt{}}, bare(effects))
	assert.Equal(t, StopBudget, p.stopped.Reason)
}

func BenchmarkPlan(b *testing.B) {
	const tasks = 10_000
	specs := make([]spec, tasks)
	for i := range specs {
		specs[i] = spec{id: fmt.Sprint(i), order: i}
	}
	for b.Loop() {
		p := newMachine(testRules(1))
		queue := p.step(time.Unix(0, 0), added{specs: specs, last: true}, nil)
		for len(queue) > 0 {
			e := queue[0]
			queue = queue[1:]
			if l, ok := e.(launch); ok {
				queue = p.step(time.Unix(0, 0), ended{l.id, outcome{status: Accepted}}, queue)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/tasks, "ns/task")
}

// What is over stays over, also where it came after a task that is over.
func TestWhatIsOverIsNotRunAgain(t *testing.T) {
	t.Parallel()
	p := newMachine(testRules(1))
	effects := p.step(time.Unix(0, 0), added{last: true, specs: []spec{{id: "a"}, {id: "b", after: []string{"a"}}, {id: "c", after: []string{"a"}}}, past: map[string]*node{
		"a": {status: Accepted}, "b": {status: Accepted}, "c": {canceled: true},
	}}, nil)
	assert.Equal(t, []effect{finish{id: "c", status: Canceled, why: whyCanceled}, halt{}}, bare(effects))
}
