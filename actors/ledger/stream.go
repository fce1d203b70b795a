package ledger

import (
	"context"
	"io"
	"time"

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

	seq  uint64
	task uint64 // 1 + the place in the stream where its background task began; 0: it is of none
}

// stream is what was delivered and not yet consumed. held counts the inbox
// too: one bound covers all that was read and is not consumed.
type stream struct {
	entries      fifo[Entry]
	held         int
	heldBytes    int64
	partials     int    // of held, what could still be dropped
	partialBytes int64  // their bytes
	largeBytes   int64  // of heldBytes, lines that draw on the budget
	pushed       uint64 // entries ever
	consumer     *Consumer
	discard      bool
	abandoned    bool // the user closes: unread messages must not hold that up
	overflows    bool // and there are more than may be kept
	lost         int  // messages that were not kept then
	stalled      bool // the reader stands still for want of credit
	stalledAt    time.Time
	wake         signal
	budget       *Budget
}

func (s *stream) push(e Entry) {
	if s.discard {
		s.release(len(e.Frame.Raw))
		if s.overflows {
			s.lost++
		}
		return
	}
	s.partial(&e, 1)
	e.seq = s.pushed
	s.pushed++
	s.entries.push(e)
}

func (s *stream) pop() Entry {
	e := s.entries.pop()
	s.partial(&e, -1)
	s.release(len(e.Frame.Raw))
	return e
}

// partial counts an entry that can be dropped.
func (s *stream) partial(e *Entry, n int) {
	if e.Frame.Type == "stream_event" {
		s.partials += n
		s.partialBytes += int64(n) * int64(len(e.Frame.Raw))
	}
}

// messageCost is what a message takes besides its line, in bytes.
const messageCost = 256

// weight is the memory of what is held.
func (s *stream) weight() int64 { return s.heldBytes + int64(s.held)*messageCost }

// firm is the memory of what neither can be dropped nor has a budget of its own.
func (s *stream) firm() int64 {
	return s.weight() - s.partialBytes - int64(s.partials)*messageCost - s.largeBytes
}

func (s *stream) hold(n int) {
	s.held++
	s.heldBytes += int64(n)
	if n > LargeLine {
		s.largeBytes += int64(n)
	}
}

func (s *stream) release(n int) {
	s.held--
	s.heldBytes -= int64(n)
	if n > LargeLine {
		s.largeBytes -= int64(n)
		s.budget.Release(int64(n))
	}
}

// settle gives back what the session has of the runtime's budget: what is left of
// it belongs to whoever keeps it.
func (s *stream) settle() {
	s.budget.Release(s.largeBytes)
	s.budget = nil
}

func (s *stream) unstall() { s.stalled, s.stalledAt = false, time.Time{} }

// dropPartials removes partial messages, oldest first, until what is held weighs
// at most target.
func (s *stream) dropPartials(target int64) (count int, bytes int64) {
	kept := fifo[Entry]{}
	for s.entries.len() > 0 {
		e := s.entries.pop()
		if e.Frame.Type == "stream_event" && s.weight() > target {
			n := len(e.Frame.Raw)
			count++
			bytes += int64(n)
			s.partial(&e, -1)
			s.release(n)
			continue
		}
		kept.push(e)
	}
	s.entries = kept
	return count, bytes
}

// Consumer reads the stream. It is used by one task at a time.
type Consumer struct{ l *Ledger }

// Consume makes the caller the one consumer of the stream; [ErrBusy] if there
// is one already.
func (l *Ledger) Consume() (*Consumer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stream.consumer != nil {
		return nil, session.ErrBusy
	}
	c := &Consumer{l: l}
	l.stream.consumer = c
	return c, nil
}

// Release gives the stream back. What was not read stays for the next one.
func (c *Consumer) Release() {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if c.l.stream.consumer != c {
		return
	}
	c.l.stream.consumer = nil
	c.l.inbox.rest()
	c.l.stream.entries.rest()
	if c.l.stream.abandoned {
		c.l.reader.fire() // it may have waited for this consumer
	}
}

// Next returns the next message. At the end of the stream it returns io.EOF
// after a normal end, or the reason of the session's end.
func (c *Consumer) Next(ctx context.Context) (Entry, error) { return c.NextOf(ctx, nil) }

// NextOf is Next for somebody who wants the messages of one turn. What comes
// before them and is not of the turn is dropped. Once the turn has ended and
// nothing of it is left, it returns io.EOF.
func (c *Consumer) NextOf(ctx context.Context, t *Turn) (Entry, error) {
	l := c.l
	for {
		e, wake, err := c.next(t)
		if wake == nil {
			return e, err
		}
		if err := l.cfg.Exec.Await(ctx, wake); err != nil {
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
	for s.entries.len() > 0 && !t.overBefore(s.entries.front().seq) && (t == nil || !l.undecided(s.entries.front())) {
		e := s.pop()
		if s.stalled {
			s.stalledAt = l.cfg.Clock.Now() // somebody reads
		}
		if s.stalled && s.held <= l.cfg.Limits.Messages/2 && s.heldBytes <= l.cfg.Limits.Bytes/2 {
			s.unstall()
			l.reader.fire()
		}
		if t == nil || t.owns(&e) {
			return e, nil, nil
		}
	}
	if t != nil && t.state == TurnEnded {
		return Entry{}, nil, io.EOF
	}
	if l.terminal {
		if l.reason != nil {
			return Entry{}, nil, l.reason
		}
		return Entry{}, nil, io.EOF
	}
	if s.stalled {
		s.unstall()
		l.reader.fire()
	}
	return Entry{}, s.wake.wait(), nil
}
