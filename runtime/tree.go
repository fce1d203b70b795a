package runtime

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/actors"
	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// Tree is a snapshot of a runtime and its sessions. Its JSON form is stable: later
// releases may add members, but do not rename or remove any. Every member is always
// present, but for those of [session.ActorInfo] that say otherwise. Times are in RFC 3339, sizes in bytes, and durations in milliseconds under
// names that end in _ms.
//
// A tree has no prompts, no answers and no secrets of the options. It has names that
// the agent and the model choose, such as those of tools and background tasks: escape
// control characters before you show them, as package inspect does.
type Tree struct {
	At              time.Time         `json:"at"`                // when the snapshot was taken, by the runtime's clock
	DeadLetters     int64             `json:"dead_letters"`      // number of messages to actors that had ended
	LargeLines      int64             `json:"large_lines"`       // bytes that lines above 1 MiB use now
	LargeLinesLimit int64             `json:"large_lines_limit"` // Config.LineBudget in force, in bytes
	Fleet           session.ActorInfo `json:"fleet"`             // the actor that is the parent of all sessions
	Sessions        []SessionTree     `json:"sessions"`          // sorted by id
	Breakers        []Breaker         `json:"breakers"`          // sorted by kind and name; those that were not needed yet are missing
	Accounts        []AccountStat     `json:"accounts"`          // of jobs, sorted by label
	// Ended are the sessions that have ended last, at most 256, the newest first. They have no
	// waits and no actors.
	Ended     []SessionTree `json:"ended"`
	Admission AdmissionStat `json:"admission"` // as of Runtime.AdmissionStat
}

// SessionTree is one session of a [Tree].
type SessionTree struct {
	At               time.Time     `json:"at"`                 // when the snapshot was taken, by the runtime's clock
	ID               string        `json:"id"`                 // the runtime's id of the session, as in events
	State            session.State `json:"state"`              // current state, by its name
	StateSince       time.Time     `json:"state_since"`        // when the state began
	Opened           time.Time     `json:"opened"`             // when the session was opened
	Backend          string        `json:"backend"`            // name of the dialect, such as claude
	Dir              string        `json:"dir"`                // Options.Cwd; empty: the working directory of the host
	AgentSessionID   string        `json:"agent_session_id"`   // the agent's id of the session; empty until it is known
	PID              int           `json:"pid"`                // process id of the agent; 0: no process runs
	Restarts         int           `json:"restarts"`           // how often a process took the place of one that had ended unplanned; a passivated session that wakes is not counted
	Transport        string        `json:"transport"`          // "up", "ended", …, with the step of the close ladder
	Unread           int           `json:"unread"`             // number of messages of the agent that have not been read
	UnreadLimit      int           `json:"unread_limit"`       // Limits.Messages in force
	UnreadBytes      int64         `json:"unread_bytes"`       // size of the messages that Unread counts
	UnreadBytesLimit int64         `json:"unread_bytes_limit"` // Limits.Bytes in force
	// Outstanding credit counts against the limits: unread messages, and owed messages,
	// which were read but not yet acknowledged to the router.
	CreditMessages     int   `json:"credit_messages"`      // how many are unread or owed
	CreditBytes        int64 `json:"credit_bytes"`         // and their size
	CreditOwedMessages int   `json:"credit_owed_messages"` // how many of them are owed
	CreditOwedBytes    int64 `json:"credit_owed_bytes"`    // and their size
	// Partial says that the session did not answer in time, so that Waits or Actors are
	// incomplete.
	Partial bool `json:"partial"`
	// Waits is what the session waits for now, such as calls in flight, with their ages
	// and limits.
	Waits  []session.Wait      `json:"waits"`
	Actors []session.ActorInfo `json:"actors"` // the actors of the session

	Title string `json:"title"` // Options.Title, or Task
	// Labels, Job, Task and Attempt are those of the [AdmissionRequest]. Do not change the map.
	Labels    map[string]string `json:"labels"`
	Job       string            `json:"job"`        // id of the job of package fleet; empty: none
	Task      string            `json:"task"`       // id of the task in it
	Attempt   int               `json:"attempt"`    // number of the task's attempt, from 1; 0: none
	Turn      int               `json:"turn"`       // number of turns that have begun, with the one that runs
	TurnSince time.Time         `json:"turn_since"` // when the turn that runs began; zero: none runs
	Usage     Usage             `json:"usage"`      // of the turns that have ended
	RSS       int64             `json:"rss"`        // bytes that the agent's processes have in memory; 0: none, or not known. Linux
	Error     string            `json:"error"`      // of a session that has failed, at most 500 characters
}

const (
	// describeLimit limits how long one session may take to describe itself: a session
	// that is busy restarting its actors cannot answer.
	describeLimit = time.Second
	// treeLimit limits how long a runtime asks its sessions.
	treeLimit = 5 * time.Second
)

// Tree takes a snapshot of all sessions. The sessions are asked one after another, so
// their snapshots are not of the same instant. If a session does not answer within a
// second, or the whole takes more than 5 s, the waits and actors of sessions are
// missing, and [SessionTree].Partial says so.
func (rt *Runtime) Tree(ctx context.Context) Tree { return rt.TreeOf(ctx, rt.Sessions()...) }

// TreeOf is [Runtime.Tree] with these sessions alone: no other session is asked.
func (rt *Runtime) TreeOf(ctx context.Context, sessions ...*Session) Tree {
	t := Tree{
		At: rt.sys.Clock().Now(), DeadLetters: rt.sys.DeadLetters(),
		LargeLines: rt.host.Budget.Used(), LargeLinesLimit: rt.host.Budget.Limit(),
		Fleet:    described(&rt.fleet),
		Sessions: []SessionTree{}, Breakers: rt.breaks.describe(), Accounts: rt.Accounts(),
		Ended: rt.ended(), Admission: rt.AdmissionStat(),
	}
	t.Fleet.Started, t.Fleet.OldestMS = rt.began, rt.fleet.Waited(t.At).Milliseconds()
	if t.Admission.ByGroup == nil {
		t.Admission.ByGroup = map[string]int{}
	}
	limit := &session.TimeoutError{What: "description of all sessions", Limit: treeLimit}
	ctx, cancel := kernel.WithTimeout(ctx, rt.sys.Clock(), limit)
	defer cancel()
	memory := memoryOf(sessions...)
	for _, s := range sessions {
		t.Sessions = append(t.Sessions, s.tree(ctx, memory))
	}
	return t
}

// memoryOf measures the agents of sessions: bytes, by the process id of the agent.
func memoryOf(all ...*Session) map[int]int64 {
	pids := map[int]int64{}
	for _, s := range all {
		if link := s.core.Link().Status(); s.local && link.PID != 0 && link.Phase < machine.Gone {
			pids[link.PID] = 0
		}
	}
	if len(pids) > 0 {
		measureTrees(pids)
	}
	return pids
}

// described is an actor that is there.
func described[M any](at *kernel.Address[M]) session.ActorInfo {
	return session.ActorInfo{Name: at.Name(), State: "running", Depth: at.Depth(), Handled: at.Handled()}
}

// Session returns the session with the id; nil if it is unknown or has ended.
func (rt *Runtime) Session(id string) *Session {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.sessions[id]
}

// Tree takes a snapshot of the session.
func (s *Session) Tree(ctx context.Context) SessionTree { return s.tree(ctx, memoryOf(s)) }

func (s *Session) tree(ctx context.Context, memory map[int]int64) SessionTree {
	link := s.core.Link().Status()
	limits := s.core.User.Limits()
	t := s.outline()
	t.At, t.AgentSessionID, t.Restarts, t.Transport = s.rt.sys.Clock().Now(), s.AgentSessionID(), s.starts.restarts(link.Gen), link.Phase.String()
	t.UnreadLimit, t.UnreadBytesLimit = limits.Messages, limits.Bytes
	if link.Phase < machine.Gone { // the number of a process that is gone may be another's
		t.PID, t.RSS = link.PID, memory[link.PID]
	}
	if t.State.Terminal() {
		if err := s.Err(); err != nil {
			t.Error = cutText(err.Error(), maxError)
		}
	}
	t.Unread, t.UnreadBytes = s.core.User.Unread()
	if link.Stage > 0 {
		t.Transport += ", " + link.Stage.String()
	}
	waits, turn, credit, err := s.waits(ctx)
	t.Turn, t.TurnSince = turn.N, turn.Since
	t.CreditMessages, t.CreditBytes = credit.Messages, credit.Bytes
	t.CreditOwedMessages, t.CreditOwedBytes = credit.OwedMessages, credit.OwedBytes
	t.Waits, t.Partial = append(t.Waits, waits...), err != nil
	own := described(s.core.Address())
	own.OldestMS = s.core.Address().Waited(t.At).Milliseconds()
	if began := s.lived.Load(); began != 0 {
		own.Started = time.Unix(0, began).In(s.opened.Location())
	}
	if crash := s.crash.Load(); crash != nil {
		own.Restarts, own.LastFailure, own.FailedAt = crash.count, crash.reason.Error(), crash.at
		if n := crash.lately(t.At); n > 0 {
			own.WindowFailures, own.WindowLimit, own.WindowMS = n, crash.limit.Max, crash.limit.Window.Milliseconds()
		}
	}
	t.Actors = []session.ActorInfo{own}
	ctx, cancel := s.askable(ctx)
	defer cancel()
	below, err := s.core.Describe(ctx)
	t.Actors, t.Partial = append(t.Actors, below...), t.Partial || err != nil
	if t.State == session.StateAdmitting || t.State.Terminal() {
		t.Partial = false // no actor is there, so nothing is missing
	}
	return t
}

// crash is what is known of the failures of a session's own actor.
type crash struct {
	count  int
	reason error // of the last one
	at     time.Time
	recent []time.Time // that the supervisor may count, oldest first
	limit  supervisor.Intensity
}

// lately is how many failures the supervisor counts now.
func (c *crash) lately(now time.Time) (n int) {
	for _, at := range c.recent {
		if now.Sub(at) <= c.limit.Window {
			n++
		}
	}
	return n
}

// crashed notes a failure of the session's own actor. Only the fleet actor calls it.
func (s *Session) crashed(reason error, at time.Time, limit supervisor.Intensity) {
	c := crash{count: 1, reason: reason, at: at, limit: limit}
	if last := s.crash.Load(); last != nil {
		c.count += last.count
		c.recent = slices.Clone(last.recent[max(len(last.recent)-limit.Max, 0):])
	}
	c.recent = append(c.recent, at)
	s.crash.Store(&c)
}

// stateSince is when the present state began.
func (s *Session) stateSince() time.Time {
	if at := s.entered.Load(); at != 0 {
		return time.Unix(0, at).In(s.opened.Location())
	}
	return s.opened
}

// askable bounds a question to the session.
func (s *Session) askable(ctx context.Context) (context.Context, context.CancelFunc) {
	return kernel.WithTimeout(ctx, s.rt.sys.Clock(), &session.TimeoutError{What: "description of session " + s.id, Limit: describeLimit})
}

// waits asks what the session waits for, and which credit is out.
func (s *Session) waits(ctx context.Context) ([]session.Wait, actors.Turn, actors.Credit, error) {
	ctx, cancel := s.askable(ctx)
	defer cancel()
	waits, turn, credit, err := s.core.Waits(ctx)
	if held, ok := s.starts.wait(); ok {
		waits = append([]session.Wait{held}, waits...)
	} else if s.State() == session.StateStarting {
		limit, age := max(s.core.User.Limits().Start, 0), s.rt.sys.Clock().Now().Sub(s.stateSince())
		waits = append([]session.Wait{{What: "start of the agent", Age: age, Limit: limit, SetBy: "Limits.Start", Since: s.stateSince()}}, waits...)
	}
	return waits, turn, credit, err
}

// Format writes which fields are set, without secrets, for every verb.
func (p Preview) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(p)) }

// LogValue returns the text that Format writes, for package log/slog.
func (p Preview) LogValue() slog.Value { return slog.StringValue(shown.Struct(p)) }
