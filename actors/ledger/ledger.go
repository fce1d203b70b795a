package ledger

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Class says what becomes of a line for the agent when there is no room for it.
type Class int

// Classes of lines.
const (
	FromHost Class = iota // a call or a user message: it waits
	Answer                // to a request of the agent: a denial goes in its place
	Denial                // is always taken: the agent must hear it
	Again                 // an answer that was given before: it is dropped
)

// Outlet is where lines for the agent go.
type Outlet interface {
	// Write queues whole lines and never blocks. It fails with [session.ErrTooLarge],
	// with [session.ErrNoRoom], or because the transport is closed. After ErrNoRoom for
	// a line of the host's, or for an answer, the router is told when there is
	// room.
	Write(lines []byte, as Class) error
}

// Flusher is an [Outlet] that a task may write to by itself, which spares the
// way through another one.
type Flusher interface {
	// Claim keeps what is queued from now on from being written, until Flush. It
	// reports false when somebody else is writing.
	Claim() bool
	// Flush writes what is queued. It may block.
	Flush()
}

// Config is what a ledger needs of its surroundings.
type Config struct {
	Clock  kernel.Clock
	Rand   kernel.Rand
	Exec   kernel.Executor
	Limits Limits
	// Budget is drawn on for lines above [LargeLine]; nil: no limit.
	Budget *Budget
	// Discard drops content as it comes: results still end their turns.
	Discard bool
	// Emit receives events. It must not call back into the ledger.
	Emit func(session.Event)
	// ResultAfterCancelled is the dialect's trait of that name.
	ResultAfterCancelled bool
	// RepeatsInit is the dialect's trait RepeatsSystemInit.
	RepeatsInit bool
	// ProveGates: the session has gates, one of them a hook of UserPromptSubmit,
	// which the agent calls before it begins to answer a prompt.
	ProveGates bool
	// ErrorCodeKey is the key of the code in an error answer. Default: Claude's.
	ErrorCodeKey string
	// CheckVersion judges the protocol version that the agent's first
	// system/init names; "" when it names none. An error ends the session.
	CheckVersion func(version string) error
	// CheckSession judges the session's id that it names, and returns what the
	// user is to be warned of, or "".
	CheckSession func(id string) string
	// Deny returns the answer to a request of the agent that no callback will
	// answer any more: gates are denied. errText is used when response is nil.
	Deny func(r *Request, reason string) (response []byte, errText string)
}

// Ledger is the surviving state of one session.
type Ledger struct {
	cfg Config

	mu       sync.Mutex
	inbox    fifo[protocol.Frame]
	eof      bool // the agent's stdout has ended
	lastRead time.Time
	stream   stream
	turns    turns
	strays   strays
	calls    calls
	requests requests
	facts    facts
	proof    gateProof
	outlet   Outlet
	order    uint64 // of calls and turns, as the user made them
	closing  bool
	serving  bool   // while it closes
	reader   signal // wakes a reader that waits for credit
	// What the reader waits for other than its consumer, if it does.
	readerWaits string
	readerSince time.Time

	terminal bool
	reason   error
	done     chan struct{}
}

// New returns an empty ledger.
func New(cfg Config) *Ledger {
	cfg.Limits = cfg.Limits.WithDefaults()
	if cfg.Emit == nil {
		cfg.Emit = func(session.Event) {}
	}
	if cfg.ErrorCodeKey == "" {
		cfg.ErrorCodeKey = protocol.ErrorCodeKeyClaude
	}
	if cfg.CheckVersion == nil {
		cfg.CheckVersion = func(string) error { return nil }
	}
	if cfg.CheckSession == nil {
		cfg.CheckSession = func(string) string { return "" }
	}
	l := &Ledger{cfg: cfg, done: make(chan struct{})}
	l.proof.wanted = cfg.ProveGates
	l.facts.ready = make(chan struct{})
	l.stream.discard, l.stream.budget = cfg.Discard, cfg.Budget
	return l
}

// Limits returns the limits in force, defaults filled in.
func (l *Ledger) Limits() Limits { return l.cfg.Limits }

// Budget is what large lines draw on; nil: no limit.
func (l *Ledger) Budget() *Budget { return l.cfg.Budget }

// SetOutlet names where lines go from now on; nil when there is no agent.
func (l *Ledger) SetOutlet(o Outlet) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outlet = o
}

// Connected reports whether there is an agent to write to.
func (l *Ledger) Connected() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.outlet != nil
}

func (l *Ledger) write(line []byte, as Class) error {
	if l.outlet == nil {
		return session.ErrTransportClosed
	}
	switch err := l.outlet.Write(line, as); {
	case err == nil || errors.Is(err, session.ErrTooLarge) || errors.Is(err, session.ErrNoRoom):
		return err
	default:
		return fmt.Errorf("%w: %w", session.ErrTransportClosed, err)
	}
}

// WriteThrough calls do. What it queues for the agent is written by flush, which
// the caller has to call and which may block, unless somebody else is writing.
func (l *Ledger) WriteThrough(do func()) (flush func()) {
	l.mu.Lock()
	out, ok := l.outlet.(Flusher)
	l.mu.Unlock()
	if !ok || !out.Claim() {
		do()
		return func() {}
	}
	done := false
	defer func() {
		if !done { // it panicked
			out.Flush()
		}
	}()
	do()
	done = true
	return out.Flush
}

// ReaderWaits notes what the reader waits for, other than its consumer: "" when
// it does not.
func (l *Ledger) ReaderWaits(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readerWaits, l.readerSince = what, l.cfg.Clock.Now()
}

// Serve says whether requests of the agent are still given out while the session
// is closing. Once they are not, those that are open are denied.
func (l *Ledger) Serve(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serving = on
	l.denyIfClosing()
}

func (l *Ledger) denyIfClosing() {
	if l.closing && !l.serving {
		l.denyAll(anyKind, "the session is closing")
	}
}

// BeginClosing turns away new work: turns and calls fail, and requests of the
// agent are denied at once unless they are still served. Unread messages stay readable. When the end is the
// user's wish (abandon) and nobody reads, messages beyond Limits.HardBytes are
// dropped, so that the close does not wait for a reader.
func (l *Ledger) BeginClosing(abandon bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closing = true
	l.stream.abandoned = abandon
	l.denyIfClosing()
	l.reader.fire()
}

// Terminate ends the session for good: open turns, calls and requests end with
// reason, and the stream ends after what it still holds. Only the first call
// counts. A nil reason is a normal end.
func (l *Ledger) Terminate(reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.terminal {
		return
	}
	l.terminal, l.closing, l.serving, l.reason = true, true, false, reason
	l.denyAll(anyKind, "the session has ended")
	end := reason
	if end == nil {
		end = session.ErrClosed
	}
	l.calls.failAll(end)
	l.turns.failAll(end, l.stream.pushed)
	l.outlet = nil
	l.facts.stopQuiet()
	l.stream.settle()
	l.stream.unstall()
	l.reader.fire()
	l.stream.wake.fire()
	l.turns.idle.fire()
	l.MarkReady()
	if l.stream.lost > 0 {
		l.cfg.Emit(session.WarningIssued{Problem: fmt.Sprintf("%d messages that came during the close were dropped: nobody read those before them", l.stream.lost)})
	}
	l.cfg.Emit(session.Ended{Reason: reason}) // before anybody can know: the id is free again
	close(l.done)
}

// Terminated reports whether the session has ended.
func (l *Ledger) Terminated() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.terminal
}

// Done is closed when the session has ended.
func (l *Ledger) Done() <-chan struct{} { return l.done }

// Reason is why the session ended; nil for a normal end. Call it after Done.
func (l *Ledger) Reason() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reason
}

// signal is a broadcast that can be waited for again and again.
type signal struct{ ch chan struct{} }

// wait returns a channel that the next fire closes.
func (s *signal) wait() <-chan struct{} {
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) fire() {
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

// Emit reports an event of the session.
func (l *Ledger) Emit(e session.Event) { l.cfg.Emit(e) }
