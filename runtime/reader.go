package runtime

import (
	"context"

	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Reader reads the messages of a session one at a time. A session has at most one
// Reader. It must be used by one goroutine only.
type Reader struct {
	c    *user.Consumer
	read uint64
}

// Read returns a Reader for the session's messages. If another one is in use, the error
// is [session.ErrBusy]. A Reader that was made before the first [Session.Send] misses no
// message, even if the session ends at once.
func (s *Session) Read() (*Reader, error) {
	c, err := s.core.User.Consume()
	if err != nil {
		return nil, err
	}
	return &Reader{c: c}, nil
}

// Next waits for the next message. After the last message it returns io.EOF if the
// session ended normally, and otherwise why it ended. If ctx ends first, it returns why
// ctx ended.
func (r *Reader) Next(ctx context.Context) (protocol.Message, error) {
	e, err := r.c.Next(ctx)
	if err != nil {
		return nil, err
	}
	r.read = e.Seq + 1
	return decode(&e), nil
}

// Place returns the position in the stream after the last message that Next returned.
func (r *Reader) Place() uint64 { return r.read }

// Delivered returns the position in the stream after the last message that the session
// has received from its agent. In a callback it says which messages came before the
// callback's request.
func (s *Session) Delivered() uint64 { return s.core.User.Delivered() }

// Close releases the session's messages. The next Reader gets those that were not read.
func (r *Reader) Close() { r.c.Release() }

// Spawner returns the spawner of sessions without Options.Spawner, which starts agents
// on this machine. Your own Spawner may use it to start another command.
func (rt *Runtime) Spawner() session.Spawner { return rt.spawner }

// Clock returns the clock of every deadline in this runtime.
func (rt *Runtime) Clock() session.Clock { return rt.sys.Clock() }

// Rand returns the source of randomness in this runtime.
func (rt *Runtime) Rand() session.Rand { return rt.sys.Rand() }

// Executor returns the executor that runs everything that may block in this runtime.
func (rt *Runtime) Executor() session.Executor { return rt.sys.Executor() }
