package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/protocol/view"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// sessions are the open ones: a client for each page.
type sessions struct {
	opts sdk.Options
	byID sync.Map // string to *sdk.Client; the ids are secrets of their pages
}

func newSessions(opts sdk.Options) *sessions {
	opts.IncludePartialMessages = true
	return &sessions{opts: opts}
}

// routes answers only requests to the name 127.0.0.1 that come from its own page:
// other sites must not send prompts to an agent.
func (s *sessions) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET 127.0.0.1/{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) })
	mux.HandleFunc("GET 127.0.0.1/events", s.events)
	mux.HandleFunc("POST 127.0.0.1/sessions/{id}/prompt", s.control(func(ctx context.Context, c *sdk.Client, r *http.Request) error {
		_, err := c.Send(ctx, sdk.UserText(r.FormValue("text")))
		return err
	}))
	mux.HandleFunc("POST 127.0.0.1/sessions/{id}/interrupt", s.control(func(ctx context.Context, c *sdk.Client, _ *http.Request) error {
		_, err := c.Interrupt(ctx)
		return err
	}))
	return http.NewCrossOriginProtection().Handler(mux)
}

// events opens a session and streams it until the page is closed.
func (s *sessions) events(w http.ResponseWriter, r *http.Request) {
	ctx, id := r.Context(), rand.Text()
	out := &stream{w: w}
	defer out.end()
	w.Header().Set("Content-Type", "text/event-stream")

	opts := s.opts
	opts.OnEvent = func(e sdk.EventRecord) {
		if state, ok := e.Event.(*session.StateChanged); ok {
			out.send("state", state.To)
		}
	}
	client := sdk.NewClient(&opts)
	err := client.Connect(ctx)
	if err == nil {
		s.byID.Store(id, client)
		defer s.byID.Delete(id)
		out.send("session", id)
		for m, e := range client.Messages(ctx) {
			if err = e; err == nil {
				out.show(m)
			}
		}
	}
	if err != nil && ctx.Err() == nil {
		out.send("failed", err.Error())
	}
	if err = client.Close(context.WithoutCancel(ctx)); err != nil {
		log.Println("session closed, but:", err)
		return
	}
	log.Println("session closed")
}

// control returns a handler that calls do with the session in the request's path.
func (s *sessions) control(do func(context.Context, *sdk.Client, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		client, ok := s.byID.Load(r.PathValue("id"))
		if !ok {
			http.Error(w, "this session is over; reload the page", http.StatusNotFound)
			return
		}
		if err := do(r.Context(), client.(*sdk.Client), r); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// stream is one page's events. Messages and states come from two goroutines.
type stream struct {
	calls view.ToolCalls // only show uses it

	mu   sync.Mutex
	w    http.ResponseWriter
	over bool
}

// end makes send drop events after the request is over.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

// send writes one event. A page that reads slowly makes the agent wait. When a write
// takes longer than 30 s, later events are dropped.
func (s *stream) send(kind string, data any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	text, err := json.Marshal(data)
	if err == nil {
		c := http.NewResponseController(s.w)
		_ = c.SetWriteDeadline(time.Now().Add(30 * time.Second))
		_, err = fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", kind, text)
		err = errors.Join(err, c.Flush())
	}
	s.over = err != nil
}

// show sends the parts of a message that the page shows.
func (s *stream) show(m sdk.Message) {
	for _, call := range s.calls.Add(m) { // the calls that m has news about
		switch {
		case call.State != view.CallRunning:
			output := string(call.State)
			if call.Result != nil {
				output = call.Result.Content.Text()
			}
			s.send("output", output)
		case call.Elapsed == 0: // the call begins; later updates only report that it still runs
			s.send("call", map[string]any{"name": call.Name, "input": call.Raw})
		}
	}
	switch m := m.(type) {
	case *sdk.PartialAssistantMessage:
		if text := m.Text(); text != "" {
			s.send("text", text)
		}
	case *sdk.ResultMessage:
		s.calls.Forget() // the page has them
		done := map[string]any{"ok": !m.Failed()}
		if strings.HasPrefix(m.TerminalReason, "aborted") {
			done["why"] = "stopped"
		} else if m.Failed() {
			done["why"] = (&sdk.ResultError{Result: m}).Error()
		}
		s.send("done", done)
	}
}
