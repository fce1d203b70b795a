package modelapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// errCut marks a stream that its scenario breaks off.
var errCut = errors.New("the scenario cuts the stream here")

const (
	// logLimit is how many requests the log keeps.
	logLimit = 1000
	// bodyLimit is the largest request read: far above any real conversation.
	bodyLimit = 64 << 20
)

// Config configures a [Server]. The zero value works.
type Config struct {
	// WorkDir is where the file scenarios read and write: the agent's working
	// directory. Empty means paths relative to it.
	WorkDir string
	// Scenarios are added to the built-in ones; on a name in both, these win.
	Scenarios map[string]Scenario
	// Answer, when set, replies to requests whose prompts have no marker. It runs like a
	// [Step].
	Answer Step
	// CountTokens, when set, is the answer of the endpoint that counts tokens; nil: 10.
	CountTokens func(Request) int
	// NoLog keeps no log: for thousands of clients, whose bodies are memory. [Server.Requests]
	// and [Server.Wait] see nothing then.
	NoLog bool
}

// Server is a scripted model endpoint on a loopback port. Its methods are safe
// for concurrent use.
type Server struct {
	config   Config
	http     *http.Server
	listener net.Listener
	closing  context.CancelFunc
	served   chan struct{}
	conns    sync.WaitGroup // connections that are served

	mu        sync.Mutex
	scenarios map[string]Scenario
	tries     map[Marker]int // calls of steps that fail or cut
	log       []Request
	logged    chan struct{} // closed and replaced with each new entry
	seq       int
}

// Start listens on a free port of 127.0.0.1 and serves until [Server.Close].
func Start(c Config) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the scripted model endpoint: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		config:    c,
		listener:  listener,
		closing:   cancel,
		served:    make(chan struct{}),
		scenarios: Builtin(),
		tries:     map[Marker]int{},
		logged:    make(chan struct{}),
	}
	maps.Copy(s.scenarios, c.Scenarios)
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second,
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				s.conns.Add(1)
			case http.StateClosed, http.StateHijacked:
				s.conns.Done()
			default:
			}
		},
	}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(listener) // always ErrServerClosed: Close is the only way out
	}()
	return s, nil
}

// URL is the base URL to give to the agent, without a slash at its end.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Close drops every connection, ends hanging calls and waits until the port is
// free and no connection is served any more. Calling it again does nothing.
func (s *Server) Close() error {
	s.closing()
	err := s.http.Close()
	<-s.served // from now on no connection is accepted
	s.conns.Wait()
	return err
}

// Script adds a scenario, or replaces the one of that name.
func (s *Server) Script(name string, steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scenarios[name] = steps
}

// Reset forgets the log and the counts of failures and cuts.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = nil
	clear(s.tries)
}

// Requests returns the log, oldest first: the last 1,000 requests.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// Wait returns the first request in the log that match accepts, and waits for it if
// necessary. It returns the cause of the context's end when that comes first.
func (s *Server) Wait(ctx context.Context, match func(Request) bool) (Request, error) {
	for {
		s.mu.Lock()
		i := slices.IndexFunc(s.log, match)
		if i >= 0 {
			defer s.mu.Unlock()
			return s.log[i], nil
		}
		logged := s.logged
		s.mu.Unlock()
		select {
		case <-logged:
		case <-ctx.Done():
			return Request{}, fmt.Errorf("wait for a model request: %w", context.Cause(ctx))
		}
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimit))
	if err != nil {
		writeError(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	entry := Request{
		At: time.Now(), Endpoint: endpoint(r), Method: r.Method, Path: r.URL.RequestURI(),
		Header: r.Header.Clone(), Body: data,
	}
	var bad error
	if entry.Endpoint != Unknown {
		bad = entry.read()
	}
	s.record(&entry)
	w.Header().Set("Request-Id", fmt.Sprintf("req_%d", entry.Seq))
	switch {
	case bad != nil:
		writeError(w, http.StatusBadRequest, "invalid_request_error", bad.Error())
	case entry.Endpoint == CountTokens:
		count := 10
		if s.config.CountTokens != nil {
			count = s.config.CountTokens(entry)
		}
		writeJSON(w, http.StatusOK, obj("input_tokens", count))
	case entry.Endpoint == Unknown:
		writeError(w, http.StatusNotFound, "not_found_error", "no such endpoint: "+r.Method+" "+r.URL.Path)
	default:
		s.answer(w, r, entry)
	}
}

func endpoint(r *http.Request) Endpoint {
	path := strings.TrimSuffix(r.URL.Path, "/")
	if r.Method != http.MethodPost {
		return Unknown
	}
	switch path {
	case "/v1/messages":
		return Messages
	case "/v1/messages/count_tokens":
		return CountTokens
	case "/v1/chat/completions":
		return Chat
	case "/v1/responses":
		return Responses
	}
	if _, method := geminiMethod(path); method == generate || method == streamGenerate {
		return Gemini
	}
	return Unknown
}

func (s *Server) record(entry *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	entry.Seq = s.seq
	if s.config.NoLog {
		return
	}
	if len(s.log) == logLimit {
		s.log = slices.Delete(s.log, 0, 1)
	}
	s.log = append(s.log, *entry)
	close(s.logged)
	s.logged = make(chan struct{})
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, entry Request) {
	reply := s.reply(entry)
	fail, cut := s.spoil(entry.Marker, reply)
	if fail && reply.Fault.Status != 0 {
		reply.Fault.write(w)
		return
	}
	if reply.Hang {
		<-r.Context().Done()
	}
	if reply.Hang || fail {
		panic(http.ErrAbortHandler) // the way net/http drops a connection without an answer
	}
	if reply.Raw != nil {
		reply.Raw.write(w)
		return
	}
	pause := func(d time.Duration) error { return sleep(r.Context(), d) }
	if pause(reply.Delay) != nil {
		return
	}
	a := answer{Reply: reply, id: cmp.Or(reply.ID, fmt.Sprintf("msg_%d", entry.Seq)), model: entry.Model, cut: cut}
	write, whole := a.writeStream, a.writeWhole
	switch entry.Endpoint {
	case Chat:
		write, whole = a.streamChat(entry.wantsUsage), a.writeChat
	case Responses:
		write, whole = a.streamResponse, a.writeResponse
	case Gemini:
		write, whole = a.streamGemini, a.writeGemini
	case Messages, CountTokens, Unknown:
	}
	if !entry.Stream {
		whole(w)
		return
	}
	if write(w, pause) != nil {
		panic(http.ErrAbortHandler)
	}
}

func (s *Server) reply(entry Request) Reply {
	m := entry.Marker
	if m.Scenario == "" && s.config.Answer != nil {
		return s.config.Answer(Call{Marker: m, WorkDir: s.config.WorkDir, Request: entry})
	}
	if m.Scenario == "" {
		return Reply{Blocks: []Block{Text("No marker; a plain scripted answer.")}}
	}
	s.mu.Lock()
	scenario, known := s.scenarios[m.Scenario]
	s.mu.Unlock()
	if !known {
		return Reply{Blocks: []Block{Text("No scenario is named " + m.Scenario + ".")}}
	}
	if m.Step >= len(scenario) {
		return Reply{Blocks: []Block{Text(fmt.Sprintf("Script over (%s step %d).", m.Scenario, m.Step))}}
	}
	return scenario[m.Step](Call{Marker: m, WorkDir: s.config.WorkDir, Request: entry})
}

// spoil counts the call and says whether it fails or is cut.
func (s *Server) spoil(m Marker, r Reply) (fail, cut bool) {
	if r.Fault == nil && r.Cut == nil {
		return false, false
	}
	s.mu.Lock()
	s.tries[m]++
	left := s.tries[m]
	s.mu.Unlock()
	if r.Fault != nil {
		if left <= r.Fault.Times {
			return true, false
		}
		left -= r.Fault.Times
	}
	return false, r.Cut != nil && left <= r.Cut.Times
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
