package runtime

import (
	"context"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// Tree is a snapshot of a runtime and its sessions.
type Tree struct {
	At          time.Time     // when the snapshot was taken, by the runtime's clock
	DeadLetters int64         // number of messages to actors that had ended
	LargeLines  int64         // bytes that lines above 1 MiB use now
	Sessions    []SessionTree // sorted by id
}

// SessionTree is one session of a [Tree].
type SessionTree struct {
	ID             string              // the runtime's id of the session, as in events
	State          session.State       // current state
	AgentSessionID string              // the agent's id of the session; "" until it is known
	PID            int                 // process id of the agent; 0: no process
	Transport      string              // "up", "ended", …, with the step of the close ladder
	Unread         int                 // number of messages of the agent that have not been read
	UnreadBytes    int64               // size of the messages that Unread counts
	Waits          []session.Wait      // what the session waits for now
	Actors         []session.ActorInfo // the actors of the session
}

// describeLimit limits how long one session may take to describe itself: a session that
// is busy restarting its actors cannot answer.
const describeLimit = time.Second

// Tree takes a snapshot of all sessions. The sessions are asked one after another, so
// their snapshots are not of the same instant. If a session does not answer within a
// second, its waits and actors are missing.
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
