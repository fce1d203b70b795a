package ledger

import "slices"

// Bounds of the answers that are kept: while a turn is under way, and otherwise.
// The end of a turn forgets them all.
const (
	answersInTurn = 64 << 10
	answersIdle   = 4 << 10
	answerCost    = 64 // of each, in addition to its line
)

// memory remembers requests that were answered. One that comes again, id and
// body, gets the same bytes while they are kept. Afterwards it is a new request
// and a gate is asked again, except for an MCP message: its tool may have run, so
// it is never run twice.
type memory struct {
	answers []remembered // oldest first
	bytes   int
	ran     []stamp // a ring once it is full
	oldest  int     // of ran
}

type remembered struct {
	who  Identity
	line []byte
}

// stamp is enough of an identity to know an MCP message again: of 4,096 that ran,
// one in 268 million others is taken for one of them, and refused.
type stamp [5]byte

// answered keeps the answer of a request, and forgets the oldest above the
// bound.
func (m *memory) answered(who Identity, line []byte, bound int) {
	m.answers = append(m.answers, remembered{who, line})
	m.bytes += len(line) + answerCost
	n := 0
	for m.bytes > bound {
		m.bytes -= len(m.answers[n].line) + answerCost
		n++
	}
	m.answers = slices.Delete(m.answers, 0, n)
	if len(m.answers) == 0 {
		m.answers = nil
	}
}

// answer is what a request was last answered with; nil when it is not known.
func (m *memory) answer(who Identity) []byte {
	for _, a := range slices.Backward(m.answers) {
		if a.who == who {
			return a.line
		}
	}
	return nil
}

// forget gives up the answers.
func (m *memory) forget() { m.answers, m.bytes = nil, 0 }

// run notes that an MCP message may have run; of more than limit the oldest is
// forgotten.
func (m *memory) run(who Identity, limit int) {
	s := stamp(who[:])
	if len(m.ran) < limit {
		m.ran = append(m.ran, s)
		return
	}
	m.ran[m.oldest] = s
	m.oldest = (m.oldest + 1) % limit
}

func (m *memory) hasRun(who Identity) bool { return slices.Contains(m.ran, stamp(who[:])) }
