package modelapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// object is a JSON object on its way out, with its members in the API's order.
type object []member

type member struct {
	name  string
	value any
}

// obj is an object of names and values by turns.
func obj(pairs ...any) object {
	o := make(object, 0, len(pairs)/2)
	for pair := range slices.Chunk(pairs, 2) {
		o = append(o, member{pair[0].(string), pair[1]})
	}
	return o
}

// with returns the object, where members of more replace those of their names.
func (o object) with(more Args) object {
	o = slices.Clone(o)
	for _, name := range slices.Sorted(maps.Keys(more)) {
		at := slices.IndexFunc(o, func(m member) bool { return m.name == name })
		if at < 0 {
			o = append(o, member{name, more[name]})
			continue
		}
		o[at].value = more[name]
	}
	return o
}

// MarshalJSON implements [json.Marshaler].
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		value, err := encode(m.value)
		if err != nil {
			return nil, err
		}
		b = append(append(strconv.AppendQuote(b, m.name), ':'), value...)
	}
	return append(b, '}'), nil
}

// encode leaves <, > and & as they are, as the API does.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}

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
	for name, value := range f.Header {
		w.Header().Set(name, value)
	}
	writeError(w, f.Status, f.Type, f.message())
}

func (f *Fault) message() string {
	if f.Message != "" {
		return f.Message
	}
	return "scripted " + strconv.Itoa(f.Status)
}

func (r *Raw) write(w http.ResponseWriter) {
	kind := cmp.Or(r.ContentType, "text/event-stream")
	w.Header().Set("Content-Type", kind)
	_, _ = io.WriteString(w, r.Body) // a failure means that the client has left
}

func writeError(w http.ResponseWriter, status int, kind, message string) {
	writeJSON(w, status, obj("type", "error", "error", obj("type", kind, "message", message)))
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	data, err := encode(v)
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

func (a answer) toolUseID(block int) string {
	if id := a.Blocks[block].id; id != "" {
		return id
	}
	return fmt.Sprintf("toolu_%s_%d", a.id, block)
}

func (a answer) message(content []object, stop any, usage object) object {
	return obj(
		"model", a.model, "id", a.id, "type", "message", "role", "assistant",
		"content", content, "stop_reason", stop, "stop_sequence", nil, "usage", usage.with(a.Usage),
	)
}

func (a answer) writeWhole(w http.ResponseWriter) {
	content := make([]object, len(a.Blocks))
	for i, b := range a.Blocks {
		switch b.kind {
		case kindThinking:
			content[i] = obj("type", b.kind, "thinking", b.text, "signature", signature)
		case kindToolUse:
			content[i] = obj("type", b.kind, "id", a.toolUseID(i), "name", b.name, "input", b.input)
		default:
			content[i] = obj("type", b.kind, "text", b.text)
		}
	}
	writeJSON(w, http.StatusOK, a.message(content, a.stop(), obj("input_tokens", 10, "output_tokens", 5)))
}

// stream writes server-sent events. After the first error it writes nothing.
type stream struct {
	w      http.ResponseWriter
	pause  func(time.Duration) error
	left   int // deltas until the cut; below zero means no cut
	events int // events until the cut; below zero means no cut
	stall  time.Duration
	err    error
}

func newStream(w http.ResponseWriter, a *answer, pause func(time.Duration) error) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	s := &stream{w: w, pause: pause, left: -1, events: -1}
	if a.cut {
		s.stall = a.Cut.Stall
		if s.left = a.Cut.After; a.Cut.Events > 0 {
			s.left, s.events = -1, a.Cut.Events
		}
	}
	return s
}

func (a answer) writeStream(w http.ResponseWriter, pause func(time.Duration) error) error {
	s := newStream(w, &a, pause)
	s.event("message_start", obj("type", "message_start", "message", a.message([]object{}, nil, obj(
		"input_tokens", 10, "cache_creation_input_tokens", 0, "cache_read_input_tokens", 0, "output_tokens", 1,
	))))
	for i, b := range a.Blocks {
		a.writeBlock(s, i, b)
	}
	if a.Broken != nil {
		s.event("error", obj("type", "error", "error", obj("type", a.Broken.Type, "message", a.Broken.message())))
		return s.end(&a)
	}
	delta := obj("stop_reason", a.stop(), "stop_sequence", nil)
	if a.Check != nil {
		delta = append(delta, member{"safeguard_results", a.verdicts()})
	}
	usage := obj("output_tokens", 5)
	if n, set := a.Usage["output_tokens"]; set {
		usage[0].value = n
	}
	s.event("message_delta", obj("type", "message_delta", "delta", delta.with(a.Delta), "usage", usage))
	s.event("message_stop", obj("type", "message_stop"))
	return s.end(&a)
}

// end is the error of the stream; a clean cut is not an error.
func (s *stream) end(a *answer) error {
	if !errors.Is(s.err, errCut) {
		return s.err
	}
	if err := s.pause(s.stall); err != nil {
		return err
	}
	if a.Cut.Clean {
		return nil
	}
	return s.err
}

// verdicts has the form that Claude Code 2.1.329 reads.
func (a answer) verdicts() []object {
	verdict := obj("type", "evaluated", "outcome", "not_flagged")
	if a.Check.Flagged {
		verdict = obj("type", "evaluated", "outcome", "flagged", "explanation", a.Check.Explanation)
	}
	calls := object{}
	for i, b := range a.Blocks {
		if b.kind == kindToolUse {
			calls = append(calls, member{a.toolUseID(i), verdict})
		}
	}
	return []object{obj("type", "dangerous_tool_use", "status", obj("type", "available", "tool_uses", calls))}
}

func (a answer) writeBlock(s *stream, i int, b Block) {
	start := func(block object) {
		s.event("content_block_start", obj("type", "content_block_start", "index", i, "content_block", block))
	}
	s.wait(b.pause)
	switch b.kind {
	case kindThinking:
		start(obj("type", b.kind, "thinking", "", "signature", ""))
		s.delta(i, obj("type", "thinking_delta", "thinking", b.text))
		s.delta(i, obj("type", "signature_delta", "signature", signature))
	case kindToolUse:
		start(obj("type", b.kind, "id", a.toolUseID(i), "name", b.name, "input", obj()))
		input, err := b.inputText()
		if err != nil {
			s.fail(err)
		}
		parts := []string{input}
		if b.raw != nil {
			parts = pieces(input, 2)
		}
		for _, part := range parts {
			s.delta(i, obj("type", "input_json_delta", "partial_json", part))
		}
	default:
		start(obj("type", b.kind, "text", ""))
		for _, piece := range pieces(b.text, a.Chunks) {
			s.delta(i, obj("type", "text_delta", "text", piece))
			s.wait(a.ChunkDelay)
		}
	}
	s.event("content_block_stop", obj("type", "content_block_stop", "index", i))
}

// inputText is the input of a call as it is streamed.
func (b *Block) inputText() (string, error) {
	if b.raw != nil {
		return *b.raw, nil
	}
	input, err := encode(b.input)
	if err != nil {
		return "", fmt.Errorf("input of tool %s: %w", b.name, err)
	}
	return string(input), nil
}

func (s *stream) delta(index int, delta object) {
	s.piece("content_block_delta", obj("type", "content_block_delta", "index", index, "delta", delta))
}

// piece is an event that a cut may count.
func (s *stream) piece(name string, data object) {
	if s.left == 0 {
		s.fail(errCut)
	}
	s.left--
	s.event(name, data)
}

// event writes an event; without a name, its data alone.
func (s *stream) event(name string, data object) {
	if s.events == 0 {
		s.fail(errCut)
	}
	s.events--
	if s.err != nil {
		return
	}
	raw, err := encode(data)
	if err != nil {
		s.fail(err)
		return
	}
	s.write(name, string(raw))
}

func (s *stream) write(name, data string) {
	if s.err != nil {
		return
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	if _, err := fmt.Fprintf(s.w, "%sdata: %s\n\n", name, data); err != nil {
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
