package protocol

import "encoding/json"

// TextBlock is text of the model or of the user.
type TextBlock struct {
	Text string `json:"text"`
	// Citations is the API's list of citations, as it came.
	Citations    json.RawMessage `json:"citations,omitempty"`
	CacheControl json.RawMessage `json:"cache_control,omitempty"`

	bare bool // the content was a string, not a list
}

// ThinkingBlock is the model's thinking.
type ThinkingBlock struct {
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

// RedactedThinkingBlock is thinking that the API encrypted.
type RedactedThinkingBlock struct {
	Data string `json:"data"`
}

// ToolUseBlock is a tool call of the model. Claude Code names the subagent
// tool Agent here and Task in system/init (observed on 2.1.329).
type ToolUseBlock struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Input is the tool's own object.
	Input json.RawMessage `json:"input"`
	// Caller says which server tool made the call, if one did.
	Caller       json.RawMessage `json:"caller,omitempty"`
	CacheControl json.RawMessage `json:"cache_control,omitempty"`
}

// ToolResultBlock is the result of a tool call, on a user line.
type ToolResultBlock struct {
	ToolUseID    string          `json:"tool_use_id"`
	Content      Content         `json:"content,omitempty"`
	IsError      bool            `json:"is_error,omitempty"`
	CacheControl json.RawMessage `json:"cache_control,omitempty"`
}

// Source is where the bytes of an image or a document are.
type Source struct {
	// Type is base64, text, url, file or content.
	Type      string `json:"type"`
	MediaType string `json:"media_type,omitempty"`
	// Data is base64 for Type base64, plain text for Type text.
	Data   string `json:"data,omitempty"`
	URL    string `json:"url,omitempty"`
	FileID string `json:"file_id,omitempty"`
	// Content is the blocks of a document of Type content.
	Content json.RawMessage `json:"content,omitempty"`
}

// ImageBlock is an image.
type ImageBlock struct {
	Source       Source          `json:"source"`
	CacheControl json.RawMessage `json:"cache_control,omitempty"`
}

// DocumentBlock is a document, such as a PDF.
type DocumentBlock struct {
	Source       Source          `json:"source"`
	Title        string          `json:"title,omitempty"`
	Context      string          `json:"context,omitempty"`
	Citations    json.RawMessage `json:"citations,omitempty"`
	CacheControl json.RawMessage `json:"cache_control,omitempty"`
}

// SearchResultBlock is a search result that the model may cite.
type SearchResultBlock struct {
	Source       string          `json:"source"`
	Title        string          `json:"title"`
	Content      Content         `json:"content"`
	Citations    json.RawMessage `json:"citations,omitempty"`
	CacheControl json.RawMessage `json:"cache_control,omitempty"`
}

// ServerToolUseBlock is a call of a tool that the API itself runs.
type ServerToolUseBlock struct {
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Input        json.RawMessage `json:"input"`
	Caller       json.RawMessage `json:"caller,omitempty"`
	CacheControl json.RawMessage `json:"cache_control,omitempty"`
}

// ServerToolResultBlock is the result of such a call. Type tells which tool:
// web_search_tool_result, web_fetch_tool_result, code_execution_tool_result,
// bash_code_execution_tool_result, text_editor_code_execution_tool_result or
// tool_search_tool_result.
type ServerToolResultBlock struct {
	Type      string `json:"-"`
	ToolUseID string `json:"tool_use_id"`
	// Content has a shape of its own for each Type.
	Content      json.RawMessage `json:"content,omitempty"`
	Caller       json.RawMessage `json:"caller,omitempty"`
	CacheControl json.RawMessage `json:"cache_control,omitempty"`
}

// MCPToolUseBlock is a call of an MCP tool that the API itself makes.
type MCPToolUseBlock struct {
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	ServerName   string          `json:"server_name"`
	Input        json.RawMessage `json:"input"`
	CacheControl json.RawMessage `json:"cache_control,omitempty"`
}

// MCPToolResultBlock is the result of such a call.
type MCPToolResultBlock struct {
	ToolUseID    string          `json:"tool_use_id"`
	IsError      bool            `json:"is_error,omitempty"`
	Content      Content         `json:"content,omitempty"`
	CacheControl json.RawMessage `json:"cache_control,omitempty"`
}

// ContainerUploadBlock is a file put into the API's container.
type ContainerUploadBlock struct {
	FileID       string          `json:"file_id"`
	CacheControl json.RawMessage `json:"cache_control,omitempty"`
}

// UnknownBlock is a block that this package does not know, or a known one
// that does not decode.
type UnknownBlock struct {
	Type string
	Raw  json.RawMessage
	// Err says why a known type did not decode; nil for an unknown type.
	Err error
}

func (*TextBlock) isBlock()             {}
func (*ThinkingBlock) isBlock()         {}
func (*RedactedThinkingBlock) isBlock() {}
func (*ToolUseBlock) isBlock()          {}
func (*ToolResultBlock) isBlock()       {}
func (*ImageBlock) isBlock()            {}
func (*DocumentBlock) isBlock()         {}
func (*SearchResultBlock) isBlock()     {}
func (*ServerToolUseBlock) isBlock()    {}
func (*ServerToolResultBlock) isBlock() {}
func (*MCPToolUseBlock) isBlock()       {}
func (*MCPToolResultBlock) isBlock()    {}
func (*ContainerUploadBlock) isBlock()  {}
func (*UnknownBlock) isBlock()          {}

// BlockType implements [ContentBlock].
func (*TextBlock) BlockType() string { return "text" }

// BlockType implements [ContentBlock].
func (*ThinkingBlock) BlockType() string { return "thinking" }

// BlockType implements [ContentBlock].
func (*RedactedThinkingBlock) BlockType() string { return "redacted_thinking" }

// BlockType implements [ContentBlock].
func (*ToolUseBlock) BlockType() string { return "tool_use" }

// BlockType implements [ContentBlock].
func (*ToolResultBlock) BlockType() string { return "tool_result" }

// BlockType implements [ContentBlock].
func (*ImageBlock) BlockType() string { return "image" }

// BlockType implements [ContentBlock].
func (*DocumentBlock) BlockType() string { return "document" }

// BlockType implements [ContentBlock].
func (*SearchResultBlock) BlockType() string { return "search_result" }

// BlockType implements [ContentBlock].
func (*ServerToolUseBlock) BlockType() string { return "server_tool_use" }

// BlockType implements [ContentBlock].
func (b *ServerToolResultBlock) BlockType() string { return b.Type }

// BlockType implements [ContentBlock].
func (*MCPToolUseBlock) BlockType() string { return "mcp_tool_use" }

// BlockType implements [ContentBlock].
func (*MCPToolResultBlock) BlockType() string { return "mcp_tool_result" }

// BlockType implements [ContentBlock].
func (*ContainerUploadBlock) BlockType() string { return "container_upload" }

// BlockType implements [ContentBlock].
func (b *UnknownBlock) BlockType() string { return b.Type }

// MarshalJSON adds the block's "type".
func (b *TextBlock) MarshalJSON() ([]byte, error) {
	type plain TextBlock
	return marshalAs(b.BlockType(), (*plain)(b))
}

// MarshalJSON adds the block's "type".
func (b *ThinkingBlock) MarshalJSON() ([]byte, error) {
	type plain ThinkingBlock
	return marshalAs(b.BlockType(), (*plain)(b))
}

// MarshalJSON adds the block's "type".
func (b *RedactedThinkingBlock) MarshalJSON() ([]byte, error) {
	type plain RedactedThinkingBlock
	return marshalAs(b.BlockType(), (*plain)(b))
}

// MarshalJSON adds the block's "type"; a nil Input is an empty object.
func (b *ToolUseBlock) MarshalJSON() ([]byte, error) {
	type plain ToolUseBlock
	p := plain(*b)
	p.Input = orEmptyObject(p.Input)
	return marshalAs(b.BlockType(), &p)
}

// MarshalJSON adds the block's "type".
func (b *ToolResultBlock) MarshalJSON() ([]byte, error) {
	type plain ToolResultBlock
	return marshalAs(b.BlockType(), (*plain)(b))
}

// MarshalJSON adds the block's "type".
func (b *ImageBlock) MarshalJSON() ([]byte, error) {
	type plain ImageBlock
	return marshalAs(b.BlockType(), (*plain)(b))
}

// MarshalJSON adds the block's "type".
func (b *DocumentBlock) MarshalJSON() ([]byte, error) {
	type plain DocumentBlock
	return marshalAs(b.BlockType(), (*plain)(b))
}

// MarshalJSON adds the block's "type".
func (b *SearchResultBlock) MarshalJSON() ([]byte, error) {
	type plain SearchResultBlock
	return marshalAs(b.BlockType(), (*plain)(b))
}

// MarshalJSON adds the block's "type"; a nil Input is an empty object.
func (b *ServerToolUseBlock) MarshalJSON() ([]byte, error) {
	type plain ServerToolUseBlock
	p := plain(*b)
	p.Input = orEmptyObject(p.Input)
	return marshalAs(b.BlockType(), &p)
}

// MarshalJSON adds the block's "type".
func (b *ServerToolResultBlock) MarshalJSON() ([]byte, error) {
	type plain ServerToolResultBlock
	return marshalAs(b.BlockType(), (*plain)(b))
}

// MarshalJSON adds the block's "type"; a nil Input is an empty object.
func (b *MCPToolUseBlock) MarshalJSON() ([]byte, error) {
	type plain MCPToolUseBlock
	p := plain(*b)
	p.Input = orEmptyObject(p.Input)
	return marshalAs(b.BlockType(), &p)
}

// MarshalJSON adds the block's "type".
func (b *MCPToolResultBlock) MarshalJSON() ([]byte, error) {
	type plain MCPToolResultBlock
	return marshalAs(b.BlockType(), (*plain)(b))
}

// MarshalJSON adds the block's "type".
func (b *ContainerUploadBlock) MarshalJSON() ([]byte, error) {
	type plain ContainerUploadBlock
	return marshalAs(b.BlockType(), (*plain)(b))
}

// MarshalJSON returns the block as it came.
func (b *UnknownBlock) MarshalJSON() ([]byte, error) { return orEmptyObject(b.Raw), nil }

// UnmarshalJSON decodes the block and its content.
func (b *ToolResultBlock) UnmarshalJSON(raw []byte) error { return b.unmarshalAt(raw, 0) }

func (b *ToolResultBlock) unmarshalAt(raw []byte, depth int) error {
	type plain ToolResultBlock
	aux := struct {
		*plain
		Content json.RawMessage `json:"content"`
	}{plain: (*plain)(b)}
	if err := Unmarshal(raw, &aux); err != nil {
		return err
	}
	return b.Content.unmarshalAt(aux.Content, depth)
}

// UnmarshalJSON decodes the block and its content.
func (b *SearchResultBlock) UnmarshalJSON(raw []byte) error { return b.unmarshalAt(raw, 0) }

func (b *SearchResultBlock) unmarshalAt(raw []byte, depth int) error {
	type plain SearchResultBlock
	aux := struct {
		*plain
		Content json.RawMessage `json:"content"`
	}{plain: (*plain)(b)}
	if err := Unmarshal(raw, &aux); err != nil {
		return err
	}
	return b.Content.unmarshalAt(aux.Content, depth)
}

// UnmarshalJSON decodes the block and its content.
func (b *MCPToolResultBlock) UnmarshalJSON(raw []byte) error { return b.unmarshalAt(raw, 0) }

func (b *MCPToolResultBlock) unmarshalAt(raw []byte, depth int) error {
	type plain MCPToolResultBlock
	aux := struct {
		*plain
		Content json.RawMessage `json:"content"`
	}{plain: (*plain)(b)}
	if err := Unmarshal(raw, &aux); err != nil {
		return err
	}
	return b.Content.unmarshalAt(aux.Content, depth)
}

func orEmptyObject(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}
