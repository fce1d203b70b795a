package machine

import "slices"

// Bounds of the answers that are kept: while a turn is under way, and otherwise.
// The end of a turn forgets them all.
const (
	answersInTurn = 64 << 10
	answersIdle   = 4 << 10
	answerCost    = 64 // of each, in addition to its line
)

// Past remembers requests that were answered. One that comes again, id and
// body, gets the same bytes while they are kept. Afterwards it is a new request
// and a gate is asked again, except for an MCP message: its tool may have run, so
// it is never run twice.
type Past struct {
	Answers []Remembered // oldest first
	Bytes   int
	Ran     []Stamp // a ring once it is full
	Oldest  int     // of Ran
}

// Remembered is a request with the line that answered it.
type Remembered struct {
	Who  Identity
	Line []byte
}

// Stamp is enough of an identity to know an MCP message again: of 4,096 that ran,
// one in 268 million others is taken for one of them, and refused.
type Stamp [5]byte

// answered keeps the answer of a request, and forgets the oldest above the
// bound.
func (p *Past) answered(who Identity, line []byte, bound int) {
	p.Answers = append(p.Answers, Remembered{who, line})
	p.Bytes += len(line) + answerCost
	n := 0
	for p.Bytes > bound {
		p.Bytes -= len(p.Answers[n].Line) + answerCost
		n++
	}
	p.Answers = slices.Delete(p.Answers, 0, n)
	if len(p.Answers) == 0 {
		p.Answers = nil
	}
}

// answer is what a request was last answered with; nil when it is not known.
func (p *Past) answer(who Identity) []byte {
	for _, a := range slices.Backward(p.Answers) {
		if a.Who == who {
			return a.Line
		}
	}
	return nil
}

// forget gives up the answers.
func (p *Past) forget() { p.Answers, p.Bytes = nil, 0 }

// run notes that an MCP message may have run; of more than limit the oldest is
// forgotten.
func (p *Past) run(who Identity, limit int) {
	s := Stamp(who[:])
	if len(p.Ran) < limit {
		p.Ran = append(p.Ran, s)
		return
	}
	p.Ran[p.Oldest] = s
	p.Oldest = (p.Oldest + 1) % limit
}

func (p *Past) hasRun(who Identity) bool { return slices.Contains(p.Ran, Stamp(who[:])) }
