package embedded

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/protocol"
)

// log is the conversation. The engine writes each line of the transcript to it before what
// the line is about happens, and the conversation is what the lines say: the running loop, a
// resumed one and a fork use the same fold, so their requests begin with the same bytes.
// It implements [agent.History].
type log struct {
	dir   string // of the files; "": no files
	keep  bool   // lines are stored
	codec model.Codec
	disk  disk

	messages [][]byte      // encoded: nothing else of the conversation is kept
	role     model.Role    // of the message that is not encoded yet; "" without one
	blocks   []model.Block // of that message
	id       string        // of that message, if it is an answer
	copied   []string      // uuids of lines that were loaded and that a fork writes again
	torn     string        // the file that ends within a line; "": none does
}

// Load implements [agent.History]: it reads the session that is resumed. The path has the id
// of the session, which may come from outside: one that leads elsewhere has no file.
func (l *log) Load(path string) ([]byte, error) {
	if l.dir == "" || filepath.ToSlash(filepath.Clean(path)) != path || !filepath.IsLocal(path) {
		return nil, fs.ErrNotExist
	}
	name := l.path(path)
	if err := l.disk.ask(diskRead, name); err != nil {
		return nil, err
	}
	file, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if len(file) > 0 && !bytes.HasSuffix(file, []byte{'\n'}) {
		l.torn = name
	}
	for line := range bytes.Lines(file) {
		if id := l.fold(line); id != "" {
			l.copied = append(l.copied, id)
		}
	}
	return file, nil
}

// Append implements [agent.History].
func (l *log) Append(path string, line []byte) error {
	if l.keep && l.dir != "" {
		name := l.path(path)
		if l.torn == name { // what a death has cut off must not swallow the next line
			l.torn, line = "", append([]byte{'\n'}, line...)
		}
		if err := l.disk.appendLine(name, line); err != nil {
			return err
		}
	}
	if len(l.copied) > 0 {
		if l.copied[0] == uuidOf(line) {
			l.copied = l.copied[1:]
			return nil
		}
		l.copied = nil // no fork, or its copy is done
	}
	l.fold(line)
	return nil
}

func (l *log) path(name string) string { return filepath.Join(l.dir, filepath.FromSlash(name)) }

func (d disk) appendLine(name string, line []byte) error {
	if err := d.ask(diskMake, name); err != nil {
		return fmt.Errorf("store a session: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("store a session: %w", err)
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("store a session: %w", err)
	}
	err = d.write(f, name, line)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("store a session: %w", err)
	}
	return nil
}

// record is what is read of a line.
type record struct {
	Type    string `json:"type"`
	UUID    string `json:"uuid"`
	Message struct {
		ID      string          `json:"id"`
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
}

func uuidOf(line []byte) string {
	var r record
	if protocol.Unmarshal(line, &r) != nil {
		return ""
	}
	return r.UUID
}

// fold adds what a line says to the conversation, and returns the line's uuid. A line that a
// death has cut off says nothing, nor does one that is about the session and not of it.
func (l *log) fold(line []byte) string {
	var r record
	if protocol.Unmarshal(line, &r) != nil || r.UUID == "" {
		return ""
	}
	switch {
	case r.Type == "user":
		l.add(model.User, "", blocksOf(r.Message.Content))
	case r.Type == "assistant" && r.Message.Model != synthetic:
		l.add(model.Assistant, r.Message.ID, blocksOf(r.Message.Content))
	}
	return r.UUID
}

// synthetic is the model of messages that the agent writes itself: the model does not read
// them.
const synthetic = "<synthetic>"

// add adds blocks to the message that is not encoded yet, or begins another.
func (l *log) add(role model.Role, id string, blocks []model.Block) {
	if l.role != role || l.id != id {
		l.encode()
		l.role, l.id = role, id
	}
	for _, b := range blocks {
		if b.Kind == model.ToolUse && slices.ContainsFunc(l.blocks, func(o model.Block) bool { return o.Kind == model.ToolUse && o.ID == b.ID }) {
			continue // the second of an id is dropped, as observed
		}
		l.blocks = append(l.blocks, b)
	}
}

// encode encodes the message that is not encoded yet. An answer that says nothing is left out.
func (l *log) encode() {
	if l.role == model.User || slices.ContainsFunc(l.blocks, says) {
		l.messages = append(l.messages, l.codec.Message(&model.Message{Role: l.role, Blocks: l.blocks}))
	}
	l.role, l.id, l.blocks = "", "", nil
}

// says reports whether a block of an answer is worth giving back without another.
func says(b model.Block) bool {
	switch b.Kind {
	case model.Text:
		return b.Text != ""
	case model.Thinking:
		return false
	case model.ToolUse, model.Opaque, model.ToolResult, model.Image:
	}
	return true
}

// conversation is the conversation so far.
func (l *log) conversation() [][]byte {
	if l.role != "" {
		l.encode()
	}
	return l.messages
}

// own is where a block's frame has what the Messages API has no member for, if the block is
// of another API.
const own = "troupe"

type ownMembers struct {
	Origin string          `json:"origin"`
	Raw    json.RawMessage `json:"raw,omitempty"`
}

// blocksOf reads the content of a message: a text, or blocks in the form of the Messages API.
func blocksOf(content json.RawMessage) []model.Block {
	var whole string
	if protocol.Unmarshal(content, &whole) == nil {
		return []model.Block{text(whole)}
	}
	var list []json.RawMessage
	if protocol.Unmarshal(content, &list) != nil {
		return nil
	}
	blocks := make([]model.Block, 0, len(list))
	for _, raw := range list {
		blocks = append(blocks, blockOf(raw))
	}
	return blocks
}

func blockOf(raw json.RawMessage) model.Block {
	var in struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
		ToolUseID string          `json:"tool_use_id"`
		Content   json.RawMessage `json:"content"`
		IsError   bool            `json:"is_error"`
		Source    json.RawMessage `json:"source"`
		Own       *ownMembers     `json:"troupe"`
	}
	if protocol.Unmarshal(raw, &in) != nil {
		return model.Block{}
	}
	b := model.Block{Kind: model.BlockKind(in.Type), Text: in.Text, ID: in.ID, Name: in.Name, Input: in.Input, IsError: in.IsError, Origin: anthropicOrigin}
	if in.Own != nil {
		b.Origin, b.Raw = in.Own.Origin, in.Own.Raw
	}
	switch b.Kind {
	case model.Text, model.ToolUse:
	case model.Thinking:
		b.Text, b.Signature = in.Thinking, in.Signature
	case model.ToolResult:
		b.ID = in.ToolUseID
		if protocol.Unmarshal(in.Content, &b.Text) != nil {
			b.Content = in.Content
		}
	case model.Image:
		b.Content = in.Source
	case model.Opaque:
		fallthrough
	default:
		b.Kind, b.Raw = model.Opaque, raw
	}
	return b
}

// anthropicOrigin is the origin of blocks that are in the form of the Messages API.
const anthropicOrigin = "anthropic"

// frameOf is a block as assistant frames and the transcript have it.
func frameOf(b *model.Block) map[string]any {
	var o map[string]any
	switch b.Kind {
	case model.Thinking:
		o = map[string]any{"type": "thinking", "thinking": b.Text, "signature": b.Signature}
	case model.ToolUse:
		o = map[string]any{"type": "tool_use", "id": b.ID, "name": b.Name, "input": b.Input}
	case model.Opaque:
		if protocol.Unmarshal(b.Raw, &o) == nil && b.Origin == anthropicOrigin {
			return o
		}
		o = map[string]any{"type": "text", "text": ""}
	case model.Text, model.ToolResult, model.Image:
		o = map[string]any{"type": "text", "text": b.Text}
	}
	switch {
	case b.Origin == anthropicOrigin && b.Raw != nil:
		var whole map[string]any
		if protocol.Unmarshal(b.Raw, &whole) == nil {
			return whole // with its citations, and what is new
		}
	case b.Origin != anthropicOrigin && (b.Raw != nil || b.Kind == model.Thinking):
		o[own] = ownMembers{b.Origin, b.Raw}
	}
	return o
}
