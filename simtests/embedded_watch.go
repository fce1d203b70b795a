package simtests

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// mind is the embedded agent of one client, as the oracles see it. The world's mutex guards
// what changes.
type mind struct {
	w       *World
	p       *program
	e       *Embedded
	n       int    // from 1
	dir     string // of sessions
	cwd     string
	kept    bool // sessions are stored
	first   bool // the process has begun its session
	doubled bool // and two calls of it had the same id
	asked   bool // effects need the permission of CanUseTool
	hooks   int  // PreToolUse hooks of all tools

	lives   bool   // a process runs
	lane    string // of it
	forked  string // the session that the process has begun from, as a fork
	session string
	heads   map[string]string // of the requests of the process, before their messages, by conversation
	aside   map[string]bool   // its sub-agents, and whether they work in the background
	open    int               // answers of the model that are read
	procs   []*shell
	uses    map[string]*use
	order   []string          // ids of uses
	turn    []int             // answers that the turn has, by number
	all     []int             // those of the process
	cut     bool              // the turn was interrupted
	invalid bool              // a request had an invalid conversation
	known   map[string]string // the content of files as the model knows it
	reads   map[string]string // as it was when a tool read it last
	ours    map[string]bool   // files that the model has written and not read since, and whether a command has run since
	parts   map[string]bool   // files without their names yet, and whether they are synced
	logs    map[string]*stored
	told    map[string][]string  // results of calls as the host has read them
	again   map[string]int       // times that the last request of a conversation was repeated
	soonest map[string]time.Time // when the model may be asked again for the same; zero: at once
	budget  float64              // in US dollars; 0: none
	turns   int                  // MaxTurns; 0: none

	checking checking
	rewinds  string // the request of a rewind that has no answer yet; ""

	hooking  hooking
	tally    tally
	own      string               // the session's model
	fallback bool                 // the options have fallback models
	asking   map[string]string    // models that were asked last in the turn, by sub-agent
	prompts  map[string]*prompted // messages of the user, by uuid
	done     []*prompted          // of them, those that the agent is done with, and that were not checked
	ended    bool                 // no message has begun since the last result
	well     bool                 // that was of a turn that has ended well
	notices  map[string]bool      // tasks that have ended, of which the model has not read
	models   map[string]string    // that a sub-agent has asked
	lost     bool                 // calls were not made, since the session could not be stored
}

// use is a call of a tool, of one answer.
type use struct {
	id, name, message string
	agent             string // the sub-agent that makes it; "": none
	command           string // as it may run
	path              string
	input             string
	hooked, hooks     int // hooks that were asked, and that have answered
	denied            bool
	allowed           bool
	background        bool
	stale             bool // others have changed its file
	ran, results      int
	gives             string // what it writes to its file, or a part of that
	well              bool   // one of its results is a success
	changed           []*use // inputs that gates have given to one of the calls with this id
	also              []*use // calls of the same answer with the same id; what is said of one may be about any
}

// mind makes the watch of a client.
func (ms *minds) mind(p *program, o *sdk.Options, e *Embedded) *mind {
	m := &mind{
		w: ms.w, p: p, e: e, kept: o.PersistSession.Or(true), cwd: o.Cwd, logs: make(map[string]*stored), budget: o.MaxBudgetUSD.Or(0), turns: o.MaxTurns.Or(0),
		asked: o.CanUseTool != nil && (o.PermissionMode == "" || o.PermissionMode == sdk.ModeDefault) && len(o.AllowedTools) == 0 && o.Policy == nil,
	}
	m.fallback = o.FallbackModel != ""
	if o.ResolveModel == nil {
		m.own = cmp.Or(o.Model, e.Config.Name, defaultModel)
	}
	for _, h := range o.Hooks {
		if h.Event == protocol.HookPreToolUse && h.Matcher == "" {
			m.hooks++
		}
	}
	ms.w.mu.Lock()
	defer ms.w.mu.Unlock()
	ms.all = append(ms.all, m)
	m.n = len(ms.all)
	return m
}

// keeps reports whether the agent stores its sessions.
func (m *mind) keeps() bool { return m.kept }

// begins is the start of a process.
func (m *mind) begins(lane string, l agent.Launch) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	m.lives, m.lane, m.forked = true, lane, ""
	m.heads, m.aside, m.again, m.soonest = make(map[string]string), make(map[string]bool), make(map[string]int), make(map[string]time.Time)
	m.uses, m.order, m.turn, m.all, m.cut = make(map[string]*use), nil, nil, nil, false
	m.known, m.reads, m.told = make(map[string]string), make(map[string]string), make(map[string][]string)
	m.ours, m.parts = make(map[string]bool), make(map[string]bool)
	m.doubled = false
	m.first = !slices.ContainsFunc(l.Args, func(a string) bool { return strings.HasPrefix(a, "--resume") })
	m.checking, m.rewinds = checking{}, ""
	m.hooking, m.tally, m.done, m.ended, m.well, m.lost = newHooking(), newTally(), nil, true, false, false
	m.asking = make(map[string]string)
	m.prompts, m.notices, m.models = make(map[string]*prompted), make(map[string]bool), make(map[string]string)
	for i, a := range l.Args {
		if id, ok := strings.CutPrefix(a, "--resume="); ok && slices.Contains(l.Args, "--fork-session") {
			m.forked = id
		} else if a == "--resume" && i+1 < len(l.Args) && slices.Contains(l.Args, "--fork-session") {
			m.forked = l.Args[i+1]
		}
	}
}

// over is the end of a process: nothing that it began is left.
func (m *mind) over() {
	m.w.mu.Lock()
	m.lives = false
	open, left := m.open, m.running(true)
	m.w.mu.Unlock()
	if open > 0 {
		m.w.Errorf("tasks: %s has ended, and reads %d answers of the model", m.lane, open)
	}
	if len(left) > 0 {
		m.w.Errorf("tasks: %s has ended, and these commands run: %s", m.lane, strings.Join(left, ", "))
	}
}

// alive checks that a process runs, since one of its tasks does something.
func (m *mind) alive(what string) {
	m.w.mu.Lock()
	lives := m.lives
	m.w.mu.Unlock()
	if !lives {
		m.w.Errorf("tasks: %s has ended, and one of its tasks %s", m.lane, what)
	}
}

// interrupted notes that the host interrupts the turn.
func (m *mind) interrupted() {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	m.cut = true
}

// asks checks the order of the gates: permission is asked when the hooks have answered.
func (m *mind) asks(a *asked) {
	m.w.mu.Lock()
	u := m.use(a.tool)
	var wrong string
	if a.event == string(protocol.HookPreCompact) {
		delete(m.hooking.stays, a.agent)
	}
	if a.event == string(protocol.HookPreToolUse) {
		u.hooked++
	} else if a.subtype == "can_use_tool" && (u.hooks < u.hooked || u.hooked < m.hooks) {
		wrong = fmt.Sprintf("gated: %s asks for permission for %s when %d of %d hooks have answered", m.lane, u.id, u.hooks, max(u.hooked, m.hooks))
	}
	m.w.mu.Unlock()
	if wrong != "" {
		m.w.Errorf("%s", wrong)
	}
}

// givesUp notes that the agent does not wait for a hook any more, which does not deny then.
func (m *mind) givesUp(a *asked) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	if a.event == string(protocol.HookPreToolUse) {
		m.use(a.tool).hooks++
	}
}

// answered takes the host's answer to a question about a call.
func (m *mind) answered(a *asked, f protocol.Frame) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	if a.tool == "" || a.dropped || a.cancelled {
		return
	}
	u := m.use(a.tool)
	m.hooking.takes(a, f)
	switch {
	case a.event == string(protocol.HookPreToolUse):
		u.hooks++
		u.denied = u.denied || denies(f)
		var body struct {
			Specific struct {
				Input json.RawMessage `json:"updatedInput"`
			} `json:"hookSpecificOutput"`
		}
		_ = json.Unmarshal(said(f), &body) // an answer that is not an object changes nothing
		m.changes(u, body.Specific.Input)
	case a.subtype == "can_use_tool":
		var body struct {
			Behavior  string          `json:"behavior"`
			Input     json.RawMessage `json:"updatedInput"`
			Interrupt bool            `json:"interrupt"`
		}
		_ = json.Unmarshal(said(f), &body) // an answer that is not an object allows nothing
		if body.Behavior == "deny" && u.agent == "" && len(u.also) == 0 {
			m.tally.refused = append(m.tally.refused, u.id)
		}
		m.hooking.ended[u.agent] = m.hooking.ended[u.agent] || body.Behavior == "deny" && body.Interrupt
		if u.allowed = body.Behavior == "allow"; u.allowed {
			m.changes(u, body.Input)
		}
	}
}

// changes takes the input that a gate has given to a call; mu is held.
func (m *mind) changes(u *use, input json.RawMessage) {
	switch {
	case len(input) <= len("{}"): // it leaves it as it is
	case len(u.also) == 0:
		u.takes(m.cwd, input)
	default:
		changed := &use{id: u.id, name: u.name, message: u.message, agent: u.agent} // of which call is not known
		changed.takes(m.cwd, input)
		u.changed = append(u.changed, changed)
	}
}

// use is what is known of a call; mu is held.
func (m *mind) use(id string) *use {
	u := m.uses[id]
	if u == nil {
		u = &use{id: id}
		m.uses[id] = u
		m.order = append(m.order, id)
	}
	return u
}

// takes takes the input of a call.
func (u *use) takes(cwd string, input json.RawMessage) {
	var in struct {
		Command    string `json:"command"`
		Path       string `json:"file_path"`
		Content    string `json:"content"`
		Next       string `json:"new_string"`
		Background bool   `json:"run_in_background"`
	}
	_ = json.Unmarshal(input, &in) // one of another form has neither
	u.command, u.path, u.background, u.input = in.Command, in.Path, in.Background, string(input)
	u.gives = in.Content + in.Next
	if u.path != "" && !filepath.IsAbs(u.path) {
		u.path = filepath.Join(cwd, u.path)
	}
}

// says takes an assistant frame, and checks that the model has said it; mu is held.
func (m *mind) says(in *frame) (wrong []string) {
	if in.Message.Model == "<synthetic>" {
		return nil
	}
	if n := numberIn(in.Message.ID); n > 0 && m.w.loops.answers[n] != nil {
		a := m.w.loops.answers[n]
		a.framed, a.at = true, m.w.sched.Now()
		for _, b := range blocksIn(in.Message.Content) {
			a.shows(&b)
		}
		if a.shown(m.cut) {
			m.w.loops.ended[a.of] = n
		} else {
			delete(m.w.loops.ended, a.of)
		}
	}
	for _, b := range blocksIn(in.Message.Content) {
		wrong = append(wrong, m.quotes(in, &b)...)
		wrong = append(wrong, m.labels(in, &b)...)
		if b.Type != "tool_use" {
			continue
		}
		switch old := m.uses[b.ID]; {
		case old == nil:
		case old.message == in.Message.ID: // the model has doubled an id: both calls run
			second := &use{id: b.ID, name: b.Name, message: in.Message.ID, agent: in.Agent}
			second.takes(m.cwd, b.Input)
			old.also = append(old.also, second)
			m.doubled = true
			continue
		case old.message != "": // the id of an earlier call
			m.doubled = true
			delete(m.uses, b.ID)
		}
		u := m.use(b.ID)
		u.name, u.message, u.agent = b.Name, in.Message.ID, in.Agent
		u.takes(m.cwd, b.Input)
	}
	return wrong
}

// effect checks that a call may have its effect now.
func (m *mind) effect(find func(*use) bool, what, token string) *use {
	m.alive(what)
	w := m.w
	w.mu.Lock()
	var u *use
	for _, id := range m.order {
		if o := m.uses[id]; o != nil && o.message != "" && slices.ContainsFunc(slices.Concat([]*use{o}, o.also, o.changed), find) {
			u = o
		}
	}
	lane := m.lane
	if u == nil {
		w.mu.Unlock()
		w.Errorf("gated: %s %s, and no call says so", lane, what)
		return nil
	}
	u.ran++
	if u.command != "" {
		delete(m.reads, m.printed(u)) // it is read anew then
		for path := range m.ours {
			m.ours[path] = true
		}
	}
	one, which := *u, u
	if others := append(slices.Clone(u.also), u.changed...); !find(u) {
		which = others[slices.IndexFunc(others, find)]
	}
	session := conversation(m.session, u.agent)
	key := m.session + "\x00" + token
	before := w.loops.ran[key]
	w.loops.ran[key] = u.id
	hooks, beside := m.hooks, m.beside(u.agent)
	free := slices.ContainsFunc(m.e.Unasked, func(s string) bool { return one.command != "" && strings.HasPrefix(one.command, s) })
	w.loops.free[key] = free
	if !free {
		m.checking.changed = what
	}
	w.mu.Unlock()
	switch {
	case one.ran > 1+len(one.also), before != "":
		w.Errorf("once: %s %s again: call %s, and it did for %q before", lane, what, one.id, before)
	case len(one.also) > 0: // which of them is meant is not known
	case one.denied:
		w.Errorf("gated: %s %s: call %s, which a hook has denied", lane, what, one.id)
	case one.hooks < max(one.hooked, hooks):
		w.Errorf("gated: %s %s: call %s, and %d of %d hooks have answered", lane, what, one.id, one.hooks, max(one.hooked, hooks))
	case m.asked && !free && !one.allowed:
		w.Errorf("gated: %s %s: call %s, which was not allowed", lane, what, one.id)
	case one.results > 0:
		w.Errorf("once: %s %s: call %s, which has its result", lane, what, one.id)
	case m.keeps() && m.log(session).uses[one.id] == 0:
		w.Errorf("recorded: %s %s: call %s, which is not stored", lane, what, one.id)
	case free || !one.allowed && one.path == "" && !strings.HasPrefix(one.name, "mcp__"): // it only reads, as far as is known
	case len(beside) > 0:
		w.Errorf("alone: %s %s: call %s, while these commands run: %s", lane, what, one.id, strings.Join(beside, ", "))
	case m.keeps() && !m.log(session).lasts(one.id):
		w.Errorf("recorded: %s %s: call %s, whose record a loss of power would lose", lane, what, one.id)
	}
	return which
}

// done checks that nothing is left when the world has ended.
func (ms *minds) done() {
	for _, m := range ms.all {
		for _, name := range sortedKeys(m.logs) {
			for _, text := range m.logs[name].wrong {
				ms.w.Errorf("recorded: %s: %s", filepath.Base(name), text)
			}
		}
		if m.open > 0 || len(m.running(true)) > 0 {
			ms.w.Errorf("tasks: the world has ended, and client %d reads %d answers and runs %v", m.n, m.open, m.running(true))
		}
	}
	all := os.DirFS(ms.w.Dir())
	_ = fs.WalkDir(all, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			content, _ := fs.ReadFile(all, path) // what cannot be read has no key
			ms.secret("the file "+d.Name(), string(content))
			if strings.Contains(d.Name(), ".tmp.") {
				ms.w.Errorf("tasks: a tool has left the file %s", d.Name())
			}
		}
		return nil
	})
}
