package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// facts is what the session knows of its agent.
type facts struct {
	initialized  json.RawMessage // the initialize response; nil before
	initFailure  error           // why the agent cannot be used
	ready        chan struct{}   // closed when the agent is initialized, or never will be
	readyOnce    sync.Once
	initSent     bool
	sessionID    string
	capabilities []string
	agentRunning bool
	saysStarted  bool                   // the agent says when it begins with a user message
	ownTurn      bool                   // a turn runs that the agent started
	skipped      bool                   // a line above the ceiling may have been the result
	tasks        map[string]task        // background tasks by id
	resultAt     time.Time              // when the last result came
	writesLost   error                  // a *session.WritesLostError
	overflow     bool                   // there were more than are kept, and it was said
	levels       bool                   // the agent reports tasks as a level
	quietUntil   time.Time              // a turn may still follow the last task
	quiet        kernel.Timer           // runs out then; nil before the first
	failure      string                 // what the last result said, if it was an error
	authExpired  bool                   // and told
	gatesOff     *session.GatesOffError // nil while the agent is not known to call no hooks
	promptDenied bool                   // the host denied a UserPromptSubmit hook without asking it, so the agent drops the prompt
}

// observe takes note of what a content frame says about turns, tasks and the
// agent's state, and reports whether anything changed.
func (l *Ledger) observe(e *Entry) (edge bool) {
	f := &e.Frame
	switch f.Type {
	case "result":
		r, unread := resultOf(*f)
		if unread != nil {
			l.cfg.Emit(session.NoiseLine{Err: unread})
		}
		l.facts.resultAt, l.strays.active = l.cfg.Clock.Now(), false
		e.Tasks = liveTasks(l.facts.tasks)
		r.BackgroundTasks = e.Tasks
		l.facts.failure, l.facts.skipped = "", false
		l.proof.ended(l.calls.interrupting())
		if r.IsError && !r.Interrupted() { // an interrupt explains no later failure
			l.facts.failure = failureOf(r)
		}
		if r.IsError && (r.APIErrorStatus == 401 || r.TerminalReason == "auth_required" || r.TerminalReason == "auth_payload_missing") {
			l.authExpired(r.Text())
		}
		e.Turns = l.resultTurns(r)
		if failure := l.unusable(); failure != nil { // a result of the interrupt on the way down, or one without gates
			for _, t := range e.Turns {
				l.endTurn(t, nil, failure)
			}
			e.Turns = nil
		}
		if l.facts.promptDenied && l.closing {
			for _, t := range e.Turns { // the agent calls it a success
				l.endTurn(t, nil, l.closedError())
			}
			e.Turns = nil
		}
		l.facts.promptDenied = false
		for _, t := range e.Turns {
			l.endTurn(t, r, lost(unread))
		}
		l.displace()
		l.facts.quietUntil = time.Time{}
		l.turns.idle.fire()
		return true
	case "assistant":
		l.assistant(f)
		return l.gatesSpoke(f)
	case "command_lifecycle":
		return l.lifecycle(f)
	case "system":
		return l.system(f)
	}
	return false
}

// unusable is why nothing that the agent says counts any more, or nil.
func (l *Ledger) unusable() error {
	if l.facts.gatesOff != nil {
		return l.facts.gatesOff
	}
	return l.facts.initFailure
}

// resultOf decodes a result. One that does not decode still ends its turn, with
// what could be read of it; err says why.
func resultOf(f protocol.Frame) (r *protocol.ResultMessage, err error) {
	m := protocol.DecodeMessage(f)
	if u, ok := m.(*protocol.UnknownMessage); ok {
		err, m = u.Err, u.Partial
		if lost := protocol.UnreadableResult(u); lost != nil {
			err = lost
		}
	}
	if r, ok := m.(*protocol.ResultMessage); ok {
		return r, err
	}
	return &protocol.ResultMessage{Subtype: f.Subtype, IsError: true, Errors: []string{"the result frame did not decode"}}, err
}

// lost is the error of a turn whose result has lost its text, nil for any other.
func lost(unread error) error {
	if e, ok := errors.AsType[*protocol.UnreadableResultError](unread); ok {
		return e
	}
	return nil
}

// failureOf is what a result that is an error says, in few words. An error of
// the model's API comes as a success (observed on Claude Code 2.1.329).
func failureOf(r *protocol.ResultMessage) string {
	var why []string
	if r.Subtype != protocol.ResultSuccess {
		why = append(why, Short(r.Subtype))
	}
	if r.TerminalReason != "" {
		why = append(why, Short(r.TerminalReason))
	}
	if r.APIErrorStatus != 0 {
		why = append(why, "status "+strconv.Itoa(r.APIErrorStatus))
	}
	parts := []string{strings.Join(why, ", "), Short(r.Text())}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	if len(parts) == 0 {
		return "an error"
	}
	return strings.Join(parts, ": ")
}

const authFailed = `"authentication_failed"`

// assistant looks for the agent's word that it is not logged in. Both agents
// write it into a message of their own making (observed on Claude Code 2.1.329
// and qodercli 1.1.52).
func (l *Ledger) assistant(f *protocol.Frame) {
	if l.facts.authExpired || !bytes.Contains(f.Raw, []byte(authFailed)) {
		return
	}
	if m, ok := protocol.DecodeMessage(*f).(*protocol.AssistantMessage); ok && m.Error == "authentication_failed" {
		l.authExpired(protocol.TextOf(m))
	}
}

// AuthExpired notes that the login is missing or has expired, and tells it once.
func (l *Ledger) AuthExpired(reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.authExpired(reason)
}

func (l *Ledger) authExpired(reason string) {
	if !l.facts.authExpired {
		l.facts.authExpired = true
		l.cfg.Emit(session.AuthExpired{Reason: Short(reason)})
	}
}

// lifecycle is a command_lifecycle: how far a user message has come.
type lifecycle struct {
	CommandUUID string `json:"command_uuid"`
	State       string `json:"state"`
}

func (l *Ledger) lifecycle(f *protocol.Frame) bool {
	var m lifecycle
	if protocol.Unmarshal(f.Raw, &m) != nil {
		return false
	}
	t := l.turns.byUUID(m.CommandUUID)
	if t == nil {
		return false
	}
	switch m.State {
	case protocol.LifecycleStarted:
		t.state, l.facts.saysStarted = TurnStarted, true
	case protocol.LifecycleCompleted, protocol.LifecycleCancelled, protocol.LifecycleDiscarded, protocol.LifecycleRefused:
		if m.State == protocol.LifecycleCancelled && t.begun && l.cfg.ResultAfterCancelled && !l.facts.saysStarted {
			t.state = TurnStarted // its result comes
		}
		if t.state < TurnStarted {
			// Never begun and over: a uuid the agent knew, or a message
			// cancelled in its queue. No result will come.
			l.endTurn(t, nil, session.ErrNotRun)
			return true
		}
	}
	return false
}

func (l *Ledger) system(f *protocol.Frame) bool {
	switch f.Subtype {
	case "init":
		var m struct {
			SessionID    string   `json:"session_id"`
			Version      string   `json:"protocol_version"`
			Messages     []string `json:"user_message_uuids"`
			Capabilities []string `json:"capabilities"`
		}
		if protocol.Unmarshal(f.Raw, &m) == nil {
			first := l.facts.sessionID == ""
			l.gatesBegan(m.Messages)
			l.facts.sessionID, l.facts.capabilities = m.SessionID, m.Capabilities
			if t := l.turns.oldestWritten(); t != nil {
				t.begun = true // each turn begins with one
			}
			if err := l.cfg.CheckVersion(m.Version); err != nil && first {
				l.facts.initFailure = err
			}
			if problem := l.cfg.CheckSession(m.SessionID); problem != "" && first && m.SessionID != "" {
				l.cfg.Emit(session.WarningIssued{Problem: problem})
			}
		}
		return true
	case "session_state_changed":
		var m struct {
			State string `json:"state"`
		}
		if protocol.Unmarshal(f.Raw, &m) != nil {
			return false
		}
		l.facts.agentRunning = m.State != "idle"
		if !l.facts.agentRunning && l.facts.skipped { // one of the skipped lines was the result
			l.endSkipped(TurnStarted, len(l.turns.open), session.ErrResultSkipped, false)
		}
		l.forgetAnswers()
		if l.facts.agentRunning {
			l.facts.quietUntil = time.Time{}
		}
		l.turns.idle.fire()
		return true
	case "compact_boundary":
		l.proof.compacted()
	case "session_writes_lost":
		var m session.WritesLostError
		_ = protocol.Unmarshal(f.Raw, &m) // it then says neither why nor what
		l.facts.writesLost = &m
		l.cfg.Emit(session.WarningIssued{Problem: m.Error()})
	case "background_tasks_changed", "task_started", "task_notification":
		return l.task(f)
	}
	return false
}

// quietPeriod is how long a turn that the agent starts by itself may follow
// the end of its last background task. Observed on Claude Code 2.1.329: 21 ms.
const quietPeriod = time.Second

func (l *Ledger) quiet() bool {
	return l.facts.quietUntil.IsZero() || !l.cfg.Clock.Now().Before(l.facts.quietUntil)
}

// InitSent reports whether the initialize call was made.
func (l *Ledger) InitSent() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.facts.initSent
}

// SetInitialized keeps the initialize response. From now on calls and user
// messages are written.
func (l *Ledger) SetInitialized(response json.RawMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if response == nil {
		response = json.RawMessage("null")
	}
	l.facts.initialized = bytes.Clone(response) // not the buffer that it was read into
	var m struct {
		Capabilities []string `json:"capabilities"`
	}
	if protocol.Unmarshal(response, &m) == nil && m.Capabilities != nil {
		l.facts.capabilities = m.Capabilities
	}
}

// SetInitFailure keeps why the agent cannot be used.
func (l *Ledger) SetInitFailure(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.facts.initFailure = err
}

// MarkReady says that the session takes work.
func (l *Ledger) MarkReady() {
	l.facts.readyOnce.Do(func() { close(l.facts.ready) })
}

// Ready is closed when the session takes work, or has ended before.
func (l *Ledger) Ready() <-chan struct{} { return l.facts.ready }

// InitFailure is why the agent cannot be used, or nil.
func (l *Ledger) InitFailure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.facts.initFailure
}

// Initialized is the initialize response; nil until it came.
func (l *Ledger) Initialized() json.RawMessage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.facts.initialized
}

// SessionID is the agent's own id of the session; "" until it told.
func (l *Ledger) SessionID() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.facts.sessionID
}

// Capabilities is what the agent says it can do.
func (l *Ledger) Capabilities() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.facts.capabilities)
}

// LastFailure is what the latest result said if it was an error, else "".
func (l *Ledger) LastFailure() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.facts.failure
}

// BackgroundTasks lists the ids of the tasks that live, sorted.
func (l *Ledger) BackgroundTasks() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.facts.tasks))
}
