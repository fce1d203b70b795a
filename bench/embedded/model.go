package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/bench/internal/measure"
	"github.com/agent-troupe/troupe/conformance/modelapi"
)

// A prompt says with a mark what the model does.
const (
	readMark = "[[read]]" // calls Read, and then says a word
	holdMark = "[[hold]]" // says a word every 3 seconds, until the request ends
	longMark = "[[long "  // says so many words as fast as they are read
)

// serve serves the model until its input ends.
func serve(dir string) error {
	scripted, err := modelapi.Start(modelapi.Config{WorkDir: dir})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var m model
	server := http.Server{Handler: &m, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }() // until the process ends
	if err := measure.Print(endpoints{Model: "http://" + l.Addr().String() + "/v1", Scripted: scripted.URL()}); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the other end closes it
	return nil
}

// model is the model's server.
type model struct {
	held atomic.Int64 // streams of holdMark that are open
}

// ServeHTTP plays a request. The last mark in it counts; a result of a tool behind that means
// that the call was made. GET returns how many streams are held.
func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		_, _ = fmt.Fprint(w, m.held.Load()) // the reader sees that it is cut off
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	_, mark, _ := cutLast(body, []byte("[["))
	w.Header().Set("Content-Type", "text/event-stream")
	s := stream{w: w}
	switch mark = append([]byte("[["), mark...); {
	case bytes.HasPrefix(mark, []byte(longMark)):
		count, _, _ := bytes.Cut(mark[len(longMark):], []byte("]]"))
		n, _ := strconv.Atoi(string(count)) // 0 words
		long := longAnswer
		if strings.HasSuffix(r.URL.Path, "/chat/completions") {
			long = longCompletion
		}
		for chunk := range slices.Chunk(long(n), 16<<10) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	case bytes.HasPrefix(mark, []byte(holdMark)):
		s.begin()
		s.event("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`)
		m.held.Add(1)
		defer m.held.Add(-1)
		for s.flush() {
			select {
			case <-r.Context().Done():
				return
			case <-time.After(3 * time.Second):
			}
			s.event("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":" some more text"}`)
		}
	case bytes.HasPrefix(mark, []byte(readMark)) && !bytes.Contains(mark, []byte(`"tool_result"`)):
		file, _, _ := bytes.Cut(mark[len(readMark):], []byte(`"`))
		s.begin()
		s.event("content_block_start", `"index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"Read","input":{}}`)
		input, _ := json.Marshal(`{"file_path": "` + strings.TrimSpace(string(file)) + `"}`) // a string
		s.event("content_block_delta", `"index":0,"delta":{"type":"input_json_delta","partial_json":`+string(input)+`}`)
		s.end("tool_use")
	default:
		s.begin()
		s.event("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`)
		s.event("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":"It is done."}`)
		s.end("end_turn")
	}
}

// cutLast is bytes.Cut at the last sep.
func cutLast(s, sep []byte) (before, after []byte, found bool) {
	i := bytes.LastIndex(s, sep)
	if i < 0 {
		return nil, nil, false
	}
	return s[:i], s[i+len(sep):], true
}

// stream writes events with the members in the order of the API.
type stream struct {
	w http.ResponseWriter
	b []byte
}

func (s *stream) event(kind, rest string) {
	s.b = fmt.Appendf(s.b, "event: %s\ndata: {\"type\":%q", kind, kind)
	if rest != "" {
		s.b = append(append(s.b, ','), rest...)
	}
	s.b = append(s.b, "}\n\n"...)
}

func (s *stream) begin() {
	s.event("message_start", `"message":{"id":"msg_01","type":"message","role":"assistant","model":"bench","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}`)
}

func (s *stream) end(reason string) {
	s.event("content_block_stop", `"index":0`)
	s.event("message_delta", `"delta":{"stop_reason":"`+reason+`","stop_sequence":null},"usage":{"output_tokens":5}`)
	s.event("message_stop", "")
	s.flush()
}

// flush reports whether the reader takes what was written.
func (s *stream) flush() bool {
	_, err := s.w.Write(s.b)
	s.b = s.b[:0]
	return err == nil && http.NewResponseController(s.w).Flush() == nil
}

// longAnswer is an answer of so many deltas, in the form of the Messages API.
func longAnswer(n int) []byte {
	var s stream
	s.begin()
	s.event("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`)
	for range n {
		s.event("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":" some text"}`)
	}
	s.event("content_block_stop", `"index":0`)
	s.event("message_delta", `"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}`)
	s.event("message_stop", "")
	return s.b
}

// longCompletion is the same in the form of chat completions.
func longCompletion(n int) []byte {
	const chunk = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764150000,"model":"bench","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{%s},"logprobs":null,"finish_reason":%s}]}` + "\n\n"
	var b []byte
	b = fmt.Appendf(b, chunk, `"role":"assistant","content":""`, "null")
	for range n {
		b = fmt.Appendf(b, chunk, `"content":" some text"`, "null")
	}
	b = fmt.Appendf(b, chunk, "", `"stop"`)
	return append(b, "data: [DONE]\n\n"...)
}
