package machine

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Recovery is what a routing knows for the case that the process dies, and after it has.
type Recovery struct {
	// Knows: the agent says of a message whether it knows it, so that it may get one twice.
	Knows   bool
	Done    []ToolCall // of the turn that runs, as the agent has shown them
	Shown   []string   // uuids of the agent's messages in the turn that runs; of more than maxShown the last
	Reason  Fault      // of the last death
	Passive bool       // the last process ended because it was not needed
	Leaf    string     // the last message of the model's in a turn that has its result; known if Config.Branched
	Last    string     // the same, of the turn that runs
	Until   time.Time  // the agent must have said by then whether it knows a message; zero: no message waits
}

// ToolCall is a call of a tool that the agent has shown.
type ToolCall struct {
	ID, Name, Input string // cut to 256 bytes each
	Over            bool   // its result was shown
}

// maxDone is how many tool calls of a turn are known.
const maxDone = 64

// Resend is how a message goes to another process.
type Resend int

// Ways to send a message that a dead process had been given.
const (
	NotResent Resend = iota
	Probe            // it is written again, and the agent says whether it knows it
	Onward           // the agent knows it: another message makes the model continue
	Afresh           // it is written as another message, whatever the agent has done of it
	Anew             // the same, because it was lost
)

// current is the uuid under which the present process has the message.
func (t *Turn) current() string { return cmp.Or(t.Alias, t.ID) }

// probing reports whether the agent is yet to say whether it knows the message.
func (t *Turn) probing() bool { return t.Resend == Probe && t.State == TurnWritten && !t.Begun }

// turnOf is the open turn whose message the present process has under that uuid, or nil.
func (m *Routing) turnOf(uuid string) *Turn {
	for i := range m.Turns {
		if m.Turns[i].current() == uuid {
			return &m.Turns[i]
		}
	}
	return nil
}

// witness notes what a frame shows of the turn that runs.
func (m *Routing) witness(f *protocol.Frame, calls []toolBlock) {
	if !m.cfg.Recovers && !m.cfg.Branched { // a branch may be passivated
		return
	}
	r := &m.Recovery
	switch f.Type {
	case "result":
		r.Done, r.Shown = nil, nil
		if r.Last != "" { // what came before a result is stored
			r.Leaf, r.Last = r.Last, ""
		}
		return
	case "command_lifecycle":
		r.Knows = r.Knows || m.cfg.RemembersMessages
		return
	case "assistant", "user":
		m.noteTools(calls)
		m.noteShown(f)
		if m.cfg.Branched && f.Type == "assistant" {
			m.noteLeaf(f)
		}
	case "stream_event", protocol.TypeControlRequest:
	case "system":
		if f.Subtype != "init" {
			return
		}
	default:
		return
	}
	if t := m.oldestWritten(); t != nil {
		t.Seen = true
	}
}

// noteShown notes a message that the agent stores under its uuid.
func (m *Routing) noteShown(f *protocol.Frame) {
	if f.Replay || f.ParentToolUseID() != "" {
		return // the user's, or of a subagent, which has a separate transcript
	}
	id := f.UUID()
	if id == "" {
		return
	}
	shown := append(m.Recovery.Shown, Short(id)) //nolint:gocritic // it is put back below
	if len(shown) > maxShown {
		shown = slices.Clone(shown[len(shown)-maxShown:])
	}
	m.Recovery.Shown = shown
}

// noteLeaf notes a message of the main agent's. Its uuid is that of its line in the
// transcript (observed on Claude Code 2.1.329).
func (m *Routing) noteLeaf(f *protocol.Frame) {
	var said struct {
		UUID   string  `json:"uuid"`
		Parent *string `json:"parent_tool_use_id"`
	}
	if protocol.Unmarshal(f.Raw, &said) == nil && said.Parent == nil {
		m.Recovery.Last = Short(said.UUID)
	}
}

// toolBlock is a tool call in a message, or the result of one.
type toolBlock struct {
	Type      string   `json:"type"`
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Input     jsonText `json:"input"`
	ToolUseID string   `json:"tool_use_id"`
}

// toolBlocks are the blocks of a message, if some of them may be about tools.
func toolBlocks(f *protocol.Frame) []toolBlock {
	if !bytes.Contains(f.Raw, []byte(`"tool_use`)) && !bytes.Contains(f.Raw, []byte(`"tool_result"`)) {
		return nil
	}
	var said struct {
		Message struct {
			Content []toolBlock `json:"content"`
		} `json:"message"`
	}
	if protocol.Unmarshal(f.Raw, &said) != nil {
		return nil // a content that is a text, among others
	}
	return said.Message.Content
}

// noteTools notes the tool calls of a message, and their results.
func (m *Routing) noteTools(calls []toolBlock) {
	done := m.Recovery.Done
	for _, b := range calls {
		switch b.Type {
		case "tool_use":
			if len(done) < maxDone {
				done = append(done, ToolCall{ID: Short(b.ID), Name: Short(b.Name), Input: Short(string(b.Input))})
			}
		case "tool_result":
			for i := range done {
				done[i].Over = done[i].Over || done[i].ID == Short(b.ToolUseID)
			}
		}
	}
	m.Recovery.Done = done
}

// jsonText is JSON as it was written.
type jsonText string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *jsonText) UnmarshalJSON(b []byte) error {
	*t = jsonText(b)
	return nil
}

// lost handles the end of a process that another one follows.
//
// Its requests are void: their callbacks end, and they are not answered, so that a late
// answer can never be one to a request of the next process. Calls that were written end
// with the reason, unless they only read; [Verdict] decides about the messages.
// Unwritten messages wait for the next process.
func (m *Routing) lost(in Lost) {
	if in.Gen != m.Gen {
		return
	}
	parted := Parted{Gen: in.Gen, SessionID: m.Facts.SessionID, Leaf: m.Recovery.Leaf, Gates: m.gates}
	m.Up, m.Resting, m.Queued = false, false, 0
	m.Memory.gone(m.now)
	for _, r := range slices.Clone(m.requests) {
		m.dropRequest(r)
	}
	for i := 0; i < len(m.Calls); {
		c := &m.Calls[i]
		switch {
		case c.Own || c.Setup || c.Written && !reads(c.Subtype):
			gone := m.takeCall(i)
			m.do(CallOver{ID: gone.ID, Err: in.Reason})
		default:
			c.Written = false
			i++
		}
	}
	for i := range m.Turns {
		if t := &m.Turns[i]; t.State != TurnQueued {
			parted.Wanted.Messages = append(parted.Wanted.Messages, t.ID)
			if t.Alias != "" {
				parted.Wanted.Messages = append(parted.Wanted.Messages, t.Alias)
			}
			parted.Messages = append(parted.Messages, session.FailedMessage{UUID: t.ID, Accepted: t.Seen || t.State == TurnStarted})
		}
	}
	for _, c := range m.Recovery.Done {
		if !c.Over {
			parted.Tools = append(parted.Tools, session.RunningTool{ID: c.ID, Name: c.Name})
		}
	}
	parted.Wanted.Shown, parted.Wanted.Calls = slices.Clone(m.Recovery.Shown), slices.Clone(m.Recovery.Done)
	tasks, id := len(m.Facts.Tasks) > 0, m.Facts.SessionID
	m.Facts = Facts{TasksSeen: m.Facts.TasksSeen + 1, SessionID: id, Resumes: id, Workspace: m.Facts.Workspace, Dir: m.Facts.Dir, AuthExpired: m.Facts.AuthExpired, WritesLost: m.Facts.WritesLost}
	m.Retries = Retries{}
	m.Stall, m.Recovery.Reason, m.Recovery.Until = Stall{}, Fault{in.Reason}, time.Time{}
	m.Recovery.Last, m.Recovery.Passive = "", in.Passive
	m.Past, m.Strays, m.Flush, m.Proof = Past{}, Strays{}, nil, GateProof{Wanted: m.cfg.ProveGates}
	if tasks {
		m.do(TasksChanged{})
	}
	m.unstall()
	m.goOn()
	m.do(parted)
}

// verdict decides about each message that the process of a [Lost] had been given.
func (m *Routing) verdict(in Verdict) {
	if in.Gen != m.Gen || m.Up {
		return
	}
	done, lost := m.Recovery.Done, in.History.Known
	m.Recovery.Done, m.Recovery.Shown = nil, nil
	for i := 0; i < len(m.Turns); {
		t := &m.Turns[i]
		if t.State == TurnQueued {
			i++
			continue
		}
		// Messages go to the agent in order: if nothing was seen of one, and it is not stored,
		// those behind it are lost, too.
		lost = lost && !t.Seen && t.State < TurnStarted && !in.History.has(t)
		if err := m.resend(t, in, done, lost); err != nil {
			m.turnOver(t, err)
			continue
		}
		done = nil // they were of the oldest one
		i++
	}
}

// resend has a message that was written go to the next process, or returns why not. lost:
// neither the agent's output nor its transcript has anything of it.
func (m *Routing) resend(t *Turn, in Verdict, done []ToolCall, lost bool) error {
	if in.Policy == session.RecoverRerun {
		return m.rerun(t, in.Reason, Afresh)
	}
	if in.Policy != session.RecoverContinue || !t.Prompt {
		return in.Reason
	}
	line, err := t.Line, error(nil)
	if t.Out != nil {
		line = t.Out
	}
	if t.Resend != NotResent && !m.Recovery.Knows { // of the process before; it is not known whether the model got it
		done = slices.Concat(t.Done, done)
		done = done[:min(len(done), maxDone)]
	}
	if !m.cfg.Branched {
		done = in.History.lacking(done)
	}
	switch {
	case m.cfg.Branched: // the next process begins at the leaf, so its history lacks the message
		err = m.goOnward(t, done, true)
	case m.Recovery.Knows && len(done) == 0:
		t.Resend = Probe
	case m.Recovery.Knows:
		t.Resend = Probe
		t.Out, err = m.rules.Again(line, done)
	case t.Seen || t.State == TurnStarted || in.History.has(t):
		err = m.goOnward(t, done, !in.History.has(t))
	case lost:
		return m.rerun(t, in.Reason, Anew)
	default:
		return in.Reason
	}
	if err != nil {
		return &session.RecoveryError{Problem: err.Error(), Err: in.Reason}
	}
	t.Done, t.Recovered, t.Begun, t.Named = done, true, false, t.Starts != NotStarted
	m.enter(t, TurnQueued)
	return nil
}

// rerun has a message go to the next process as a new one.
func (m *Routing) rerun(t *Turn, reason error, how Resend) error {
	alias := aliasOf(t.ID, m.Gen)
	line, err := m.rules.Afresh(t.Line, alias)
	if err != nil {
		return &session.RecoveryError{Problem: err.Error(), Err: reason}
	}
	t.Resend, t.Alias, t.Out = how, alias, line
	t.Done, t.Recovered, t.Begun, t.Named = nil, true, false, t.Starts != NotStarted
	m.enter(t, TurnQueued)
	return nil
}

// goOnward prepares the message that makes the model continue a turn.
func (m *Routing) goOnward(t *Turn, done []ToolCall, quote bool) error {
	alias := aliasOf(t.ID, m.Gen)
	line, err := m.rules.Onward(t.Line, alias, done, quote)
	if err != nil {
		return err
	}
	t.Resend, t.Alias, t.Out = Onward, alias, line
	return nil
}

// aliasOf is a uuid for the message that makes process gen's successor continue a turn.
func aliasOf(id string, gen int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", id, gen))
	b := sum[:16]
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80 // version 8: of our own making
	h := hex.EncodeToString(b)
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// known handles the agent's report that it knows a message that was written again: it
// had been accepted. Messages of one turn continue together.
func (m *Routing) known(t *Turn) {
	m.Recovery.Until = time.Time{}
	for i := range m.Turns {
		if first := &m.Turns[i]; first == t {
			break
		} else if first.Resend == Onward {
			t.Resend, t.Alias, t.Out = Onward, first.Alias, first.Out
			m.enter(t, first.State)
			m.recovered(t, session.SentNothing, "the agent had accepted it, in the turn of a message before it")
			m.writeOut()
			return
		}
	}
	shared := t.Alias
	if err := m.goOnward(t, t.Done, false); err != nil {
		m.turnOver(t, &session.RecoveryError{Problem: err.Error(), Err: m.Recovery.Reason.Err})
	} else {
		m.enter(t, TurnQueued)
		m.together(t, shared)
	}
	m.writeOut()
}

// together has the messages that were in the turn of t continue with it again: another
// process was given the message alias for all of them, which the agent has answered once.
func (m *Routing) together(t *Turn, alias string) {
	for i := range m.Turns {
		if u := &m.Turns[i]; u != t && alias != "" && u.Alias == alias && u.Resend == Probe && u.State == TurnQueued {
			u.Resend, u.Alias, u.Out, u.Done = Onward, t.Alias, t.Out, nil
			m.recovered(u, session.SentNothing, "the agent had accepted it, in the turn of a message before it")
		}
	}
}

// probed takes note that the agent has begun with a message that was written again: it
// had been lost.
func (m *Routing) probed(t *Turn) {
	if !t.probing() {
		return
	}
	t.Begun, m.Recovery.Until = true, time.Time{}
	why := "the agent did not know it"
	if m.cfg.KeepsTurns {
		why = "the agent keeps the turns of its messages and runs none twice"
	}
	m.recovered(t, session.SentAgain, why)
	m.writeOut()
}

// resent takes note that a message was written to another process than its first.
func (m *Routing) resent(t *Turn) {
	switch t.Resend {
	case Probe:
		if limit := m.cfg.Limits.Control; limit > 0 {
			m.Recovery.Until = m.now.Add(limit)
		}
	case Onward:
		why := "the agent had accepted the message"
		switch {
		case m.cfg.Branched:
			why = "the branch was resumed at the end of the turn before it"
		case !m.Recovery.Knows:
			why = "the agent had begun with the message or stored it, and does not say whether it knows one"
		}
		m.recovered(t, session.SentContinuation, why)
	case Afresh:
		m.recovered(t, session.SentRerun, "the policy is rerun")
	case Anew:
		m.recovered(t, session.SentAgain, "nothing of it was seen, and the agent has not stored it")
	case NotResent:
	}
}

func (m *Routing) recovered(t *Turn, sent session.Sent, why string) {
	m.emit(&session.Recovered{SessionID: m.Facts.SessionID, Message: t.ID, Sent: sent, Why: why})
}

// probes reports whether the agent is yet to say whether it knows a message: nothing else
// of the user's goes out before.
func (m *Routing) probes() bool {
	return slices.ContainsFunc(m.Turns, func(t Turn) bool { return t.probing() })
}

// expireProbe ends the message of which the agent does not say whether it knows it. The
// agent has it, and may work on it: until it says that it is idle a close interrupts it.
func (m *Routing) expireProbe() {
	r := &m.Recovery
	if r.Until.IsZero() || m.now.Before(r.Until) {
		return
	}
	r.Until = time.Time{}
	at := slices.IndexFunc(m.Turns, func(t Turn) bool { return t.probing() })
	if at < 0 {
		return
	}
	alias := m.Turns[at].Alias
	for i := at; i < len(m.Turns); { // that of t, and those that share its message
		if t := &m.Turns[i]; i == at || alias != "" && t.Alias == alias && t.Resend == Probe && t.State == TurnQueued {
			const problem = "the agent did not say in time whether it knows the message"
			m.turnOver(t, &session.RecoveryError{Problem: problem, Err: r.Reason.Err})
			at = -1
		} else {
			i++
		}
	}
	m.Facts.AgentRunning = true
	m.writeOut()
}

// goesOn reports whether a turn has its message in the process already, because it
// shares it with an earlier one.
func (m *Routing) goesOn(t *Turn) bool {
	for i := range m.Turns {
		first := &m.Turns[i]
		if first == t {
			return false
		}
		if t.Alias != "" && first.Alias == t.Alias && first.State >= TurnWritten {
			m.enter(t, first.State)
			return true
		}
	}
	return false
}

// reads reports whether a call changes nothing, so that it can be made again.
func reads(subtype string) bool {
	switch subtype {
	case "mcp_status", "mcp_read_resource", "account_info", "file_suggestions", "read_file":
		return true
	}
	return strings.HasPrefix(subtype, "get_") || strings.HasPrefix(subtype, "list_")
}

// changes reports whether a call may change a setting of the options, such as the
// permission mode, the model or the directory. An unknown call may.
func changes(subtype string) bool {
	switch subtype {
	case "initialize", "interrupt", "mcp_message", "mcp_call", "background_tasks",
		"cancel_async_message", "stop_task", "export_conversation", "generate_session_title", "rename_session":
		return false
	}
	return !reads(subtype)
}
