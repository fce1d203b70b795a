package session

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/agent-troupe/troupe/supervisor"
)

// MaxWaiting is how many messages may wait for a child, and how many events.
const MaxWaiting = 1024

// Errors of children, to be matched with errors.Is.
var (
	// ErrChildDone is returned by a function of a [Behavior] to end the child normally. Its
	// class decides what follows: a permanent child is started again.
	ErrChildDone = errors.New("the child has ended normally")
	// ErrChildRestarts is the reason that Behavior.Stop gets when the child stops because
	// its supervisor restarts it together with a sibling.
	ErrChildRestarts = errors.New("the child is restarted together with another one")
	// ErrChildFull is returned by [Ref.Send] when [MaxWaiting] messages wait. The message was
	// not sent.
	ErrChildFull = errors.New("the child has too many messages waiting; send less, or handle them faster")
	// ErrNoChild is returned by [Ref.Send] when the message will never be handled: the
	// child's session was not started or has ended, or the child is temporary and has
	// ended.
	ErrNoChild = errors.New("the child does not run and will not be started")
)

// Behavior is what one incarnation of a [Child] does. Troupe calls the functions one at a
// time, on a goroutine that no other part of the session waits for, so they may block and
// may use the session: sdk.ClientOf or runtime.SessionOf returns it from ctx. A nil
// function does nothing.
//
// An error and a panic end the incarnation; the supervisor of the session decides what
// follows. [ErrChildDone] ends it normally. The message or event that it was handling is
// not handled again; the next incarnation handles those that wait.
//
// ctx is the same for all functions of an incarnation. It ends when the child is killed or
// has ended. A function that does not return after that is left behind, and reported: see
// supervisor.Child.
type Behavior[M any] struct {
	// Start runs first. Until it has returned, events and messages wait. Child.Start limits it.
	Start func(ctx context.Context) error
	// Event handles one event of the session. The events come in order, from the first of
	// the session on; those that happen while the child is down wait for it. If more than
	// MaxWaiting wait, further ones are dropped, and an [EventsLost] takes their place.
	// [Ended] is not among them: Stop is called instead.
	Event func(ctx context.Context, e EventRecord) error
	// Handle handles one message that [Ref.Send] sent. Without it messages are dropped.
	Handle func(ctx context.Context, m M) error
	// Stop runs last if the child is stopped in order, within Child.Shutdown. It does not run
	// after a failure or a kill. At the end of the session why is its error, or nil if it is
	// closed normally; what waits was handled before, as far as the time allows. Before a
	// restart why is [ErrChildRestarts], and what waits stays for the next incarnation.
	Stop func(ctx context.Context, why error) error
}

// Child is an actor of your own in the supervision tree of a session, such as a recorder or
// a metrics collector. Make one with [NewChild] and pass it in Options.Children. A child is
// in one session at a time; when that has ended it may be used in another one.
type Child struct {
	spec        supervisor.Child
	incarnation func() Behavior[any]
	seat        atomic.Pointer[seat] // in a session; nil: in none
}

type seat struct{ send func(message any) error }

// Ref sends messages to a [Child]. It is safe for concurrent use, also by other children,
// callbacks and the child itself.
type Ref[M any] struct{ child *Child }

// NewChild returns a child and the means to send messages to it. behavior is called for
// each incarnation, as part of its start, so what its functions close over begins anew. A
// mistake in spec is a *[ConfigError] when the session is opened. The name must differ from
// those of Troupe's own actors (transport, router, callbacks) and of the other children of
// the session, and must not contain / or #.
func NewChild[M any](spec supervisor.Child, behavior func() Behavior[M]) (*Child, *Ref[M]) {
	c := &Child{spec: spec}
	if behavior != nil {
		c.incarnation = func() Behavior[any] { return behavior().untyped() }
	}
	return c, &Ref[M]{c}
}

func (b Behavior[M]) untyped() Behavior[any] {
	u := Behavior[any]{Start: b.Start, Event: b.Event, Stop: b.Stop}
	if b.Handle != nil {
		u.Handle = func(ctx context.Context, m any) error {
			typed, _ := m.(M) // only a nil M is not an M
			return b.Handle(ctx, typed)
		}
	}
	return u
}

// Send leaves a message for the child and returns at once. The messages of one sender are
// handled in their order. They wait while the child is down. The error matches
// [ErrChildFull] or [ErrNoChild]; the message was not sent then. A message that still waits
// when the session ends without having handled it, because of a failure or of
// Child.Shutdown, is dropped.
func (r *Ref[M]) Send(m M) error {
	at := r.child.seat.Load()
	if at == nil {
		return fmt.Errorf("send to child %s: %w", r.child.spec.Name, ErrNoChild)
	}
	if err := at.send(m); err != nil {
		return fmt.Errorf("send to child %s: %w", r.child.spec.Name, err)
	}
	return nil
}

// Spec returns the specification that [NewChild] was given.
func (c *Child) Spec() supervisor.Child { return c.spec }

// Incarnation returns the behaviour of a new incarnation. It is for package runtime.
func (c *Child) Incarnation() Behavior[any] { return c.incarnation() }

// Attach puts the child into a session: messages go to send until detach is called, which
// may be called any number of times. It reports false if the child is in a session already.
// It is for package runtime.
func (c *Child) Attach(send func(message any) error) (detach func(), ok bool) {
	own := &seat{send}
	if !c.seat.CompareAndSwap(nil, own) {
		return func() {}, false
	}
	return func() { c.seat.CompareAndSwap(own, nil) }, true
}
