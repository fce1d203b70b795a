package machine

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Facts is what the session knows of its agent.
type Facts struct {
	Initialized  []byte // the answer to initialize; nil before
	InitFailure  Fault  // why the agent cannot be used
	SessionID    string
	Capabilities []string
	AgentRunning bool
	SaysStarted  bool      // the agent says when it begins with a user message
	OwnTurn      bool      // a turn runs that the agent started
	Skipped      bool      // a line above the ceiling may have been the result
	Tasks        []Task    // background tasks that live, by their ids
	TasksSeen    uint64    // how often they have changed
	ResultAt     time.Time // when the last result came
	WritesLost   *session.WritesLostError
	Overflow     bool                   // there were more tasks than are kept, and it was said
	Levels       bool                   // the agent reports tasks as a level
	QuietUntil   time.Time              // a turn may still follow the last task
	Stopped      bool                   // the host has interrupted the turn that runs
	Failure      string                 // what the last result said, if it was an error
	AuthExpired  bool                   // the AuthExpired event was emitted
	GatesOff     *session.GatesOffError // nil while the agent is not known to call no hooks
	Changed      bool                   // a call of the host's may have changed what the options say
	Met          bool                   // this process has named its session
	Resumes      string                 // the session that it was to take up; "": as the options say
	Workspace    string                 // the directory that the first process named first; "": none has named one
	Dir          string                 // the one that was named last
	PromptDenied bool                   // the host denied a UserPromptSubmit hook without asking it, so the agent drops the prompt
}

// observe takes note of what a content frame, which is about to be pushed, says about
// turns, tasks and the agent's state.
func (m *Routing) observe(e *Delivery) {
	f := &e.Frame
	switch f.Type {
	case "result":
		m.result(e)
	case "assistant":
		m.assistant(f)
		m.gatesSpoke(f)
	case "command_lifecycle":
		m.lifecycle(f)
	case "system":
		m.system(f)
	}
}

// learned sends what the agent has said about itself.
func (m *Routing) learned() {
	l := Learned{Initialized: m.Facts.Initialized, SessionID: m.Facts.SessionID, Capabilities: m.Facts.Capabilities}
	if lost := m.Facts.WritesLost; lost != nil {
		l.WritesLost = lost
	}
	m.do(l)
}

func (m *Routing) result(e *Delivery) {
	r, unread := resultOf(e.Frame)
	if unread != nil {
		m.emit(&session.NoiseLine{Err: unread})
	}
	m.Facts.ResultAt, m.Strays.Active = m.now, false
	e.Tasks = m.LiveTasks()
	r.BackgroundTasks = e.Tasks
	m.Facts.Failure, m.Facts.Skipped = "", false
	m.Proof.ended(m.interrupting())
	// An agent need not say why it stopped (qodercli does not); the host knows.
	interrupted := r.Interrupted() || m.Facts.Stopped
	m.Facts.Stopped = false
	if !interrupted {
		m.judge(r)
	}
	if r.IsError && !interrupted { // an interrupt explains no later failure
		m.Facts.Failure = failureOf(r)
	}
	if r.IsError && (r.APIErrorStatus == 401 || r.TerminalReason == "auth_required" || r.TerminalReason == "auth_payload_missing") {
		m.authExpired(r.Text())
	}
	failure := m.unusable() // a result of the interrupt on the way down, or one without gates
	if failure == nil && m.Facts.PromptDenied && m.Closing {
		failure = session.ErrClosed // the agent calls it a success
	}
	m.Facts.PromptDenied = false
	if gaveUp := m.retriesOver(r); failure == nil && gaveUp != nil {
		failure = gaveUp
	}
	for _, id := range m.resultTurns(r) {
		if m.turn(id).Recovered {
			r.Recovered, e.Recovered = true, true
		}
		if failure != nil {
			m.turnOver(m.turn(id), failure)
			continue
		}
		e.Ends = append(e.Ends, m.outcome(m.turn(id), r, lost(unread), true))
	}
	m.do(Spent{r})
	m.displace()
	m.Facts.QuietUntil = time.Time{}
}

// unusable is why nothing that the agent says counts any more, or nil.
func (m *Routing) unusable() error {
	if m.Facts.GatesOff != nil {
		return m.Facts.GatesOff
	}
	return m.Facts.InitFailure.Err
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

// assistant looks for the agent's word that it is not logged in. Both agents write it
// into a message of their own making (observed on Claude Code 2.1.329 and qodercli
// 1.1.52).
func (m *Routing) assistant(f *protocol.Frame) {
	if m.Facts.AuthExpired || !bytes.Contains(f.Raw, []byte(authFailed)) {
		return
	}
	if said, ok := protocol.DecodeMessage(*f).(*protocol.AssistantMessage); ok && said.Error == "authentication_failed" {
		m.authExpired(protocol.TextOf(said))
	}
}

func (m *Routing) authExpired(reason string) {
	if !m.Facts.AuthExpired {
		m.Facts.AuthExpired = true
		m.emit(&session.AuthExpired{Reason: Short(reason)})
	}
}

// lifecycle is a command_lifecycle: how far a user message has come.
type lifecycle struct {
	CommandUUID string `json:"command_uuid"`
	State       string `json:"state"`
}

func (m *Routing) lifecycle(f *protocol.Frame) {
	var l lifecycle
	if protocol.Unmarshal(f.Raw, &l) != nil {
		return
	}
	t := m.turnOf(l.CommandUUID)
	if t == nil {
		return
	}
	switch l.State {
	case protocol.LifecycleStarted:
		m.Facts.SaysStarted = true
		m.probed(t)
		t = m.turnOf(l.CommandUUID)
		m.enter(t, TurnStarted)
	case protocol.LifecycleCompleted, protocol.LifecycleCancelled, protocol.LifecycleDiscarded, protocol.LifecycleRefused:
		if l.State == protocol.LifecycleCancelled && t.Begun && m.cfg.ResultAfterCancelled && !m.Facts.SaysStarted {
			m.enter(t, TurnStarted) // its result comes
		}
		switch {
		case t.State >= TurnStarted:
		case l.State == protocol.LifecycleCompleted && t.probing():
			m.known(t)
		default:
			// Never begun and over: a uuid the agent knew, or a message
			// cancelled in its queue. No result will come.
			m.turnOver(t, session.ErrNotRun)
		}
	}
}

func (m *Routing) system(f *protocol.Frame) {
	switch f.Subtype {
	case "init":
		m.init(f)
	case "session_state_changed":
		var changed struct {
			State string `json:"state"`
		}
		if protocol.Unmarshal(f.Raw, &changed) != nil {
			return
		}
		m.Facts.AgentRunning = changed.State != "idle"
		m.follow()
		if !m.Facts.AgentRunning && m.Facts.Skipped { // one of the skipped lines was the result
			m.deliver()
			for _, o := range m.endSkipped(TurnStarted, len(m.Turns), session.ErrResultSkipped, false) {
				m.do(TurnOver{o})
			}
		}
		m.forgetAnswers()
		if m.Facts.AgentRunning {
			m.Facts.QuietUntil = time.Time{}
		}
	case "compact_boundary":
		m.Proof.compacted()
	case "session_writes_lost":
		var lost session.WritesLostError
		_ = protocol.Unmarshal(f.Raw, &lost) // it then says neither why nor what
		m.Facts.WritesLost = &lost
		m.learned()
		m.emit(&session.WarningIssued{Problem: lost.Error()})
	case "background_tasks_changed", "task_started", "task_notification":
		m.tasks(f)
	}
}

// init handles the message with which the agent begins a session, or each turn.
func (m *Routing) init(f *protocol.Frame) {
	var in struct {
		SessionID    string   `json:"session_id"`
		Version      string   `json:"protocol_version"`
		Messages     []string `json:"user_message_uuids"`
		Capabilities []string `json:"capabilities"`
		Cwd          string   `json:"cwd"`
		OriginalCwd  string   `json:"original_cwd"`
	}
	if protocol.Unmarshal(f.Raw, &in) != nil {
		return
	}
	first := !m.Facts.Met
	before := m.Facts.Dir
	if in.Cwd != "" && len(in.Cwd) <= maxWorkspace {
		m.Facts.Dir = in.Cwd
		m.Facts.Workspace = cmp.Or(m.Facts.Workspace, in.Cwd)
	}
	m.Facts.Met = in.SessionID != ""
	m.gatesBegan(in.Messages)
	if same := slices.Equal(in.Capabilities, m.Facts.Capabilities); !same || in.SessionID != m.Facts.SessionID {
		m.Facts.SessionID = in.SessionID
		if !same { // else they are what many sessions share
			m.Facts.Capabilities = m.rules.Shared(in.Capabilities)
		}
		m.learned()
	}
	if t := m.oldestWritten(); t != nil && !t.probing() {
		t.Begun = true // each turn begins with one
	}
	for _, id := range in.Messages {
		if t := m.turnOf(id); t != nil {
			m.probed(t)
		}
	}
	if !first {
		return
	}
	if err := m.rules.CheckVersion(in.Version); err != nil {
		m.fail(err)
	}
	if want := m.Facts.Resumes; want != "" && in.SessionID != "" && want != in.SessionID {
		m.fail(&session.RecoveryError{
			Problem: fmt.Sprintf("the agent is in session %s, not in %s", Short(in.SessionID), Short(want)), Err: m.Recovery.Reason.Err,
		})
	} else if m.Facts.strays(before, in.OriginalCwd) {
		m.fail(&session.RecoveryError{
			Problem: fmt.Sprintf("the agent works in %s, not in %s", Short(m.Facts.Dir), Short(m.Facts.Workspace)), Err: m.Recovery.Reason.Err,
		})
	} else if problem := m.rules.CheckSession(in.SessionID); want == "" && problem != "" && in.SessionID != "" {
		m.emit(&session.WarningIssued{Problem: problem})
	}
}

// maxWorkspace is the longest name of a directory that systems allow, in bytes.
const maxWorkspace = 4096

// strays reports whether a process that takes up a session names a directory that is
// neither that of the session nor the one where the process before it was last.
func (f *Facts) strays(before, original string) bool {
	return f.Resumes != "" && f.Dir != f.Workspace && f.Dir != before && original != f.Workspace
}
