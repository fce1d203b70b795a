package fleet

import (
	"time"

	"github.com/agent-troupe/troupe/fleet/queue"
)

// verdict is the status of a task that ends with its attempt, before end is called with it;
// "": the task goes on, or somebody else decides.
func (p *plan) verdict(now time.Time, in *ended) Status {
	n := p.nodes[in.id]
	switch {
	case n == nil || n.state != nodeRuns || n.foreign != nil || n.asked != steerNone:
		return ""
	case in.status == Interrupted || in.refused || in.lost || in.asks || in.stops != "":
		return ""
	case in.status == Accepted || !in.retry && !in.poisoned:
		return in.status
	}
	attempts, usage := n.attempts, n.usage
	if !in.free {
		attempts++
	}
	usage.add(in.usage)
	switch {
	case n.budget.exceeded(usage) != "":
		return OverBudget
	case in.fault != ofTask && p.rules.patience > 0:
		if p.blames(now, n, in) {
			return in.status
		}
		return ""
	case attempts >= p.rules.attempts, p.rules.equal > 0 && n.failures(in) >= p.rules.equal:
		return in.status
	case n.counted() >= p.rules.starts:
		return Quarantined
	}
	return ""
}

// ended asks the queue about a result before the task ends with it.
func (p *plan) ended(now time.Time, in ended, out []effect) []effect {
	if n := p.nodes[in.id]; p.rules.shared && n != nil && n.state == nodeRuns {
		if status := p.verdict(now, &in); status != "" {
			n.state, n.claim = nodeClaims, &in
			return append(out, claim{in.id, status})
		}
	}
	return p.end(now, in, out)
}

// claimed ends the task, or the attempt: then its result is void.
func (p *plan) claimed(now time.Time, in claimed, out []effect) []effect {
	n := p.nodes[in.id]
	end, later := *n.claim, n.later
	n.state, n.claim, n.later = nodeRuns, nil, nil
	if in.lost {
		end.status, end.why, end.lost = Interrupted, queue.ErrLeaseLost.Error(), true
	}
	out = p.end(now, end, out)
	for _, s := range later {
		out = p.steer(s, out)
	}
	return out
}

// leave rests a task that another program has. A start that was refused has not been one.
// over is false if somebody has decided about the task meanwhile.
func (p *plan) leave(now time.Time, n *node, in *ended, out []effect) (_ []effect, over bool) {
	if in.refused {
		n.starts--
	}
	switch {
	case n.asked != steerNone:
		return out, false
	case p.stopped != nil:
		n.state = nodeWithout
	default:
		n.state, n.due, n.away = nodeRests, now.Add(max(in.after, p.rules.backoff.Delay(1, p.rules.rand))), true
		p.restUntilDue(n)
	}
	if in.refused {
		return out, true
	}
	p.remember(n, in)
	due := n.due
	if n.state == nodeWithout {
		due = time.Time{}
	}
	return append(out, again{id: n.id, due: due}), true
}

// freed lets a task start that another program has given back.
func (p *plan) freed(now time.Time, id string) {
	if n := p.nodes[id]; n != nil && n.state == nodeRests && n.away && n.due.After(now) {
		p.unqueue(n)
		n.due = now
		p.restUntilDue(n)
	}
}

// finishedElsewhere ends a task with the result of another program.
func (p *plan) finishedElsewhere(in *foreign, out []effect) []effect {
	n := p.nodes[in.id]
	switch {
	case n == nil || n.state == nodeOver:
		return out
	case n.state == nodeRuns || n.state == nodeClaims:
		n.foreign = in
		return append(out, losing{n.id})
	}
	p.unqueue(n)
	p.spent.add(in.usage)
	return p.close(n, in.status, "", true, out)
}
