package transcript

import (
	"encoding/hex"
	"hash/fnv"
	"io"
	"strings"

	"github.com/agent-troupe/troupe/base/jsonscan"
)

// Transcript is the index of one session file: which line follows which, and where it is.
// The content stays in the file and is read when it is needed, so the file must stay open
// while the transcript is used. A transcript is what the file was when it was read: lines
// that are appended later are not in it.
type Transcript struct {
	r      io.ReaderAt
	vendor Vendor
	nodes  []node
	byID   map[id]int32 // of the node with that UUID; the last line counts

	pointer    id   // of the last last-prompt line
	hasPointer bool // there is one, with a leaf
	active     id   // of the last active-leaf line of Qoder
	activeSet  int8 // 0: no such line; 1: active; -1: the conversation is empty

	compactions []compaction
	session     string // the first session id in the file
	lines       int
	damage      []DamageReport
	damaged     int
	blank       int
	lastEnded   bool // the last line has a newline
	size        int64
}

// id is a UUID, or a hash of a name that is not a UUID.
type id [16]byte

// node is a line in the chain of messages.
type node struct {
	id     id
	parent id
	off    int64
	size   int32
	place  int32  // of the line in the file; of lines with one UUID, the last
	up     int32  // index of the parent; none or missing
	source int32  // index of sourceToolAssistantUUID, or of a boundary's logical parent; none
	msg    uint64 // hash of message.id of an assistant line; 0: none
	tool   uint64 // hash of the first tool call's id, or of the first tool result's
	flags  flag
}

// Values of node.up that are not an index.
const (
	none    int32 = -1 // the line names no parent
	missing int32 = -2 // the parent is not in the file
)

type flag uint32

const (
	isUser flag = 1 << iota
	isAssistant
	isSystem
	isProgress
	isAttachment
	isSide    // isSidechain
	isTeam    // teamName
	isMeta    // isMeta
	isSummary // isCompactSummary
	isResult  // a user line with a tool result
	isCall    // an assistant line with a tool call
	isQueued  // an attachment that is a queued command
	isFork    // an attachment that is a fork's briefing
	isBoundary
	isCaveat // a user line that introduces a local command
	isRecord // a user line with a local command
	isOutput // a user line with a local command's output
	isBOM    // the line begins with a byte order mark
)

func (f flag) has(g flag) bool { return f&g != 0 }

// talk is a line that is part of the conversation itself.
func (f flag) talk() bool { return f.has(isUser | isAssistant) }

// compaction is a compact_boundary, which moves older lines behind its summary.
type compaction struct {
	anchor    id
	preserved []id
	segment   bool // preserved is head and tail only
}

// maxDamageReports is how many damaged lines a transcript describes; it counts all.
const maxDamageReports = 100

// DamageReport describes a line that is not a JSON object.
type DamageReport struct {
	Line   int    // from 1
	Offset int64  // in bytes
	Size   int    // in bytes; of a line that is too long, what was kept
	Kind   Damage // why the line cannot be read
}

// Index reads a session file of size bytes. It reads the file once, from start to end, and
// keeps about 100 bytes for each message. v decides how its views differ. The only errors
// are those of r.
func Index(r io.ReaderAt, size int64, v Vendor) (*Transcript, error) {
	t := &Transcript{r: r, vendor: v, byID: map[id]int32{}, size: size, lastEnded: true}
	d := NewDecoder(io.NewSectionReader(r, 0, size))
	for {
		l, err := d.Next()
		if err == io.EOF { //nolint:errorlint // the decoder's own
			break
		}
		if err != nil {
			return nil, err
		}
		t.add(l)
	}
	t.resolve()
	return t, nil
}

func (t *Transcript) add(l *Line) {
	t.lines = l.Number
	t.lastEnded = l.Offset+int64(len(l.Raw)) < t.size
	if l.Damage != "" {
		t.report(l, l.Damage)
		return
	}
	h := &l.head
	if t.session == "" {
		t.session = l.SessionID()
	}
	var f flag
	switch string(h.typ) {
	case `"user"`:
		f = isUser
	case `"assistant"`:
		f = isAssistant
	case `"attachment"`:
		f = isAttachment
	case `"system"`:
		f = isSystem
	case `"progress"`:
		f = isProgress
	case `"last-prompt"`:
		if isString(h.leaf) {
			t.pointer, t.hasPointer = makeID(h.leaf), true
		}
		return
	case `"active-leaf"`:
		t.addActiveLeaf(l)
		return
	default:
		return
	}
	if !isString(h.uuid) {
		return
	}
	t.addNode(l, f)
}

func (t *Transcript) report(l *Line, kind Damage) {
	if kind == DamageBlank {
		t.blank++
		return
	}
	t.damaged++
	if len(t.damage) < maxDamageReports {
		t.damage = append(t.damage, DamageReport{Line: l.Number, Offset: l.Offset, Size: len(l.Raw), Kind: kind})
	}
}

func (t *Transcript) addActiveLeaf(l *Line) {
	switch v := l.leaf(); {
	case t.vendor != Qoder || t.session != "" && l.SessionID() != t.session:
	case isString(v):
		t.active, t.activeSet = makeID(v), 1
	case string(v) == "null":
		t.activeSet = -1
	}
}

func (t *Transcript) addNode(l *Line, f flag) {
	h := &l.head
	n := node{id: makeID(h.uuid), off: l.Offset, size: int32(len(l.Raw)), place: int32(len(t.nodes)), up: none, source: none, flags: f}
	if isString(h.parent) && len(h.parent) > 2 {
		n.parent, n.up = makeID(h.parent), missing
	}
	if l.BOM {
		n.flags |= isBOM
	}
	if isTrue(h.sidechain) {
		n.flags |= isSide
	}
	if isTrue(h.meta) {
		n.flags |= isMeta
	}
	if isTrue(h.summary) {
		n.flags |= isSummary
	}
	if isString(h.team) && len(h.team) > 2 {
		n.flags |= isTeam
	}
	switch {
	case f.has(isUser | isAssistant):
		t.addContent(&n, h)
	case f.has(isAttachment):
		switch attachmentKind(h.attachment) {
		case "queued_command":
			n.flags |= isQueued
		case "fork_briefing":
			n.flags |= isFork
		}
	case f.has(isSystem) && string(h.subtype) == `"compact_boundary"`:
		n.flags |= isBoundary
		if isString(h.logicalParent) {
			if at, ok := t.byID[makeID(h.logicalParent)]; ok {
				n.source = at
			}
		}
		t.addCompaction(h.compact)
	}
	at, again := t.byID[n.id]
	if !again {
		t.byID[n.id] = int32(len(t.nodes))
		t.nodes = append(t.nodes, n)
		return
	}
	// One UUID twice: the last line counts. It keeps the index of the first, so that
	// what was found there stays right.
	n.place = int32(len(t.nodes))
	t.nodes[at] = n
	t.nodes = append(t.nodes, node{flags: 0, up: none, source: none, place: -1}) // a place without a line
}

// addContent reads what the views need of a message: its id and its tool calls.
func (t *Transcript) addContent(n *node, h *head) {
	if n.flags.has(isUser) && isString(h.source) {
		source := makeID(h.source)
		if at, ok := t.byID[source]; ok {
			n.source = at
		}
	}
	if !isObject(h.message) {
		return
	}
	m := walk{b: h.message}
	for m.next() {
		switch string(m.key) {
		case "id":
			if n.flags.has(isAssistant) {
				n.msg = hash(m.value())
			}
		case "content":
			switch h.message[m.i] {
			case '"':
				if n.flags.has(isUser) {
					n.flags |= localCommand(h.message[m.i:])
				}
			case '[':
				n.addBlocks(h.message[m.i:])
			}
			if n.flags.has(isUser) || n.msg != 0 {
				return // nothing is left to find
			}
		}
	}
}

// addBlocks reads the blocks of a message up to the first tool call or result. content
// begins with an array.
func (n *node) addBlocks(content []byte) {
	i := jsonscan.Space(content, 1)
	for i < len(content) && content[i] == '{' {
		if n.addBlock(content[i:]); n.tool != 0 {
			return
		}
		if i = jsonscan.Value(content, i); i < 0 {
			return
		}
		if i = jsonscan.Space(content, i); i >= len(content) || content[i] != ',' {
			return
		}
		i = jsonscan.Space(content, i+1)
	}
}

// addBlock reads the block that block begins with.
func (n *node) addBlock(block []byte) {
	var typ, callID, resultID []byte
	w := walk{b: block}
	for w.next() {
		switch string(w.key) {
		case "type":
			typ = w.value()
		case "text":
			if n.flags.has(isUser) {
				n.flags |= localCommand(block[w.i:])
			}
		case "id":
			callID = w.value()
		case "tool_use_id":
			resultID = w.value()
		}
		switch {
		case n.flags.has(isUser) && string(typ) == `"tool_result"` && resultID != nil:
			n.flags |= isResult
			n.tool = hash(resultID)
			return
		case n.flags.has(isAssistant) && string(typ) == `"tool_use"` && callID != nil:
			n.flags |= isCall
			n.tool = hash(callID)
			return
		}
	}
}

// localCommand says which part of a local command the text of a user line is.
func localCommand(content []byte) flag {
	switch {
	case hasPrefix(content, `"<local-command-caveat>`):
		return isCaveat
	case hasPrefix(content, `"<command-name>`), hasPrefix(content, `"<command-message>`):
		return isRecord
	case hasPrefix(content, `"<local-command-stdout>`), hasPrefix(content, `"<local-command-stderr>`):
		return isOutput
	}
	return 0
}

func hasPrefix(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}

func (t *Transcript) addCompaction(metadata []byte) {
	if !isObject(metadata) {
		return
	}
	if p := get(metadata, "preservedMessages"); isObject(p) {
		c := compaction{anchor: makeID(get(p, "anchorUuid"))}
		if list := get(p, "uuids"); isArray(list) {
			e := elementsOf(list)
			for e.next() {
				c.preserved = append(c.preserved, makeID(e.value))
			}
		}
		if len(c.preserved) > 0 {
			t.compactions = append(t.compactions, c)
		}
		return
	}
	if s := get(metadata, "preservedSegment"); isObject(s) {
		t.compactions = append(t.compactions, compaction{
			anchor:    makeID(get(s, "anchorUuid")),
			preserved: []id{makeID(get(s, "headUuid")), makeID(get(s, "tailUuid"))},
			segment:   true,
		})
	}
}

// resolve finds the parents, as far as they are in the file.
func (t *Transcript) resolve() {
	for i := range t.nodes {
		n := &t.nodes[i]
		if n.up != missing {
			continue
		}
		if at, ok := t.byID[n.parent]; ok {
			n.up = at
		}
	}
}

// SessionID returns the session that the first line with a session id names, or "".
func (t *Transcript) SessionID() string { return t.session }

// Lines returns how many lines the file has, damaged ones included.
func (t *Transcript) Lines() int { return t.lines }

// Damaged returns how many lines are not JSON objects, and describes the first 100 of
// them. Blank lines do not count: agents leave them after a torn line.
func (t *Transcript) Damaged() (count int, reports []DamageReport) {
	return t.damaged, append([]DamageReport(nil), t.damage...)
}

// EndsWithNewline reports whether the file is empty or its last line is ended. If not, an
// append must begin with a newline, or it is glued to the last line.
func (t *Transcript) EndsWithNewline() bool { return t.lastEnded }

// makeID returns the id that a JSON string holds.
func makeID(v []byte) id {
	var out id
	if len(v) == 38 && v[9] == '-' && v[14] == '-' && v[19] == '-' && v[24] == '-' {
		var digits [32]byte
		copy(digits[0:8], v[1:9])
		copy(digits[8:12], v[10:14])
		copy(digits[12:16], v[15:19])
		copy(digits[16:20], v[20:24])
		copy(digits[20:32], v[25:37])
		if _, err := hex.Decode(out[:], digits[:]); err == nil && !hasUpper(digits[:]) {
			return out
		}
	}
	h := fnv.New128a()
	h.Write([]byte(text(v)))
	h.Sum(out[:0])
	return out
}

// hasUpper reports whether the digits have capitals: ids are compared as they are written.
func hasUpper(digits []byte) bool {
	for _, c := range digits {
		if c >= 'A' && c <= 'F' {
			return true
		}
	}
	return false
}

// idOf returns the id of a UUID.
func idOf(uuid string) id { return makeID([]byte(`"` + strings.ReplaceAll(uuid, `"`, `\"`) + `"`)) }

// hash returns a number for a JSON string; 0 for nothing.
func hash(v []byte) uint64 {
	if !isString(v) {
		return 0
	}
	h := fnv.New64a()
	h.Write(v)
	return h.Sum64()
}
