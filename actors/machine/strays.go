package machine

import (
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/protocol"
)

// Strays are results that may end no turn of the user's. A result that names no
// message ends the oldest one that was written. If nothing of a turn has come since
// the last result, from an agent that begins each turn with system/init, it may also
// be of something that was before the message. It is then kept until the agent says
// which: a turn that begins now was not ended by it. An agent that does not say is a
// minimal one, which sends results and little else.
type Strays struct {
	Kept    []Stray
	Until   time.Time // then it ends the turn
	Active  bool      // something of a turn has come since the last result
	Minimal bool      // an earlier one was the turn's
}

// Stray is one of them.
type Stray struct {
	Raw []byte
	Seq uint64 // its place in the stream

	frame protocol.Frame
}

// maxStrays is how many results are kept.
const maxStrays = 64

// strayWait is how long the begin of a turn may follow a result that was not its
// own. Claude Code 2.1.329 begins a turn within 50 ms (observed).
const strayWait = time.Second

// isStray reports whether a content frame is a result that may be of no turn.
func (m *Routing) isStray(f *protocol.Frame) bool {
	s := &m.Strays
	if f.Type != "result" || !m.cfg.RepeatsInit || s.Active || s.Minimal || m.Closing || len(s.Kept) >= maxStrays || m.oldestWritten() == nil {
		return false
	}
	var r struct {
		UUID   string          `json:"user_message_uuid"`
		UUIDs  []string        `json:"user_message_uuids"`
		Origin json.RawMessage `json:"origin"`
	}
	return protocol.Unmarshal(f.Raw, &r) == nil && r.UUID == "" && len(r.UUIDs) == 0 && (len(r.Origin) == 0 || string(r.Origin) == "null")
}

// keepStray keeps a result that is about to be pushed.
func (m *Routing) keepStray(e *Delivery) {
	e.Tasks = m.LiveTasks()
	if len(m.Strays.Kept) == 0 {
		m.Strays.Until = m.now.Add(strayWait)
		m.do(Unsure{From: m.Flow.Pushed, On: true})
	}
	m.Strays.Kept = append(m.Strays.Kept, Stray{Raw: e.Frame.Raw, Seq: m.Flow.Pushed, frame: e.Frame})
}

// judgeStrays decides, by the content frame that comes next, about the results that
// are kept.
func (m *Routing) judgeStrays(f *protocol.Frame) {
	s := &m.Strays
	begins, of := m.turnFrame(f)
	switch {
	case len(s.Kept) == 0:
	case begins:
		m.begunAfterStrays()
	case of:
		m.takeStrays()
	}
	if begins && f.Subtype == "init" {
		s.Minimal = false
	}
	s.Active = s.Active || begins || of
}

// begunAfterStrays decides as a turn begins. With one message open it is that
// message's, and the results were of something before it. With more, it may be the
// second one's: the first may have been interrupted before it began.
func (m *Routing) begunAfterStrays() {
	if len(m.Turns) > 1 {
		m.takeStrays()
	} else if len(m.Strays.Kept) > 0 {
		m.Strays.Kept = nil // left to those who read the whole stream
		m.deliver()
		m.do(Unsure{})
	}
}

// turnFrame reports whether a content frame begins a turn, or is of one that runs.
func (m *Routing) turnFrame(f *protocol.Frame) (begins, of bool) {
	switch f.Type {
	case "assistant", "user", "stream_event":
		return false, true
	case "command_lifecycle":
		// Claude Code 2.1.329 answers a message to a spare that was not claimed with a
		// bare result, and then calls the message completed (observed).
		var l lifecycle
		t := m.oldestWritten()
		of = t != nil && protocol.Unmarshal(f.Raw, &l) == nil && l.State == protocol.LifecycleCompleted && l.CommandUUID == t.current()
		return len(signOf(f).begins) > 0, of
	case "system":
		var changed struct {
			State string `json:"state"`
		}
		switch f.Subtype {
		case "init":
			return true, false
		case "session_state_changed":
			running := protocol.Unmarshal(f.Raw, &changed) == nil && changed.State == "running"
			return running, changed.State == "idle" && len(m.Strays.Kept) > 0
		}
	}
	return false, false
}

// takeStrays ends turns with the results that are kept.
func (m *Routing) takeStrays() {
	kept := m.Strays.Kept
	m.Strays.Kept, m.Strays.Minimal = nil, true
	for i := range kept {
		e := Delivery{Frame: kept[i].frame}
		m.observe(&e)
		m.deliver() // what came before
		for _, o := range e.Ends {
			o.Starts, o.Ends = min(o.Starts, kept[i].Seq), kept[i].Seq+1
			m.do(TurnOver{o})
		}
	}
	m.do(Unsure{})
}

// takeStraysIfOver does so if nothing more will be said about them.
func (m *Routing) takeStraysIfOver() {
	if len(m.Strays.Kept) > 0 && (m.EOF || m.Closing || !m.now.Before(m.Strays.Until)) {
		m.takeStrays()
	}
}
