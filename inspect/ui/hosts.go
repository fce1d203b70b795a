package ui

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/runtime"
)

// Host is another program whose sessions a window shows, for reading. Implementations are
// safe for concurrent use.
type Host interface {
	// ID is the id of the host, which is part of addresses. It differs from that of others.
	ID() string
	// Report asks the host for its sessions.
	Report(ctx context.Context) (*inspect.Report, error)
}

// Socket is the program that listens on a socket; see [inspect.Listen].
func Socket(path string) Host { return socketHost(path) }

type socketHost string

func (s socketHost) ID() string {
	return strings.TrimSuffix(filepath.Base(string(s)), filepath.Ext(string(s)))
}

func (s socketHost) Report(ctx context.Context) (*inspect.Report, error) {
	return inspect.Fetch(ctx, string(s))
}

// others are the hosts besides this program.
type others struct {
	mu   sync.Mutex
	last map[string]*inspect.Report // what they have said last, by id
}

// ask asks all hosts at once. Those that do not answer are left out.
func (o *others) ask(ctx context.Context, w *Window) map[string]*inspect.Report {
	if w.cfg.Hosts == nil {
		return nil
	}
	hosts, err := w.cfg.Hosts(ctx)
	if err != nil {
		hosts = nil // as if no program showed its sessions
	}
	all := map[string]*inspect.Report{}
	var mu sync.Mutex
	var waits []chan struct{}
	for _, h := range hosts {
		done := make(chan struct{})
		waits = append(waits, done)
		w.exec.Go(func() {
			defer close(done)
			r, err := h.Report(ctx)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			all[h.ID()] = r
		})
	}
	for _, done := range waits {
		_ = w.exec.Await(context.WithoutCancel(ctx), done) // a host has a limit for its answer
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = all
	return all
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
}

func (w *Window) hosts(rw http.ResponseWriter, r *http.Request, _ caller) {
	list := []hostJSON{}
	if w.cfg.Hosts == nil {
		list = append(list, hostJSON{Name: program(), PID: os.Getpid(), Up: true})
	}
	all := w.others.ask(r.Context(), w)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		h := all[id].Host
		list = append(list, hostJSON{id, fmt.Sprintf("%s %d", h.Program, h.PID), h.PID, true})
	}
	writeJSON(rw, list)
}

// look sends what has changed at other hosts.
func (p *pump) look(ctx context.Context) {
	if p.w.cfg.Hosts == nil {
		return
	}
	now := map[string]*row{}
	var changed []*row
	for _, r := range rowsOf(p.w.others.ask(ctx, p.w)) {
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

// merged is the trees of all hosts as one, for pages that show all.
func merged(all map[string]*inspect.Report, own *runtime.Tree) runtime.Tree {
	t := *own
	for _, id := range slices.Sorted(maps.Keys(all)) {
		other := &all[id].Tree
		t.DeadLetters += other.DeadLetters
		t.LargeLines += other.LargeLines
		t.LargeLinesLimit += other.LargeLinesLimit
		t.Sessions = append(t.Sessions, other.Sessions...)
		t.Breakers = append(t.Breakers, other.Breakers...)
		t.Accounts = append(t.Accounts, other.Accounts...)
		t.Ended = append(t.Ended, other.Ended...)
		if reflect.DeepEqual(t.Fleet, own.Fleet) {
			t.Fleet = other.Fleet
		}
	}
	return t
}
