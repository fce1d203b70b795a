package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/protocol"
)

// ToolResult is the result of a tool call. It is [mcpsdk.CallToolResult] of the official
// MCP SDK, github.com/modelcontextprotocol/go-sdk/mcp. Content may have text, images,
// audio, resource links and embedded resources. StructuredContent must marshal to a JSON
// object. IsError tells the model that the call failed. Meta is sent as _meta.
//
// A result needs content or structured content. An empty result reaches the model as an
// error, so that the model does not take it for a success. Structured content without
// content is also sent as text.
type ToolResult = mcpsdk.CallToolResult

// Text returns a result with text as its content.
func Text(text string) *ToolResult {
	return &ToolResult{Content: []mcpsdk.Content{&mcpsdk.TextContent{Text: text}}}
}

// ErrorText returns the result of a failed call. The model reads text and may try
// something else. An error that a handler returns has the same effect.
func ErrorText(text string) *ToolResult {
	r := Text(text)
	r.IsError = true
	return r
}

// JSONResult returns a result with v as JSON text. If v encodes as a JSON object, it is
// the structured content, too. If v cannot be encoded, the result is an error.
func JSONResult(v any) *ToolResult {
	raw, err := protocol.Marshal(v)
	if err != nil {
		return ErrorText("the tool's result is not JSON: " + err.Error())
	}
	r := Text(string(raw))
	if raw[0] == '{' { // the protocol has no other structured content before 2026-07-28
		r.StructuredContent = raw
	}
	return r
}

// encodeResult is the result of tools/call. A result that cannot be sent becomes an
// error result that says so.
func encodeResult(tool string, r *ToolResult) json.RawMessage {
	b, err := marshalResult(r)
	if err != nil {
		return mcp.ErrorResult(fmt.Sprintf("tool %s is broken: %v", tool, err))
	}
	return b
}

func marshalResult(r *ToolResult) (json.RawMessage, error) {
	if r == nil {
		return nil, errors.New("it returned neither a result nor an error")
	}
	if b, ok := marshalText(r); ok {
		return b, nil
	}
	c := *r // it may be shared: nothing is written to it
	if c.StructuredContent != nil {
		raw, err := protocol.Marshal(c.StructuredContent)
		switch {
		case err != nil:
			return nil, fmt.Errorf("its structured content is not JSON: %w", err)
		case raw[0] != '{': // the agent would refuse the whole answer
			return nil, fmt.Errorf("its structured content has type %T, which does not encode as a JSON object", c.StructuredContent)
		}
		c.StructuredContent = raw
		if len(c.Content) == 0 {
			c.Content = []mcpsdk.Content{&mcpsdk.TextContent{Text: string(raw)}}
		}
	}
	if len(c.Content) == 0 {
		return nil, errors.New("it returned a result without content")
	}
	for i, block := range c.Content {
		if problem := blockProblem(block); problem != "" {
			return nil, fmt.Errorf("content[%d] of its result %s", i, problem)
		}
	}
	b, err := protocol.Marshal(&c)
	if err != nil {
		return nil, fmt.Errorf("its result is not JSON: %w", err)
	}
	return b, nil
}

// marshalText is a short way for what most tools return: one text, which may
// tell of an error. It reports false for any other.
func marshalText(r *ToolResult) (json.RawMessage, bool) {
	if len(r.Content) != 1 || r.StructuredContent != nil || r.Meta != nil ||
		r.InputRequests != nil || r.RequestState != "" {
		return nil, false
	}
	c, ok := r.Content[0].(*mcpsdk.TextContent)
	if !ok || c == nil || c.Annotations != nil || c.Meta != nil {
		return nil, false
	}
	text, err := protocol.Marshal(c.Text)
	if err != nil {
		return nil, false
	}
	b := append([]byte(`{"content":[{"type":"text","text":`), text...)
	b = append(b, "}]"...)
	if r.IsError {
		b = append(b, `,"isError":true`...)
	}
	return append(b, '}'), true
}

// blockProblem finds what would make the agent refuse the whole answer (observed
// on Claude Code 2.1.329).
func blockProblem(block mcpsdk.Content) string {
	if v := reflect.ValueOf(block); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return "is nil"
	}
	switch b := block.(type) {
	case *mcpsdk.EmbeddedResource:
		switch {
		case b.Resource == nil:
			return "is an embedded resource without contents"
		case b.Resource.URI == "":
			return "is an embedded resource without a URI"
		}
	case *mcpsdk.ResourceLink:
		if b.URI == "" || b.Name == "" {
			return "is a resource link without a URI or a name"
		}
	}
	return ""
}
