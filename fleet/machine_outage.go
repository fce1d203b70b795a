package fleet

import (
	"cmp"
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/session"
)

// resource is what all attempts of a job need, and whose failure counts against no
// task.
type resource int8

const (
	ofTask    resource = iota // nothing that is shared: the failure is the task's own
	ofProgram                 // the agent's program does not start
	ofServer                  // a shared MCP server does not start
	ofAPI                     // the model's API fails
	ofMachine                 // this machine has no descriptors, processes, memory or disk left
	resources
)

func (r resource) String() string {
	return [...]string{"task", "the agent's program does not start", "a shared MCP server does not start", "the model's API fails", "this machine is short of something"}[r]
}

// outages decide what starts while something fails that all attempts need. They are a part of
// a plan, and a value as it is.
type outages struct {
	patience time.Duration // 0: none
	rand     session.Rand
	of       [resources]outage
}

// outage is the state of one resource. The zero value has never failed.
type outage struct {
	since  time.Time      // of the first failure since it worked last; zero: it works
	failed map[string]int // attempts that failed since then, by task
	held   bool           // nothing starts but one probe at a time
	until  time.Time      // of the next probe
	trips  int            // probes that failed
	probe  string         // the task that finds out; "": none
	worked bool           // since the job began
	told   bool           // an event said that it is held
	why    string
}

const (
	// firstProbe is how long after a failure the next attempt starts at most; each failed
	// probe doubles it up to lastProbe.
	firstProbe = time.Second
	lastProbe  = 15 * time.Second
	// sure is how many attempts of one task alone have to fail until nothing else starts.
	sure = 3
	// untried is the patience with a program that has not started once in this job: more
	// likely than not its options are wrong.
	untried = time.Minute
)

// fails takes the failure of an attempt, and returns when its task may continue. over:
// the patience is at its end.
func (o *outages) fails(now time.Time, id string, in *ended) (due time.Time, over bool) {
	k := &o.of[in.fault]
	if k.since.IsZero() {
		k.since, k.failed = now, map[string]int{}
	}
	k.why = in.why
	if !in.gated {
		k.failed[id]++
	}
	if probe := k.probe == id; probe || !now.Before(k.until) { // what began before the last failure says nothing new
		k.trips++
		k.until = now.Add(o.delay(k.trips))
	}
	if in.gated && in.after > 0 {
		k.until = now.Add(in.after) // the breaker's own probe
	}
	k.held = k.held || in.gated || in.fault == ofMachine || len(k.failed) > 1 || k.failed[id] >= sure
	patience := o.patience
	if in.fault == ofProgram && !k.worked {
		patience = min(patience, untried)
	}
	return k.until, now.Sub(k.since) >= patience
}

// delay is between half of a limit, which doubles, and all of it: other jobs probe, too.
func (o *outages) delay(trips int) time.Duration {
	limit := firstProbe
	for i := 1; i < trips && limit < lastProbe; i++ {
		limit = min(2*limit, lastProbe)
	}
	return limit - time.Duration(o.rand.Int64N(int64(limit)/2+1))
}

// works takes the proof that a resource works, by an attempt of the task by: a start or request
// that began at the time from. One from before the first failure proves nothing. Where only one
// task has failed since the last proof, and another one gives this, the failure was that task's
// own: its id is returned.
func (o *outages) works(r resource, by string, from time.Time) (own string) {
	k := &o.of[r]
	if from.Before(k.since) {
		k.worked = true
		return ""
	}
	if len(k.failed) == 1 && r != ofMachine {
		for id := range k.failed { //troupe:maporder there is one
			if id != by {
				own = id
			}
		}
	}
	*k = outage{worked: true, told: k.told}
	return own
}

// provesMachine reports whether an attempt had what it needs of the machine up to its end. One
// that starts no agent may still have run the verifier.
func (in *ended) provesMachine() bool {
	if in.fault == ofMachine || in.status == Interrupted || in.left != nil && in.left.decided != "" {
		return false
	}
	f := in.status.Family()
	return f == familySuccess || f == familyAgent || !in.unstarted
}

// lets reports whether an attempt may start.
func (o *outages) lets(now time.Time) bool {
	for r := range o.of {
		if k := &o.of[r]; k.held && (k.probe != "" || now.Before(k.until)) {
			return false
		}
	}
	return true
}

// begins makes an attempt that starts the probe of what is held.
func (o *outages) begins(id string) {
	for r := range o.of {
		if o.of[r].held {
			o.of[r].probe = id
		}
	}
}

// ends lets another attempt be the probe.
func (o *outages) ends(id string) {
	for r := range o.of {
		if o.of[r].probe == id {
			o.of[r].probe = ""
		}
	}
}

// failures is how often a task has failed in what is held: those with fewer probe first, so
// that a task which cannot start does not keep the others waiting.
func (o *outages) failures(id string) (n int) {
	for r := range o.of {
		if k := &o.of[r]; k.held {
			n += k.failed[id]
		}
	}
	return n
}

// held reports whether starts wait for a probe.
func (o *outages) held() bool {
	for r := range o.of {
		if o.of[r].held {
			return true
		}
	}
	return false
}

// next is when the next probe may start; zero: at no time that is known.
func (o *outages) next(now time.Time) (at time.Time) {
	for r := range o.of {
		if k := &o.of[r]; k.held && k.until.After(now) && k.until.After(at) {
			at = k.until // all that is held has to let it pass
		}
	}
	return at
}

// what says what is held, and why; "": nothing is.
func (o *outages) what() string {
	for r := range o.of {
		if k := &o.of[r]; k.held {
			return fmt.Sprintf("%v: %s", resource(r), k.why)
		}
	}
	return ""
}

// news are the effects of what is held since it was asked last, and of what works again.
func (o *outages) news(out []effect) []effect {
	for r := range o.of {
		switch k := &o.of[r]; {
		case k.held && !k.told:
			k.told = true
			out = append(out, troubled{resource(r), k.why, k.since.Add(o.patience)})
		case k.since.IsZero() && k.told:
			k.told = false
			out = append(out, recovered{resource(r)})
		}
	}
	return out
}

// reach takes the proof that a resource works.
func (in reached) step(m *machine, out []effect) []effect {
	n := m.nodes[m.outages.works(in.of, in.id, in.from)]
	if n == nil {
		return out
	}
	n.attempts++ // its failure was its own
	if in.of == ofProgram && n.state != nodeRuns && n.next.mode == modeResume {
		n.next = launch{mode: modeAgain, space: n.next.space, why: n.next.why} // perhaps it is the session
	}
	return out
}

// suffer rests a task whose attempt failed for a shared reason.
func (m *machine) suffer(now time.Time, n *node, in *ended, out []effect) []effect {
	n.free++
	n.spared = true
	if n.troubled.IsZero() || in.turns > n.next.turns {
		n.troubled = now
	}
	m.renew(n, in)
	due, over := m.outages.fails(now, n.id, in)
	if over {
		m.stop(Stop{Reason: StopOutage, Detail: in.fault.String() + ": " + in.why})
		n.state = nodeWithout
		return append(out, m.again(n, time.Time{}, false))
	}
	n.state, n.due = nodeRests, later(due, now.Add(in.after))
	m.restUntilDue(n)
	return append(out, m.again(n, n.due, false))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// renew decides how an attempt begins after one that failed for a shared reason. One that
// was never started has changed nothing but, perhaps, made the workspace.
func (m *machine) renew(n *node, in *ended) {
	switch {
	case !in.unstarted:
		equal, last := n.equal, n.last
		m.remember(n, in)
		n.equal, n.last = equal, last
	case n.next.mode == modeFresh && in.space != "" && !n.clean:
		n.next = launch{mode: modeAgain, space: in.space} // without why: nothing was done there
	}
}

// blames reports whether the failure of something that is shared counts as the task's own:
// it works for others, and for this task it has not for as long as the patience is.
func (m *machine) blames(now time.Time, n *node, in *ended) bool {
	k := &m.outages.of[in.fault]
	patience := m.outages.patience
	return n.attempts >= m.rules.attempts ||
		!n.troubled.IsZero() && now.Sub(n.troubled) >= patience && (k.since.IsZero() || now.Sub(k.since) < patience)
}

// defaultPatience is the default of Job.Patience.
const defaultPatience = 30 * time.Minute

// patience is Job.Patience with its default; 0: none.
func (j *Job) patience() time.Duration { return max(cmp.Or(j.Patience, defaultPatience), 0) }
