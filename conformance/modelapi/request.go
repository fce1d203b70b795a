package modelapi

import (
	"cmp"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"time"
)

// Endpoint says what a request asked for.
type Endpoint string

// The endpoints the server knows. Anything else is answered with 404.
const (
	Messages    Endpoint = "messages"
	CountTokens Endpoint = "count_tokens"
	Chat        Endpoint = "chat_completions"
	Responses   Endpoint = "responses"
	Gemini      Endpoint = "generate_content"
	Unknown     Endpoint = "unknown"
)

// Request is one entry of the server's log.
type Request struct {
	// Seq numbers the requests from 1.
	Seq      int
	At       time.Time
	Endpoint Endpoint
	Method   string
	// Path is the path and the query, as received.
	Path   string
	Header http.Header
	// Body is the request as received.
	Body json.RawMessage

	// The fields below are read from the body, and zero if it lacks them.

	Model     string
	Stream    bool
	MaxTokens int
	// Tools are the names of the offered tools, in order.
	Tools    []string
	Messages []Message
	// System holds the texts of the system prompt, one per block.
	System []string
	// Marker is the last marker in the user messages; its Scenario is empty without
	// one.
	Marker Marker

	wantsUsage bool // of chat completions, in the stream
}

// Marker is where in which script a request stands.
type Marker struct {
	Scenario string
	// Arg is what stood behind the name: [[scn:NAME ARG]].
	Arg string
	// Step counts the assistant messages behind the marker; consecutive ones
	// count once.
	Step int
}

// Message is one message of the conversation the agent sent. Its role is
// "user", "assistant" or, observed on Claude Code 2.1.329 in the middle and at
// the end of a conversation, "system".
type Message struct {
	Role    string
	Content []Content
}

// Content is one content block of a message. A content given as a bare string
// is one block of type "text".
type Content struct {
	Type string
	// Text is the text of a text block, or all text in a tool_result.
	Text string
	// ToolUseID is the id of a tool_use block, or the one a tool_result
	// answers.
	ToolUseID string
	// IsError is set on a tool_result of a failed call.
	IsError bool
	// Raw is the whole block as received.
	Raw json.RawMessage
}

// ToolResults returns the results of the model's tool calls, oldest first.
func (r Request) ToolResults() []Content {
	var all []Content
	for _, m := range r.Messages {
		for _, c := range m.Content {
			if c.Type == kindToolResult {
				all = append(all, c)
			}
		}
	}
	return all
}

// body is what the server reads of a Messages request.
type body struct {
	Model     string `json:"model"`
	Stream    bool   `json:"stream"`
	MaxTokens int    `json:"max_tokens"`
	Tools     []struct {
		Name string `json:"name"`
	} `json:"tools"`
	Messages []struct {
		Role    string `json:"role"`
		Content blocks `json:"content"`
	} `json:"messages"`
	System blocks `json:"system"`
}

// blocks decodes content given as a string or as an array of blocks.
type blocks []Content

func (b *blocks) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*b = blocks{{Type: kindText, Text: text, Raw: slices.Clone(raw)}}
		return nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	*b = make(blocks, len(list))
	for i, one := range list {
		var in struct {
			Type      string `json:"type"`
			Text      string `json:"text"`
			ID        string `json:"id"`
			ToolUseID string `json:"tool_use_id"`
			IsError   bool   `json:"is_error"`
			Content   blocks `json:"content"`
		}
		if err := json.Unmarshal(one, &in); err != nil {
			return err
		}
		for _, inner := range in.Content {
			in.Text += inner.Text
		}
		(*b)[i] = Content{
			Type: in.Type, Text: in.Text, ToolUseID: cmp.Or(in.ToolUseID, in.ID), IsError: in.IsError, Raw: one,
		}
	}
	return nil
}

// read fills the parts of r that come from its body.
func (r *Request) read() error {
	switch r.Endpoint {
	case Chat:
		return r.readChat()
	case Responses:
		return r.readResponses()
	case Gemini:
		return r.readGemini()
	case Messages, CountTokens, Unknown:
	}
	var in body
	if err := json.Unmarshal(r.Body, &in); err != nil {
		return err
	}
	r.Model, r.Stream, r.MaxTokens = in.Model, in.Stream, in.MaxTokens
	for _, t := range in.Tools {
		r.Tools = append(r.Tools, t.Name)
	}
	for _, m := range in.Messages {
		r.Messages = append(r.Messages, Message{Role: m.Role, Content: m.Content})
	}
	for _, s := range in.System {
		r.System = append(r.System, s.Text)
	}
	r.Marker = locate(r.Messages)
	return nil
}

var markerExpr = regexp.MustCompile(`\[\[scn:([A-Za-z0-9_]+)(?: ([^\]]*))?\]\]`)

func locate(messages []Message) Marker {
	var m Marker
	at := -1
	for i, msg := range messages {
		if msg.Role != "user" {
			continue
		}
		for _, block := range msg.Content {
			if block.Type != kindText {
				continue
			}
			for _, found := range markerExpr.FindAllStringSubmatch(block.Text, -1) {
				m.Scenario, m.Arg, at = found[1], found[2], i
			}
		}
	}
	if at < 0 {
		return Marker{}
	}
	previous := false
	for _, msg := range messages[at+1:] {
		assistant := msg.Role == "assistant"
		if assistant && !previous {
			m.Step++
		}
		previous = assistant
	}
	return m
}
