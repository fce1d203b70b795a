package embedded

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/protocol"
)

// log is the conversation. The engine writes each line of the transcript to it before what
// the line is about happens, and the conversation is what the lines say: the running loop, a
// resumed one and a fork use the same fold, so their requests begin with the same bytes.
// It implements [agent.Syncer].
type log struct {
	dir  string // of the files; "": no files
	keep bool   // lines are stored
	file file   // of the session
	from resumption

	codec    model.Codec
	messages [][]byte      // encoded: nothing else of the conversation is kept
	user     []model.Block // of the message behind them, which more may join before the model answers
	asked    []byte        // that message, encoded; nil if it has grown since
	id       string        // of the answer behind it
	answer   []model.Block // that may not be whole yet
	dropped  bool          // a call of it was dropped, since its id was there before
	copied   []string      // uuids of lines that were loaded and that a fork writes again
	todos    todos
	plan     bool                             // the conversation says that plan mode is active
	planFile string                           // and that this is the file with the plan
	cwd      string                           // of the shell, as the model knows it; "": where it began
	shell    string                           // where the shell was while the model was asked; "": where it began
	takes    func(kind model.BlockKind) bool  // what the model reads; nil: anything
	knows    func(path string, content known) // gets what the model knows of files; may be nil

	surroundings, date string // as they were noted; "": they were not

	servers map[string][]json.RawMessage // tools of the agent's MCP servers, as they were noted last

	used, told []uint64 // hashes of the ids of calls, and of results

	points *points // checkpoints; nil if they are off
	loaded string  // path of the file that was loaded

	space // what compaction needs
}

// resumption is what the arguments say of the session that is resumed.
type resumption struct {
	latest bool   // it is the last one of the directory
	at     string // uuid of the last line; "": all lines
	drops  string // uuid of the prompt whose turn is all that may be cut off; "": anything
	goesOn bool   // the model is asked what it was asked before
}

// Load implements [agent.History]: it reads the session that is resumed. The path has the id
// of the session, which may come from outside: one that leads elsewhere has no file.
func (l *log) Load(path string) ([]byte, error) {
	content, err := load(l.dir, path, l.file.disk)
	if err != nil && l.from.latest {
		return nil, errors.New("No conversation found to continue") //nolint:staticcheck // as Claude Code says it
	}
	if err != nil {
		return nil, err
	}
	content, err = l.from.branch(content)
	if err != nil {
		return nil, err
	}
	if l.from.goesOn {
		content = uninterrupted(content)
	}
	l.loaded = path
	for line := range bytes.Lines(content) {
		if id := l.fold(line); id != "" {
			l.copied = append(l.copied, id)
		}
	}
	return content, nil
}

// uninterrupted are the lines without the one that says that a request was interrupted, if it is the last one.
func uninterrupted(content []byte) []byte {
	from, to := 0, 0
	var last record
	at := 0
	for line := range bytes.Lines(content) {
		var r record
		if protocol.Unmarshal(line, &r) == nil && r.UUID != "" && !r.Sidechain {
			from, to, last = at, at+len(line), r
		}
		at += len(line)
	}
	blocks := blocksOf(last.Message.Content)
	if last.Type != "user" || last.Prompt != "" || len(blocks) != 1 || blocks[0].Text != "[Request interrupted by user]" {
		return content
	}
	return slices.Concat(content[:from], content[to:])
}

// goesOn reports whether the model was asked something that it has not answered, and which is asked
// once more.
func (l *log) goesOn() bool { return l.from.goesOn && len(l.user) > 0 && len(l.answer) == 0 }

// load reads a file of the directory.
func load(dir, path string, d disk) ([]byte, error) {
	if dir == "" || filepath.ToSlash(filepath.Clean(path)) != path || !filepath.IsLocal(path) {
		return nil, fs.ErrNotExist
	}
	name := filepath.Join(dir, filepath.FromSlash(path))
	if err := d.ask(diskRead, name); err != nil {
		return nil, err
	}
	return os.ReadFile(name)
}

// branch are the lines that lead to the last one, or to the one that is resumed at. Others
// are of turns that an earlier life has cut off. A line whose parent is damaged follows the
// one before it.
func (r *resumption) branch(content []byte) ([]byte, error) {
	type node struct {
		line []byte
		head record
		kept bool
	}
	var nodes []node
	known := map[string]int{}
	leaf, last := -1, -1
	for line := range bytes.Lines(content) {
		n := node{line: line}
		if protocol.Unmarshal(line, &n.head) != nil || n.head.Sidechain {
			continue
		}
		n.kept = n.head.UUID == "" && n.head.Type != "last-prompt"
		if nodes = append(nodes, n); n.head.UUID == "" {
			continue
		}
		last = len(nodes) - 1
		if _, twice := known[n.head.UUID]; !twice {
			known[n.head.UUID] = last
		}
		if n.head.UUID == r.at {
			leaf = last
		}
	}
	if r.at != "" && leaf < 0 {
		return nil, fmt.Errorf("No message found with message.uuid of: %s", r.at) //nolint:staticcheck // as Claude Code says it
	}
	up := func(i int) int {
		parent := cmp.Or(nodes[i].head.Parent, nodes[i].head.Before) // all that is before a compaction counts, too
		if parent == "" {
			return -1
		}
		if at, ok := known[parent]; ok && at < i {
			return at
		}
		for i--; i >= 0 && nodes[i].head.UUID == ""; i-- {
		}
		return i
	}
	if r.drops != "" {
		for i := last; i > leaf && i >= 0; i = up(i) {
			if h := &nodes[i].head; h.Type == "user" && h.Prompt != "" && h.UUID != r.drops {
				return nil, fmt.Errorf("the session cannot be resumed at %s: behind it is more than the turn of %s", r.at, r.drops)
			}
		}
	}
	if leaf < 0 {
		leaf = last
	}
	for i := leaf; i >= 0; i = up(i) {
		nodes[i].kept = true
	}
	var b []byte
	for _, n := range nodes {
		if n.kept {
			b = append(b, n.line...)
		}
	}
	return b, nil
}

// latest is the id of the session of the folder that was written last; "": no session is there.
func latest(folder string) string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return ""
	}
	id, newest := "", int64(0)
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".jsonl")
		info, err := e.Info()
		if !ok || err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
			continue
		}
		if at := info.ModTime().UnixNano(); id == "" || at >= newest { // of the same time, the last name
			id, newest = name, at
		}
	}
	return id
}

// Append implements [agent.History]. A line that cannot be written is part of the
// conversation, too, and is written with a later one.
func (l *log) Append(path string, line []byte) error {
	var err error
	if l.stores() {
		err = l.file.append(filepath.Join(l.dir, filepath.FromSlash(path)), line)
	}
	if l.loaded != "" {
		l.points.forked(l.loaded, path)
		l.loaded = ""
	}
	if len(l.copied) > 0 {
		id := uuidOf(line)
		if id == "" {
			return err // it is about the session, and was read when that was loaded
		}
		if i := slices.Index(l.copied, id); i >= 0 { // the engine leaves out what it cannot read
			l.copied = l.copied[i+1:]
			return err
		}
		l.copied = nil // no fork, or its copy is done
	}
	l.fold(line)
	return err
}

// stores reports whether lines are stored.
func (l *log) stores() bool { return l.keep && l.dir != "" }

// Sync implements [agent.Syncer].
func (l *log) Sync() error { return l.file.sync() }

// Rest implements [agent.Syncer].
func (l *log) Rest() { l.file.close(false) }

// record is what is read of a line.
type record struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	UUID      string `json:"uuid"`
	Parent    string `json:"parentUuid"`
	Before    string `json:"logicalParentUuid"`
	Sidechain bool   `json:"isSidechain"`
	Prompt    string `json:"promptSource"`
	IsSummary bool   `json:"isCompactSummary"`
	Message   struct {
		ID      string          `json:"id"`
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"`
		Usage   lineUsage       `json:"usage"`
	} `json:"message"`
	Attachment json.RawMessage `json:"attachment"`
	Compact    *boundary       `json:"compactMetadata"`
	Result     json.RawMessage `json:"toolUseResult"`
}

func uuidOf(line []byte) string {
	var r struct {
		UUID string `json:"uuid"`
	}
	if protocol.Unmarshal(line, &r) != nil {
		return ""
	}
	return r.UUID
}

// fold adds what a line says to the conversation, and returns the line's uuid. A line that a
// death has cut off says nothing, nor does one that is about the session and not of it.
func (l *log) fold(line []byte) string {
	var r record
	if protocol.Unmarshal(line, &r) != nil {
		return ""
	}
	if r.UUID == "" {
		l.points.fold(r.Type, line)
		return ""
	}
	l.edge = l.edge.upTo(&r)
	switch {
	case r.Subtype == "compact_boundary" && r.Compact != nil:
		l.edge = r.Compact
		l.edge.uuid = r.UUID
	case r.IsSummary && l.edge != nil:
		l.compacted(blocksOf(r.Message.Content))
	case r.Type == "user":
		blocks := blocksOf(r.Message.Content)
		for i := range blocks {
			if blocks[i].Kind == model.ToolResult {
				l.todos.answered(&blocks[i], r.Result)
			}
		}
		if r.Prompt != "" || len(l.messages)+len(l.user) == 0 { // the first of a sub-agent is its task
			l.heard(blocks)
		}
		l.said(blocks)
		l.grew(blocks, r.UUID)
	case r.Type == "attachment":
		l.attached(r.Attachment, r.UUID)
	case r.Type == "assistant" && r.Message.Model != synthetic:
		blocks := blocksOf(r.Message.Content)
		for i := range blocks {
			if blocks[i].Kind == model.ToolUse {
				l.todos.called(&blocks[i])
			}
		}
		if l.id != r.Message.ID {
			l.answers = nil
		}
		l.answered(r.Message.ID, blocks)
		l.answeredWith(blocks, r.Message.Usage, r.UUID)
	}
	return r.UUID
}

// synthetic is the model of messages that the agent writes itself: the model does not read
// them.
const synthetic = "<synthetic>"

// said adds to what the model is asked next. An answer that said nothing is left out, so what
// follows it joins what was asked before.
func (l *log) said(blocks []model.Block) {
	if len(blocks) == 0 {
		return
	}
	l.endAnswer()
	for _, b := range blocks {
		if b.Kind == model.ToolResult && seenBefore(&l.told, b.ID) {
			if b = text("(no content)"); len(l.user) > 0 {
				continue
			}
		}
		l.user, l.asked = append(l.user, l.fit(b)), nil
	}
}

// seenBefore adds an id to those that are known, or reports that it is one of them.
func seenBefore(known *[]uint64, id string) bool {
	h := hash([]byte(id))
	if slices.Contains(*known, h) {
		return true
	}
	*known = append(*known, h)
	return false
}

// answered adds blocks of an answer.
func (l *log) answered(id string, blocks []model.Block) {
	if l.id != id {
		l.endAnswer()
		l.id = id
		if l.codec.Name() != anthropicOrigin { // servers count the calls of each answer from the same number
			l.used, l.told = nil, nil
		}
	}
	for _, b := range blocks {
		if b.Kind == model.ToolUse && seenBefore(&l.used, b.ID) {
			l.dropped = true // the second of an id, as observed
			continue
		}
		l.answer = append(l.answer, b)
	}
	if slices.ContainsFunc(l.answer, says) {
		l.ask()
	}
}

// ask ends what the model was asked: it has answered.
func (l *log) ask() {
	if len(l.user) > 0 {
		l.messages = append(l.messages, l.question())
		l.user, l.asked, l.asks = nil, nil, nil
	}
}

// question is what the model is asked next, encoded.
func (l *log) question() []byte {
	if l.asked == nil {
		l.asked = l.codec.Message(&model.Message{Role: model.User, Blocks: l.user})
	}
	return l.asked
}

// endAnswer encodes the answer, if it says something.
func (l *log) endAnswer() {
	if l.dropped && !slices.ContainsFunc(l.answer, says) {
		l.answer = append(l.answer, text("[Tool use interrupted]"))
		l.ask()
	}
	calls := func(b model.Block) int {
		if b.Kind == model.ToolUse {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(l.answer, func(a, b model.Block) int { return calls(a) - calls(b) }) // as observed
	if slices.ContainsFunc(l.answer, says) {
		l.messages = append(l.messages, l.codec.Message(&model.Message{Role: model.Assistant, Blocks: l.answer}))
	}
	l.id, l.answer, l.dropped = "", nil, false
}

// says reports whether a block of an answer is worth giving back without another.
func says(b model.Block) bool {
	switch b.Kind {
	case model.Text:
		return strings.TrimSpace(b.Text) != ""
	case model.Thinking:
		return false
	case model.ToolUse, model.Opaque, model.ToolResult, model.Image, model.Document:
	}
	return true
}

// conversation is the conversation so far.
func (l *log) conversation() [][]byte {
	l.endAnswer()
	if len(l.user) == 0 {
		return l.messages
	}
	return append(l.messages[:len(l.messages):len(l.messages)], l.question())
}

// result is the text of a call's result, among those of the next request.
func (l *log) result(id string) (text string, there bool) {
	for i := range l.user {
		if b := &l.user[i]; b.Kind == model.ToolResult && b.ID == id {
			return b.Text + string(b.Content), true
		}
	}
	return "", false
}
