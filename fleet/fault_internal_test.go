package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/sharedmcp"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// The rows of the table in docs/fleets.md: whose matter each error is, whether it counts, and
// what follows.
func TestWhoseFaultIsIt(t *testing.T) {
	t.Parallel()
	const (
		waits   = "waits"   // for a probe: it counts for nothing
		retries = "retries" // and counts
		over    = "over"    // at once
		rests   = "rests"   // without a result: a resume runs it
	)
	result := func(r protocol.ResultMessage) error { return &sdk.ResultError{Result: &r} }
	errno := func(op string, errno syscall.Errno) error { return &os.PathError{Op: op, Path: "x", Err: errno} }
	for name, c := range map[string]struct {
		err    error
		status Status
		fault  resource
		then   string
	}{
		"the program is away":                  {&sdk.StartError{Path: "claude", Err: os.ErrNotExist}, NotStarted, ofProgram, waits},
		"the program may not be run":           {&sdk.StartError{Path: "claude", Err: syscall.EACCES}, NotStarted, ofProgram, waits},
		"the program is half written":          {&sdk.StartError{Path: "claude", Err: syscall.ENOEXEC}, NotStarted, ofProgram, waits},
		"the program is being written":         {&sdk.StartError{Path: "claude", Err: syscall.ETXTBSY}, NotStarted, ofProgram, waits},
		"the program ends at once":             {&sdk.ExitError{During: "initialize", Status: session.ExitStatus{Code: 1}}, NotStarted, ofProgram, waits},
		"the program is killed at once":        {&sdk.ExitError{During: "initialize", Status: session.ExitStatus{Code: -1, Signal: "SIGKILL"}}, NotStarted, ofProgram, waits},
		"the program says nothing":             {&sdk.TimeoutError{What: "initialize", Limit: time.Minute}, NotStarted, ofProgram, waits},
		"the breaker of the program":           {&session.BreakerOpenError{Kind: session.BreakerAgent}, NotStarted, ofProgram, waits},
		"the breaker of the API":               {&session.BreakerOpenError{Kind: session.BreakerProvider}, NotStarted, ofAPI, waits},
		"the API is overloaded":                {result(protocol.ResultMessage{APIErrorStatus: 529}), Overloaded, ofAPI, waits},
		"the API limits the rate":              {result(protocol.ResultMessage{APIErrorStatus: 429}), Overloaded, ofAPI, waits},
		"the API fails":                        {result(protocol.ResultMessage{APIErrorStatus: 500}), Overloaded, ofAPI, waits},
		"the API cannot be reached":            {result(protocol.ResultMessage{APIError: "connection_failed"}), Overloaded, ofAPI, waits},
		"the agent only retries":               {&session.RetryLimitError{Status: 529}, Overloaded, ofAPI, waits},
		"a shared server ends at once":         {&sharedmcp.StartError{Name: "s", Err: errors.New("exit code 1")}, NotStarted, ofServer, waits},
		"the breaker of a shared server":       {&sharedmcp.StartError{Name: "s", Err: &session.BreakerOpenError{Kind: session.BreakerMCPServer}}, NotStarted, ofServer, waits},
		"no descriptors for the agent":         {&sdk.StartError{Err: errno("pipe2", syscall.EMFILE)}, NotStarted, ofMachine, waits},
		"no descriptors in the system":         {&sdk.StartError{Err: errno("open", syscall.ENFILE)}, NotStarted, ofMachine, waits},
		"no processes":                         {&sdk.StartError{Err: syscall.EAGAIN}, NotStarted, ofMachine, waits},
		"no memory":                            {&sdk.StartError{Err: syscall.ENOMEM}, NotStarted, ofMachine, waits},
		"no space for the workspace":           {&badWorkspace{dir: "x", err: errno("write", syscall.ENOSPC)}, BadWorkspace, ofMachine, waits},
		"no quota for the workspace":           {&badWorkspace{dir: "x", err: errno("write", syscall.EDQUOT)}, BadWorkspace, ofMachine, waits},
		"no descriptors for the workspace":     {&badWorkspace{dir: "x", err: errno("open", syscall.EMFILE)}, BadWorkspace, ofMachine, waits},
		"the disk of the workspace fails":      {&badWorkspace{dir: "x", err: errno("read", syscall.EIO)}, BadWorkspace, ofMachine, waits},
		"the verifier has no process":          {&verifierFailed{&sdk.StartError{Err: syscall.EAGAIN}}, NotVerified, ofMachine, waits},
		"no descriptors for a shared server":   {&sharedmcp.StartError{Name: "s", Err: &sdk.StartError{Err: syscall.EMFILE}}, NotStarted, ofMachine, waits},
		"a spent window":                       {result(protocol.ResultMessage{APIError: "usage_limit_reached", APIErrorStatus: 429}), UsageLimit, ofTask, rests},
		"no login":                             {&sdk.AuthError{Err: errors.New("x")}, Unauthorized, ofTask, rests},
		"no login, at the start":               {&sdk.AuthError{Err: &sdk.ExitError{During: "initialize"}}, Unauthorized, ofTask, rests},
		"the login is refused again and again": {&session.RetryLimitError{Status: 401}, Unauthorized, ofTask, rests},
		"the job's budget":                     {&budgetSpent{job: true, limit: "usd"}, Interrupted, ofTask, rests},
		"the job is canceled":                  {context.Canceled, Interrupted, ofTask, rests},
		"the runtime is shut down":             {session.ErrShutdown, Interrupted, ofTask, rests},
		"the agent dies in a turn":             {&sdk.ExitError{During: "a turn"}, Crashed, ofTask, retries},
		"the agent dies while it is idle":      {&sdk.ExitError{During: "idle"}, Crashed, ofTask, retries},
		"no answer in time":                    {&sdk.TimeoutError{What: "control request set_model"}, Crashed, ofTask, retries},
		"a stall":                              {&stalled{time.Minute, errors.New("x")}, Crashed, ofTask, retries},
		"the verifier fails":                   {&verifierFailed{errors.New("x")}, NotVerified, ofTask, retries},
		"the verifier takes too long":          {&verifierFailed{&sdk.TimeoutError{What: "sh"}}, NotVerified, ofTask, retries},
		"a setup fails":                        {&badWorkspace{dir: "x", err: errors.New("x"), passing: true}, BadWorkspace, ofTask, retries},
		"too long":                             {result(protocol.ResultMessage{TerminalReason: "prompt_too_long"}), ContextFull, ofTask, retries},
		"refused by the API":                   {result(protocol.ResultMessage{APIErrorStatus: 400}), Failed, ofTask, retries},
		"no workspace":                         {&badWorkspace{dir: "x", err: os.ErrNotExist}, BadWorkspace, ofTask, over},
		"its directory is away":                {&sdk.StartError{Dir: "x", Err: ofSessionError{}}, NotStarted, ofTask, over},
		"options":                              {&sdk.ConfigError{Option: "x"}, Invalid, ofTask, over},
		"a shared server without a program":    {&sharedmcp.StartError{Name: "s", Err: &sdk.StartError{Err: os.ErrNotExist}}, NotStarted, ofTask, over},
		"an error of the agent":                {result(protocol.ResultMessage{Subtype: "error_during_execution"}), Failed, ofTask, over},
		"turns":                                {result(protocol.ResultMessage{Subtype: "error_max_turns"}), MaxTurns, ofTask, over},
		"money":                                {result(protocol.ResultMessage{Subtype: "error_max_budget_usd"}), OverBudget, ofTask, over},
		"the task's budget":                    {&budgetSpent{limit: "turns"}, OverBudget, ofTask, over},
		"time":                                 {errors.Join(&timeLimit{time.Minute}, syscall.EMFILE), TimedOut, ofTask, over},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, err := range []error{c.err, fmt.Errorf("wrapped: %w", c.err)} {
				o := verdictOf(err)
				assert.Equal(t, c.status, o.status)
				assert.Equal(t, c.fault, o.fault)
				p := newMachine(func() rules { r := testRules(1); r.attempts, r.patience = 1, time.Hour; return r }())
				p.step(noon, added{specs: []spec{{id: "a"}}, last: true}, nil)
				out := p.step(noon, ended{"a", o}, nil)
				n := p.nodes["a"]
				switch c.then {
				case waits:
					assert.Equal(t, nodeRests, n.state, "although it had one attempt")
					assert.Zero(t, n.attempts)
					assert.Zero(t, n.counted())
				case retries: // had it more attempts
					assert.Contains(t, bare(out), effect(finish{id: "a", status: c.status}))
					assert.True(t, o.retry || o.poisoned)
				case over:
					assert.Contains(t, bare(out), effect(finish{id: "a", status: c.status}))
					assert.False(t, o.retry || o.poisoned)
				default:
					assert.Equal(t, nodeWithout, n.state)
				}
			}
		})
	}
}

type ofSessionError struct{}

func (ofSessionError) Error() string   { return "chdir" }
func (ofSessionError) OfSession() bool { return true }

// What an attempt knows completes what its error says.
func TestBlame(t *testing.T) {
	t.Parallel()
	away := &sdk.ExitError{During: "initialize", StderrTail: "No conversation found with session ID: 1"}
	broken := &sdk.ExitError{During: "initialize", StderrTail: "cannot allocate"}
	busy := &sdk.ResultError{Result: &protocol.ResultMessage{APIErrorStatus: 529}}
	program, memory := &sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{})}, &sdk.Options{Backend: scripted.New()}
	client := new(sdk.Client)
	for name, c := range map[string]struct {
		a        attempt
		job      Job
		err      error
		session  string
		fault    resource
		free     bool
		unbegun  bool
		contains string
	}{
		"an unknown session":             {a: attempt{launch: launch{mode: modeResume}, client: client, opts: program}, err: away, free: true},
		"a program that is away":         {a: attempt{launch: launch{mode: modeResume}, client: client, opts: program}, err: broken, session: "s", fault: ofProgram, unbegun: true},
		"a new session that never was":   {a: attempt{client: client, opts: program}, err: broken, fault: ofProgram, unbegun: true},
		"the API":                        {a: attempt{client: client, opts: program, ready: true}, err: busy, session: "s", fault: ofAPI},
		"the API of an agent in memory":  {a: attempt{client: client, opts: memory, ready: true}, err: busy, session: "s"},
		"the API, in memory, with a job": {a: attempt{client: client, opts: memory, ready: true}, job: Job{Patience: time.Hour}, err: busy, session: "s", fault: ofAPI},
		"descriptors":                    {a: attempt{client: client, opts: program}, err: &sdk.StartError{Err: syscall.EMFILE}, fault: ofMachine, unbegun: true, contains: "ulimit -n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := verdictOf(c.err)
			o.session = "s"
			(&runner{env: &env{job: c.job}}).blame(&c.a, c.err, &o)
			assert.Equal(t, c.session, o.session)
			assert.Equal(t, c.fault, o.fault)
			assert.Equal(t, c.free, o.free)
			assert.Equal(t, c.unbegun, o.unstarted)
			assert.Contains(t, o.why, c.contains)
		})
	}
}

func outagePlan(tasks int, change func(*rules)) *machine {
	r := testRules(1)
	r.patience = 30 * time.Minute
	if change != nil {
		change(&r)
	}
	p := newMachine(r)
	var all []spec
	for i := range tasks {
		all = append(all, spec{id: fmt.Sprint("t", i), order: i})
	}
	p.step(noon, added{specs: all, last: true}, nil)
	return p
}

// While the program is away one attempt at a time finds out, with a task that has failed least
// often; then everything starts again, and nothing has counted.
func TestAnOutage(t *testing.T) {
	t.Parallel()
	p := outagePlan(6, nil)
	away := outcome{status: NotStarted, retry: true, why: "away", fault: ofProgram, unstarted: true, space: "/w"}
	require.Len(t, p.running, 3)
	out := p.step(noon, ended{"t0", away}, nil)
	assert.Equal(t, []string{"t3"}, launched(out), "one failure alone says nothing of the others")
	out = p.step(noon, ended{"t1", away}, nil)
	assert.Empty(t, launched(out))
	assert.Contains(t, out, effect(troubled{ofProgram, "away", noon.Add(30 * time.Minute)}))
	p.step(noon, ended{"t2", away}, nil)
	p.step(noon, ended{"t3", away}, nil)
	now, seen := noon, map[string]int{}
	for probes := 0; probes < 8; {
		next := p.next(now)
		require.False(t, next.IsZero())
		require.LessOrEqual(t, next.Sub(now), lastProbe)
		now = next
		started := launched(p.step(now, woken{}, nil))
		if len(started) == 0 {
			continue // a task rests longer than the probe
		}
		require.Len(t, started, 1)
		require.Len(t, p.running, 1)
		seen[started[0]]++
		probes++
		require.Empty(t, launched(p.step(now, ended{started[0], away}, nil)))
	}
	for id, n := range seen {
		assert.LessOrEqual(t, n, 2, "%s is not always the probe", id)
	}
	now = p.next(now)
	probe := launched(p.step(now, woken{}, nil))
	for len(probe) == 0 {
		now = p.next(now)
		probe = launched(p.step(now, woken{}, nil))
	}
	out = p.step(now, reached{probe[0], ofProgram, now}, nil)
	assert.Contains(t, out, effect(recovered{ofProgram}))
	assert.Len(t, launched(out), 2, "as many as may run")
	for id, n := range p.nodes {
		assert.Zero(t, n.attempts, id)
		assert.LessOrEqual(t, n.counted(), 1, id)
	}
	assert.Equal(t, launch{mode: modeAgain, space: "/w"}, func() launch { l := p.nodes["t0"].next; l.id = ""; return l }(), "the workspace is made")
}

// What lasts longer than the patience stops the job, and no task is over.
func TestAnOutageThatLasts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		worked bool
		fault  resource
		want   time.Duration
	}{
		"a program":                        {true, ofProgram, 30 * time.Minute},
		"a program that has never started": {false, ofProgram, time.Minute},
		"an API":                           {false, ofAPI, 30 * time.Minute},
		"a machine":                        {false, ofMachine, 30 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := outagePlan(2, func(r *rules) { r.concurrency = 1; r.equal = 2; r.starts = 3 })
			if c.worked {
				p.step(noon, reached{"t0", c.fault, noon}, nil)
			}
			now, running := noon, "t0"
			for p.stopped == nil {
				require.Less(t, now.Sub(noon), time.Hour)
				out := p.step(now, ended{running, outcome{status: NotStarted, retry: true, why: "away", fault: c.fault, unstarted: true}}, nil)
				for _, e := range out {
					_, over := e.(finish)
					require.False(t, over)
				}
				for next := launched(out); ; next = launched(p.step(now, woken{}, nil)) {
					if len(next) > 0 {
						running = next[0]
						break
					}
					if p.stopped != nil {
						break
					}
					now = p.next(now)
					require.False(t, now.IsZero())
				}
			}
			assert.Equal(t, StopOutage, p.stopped.Reason)
			assert.GreaterOrEqual(t, now.Sub(noon), c.want)
			assert.Less(t, now.Sub(noon), c.want+2*lastProbe)
			assert.True(t, p.halted)
		})
	}
}

// A success that began before the first failure proves nothing: nothing else starts, and the
// failure is not the task's own.
func TestAProofFromBeforeAnOutage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of   resource
		from time.Duration // after the first failure
		own  bool
	}{
		"a program that started before":   {ofProgram, -time.Second, false},
		"a program that started since":    {ofProgram, time.Second, true},
		"a server that was shared before": {ofServer, -time.Second, false},
		"a server that was shared since":  {ofServer, time.Second, true},
		"a model that was asked before":   {ofAPI, -time.Second, false},
		"a model that was asked since":    {ofAPI, time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := outagePlan(3, func(r *rules) { r.attempts = 2 })
			fails := outcome{status: Overloaded, retry: true, why: "away", fault: c.of}
			p.step(noon, ended{"t0", fails}, nil)
			now := noon
			for range sure - 1 {
				now = p.next(now)
				require.Equal(t, []string{"t0"}, launched(p.step(now, woken{}, nil)))
				p.step(now, ended{"t0", fails}, nil)
			}
			require.True(t, p.outages.held())
			in := input(reached{"t1", c.of, noon.Add(c.from)})
			if c.of == ofAPI {
				in = worked{"t1", noon.Add(c.from)}
			}
			out := p.step(now, in, nil)
			assert.Equal(t, !c.own, p.outages.held())
			assert.Equal(t, c.own, slices.Contains(out, effect(recovered{c.of})))
			assert.Equal(t, c.own, p.nodes["t0"].attempts == 1)
		})
	}
}

// A machine works again when an attempt that began after its failure got past it.
func TestAMachineThatWorksAgain(t *testing.T) {
	t.Parallel()
	short := outcome{status: NotVerified, retry: true, why: "no process", fault: ofMachine}
	for name, c := range map[string]struct {
		then  outcome
		works bool
	}{
		"a success":                  {outcome{status: Accepted}, true},
		"a failure of the task":      {outcome{status: Failed, why: "no"}, true},
		"the same failure":           {short, false},
		"a verification alone":       {outcome{status: Rejected, unstarted: true}, true},
		"an attempt that was cut":    {outcome{status: Interrupted}, false},
		"a program that is away":     {outcome{status: NotStarted, retry: true, fault: ofProgram, unstarted: true}, false},
		"a task that Before skipped": {outcome{status: Skipped, left: &report{decided: "no"}}, false},
		"a task that Before failed":  {outcome{status: Failed, left: &report{decided: "no"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := outagePlan(6, nil)
			now := noon.Add(time.Second)
			p.step(now, ended{"t0", short}, nil)
			for _, id := range []string{"t1", "t2"} {
				assert.Empty(t, launched(p.step(now, ended{id, outcome{status: Accepted}}, nil)), "it began before")
			}
			now = p.next(now)
			probe := launched(p.step(now, woken{}, nil))
			require.Len(t, probe, 1)
			out := p.step(now, ended{probe[0], c.then}, nil)
			assert.Equal(t, c.works, slices.Contains(out, effect(recovered{ofMachine})))
			assert.Equal(t, c.works, !p.outages.held() && len(launched(out)) == 3)
		})
	}
}

// A task that cannot start while others can is to blame itself.
func TestATaskThatNeverStarts(t *testing.T) {
	t.Parallel()
	p := outagePlan(40, func(r *rules) { r.concurrency = 2 })
	now, own := noon, outcome{status: NotStarted, retry: true, why: "option", fault: ofProgram, unstarted: true}
	running := []string{"t0", "t1"}
	for starts := 0; p.nodes["t0"].state != nodeOver; {
		require.Less(t, starts, 20)
		var out []effect
		if len(running) == 0 {
			now = p.next(now)
			out = p.step(now, woken{}, nil)
		} else {
			id := running[0]
			running = running[1:]
			now = now.Add(time.Second)
			if id == "t0" {
				starts++
				out = p.step(now, ended{id, own}, nil)
			} else {
				out = p.step(now, reached{id, ofProgram, now}, nil)
				out = p.step(now, ended{id, outcome{status: Accepted}}, out)
			}
		}
		running = append(running, launched(out)...)
	}
	assert.Equal(t, NotStarted, p.nodes["t0"].status)
	assert.Nil(t, p.stopped)
}

// Tasks that two hosts in a row died with start last, and alone; only what one alone died with
// is quarantined.
func TestTasksThatHostsDieOf(t *testing.T) {
	t.Parallel()
	with := func(past map[string]*node) (*machine, []effect) {
		p := newMachine(testRules(1))
		var all []spec
		for i := range 5 {
			all = append(all, spec{id: fmt.Sprint("t", i), order: i})
		}
		return p, p.step(noon, added{specs: all, past: past, last: true}, nil)
	}
	p, out := with(map[string]*node{"t0": {starts: 6, free: 6, deaths: 2}, "t1": {starts: 6, free: 6, deaths: 6}, "t2": {starts: 1, free: 1, deaths: 1}})
	assert.Equal(t, []string{"t2", "t3", "t4"}, launched(out), "those that may be to blame come last")
	for _, id := range []string{"t2", "t3"} {
		assert.Empty(t, launched(p.step(noon, ended{id, outcome{status: Accepted}}, nil)), "they wait until nothing runs")
	}
	assert.Equal(t, []string{"t0"}, launched(p.step(noon, ended{"t4", outcome{status: Accepted}}, nil)))
	assert.Equal(t, []string{"t1"}, launched(p.step(noon, ended{"t0", outcome{status: Accepted}}, nil)), "it did not run alone when the last host died")

	_, out = with(map[string]*node{"t1": {starts: 6, free: 6, deaths: 6, alone: true}})
	assert.Equal(t, []string{"t0", "t2", "t3"}, launched(out))
	p, _ = with(map[string]*node{"t1": {starts: 6, free: 6, deaths: 6, alone: true}})
	for _, id := range []string{"t0", "t2", "t3", "t4"} {
		out = p.step(noon, ended{id, outcome{status: Accepted}}, out)
	}
	assert.Contains(t, bare(out), effect(finish{id: "t1", status: Quarantined, why: "the host died 6 times in a row while it ran, the last time while it ran alone"}))
}

// What a journal says of hosts that died.
func TestDeathsInAJournal(t *testing.T) {
	t.Parallel()
	start := func(id string, n int) recordOf { return recordOf{kindStarting, id, n, startingRecord{Mode: modeFresh}} }
	endOf := func(id string, n int) recordOf {
		return recordOf{kindAttempt, id, n, attemptRecord{Attempt: Attempt{Number: n}, Next: modeResume}}
	}
	died := recordOf{kindHost, "", 0, hostRecord{Host: "h"}}
	for name, c := range map[string]struct {
		records []recordOf
		deaths  int
		alone   bool
		free    int
	}{
		"once, with another": {[]recordOf{died, start("a", 1), start("b", 1)}, 1, false, 1},
		"twice, then alone":  {[]recordOf{died, start("a", 1), start("b", 1), died, start("a", 2)}, 2, true, 2},
		"an attempt ended":   {[]recordOf{died, start("a", 1), died, start("a", 2), endOf("a", 2), died, start("a", 3)}, 1, true, 2},
		"it did not run":     {[]recordOf{died, start("a", 1), died, start("b", 1), died}, 1, true, 1},
		"requeued":           {[]recordOf{died, start("a", 1), died, {kindRequeued, "a", 0, struct{}{}}}, 0, true, 0},
		"others were over":   {[]recordOf{died, start("a", 1), {kindHost, "", 0, hostRecord{Host: "h", Ran: 2}}}, 1, false, 1},
		"a graceful end":     {[]recordOf{died, start("a", 1), endOf("a", 1), died}, 0, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := history{tasks: map[string]*node{}}
			for _, rec := range append([]recordOf{{kindAdmitted, "a", 0, admittedRecord{}}, {kindAdmitted, "b", 0, admittedRecord{}}}, c.records...) {
				data, err := json.Marshal(rec.data)
				require.NoError(t, err)
				require.NoError(t, h.apply(&journal.Record{Kind: rec.kind, Task: rec.task, Attempt: rec.attempt, Data: data}))
			}
			h.died(0)
			k := h.tasks["a"]
			assert.Equal(t, c.deaths, k.deaths)
			assert.Equal(t, c.free, k.free)
			if c.deaths > 0 {
				assert.Equal(t, c.alone, k.alone)
			}
		})
	}
}

type recordOf struct {
	kind    string
	task    string
	attempt int
	data    any
}

// A task that was skipped begins anew if the one before it was requeued, and not if that has its
// result in the queue alone.
func TestSkippedTasksOfAJournal(t *testing.T) {
	t.Parallel()
	result := func(id string, s Status) recordOf { return recordOf{kindResult, id, 1, TaskResult{ID: id, Status: s}} }
	for name, c := range map[string]struct {
		records []recordOf
		want    []string
	}{
		"requeued":                     {[]recordOf{result("a", Rejected), result("b", Skipped), result("c", Skipped), {kindRequeued, "a", 0, struct{}{}}}, []string{"b", "c"}},
		"its result is in the queue":   {[]recordOf{result("b", Skipped), result("c", Skipped)}, nil},
		"its result is in the journal": {[]recordOf{result("a", Rejected), result("b", Skipped), result("c", Skipped)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := history{tasks: map[string]*node{}}
			var entries []*entry
			for i, id := range []string{"a", "b", "c"} {
				e := &entry{task: &Task{ID: id}}
				if i > 0 {
					e.task.After = []string{entries[i-1].task.ID}
				}
				entries = append(entries, e)
				c.records = slices.Insert(c.records, i, recordOf{kindAdmitted, id, 0, admittedRecord{}})
			}
			for _, rec := range c.records {
				data, err := json.Marshal(rec.data)
				require.NoError(t, err)
				require.NoError(t, h.apply(&journal.Record{Kind: rec.kind, Task: rec.task, Attempt: rec.attempt, Data: data}))
			}
			assert.Equal(t, c.want, h.reopen(entries))
		})
	}
}

// An attempt that its host did not outlive is among the attempts, once, with what it has used.
func TestAttemptsThatTheHostCut(t *testing.T) {
	t.Parallel()
	h := history{tasks: map[string]*node{}}
	for i, rec := range []recordOf{
		{kindAdmitted, "a", 0, admittedRecord{}}, {kindHost, "", 0, hostRecord{}},
		{kindStarting, "a", 1, startingRecord{Mode: modeFresh, Session: "s"}}, {kindTurn, "a", 1, turnRecord{Turns: 1, Usage: Usage{Turns: 3}}},
		{kindHost, "", 0, hostRecord{}}, {kindHost, "", 0, hostRecord{}},
		{kindStarting, "a", 2, startingRecord{Mode: modeResume, Session: "s"}}, {kindTurn, "a", 2, turnRecord{Turns: 2, Session: "s2", Usage: Usage{Turns: 4}}},
	} {
		data, err := json.Marshal(rec.data)
		require.NoError(t, err)
		require.NoError(t, h.apply(&journal.Record{Kind: rec.kind, Task: rec.task, Attempt: rec.attempt, Data: data, At: time.Unix(int64(i), 0)}))
	}
	h.died(0)
	k := h.tasks["a"]
	assert.Equal(t, []Attempt{
		{Number: 1, Status: Interrupted, Error: hostEnded, Mode: modeFresh, Session: "s", Started: time.Unix(2, 0), Ended: time.Unix(3, 0), Usage: Usage{Turns: 3}},
		{Number: 2, Status: Interrupted, Error: hostEnded, Mode: modeResume, Session: "s2", Started: time.Unix(6, 0), Ended: time.Unix(7, 0), Usage: Usage{Turns: 4}},
	}, k.tries)
	assert.Equal(t, 7, k.usage.Turns)
}

// What cut attempts have used stays in the usage when the task is requeued: the job has paid it.
func TestCutAttemptsOfATaskThatIsRequeued(t *testing.T) {
	t.Parallel()
	host := recordOf{kindHost, "", 0, hostRecord{}}
	attempt := func(n, turns int) []recordOf {
		return []recordOf{
			{kindStarting, "a", n, startingRecord{Mode: modeFresh, Session: "s"}},
			{kindTurn, "a", n, turnRecord{Turns: 1, Usage: Usage{Turns: turns}}},
		}
	}
	requeued := recordOf{kindRequeued, "a", 0, struct{}{}}
	for name, records := range map[string][]recordOf{
		"after the host's death":  slices.Concat(attempt(1, 3), []recordOf{host}, attempt(2, 4), []recordOf{host, requeued}),
		"while it runs":           slices.Concat(attempt(1, 3), []recordOf{host}, attempt(2, 4), []recordOf{requeued}),
		"while it runs, and dies": slices.Concat(attempt(1, 3), []recordOf{host}, attempt(2, 4), []recordOf{requeued, host}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := history{tasks: map[string]*node{}}
			for _, rec := range append([]recordOf{{kindAdmitted, "a", 0, admittedRecord{}}, host}, records...) {
				data, err := json.Marshal(rec.data)
				require.NoError(t, err)
				require.NoError(t, h.apply(&journal.Record{Kind: rec.kind, Task: rec.task, Attempt: rec.attempt, Data: data}))
			}
			h.died(0)
			k := h.tasks["a"]
			assert.Equal(t, 7, k.paid.Turns)
			assert.Zero(t, k.usage.Turns, "it begins anew")
		})
	}
}
