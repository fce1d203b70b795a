package user

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/session"
)

// Delivery is one message of the user's stream.
type Delivery struct {
	machine.Delivery
	// Turns are the turns that end with this frame, which is then a result.
	Turns []*Turn
}

// stream is what was delivered and not yet consumed.
type stream struct {
	entries    fifo[machine.Delivery]
	ends       []end  // of turns, with messages that are not consumed, in order
	next       uint64 // the place of the next entry
	bytes      int64  // of entries
	largeBytes int64  // of lines that draw on the budget
	unpaid     machine.Consumed
	paidAt     time.Time // while the reader stands still
	consumer   *Consumer
	waits      bool // the consumer has found nothing more
	unsure     bool // entries from unsureFrom on may yet turn out to be of a turn
	unsureFrom uint64
	begun      bool // the first turn has its place: what came before is its
	wake       signal
	budget     *Budget
}

// end is a turn that ends with the message at a place of the stream.
type end struct {
	seq  uint64
	turn *Turn
}

// paysAt is how many bytes may be consumed before the credit for them goes back.
const (
	paysAt       = 64 << 10
	messageBytes = 256
)

// Rest releases memory around the unread messages, unless there is a reader: free room in
// slices, and the rest of the chunks that they were read in. The session may be idle for long.
func (u *Side) Rest() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stream.consumer == nil {
		u.stream.rest()
	}
}

// rest is Rest under the lock.
func (s *stream) rest() {
	s.entries.compact(func(e *machine.Delivery) {
		if len(e.Frame.Raw) < largePart {
			e.Frame.Raw = bytes.Clone(e.Frame.Raw)
		}
	})
}

// largePart is the length of a line from which on it is a large part of its chunk.
const largePart = 16 << 10

// deliver takes messages, which are the stream's from now on.
func (u *Side) deliver(entries []machine.Delivery) {
	s := &u.stream
	for i := range entries {
		e := &entries[i]
		for j := range e.Ends {
			if t := u.turnOver(&e.Ends[j]); t != nil {
				s.ends = append(s.ends, end{e.Seq, t})
			}
		}
		n := int64(len(e.Frame.Raw))
		s.bytes += n
		if n > machine.LargeLine {
			s.largeBytes += n
		}
		s.next = e.Seq + 1
	}
	for _, t := range u.taps {
		t.see(entries)
	}
	s.entries.pushAll(entries)
	s.waits = false // if it does, it looks
}

// pop takes the next message; its credit is not paid back yet.
func (s *stream) pop() Delivery {
	e := Delivery{Delivery: s.entries.pop()}
	s.owe(&e.Delivery)
	for len(s.ends) > 0 && s.ends[0].seq == e.Seq {
		e.Turns = append(e.Turns, s.ends[0].turn)
		if s.ends = s.ends[1:]; len(s.ends) == 0 {
			s.ends = nil
		}
	}
	return e
}

func (s *stream) owe(e *machine.Delivery) {
	n := int64(len(e.Frame.Raw))
	s.bytes -= n
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

// bill takes what was consumed and not paid for.
func (s *stream) bill(empty, dropped bool) machine.Consumed {
	in := s.unpaid
	in.Empty, in.Dropped = empty, dropped
	s.unpaid = machine.Consumed{}
	return in
}

// pay gives credit back for what was consumed.
func (u *Side) pay(in machine.Consumed, user bool) {
	if in != (machine.Consumed{}) {
		u.cfg.Router(in, user)
	}
}

// owesMuch reports whether the credit for what was consumed has to go back now. While
// the reader waits, the credit also reports that there is a consumer.
func (u *Side) owesMuch() bool {
	s := &u.stream
	if !u.sum.Stalled {
		return s.unpaid.Bytes > paysAt || s.unpaid.Messages > paysAt/messageBytes
	}
	now, limits := u.now(), u.cfg.Limits
	late := limits.Consumer > 0 && now.Sub(s.paidAt)*stalledPays >= limits.Consumer
	if !late && s.unpaid.Messages*stalledPays < limits.Messages && s.unpaid.Bytes*stalledPays < limits.Bytes {
		return false
	}
	s.paidAt = now
	return true
}

// stalledPays is the part of the limits that is paid for at once while the reader
// stands still.
const stalledPays = 32

// releaseBudget releases the session's share of the runtime's budget. The remaining
// messages no longer count.
func (s *stream) releaseBudget() {
	s.budget.Release(s.largeBytes)
	s.budget, s.largeBytes = nil, 0
}

// trim removes partial messages, oldest first, until what is held weighs at most
// target.
func (u *Side) trim(target int64) {
	s := &u.stream
	u.pay(s.bill(false, false), false)
	kept, weight := fifo[machine.Delivery]{}, s.bytes+int64(s.entries.len())*machine.MessageCost
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
	u.pay(s.bill(false, true), false)
	if count > 0 {
		u.cfg.Emit(&session.MessagesDropped{Count: count, Bytes: bytes})
	}
}

// Consumer reads the stream. It is used by one task at a time.
type Consumer struct{ u *Side }

// Consume makes the caller the one consumer of the stream; [session.ErrBusy] if
// there is one already.
func (u *Side) Consume() (*Consumer, error) {
	u.mu.Lock()
	if u.stream.consumer != nil {
		u.mu.Unlock()
		return nil, session.ErrBusy
	}
	c := &Consumer{u: u}
	u.stream.consumer = c
	tell := !u.terminal
	u.mu.Unlock()
	if tell {
		u.cfg.Router(machine.Reads{On: true}, true)
	}
	return c, nil
}

// Release gives the stream back. Unread messages stay for the next one.
func (c *Consumer) Release() {
	u := c.u
	u.mu.Lock()
	if u.stream.consumer != c {
		u.mu.Unlock()
		return
	}
	u.stream.consumer, u.stream.waits = nil, false
	u.stream.rest()
	bill, tell := u.stream.bill(false, false), !u.terminal
	u.mu.Unlock()
	if tell {
		u.pay(bill, true)
		u.cfg.Router(machine.Reads{}, true)
	}
}

// Next returns the next message. At the end of the stream it returns io.EOF
// after a normal end, or the reason of the session's end.
func (c *Consumer) Next(ctx context.Context) (Delivery, error) { return c.NextOf(ctx, nil) }

// NextOf is Next for the messages of one turn. Earlier messages of other turns are
// dropped. Once the turn has ended and all of its messages were read, it returns
// io.EOF.
func (c *Consumer) NextOf(ctx context.Context, t *Turn) (Delivery, error) {
	for {
		e, bill, wake, err := c.next(t)
		c.u.pay(bill, true)
		if wake == nil {
			return e, err
		}
		if err := c.u.await(ctx, wake); err != nil {
			return Delivery{}, err
		}
	}
}

// next returns a message, or the end, or what to wait for; and what has to be paid.
func (c *Consumer) next(t *Turn) (e Delivery, bill machine.Consumed, wake <-chan struct{}, err error) {
	u := c.u
	u.mu.Lock()
	defer u.mu.Unlock()
	s := &u.stream
	s.waits = false
	for s.entries.len() > 0 && !t.overBefore(s.entries.front().Seq) && (t == nil || !s.undecided(s.entries.front())) {
		if e = s.pop(); t != nil && !t.owns(&e) {
			continue
		}
		if !u.terminal && u.owesMuch() {
			bill = s.bill(false, false)
		}
		return e, bill, nil, nil
	}
	switch {
	case t != nil && t.state == machine.TurnEnded:
		return Delivery{}, bill, nil, io.EOF
	case u.terminal && u.reason != nil:
		return Delivery{}, bill, nil, u.reason
	case u.terminal:
		return Delivery{}, bill, nil, io.EOF
	}
	s.waits = true
	if u.sum.Stalled {
		bill = s.bill(true, false)
	} else if u.owesMuch() {
		bill = s.bill(false, false)
	}
	return Delivery{}, bill, s.wake.wait(), nil
}

// undecided reports whether an entry may yet turn out to be of a turn.
func (s *stream) undecided(e *machine.Delivery) bool {
	return !s.begun || s.unsure && e.Seq >= s.unsureFrom
}
