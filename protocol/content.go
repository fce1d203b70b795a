package protocol

import (
	"errors"
	"slices"

	"github.com/agent-troupe/troupe/base/jsonscan"
	"github.com/agent-troupe/troupe/base/wire"
)

// Content is the content of a message or of a tool result: a list of blocks.
// The wire also allows a bare string, which decodes to one *[TextBlock] and
// encodes as a string again; [StringContent] makes one.
type Content []ContentBlock

// StringContent returns content that is a bare string on the wire.
func StringContent(s string) Content { return Content{&TextBlock{Text: s, bare: true}} }

// TextContent returns content of one text block.
func TextContent(s string) Content { return Content{&TextBlock{Text: s}} }

// ContentBlock is one block of content. The concrete types are the pointers
// to this package's …Block structs.
type ContentBlock interface {
	// BlockType is the "type" of the block.
	BlockType() string
	isBlock()
}

// UnmarshalJSON decodes a string, a list of blocks, or null. A block that is
// unknown or does not decode becomes an *[UnknownBlock].
func (c *Content) UnmarshalJSON(b []byte) error { return c.unmarshalAt(b, 0) }

// maxNesting is how deep content may lie in content: a tool result holds
// blocks, one of them a search result, which holds text. Each level is read
// once more, so depth must have a bound.
const maxNesting = 3

var errNesting = errors.New("content is nested too deep")

func (c *Content) unmarshalAt(b []byte, depth int) error {
	*c = nil
	i := jsonscan.Space(b, 0)
	switch {
	case i >= len(b) || b[i] == 'n':
		return nil
	case b[i] == '"':
		t := &TextBlock{bare: true}
		*c = Content{t}
		return Unmarshal(b, &t.Text)
	}
	out := Content{}
	elems := jsonscan.Array(b, i)
	for val := range elems.Elements() {
		out = append(out, decodeBlock(val.Of(b), depth))
	}
	if elems.Err {
		return errors.New("content is neither a string nor a list of blocks")
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
	return Marshal([]ContentBlock(c))
}

// Text returns the text of all text blocks, joined without a separator.
func (c Content) Text() string {
	var out []byte
	for _, b := range c {
		if t, ok := b.(*TextBlock); ok {
			if len(c) == 1 {
				return t.Text
			}
			out = append(out, t.Text...)
		}
	}
	return string(out)
}

// nester is a block that holds content.
type nester interface {
	unmarshalAt(b []byte, depth int) error
}

func decodeBlock(raw []byte, depth int) ContentBlock {
	typ := jsonscan.Text(jsonscan.Get(raw, "type"))
	block := blocks.New(typ)
	if block == nil {
		return &UnknownBlock{Type: typ, Raw: slices.Clone(raw)}
	}
	var err error
	if n, ok := block.(nester); !ok {
		err = Unmarshal(raw, block)
	} else if depth < maxNesting {
		err = n.unmarshalAt(raw, depth+1)
	} else {
		err = errNesting
	}
	if err != nil {
		return &UnknownBlock{Type: typ, Raw: slices.Clone(raw), Err: err}
	}
	return block
}

var blocks = wire.TypesBy[ContentBlock](ContentBlock.BlockType, //nolint:gochecknoglobals // only read
	new(TextBlock), new(ThinkingBlock), new(RedactedThinkingBlock), new(ToolUseBlock), new(ToolResultBlock),
	new(ImageBlock), new(DocumentBlock), new(SearchResultBlock), new(ServerToolUseBlock), new(MCPToolUseBlock),
	new(MCPToolResultBlock), new(ContainerUploadBlock), &ServerToolResultBlock{Type: "web_search_tool_result"},
	&ServerToolResultBlock{Type: "web_fetch_tool_result"},
	&ServerToolResultBlock{Type: "code_execution_tool_result"},
	&ServerToolResultBlock{Type: "bash_code_execution_tool_result"},
	&ServerToolResultBlock{Type: "text_editor_code_execution_tool_result"},
	&ServerToolResultBlock{Type: "tool_search_tool_result"},
)
