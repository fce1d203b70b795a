package ui

import (
	"cmp"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// row is a session in the table.
type row struct {
	ID          string        `json:"id"`
	Host        string        `json:"host,omitempty"` // id of its host, where there are several
	State       session.State `json:"state"`
	StateSince  time.Time     `json:"state_since"`
	Opened      time.Time     `json:"opened"`
	Backend     string        `json:"backend"`
	Dir         string        `json:"dir,omitempty"`
	Restarts    int           `json:"restarts,omitempty"` // of the agent and of the actors
	Unread      int           `json:"unread,omitempty"`
	UnreadLimit int           `json:"unread_limit,omitempty"`
	Partial     bool          `json:"partial,omitempty"`
	Wait        *wait         `json:"wait,omitempty"`  // the first
	Waits       int           `json:"waits,omitempty"` // how many there are
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
		Unread: t.Unread, UnreadLimit: t.UnreadLimit, Partial: t.Partial, Waits: len(t.Waits),
	}
	for i := range t.Actors {
		r.Restarts += t.Actors[i].Restarts
	}
	if len(t.Waits) > 0 {
		r.Wait = waitOf(t.At, &t.Waits[0])
	}
	return r
}

func waitOf(at time.Time, w *session.Wait) *wait {
	return &wait{What: w.What, ID: w.ID, Since: at.Add(-w.Age), LimitMS: w.Limit.Milliseconds(), SetBy: w.SetBy}
}

func (w *Window) sessions(rw http.ResponseWriter, r *http.Request, _ caller) {
	report, err := w.local.report(r.Context())
	if err != nil {
		refuse(rw, err)
		return
	}
	all := struct {
		At       time.Time `json:"at"`
		Sessions []row     `json:"sessions"`
	}{report.Tree.At, make([]row, len(report.Tree.Sessions))}
	for i := range report.Tree.Sessions {
		all.Sessions[i] = rowOf(&report.Tree.Sessions[i])
	}
	writeJSON(rw, all)
}

// group is the sessions of one state.
type group struct {
	State    session.State         `json:"state"`
	Count    int                   `json:"count"`
	Sessions []runtime.SessionTree `json:"sessions"` // the first of them, by id
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
		s := w.rt.Session(id)
		if s == nil {
			missing(rw, "session")
			return
		}
		writeJSON(rw, s.Tree(r.Context()))
		return
	}
	report, err := w.local.report(r.Context())
	if err != nil {
		refuse(rw, err)
		return
	}
	tree := report.Tree
	tree.Sessions = []runtime.SessionTree{}
	writeJSON(rw, struct {
		Host      inspect.Host          `json:"host"`
		Tree      runtime.Tree          `json:"tree"` // without sessions
		Groups    []group               `json:"groups"`
		Admission runtime.AdmissionStat `json:"admission"`
	}{report.Host, tree, groupsOf(report.Tree.Sessions), w.rt.AdmissionStat()})
}

func groupsOf(all []runtime.SessionTree) []group {
	at, groups := map[session.State]int{}, []group{}
	for i := range all {
		state := all[i].State
		k, ok := at[state]
		if !ok {
			k = len(groups)
			at[state], groups = k, append(groups, group{State: state})
		}
		if groups[k].Count++; len(groups[k].Sessions) < groupSize {
			groups[k].Sessions = append(groups[k].Sessions, all[i])
		}
	}
	slices.SortFunc(groups, func(a, b group) int { return cmp.Compare(urgency(a.State), urgency(b.State)) })
	return groups
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

func (w *Window) hosts(rw http.ResponseWriter, _ *http.Request, _ caller) {
	type host struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		PID  int    `json:"pid"`
		Up   bool   `json:"up"`
	}
	writeJSON(rw, []host{{Name: program(), PID: os.Getpid(), Up: true}})
}
