package view

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/protocol"
)

// Drafts assembles the messages of the model while they are written. It takes stream
// events and whole messages alike, so that the outcome is the same with
// Options.IncludePartialMessages and without: Claude Code sends each block of a message
// as a separate assistant line, before the block's end (observed on 2.1.329).
type Drafts struct {
	all    []*Draft
	open   map[string]*Draft   // by ParentToolUseID: what its stream events add to
	byID   map[draftKey]*Draft // the last of an id
	byLine map[string]*Draft   // by the uuid of an assistant line
}

type draftKey struct{ parent, id string }

// Draft is a message of the model as far as it is written.
type Draft struct {
	// ID is the model API's; lines of one message share it.
	ID string
	// ParentToolUseID is the tool call whose subagent writes; "" for the main
	// agent.
	ParentToolUseID string
	Model           string       // full id; "": not known yet
	Blocks          []DraftBlock // in the order of the message
	// StopReason and Usage are known at the end, and only from stream events.
	StopReason string
	Usage      *protocol.Usage // nil until then
	// Done: the stream has ended. It stays false without stream events.
	Done bool
	// Aborted: the message was interrupted, its last block may end anywhere.
	Aborted bool
	// Replayed: it is history that a resumed session shows.
	Replayed bool
	// Retracted says that the agent has withdrawn the message and continues in another one.
	Retracted bool

	joined bool // adjacent text blocks come as one
}

// DraftBlock is a block of a message as far as it is written.
type DraftBlock struct {
	// Content is the block. The Input of a tool call is empty until it is whole.
	Content protocol.ContentBlock
	// PartialInput is the JSON of a tool call's Input so far; "" once it is
	// whole.
	PartialInput string
	// Complete: nothing is added any more.
	Complete bool

	index     int // of its stream events
	confirmed bool
	// text grows into the field that it is for, whose text shares its bytes: to
	// copy all for each delta would take the square of the length.
	text *strings.Builder
}

// Content is the content of the message so far.
func (d *Draft) Content() protocol.Content {
	out := make(protocol.Content, len(d.Blocks))
	for i := range d.Blocks {
		out[i] = d.Blocks[i].Content
	}
	return out
}

// All returns the messages in the order in which they began.
func (d *Drafts) All() []*Draft { return d.all }

// Forget drops all messages. A message that is still being written continues as a new one.
func (d *Drafts) Forget() { *d = Drafts{} }

// Add takes a message and returns the draft that it changed, or nil.
func (d *Drafts) Add(m protocol.Message) *Draft {
	switch m := known(m).(type) {
	case *protocol.PartialAssistantMessage:
		return d.event(m)
	case *protocol.AssistantMessage:
		d.retract(m.Supersedes)
		return d.message(m)
	case *protocol.UserMessage:
		return d.retract(m.RetractedMessageUUIDs)
	case *protocol.ModelRefusalFallbackMessage:
		return d.retract(m.RetractedMessageUUIDs)
	}
	return nil
}

// retract marks the messages that have one of the lines uuids.
func (d *Drafts) retract(uuids []string) (changed *Draft) {
	for _, uuid := range uuids {
		if draft := d.byLine[uuid]; draft != nil {
			draft.Retracted = true
			changed = draft
		}
	}
	return changed
}

func (d *Drafts) begin(draft *Draft) *Draft {
	if d.open == nil {
		d.open, d.byID, d.byLine = map[string]*Draft{}, map[draftKey]*Draft{}, map[string]*Draft{}
	}
	d.all = append(d.all, draft)
	if draft.ID != "" {
		d.byID[draftKey{draft.ParentToolUseID, draft.ID}] = draft
	}
	return draft
}

// event takes a stream event.
func (d *Drafts) event(m *protocol.PartialAssistantMessage) *Draft {
	if start, ok := m.Event.(*protocol.MessageStart); ok {
		draft := d.begin(&Draft{
			ID: start.Message.ID, ParentToolUseID: m.ParentToolUseID, Model: start.Message.Model, Usage: start.Message.Usage, joined: m.TextRunsJoined,
		})
		d.open[m.ParentToolUseID] = draft
		return draft
	}
	draft := d.open[m.ParentToolUseID]
	if draft == nil || m.APIMessageID != "" && m.APIMessageID != draft.ID {
		return nil // its beginning was dropped, or forgotten
	}
	switch e := m.Event.(type) {
	case *protocol.ContentBlockStart:
		draft.Blocks = append(draft.Blocks, DraftBlock{index: e.Index, Content: cloned(e.Block)})
	case *protocol.ContentBlockDelta:
		if b := draft.at(e.Index); b != nil && !b.confirmed {
			b.add(e.Delta)
		}
	case *protocol.ContentBlockStop:
		if b := draft.at(e.Index); b != nil {
			b.finish()
		}
	case *protocol.MessageDelta:
		draft.StopReason = e.Delta.StopReason
		draft.Usage = merged(draft.Usage, e.Usage)
	case *protocol.MessageStop:
		draft.stop(m.AbandonedBlocks)
		delete(d.open, m.ParentToolUseID)
	default:
		return nil
	}
	return draft
}

func (d *Draft) at(index int) *DraftBlock {
	for i := len(d.Blocks) - 1; i >= 0; i-- {
		if d.Blocks[i].index == index {
			return &d.Blocks[i]
		}
	}
	return nil
}

// stop ends the message, without the blocks that never come.
func (d *Draft) stop(abandoned *protocol.AbandonedBlocks) {
	d.Done = true
	if abandoned != nil && abandoned.APIMessageID == d.ID {
		d.Aborted = true
		d.Blocks = slices.DeleteFunc(d.Blocks, func(b DraftBlock) bool { return b.index >= abandoned.FromBlockIndex && !b.confirmed })
	}
	for i := range d.Blocks {
		d.Blocks[i].finish()
	}
}

// message takes an assistant line: blocks as they are at last.
func (d *Drafts) message(m *protocol.AssistantMessage) *Draft {
	if d.byLine[m.UUID] != nil {
		return nil // told again
	}
	draft := d.byID[draftKey{m.ParentToolUseID, m.Message.ID}]
	if draft == nil {
		draft = d.begin(&Draft{ID: m.Message.ID, ParentToolUseID: m.ParentToolUseID, Model: m.Message.Model, Replayed: m.Historical})
	}
	if m.Message.StopReason != "" {
		draft.StopReason = m.Message.StopReason
	}
	if draft.Usage == nil {
		draft.Usage = m.Message.Usage
	}
	draft.Aborted = draft.Aborted || m.Aborted
	if m.UUID != "" {
		d.byLine[m.UUID] = draft
	}
	for _, b := range m.Message.Content {
		draft.confirm(b)
	}
	return draft
}

// confirm puts a block in the place of the one that was streamed, or behind.
func (d *Draft) confirm(block protocol.ContentBlock) {
	whole := DraftBlock{Content: block, Complete: true, confirmed: true, index: -1}
	i := d.streamed(block)
	if i < 0 {
		d.Blocks = append(d.Blocks, whole)
		return
	}
	whole.index = d.Blocks[i].index
	from := i
	for d.joined && block.BlockType() == "text" && from > 0 && d.Blocks[from-1].awaits("text") {
		from--
	}
	d.Blocks = slices.Replace(d.Blocks, from, i+1, whole)
}

// streamed finds the block of which a whole one comes: the same, else the one
// being written, else the last of its type. A response that was given up can
// have blocks of which none comes.
func (d *Draft) streamed(block protocol.ContentBlock) int {
	found := -1
	for i := range d.Blocks {
		b := &d.Blocks[i]
		switch {
		case !b.awaits(block.BlockType()):
		case !b.Complete:
			return i
		case same(b.Content, block):
			return i
		default:
			found = i
		}
	}
	return found
}

// awaits reports whether the block is of a type, and still to be confirmed.
func (b *DraftBlock) awaits(typ string) bool {
	return !b.confirmed && b.Content.BlockType() == typ
}

// same reports whether two blocks of one type are one: by the id of a call, else
// by what they say.
func same(a, b protocol.ContentBlock) bool {
	if a, ok := a.(*protocol.ToolUseBlock); ok {
		b, ok := b.(*protocol.ToolUseBlock)
		return ok && a.ID == b.ID
	}
	return reflect.DeepEqual(a, b)
}

// add takes a delta.
func (b *DraftBlock) add(delta protocol.Delta) {
	switch delta := delta.(type) {
	case *protocol.DeltaText:
		if t, ok := b.Content.(*protocol.TextBlock); ok {
			b.grow(&t.Text, delta.Text)
		}
	case *protocol.DeltaThinking:
		if t, ok := b.Content.(*protocol.ThinkingBlock); ok {
			b.grow(&t.Thinking, delta.Thinking)
		}
	case *protocol.DeltaSignature:
		if t, ok := b.Content.(*protocol.ThinkingBlock); ok {
			t.Signature = delta.Signature
		}
	case *protocol.DeltaCitations:
		if t, ok := b.Content.(*protocol.TextBlock); ok {
			t.Citations = appended(t.Citations, delta.Citation)
		}
	case *protocol.DeltaInputJSON:
		b.grow(&b.PartialInput, delta.PartialJSON)
	}
}

// grow adds to the one text of the block that deltas add to.
func (b *DraftBlock) grow(to *string, more string) {
	if b.text == nil {
		b.text = &strings.Builder{}
		b.text.WriteString(*to)
	}
	b.text.WriteString(more)
	*to = b.text.String()
}

// finish ends the block: a tool call's input is whole now.
func (b *DraftBlock) finish() {
	b.Complete = true
	input := json.RawMessage(b.PartialInput)
	if len(input) == 0 || b.confirmed || !json.Valid(input) {
		return // an input that breaks off stays in PartialInput
	}
	switch t := b.Content.(type) {
	case *protocol.ToolUseBlock:
		t.Input = input
	case *protocol.ServerToolUseBlock:
		t.Input = input
	case *protocol.MCPToolUseBlock:
		t.Input = input
	default:
		return
	}
	b.text, b.PartialInput = nil, ""
}

// cloned copies the blocks that deltas add to.
func cloned(block protocol.ContentBlock) protocol.ContentBlock {
	switch b := block.(type) {
	case *protocol.TextBlock:
		c := *b
		return &c
	case *protocol.ThinkingBlock:
		c := *b
		return &c
	case *protocol.ToolUseBlock:
		c := *b
		return &c
	case *protocol.ServerToolUseBlock:
		c := *b
		return &c
	case *protocol.MCPToolUseBlock:
		c := *b
		return &c
	}
	return block
}

// appended appends an element to a JSON list.
func appended(list, element json.RawMessage) json.RawMessage {
	var all []json.RawMessage
	if len(list) > 0 && protocol.Unmarshal(list, &all) != nil {
		return list
	}
	out, err := json.Marshal(append(all, element))
	if err != nil {
		return list
	}
	return out
}

// merged is the usage at the end of a message: what the end does not say was
// said at the beginning.
func merged(begin, end *protocol.Usage) *protocol.Usage {
	if begin == nil || end == nil {
		if end == nil {
			return begin
		}
		return end
	}
	u := *begin
	u.OutputTokens = end.OutputTokens
	u.InputTokens = max(u.InputTokens, end.InputTokens)
	u.CacheReadInputTokens = max(u.CacheReadInputTokens, end.CacheReadInputTokens)
	u.CacheCreationInputTokens = max(u.CacheCreationInputTokens, end.CacheCreationInputTokens)
	if end.ServerToolUse != nil {
		u.ServerToolUse = end.ServerToolUse
	}
	if end.OutputTokensDetails != nil {
		u.OutputTokensDetails = end.OutputTokensDetails
	}
	return &u
}
