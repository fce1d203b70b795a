package transcript

import (
	"bytes"
	"time"

	"github.com/agent-troupe/troupe/base/jsonscan"
)

// Line is one line of a session file: a JSON object, or damage. [Line.Entry] gives it a
// Go type.
type Line struct {
	Offset int64  // of Raw in the file, in bytes
	Number int    // from 1
	Raw    []byte // without the line's end
	Damage Damage // "": the line is a JSON object
	BOM    bool   // a byte order mark precedes Raw; only on line 1

	head head
}

// head has the members that decide what a line is, as they are in Raw; nil: none.
type head struct {
	typ, subtype, uuid, parent, session, sessionOld, timestamp []byte
	sidechain, meta, summary, team, agent                      []byte
	message, attachment, logicalParent                         []byte
	leaf, leafOld, source, compact                             []byte
	origin, hidden, interrupted, denial, result, apiError      []byte
}

// Type returns the line's type, such as typeUser, or "".
func (l *Line) Type() string { return typeName(l.head.typ) }

// Subtype returns what a system line is about, such as compact_boundary; "" if the line
// does not say.
func (l *Line) Subtype() string { return text(l.head.subtype) }

// UUID returns the name of a line in the chain of messages; "" for other lines.
func (l *Line) UUID() string { return text(l.head.uuid) }

// ParentUUID returns the UUID of the line before it in the chain; "" if it is the first.
func (l *Line) ParentUUID() string { return text(l.head.parent) }

// SessionID returns the session that the line names; "" if it names none. A line can name
// another session than the file does.
func (l *Line) SessionID() string {
	if id := text(l.head.session); id != "" {
		return id
	}
	return text(l.head.sessionOld)
}

// AgentID returns the subagent that the line names; "" for the main conversation.
func (l *Line) AgentID() string { return text(l.head.agent) }

// Sidechain reports whether the line is outside the main conversation.
func (l *Line) Sidechain() bool { return isTrue(l.head.sidechain) }

// Meta reports whether the agent added the text of a user line.
func (l *Line) Meta() bool { return isTrue(l.head.meta) }

// Timestamp returns when the line was made, as it is written: RFC 3339 with
// milliseconds; "" if the line does not say.
func (l *Line) Timestamp() string { return text(l.head.timestamp) }

// Time returns Timestamp as a time; or the zero time.
func (l *Line) Time() time.Time { return parseTime(l.Timestamp()) }

// Clone returns a copy that stays valid when the decoder continues.
func (l *Line) Clone() *Line {
	c := &Line{Offset: l.Offset, Number: l.Number, Raw: bytes.Clone(l.Raw), Damage: l.Damage, BOM: l.BOM}
	if c.Damage == "" {
		c.parse()
	}
	return c
}

// parseTime reads RFC 3339; the zero time if s is not that.
func parseTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t
}

// parseLine returns the line that raw holds.
func parseLine(raw []byte) *Line {
	l := &Line{Raw: raw}
	if !l.parse() {
		l.Damage = DamageGarbage
	}
	return l
}

// parse fills the head from Raw and reports whether Raw is a valid JSON object.
func (l *Line) parse() bool {
	m := members{c: jsonscan.StrictObject(l.Raw)}
	return l.read(&m)
}

// parseTrusted is parse for a line that was valid when it was read before.
func (l *Line) parseTrusted() bool {
	m := membersOf(l.Raw)
	return l.read(&m)
}

func (l *Line) read(m *members) bool {
	h := &l.head
	for m.next() {
		switch string(m.key) {
		case "type":
			h.typ = m.value
		case "subtype":
			h.subtype = m.value
		case "uuid":
			h.uuid = m.value
		case "parentUuid":
			h.parent = m.value
		case "sessionId":
			h.session = m.value
		case "session_id":
			h.sessionOld = m.value
		case "timestamp":
			h.timestamp = m.value
		case "isSidechain":
			h.sidechain = m.value
		case "isMeta":
			h.meta = m.value
		case "isCompactSummary":
			h.summary = m.value
		case "teamName":
			h.team = m.value
		case "agentId":
			h.agent = m.value
		case "message":
			h.message = m.value
		case "attachment":
			h.attachment = m.value
		case "logicalParentUuid":
			h.logicalParent = m.value
		case "leafUuid":
			h.leaf = m.value
		case "leaf_uuid":
			h.leafOld = m.value
		case "sourceToolAssistantUUID":
			h.source = m.value
		case "compactMetadata":
			h.compact = m.value
		case "origin":
			h.origin = m.value
		case "isVisibleInTranscriptOnly":
			h.hidden = m.value
		case "interruptedByShutdown":
			h.interrupted = m.value
		case "toolDenialKind":
			h.denial = m.value
		case "toolUseResult":
			h.result = m.value
		case "isApiErrorMessage":
			h.apiError = m.value
		}
	}
	ok := m.c.Whole()
	if !ok {
		l.head = head{}
	}
	return ok
}

// typeName decodes a type, without an allocation for the most frequent ones.
func typeName(v []byte) string {
	switch string(v) {
	case `"user"`:
		return typeUser
	case `"assistant"`:
		return typeAssistant
	case `"attachment"`:
		return typeAttachment
	case `"system"`:
		return typeSystem
	case `"queue-operation"`:
		return typeQueueOperation
	}
	return text(v)
}
