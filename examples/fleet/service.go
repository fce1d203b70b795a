package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// service has the sessions. One that has failed stays until it is deleted, so that people
// can see why.
type service struct {
	rt      *runtime.Runtime
	opts    *sdk.Options
	token   string
	waiting approvals
	// patience is how long a reader of events may take nothing, and beat the time between
	// the signs of life that it gets.
	patience, beat time.Duration

	mu       sync.Mutex
	all      map[string]*conversation
	draining bool
}

func newService(rt *runtime.Runtime, opts *sdk.Options, token string) *service {
	return &service{
		rt: rt, opts: opts, token: token, waiting: approvals{all: map[string]*approval{}}, all: map[string]*conversation{},
		patience: 30 * time.Second, beat: 15 * time.Second,
	}
}

func (s *service) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sessions", s.create)
	mux.HandleFunc("GET /sessions", s.list)
	mux.HandleFunc("GET /sessions/{id}/events", s.with(s.events))
	mux.HandleFunc("POST /sessions/{id}/messages", s.with(s.send))
	mux.HandleFunc("POST /sessions/{id}/interrupt", s.with(s.interrupt))
	mux.HandleFunc("DELETE /sessions/{id}", s.with(s.remove))
	mux.HandleFunc("GET /approvals", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, s.waiting.waiting()) })
	mux.HandleFunc("POST /approvals/{id}", s.decide)
	mux.HandleFunc("GET /metrics", s.metrics)
	return s.guard(http.NewCrossOriginProtection().Handler(mux))
}

// guard refuses requests without the token, or with the name of another site in their Host
// header.
func (s *service) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case host != "127.0.0.1" && host != "localhost":
			http.Error(w, "unknown host", http.StatusForbidden)
		case subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// with finds the session that the path names.
func (s *service) with(do func(http.ResponseWriter, *http.Request, *conversation)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		c := s.all[r.PathValue("id")]
		s.mu.Unlock()
		if c == nil {
			http.Error(w, "there is no such session", http.StatusNotFound)
			return
		}
		do(w, r, c)
	}
}

// busy reports whether the service takes nothing new, and says so.
func (s *service) busy(w http.ResponseWriter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		w.Header().Set("Retry-After", "60")
		http.Error(w, "the service is ending", http.StatusServiceUnavailable)
	}
	return s.draining
}

func (s *service) create(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Prompt string `json:"prompt"`
	}
	if !read(w, r, &body) || s.busy(w) {
		return
	}
	c, err := s.converse(r.Context(), rand.Text())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	s.mu.Lock()
	late := s.draining
	if !late {
		s.all[c.id] = c
	}
	s.mu.Unlock()
	if late {
		_ = c.end(r.Context()) // it has done nothing
		s.busy(w)
		return
	}
	if body.Prompt != "" {
		if _, err := c.client.Send(r.Context(), sdk.UserText(body.Prompt)); err != nil { // its id was not returned
			s.forget(c)
			http.Error(w, errors.Join(err, c.end(context.WithoutCancel(r.Context()))).Error(), http.StatusBadGateway)
			return
		}
	}
	reply(w, http.StatusCreated, map[string]string{"id": c.id})
}

func (s *service) list(w http.ResponseWriter, r *http.Request) {
	type row struct {
		ID        string    `json:"id"`
		State     string    `json:"state"`
		Began     time.Time `json:"began"`
		SessionID string    `json:"sessionId,omitempty"` // the agent's
	}
	rows := []row{}
	for _, c := range s.sessions() {
		rows = append(rows, row{c.id, c.client.State().String(), c.began, c.client.SessionID()})
	}
	reply(w, http.StatusOK, rows)
}

// sessions are all, the oldest first.
func (s *service) sessions() []*conversation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.all), func(a, b *conversation) int { return a.began.Compare(b.began) })
}

func (s *service) send(w http.ResponseWriter, r *http.Request, c *conversation) {
	var body struct {
		Text string `json:"text"`
	}
	if !read(w, r, &body) || s.busy(w) {
		return
	}
	turn, err := c.client.Send(r.Context(), sdk.UserText(body.Text))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	reply(w, http.StatusAccepted, map[string]string{"message": turn.UUID()})
}

func (s *service) interrupt(w http.ResponseWriter, r *http.Request, c *conversation) {
	receipt, err := c.client.Stop(r.Context(), session.StopScope{Turn: true, Queued: true})
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	reply(w, http.StatusOK, receipt)
}

func (s *service) remove(w http.ResponseWriter, r *http.Request, c *conversation) {
	s.forget(c)
	if err := c.end(context.WithoutCancel(r.Context())); err != nil { // also if the client no longer waits
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *service) forget(c *conversation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, c.id)
}

func (s *service) decide(w http.ResponseWriter, r *http.Request) {
	var v verdict
	if !read(w, r, &v) {
		return
	}
	status, problem := s.waiting.decide(r.PathValue("id"), v)
	if problem != "" {
		http.Error(w, problem, status)
		return
	}
	w.WriteHeader(status)
}

// events streams the events after Last-Event-ID. A reader that is too slow gets the event
// resync, and then the following ones.
func (s *service) events(w http.ResponseWriter, r *http.Request, c *conversation) {
	after, _ := strconv.Atoi(r.Header.Get("Last-Event-ID")) // 0: from the first that is kept
	in := c.feed.subscribe(after)
	defer c.feed.leave(in)
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	send := func(text string) bool {
		_ = out.SetWriteDeadline(time.Now().Add(s.patience)) // not every writer has one
		_, err := io.WriteString(w, text)
		return err == nil && out.Flush() == nil
	}
	write := func(id int, kind string, data []byte) bool {
		return send(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", id, kind, data))
	}
	beat := time.NewTicker(s.beat)
	defer beat.Stop()
	for {
		if next, missed := c.feed.resync(in); missed && !write(next-1, "resync", []byte(strconv.Itoa(next))) {
			return
		}
		select {
		case it, more := <-in.items:
			if !more || !write(it.ID, it.Kind, it.Data) {
				return
			}
		case <-beat.C: // finds a reader that has gone without a word
			if !send(":\n\n") {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// metrics are in the text format of Prometheus.
func (s *service) metrics(w http.ResponseWriter, _ *http.Request) {
	states := map[string]int{}
	for _, c := range s.sessions() {
		states[c.client.State().String()]++
	}
	stat := s.rt.AdmissionStat()
	var b bytes.Buffer
	for _, state := range slices.Sorted(maps.Keys(states)) {
		fmt.Fprintf(&b, "troupe_sessions{state=%q} %d\n", state, states[state])
	}
	fmt.Fprintf(&b, "troupe_admission_live %d\ntroupe_admission_queued %d\ntroupe_admission_admitted_total %d\n", stat.Live, stat.Queued, stat.Admitted)
	fmt.Fprintf(&b, "troupe_admission_wait_seconds_total %g\ntroupe_approvals_waiting %d\n", stat.WaitTime.Seconds(), len(s.waiting.waiting()))
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	_, _ = w.Write(b.Bytes()) // who asked may have gone
}

// drain takes nothing new, lets turns that run come to their end within the grace, and
// closes the sessions.
func (s *service) drain(ctx context.Context, grace time.Duration) {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	waiting, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	var all sync.WaitGroup
	for _, c := range s.sessions() {
		all.Go(func() {
			_ = c.client.AwaitIdle(waiting) // or the grace is over, and the close interrupts
			if err := c.end(ctx); err != nil {
				log.Println("a session ended, but:", err)
			}
		})
	}
	all.Wait()
}

// read reads the body of a request.
func read(w http.ResponseWriter, r *http.Request, to any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		http.Error(w, "the body is not what is expected: "+err.Error(), http.StatusBadRequest)
		return false
	}
	return true
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // who asked has gone
}
