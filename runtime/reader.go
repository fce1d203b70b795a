package runtime

import (
	"context"

	"github.com/agent-troupe/troupe/internal/actors/ledger"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Reader is the one consumer of a session's messages, one message at a time.
// It is used by one goroutine.
type Reader struct {
	c    *ledger.Consumer
	read uint64
}

// Read takes the stream, unless somebody has it: [session.ErrBusy]. Whoever
// takes it before sending misses nothing, however soon the session ends.
func (s *Session) Read() (*Reader, error) {
	c, err := s.core.Ledger.Consume()
	if err != nil {
		return nil, err
	}
	return &Reader{c: c}, nil
}

// Next waits for the next message. It returns io.EOF after the normal end of
// the session, or the reason of its end; or why ctx ended.
func (r *Reader) Next(ctx context.Context) (protocol.Message, error) {
	e, err := r.c.Next(ctx)
	if err != nil {
		return nil, err
	}
	r.read = e.Seq + 1
	return decode(&e), nil
}

// Place is the place in the stream that follows the last message that Next returned.
func (r *Reader) Place() uint64 { return r.read }

// Delivered is the place in the stream that follows the last message that the session
// has taken from its agent. A callback of the host that asks for it learns which
// messages came before its request.
func (s *Session) Delivered() uint64 { return s.core.Ledger.Delivered() }

// Close gives the stream back. What was not read stays for the next consumer.
func (r *Reader) Close() { r.c.Release() }

// Spawner starts agents on this machine, as sessions without Options.Spawner do. A
// Spawner of one's own may start another command through it.
func (rt *Runtime) Spawner() session.Spawner { return rt.spawner }

// Clock is the clock of every deadline in this runtime.
func (rt *Runtime) Clock() session.Clock { return rt.sys.Clock() }

// Rand is the source of randomness in this runtime.
func (rt *Runtime) Rand() session.Rand { return rt.sys.Rand() }

// Executor runs whatever may block in this runtime.
func (rt *Runtime) Executor() session.Executor { return rt.sys.Executor() }
