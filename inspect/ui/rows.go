package ui

import (
	"cmp"
	"maps"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// row is a session in the table.
type row struct {
	ID          string            `json:"id"`
	Host        string            `json:"host,omitempty"` // id of its host, where there are several
	State       session.State     `json:"state"`
	StateSince  time.Time         `json:"state_since"`
	Opened      time.Time         `json:"opened"`
	Backend     string            `json:"backend"`
	Dir         string            `json:"dir,omitempty"`
	Title       string            `json:"title,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Job         string            `json:"job,omitempty"`
	Task        string            `json:"task,omitempty"`
	Turns       int               `json:"turns,omitempty"`
	USD         float64           `json:"usd,omitempty"`
	RSS         int64             `json:"rss,omitempty"`
	Error       string            `json:"error,omitempty"`    // of one that has failed
	Restarts    int               `json:"restarts,omitempty"` // of the agent and of the actors
	Unread      int               `json:"unread,omitempty"`
	UnreadLimit int               `json:"unread_limit,omitempty"`
	Partial     bool              `json:"partial,omitempty"`
	Wait        *wait             `json:"wait,omitempty"`  // the first
	Waits       int               `json:"waits,omitempty"` // how many there are

	lives int // the part of Restarts that is of actors
}

// wait is a [session.Wait] with its start in place of its age.
type wait struct {
	What    string    `json:"what"`
	ID      string    `json:"id,omitempty"`
	Since   time.Time `json:"since"`
	LimitMS int64     `json:"limit_ms,omitempty"`
	SetBy   string    `json:"set_by,omitempty"`
	// Session and Host are set where the wait is not in the row of its session.
	Session string `json:"session,omitempty"`
	Host    string `json:"host,omitempty"`
}

func rowOf(t *runtime.SessionTree) row {
	r := row{
		ID: t.ID, State: t.State, StateSince: t.StateSince, Opened: t.Opened, Backend: t.Backend, Dir: t.Dir, Restarts: t.Restarts,
		Title: t.Title, Labels: t.Labels, Job: t.Job, Task: t.Task, Turns: t.Turn, USD: t.Usage.USD, RSS: t.RSS, Error: t.Error,
		Unread: t.Unread, UnreadLimit: t.UnreadLimit, Partial: t.Partial, Waits: len(t.Waits),
	}
	for i := range t.Actors {
		r.lives += t.Actors[i].Restarts
	}
	r.Restarts += r.lives
	if len(t.Waits) > 0 {
		r.Wait = waitOf(&t.Waits[0])
	}
	return r
}

func waitOf(w *session.Wait) *wait {
	return &wait{What: w.What, ID: w.ID, Since: w.Since, LimitMS: w.Limit.Milliseconds(), SetBy: w.SetBy}
}

// same reports whether a page would show nothing else for the other row.
func (r *row) same(other *row) bool {
	a, b := *r, *other
	a.Wait, b.Wait = nil, nil
	a.RSS, b.RSS = 0, 0 // each look measures another number
	return reflect.DeepEqual(a, b) && (r.Wait == nil) == (other.Wait == nil) && (r.Wait == nil || r.Wait.same(other.Wait))
}

func (w *wait) same(other *wait) bool {
	a, b := *w, *other
	a.Since, b.Since = time.Time{}, time.Time{}
	return a == b && w.Since.Equal(other.Since)
}

// of is the wait outside of its row.
func (w *wait) of(r *row) *wait {
	one := *w
	one.Session, one.Host = r.ID, r.Host
	return &one
}

// compare orders waits with a limit: the one that has used most of it is first.
func (w *wait) compare(other *wait, now time.Time) int {
	used := func(w *wait) float64 { return float64(now.Sub(w.Since).Milliseconds()) / float64(w.LimitMS) }
	return cmp.Or(cmp.Compare(used(other), used(w)), strings.Compare(w.Session, other.Session))
}

func (w *Window) sessions(rw http.ResponseWriter, r *http.Request, _ caller) {
	list := slices.Concat(w.rt.Outline(), w.rt.Ended())
	others := rowsOf(w.others.ask(r.Context(), w))
	all := struct {
		At       time.Time `json:"at"`
		Sessions []row     `json:"sessions"`
	}{w.clock.Now(), make([]row, len(list))}
	for i := range list {
		all.Sessions[i] = rowOf(&list[i])
	}
	all.Sessions = append(all.Sessions, others...)
	writeJSON(rw, all)
}

// maxShown is the most rows of one answer to a page that asks for those in view.
const maxShown = 64

// inView answers with the rows of sessions that a person sees: of many sessions the stream has each row
// only now and then. Those that have ended are left out.
func (w *Window) inView(rw http.ResponseWriter, r *http.Request, _ caller) {
	rows := []row{}
	ids := r.URL.Query()["id"]
	for _, id := range ids[:min(len(ids), maxShown)] {
		if s := w.rt.Session(id); s != nil {
			t := w.briefly(r.Context(), s)
			rows = append(rows, rowOf(&t))
		}
	}
	writeJSON(rw, map[string]any{"at": w.clock.Now(), "sessions": rows})
}

// group is the sessions of one state.
type group struct {
	State    session.State `json:"state"`
	Count    int           `json:"count"`
	Sessions []hosted      `json:"sessions"` // the first of them, by id
}

// hosted is a session and where it is.
type hosted struct {
	runtime.SessionTree
	Host string `json:"host,omitempty"`
}

// groupSize is how many sessions of a group are shown.
const groupSize = 6

// urgency orders states: trouble first.
func urgency(s session.State) int {
	return slices.Index([]session.State{
		session.StateFailed, session.StateRecovering, session.StateAwaitingHost, session.StateAwaitingConsumer, session.StateAdmitting,
		session.StateStarting, session.StateInitializing, session.StateRunning, session.StateReady, session.StateClosing,
		session.StatePassivated, session.StateClosed,
	}, s)
}

// tree answers with groups of sessions and the rest of the tree, or with one session.
func (w *Window) tree(rw http.ResponseWriter, r *http.Request, _ caller) {
	if id := r.URL.Query().Get("session"); id != "" {
		if report, ok := w.asked(rw, r); ok {
			if report != nil {
				w.elsewhere(rw, report, id)
			}
			return
		}
		s := w.rt.Session(id)
		if s == nil {
			missing(rw, "session")
			return
		}
		writeJSON(rw, s.Tree(r.Context()))
		return
	}
	report, own, err := w.local.report(r.Context())
	if err != nil {
		refuse(rw, err)
		return
	}
	var host inspect.Host
	var tree runtime.Tree
	var of []string
	var groups []group
	if other, ok := w.asked(rw, r); ok {
		if other == nil {
			return
		}
		id := r.URL.Query().Get("host")
		host, tree, groups = other.Host, other.Tree, groupingOf(nil).hosts(map[string]*inspect.Report{id: other}).sorted()
		of = slices.Repeat([]string{id}, len(tree.Accounts))
	} else {
		all := w.others.ask(r.Context(), w)
		host, groups = report.Host, groupingOf(own).hosts(all).sorted()
		tree, of = merged(all, &report.Tree)
	}
	tree.Sessions = []runtime.SessionTree{}
	tree.Ended = tree.Ended[:min(len(tree.Ended), groupSize)]
	writeJSON(rw, struct {
		Host   inspect.Host `json:"host"`
		Tree   runtime.Tree `json:"tree"` // without sessions
		Groups []group      `json:"groups"`
		Of     []string     `json:"account_hosts"` // of which host each account is
	}{host, tree, groups, of})
}

// elsewhere answers with a session of another host.
func (w *Window) elsewhere(rw http.ResponseWriter, report *inspect.Report, id string) {
	for i := range report.Tree.Sessions {
		if report.Tree.Sessions[i].ID == id {
			writeJSON(rw, &report.Tree.Sessions[i])
			return
		}
	}
	missing(rw, "session")
}

// grouping makes groups. Of all sessions but the first ones of a group it copies nothing.
type grouping struct {
	at   map[session.State]int
	list []group
}

// groupingOf continues groups, which stay as they are.
func groupingOf(groups []group) *grouping {
	g := &grouping{map[session.State]int{}, slices.Clone(groups)}
	for i := range g.list {
		g.at[g.list[i].State], g.list[i].Sessions = i, slices.Clip(g.list[i].Sessions)
	}
	return g
}

func (g *grouping) add(host string, all []runtime.SessionTree) {
	for i := range all {
		k, ok := g.at[all[i].State]
		if !ok {
			k = len(g.list)
			g.at[all[i].State], g.list = k, append(g.list, group{State: all[i].State})
		}
		if of := &g.list[k]; len(of.Sessions) < groupSize {
			of.Sessions = append(of.Sessions, hosted{all[i], host})
		}
		g.list[k].Count++
	}
}

// hosts adds the sessions of other hosts.
func (g *grouping) hosts(all map[string]*inspect.Report) *grouping {
	for _, id := range slices.Sorted(maps.Keys(all)) {
		g.add(id, all[id].Tree.Sessions)
	}
	return g
}

func (g *grouping) sorted() []group {
	slices.SortFunc(g.list, func(a, b group) int { return cmp.Compare(urgency(a.State), urgency(b.State)) })
	return append([]group{}, g.list...)
}

// hello is what a page has to know first.
type hello struct {
	Seq     int64        `json:"seq"`
	At      time.Time    `json:"at"`
	Host    inspect.Host `json:"host"`
	Steer   bool         `json:"steer"`
	Content bool         `json:"content"`
	Who     string       `json:"who"`
	CSRF    string       `json:"csrf,omitempty"` // what the header X-Troupe-CSRF needs; only with a cookie
}

func (w *Window) greeting(from caller, seq int64) hello {
	h := hello{
		Seq: seq, At: w.clock.Now(), Host: inspect.Host{PID: os.Getpid(), Program: program()},
		Steer: w.cfg.Access.Steer, Content: w.cfg.Access.Content, Who: from.who,
	}
	if from.login != nil {
		h.CSRF = from.login.csrf
	}
	return h
}

func (w *Window) hello(rw http.ResponseWriter, _ *http.Request, from caller) {
	writeJSON(rw, w.greeting(from, 0))
}
