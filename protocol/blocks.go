package protocol

import "encoding/json"

// TextBlock is text of the model or of the user.
type TextBlock struct {
	Text string `json:"text"` // UTF-8, Markdown by convention; may be ""
	// Citations is the API's list of citations, unchanged.
	Citations    json.RawMessage `json:"citations,omitempty"`
	CacheControl json.RawMessage `json:"cache_control,omitempty"` // the API's cache breakpoint, an object; nil: none

	bare bool // the content was a string, not a list
}

// ThinkingBlock is the model's thinking.
type ThinkingBlock struct {
	Thinking  string `json:"thinking"`  // plain text; "" if thinking is not shown
	Signature string `json:"signature"` // the API's seal over the block: send it back unchanged
}

// RedactedThinkingBlock is thinking that the API encrypted.
type RedactedThinkingBlock struct {
	Data string `json:"data"` // opaque to everybody but the API: send it back unchanged
}

// ToolUseBlock is a tool call of the model. Claude Code names the subagent
// tool Agent here and Task in system/init (observed on 2.1.329).
type ToolUseBlock struct {
	ID   string `json:"id"`   // toolu_…, the key of the call in results, hooks and permission requests
	Name string `json:"name"` // the tool; mcp__SERVER__TOOL for an MCP tool, see [MCPToolName]
	// Input is the tool's own object.
	Input json.RawMessage `json:"input"`
	// Caller says which server tool made the call, if one did.
	Caller       json.RawMessage `json:"caller,omitempty"`
	CacheControl json.RawMessage `json:"cache_control,omitempty"` // the API's cache breakpoint, an object; nil: none
}

// ToolResultBlock is the result of a tool call, on a user line.
type ToolResultBlock struct {
	ToolUseID    string          `json:"tool_use_id"`             // the [ToolUseBlock] that this answers
	Content      Content         `json:"content,omitempty"`       // what the model reads: text or images; empty: no output
	IsError      bool            `json:"is_error,omitempty"`      // the tool failed, was denied or was interrupted
	CacheControl json.RawMessage `json:"cache_control,omitempty"` // the API's cache breakpoint, an object; nil: none
}

// Source is where the bytes of an image or a document are.
type Source struct {
	// Type is base64, text, url, file or content.
	Type      string `json:"type"`
	MediaType string `json:"media_type,omitempty"` // such as image/png or application/pdf; with Type base64 and text
	// Data is base64 for Type base64, plain text for Type text.
	Data   string `json:"data,omitempty"`
	URL    string `json:"url,omitempty"`     // with Type url
	FileID string `json:"file_id,omitempty"` // id in the API's file store, with Type file
	// Content is the blocks of a document of Type content.
	Content json.RawMessage `json:"content,omitempty"`
}

// ImageBlock is an image.
type ImageBlock struct {
	Source       Source          `json:"source"`                  // Type base64, url or file
	CacheControl json.RawMessage `json:"cache_control,omitempty"` // the API's cache breakpoint, an object; nil: none
}

// DocumentBlock is a document, such as a PDF.
type DocumentBlock struct {
	Source       Source          `json:"source"`                  // the document's bytes, text, blocks or place
	Title        string          `json:"title,omitempty"`         // shown to the model; "": none
	Context      string          `json:"context,omitempty"`       // a text about the document for the model; not cited
	Citations    json.RawMessage `json:"citations,omitempty"`     // the API's switch, an object such as {"enabled":true}
	CacheControl json.RawMessage `json:"cache_control,omitempty"` // the API's cache breakpoint, an object; nil: none
}

// SearchResultBlock is a search result that the model may cite.
type SearchResultBlock struct {
	Source       string          `json:"source"`                  // where the result comes from, usually a URL
	Title        string          `json:"title"`                   // shown to the model
	Content      Content         `json:"content"`                 // text blocks
	Citations    json.RawMessage `json:"citations,omitempty"`     // the API's switch, an object such as {"enabled":true}
	CacheControl json.RawMessage `json:"cache_control,omitempty"` // the API's cache breakpoint, an object; nil: none
}

// ServerToolUseBlock is a call of a tool that the API itself runs.
type ServerToolUseBlock struct {
	ID           string          `json:"id"`                      // srvtoolu_…, repeated in the [ServerToolResultBlock]
	Name         string          `json:"name"`                    // web_search, web_fetch, code_execution, …
	Input        json.RawMessage `json:"input"`                   // an object of the tool's own
	Caller       json.RawMessage `json:"caller,omitempty"`        // which server tool made the call; nil: the model
	CacheControl json.RawMessage `json:"cache_control,omitempty"` // the API's cache breakpoint, an object; nil: none
}

// ServerToolResultBlock is the result of such a call. Type names the tool:
// web_search_tool_result, web_fetch_tool_result, code_execution_tool_result,
// bash_code_execution_tool_result, text_editor_code_execution_tool_result or
// tool_search_tool_result.
type ServerToolResultBlock struct {
	Type      string `json:"-"`           // one of the types listed above; "" fails to encode
	ToolUseID string `json:"tool_use_id"` // the [ServerToolUseBlock] that this answers
	// The shape of Content depends on Type.
	Content      json.RawMessage `json:"content,omitempty"`
	Caller       json.RawMessage `json:"caller,omitempty"`        // as in the [ServerToolUseBlock]
	CacheControl json.RawMessage `json:"cache_control,omitempty"` // the API's cache breakpoint, an object; nil: none
}

// MCPToolUseBlock is a call of an MCP tool that the API itself makes.
type MCPToolUseBlock struct {
	ID           string          `json:"id"`                      // mcptoolu_…, repeated in the [MCPToolResultBlock]
	Name         string          `json:"name"`                    // the tool's name at its server
	ServerName   string          `json:"server_name"`             // the server's name in the API request
	Input        json.RawMessage `json:"input"`                   // the tool's arguments, an object
	CacheControl json.RawMessage `json:"cache_control,omitempty"` // the API's cache breakpoint, an object; nil: none
}

// MCPToolResultBlock is the result of such a call.
type MCPToolResultBlock struct {
	ToolUseID    string          `json:"tool_use_id"`             // the [MCPToolUseBlock] that this answers
	IsError      bool            `json:"is_error,omitempty"`      // the tool reported a failure
	Content      Content         `json:"content,omitempty"`       // what the model reads
	CacheControl json.RawMessage `json:"cache_control,omitempty"` // the API's cache breakpoint, an object; nil: none
}

// ContainerUploadBlock is a file put into the API's container.
type ContainerUploadBlock struct {
	FileID       string          `json:"file_id"`                 // id in the API's file store
	CacheControl json.RawMessage `json:"cache_control,omitempty"` // the API's cache breakpoint, an object; nil: none
}

// UnknownBlock is a block that this package does not know, or a known one
// that does not decode.
type UnknownBlock struct {
	Type string          // the block's type as the agent sent it; "" if absent
	Raw  json.RawMessage // the whole block, written back unchanged
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

// The plain types have the fields of the blocks and none of their methods.
type (
	plainText             TextBlock
	plainThinking         ThinkingBlock
	plainRedactedThinking RedactedThinkingBlock
	plainToolUse          ToolUseBlock
	plainToolResult       ToolResultBlock
	plainImage            ImageBlock
	plainDocument         DocumentBlock
	plainSearchResult     SearchResultBlock
	plainServerToolUse    ServerToolUseBlock
	plainServerToolResult ServerToolResultBlock
	plainMCPToolUse       MCPToolUseBlock
	plainMCPToolResult    MCPToolResultBlock
	plainContainerUpload  ContainerUploadBlock
)

// MarshalJSON adds the block's "type".
func (b *TextBlock) MarshalJSON() ([]byte, error) { return marshalAs(b.BlockType(), (*plainText)(b)) }

// MarshalJSON adds the block's "type".
func (b *ThinkingBlock) MarshalJSON() ([]byte, error) {
	return marshalAs(b.BlockType(), (*plainThinking)(b))
}

// MarshalJSON adds the block's "type".
func (b *RedactedThinkingBlock) MarshalJSON() ([]byte, error) {
	return marshalAs(b.BlockType(), (*plainRedactedThinking)(b))
}

// MarshalJSON adds the block's "type"; a nil Input is an empty object.
func (b *ToolUseBlock) MarshalJSON() ([]byte, error) {
	p := plainToolUse(*b)
	p.Input = orEmptyObject(p.Input)
	return marshalAs(b.BlockType(), &p)
}

// MarshalJSON adds the block's "type".
func (b *ToolResultBlock) MarshalJSON() ([]byte, error) {
	return marshalAs(b.BlockType(), (*plainToolResult)(b))
}

// MarshalJSON adds the block's "type".
func (b *ImageBlock) MarshalJSON() ([]byte, error) { return marshalAs(b.BlockType(), (*plainImage)(b)) }

// MarshalJSON adds the block's "type".
func (b *DocumentBlock) MarshalJSON() ([]byte, error) {
	return marshalAs(b.BlockType(), (*plainDocument)(b))
}

// MarshalJSON adds the block's "type".
func (b *SearchResultBlock) MarshalJSON() ([]byte, error) {
	return marshalAs(b.BlockType(), (*plainSearchResult)(b))
}

// MarshalJSON adds the block's "type"; a nil Input is an empty object.
func (b *ServerToolUseBlock) MarshalJSON() ([]byte, error) {
	p := plainServerToolUse(*b)
	p.Input = orEmptyObject(p.Input)
	return marshalAs(b.BlockType(), &p)
}

// MarshalJSON adds the block's "type".
func (b *ServerToolResultBlock) MarshalJSON() ([]byte, error) {
	return marshalAs(b.BlockType(), (*plainServerToolResult)(b))
}

// MarshalJSON adds the block's "type"; a nil Input is an empty object.
func (b *MCPToolUseBlock) MarshalJSON() ([]byte, error) {
	p := plainMCPToolUse(*b)
	p.Input = orEmptyObject(p.Input)
	return marshalAs(b.BlockType(), &p)
}

// MarshalJSON adds the block's "type".
func (b *MCPToolResultBlock) MarshalJSON() ([]byte, error) {
	return marshalAs(b.BlockType(), (*plainMCPToolResult)(b))
}

// MarshalJSON adds the block's "type".
func (b *ContainerUploadBlock) MarshalJSON() ([]byte, error) {
	return marshalAs(b.BlockType(), (*plainContainerUpload)(b))
}

// MarshalJSON returns the block unchanged.
func (b *UnknownBlock) MarshalJSON() ([]byte, error) { return orEmptyObject(b.Raw), nil }

// UnmarshalJSON decodes the block and its content.
func (b *ToolResultBlock) UnmarshalJSON(raw []byte) error { return b.unmarshalAt(raw, 0) }

func (b *ToolResultBlock) unmarshalAt(raw []byte, depth int) error {
	aux := struct {
		*plainToolResult
		Content json.RawMessage `json:"content"`
	}{plainToolResult: (*plainToolResult)(b)}
	if err := Unmarshal(raw, &aux); err != nil {
		return err
	}
	return b.Content.unmarshalAt(aux.Content, depth)
}

// UnmarshalJSON decodes the block and its content.
func (b *SearchResultBlock) UnmarshalJSON(raw []byte) error { return b.unmarshalAt(raw, 0) }

func (b *SearchResultBlock) unmarshalAt(raw []byte, depth int) error {
	aux := struct {
		*plainSearchResult
		Content json.RawMessage `json:"content"`
	}{plainSearchResult: (*plainSearchResult)(b)}
	if err := Unmarshal(raw, &aux); err != nil {
		return err
	}
	return b.Content.unmarshalAt(aux.Content, depth)
}

// UnmarshalJSON decodes the block and its content.
func (b *MCPToolResultBlock) UnmarshalJSON(raw []byte) error { return b.unmarshalAt(raw, 0) }

func (b *MCPToolResultBlock) unmarshalAt(raw []byte, depth int) error {
	aux := struct {
		*plainMCPToolResult
		Content json.RawMessage `json:"content"`
	}{plainMCPToolResult: (*plainMCPToolResult)(b)}
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
