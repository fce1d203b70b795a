package embedded

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/session"
)

const (
	guarded  = 10 // calls that the guard looks back at
	repeated = 5  // of them with the same input and result are too many
	patience = 10 // more of them, after the note to the model, end the turn
)

// guard sees a model that makes the same call again and again.
type guard struct {
	last  [guarded]uint64 // of input and result
	next  int
	noted uint64 // the call of the note to the model; 0: no call
	since int    // times that it was made since
}

// add adds a call, and returns how often it was made.
func (g *guard) add(call uint64) (times int) {
	g.last[g.next] = call
	g.next = (g.next + 1) % guarded
	for _, one := range g.last {
		if one == call {
			times++
		}
	}
	return times
}

// repeatedError ends a turn whose model makes the same call again and again.
type repeatedError struct {
	tool  string
	times int
}

func (e *repeatedError) Error() string {
	return fmt.Sprintf("the turn was ended: the model made the same call of %s with the same result %d times", e.tool, e.times)
}

// afterTools looks at the calls that were made. If one is repeated too often, the model gets
// a note. After more of them the turn ends.
func (t *talk) afterTools(l *agent.Lane, uses []*model.Block) error {
	t.showSkills(l)
	t.remindOfMove(l)
	t.remindOfPlan(l)
	var now []uint64
	for _, b := range uses {
		result, there := t.log.result(b.ID)
		if !there {
			continue
		}
		call := hash(append(append([]byte(b.Name+"\x00"), b.Input...), result...))
		if slices.Contains(now, call) {
			continue // of one answer, a call counts once
		}
		now = append(now, call)
		times := t.guard.add(call)
		if call != 0 && call == t.guard.noted {
			if t.guard.since++; t.guard.since >= patience {
				t.seams.Emit(&session.RepeatedCall{Tool: b.Name, Times: repeated + patience, Ended: true})
				return &repeatedError{b.Name, repeated + patience}
			}
			continue
		}
		if times < repeated {
			continue
		}
		t.guard.noted, t.guard.since = call, 0
		t.seams.Emit(&session.RepeatedCall{Tool: b.Name, Times: times})
		l.Remind(fmt.Sprintf("You have made the same call of %s %d times, with the same result each time. Do something else, or say what keeps you from going on.", b.Name, times))
	}
	return nil
}

// remindOfMove tells the model that the shell is in another directory. In a session that is
// resumed it is back where it began.
func (t *talk) remindOfMove(l *agent.Lane) {
	now := t.hands.dir()
	if before := cmp.Or(t.log.cwd, t.hands.base()); now != before {
		l.Attach(newDir, agent.Object{"dir": now, "content": []string{"# Environment update\n - Primary working directory: " + now + " (was " + before + ")"}})
	}
}
