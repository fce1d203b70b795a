package modelapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// The face of Gemini's generateContent: the same scenarios for clients of that API. Requests
// are read into the same [Request]: the role model is its assistant, a functionResponse is a
// tool_result of the user's. The model and whether to stream are in the path.

// geminiBody is what the server reads of a request.
type geminiBody struct {
	SystemInstruction geminiContent   `json:"systemInstruction"`
	Contents          []geminiContent `json:"contents"`
	Tools             []struct {
		FunctionDeclarations []struct {
			Name string `json:"name"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	GenerationConfig struct {
		MaxOutputTokens int `json:"maxOutputTokens"`
	} `json:"generationConfig"`
}

type geminiContent struct {
	Role  string `json:"role"`
	Parts []struct {
		Text         string `json:"text"`
		FunctionCall *struct {
			ID string `json:"id"`
		} `json:"functionCall"`
		FunctionResponse *struct {
			ID       string          `json:"id"`
			Response json.RawMessage `json:"response"`
		} `json:"functionResponse"`
	} `json:"parts"`
}

// geminiMethod is the model and the method of a path such as
// /v1beta/models/NAME:streamGenerateContent; "" for other paths.
func geminiMethod(path string) (model, method string) {
	rest, ok := strings.CutPrefix(path, "/v1beta/models/")
	model, method, found := strings.Cut(rest, ":")
	if !ok || !found {
		return "", ""
	}
	return model, method
}

// readGemini fills the parts of r that come from its path and its body.
func (r *Request) readGemini() error {
	var in geminiBody
	if err := json.Unmarshal(r.Body, &in); err != nil {
		return err
	}
	path, _, _ := strings.Cut(r.Path, "?")
	model, method := geminiMethod(path)
	r.Model, r.Stream, r.MaxTokens = model, method == streamGenerate, in.GenerationConfig.MaxOutputTokens
	for _, t := range in.Tools {
		for _, f := range t.FunctionDeclarations {
			r.Tools = append(r.Tools, f.Name)
		}
	}
	for _, p := range in.SystemInstruction.Parts {
		r.System = append(r.System, p.Text)
	}
	for _, c := range in.Contents {
		m := Message{Role: "user"}
		if c.Role == "model" {
			m.Role = "assistant"
		}
		for _, p := range c.Parts {
			switch {
			case p.FunctionCall != nil:
				m.Content = append(m.Content, Content{Type: kindToolUse, ToolUseID: p.FunctionCall.ID})
			case p.FunctionResponse != nil:
				m.Content = append(m.Content, Content{Type: kindToolResult, ToolUseID: p.FunctionResponse.ID, Text: string(p.FunctionResponse.Response)})
			default:
				m.Content = append(m.Content, Content{Type: kindText, Text: p.Text})
			}
		}
		r.Messages = append(r.Messages, m)
	}
	r.Marker = locate(r.Messages)
	return nil
}

const (
	generate       = "generateContent"
	streamGenerate = "streamGenerateContent"
)

func (a answer) geminiPart(i int) object {
	switch b := a.Blocks[i]; b.kind {
	case kindToolUse:
		return obj("functionCall", obj("id", a.toolUseID(i), "name", b.name, "args", b.input))
	case kindThinking:
		return obj("text", b.text, "thought", true)
	default:
		return obj("text", b.text)
	}
}

// geminiChunk is one object of the answer; finish: with the reason of its end.
func (a answer) geminiChunk(parts []object, finish bool) object {
	candidate := obj("content", obj("role", "model", "parts", parts), "index", 0)
	o := obj("candidates", []object{candidate}, "modelVersion", a.model, "responseId", a.id)
	if !finish {
		return o
	}
	reason := "STOP" // also behind a call
	switch a.stop() {
	case "max_tokens":
		reason = "MAX_TOKENS"
	case "refusal":
		reason = "SAFETY"
	}
	o[0].value = []object{append(candidate, member{"finishReason", reason})}
	return append(o, member{"usageMetadata", obj("promptTokenCount", 10, "candidatesTokenCount", 5, "totalTokenCount", 15)})
}

func (a answer) writeGemini(w http.ResponseWriter) {
	parts := make([]object, len(a.Blocks))
	for i := range a.Blocks {
		parts[i] = a.geminiPart(i)
	}
	writeJSON(w, http.StatusOK, a.geminiChunk(parts, true))
}

func (a answer) streamGemini(w http.ResponseWriter, pause func(time.Duration) error) error {
	s := newStream(w, &a, pause)
	for i, b := range a.Blocks {
		s.wait(b.pause)
		if b.kind != kindText {
			s.piece("", a.geminiChunk([]object{a.geminiPart(i)}, false))
			continue
		}
		for _, piece := range pieces(b.text, a.Chunks) {
			s.piece("", a.geminiChunk([]object{obj("text", piece)}, false))
			s.wait(a.ChunkDelay)
		}
	}
	if a.Broken != nil {
		s.event("", obj("error", obj("code", a.Broken.Status, "message", a.Broken.message(), "status", a.Broken.Type)))
		return s.end(&a)
	}
	s.event("", a.geminiChunk([]object{obj("text", "")}, true))
	return s.end(&a)
}
