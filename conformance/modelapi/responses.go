package modelapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// The face of the Responses API: the same scenarios for clients of that API. Requests are read
// into the same [Request]: the instructions, and messages of the roles system and developer,
// are its System, an item with the output of a call is a tool_result of the user's.

// responsesBody is what the server reads of a request.
type responsesBody struct {
	Model           string `json:"model"`
	Stream          bool   `json:"stream"`
	MaxOutputTokens int    `json:"max_output_tokens"`
	Instructions    string `json:"instructions"`
	Tools           []struct {
		Type string `json:"type"`
		Name string `json:"name"`
	} `json:"tools"`
	Input []struct {
		Type    string `json:"type"` // empty: a message
		Role    string `json:"role"`
		Content blocks `json:"content"`
		CallID  string `json:"call_id"`
		Output  blocks `json:"output"`
	} `json:"input"`
}

// readResponses fills the parts of r that come from its body.
func (r *Request) readResponses() error {
	var in responsesBody
	if err := json.Unmarshal(r.Body, &in); err != nil {
		return err
	}
	r.Model, r.Stream, r.MaxTokens = in.Model, in.Stream, in.MaxOutputTokens
	if in.Instructions != "" {
		r.System = append(r.System, in.Instructions)
	}
	for _, t := range in.Tools {
		if t.Name != "" { // the vendor's own tools have a type alone
			r.Tools = append(r.Tools, t.Name)
		}
	}
	for _, item := range in.Input {
		switch item.Type {
		case "", "message":
			for i := range item.Content {
				item.Content[i].Type = kindText // input_text or output_text
			}
			if item.Role != "system" && item.Role != "developer" {
				r.Messages = append(r.Messages, Message{Role: item.Role, Content: item.Content})
				continue
			}
			for _, c := range item.Content {
				r.System = append(r.System, c.Text)
			}
		case "function_call", "custom_tool_call":
			r.Messages = append(r.Messages, Message{Role: "assistant", Content: []Content{{Type: kindToolUse, ToolUseID: item.CallID}}})
		case "function_call_output", "custom_tool_call_output":
			result := Content{Type: kindToolResult, ToolUseID: item.CallID}
			for _, c := range item.Output {
				result.Text += c.Text
			}
			r.Messages = append(r.Messages, Message{Role: "user", Content: []Content{result}})
		}
	}
	r.Marker = locate(r.Messages)
	return nil
}

// responseItem is a block as an item of the output.
func (a answer) responseItem(i int) (object, error) {
	b := a.Blocks[i]
	switch b.kind {
	case kindToolUse:
		input, err := b.inputText()
		return obj("type", "function_call", "id", "fc_"+a.toolUseID(i), "call_id", a.toolUseID(i), "name", b.name, "arguments", input, "status", "completed"), err
	case kindThinking:
		return obj("type", "reasoning", "id", "rs_"+a.id, "summary", []object{obj("type", "summary_text", "text", b.text)}), nil
	default:
		return a.outputText("completed", []object{obj("type", "output_text", "text", b.text, "annotations", []object{})}), nil
	}
}

func (a answer) outputText(status string, content []object) object {
	return obj("type", "message", "id", a.id, "role", "assistant", "status", status, "content", content)
}

func (a answer) response(status string, output []object) object {
	o := obj("id", "resp_"+a.id, "object", "response", "created_at", time.Now().Unix(), "status", status, "model", a.model, "output", output)
	if status == "completed" {
		o = append(o, member{"usage", obj("input_tokens", 10, "input_tokens_details", obj("cached_tokens", 0),
			"output_tokens", 5, "output_tokens_details", obj("reasoning_tokens", 0), "total_tokens", 15)})
	}
	return o
}

func (a answer) writeResponse(w http.ResponseWriter) {
	output := make([]object, len(a.Blocks))
	for i := range a.Blocks {
		var err error
		if output[i], err = a.responseItem(i); err != nil {
			writeError(w, http.StatusInternalServerError, "api_error", err.Error())
			return
		}
	}
	writeJSON(w, http.StatusOK, a.response("completed", output))
}

func (a answer) streamResponse(w http.ResponseWriter, pause func(time.Duration) error) error {
	s := newStream(w, &a, pause)
	sequence := 0
	send := func(kind string, pairs ...any) {
		data := append(obj("type", kind, "sequence_number", sequence), obj(pairs...)...)
		sequence++
		if strings.HasSuffix(kind, ".delta") {
			s.piece(kind, data)
			return
		}
		s.event(kind, data)
	}
	send("response.created", "response", a.response("in_progress", []object{}))
	output := make([]object, len(a.Blocks))
	for i, b := range a.Blocks {
		s.wait(b.pause)
		item, err := a.responseItem(i)
		if err != nil {
			s.fail(err)
		}
		switch output[i] = item; b.kind {
		case kindToolUse, kindThinking:
			send("response.output_item.added", "output_index", i, "item", item)
		default:
			send("response.output_item.added", "output_index", i, "item", a.outputText("in_progress", []object{}))
			for _, piece := range pieces(b.text, a.Chunks) {
				send("response.output_text.delta", "item_id", a.id, "output_index", i, "content_index", 0, "delta", piece)
				s.wait(a.ChunkDelay)
			}
		}
		send("response.output_item.done", "output_index", i, "item", item)
	}
	if a.Broken != nil {
		failed := append(a.response("failed", output), member{"error", obj("code", a.Broken.Type, "message", a.Broken.message())})
		send("response.failed", "response", failed)
		return s.end(&a)
	}
	send("response.completed", "response", a.response("completed", output))
	return s.end(&a)
}
