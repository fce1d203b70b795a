package fleet

import (
	"fmt"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
)

// spent is what the job has used, with what attempts that run have reported so far.
func (m *machine) spent(now time.Time) Usage {
	all := m.usage
	for _, n := range m.running {
		if n.state == nodeRuns {
			all.add(n.spent)
			all.Wall += Duration(now.Sub(n.since))
		}
	}
	return all
}

// starvation is for how long the machine had too little processor time for what runs.
type starvation struct {
	on    bool
	since time.Time
	total time.Duration // before since
}

// set takes note of whether the machine is starved, and reports whether that is news.
func (g *starvation) set(now time.Time, on bool) (news bool) {
	if on == g.on {
		return false
	}
	if g.on {
		g.total += now.Sub(g.since)
	}
	g.on, g.since = on, now
	return true
}

// starved is for how long the machine was.
func (g *starvation) starved(now time.Time) time.Duration {
	if g.on {
		return g.total + now.Sub(g.since)
	}
	return g.total
}

// fan counts the subagents of one attempt.
type fan struct {
	began   int            // so far, those that run or ran
	calls   []*subagent    // that may begin, or run
	depths  map[string]int // of agents, by their id
	refused int
}

// subagent is a call that was let through.
type subagent struct {
	call  string // the tool call; "" for one that no call of ours started
	agent string // its id; "": it has not begun
	depth int
}

// letsFan decides about a call that starts a subagent. why: it is denied.
func (m *machine) letsFan(n *node, call, agent string, now time.Time) (why string) {
	most, f := m.rules.subagents, &n.fan
	depth := f.depths[agent] + 1
	if agent != "" && depth == 1 {
		depth = 2 // its start was not seen, but it is a subagent
	}
	switch {
	case most.Max < 0:
		why = "this task may not start subagents"
	case most.Depth > 0 && depth > most.Depth:
		why = fmt.Sprintf("subagents of this task may be nested %d deep, and this one would be at depth %d", most.Depth, depth)
	case most.Max > 0 && f.began+f.waiting() >= most.Max:
		why = fmt.Sprintf("this task may start %s, and has started %s", shown.Count(most.Max, "subagent"), shown.Verb(most.Max, "it", "them"))
	case most.AtOnce > 0 && len(f.calls) >= most.AtOnce:
		why = fmt.Sprintf("this task may have %s at the same time; wait until %s has ended", shown.Count(most.AtOnce, "subagent"), shown.Verb(most.AtOnce, "it", "one of them"))
	default:
		if why = m.reserve(now); why == "" {
			f.calls = append(f.calls, &subagent{call: call, depth: depth})
			return ""
		}
	}
	f.refused++
	return why
}

// reserve counts one more subagent of the job, or says why there must be none.
func (m *machine) reserve(now time.Time) (why string) {
	if spent := m.rules.budget.exceeded(m.spent(now)); spent != "" {
		return fmt.Sprintf("the job's budget of %s is spent", spent)
	}
	if most := m.rules.subagents.MaxJob; most > 0 && m.fanout >= most {
		return fmt.Sprintf("the tasks of the job may start %s, and have started %s", shown.Count(most, "subagent"), shown.Verb(most, "it", "them"))
	}
	m.fanout++
	return ""
}

// waiting counts the calls that were let through and have begun no subagent yet.
func (f *fan) waiting() (n int) {
	for _, s := range f.calls {
		if s.agent == "" {
			n++
		}
	}
	return n
}

// fanStarted takes note of a subagent. Its hook does not name the call: of those that wait for
// one, the deepest is assumed, so that no subagent counts as less deep than it is.
func (m *machine) fanStarted(f *fan, id string) {
	f.began++
	var of *subagent
	for _, s := range f.calls {
		if s.agent == "" && (of == nil || s.depth > of.depth) {
			of = s
		}
	}
	if of == nil {
		of = &subagent{depth: 1}
		m.fanout++
		f.calls = append(f.calls, of)
	}
	if of.agent = id; id == "" {
		of.agent = "?"
	}
	if f.depths == nil {
		f.depths = make(map[string]int)
	}
	f.depths[id] = of.depth
}

// fanReturned takes note of the end of a call. If no subagent began, the place is free; it
// counts if the call was a success, as of an agent that does not report subagents.
func (m *machine) fanReturned(f *fan, call string, ok bool) {
	gone := f.drop(func(s *subagent) bool { return s.call == call && s.agent == "" })
	if ok {
		f.began += gone
	} else {
		m.fanout -= gone
	}
}

// drop forgets the calls that match, and returns how many did.
func (f *fan) drop(match func(*subagent) bool) int {
	before := len(f.calls)
	f.calls = slices.DeleteFunc(f.calls, match)
	return before - len(f.calls)
}

// hooked takes what a hook about subagents says.
func (m *machine) hooked(in fanned, now time.Time) (why string) {
	n := m.nodes[in.id]
	if !n.is(in.number) {
		return "the attempt is over"
	}
	switch f := &n.fan; in.what {
	case fanAsks:
		return m.letsFan(n, in.call, in.agent, now)
	case fanBegan:
		m.fanStarted(f, in.agent)
	case fanReturned:
		m.fanReturned(f, in.call, in.ok)
	case fanStopped:
		f.drop(func(s *subagent) bool { return s.agent != "" && s.agent == in.agent })
	case fanTurned: // something else has denied what has not begun
		m.fanout -= f.drop(func(s *subagent) bool { return s.agent == "" })
	}
	return ""
}
