package machine

import (
	"cmp"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Config is constant and no part of a snapshot.
type Config struct {
	Rules  Rules
	Limits *session.Limits // see [Complete]
	// Discard drops content as it comes: results still end their turns.
	Discard bool
	// Traced: a tracer gets dropped content.
	Traced bool
	// Mirrored: what the agent stores is copied, so its reports of that are passed on.
	Mirrored bool
	// ResultAfterCancelled and RepeatsInit are the dialect's traits of these names.
	ResultAfterCancelled bool
	RepeatsInit          bool
	// ProveGates: the session has gates, one of them a hook of UserPromptSubmit,
	// which the agent calls before it begins to answer a prompt.
	ProveGates bool
	// ErrorCodeKey is the key of the code in an error answer. Default: Claude's.
	ErrorCodeKey string
	// Stall is how long a turn may be without progress until it is interrupted, by the
	// call Interrupt; zero: for any time.
	Stall     time.Duration
	Interrupt *Called // or nil
	// StallKill is how long after that the agent is killed if nothing has come; zero: never.
	StallKill time.Duration
	// Retry is how long the agent may only try again in a turn until it is interrupted;
	// zero: for any time.
	Retry time.Duration
	// Recovers: another process may follow one that has died.
	Recovers bool
	// Branched: the session is a branch of another one's history, which the agent leaves
	// when it is resumed without the name of a message in it.
	Branched bool
	// RemembersMessages is the dialect's trait of that name.
	RemembersMessages bool
	// KeepsTurns is the dialect's trait of that name.
	KeepsTurns bool
	// Quiet is how long the agent must have written nothing before the end of its
	// stdin.
	Quiet time.Duration
}

// Rules are what the dialect and the options say. They are pure: equal questions
// have equal answers.
type Rules interface {
	// Initialize is the body of the first call to process gen.
	Initialize(gen int) ([]byte, error)
	// Initialized judges its answer, and returns the calls that have to be made
	// before the first user message.
	Initialized(response []byte) ([]Called, error)
	// Keep returns a copy of that answer and the capabilities in it, or nil. Sessions
	// with the same answer share both, which never change.
	Keep(response []byte) (kept []byte, capabilities []string)
	// Shared returns a list that is equal to this one: the same for sessions that ask one
	// after the other for the same. It never changes.
	Shared(list []string) []string
	// BeforeEOF returns the calls that have to be made before the end of its stdin, and
	// why others cannot be.
	BeforeEOF(initialized []byte, capabilities []string) ([]Called, error)
	// CheckVersion judges the protocol version that the agent's first system/init
	// names, "" when it names none.
	CheckVersion(version string) error
	// CheckSession judges the session's id that it names, and returns what the user
	// is to be warned of, or "".
	CheckSession(id string) string
	// KindOf returns the kind of a control request by its subtype, and whether its
	// answer may have to wait for a person.
	KindOf(subtype string) (kind session.Kind, person bool)
	// Denial is the answer to a request that no callback will answer any more: gates
	// are denied. errText is used when response is nil.
	Denial(k session.Kind, f protocol.Frame, reason string) (response []byte, errText string)
	// Again returns the line of a user message for an agent that may know it: a note
	// about the work of the dead process, if any, precedes it.
	Again(line []byte, done []ToolCall) ([]byte, error)
	// Afresh returns the same message with another uuid.
	Afresh(line []byte, uuid string) ([]byte, error)
	// Onward returns the line of another message, with that uuid, that makes the model
	// continue that of line. quote: the model may not know that message.
	Onward(line []byte, uuid string, done []ToolCall, quote bool) ([]byte, error)
}

// State is everything that a routing knows: plain data.
type State struct {
	Gen      int       // of the process; 0: none yet
	Up       bool      // it can be written to
	EOF      bool      // its output has ended
	Heard    uint64    // the number of the last Told
	ReadAt   time.Time // when something of the agent was last read
	Closing  bool      // new work is turned away
	Why      Fault     // the session closes; without an error: the user's wish
	Serving  bool      // while it closes
	Resting  bool      // the process is about to go, because it is not needed
	Over     bool
	Begun    bool   // a turn of the user's or of the agent's has begun
	Works    bool   // the agent works; the transport was notified
	Order    uint64 // of the calls and turns, as they were made
	Seq      uint64 // of the request that came last
	Made     int    // calls that the routing made itself
	Queued   int64  // bytes written and not taken
	Turns    []Turn // open, in order of arrival
	Calls    []Call
	Requests []Request
	Past     Past
	Strays   Strays
	Proof    GateProof
	Facts    Facts
	Flow     Flow
	Flush    *FlushState // nil before it
	Stall    Stall
	Retries  Retries
	Recovery Recovery
	Memory   Story
	Timer    time.Time // the one that is set; zero: none
	Told     *Summary  // the last summary that was sent, or nil
}

// Routing is the machine. It is used by one goroutine at a time.
type Routing struct {
	State
	rules    Rules
	cfg      Config              // without the rules
	requests []*Request          // open, as they came; State.Requests is empty meanwhile
	open     map[string]*Request // the same, by the text of their ids
	gates    int                 // of the open ones, those that wait for a person
	now      time.Time
	out      []Effect
	entries  []Delivery // not yet delivered
	left     int        // frames of the batch that is being read, with the present one
}

// New returns a routing without a process.
func New(cfg Config) *Routing {
	m := Restore(State{}, cfg)
	m.Proof.Wanted = cfg.ProveGates
	m.Flow.Discard = cfg.Discard
	return m
}

// Restore returns a routing that continues from a snapshot.
func Restore(s State, cfg Config) *Routing {
	cfg.Limits = Complete(cfg.Limits)
	cfg.ErrorCodeKey = cmp.Or(cfg.ErrorCodeKey, protocol.ErrorCodeKeyClaude)
	s = s.clone()
	rules := cfg.Rules
	cfg.Rules = nil
	m := &Routing{State: s, rules: rules, cfg: cfg}
	m.Requests = nil
	for i := range s.Requests {
		r := s.Requests[i]
		if f, err := protocol.ParseFrame(r.Raw); err == nil {
			r.frame = f
		}
		m.keepRequest(&r)
	}
	for i, stray := range s.Strays.Kept {
		if f, err := protocol.ParseFrame(stray.Raw); err == nil {
			s.Strays.Kept[i].frame = f
		}
	}
	return m
}

// Snapshot returns what the routing knows, which shares nothing that a later step
// changes.
func (m *Routing) Snapshot() State {
	s := m.State.clone()
	for _, r := range m.requests {
		s.Requests = append(s.Requests, *r)
	}
	return s
}

// clone shares nothing that a step changes.
func (s State) clone() State {
	s.Turns, s.Calls = slices.Clone(s.Turns), slices.Clone(s.Calls)
	s.Past.Answers, s.Past.First, s.Past.Ran = slices.Clone(s.Past.Answers), slices.Clone(s.Past.First), s.Past.Ran.clone()
	s.Strays.Kept = slices.Clone(s.Strays.Kept)
	s.Facts.Tasks, s.Stall.Tools = slices.Clone(s.Facts.Tasks), slices.Clone(s.Stall.Tools)
	s.Recovery.Done, s.Recovery.Shown = slices.Clone(s.Recovery.Done), slices.Clone(s.Recovery.Shown)
	s.Memory = s.Memory.clone()
	if s.Flush != nil {
		flush := *s.Flush
		flush.Left = slices.Clone(flush.Left)
		s.Flush = &flush
	}
	return s
}

// Complete returns the limits with the defaults filled in; nil: no limit is set. Limits
// that need no default are returned as they are, so that sessions can share them.
func Complete(l *session.Limits) *session.Limits {
	if l == nil {
		l = &session.Limits{}
	}
	if full := l.WithDefaults(); full != *l {
		return &full
	}
	return l
}

// Limits are those in force, defaults filled in.
func (m *Routing) Limits() session.Limits { return *m.cfg.Limits }

// Step handles one input and appends its effects to out, in order.
func (m *Routing) Step(now time.Time, in Input, out []Effect) []Effect {
	m.now, m.out = now, out
	if told, ok := in.(Told); ok {
		m.Heard, in = told.N, told.In
	}
	m.handle(in)
	m.flush()
	m.watchProgress()
	m.watchRetries()
	m.deliver()
	m.setTimer()
	m.tell()
	out, m.out = m.out, nil
	return out
}

func (m *Routing) do(e Effect) { m.out = append(m.out, e) }

func (m *Routing) emit(e session.Event) { m.do(Emit{e}) }

func (m *Routing) handle(in Input) {
	if m.Over {
		m.handleOver(in)
		return
	}
	switch in := in.(type) {
	case FramesRead:
		m.ReadAt, m.Flow.Pressed = m.now, in.Pressed
		m.read(in.Frames)
		m.judgeReader()
	case ReaderAsks:
		m.Flow.Pressed = in.Pressed
		m.resume()
	case Consumed:
		m.consumed(in)
	case Answered:
		m.answered(in)
	case UserSent:
		m.userSent(in)
	case Called:
		m.called(in)
	case CallDropped:
		m.callDropped(in)
	case TimerFired:
		m.timerFired()
	case Taken:
		m.Queued -= in.Bytes
		m.writeOut()
	case Connected:
		m.connected(in.Gen)
	case Disconnected:
		m.Up, m.Queued = false, 0
	case Lost:
		m.lost(in)
	case Verdict:
		m.verdict(in)
	case Unwritable:
		m.unwritable()
	case Mute:
		m.mute()
	case OutputEnded:
		m.EOF = true
		m.Memory.gone(m.now)
		m.takeStraysIfOver()
		m.mirror(nil)
	case Echoed:
		if !m.echo(in.Head) {
			m.emit(&session.NoiseLine{Err: errEcho})
		}
	case CallbacksLost:
		for _, seq := range in.Seqs {
			if r := m.bySeq(seq); r != nil {
				m.deny(r, in.Reason)
			}
		}
	case Reads:
		m.Flow.Reader = in.On
		if !in.On && m.Flow.Abandoned {
			m.resume() // the reader may have waited for this one
		}
	case Serve:
		m.Serving = in.On
		m.denyIfClosing()
	case Flush:
		m.beginFlush(in.Limit)
	case Rest:
		m.rest(in)
	case Closing:
		m.Closing, m.Serving, m.Flow.Abandoned = true, in.Serve, in.Reason == nil
		m.Why = Fault{in.Reason}
		if in.Reason != nil {
			m.do(TurnedAway{in.Reason})
		}
		m.denyIfClosing()
		m.takeStraysIfOver()
		m.resume()
	case AuthLost:
		m.authExpired(in.Reason)
	case Ended:
		m.end(in.Reason)
	}
}

// handleOver handles what comes after the end.
func (m *Routing) handleOver(in Input) {
	switch in := in.(type) {
	case FramesRead:
		for i := range in.Frames {
			m.giveBack(len(in.Frames[i].Raw))
		}
	case Consumed:
		m.consumed(in)
	case Answered:
		m.answered(in)
	case UserSent:
		m.userSent(in)
	case Called:
		m.called(in)
	}
}

// connected begins with a process. Initialize is its first call.
func (m *Routing) connected(gen int) {
	if gen <= m.Gen {
		return
	}
	m.Gen, m.Up, m.EOF, m.Queued = gen, true, false, 0
	m.Memory.launched(m.now, gen)
	if m.Closing {
		return
	}
	body, err := m.rules.Initialize(gen)
	if err != nil {
		m.fail(err)
		return
	}
	m.call(Called{
		Subtype: "initialize", Body: body, Own: true,
		Limit: max(m.cfg.Limits.Initialize, 0), SetBy: "Limits.Initialize",
	}, true)
}

// fail notes why the agent cannot be used.
func (m *Routing) fail(err error) {
	if m.Facts.InitFailure.Err == nil {
		m.Facts.InitFailure = Fault{err}
		m.do(Unusable{Err: err})
	}
}

// end ends everything that is open.
func (m *Routing) end(reason error) {
	m.Over, m.Closing, m.Serving, m.Why = true, true, false, Fault{reason}
	m.denyAll("the session has ended")
	if reason == nil {
		reason = session.ErrClosed
	}
	for _, c := range m.Calls {
		m.do(CallOver{ID: c.ID, Err: reason})
	}
	m.Calls = nil
	for i := range m.Turns {
		t := &m.Turns[i]
		m.do(TurnOver{Outcome{ID: t.ID, Err: reason, Starts: t.Starts, Ends: m.Flow.Pushed}})
	}
	m.Turns, m.Up, m.Queued = nil, false, 0
	m.follow()
	m.Memory.gone(m.now)
	m.unstall()
	m.Facts.QuietUntil = time.Time{}
	m.goOn()
	if m.Flow.Lost > 0 {
		m.emit(lostInClose(m.Flow.Lost))
	}
}

// timerFired ends what has run out of time.
func (m *Routing) timerFired() {
	m.Timer = time.Time{}
	m.expireCalls()
	m.expireProbe()
	m.takeStraysIfOver()
	if !m.Facts.QuietUntil.IsZero() && !m.now.Before(m.Facts.QuietUntil) {
		m.Facts.QuietUntil = time.Time{}
	}
}

// setTimer asks for a timer if the first deadline is not the one that is set. While the
// agent works, one that comes too early stays: each callback moves the first deadline, and
// to find nothing due costs less than to set a timer for each of them.
func (m *Routing) setTimer() {
	next := m.Facts.QuietUntil
	if len(m.Strays.Kept) > 0 {
		next = earlier(next, m.Strays.Until)
	}
	next = earlier(earlier(next, m.Flush.wake()), earlier(m.Stall.Due, m.Retries.Due))
	next = earlier(next, m.Recovery.Until)
	for i := range m.Calls {
		if c := &m.Calls[i]; c.Limit > 0 {
			next = earlier(next, c.Opened.Add(c.Limit))
		}
	}
	if next.Equal(m.Timer) || m.InFlight() && !m.Timer.IsZero() && (next.IsZero() || m.Timer.Before(next)) {
		return
	}
	m.Timer = next
	m.do(SetTimer{next})
}

// earlier is the first of two times that are set.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// tell sends the summary if it has changed.
func (m *Routing) tell() {
	s := Summary{
		Heard: m.Heard, Gen: m.Gen, Initialized: m.Facts.Initialized != nil,
		Gates: m.gates, Stalled: m.Flow.Stalled, StalledAt: m.Flow.StalledAt,
		Turns: len(m.Turns), Running: m.Running(), InFlight: m.InFlight(), OwnTurn: m.Facts.OwnTurn,
		Tasks: len(m.Facts.Tasks), TasksSeen: m.Facts.TasksSeen, ResultAt: m.Facts.ResultAt, QuietUntil: m.Facts.QuietUntil,
		Failure: m.Facts.Failure, Closing: m.Closing, Changed: m.Facts.Changed, Flushed: m.Flush != nil && m.Flush.Done,
		Waiting: !m.Up && len(m.Turns)+len(m.Calls) > 0,
		Drained: m.EOF && len(m.Strays.Kept) == 0, Over: m.Over,
	}
	if off := m.Facts.GatesOff; off != nil {
		s.GatesOff = off.Seen
	}
	for i := range m.Calls {
		s.SettingUp = s.SettingUp || m.Calls[i].Setup
	}
	if works := s.Busy(); works != m.Works {
		m.Works = works
		m.do(Works{works})
	}
	if m.Told == nil || s != *m.Told {
		changed := s // or each step would allocate one
		m.Told = &changed
		m.do(Changed{&changed})
	}
}
