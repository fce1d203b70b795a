package ledger

import (
	"bytes"
	"math"
	"slices"

	"github.com/agent-troupe/troupe/protocol"
)

// A turn owns the entries of the stream from its startsAt up to its endsAt,
// without those of background tasks that an earlier turn has started. What
// belongs to no turn is read by nobody but the reader of the whole stream.

// notStarted is the startsAt of a turn that has not begun.
const notStarted = math.MaxUint64

// sign is what a frame says about the beginning and the end of turns.
type sign struct {
	begins []string // uuids of the user messages that a turn takes up
	opens  bool     // a turn begins (system/init), whoever started it
	ends   bool     // it is a result
}

// beginning returns the turns that begin with a frame. open are the turns that
// have not ended, in order; says: the agent says when it begins with a user
// message, else the oldest one that was written begins when no other turn runs;
// own: a turn runs that the agent started.
func beginning(open []*Turn, s sign, says, own bool) []*Turn {
	var begun []*Turn
	for _, t := range open {
		if slices.Contains(s.begins, t.UUID) {
			begun = append(begun, t)
		}
	}
	if len(begun) > 0 || says || own || s.ends {
		return begun
	}
	for _, t := range open {
		switch {
		case t.startsAt != notStarted:
			return nil // it runs
		case t.state >= TurnWritten:
			return []*Turn{t}
		}
	}
	return nil
}

// place notes which turns begin with a content frame, which is about to be
// pushed as e, and which background task the frame is of.
func (l *Ledger) place(e *Entry) {
	if len(l.turns.open) == 0 && len(l.facts.tasks) == 0 && e.Frame.Type != "system" && e.Frame.Type != "result" {
		return
	}
	s := l.signOf(&e.Frame)
	for _, t := range beginning(l.turns.open, s, l.facts.saysStarted, l.facts.ownTurn) {
		t.startsAt, t.named = min(t.startsAt, l.stream.pushed), len(s.begins) > 0
	}
	switch {
	case s.ends:
		l.facts.ownTurn, l.turns.begun = false, true
	case s.opens && l.cfg.RepeatsInit:
		l.facts.ownTurn, l.turns.begun = !slices.ContainsFunc(l.turns.open, func(t *Turn) bool { return t.startsAt != notStarted }), true
	}
	if task, ok := l.facts.tasks[taskOf(&e.Frame, len(l.facts.tasks) > 0)]; ok {
		e.task = task.since + 1
	}
}

// displace takes back the beginning of turns that a result did not end and that
// the agent has not named: the result was of another turn.
func (l *Ledger) displace() {
	for _, t := range l.turns.open {
		if !t.named {
			t.startsAt = notStarted
		}
	}
}

func (l *Ledger) signOf(f *protocol.Frame) sign {
	switch {
	case f.Type == "result":
		return sign{ends: true}
	case f.Type == "system" && f.Subtype == "init":
		var m struct {
			UUIDs []string `json:"user_message_uuids"`
		}
		_ = protocol.Unmarshal(f.Raw, &m) // it then names none
		return sign{begins: m.UUIDs, opens: true}
	case f.Type == "command_lifecycle":
		var m lifecycle
		if protocol.Unmarshal(f.Raw, &m) == nil && m.State == protocol.LifecycleStarted {
			return sign{begins: []string{m.CommandUUID}}
		}
	}
	return sign{}
}

// taskOf is the id of the background task that a frame is of; "" when it is of
// none. Messages of a subagent name it as agent_id (observed on Claude Code
// 2.1.329).
func taskOf(f *protocol.Frame, tasks bool) string {
	var m struct {
		AgentID string `json:"agent_id"`
		TaskID  string `json:"task_id"`
	}
	switch {
	case !tasks:
	case f.Type == "system" && bytes.Contains(f.Raw, []byte(`"task_id"`)) && f.Subtype != "background_tasks_changed",
		(f.Type == "assistant" || f.Type == "user") && bytes.Contains(f.Raw, []byte(`"agent_id"`)):
		if protocol.Unmarshal(f.Raw, &m) != nil {
			return ""
		}
		if f.Type == "system" {
			return m.TaskID
		}
		return m.AgentID
	}
	return ""
}

// owns reports whether an entry is of the turn.
func (t *Turn) owns(e *Entry) bool {
	return e.seq >= t.startsAt && !t.overBefore(e.seq) && (e.task == 0 || e.task > t.startsAt)
}

// overBefore reports whether no entry from seq on is of the turn. A turn that
// never began leaves the stream alone.
func (t *Turn) overBefore(seq uint64) bool {
	return t != nil && t.state == TurnEnded && (t.startsAt == notStarted || seq >= t.endsAt)
}
