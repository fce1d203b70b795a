package machine

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/agent-troupe/troupe/protocol"
)

// sign is what a frame says about the beginning and the end of turns.
type sign struct {
	begins []string // uuids of the user messages that a turn takes up
	opens  bool     // a turn begins (system/init), started by the host or the agent
	ends   bool     // it is a result
}

// beginning returns the turns that begin with a frame. open are the turns that have
// not ended, in order; says: the agent says when it begins with a user message, else
// the oldest one that was written begins when no other turn runs; own: a turn runs
// that the agent started.
func beginning(open []Turn, s sign, says, own bool) []*Turn {
	var begun []*Turn
	for i := range open {
		if slices.Contains(s.begins, open[i].current()) {
			begun = append(begun, &open[i])
		}
	}
	if len(begun) > 0 || says || own || s.ends {
		return begun
	}
	for i := range open {
		switch t := &open[i]; {
		case t.Starts != NotStarted:
			return nil // it runs
		case t.State >= TurnWritten:
			return []*Turn{t}
		}
	}
	return nil
}

// place notes which turns begin with a content frame, which is about to be pushed,
// and which background task the frame is of.
func (m *Routing) place(e *Delivery) {
	if len(m.Turns) == 0 && len(m.Facts.Tasks) == 0 && e.Frame.Type != "system" && e.Frame.Type != "result" {
		return
	}
	s := signOf(&e.Frame)
	for _, t := range beginning(m.Turns, s, m.Facts.SaysStarted, m.Facts.OwnTurn) {
		t.Named = len(s.begins) > 0
		m.move(t, min(t.Starts, m.Flow.Pushed))
	}
	switch {
	case s.ends:
		m.Facts.OwnTurn, m.Begun = false, true
	case s.opens && m.cfg.RepeatsInit:
		m.Facts.OwnTurn, m.Begun = !slices.ContainsFunc(m.Turns, func(t Turn) bool { return t.Starts != NotStarted }), true
		m.follow()
	}
	if task := m.task(taskOf(&e.Frame, len(m.Facts.Tasks) > 0)); task != nil {
		e.Task = task.Since + 1
	}
}

// displace takes back the beginning of turns that a result did not end and that the
// agent has not named: the result was of another turn.
func (m *Routing) displace() {
	for i := range m.Turns {
		if t := &m.Turns[i]; !t.Named {
			m.move(t, NotStarted)
		}
	}
}

func signOf(f *protocol.Frame) sign {
	switch {
	case f.Type == "result":
		return sign{ends: true}
	case f.Type == "system" && f.Subtype == "init":
		var init struct {
			UUIDs []string `json:"user_message_uuids"`
		}
		_ = protocol.Unmarshal(f.Raw, &init) // it then names none
		return sign{begins: init.UUIDs, opens: true}
	case f.Type == "command_lifecycle":
		var l lifecycle
		if protocol.Unmarshal(f.Raw, &l) == nil && l.State == protocol.LifecycleStarted {
			return sign{begins: []string{l.CommandUUID}}
		}
	}
	return sign{}
}

// taskOf is the id of the background task that a frame is of; "" when it is of none.
// Messages of a subagent name it as agent_id (observed on Claude Code 2.1.329).
func taskOf(f *protocol.Frame, tasks bool) string {
	switch {
	case !tasks:
	case f.Type == "system" && bytes.Contains(f.Raw, []byte(`"task_id"`)) && f.Subtype != "background_tasks_changed",
		(f.Type == "assistant" || f.Type == "user") && bytes.Contains(f.Raw, []byte(`"agent_id"`)):
		var of struct {
			AgentID string `json:"agent_id"`
			TaskID  string `json:"task_id"`
		}
		if protocol.Unmarshal(f.Raw, &of) != nil {
			return ""
		}
		if f.Type == "system" {
			return of.TaskID
		}
		return of.AgentID
	}
	return ""
}

// Identity says which request of the agent a frame is: a hash of its id, as the
// agent wrote it, and of what it asks. An id alone does not: agents have used one
// twice. It depends on the frame alone.
type Identity [16]byte

// IdentityOf returns the identity of a control request.
func IdentityOf(f *protocol.Frame) (who Identity) {
	body := []byte(f.Body())
	if body == nil {
		body = f.Raw // a head, or no request
	}
	h := sha256.New()
	var size [4]byte
	for _, part := range [...]string{string(f.ID), f.Subtype} {
		binary.LittleEndian.PutUint32(size[:], uint32(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	h.Write(body)
	var sum [sha256.Size]byte
	copy(who[:], h.Sum(sum[:0]))
	return who
}
