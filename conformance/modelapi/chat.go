package modelapi

import (
	"encoding/json"
	"net/http"
	"time"
)

// The face of chat completions: the same scenarios for clients of that API. Requests are read
// into the same [Request]: messages of the roles system and developer are its System, a
// message of the role tool is a tool_result of the user's.

// chatBody is what the server reads of a request.
type chatBody struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           int `json:"max_tokens"`
	MaxCompletionTokens int `json:"max_completion_tokens"`
	Tools               []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
	Messages []struct {
		Role       string          `json:"role"`
		Content    blocks          `json:"content"`
		ToolCallID string          `json:"tool_call_id"`
		ToolCalls  json.RawMessage `json:"tool_calls"`
	} `json:"messages"`
}

// readChat fills the parts of r that come from its body.
func (r *Request) readChat() error {
	var in chatBody
	if err := json.Unmarshal(r.Body, &in); err != nil {
		return err
	}
	r.Model, r.Stream, r.MaxTokens = in.Model, in.Stream, max(in.MaxTokens, in.MaxCompletionTokens)
	r.wantsUsage = in.StreamOptions.IncludeUsage
	for _, t := range in.Tools {
		r.Tools = append(r.Tools, t.Function.Name)
	}
	for _, m := range in.Messages {
		switch m.Role {
		case "system", "developer":
			for _, c := range m.Content {
				r.System = append(r.System, c.Text)
			}
		case "tool":
			result := Content{Type: kindToolResult, ToolUseID: m.ToolCallID}
			for _, c := range m.Content {
				result.Text += c.Text
			}
			r.Messages = append(r.Messages, Message{Role: "user", Content: []Content{result}})
		default:
			content := []Content(m.Content)
			var calls []struct {
				ID string `json:"id"`
			}
			if len(m.ToolCalls) > 0 {
				if err := json.Unmarshal(m.ToolCalls, &calls); err != nil {
					return err
				}
			}
			for _, c := range calls {
				content = append(content, Content{Type: kindToolUse, ToolUseID: c.ID})
			}
			r.Messages = append(r.Messages, Message{Role: m.Role, Content: content})
		}
	}
	r.Marker = locate(r.Messages)
	return nil
}

// finish is the stop reason in the words of this API.
func (a answer) finish() string {
	switch stop := a.stop(); stop {
	case "tool_use":
		return "tool_calls"
	case "end_turn", "stop_sequence":
		return "stop"
	case "max_tokens":
		return "length"
	case "refusal":
		return "content_filter"
	default:
		return stop
	}
}

func (a answer) chatUsage() object {
	return obj("prompt_tokens", 10, "completion_tokens", 5, "total_tokens", 15)
}

func (a answer) chatCall(s *stream, i, index int) object {
	input, err := a.Blocks[i].inputText()
	if err != nil && s != nil {
		s.fail(err)
	}
	call := obj("index", index, "id", a.toolUseID(i), "type", "function", "function", obj("name", a.Blocks[i].name, "arguments", input))
	if s == nil { // not streamed: without an index
		return call[1:]
	}
	return call
}

func (a answer) writeChat(w http.ResponseWriter) {
	var text any
	words := ""
	var calls []object
	for i, b := range a.Blocks {
		switch b.kind {
		case kindToolUse:
			calls = append(calls, a.chatCall(nil, i, len(calls)))
		case kindText:
			words += b.text
			text = words
		}
	}
	message := obj("role", "assistant", "content", text)
	if calls != nil {
		message = append(message, member{"tool_calls", calls})
	}
	writeJSON(w, http.StatusOK, obj(
		"id", a.id, "object", "chat.completion", "created", time.Now().Unix(), "model", a.model,
		"choices", []object{obj("index", 0, "message", message, "finish_reason", a.finish())},
		"usage", a.chatUsage(),
	))
}

// streamChat writes the answer as chunks; usage: with one of what was used.
func (a answer) streamChat(usage bool) func(http.ResponseWriter, func(time.Duration) error) error {
	created := time.Now().Unix()
	return func(w http.ResponseWriter, pause func(time.Duration) error) error {
		s := newStream(w, &a, pause)
		chunk := func(delta object, finish any) object {
			return obj("id", a.id, "object", "chat.completion.chunk", "created", created, "model", a.model,
				"choices", []object{obj("index", 0, "delta", delta, "finish_reason", finish)})
		}
		s.event("", chunk(obj("role", "assistant", "content", ""), nil))
		calls := 0
		for i, b := range a.Blocks {
			s.wait(b.pause)
			switch b.kind {
			case kindToolUse:
				s.piece("", chunk(obj("tool_calls", []object{a.chatCall(s, i, calls)}), nil))
				calls++
			case kindThinking:
				s.piece("", chunk(obj("reasoning_content", b.text), nil))
			default:
				for _, piece := range pieces(b.text, a.Chunks) {
					s.piece("", chunk(obj("content", piece), nil))
					s.wait(a.ChunkDelay)
				}
			}
		}
		if a.Broken != nil {
			s.event("", obj("error", obj("message", a.Broken.message(), "type", a.Broken.Type)))
			return s.end(&a)
		}
		s.event("", chunk(obj(), a.finish()))
		if usage {
			last := chunk(obj(), nil)
			last[4].value = []object{}
			s.event("", append(last, member{"usage", a.chatUsage()}))
		}
		s.write("", "[DONE]")
		return s.end(&a)
	}
}
