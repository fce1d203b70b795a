package transcript

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/internal/durable"
)

// ForkOptions are the options of [Sessions.Fork]. The zero value copies the whole session.
type ForkOptions struct {
	// UpTo is the UUID of the last message of the copy; "": all.
	UpTo string
	// Title is the copy's title; "": the title or the first prompt of the session,
	// followed by " (fork)".
	Title string
}

// Errors of [Sessions.Fork].
var (
	ErrNothingToFork = errors.New("transcript: the session has no messages to fork")
	// ErrNoMessage: UpTo is not in the session; for Qoder, not in its active branch.
	ErrNoMessage = errors.New("transcript: there is no such message in the session")
	// ErrLineTooLong: a line is longer than [defaultMaxLine]. A copy without it would lack a
	// message, so no copy is made. UpTo copies the lines before it.
	ErrLineTooLong = errors.New("transcript: the line is too long to be copied")
)

// Fork copies a session under a new id, in the same folder, and returns the id. The lines
// get new UUIDs; their member forkedFrom names the original. For Claude all lines of the
// main conversation up to the last message are copied, other branches too; for Qoder only
// the active branch. Subagents, checkpoints and tool results in files are not copied. The
// copy appears when it is complete.
//
// With a Store the copy is one append of it.
func (s *Sessions) Fork(ctx context.Context, id string, o ForkOptions) (string, error) {
	if s.Store != nil {
		return s.forkStored(ctx, id, o)
	}
	all, err := s.editable(ctx, id)
	if err != nil {
		return "", err
	}
	if all[0].info.Size() == 0 {
		return "", &NotFoundError{ID: id, Dir: s.Dir}
	}
	f, err := s.open(all[0].name)
	if err != nil {
		return "", err
	}
	defer closeQuietly(f)
	k, err := s.newFork(f.Transcript, id, o)
	if err != nil {
		return "", err
	}
	if k.title == "" {
		if k.title, err = s.forkTitle(&all[0]); err != nil {
			return "", err
		}
	}
	file := filepath.Join(s.Root, filepath.FromSlash(path.Join(all[0].folder, k.to+".jsonl")))
	err = durable.WriteFile(s.files(), file, func(w io.Writer) error {
		b := bufio.NewWriterSize(w, 256<<10)
		if err := k.write(ctx, b); err != nil {
			return err
		}
		return b.Flush()
	})
	if err != nil {
		return "", fmt.Errorf("transcript: session %s cannot be forked: %w", id, err)
	}
	return k.to, nil
}

// forkTitle is the title of a copy that was not given one.
func (s *Sessions) forkTitle(f *found) (string, error) {
	info, err := s.describe(&scanner{}, f, false)
	if err != nil {
		return "", err
	}
	return info.forkTitle(), nil
}

func (info *Info) forkTitle() string {
	title := ""
	if info != nil {
		title = cmp.Or(info.CustomTitle, info.FirstPrompt)
	}
	return cmp.Or(title, "Forked session") + " (fork)"
}

// newFork begins a copy.
func (s *Sessions) newFork(t *Transcript, id string, o ForkOptions) (*fork, error) {
	k := &fork{s: s, t: t, from: id, to: s.newID(), now: stamp(s.now()), title: strings.TrimSpace(o.Title), whole: o.UpTo == ""}
	if err := k.choose(o.UpTo); err != nil {
		return nil, fmt.Errorf("session %s: %w", id, err)
	}
	return k, nil
}

// fork is a copy in the making.
type fork struct {
	s        *Sessions
	t        *Transcript
	from, to string // session ids
	now      string
	title    string
	chosen   []bool      // by node
	last     int32       // the last node that is copied
	whole    bool        // no UpTo
	names    []string    // the new UUIDs, by node
	plain    map[id]bool // boundaries' anchors that lose what they preserved
	line     rewriter
}

// choose finds the lines to copy.
func (k *fork) choose(upTo string) error {
	t := k.t
	k.chosen, k.last = make([]bool, len(t.nodes)), none
	var order []int32
	if t.vendor == Qoder {
		links := t.relink()
		order = slices.DeleteFunc(links.chain(links.activeLeaf()), func(at int32) bool { return t.nodes[at].flags.has(isSide) })
	} else {
		for i := range t.nodes {
			if n := &t.nodes[i]; n.flags != 0 && !n.flags.has(isSide) {
				order = append(order, int32(i))
			}
		}
		order = byPlace(t, order)
	}
	if len(order) == 0 {
		return ErrNothingToFork
	}
	if upTo != "" {
		at, ok := t.byID[idOf(upTo)]
		end := -1
		for i, n := range order {
			if ok && n == at {
				end = i
			}
		}
		if end < 0 {
			return fmt.Errorf("message %s: %w", upTo, ErrNoMessage)
		}
		order = t.withoutLastBoundary(order[:end+1])
		k.plain = map[id]bool{t.nodes[at].id: true}
	}
	k.names = make([]string, len(t.nodes))
	for _, at := range order {
		if t.nodes[at].flags.has(isProgress) {
			continue
		}
		k.chosen[at], k.last = true, at
		k.names[at] = k.s.newID()
	}
	if k.last < 0 {
		return ErrNothingToFork
	}
	return nil
}

// withoutLastBoundary removes a compaction's boundary after the last message: nothing
// follows it, so it would hide the conversation.
func (t *Transcript) withoutLastBoundary(order []int32) []int32 {
	for i := len(order) - 1; i >= 0 && !t.nodes[order[i]].flags.talk(); i-- {
		if t.nodes[order[i]].flags.has(isBoundary) {
			return order[:i]
		}
	}
	return order
}

// write writes the copy: the lines of the conversation in their order, then what the
// agent must remember.
func (k *fork) write(ctx context.Context, w *bufio.Writer) error {
	var keep kept
	if k.t.vendor == Qoder {
		chain := k.t.relink()
		if err := k.writeChain(ctx, w, chain.chain(k.last)); err != nil {
			return err
		}
	}
	d := NewDecoder(io.NewSectionReader(k.t.r, 0, k.t.size))
	for {
		l, err := d.Next()
		if err == io.EOF { //nolint:errorlint // the decoder's own
			break
		}
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if l.Damage == DamageTooLong && (k.whole || l.Offset < k.t.nodes[k.last].off) {
			return fmt.Errorf("line %d: %w", l.Number, ErrLineTooLong)
		}
		if l.Damage != "" {
			continue
		}
		if l.UUID() == "" {
			keep.add(l, k.from)
			continue
		}
		if k.t.vendor == Qoder {
			continue
		}
		at, ok := k.t.byID[makeID(l.head.uuid)]
		if ok && k.chosen[at] && k.t.nodes[at].off == l.Offset {
			if err := k.writeLine(w, l, at); err != nil {
				return err
			}
		}
	}
	_, err := w.Write(keep.lines(k))
	return err
}

func (k *fork) writeChain(ctx context.Context, w *bufio.Writer, chain []int32) error {
	for _, at := range chain {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !k.chosen[at] {
			continue
		}
		l, err := k.t.lineOf(at)
		if err != nil {
			return err
		}
		if err := k.writeLine(w, l, at); err != nil {
			return err
		}
	}
	return nil
}

// writeLine writes the copy of a line. Members keep their bytes and their order.
func (k *fork) writeLine(w *bufio.Writer, l *Line, at int32) error {
	r := &k.line
	r.b = r.b[:0]
	m := membersOf(l.Raw)
	requestSession := l.SessionID()
	for m.next() {
		key, v := string(m.key), m.value
		switch key {
		case "teamName", "agentName", "sessionKind", "slug", "sourceToolAssistantUUID", "turnAttributionKey",
			"summarizedTurnPromptUuids", "droppedPromptUuids", "sentAsUuid", "rowsAheadOfPutBack", "forkedFrom", "session_id":
			continue // they belong to the original session
		case "requestSessionId":
			requestSession = text(v)
			continue
		case "uuid":
			v = quote(k.names[at])
		case "sessionId":
			v = quote(k.to)
		case "parentUuid":
			v = k.parent(at)
		case "logicalParentUuid":
			v = k.renamed(v)
		case "timestamp":
			if at == k.last {
				v = quote(k.now)
			}
		case "compactMetadata":
			v = k.compactMetadata(v)
		case "attachment":
			v = k.attachment(v)
		}
		r.member(m.key, v)
	}
	if l.Type() == typeAssistant && requestSession != "" {
		r.member([]byte("requestSessionId"), quote(requestSession))
	}
	r.member([]byte("forkedFrom"), object("sessionId", k.from, "messageUuid", l.UUID()))
	_, err := w.Write(r.end())
	return err
}

// parent returns the new name of the parent; of a line of progress, that of its parent.
func (k *fork) parent(at int32) []byte {
	up := k.t.nodes[at].up
	for steps := 0; up >= 0 && steps < len(k.t.nodes); steps++ {
		if k.chosen[up] {
			return quote(k.names[up])
		}
		if !k.t.nodes[up].flags.has(isProgress) {
			break
		}
		up = k.t.nodes[up].up
	}
	return []byte("null")
}

// renamed returns the new name of the line that a string names; null if it is not copied.
func (k *fork) renamed(v []byte) []byte {
	if isString(v) {
		if at, ok := k.t.byID[makeID(v)]; ok && k.chosen[at] {
			return quote(k.names[at])
		}
	}
	return []byte("null")
}

// renamedOr is renamed for names that stay if the line is not copied.
func (k *fork) renamedOr(v []byte) []byte {
	if n := k.renamed(v); string(n) != "null" {
		return n
	}
	return v
}

// compactMetadata renames what a compaction preserved.
func (k *fork) compactMetadata(v []byte) []byte {
	if !isObject(v) {
		return v
	}
	return mapMembers(v, func(key string, v []byte) []byte {
		switch key {
		case "preservedMessages", "preservedSegment":
			if !isObject(v) {
				return v
			}
			if k.plain[makeID(get(v, "anchorUuid"))] {
				return nil // the copy ends with the summary
			}
			return mapMembers(v, func(_ string, v []byte) []byte {
				if isArray(v) {
					return mapElements(v, k.renamedOr)
				}
				return k.renamedOr(v)
			})
		}
		return v
	})
}

// attachment renames the message that a queued command became.
func (k *fork) attachment(v []byte) []byte {
	if !isObject(v) || !isString(get(v, "source_uuid")) {
		return v
	}
	return mapMembers(v, func(key string, v []byte) []byte {
		if key == "source_uuid" {
			return k.renamedOr(v)
		}
		return v
	})
}

// kept is the bookkeeping that a fork inherits.
type kept struct {
	replacements [][]byte
	atis, tools  []byte
	suppressed   []byte
	relocated    []byte
}

func (b *kept) add(l *Line, session string) {
	typ := l.Type()
	if typ == "history-suppression" {
		b.suppressed = bytes.Clone(l.Raw)
		return
	}
	if l.SessionID() != session {
		return
	}
	switch typ {
	case typeContentReplacement:
		if list := get(l.Raw, "replacements"); isArray(list) {
			e := elementsOf(list)
			for e.next() {
				if isObject(e.value) {
					b.replacements = append(b.replacements, bytes.Clone(e.value))
				}
			}
		}
	case typeATISLatch:
		if v := get(l.Raw, "atis"); isString(v) {
			b.atis = bytes.Clone(v)
		}
	case typeToolsUsed:
		if v := get(l.Raw, "tools"); isArray(v) {
			b.tools = bytes.Clone(v)
		}
	case typeRelocated:
		if v := get(l.Raw, "relocatedCwd"); isString(v) && len(v) > 2 {
			b.relocated = bytes.Clone(v)
		}
	}
}

// lines returns the bookkeeping of the copy.
func (b *kept) lines(k *fork) []byte {
	var out bytes.Buffer
	to := quote(k.to)
	if b.suppressed != nil {
		out.Write(mapMembers(b.suppressed, func(key string, v []byte) []byte {
			if key == "sessionId" {
				return to
			}
			return v
		}))
		out.WriteByte('\n')
	}
	if len(b.replacements) > 0 {
		fmt.Fprintf(&out, `{"type":"content-replacement","sessionId":%s,"replacements":[%s],"uuid":%s,"timestamp":%s}`+"\n",
			to, bytes.Join(b.replacements, []byte{','}), quote(k.s.newID()), quote(k.now))
	}
	if b.atis != nil {
		fmt.Fprintf(&out, `{"type":"atis-latch","sessionId":%s,"atis":%s}`+"\n", to, b.atis)
	}
	if b.tools != nil {
		fmt.Fprintf(&out, `{"type":"tools-used","sessionId":%s,"tools":%s}`+"\n", to, b.tools)
	}
	if b.relocated != nil {
		fmt.Fprintf(&out, `{"type":"relocated","sessionId":%s,"relocatedCwd":%s}`+"\n", to, b.relocated)
	}
	out.Write(object("type", typeCustomTitle, "sessionId", k.to, "customTitle", k.title, "uuid", k.s.newID(), "timestamp", k.now))
	out.WriteByte('\n')
	return out.Bytes()
}

// byPlace returns the nodes in the order of their lines in the file.
func byPlace(t *Transcript, nodes []int32) []int32 {
	out := make([]int32, 0, len(nodes))
	at := make([]int32, len(t.nodes))
	for i := range at {
		at[i] = none
	}
	for _, n := range nodes {
		at[t.nodes[n].place] = n
	}
	for _, n := range at {
		if n >= 0 {
			out = append(out, n)
		}
	}
	return out
}
