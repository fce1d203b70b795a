package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/protocol"
)

// Request is a request that came.
type Request struct {
	N        int    // from 1, in the order in which they came
	API      string // anthropic or openai
	Header   http.Header
	Body     []byte
	Model    string
	User     string          // who asks: for a session, its id; "": it is not said
	Tools    []string        // names, in their order
	Messages []model.Message // without the system prompt. Blocks have no Origin
	Batch    string          // in which it came; "": by itself
}

// Last is the last message.
func (r *Request) Last() model.Message {
	if len(r.Messages) == 0 {
		return model.Message{}
	}
	return r.Messages[len(r.Messages)-1]
}

// Prompt is the text of the last message that has one and is the user's.
func (r *Request) Prompt() string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role != model.User {
			continue
		}
		for _, b := range slices.Backward(m.Blocks) {
			if b.Kind == model.Text {
				return b.Text
			}
		}
	}
	return ""
}

// Results are the results of calls that follow the model's last answer.
func (r *Request) Results() []model.Block {
	var all []model.Block
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == model.Assistant {
			break
		}
		for _, b := range slices.Backward(m.Blocks) {
			if b.Kind == model.ToolResult {
				all = append(all, b)
			}
		}
	}
	slices.Reverse(all)
	return all
}

// Result is the result of a call, and whether there is one.
func (r *Request) Result(id string) (model.Block, bool) {
	for _, m := range r.Messages {
		for _, b := range m.Blocks {
			if b.Kind == model.ToolResult && b.ID == id {
				return b, true
			}
		}
	}
	return model.Block{}, false
}

// wireMessage is a message of either API.
type wireMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Thought string          `json:"reasoning_content"`
	ID      string          `json:"tool_call_id"`
	Calls   []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// read reads the body.
func (r *Request) read() error {
	var in struct {
		Model    string `json:"model"`
		User     string `json:"prompt_cache_key"`
		Metadata struct {
			User string `json:"user_id"`
		} `json:"metadata"`
		Tools []struct {
			Name     string `json:"name"`
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
		Messages []wireMessage `json:"messages"`
	}
	if err := protocol.Unmarshal(r.Body, &in); err != nil {
		return fmt.Errorf("modeltest: the request cannot be read: %w", err)
	}
	r.Model, r.User = in.Model, in.User+in.Metadata.User
	for _, t := range in.Tools {
		r.Tools = append(r.Tools, t.Name+t.Function.Name)
	}
	for _, m := range in.Messages {
		switch m.Role {
		case "system", "developer":
		case "tool":
			b := model.Block{Kind: model.ToolResult, ID: m.ID}
			_ = protocol.Unmarshal(m.Content, &b.Text) // a text
			r.Messages = append(r.Messages, model.Message{Role: model.User, Blocks: []model.Block{b}})
		default:
			r.Messages = append(r.Messages, model.Message{Role: model.Role(m.Role), Blocks: m.blocks()})
		}
	}
	return nil
}

// blocks are those of a message.
func (m *wireMessage) blocks() []model.Block {
	var all []model.Block
	var text string
	var list []struct {
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
	}
	if m.Thought != "" {
		all = append(all, model.Block{Kind: model.Thinking, Text: m.Thought})
	}
	if protocol.Unmarshal(m.Content, &text) == nil {
		if text != "" {
			all = append(all, Text(text))
		}
	} else if protocol.Unmarshal(m.Content, &list) == nil {
		for _, in := range list {
			b := model.Block{Kind: model.BlockKind(in.Type), Text: in.Text + in.Thinking, Signature: in.Signature, ID: in.ID + in.ToolUseID, Name: in.Name, Input: in.Input, IsError: in.IsError}
			if in.Content != nil && protocol.Unmarshal(in.Content, &b.Text) != nil {
				b.Content = in.Content
			}
			all = append(all, b)
		}
	}
	for _, c := range m.Calls {
		all = append(all, model.Block{Kind: model.ToolUse, ID: c.ID, Name: c.Function.Name, Input: json.RawMessage(c.Function.Arguments)})
	}
	return all
}
