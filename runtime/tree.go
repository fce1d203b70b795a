package runtime

import (
	"context"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// Tree is a snapshot of everything that runs.
type Tree struct {
	At          time.Time     // when it was taken, on the runtime's clock
	DeadLetters int64         // messages to actors that were gone
	LargeLines  int64         // bytes that lines above 1 MiB take now
	Sessions    []SessionTree // by id
}

// SessionTree is one session of a [Tree].
type SessionTree struct {
	ID             string              // the runtime's, as in events
	State          session.State       // of its state machine
	AgentSessionID string              // the agent's own; "" until it is known
	PID            int                 // of the agent; 0: no process
	Transport      string              // "up", "ended", …, with the step of the close ladder
	Unread         int                 // messages read from the agent and not consumed
	UnreadBytes    int64               // of the messages that Unread counts
	Waits          []session.Wait      // what it waits for at this moment
	Actors         []session.ActorInfo // of its part of the tree
}

// describeLimit bounds the question to one session: a session that is busy
// crashing has no time to describe itself.
const describeLimit = time.Second

// Tree takes a snapshot. It asks the actors one after another, so it is not one
// instant. What an actor does not answer within a second is missing.
func (rt *Runtime) Tree(ctx context.Context) Tree {
	t := Tree{At: rt.sys.Clock().Now(), DeadLetters: rt.sys.DeadLetters(), LargeLines: rt.host.Budget.Used()}
	for _, s := range rt.Sessions() {
		t.Sessions = append(t.Sessions, s.Tree(ctx))
	}
	return t
}

// Tree takes a snapshot of the session.
func (s *Session) Tree(ctx context.Context) SessionTree {
	link := s.core.Link().Status()
	t := SessionTree{
		ID: s.id, State: s.State(), AgentSessionID: s.AgentSessionID(), PID: link.PID,
		Transport: link.Phase.String(), Waits: s.waits(ctx),
	}
	t.Unread, t.UnreadBytes = s.core.Ledger.Unread()
	if link.Stage > 0 {
		t.Transport += ", " + link.Stage.String()
	}
	at := s.core.Address()
	t.Actors = []session.ActorInfo{{Name: at.Name(), State: "running", Depth: at.Depth(), Handled: at.Handled()}}
	ctx, cancel := s.askable(ctx)
	defer cancel()
	if below, err := s.core.Describe(ctx); err == nil {
		t.Actors = append(t.Actors, below...)
	}
	return t
}

// askable bounds a question to the session.
func (s *Session) askable(ctx context.Context) (context.Context, context.CancelFunc) {
	return kernel.WithTimeout(ctx, s.rt.sys.Clock(), &session.TimeoutError{What: "description of session " + s.id, Limit: describeLimit})
}

// waits asks what the session waits for.
func (s *Session) waits(ctx context.Context) []session.Wait {
	ctx, cancel := s.askable(ctx)
	defer cancel()
	return s.core.Waits(ctx)
}
