package protocol

import (
	"encoding/json"
	"fmt"
)

// Content is the content of a message or of a tool result: a list of blocks.
// The wire also allows a bare string, which decodes to one *[TextBlock] and
// encodes as a string again; [StringContent] makes one.
type Content []ContentBlock

// StringContent returns content that is a bare string on the wire.
func StringContent(s string) Content { return Content{&TextBlock{Text: s, bare: true}} }

// ContentBlock is one block of content. The concrete types are the pointers
// to this package's …Block structs.
type ContentBlock interface {
	// BlockType is the "type" of the block.
	BlockType() string
	isBlock()
}

// UnmarshalJSON decodes a string, a list of blocks, or null.
func (c *Content) UnmarshalJSON(b []byte) error {
	*c = nil
	i := skipSpace(b, 0)
	switch {
	case i < len(b) && b[i] == '"':
		t := &TextBlock{bare: true}
		*c = Content{t}
		return json.Unmarshal(b, &t.Text)
	case i < len(b) && b[i] == 'n':
		return nil
	}
	out := Content{}
	elems := array(b, i)
	for {
		val, ok := elems.element()
		if !ok {
			break
		}
		block, err := decodeBlock(val.of(b))
		if err != nil {
			return fmt.Errorf("content block %d: %w", len(out), err)
		}
		out = append(out, block)
	}
	if elems.err {
		return fmt.Errorf("content is neither a string nor a list of blocks")
	}
	*c = out
	return nil
}

// MarshalJSON encodes a bare string or a list of blocks; nil is an empty list.
func (c Content) MarshalJSON() ([]byte, error) {
	if len(c) == 1 {
		if t, ok := c[0].(*TextBlock); ok && t.bare {
			return appendString(nil, t.Text), nil
		}
	}
	if c == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]ContentBlock(c))
}

// Text returns the text of all text blocks, joined without a separator.
func (c Content) Text() string {
	switch len(c) {
	case 0:
		return ""
	case 1:
		if t, ok := c[0].(*TextBlock); ok {
			return t.Text
		}
		return ""
	}
	var out []byte
	for _, b := range c {
		if t, ok := b.(*TextBlock); ok {
			out = append(out, t.Text...)
		}
	}
	return string(out)
}

// memberOf returns the value of a key of the object b, nil if there is none.
func memberOf(b []byte, key string) []byte {
	var found []byte
	c := object(b, 0)
	for {
		k, v, ok := c.member()
		if !ok {
			return found
		}
		if string(unescaped(k.of(b))) == key {
			found = v.of(b)
		}
	}
}

func decodeBlock(raw []byte) (ContentBlock, error) {
	typ := stringOf(memberOf(raw, "type"))
	block := newBlock(typ)
	if block == nil {
		return &UnknownBlock{Type: typ, Raw: append(json.RawMessage(nil), raw...)}, nil
	}
	if err := json.Unmarshal(raw, block); err != nil {
		return nil, fmt.Errorf("%s: %w", typ, err)
	}
	return block, nil
}

func newBlock(typ string) ContentBlock {
	switch typ {
	case "text":
		return new(TextBlock)
	case "thinking":
		return new(ThinkingBlock)
	case "tool_use":
		return new(ToolUseBlock)
	case "tool_result":
		return new(ToolResultBlock)
	}
	return nil
}

// TextBlock is text of the model or of the user.
type TextBlock struct {
	Text string `json:"text"`
	bare bool
}

// ThinkingBlock is the model's thinking.
type ThinkingBlock struct {
	Thinking  string `json:"thinking"`
	Signature string `json:"signature,omitempty"`
}

// ToolUseBlock is a tool call of the model.
type ToolUseBlock struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// ToolResultBlock is the result of a tool call, on a user line.
type ToolResultBlock struct {
	ToolUseID string  `json:"tool_use_id"`
	Content   Content `json:"content,omitempty"`
	IsError   bool    `json:"is_error,omitempty"`
}

// UnknownBlock is a block of a type that this package does not know.
type UnknownBlock struct {
	Type string
	Raw  json.RawMessage
}

// MarshalJSON returns the block as it came.
func (b *UnknownBlock) MarshalJSON() ([]byte, error) { return b.Raw, nil }

// BlockType implements [ContentBlock].
func (*TextBlock) BlockType() string       { return "text" }
func (*ThinkingBlock) BlockType() string   { return "thinking" }
func (*ToolUseBlock) BlockType() string    { return "tool_use" }
func (*ToolResultBlock) BlockType() string { return "tool_result" }
func (b *UnknownBlock) BlockType() string  { return b.Type }

func (*TextBlock) isBlock()       {}
func (*ThinkingBlock) isBlock()   {}
func (*ToolUseBlock) isBlock()    {}
func (*ToolResultBlock) isBlock() {}
func (*UnknownBlock) isBlock()    {}
