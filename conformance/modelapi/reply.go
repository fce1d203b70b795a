package modelapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// object is a JSON object on its way out.
type object map[string]any

// signature stands for a thinking block's signature; agents pass it back unread.
const signature = "c2ln"

func (r Reply) stop() string {
	if r.Stop != "" {
		return r.Stop
	}
	for _, b := range r.Blocks {
		if b.kind == kindToolUse {
			return "tool_use"
		}
	}
	return "end_turn"
}

func (f *Fault) write(w http.ResponseWriter) {
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter/time.Second)))
	}
	writeError(w, f.Status, f.Type, "scripted "+strconv.Itoa(f.Status))
}

func (r *Raw) write(w http.ResponseWriter) {
	kind := r.ContentType
	if kind == "" {
		kind = "text/event-stream"
	}
	w.Header().Set("Content-Type", kind)
	_, _ = io.WriteString(w, r.Body) // a failure means that the client has left
}

func writeError(w http.ResponseWriter, status int, kind, message string) {
	writeJSON(w, status, object{"type": "error", "error": object{"type": kind, "message": message}})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // a failure means that the client has left
}

// answer is a reply on its way to one request.
type answer struct {
	Reply
	id    string // of the message
	model string
	cut   bool // break off as Reply.Cut says
}

func (a answer) toolUseID(block int) string { return fmt.Sprintf("toolu_%s_%d", a.id, block) }

func (a answer) message(content []object, stop any, usage object) object {
	return object{
		"id": a.id, "type": "message", "role": "assistant", "model": a.model,
		"content": content, "stop_reason": stop, "stop_sequence": nil, "usage": usage,
	}
}

func (a answer) writeWhole(w http.ResponseWriter) {
	content := make([]object, len(a.Blocks))
	for i, b := range a.Blocks {
		switch b.kind {
		case kindThinking:
			content[i] = object{"type": b.kind, "thinking": b.text, "signature": signature}
		case kindToolUse:
			content[i] = object{"type": b.kind, "id": a.toolUseID(i), "name": b.name, "input": b.input}
		default:
			content[i] = object{"type": b.kind, "text": b.text}
		}
	}
	writeJSON(w, http.StatusOK, a.message(content, a.stop(), object{"input_tokens": 10, "output_tokens": 5}))
}

// stream writes server-sent events. After the first error it writes nothing.
type stream struct {
	w     http.ResponseWriter
	pause func(time.Duration) error
	left  int // deltas until the cut; below zero means no cut
	err   error
}

func (a answer) writeStream(w http.ResponseWriter, pause func(time.Duration) error) error {
	w.Header().Set("Content-Type", "text/event-stream")
	s := &stream{w: w, pause: pause, left: -1}
	if a.cut {
		s.left = a.Cut.After
	}
	s.event(object{"type": "message_start", "message": a.message([]object{}, nil, object{
		"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0,
	})})
	for i, b := range a.Blocks {
		a.writeBlock(s, i, b)
	}
	delta := object{"stop_reason": a.stop(), "stop_sequence": nil}
	if a.Check != nil {
		delta["safeguard_results"] = a.verdicts()
	}
	s.event(object{"type": "message_delta", "delta": delta, "usage": object{"output_tokens": 5}})
	s.event(object{"type": "message_stop"})
	return s.err
}

// verdicts has the form that Claude Code 2.1.329 reads.
func (a answer) verdicts() []object {
	verdict := object{"type": "evaluated", "outcome": "not_flagged"}
	if a.Check.Flagged {
		verdict = object{"type": "evaluated", "outcome": "flagged", "explanation": a.Check.Explanation}
	}
	calls := object{}
	for i, b := range a.Blocks {
		if b.kind == kindToolUse {
			calls[a.toolUseID(i)] = verdict
		}
	}
	return []object{{"type": "dangerous_tool_use", "status": object{"type": "available", "tool_uses": calls}}}
}

func (a answer) writeBlock(s *stream, i int, b Block) {
	start := func(block object) {
		s.event(object{"type": "content_block_start", "index": i, "content_block": block})
	}
	switch b.kind {
	case kindThinking:
		start(object{"type": b.kind, "thinking": "", "signature": ""})
		s.delta(i, object{"type": "thinking_delta", "thinking": b.text})
		s.delta(i, object{"type": "signature_delta", "signature": signature})
	case kindToolUse:
		start(object{"type": b.kind, "id": a.toolUseID(i), "name": b.name, "input": object{}})
		input, err := json.Marshal(b.input)
		if err != nil {
			s.fail(fmt.Errorf("input of tool %s: %w", b.name, err))
		}
		s.delta(i, object{"type": "input_json_delta", "partial_json": string(input)})
	default:
		start(object{"type": b.kind, "text": ""})
		for _, piece := range pieces(b.text, a.Chunks) {
			s.delta(i, object{"type": "text_delta", "text": piece})
			s.wait(a.ChunkDelay)
		}
	}
	s.event(object{"type": "content_block_stop", "index": i})
}

func (s *stream) delta(index int, delta object) {
	if s.left == 0 {
		s.fail(errCut)
	}
	s.left--
	s.event(object{"type": "content_block_delta", "index": index, "delta": delta})
}

func (s *stream) event(data object) {
	if s.err != nil {
		return
	}
	raw, err := json.Marshal(data)
	if err != nil {
		s.fail(err)
		return
	}
	if _, err := fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", data["type"], raw); err != nil {
		s.fail(err)
		return
	}
	s.fail(http.NewResponseController(s.w).Flush())
}

func (s *stream) wait(d time.Duration) {
	if s.err == nil {
		s.fail(s.pause(d))
	}
}

func (s *stream) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// pieces cuts text into at most n parts of whole runes; n below 1 means 2.
func pieces(text string, n int) []string {
	if n < 1 {
		n = 2
	}
	runes := []rune(text)
	size := max(1, (len(runes)+n-1)/n)
	var out []string
	for start := 0; start < len(runes); start += size {
		out = append(out, string(runes[start:min(start+size, len(runes))]))
	}
	return out
}
