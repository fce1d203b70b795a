package ledger

import (
	"context"
	"io"

	"github.com/agent-troupe/troupe/internal/machine"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Entry is one message of the user's stream.
type Entry struct {
	Frame protocol.Frame
	// Turns are the turns that end with this frame, which is then a result.
	Turns []*Turn
	// Tasks are the background tasks that lived when the result came.
	Tasks []protocol.BackgroundTask
	Seq   uint64 // its place in the stream
	Task  uint64 // 1 + the place in the stream where its background task began; 0: it is of none
}

// stream is what was delivered and not yet consumed.
type stream struct {
	entries    fifo[Entry]
	largeBytes int64 // of lines that draw on the budget
	unpaid     machine.Consumed
	consumer   *Consumer
	unsure     bool // entries from unsureFrom on may yet turn out to be of a turn
	unsureFrom uint64
	wake       signal
	budget     *Budget
}

// paysAt is how many bytes may be consumed before the credit for them goes back.
const (
	paysAt       = 64 << 10
	messageBytes = 256
)

func (l *Ledger) deliver(e *machine.Entry) {
	entry := Entry{Frame: e.Frame, Tasks: e.Tasks, Seq: e.Seq, Task: e.Task}
	for i := range e.Ends {
		if t := l.turnOver(&e.Ends[i]); t != nil {
			entry.Turns = append(entry.Turns, t)
		}
	}
	if n := int64(len(e.Frame.Raw)); n > machine.LargeLine {
		l.stream.largeBytes += n
	}
	l.stream.entries.push(entry)
}

// pop takes the next message; its credit is not paid back yet.
func (s *stream) pop() Entry {
	e := s.entries.pop()
	s.owe(&e)
	return e
}

func (s *stream) owe(e *Entry) {
	n := int64(len(e.Frame.Raw))
	s.unpaid.Messages++
	s.unpaid.Bytes += n
	if e.Frame.Type == "stream_event" {
		s.unpaid.Partials++
		s.unpaid.PartialBytes += n
	}
	if n > machine.LargeLine {
		s.unpaid.LargeBytes += n
		s.largeBytes -= n
		s.budget.Release(n)
	}
}

// pay gives credit back for what was consumed; how says in which way.
func (l *Ledger) pay(how machine.Consumed) {
	in := l.stream.unpaid
	in.Empty, in.Dropped = how.Empty, how.Dropped
	l.stream.unpaid = machine.Consumed{}
	if in != (machine.Consumed{}) {
		l.step(in)
	}
}

// settle gives back what the session has of the runtime's budget: what is left of
// it belongs to whoever keeps it.
func (s *stream) settle() {
	s.budget.Release(s.largeBytes)
	s.budget, s.largeBytes = nil, 0
}

// trim removes partial messages, oldest first, until what is held weighs at most
// target.
func (l *Ledger) trim(target int64) {
	l.pay(machine.Consumed{})
	s := &l.stream
	kept, weight := fifo[Entry]{}, l.routing.Weight()
	count, bytes := 0, int64(0)
	for s.entries.len() > 0 {
		e := s.entries.pop()
		if e.Frame.Type == "stream_event" && weight > target {
			n := int64(len(e.Frame.Raw))
			count++
			bytes += n
			weight -= n + machine.MessageCost
			s.owe(&e)
			continue
		}
		kept.push(e)
	}
	s.entries = kept
	l.pay(machine.Consumed{Dropped: true})
	if count > 0 {
		l.cfg.Emit(session.MessagesDropped{Count: count, Bytes: bytes})
	}
}

// Consumer reads the stream. It is used by one task at a time.
type Consumer struct{ l *Ledger }

// Consume makes the caller the one consumer of the stream; [session.ErrBusy] if
// there is one already.
func (l *Ledger) Consume() (*Consumer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stream.consumer != nil {
		return nil, session.ErrBusy
	}
	c := &Consumer{l: l}
	l.stream.consumer = c
	l.step(machine.Reads{On: true})
	return c, nil
}

// Release gives the stream back. What was not read stays for the next one.
func (c *Consumer) Release() {
	l := c.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stream.consumer != c {
		return
	}
	l.stream.consumer = nil
	l.stream.entries.rest()
	l.pay(machine.Consumed{})
	l.step(machine.Reads{})
}

// Next returns the next message. At the end of the stream it returns io.EOF
// after a normal end, or the reason of the session's end.
func (c *Consumer) Next(ctx context.Context) (Entry, error) { return c.NextOf(ctx, nil) }

// NextOf is Next for somebody who wants the messages of one turn. What comes
// before them and is not of the turn is dropped. Once the turn has ended and
// nothing of it is left, it returns io.EOF.
func (c *Consumer) NextOf(ctx context.Context, t *Turn) (Entry, error) {
	for {
		e, wake, err := c.next(t)
		if wake == nil {
			return e, err
		}
		if err := c.l.await(ctx, wake); err != nil {
			return Entry{}, err
		}
	}
}

// next returns a message, or the end, or what to wait for.
func (c *Consumer) next(t *Turn) (Entry, <-chan struct{}, error) {
	l := c.l
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.stream
	for s.entries.len() > 0 && !t.overBefore(s.entries.front().Seq) && (t == nil || !s.undecided(s.entries.front())) {
		e := s.pop()
		if l.sum.Stalled {
			l.pay(machine.Consumed{})
		}
		if t == nil || t.owns(&e) {
			return e, nil, nil
		}
	}
	if t != nil && t.state == machine.TurnEnded {
		return Entry{}, nil, io.EOF
	}
	if l.terminal {
		if l.reason != nil {
			return Entry{}, nil, l.reason
		}
		return Entry{}, nil, io.EOF
	}
	if l.sum.Stalled {
		l.pay(machine.Consumed{Empty: true})
	}
	return Entry{}, s.wake.wait(), nil
}

// undecided reports whether an entry may yet turn out to be of a turn.
func (s *stream) undecided(e *Entry) bool { return s.unsure && e.Seq >= s.unsureFrom }
