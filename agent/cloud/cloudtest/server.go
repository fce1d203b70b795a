package cloudtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// Server is the service. The zero value is ready to use. Its exported fields must be set before
// the first request. It is safe for concurrent use.
type Server struct {
	Clock session.Clock    // nil: the time of this process
	Exec  session.Executor // nil: goroutines
	// Turn returns what the agent does for a message. nil: [Answer].
	Turn func(turn, text string) []Step
	// Fault returns the fault of request n, from 1, or nil.
	Fault func(n int, r *Request) *Fault
	// Token is the access token that requests must have; "": any.
	Token string
	// WithoutTurnIDs says that the answer to a message has no turn id.
	WithoutTurnIDs bool

	mu       sync.Mutex
	requests []*Request
	sessions map[string]*conversation
	created  int
	taken    []string // texts of the messages that arrived, in order
	streams  int      // open
	archived []string // ids of sessions and agents, in order
	deleted  []string
}

// Request is a request that was made.
type Request struct {
	Method, Path string     // the path without that of the service's address
	Query        url.Values // of a GET
	Header       http.Header
	Body         string // JSON; "": none
}

// Stream reports whether it opens a stream of events.
func (r *Request) Stream() bool { return strings.HasSuffix(r.Path, "/events/stream") }

// Step is an event, and when it comes.
type Step struct {
	After time.Duration // since the step before it
	Event Event
}

// Event is an event of a session.
type Event struct {
	ID   string // "": the server chooses; "-": no id
	Name string
	Data map[string]any // type and turn_id are added, unless they are there
}

// Fault is what goes wrong with one request. The zero value is nothing.
type Fault struct {
	NoConnection bool          // the request surely does not arrive
	Delay        time.Duration // until the answer
	Status       int           // of the answer; 0: as it should be. Below 500 the request has no effect
	RetryAfter   string        // header of that answer
	NoEffect     bool          // with a Status of 500 or more: the request has no effect either
	Lost         bool          // the request has its effect, and the connection breaks before the answer

	// For streams. Bytes count from the first one.
	ResetAt   int           // the connection breaks after so many bytes; below 0: at once
	EndAt     int           // the stream ends after so many bytes
	SilentAt  int           // nothing comes after so many bytes; below 0: nothing comes at all
	Drip      time.Duration // between two bytes; 0: they come at once
	Twice     bool          // every event comes twice
	Swapped   bool          // of each two events of a turn that are there, the second comes first; its end stays last
	FromStart bool          // after_id and Last-Event-ID are ignored
}

// conversation is a session in the cloud.
type conversation struct {
	id      string
	log     []Event
	turns   int
	running []string      // turn ids, oldest first
	changed chan struct{} // closed at the next event
}

// Answer is what an agent does that repeats the message.
func Answer(turn, text string) []Step {
	content := func(text string) map[string]any {
		return map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}
	}
	return []Step{
		{Event: Event{Name: "user.message", Data: content(text)}},
		{After: time.Second, Event: Event{Name: "agent.message", Data: content("answer to " + text + " in " + turn)}},
		{Event: Event{Name: "span.model_request_end", Data: map[string]any{"model": "auto", "usage": map[string]any{"input_tokens": 11, "output_tokens": 7, "cost_usd": 0.25}}}},
		{After: time.Second, Event: Event{Name: "session.status_idle"}},
	}
}

// Requests returns the requests so far.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Messages returns the texts of the messages that had their effect, in order.
func (s *Server) Messages() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.taken)
}

// Archived returns the ids of the sessions and agents that were archived, in order.
func (s *Server) Archived() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.archived)
}

// Deleted returns the ids of the sessions and agents that were deleted, in order. They do not
// exist any more.
func (s *Server) Deleted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.deleted)
}

// Streams returns how many streams of events are open.
func (s *Server) Streams() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams
}

// Emit adds an event to a session, which exists from its first use.
func (s *Server) Emit(id string, e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emit(s.conversation(id), "", e)
}

func (s *Server) conversation(id string) *conversation {
	if s.sessions == nil {
		s.sessions = make(map[string]*conversation)
	}
	if s.sessions[id] == nil {
		s.sessions[id] = &conversation{id: id, changed: make(chan struct{})}
	}
	return s.sessions[id]
}

func (s *Server) emit(c *conversation, turn string, e Event) {
	data := map[string]any{"type": e.Name}
	if turn != "" {
		data["turn_id"] = turn
	}
	maps.Copy(data, e.Data)
	e.Data = data
	if e.ID == "" {
		e.ID = fmt.Sprintf("e%d", len(c.log)+1)
	}
	c.log = append(c.log, e)
	if e.Name == "session.status_idle" {
		c.running = slices.DeleteFunc(c.running, func(t string) bool { return t == turn })
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

func (s *Server) clock() session.Clock {
	if s.Clock == nil {
		return kernel.NewClock(nil)
	}
	return s.Clock
}

func (s *Server) exec() session.Executor {
	if s.Exec == nil {
		return kernel.GoExecutor{}
	}
	return s.Exec
}

// RoundTrip implements http.RoundTripper.
func (s *Server) RoundTrip(req *http.Request) (*http.Response, error) {
	r := &Request{Method: req.Method, Path: req.URL.EscapedPath(), Query: req.URL.Query(), Header: req.Header.Clone()}
	for _, root := range []string{"/agents", "/sessions"} {
		if i := strings.Index(r.Path, root); i >= 0 {
			r.Path = r.Path[i:]
			break
		}
	}
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		_ = req.Body.Close() // a reader in memory
		r.Body = string(body)
	}
	s.mu.Lock()
	s.requests = append(s.requests, r)
	n := len(s.requests)
	s.mu.Unlock()
	f := &Fault{}
	if s.Fault != nil {
		if some := s.Fault(n, r); some != nil {
			f = some
		}
	}
	if f.NoConnection {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	status, body := http.StatusOK, ""
	switch {
	case f.Status != 0:
		status, body = f.Status, "fault"
	case s.Token != "" && req.Header.Get("Authorization") != "Bearer "+s.Token:
		status, body = http.StatusUnauthorized, `{"type":"error","request_id":"r1","error":{"type":"authentication_error","message":"bad token"}}`
	}
	if !r.Stream() && (status < 300 || status >= 500 && !f.NoEffect) {
		s.mu.Lock()
		answer, found := s.handle(r)
		s.mu.Unlock()
		if status < 300 {
			if body = answer; !found {
				status = http.StatusNotFound
			}
		}
	}
	if !s.wait(req.Context(), f.Delay) {
		return nil, context.Cause(req.Context())
	}
	if f.Lost {
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: req}
	if f.RetryAfter != "" {
		resp.Header.Set("Retry-After", f.RetryAfter)
	}
	if r.Stream() && status < 300 {
		resp.Body = s.stream(req.Context(), r, f)
	}
	return resp, nil
}

// wait reports false if ctx ends before.
func (s *Server) wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	over := make(chan struct{})
	t := s.clock().AfterFunc(d, func() { close(over) })
	defer t.Stop()
	return s.exec().Await(ctx, over) == nil
}

// handle has a request have its effect and returns the answer; mu is held.
func (s *Server) handle(r *Request) (answer string, found bool) {
	switch r.Path {
	case "/agents":
		s.created++
		return fmt.Sprintf(`{"id":"agent_%d","type":"agent"}`, s.created), true
	case "/sessions":
		s.created++
		return fmt.Sprintf(`{"id":"sess_%d","type":"session","status":"idle"}`, s.created), true
	}
	_, path, _ := strings.Cut(r.Path[1:], "/")
	id, rest, _ := strings.Cut(path, "/")
	if plain, err := url.PathUnescape(id); err == nil {
		id = plain
	}
	if slices.Contains(s.deleted, id) {
		return `{"type":"error","request_id":"r1","error":{"type":"not_found_error","message":"there is no ` + id + `"}}`, false
	}
	switch {
	case r.Method == http.MethodDelete && rest == "":
		s.deleted = append(s.deleted, id)
		return fmt.Sprintf(`{"id":%q,"deleted":true}`, id), true
	case rest == "archive":
		s.archived = append(s.archived, id)
		return fmt.Sprintf(`{"id":%q}`, id), true
	case !strings.HasPrefix(r.Path, "/sessions/"):
		return `{"error":{"message":"unknown path"}}`, false
	}
	var body struct {
		Events []struct{ Type, Content string }
	}
	if rest != "events" || json.Unmarshal([]byte(r.Body), &body) != nil {
		return `{"error":{"message":"unknown path"}}`, false
	}
	c := s.conversation(id)
	var said []map[string]string
	for _, e := range body.Events {
		one := map[string]string{"type": e.Type, "turn_id": s.event(c, e.Type, e.Content)}
		if s.WithoutTurnIDs {
			delete(one, "turn_id")
		}
		said = append(said, one)
	}
	text, err := json.Marshal(map[string]any{"data": said})
	if err != nil {
		return "", false
	}
	return string(text), true
}

// event takes an event of the user's and returns its turn.
func (s *Server) event(c *conversation, kind, text string) string {
	if kind != "user.message" {
		for _, turn := range slices.Clone(c.running) {
			s.emit(c, turn, Event{Name: kind})
			s.emit(c, turn, Event{Name: "session.status_idle"})
		}
		return ""
	}
	s.taken = append(s.taken, text)
	c.turns++
	turn := "turn_" + strconv.Itoa(c.turns)
	c.running = append(c.running, turn)
	steps := Answer
	if s.Turn != nil {
		steps = s.Turn
	}
	s.play(c, turn, steps(turn, text))
	return turn
}

// play emits the steps of a turn until it was interrupted; mu is held.
func (s *Server) play(c *conversation, turn string, steps []Step) {
	for len(steps) > 0 && steps[0].After <= 0 {
		s.emit(c, turn, steps[0].Event)
		steps = steps[1:]
	}
	if len(steps) == 0 {
		return
	}
	s.clock().AfterFunc(steps[0].After, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if slices.Contains(c.running, turn) {
			steps[0].After = 0
			s.play(c, turn, steps)
		}
	})
}
