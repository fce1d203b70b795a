package ui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/runtime"
)

// Host is another program, whose sessions and jobs a window shows, and steers where
// [inspect.Access.Steer] of both allows it. A method that a host does not support returns an
// error that matches [ErrUnsupported], and the pages leave that part out. Implementations are safe for concurrent use.
type Host interface {
	// ID is the id of the host, which is part of addresses. It differs from that of others.
	ID() string
	// Report asks the host for its sessions.
	Report(ctx context.Context) (*inspect.Report, error)
	// Events calls each with what happens there from now on, until ctx ends, each returns
	// false, or the host ends.
	Events(ctx context.Context, each func(inspect.Event) bool) error
	// History is what the host has measured in the last 15 minutes, 3 hours or day, as
	// [runtime.Runtime.History] has it.
	History(ctx context.Context, window time.Duration) (runtime.History, error)
	// Jobs are the jobs that run there. Values of the same job are equal.
	Jobs(ctx context.Context) ([]Job, error)
	// Do carries out a decision about the host itself, its sessions or accounts.
	Do(ctx context.Context, c Command) error
}

// others are the hosts besides this program.
type others struct {
	mu       sync.Mutex
	last     map[string]*inspect.Report // what they have said last, by id
	followed map[string]bool            // hosts whose events are read, or that have no events
}

// all are the hosts that there are now.
func (o *others) all(ctx context.Context, w *Window) []Host {
	if w.cfg.Hosts == nil {
		return nil
	}
	hosts, err := w.cfg.Hosts(ctx)
	if err != nil {
		return nil // as if no program showed its sessions
	}
	return hosts
}

// ask asks all hosts. Those that do not answer are left out.
func (o *others) ask(ctx context.Context, w *Window) map[string]*inspect.Report {
	hosts := o.all(ctx, w)
	if hosts == nil {
		return nil
	}
	reports := answersOf(ctx, w, "report", hosts, func(ctx context.Context, h Host) (*inspect.Report, error) { return h.Report(ctx) })
	all := map[string]*inspect.Report{}
	for i, r := range reports {
		if r != nil {
			all[hosts[i].ID()] = r
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = all
	return all
}

// there is the host that a request names. ok is false if it names none; the request is answered
// if no host has this name.
func (w *Window) there(rw http.ResponseWriter, r *http.Request) (h Host, ok bool) {
	id := r.URL.Query().Get("host")
	if id == "" {
		return nil, false
	}
	for _, h := range w.others.all(r.Context(), w) {
		if h.ID() == id {
			return h, true
		}
	}
	missing(rw, "host")
	return nil, true
}

// rowsOf are the sessions of other hosts.
func rowsOf(all map[string]*inspect.Report) []row {
	var rows []row
	for _, id := range slices.Sorted(maps.Keys(all)) {
		for i := range all[id].Tree.Sessions {
			r := rowOf(&all[id].Tree.Sessions[i])
			r.Host = id
			rows = append(rows, r)
		}
	}
	return rows
}

// asked is what the host that the request names has said. ok is false if the request is
// about this program.
func (w *Window) asked(rw http.ResponseWriter, r *http.Request) (report *inspect.Report, ok bool) {
	id := r.URL.Query().Get("host")
	if id == "" {
		return nil, false
	}
	if report = w.others.ask(r.Context(), w)[id]; report == nil {
		missing(rw, "host")
	}
	return report, true
}

// hostJSON is a host in a list.
type hostJSON struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	PID  int    `json:"pid"`
	Up   bool   `json:"up"`
	// Drain says that it is a worker of jobs that programs share.
	Drain bool `json:"drain,omitempty"`
}

func (w *Window) hosts(rw http.ResponseWriter, r *http.Request, _ caller) {
	if w.cfg.Hosts == nil {
		writeJSON(rw, []hostJSON{{Name: program(), PID: os.Getpid(), Up: true}})
		return
	}
	writeJSON(rw, listOf(w.others.ask(r.Context(), w)))
}

func listOf(all map[string]*inspect.Report) []hostJSON {
	list := []hostJSON{}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		h := all[id].Host
		name := h.Program
		if h.PID != 0 {
			name = fmt.Sprintf("%s %d", h.Program, h.PID)
		}
		list = append(list, hostJSON{id, name, h.PID, true, h.PID != 0 && h.Socket == ""})
	}
	return list
}

// look sends what has changed at other hosts, and reads the events of those that are new.
func (p *pump) look(ctx context.Context) {
	if p.w.cfg.Hosts == nil {
		return
	}
	p.w.others.follow(ctx, p)
	now := map[string]*row{}
	var changed []*row
	all := p.w.others.ask(ctx, p.w)
	if list := listOf(all); !slices.Equal(list, p.hosts) { // also at first: one may have come since a page has asked
		p.hosts = list
		p.w.hub.publish("hosts", "", map[string][]hostJSON{"hosts": list})
	}
	for _, r := range rowsOf(all) {
		key := r.Host + "/" + r.ID
		now[key] = &r
		if last := p.other[key]; last == nil || !last.same(&r) {
			changed = append(changed, &r)
		}
	}
	gone := map[string][]string{}
	for _, key := range slices.Sorted(maps.Keys(p.other)) {
		if now[key] == nil {
			host, id, _ := strings.Cut(key, "/")
			gone[host] = append(gone[host], id)
		}
	}
	p.other = now
	for part := range slices.Chunk(changed, maxRows) {
		p.w.hub.publish("session", "", map[string][]*row{"sessions": part})
	}
	for _, host := range slices.Sorted(maps.Keys(gone)) {
		p.w.hub.publish("gone", "", map[string]any{"ids": gone[host], "host": host})
	}
}

// follow reads the events of the hosts that are there, until the pump ends. A host that ends is
// read again when it is back; one that has no events is not asked again.
func (o *others) follow(ctx context.Context, p *pump) {
	hosts := o.all(ctx, p.w)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.followed == nil {
		o.followed = map[string]bool{}
	}
	for _, h := range hosts {
		id := h.ID()
		if o.followed[id] {
			continue
		}
		o.followed[id] = true
		p.readers.Add(1)
		p.w.exec.Go(func() {
			defer p.readers.Done()
			err := h.Events(ctx, func(e inspect.Event) bool { p.elsewhere(id, &e); return ctx.Err() == nil })
			if errors.Is(err, ErrUnsupported) && ctx.Err() == nil {
				return
			}
			o.mu.Lock()
			defer o.mu.Unlock()
			delete(o.followed, id)
		})
	}
}

// elsewhere takes an event of another host.
func (p *pump) elsewhere(host string, e *inspect.Event) {
	p.mu.Lock()
	p.events++
	show := e.Level != "DEBUG" && p.shown < maxEvents
	if show {
		p.shown++
	}
	p.mu.Unlock()
	if show {
		p.w.hub.publish("event", "", steered{*e, e.By, host})
	}
}

// merged is the trees of all hosts as one, for pages that show all. of says of which host each
// account is.
func merged(all map[string]*inspect.Report, own *runtime.Tree) (t runtime.Tree, of []string) {
	t = *own
	of = slices.Repeat([]string{""}, len(t.Accounts))
	for _, id := range slices.Sorted(maps.Keys(all)) {
		other := &all[id].Tree
		t.DeadLetters += other.DeadLetters
		t.LargeLines += other.LargeLines
		t.LargeLinesLimit += other.LargeLinesLimit
		t.Breakers = append(t.Breakers, other.Breakers...)
		t.Accounts = append(t.Accounts, other.Accounts...)
		t.Ended = append(t.Ended, other.Ended...)
		for range other.Accounts {
			of = append(of, id)
		}
		if reflect.DeepEqual(t.Fleet, own.Fleet) {
			t.Fleet = other.Fleet
		}
	}
	return t, of
}
