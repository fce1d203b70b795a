package modeltest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/model"
)

// BatchFault is what goes wrong with one batch. The zero value is nothing.
type BatchFault struct {
	NoConnection bool          // it surely does not arrive
	LostAnswer   bool          // it is made, and the connection breaks before the answer
	Status       int           // it is refused with this status; 0: it is not
	Refused      string        // of OpenAI's API: it fails as a whole, with this code; "": it does not
	Takes        time.Duration // in place of Server.BatchTakes; 0: that
	// Expires, Errs and Loses are asked about each request, from 0: it is not worked on within a
	// day; it has an error of that status, or 0; the results do not have it.
	Expires  func(i int) bool
	Errs     func(i int) int
	Loses    func(i int) bool
	CutAt    int  // the first time, the connection breaks after so many lines of the results
	Twice    bool // each line of the results comes twice
	Reversed bool // the last line comes first
}

// batch is a batch that was made.
type batch struct {
	id, tag, api string
	at           time.Time
	fault        *BatchFault
	ids          []string
	requests     []*Request // nil for one that expires
	canceled     bool
	lines        []string // of its results; nil before they are read
	cut          bool     // they broke off
}

// Batches is how many batches were made.
func (s *Server) Batches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.batches)
}

// aboutBatches answers a request about batches.
func (s *Server) aboutBatches(in *http.Request) (resp *http.Response, err error, is bool) { //nolint:revive // whether it is comes last
	path := in.URL.Path
	at := max(strings.Index(path, "/batches"), strings.Index(path, "/files"))
	if at < 0 {
		return nil, nil, false
	}
	if err := in.Context().Err(); err != nil {
		return nil, err, true
	}
	var body []byte
	if in.Body != nil {
		if body, err = io.ReadAll(in.Body); err != nil {
			return nil, fmt.Errorf("modeltest: read the request: %w", err), true
		}
		_ = in.Body.Close() // a reader in memory
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	api := "openai"
	if strings.Contains(path, "/messages/") {
		api = "anthropic"
	}
	parts := strings.Split(strings.Trim(path[at:], "/"), "/")
	var said []byte
	status := http.StatusOK
	switch b := s.batch(parts); {
	case in.Method == http.MethodPost && len(parts) == 1 && parts[0] == "files":
		s.files = append(s.files, string(body))
		said = encoded(object{"id": fmt.Sprint("file-in-", len(s.files)-1), "object": "file", "purpose": "batch"})
	case in.Method == http.MethodPost && len(parts) == 1:
		said, status, err = s.make(api, in.Header, body)
	case in.Method == http.MethodGet && len(parts) == 1:
		list := []json.RawMessage{}
		for _, b := range slices.Backward(s.batches) {
			if b.api == api {
				list = append(list, s.state(b))
			}
		}
		said = encoded(object{"data": list, "has_more": false})
	case b == nil:
		said, status = refusal(http.StatusNotFound), http.StatusNotFound
	case len(parts) == 2:
		said = s.state(b)
	case parts[2] == "cancel":
		b.canceled = b.canceled || !s.over(b)
		said = s.state(b)
	default:
		return reply(in, status, s.results(b)), nil, true
	}
	if err != nil {
		return nil, err, true
	}
	return reply(in, status, bytes.NewReader(said)), nil, true
}

func refusal(status int) json.RawMessage { return json.RawMessage((&Fault{Status: status}).body()) }

func reply(in *http.Request, status int, body io.Reader) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(body), Request: in}
}

// batch is the one that a path names, or nil.
func (s *Server) batch(parts []string) *batch {
	for _, b := range s.batches {
		if len(parts) > 1 && (parts[1] == b.id || parts[1] == "file-out-"+b.id) {
			return b
		}
	}
	return nil
}

// batchRequest is a request of a batch, in either API.
type batchRequest struct {
	ID     string          `json:"custom_id"`
	Params json.RawMessage `json:"params"`
	Body   json.RawMessage `json:"body"`
}

// make makes a batch.
func (s *Server) make(api string, h http.Header, body []byte) (said []byte, status int, err error) {
	f := &BatchFault{}
	if s.BatchFault != nil {
		if some := s.BatchFault(len(s.batches) + 1); some != nil {
			f = some
		}
	}
	switch {
	case f.NoConnection:
		return nil, 0, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case f.Status != 0:
		return refusal(f.Status), f.Status, nil
	}
	b := &batch{id: fmt.Sprint("batch_", len(s.batches)+1), api: api, at: s.clock().Now(), fault: f}
	var list []batchRequest
	if api == "anthropic" {
		var in struct{ Requests json.RawMessage }
		err = json.Unmarshal(body, &in)
		err = cmp.Or(err, json.Unmarshal(in.Requests, &list))
	} else {
		var in struct {
			File     string `json:"input_file_id"`
			Metadata struct{ Troupe string }
		}
		err = json.Unmarshal(body, &in)
		var n int
		if _, wrong := fmt.Sscanf(in.File, "file-in-%d", &n); err != nil || wrong != nil || n >= len(s.files) {
			return refusal(http.StatusBadRequest), http.StatusBadRequest, nil
		}
		b.tag = in.Metadata.Troupe
		for line := range strings.Lines(s.files[n]) {
			if strings.HasPrefix(line, `{"custom_id"`) {
				var one batchRequest
				err = cmp.Or(err, json.Unmarshal([]byte(line), &one))
				list = append(list, one)
			}
		}
	}
	if err != nil || len(list) == 0 {
		return refusal(http.StatusBadRequest), http.StatusBadRequest, nil
	}
	for i, one := range list {
		b.ids = append(b.ids, one.ID)
		if f.Refused != "" || f.Expires != nil && f.Expires(i) {
			b.requests = append(b.requests, nil)
			continue
		}
		r := &Request{API: api, Header: h.Clone(), Body: append(bytes.Clone(one.Params), one.Body...), Batch: b.id}
		if r.read() != nil {
			return refusal(http.StatusBadRequest), http.StatusBadRequest, nil
		}
		s.requests = append(s.requests, r)
		r.N = len(s.requests)
		b.requests = append(b.requests, r)
	}
	if s.batches = append(s.batches, b); f.LostAnswer {
		return nil, 0, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	return s.state(b), http.StatusOK, nil
}

// over reports whether a batch is over.
func (s *Server) over(b *batch) bool {
	return b.canceled || s.clock().Now().Sub(b.at) >= cmp.Or(b.fault.Takes, s.BatchTakes)
}

// state is what the API says of a batch.
func (s *Server) state(b *batch) json.RawMessage {
	over := s.over(b)
	if b.api == "anthropic" {
		counts, status := object{"processing": len(b.ids)}, "in_progress"
		if over {
			counts, status = object{"succeeded": len(b.ids)}, "ended"
		}
		return encoded(object{"id": b.id, "type": "message_batch", "processing_status": status, "created_at": b.at, "request_counts": counts, "results_url": nil})
	}
	o := object{"id": b.id, "object": "batch", "status": "in_progress", "created_at": b.at.Unix(), "request_counts": object{"total": len(b.ids)}, "metadata": object{"troupe": b.tag}}
	switch {
	case over && b.fault.Refused != "":
		o["status"], o["errors"] = "failed", object{"data": []any{object{"code": b.fault.Refused, "message": "the batch is refused"}}}
	case over:
		o["status"], o["output_file_id"] = "completed", "file-out-"+b.id
	}
	return encoded(o)
}

// results are the lines of a batch that is over.
func (s *Server) results(b *batch) io.Reader {
	if b.lines == nil {
		for i, id := range b.ids {
			if b.fault.Loses == nil || !b.fault.Loses(i) {
				b.lines = append(b.lines, string(s.line(b, i, id))+"\n")
			}
		}
		if b.fault.Reversed {
			slices.Reverse(b.lines)
		}
		if b.fault.Twice {
			b.lines = slices.Concat(b.lines, b.lines)
		}
	}
	if n := b.fault.CutAt; n > 0 && !b.cut && n < len(b.lines) {
		b.cut = true
		return io.MultiReader(strings.NewReader(strings.Join(b.lines[:n], "")), broken{})
	}
	return strings.NewReader(strings.Join(b.lines, ""))
}

// broken is the end of a connection that breaks.
type broken struct{}

func (broken) Read([]byte) (int, error) {
	return 0, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
}

// line is the result of a request.
func (s *Server) line(b *batch, i int, id string) []byte {
	r, status := b.requests[i], 0
	if b.fault.Errs != nil {
		status = b.fault.Errs(i)
	}
	drops := "expired"
	if b.canceled {
		drops = "canceled"
	}
	switch dropped := r == nil || b.canceled; {
	case b.api == "anthropic" && dropped:
		return encoded(object{"custom_id": id, "result": object{"type": drops}})
	case dropped:
		return encoded(object{"custom_id": id, "response": nil, "error": object{"code": "batch_" + strings.Replace(drops, "canceled", "cancelled", 1), "message": "it was not worked on"}})
	case b.api == "anthropic" && status != 0:
		return encoded(object{"custom_id": id, "result": object{"type": "errored", "error": refusal(status)}})
	case status != 0:
		return encoded(object{"custom_id": id, "response": object{"status_code": status, "body": refusal(status)}})
	}
	a := &Answer{Blocks: []model.Block{Text("ok")}}
	if s.Script != nil {
		if some := s.Script(r); some != nil {
			a = some
		}
	}
	a = a.said(r, &Fault{})
	if b.api == "anthropic" {
		return encoded(object{"custom_id": id, "result": object{"type": "succeeded", "message": a.wholeMessage(r)}})
	}
	return encoded(object{"custom_id": id, "response": object{"status_code": http.StatusOK, "request_id": fmt.Sprint("req_", r.N), "body": a.wholeChat(r)}})
}

// wholeMessage is an answer of the Messages API that comes in one piece.
func (a *Answer) wholeMessage(r *Request) object {
	content := []any{}
	for _, b := range a.Blocks {
		switch b.Kind {
		case model.Thinking:
			content = append(content, object{"type": b.Kind, "thinking": b.Text, "signature": b.Signature})
		case model.ToolUse:
			content = append(content, object{"type": b.Kind, "id": b.ID, "name": b.Name, "input": b.Input})
		case model.Text, model.ToolResult, model.Image, model.Document, model.Opaque:
			content = append(content, object{"type": b.Kind, "text": b.Text})
		}
	}
	u := a.Usage
	return object{
		"id": fmt.Sprintf("msg_%d", r.N), "type": "message", "role": "assistant", "model": r.Model, "content": content, "stop_reason": a.Stop, "stop_sequence": nil,
		"usage": object{"input_tokens": u.Input, "output_tokens": u.Output, "cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite, "service_tier": "batch"},
	}
}

// wholeChat is an answer of chat completions that comes in one piece.
func (a *Answer) wholeChat(r *Request) object {
	text, calls := "", []any{}
	for _, b := range a.Blocks {
		switch b.Kind {
		case model.ToolUse:
			calls = append(calls, object{"id": b.ID, "type": "function", "function": object{"name": b.Name, "arguments": string(b.Input)}})
		case model.Text:
			text += b.Text
		case model.Thinking, model.ToolResult, model.Image, model.Document, model.Opaque:
		}
	}
	message := object{"role": "assistant", "content": text}
	if len(calls) > 0 {
		message["tool_calls"] = calls
	}
	finish := map[string]string{"tool_use": "tool_calls", "end_turn": "stop", "max_tokens": "length", "refusal": "content_filter"}[a.Stop]
	u := a.Usage
	return object{
		"id": fmt.Sprintf("chatcmpl-%d", r.N), "object": "chat.completion", "model": r.Model,
		"choices": []any{object{"index": 0, "message": message, "finish_reason": cmp.Or(finish, a.Stop)}},
		"usage":   object{"prompt_tokens": u.Input + u.CacheRead, "completion_tokens": u.Output, "total_tokens": u.Input + u.CacheRead + u.Output},
	}
}
