package ledger

import (
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/protocol"
)

// strays are results that may end no turn of the user's. A result that names no
// message ends the oldest one that was written. If nothing of a turn has come since
// the last result, from an agent that begins each turn with system/init, it may
// also be of something that was before the message. It is then kept until the agent
// says which: a turn that begins now was not ended by it. An agent that does not
// say is a minimal one, which sends results and little else.
type strays struct {
	kept    []stray
	until   time.Time // then it ends the turn
	active  bool      // something of a turn has come since the last result
	minimal bool      // an earlier one was the turn's
}

type stray struct {
	frame protocol.Frame
	seq   uint64 // its place in the stream
}

// maxStrays is how many results are kept.
const maxStrays = 64

// strayWait is how long the begin of a turn may follow a result that was not its
// own. Claude Code 2.1.329 begins a turn within 50 ms (observed).
const strayWait = time.Second

// isStray reports whether a content frame is a result that may be of no turn.
func (l *Ledger) isStray(f *protocol.Frame) bool {
	s := &l.strays
	if f.Type != "result" || !l.cfg.RepeatsInit || s.active || s.minimal || l.closing || len(s.kept) >= maxStrays || l.turns.oldestWritten() == nil {
		return false
	}
	var m struct {
		UUID   string          `json:"user_message_uuid"`
		UUIDs  []string        `json:"user_message_uuids"`
		Origin json.RawMessage `json:"origin"`
	}
	return protocol.Unmarshal(f.Raw, &m) == nil && m.UUID == "" && len(m.UUIDs) == 0 && (len(m.Origin) == 0 || string(m.Origin) == "null")
}

// keepStray keeps a result that is about to be pushed.
func (l *Ledger) keepStray(e *Entry) {
	e.Tasks = liveTasks(l.facts.tasks)
	if len(l.strays.kept) == 0 {
		l.strays.until = l.cfg.Clock.Now().Add(strayWait)
	}
	l.strays.kept = append(l.strays.kept, stray{e.Frame, l.stream.pushed})
}

// judgeStrays decides, by the content frame that comes next, about the results that
// are kept. It reports whether a turn ended.
func (l *Ledger) judgeStrays(f *protocol.Frame) (edge bool) {
	s := &l.strays
	begins, of := l.turnFrame(f)
	switch {
	case len(s.kept) == 0:
	case begins:
		edge = l.begunAfterStrays()
	case of:
		edge = l.takeStrays()
	}
	if begins && f.Subtype == "init" {
		s.minimal = false
	}
	s.active = s.active || begins || of
	return edge
}

// begunAfterStrays decides as a turn begins. With one message open it is that
// message's, and the results were of something before it. With more, it may be the
// second one's: the first may have been interrupted before it began.
func (l *Ledger) begunAfterStrays() (edge bool) {
	if len(l.turns.open) > 1 {
		return l.takeStrays()
	}
	l.dropStrays()
	return false
}

// turnFrame reports whether a content frame begins a turn, or is of one that runs.
func (l *Ledger) turnFrame(f *protocol.Frame) (begins, of bool) {
	switch f.Type {
	case "assistant", "user", "stream_event":
		return false, true
	case "command_lifecycle":
		// Claude Code 2.1.329 answers a message to a spare that nobody has claimed
		// with a bare result, and then calls the message completed (observed).
		var m lifecycle
		t := l.turns.oldestWritten()
		of = t != nil && protocol.Unmarshal(f.Raw, &m) == nil && m.State == protocol.LifecycleCompleted && m.CommandUUID == t.UUID
		return len(l.signOf(f).begins) > 0, of
	case "system":
		var m struct {
			State string `json:"state"`
		}
		switch f.Subtype {
		case "init":
			return true, false
		case "session_state_changed":
			running := protocol.Unmarshal(f.Raw, &m) == nil && m.State == "running"
			return running, m.State == "idle" && len(l.strays.kept) > 0
		}
	}
	return false, false
}

// takeStrays ends turns with the results that are kept.
func (l *Ledger) takeStrays() (edge bool) {
	kept := l.strays.kept
	l.strays.kept, l.strays.minimal = nil, true
	for _, s := range kept {
		e := Entry{Frame: s.frame}
		edge = l.observe(&e) || edge
		for _, t := range e.Turns {
			t.startsAt, t.endsAt = min(t.startsAt, s.seq), s.seq+1
		}
	}
	return edge
}

// dropStrays leaves the results that are kept to those who read the whole stream.
func (l *Ledger) dropStrays() {
	if len(l.strays.kept) > 0 {
		l.strays.kept = nil
		l.stream.wake.fire()
	}
}

// straysOver reports whether nothing more will be said about the results that are
// kept.
func (l *Ledger) straysOver() bool {
	return len(l.strays.kept) > 0 && (l.eof || l.closing || !l.cfg.Clock.Now().Before(l.strays.until))
}

// undecided reports whether an entry may yet turn out to be of a turn.
func (l *Ledger) undecided(e *Entry) bool {
	return len(l.strays.kept) > 0 && e.seq >= l.strays.kept[0].seq
}
