package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/inspect/ui"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// service has the sessions. One that has failed stays until it is deleted, so that people
// can see why.
type service struct {
	rt             *runtime.Runtime
	opts           *sdk.Options
	patience, beat time.Duration // how long a reader may take nothing; between signs of life
	sessions       sync.Map      // string to *conversation
	waiting        sync.Map      // string to *ask: the calls that wait for a person
	window         string        // its path, which no other program of this machine can guess
}

type ask = sdk.Ask[sdk.ToolPermissionRequest, sdk.PermissionResult]

var errNone = errors.New("there is none with this id, or not any more")

// routes refuses requests without the token, or from another site.
func (s *service) routes(token string) http.Handler {
	mux := http.NewServeMux()
	for pattern, do := range map[string]func(http.ResponseWriter, *http.Request, *conversation) (any, error){
		"POST /sessions": s.create, "GET /sessions": s.list, "DELETE /sessions/{id}": s.remove, "GET /sessions/{id}/events": s.events,
		"POST /sessions/{id}/messages": s.send, "POST /sessions/{id}/interrupt": s.interrupt, "POST /approvals/{call}": s.decide, "GET /metrics": s.metrics,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			out, err := any(nil), errNone
			if found, ok := s.sessions.Load(r.PathValue("id")); ok || r.PathValue("id") == "" {
				c, _ := found.(*conversation)
				out, err = do(w, r, c)
			}
			switch {
			case errors.Is(err, errNone):
				http.Error(w, err.Error(), http.StatusNotFound)
			case errors.Is(err, session.ErrShutdown), errors.Is(err, session.ErrDraining):
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
			case err != nil:
				http.Error(w, err.Error(), http.StatusBadGateway)
			case out != nil:
				_ = json.NewEncoder(w).Encode(out) // who asked may have gone
			}
		})
	}
	all := http.NewServeMux()
	all.Handle("/", inspect.Access{Token: token}.Protect(mux))
	all.Handle(s.window, ui.Handler(s.rt, ui.Config{Access: inspect.Access{Token: token, Content: true, Steer: true}}))
	return all
}

// create opens a session, which lives until it is deleted or fails.
func (s *service) create(w http.ResponseWriter, r *http.Request, _ *conversation) (any, error) {
	id, c, opts := rand.Text(), &conversation{next: 1, news: make(chan struct{})}, *s.opts
	opts.OnEvent = func(e sdk.EventRecord) { c.tell("event", fmt.Sprint(e.Event)) }
	c.client = sdk.NewInteractive(&opts)
	err := c.client.Connect(r.Context())
	if err == nil {
		go c.read(s.asks) //nolint:gosec // it outlives the request that opens the session
		_, err = s.send(w, r, c)
	}
	if err != nil {
		return nil, errors.Join(err, c.client.Close(context.WithoutCancel(r.Context())))
	}
	s.sessions.Store(id, c)
	return map[string]string{"id": id}, nil
}

func (s *service) list(http.ResponseWriter, *http.Request, *conversation) (any, error) {
	states := map[string]string{}
	s.sessions.Range(func(id, c any) bool { states[id.(string)] = c.(*conversation).client.State().String(); return true })
	return states, nil
}

func (s *service) send(_ http.ResponseWriter, r *http.Request, c *conversation) (any, error) {
	_, err := c.client.Send(r.Context(), sdk.UserText(r.FormValue("text")))
	return nil, err
}

func (s *service) interrupt(_ http.ResponseWriter, r *http.Request, c *conversation) (any, error) {
	return c.client.Stop(r.Context(), session.StopScope{Turn: true, Queued: true})
}

// remove ends a session, also if its caller has gone. The session's calls are denied.
func (s *service) remove(_ http.ResponseWriter, r *http.Request, c *conversation) (any, error) {
	s.sessions.Delete(r.PathValue("id"))
	return nil, c.client.Close(context.WithoutCancel(r.Context()))
}

// asks keeps a call until a person decides, or its turn or session ends.
func (s *service) asks(c *conversation, a *ask) {
	id := rand.Text()
	s.waiting.Store(id, a)
	defer s.waiting.Delete(id)
	c.tell("approval", map[string]any{"id": id, "tool": a.Request.ToolName, "input": a.Request.Input})
	<-a.Done()
}

// decide takes the verdict on a call, which counts once.
func (s *service) decide(_ http.ResponseWriter, r *http.Request, _ *conversation) (any, error) {
	answer := sdk.Deny("A person said no. " + r.FormValue("why"))
	if r.FormValue("allow") == "true" {
		answer = sdk.Allow()
	}
	if a, ok := s.waiting.Load(r.PathValue("call")); !ok || !a.(*ask).Answer(answer) {
		return nil, errNone
	}
	return nil, nil
}

// events streams what happens, from the event after Last-Event-ID on. A reader that is too
// slow gets the event resync, and then what comes from there on.
func (s *service) events(w http.ResponseWriter, r *http.Request, c *conversation) (any, error) {
	w.Header().Set("Content-Type", "text/event-stream")
	out, beat, sign := http.NewResponseController(w), time.NewTicker(s.beat), ""
	last, _ := strconv.Atoi(r.Header.Get("Last-Event-ID")) // 0: from the first that is kept
	for {
		events, news := c.after(&last)
		for _, e := range append(events, sign) {
			_ = out.SetWriteDeadline(time.Now().Add(s.patience))                  // not every writer has one
			if _, err := io.WriteString(w, e); err != nil || out.Flush() != nil { //nolint:gosec // no page, an event stream
				return nil, nil //nolint:nilerr // the reader has gone
			}
		}
		if news == nil {
			return nil, nil
		}
		select {
		case <-news:
			sign = ""
		case <-beat.C:
			sign = ":\n\n" // its write fails if the reader has gone
		case <-r.Context().Done():
			return nil, nil
		}
	}
}

// metrics are in the text format of Prometheus.
func (s *service) metrics(w http.ResponseWriter, _ *http.Request, _ *conversation) (any, error) {
	waiting, stat := 0, s.rt.AdmissionStat()
	s.waiting.Range(func(any, any) bool { waiting++; return true })
	_, err := fmt.Fprintf(w, "troupe_sessions %d\ntroupe_approvals_waiting %d\ntroupe_admission_queued %d\ntroupe_admission_wait_seconds_total %g\n",
		stat.Live, waiting, stat.Queued, stat.WaitTime.Seconds())
	return nil, err
}

// kept is how many events of a session a reader can get again.
const kept = 512

// conversation is a session with its last events. Readers take them from there when they
// like, so that a slow one holds up neither the session nor the others.
type conversation struct {
	client *sdk.Interactive
	mu     sync.Mutex
	events []string      // as they are sent
	next   int           // id of the next one; they count from 1
	news   chan struct{} // closed by the next one; nil after the end
}

// tell adds an event; without a kind it ends them.
func (c *conversation) tell(kind string, data any) {
	text, _ := json.Marshal(data) // it is text, or was JSON
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.news == nil {
		return
	}
	close(c.news)
	if c.news = nil; kind != "" {
		c.news = make(chan struct{})
		c.events = append(c.events, fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", c.next, kind, text))
		c.events = c.events[max(len(c.events)-kept, 0):]
		c.next++
	}
}

// after returns the events after the last one that a reader has, and what to wait for next.
// If some are not kept any more the first event is resync, which says so.
func (c *conversation) after(last *int) (events []string, news <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.next - len(c.events)
	if *last > 0 && *last+1 < first {
		events = []string{fmt.Sprintf("event: resync\ndata: %d\n\n", first)}
	}
	events = append(events, c.events[min(max(*last+1-first, 0), len(c.events)):]...)
	*last = c.next - 1
	return events, c.news
}

// read passes on what the agent says. It always reads, so that the session does not wait
// for the people who watch it.
func (c *conversation) read(asks func(*conversation, *ask)) {
	defer c.tell("", nil)
	for u, err := range c.client.Updates(context.Background()) {
		switch {
		case err != nil:
			c.tell("failed", err.Error())
		case u.Message != nil:
			c.tell("message", u.Message.Raw())
		case u.Permission != nil:
			go asks(c, u.Permission)
		}
	}
}
