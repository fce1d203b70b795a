package ui

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// Config configures a [Window]. The zero value answers requests by a Unix socket, and those
// with a login that [Window.Login] has made.
type Config struct {
	// Access says who may look, what is shown, and whether anything can be changed. Its
	// Content and Steer hold for every login and for the token.
	Access inspect.Access
	// Jobs returns the jobs that run in this program. It must be fast: it is called each
	// second while a page is open. The ids of the jobs differ. Default: no jobs.
	Jobs func() []Job
	// Desk has calls of tools that wait for a person at this window, besides those of Jobs.
	// Default: no calls.
	Desk *Desk
	// Hosts returns other programs, whose sessions and jobs are shown besides those of this one. It
	// is called several times a second while a page is open. Default: no other programs.
	Hosts func(context.Context) ([]Host, error)
}

// Window is the handler of the pages. It works at any path: relative addresses are all that
// its pages have. It is safe for concurrent use.
type Window struct {
	cfg     Config
	rt      *runtime.Runtime
	clock   session.Clock
	exec    session.Executor
	gate    gate
	local   *local
	hub     *hub
	assets  *assets
	books   books
	answers answers
	lives   lives
	others  others
	asks    questions
	mux     *http.ServeMux

	sweepMany int // the constant; tests take another number
}

// Handler returns the window of a runtime. It checks each request itself; see
// [inspect.Access]. Mount it at a path that ends in a slash. On a loopback address, where other
// programs have other ports, the path should be one that cannot be guessed: a browser sends the cookie
// of a login to all ports of a host, and to no other path.
func Handler(rt *runtime.Runtime, cfg Config) *Window {
	w := &Window{cfg: cfg, rt: rt, clock: rt.Clock(), exec: rt.Executor(), assets: loadAssets(), sweepMany: sweepMany}
	rt.KeepHistory()
	w.gate.access, w.gate.clock = cfg.Access, w.clock
	w.gate.name()
	w.local = &local{rt: rt}
	w.hub = newHub(w.clock, w.exec, w.pump)
	w.routes()
	return w
}

func (w *Window) routes() {
	mux := http.NewServeMux()
	open := func(pattern string, h http.HandlerFunc) { mux.HandleFunc(pattern, h) }
	read := func(pattern string, h handler) { mux.HandleFunc("GET "+pattern, w.reading(h)) }
	open("GET /login", w.loginByCode)
	open("POST /login", w.login)
	read("/api/hello", w.hello)
	read("/api/hosts", w.hosts)
	read("/api/tree", w.tree)
	read("/api/sessions", w.sessions)
	read("/api/history", w.history)
	read("/api/rows", w.inView)
	read("/api/sessions/{session}/options", w.withContent(w.options))
	read("/api/jobs", w.jobs)
	read("/api/jobs/{job}", w.job)
	read("/api/jobs/{job}/tasks", w.tasks)
	read("/api/jobs/{job}/tasks/{task}/transcript", w.withContent(w.transcript))
	read("/api/sessions/{session}/messages", w.withContent(w.messages))
	read("/api/sessions/{session}/timeline", w.timeline)
	read("/api/approvals", w.approvals)
	mux.HandleFunc("POST /logout", w.changing(false, w.logout))
	read("/events", w.events)
	w.steering(mux)
	open("GET /", w.asset)
	w.mux = mux
}

// Close ends the streams of all readers, and waits until nothing of the window runs. The end
// of the runtime does the same.
func (w *Window) Close() {
	w.hub.close()
	w.asks.close()
}

// ServeHTTP implements [http.Handler].
func (w *Window) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	secured(rw.Header())
	if err := w.gate.access.CheckSite(r); err != nil {
		refuse(rw, err)
		return
	}
	w.mux.ServeHTTP(rw, within(r))
}

// within is the request without the path under which the handler is mounted, which the
// pattern of the outer mux says. After http.StripPrefix there is nothing to cut.
func within(r *http.Request) *http.Request {
	_, pattern, _ := strings.Cut(r.Pattern, "/") // after the method and the host
	pattern = "/" + pattern
	if i := strings.LastIndex(pattern, "/{"); i >= 0 && strings.HasSuffix(pattern, "...}") {
		pattern = pattern[:i+1]
	}
	if r.Pattern == "" || pattern == "/" || !strings.HasSuffix(pattern, "/") {
		return r
	}
	cut := func(path string) (string, bool) {
		rest := path
		for part := range strings.SplitSeq(strings.Trim(pattern, "/"), "/") {
			first, after, ok := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
			if !ok || first != part && !strings.HasPrefix(part, "{") {
				return path, false
			}
			rest = "/" + after
		}
		return rest, true
	}
	path, ok := cut(r.URL.Path)
	if !ok {
		return r
	}
	inner := *r
	inner.URL = new(url.URL)
	*inner.URL = *r.URL
	inner.URL.Path = path
	if r.URL.RawPath != "" {
		inner.URL.RawPath, _ = cut(r.URL.RawPath)
	}
	return &inner
}
