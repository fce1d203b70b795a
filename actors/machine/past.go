package machine

import (
	"bytes"
	"slices"
)

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
	First   []byte       // the first byte of each Who, see [Stamps]
	Bytes   int
	Ran     Stamps
}

// Remembered is a request with the line that answered it.
type Remembered struct {
	Who  Identity
	Line []byte
}

// Stamps are of MCP messages that may have run, a ring once it is full. Five bytes are
// enough of an identity to know a message again: of 4,096 that ran, one in 268 million
// others is taken for one of them, and refused. The first byte is apart, where
// [bytes.IndexByte] finds it in a fraction of the time that comparing all takes.
type Stamps struct {
	First  []byte
	Rest   [][4]byte
	Oldest int
}

// answered keeps the answer of a request, and forgets the oldest above the
// bound.
func (p *Past) answered(who Identity, line []byte, bound int) {
	p.Answers, p.First = append(p.Answers, Remembered{who, line}), append(p.First, who[0])
	p.Bytes += len(line) + answerCost
	n := 0
	for p.Bytes > bound {
		p.Bytes -= len(p.Answers[n].Line) + answerCost
		n++
	}
	clear(p.Answers[:n])
	if p.Answers, p.First = p.Answers[n:], p.First[n:]; len(p.Answers) == 0 {
		p.Answers, p.First = nil, nil
	}
}

// answer is what a request was last answered with; nil when it is not known.
func (p *Past) answer(who Identity) (line []byte) {
	for i := 0; ; i++ {
		n := bytes.IndexByte(p.First[i:], who[0])
		if n < 0 {
			return line
		}
		if i += n; p.Answers[i].Who == who {
			line = p.Answers[i].Line
		}
	}
}

// forget gives up the answers.
func (p *Past) forget() { p.Answers, p.First, p.Bytes = nil, nil, 0 }

// run notes that an MCP message may have run; of more than limit the oldest is
// forgotten.
func (p *Past) run(who Identity, limit int) {
	r := &p.Ran
	if len(r.First) < limit {
		r.First, r.Rest = append(r.First, who[0]), append(r.Rest, [4]byte(who[1:]))
		return
	}
	r.First[r.Oldest], r.Rest[r.Oldest] = who[0], [4]byte(who[1:])
	r.Oldest = (r.Oldest + 1) % limit
}

func (p *Past) hasRun(who Identity) bool {
	rest := [4]byte(who[1:])
	for i := 0; ; i++ {
		n := bytes.IndexByte(p.Ran.First[i:], who[0])
		if n < 0 {
			return false
		}
		if i += n; p.Ran.Rest[i] == rest {
			return true
		}
	}
}

func (s Stamps) clone() Stamps {
	s.First, s.Rest = slices.Clone(s.First), slices.Clone(s.Rest)
	return s
}
