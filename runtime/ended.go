package runtime

import (
	"slices"
	"sync/atomic"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// maxPast is how many sessions that have ended a runtime remembers.
const maxPast = 256

// counts are sums of all sessions since the runtime was made, for its history.
type counts struct {
	turns, tokens, restarts, refused atomic.Int64
	microUSD                         atomic.Int64
}

// spent takes a result of the session's agent.
func (s *Session) spent(r *protocol.ResultMessage) {
	added := s.meter.add(r)
	c := &s.rt.counts
	c.turns.Add(1)
	c.tokens.Add(added.Tokens.total())
	c.microUSD.Add(int64(added.USD * 1e6))
}

// maxError is the most characters of the error of a session that has ended.
const maxError = 500

// epitaph is what is remembered of a session that ends. Locks of its user's side are held.
func (s *Session) epitaph(reason error) SessionTree {
	t := s.outline()
	t.At, t.Transport = s.rt.sys.Clock().Now(), "ended"
	link := s.core.Link().Status()
	t.Restarts = s.starts.restarts(link.Gen)
	if reason != nil {
		t.State = session.StateFailed
		t.Error = cutText(reason.Error(), maxError)
	}
	return t
}

// cutText makes a text one line of at most so many characters.
func cutText(text string, most int) string {
	text = shown.Line(text)
	if r := []rune(text); len(r) > most {
		text = string(r[:most-1]) + "…"
	}
	return text
}

// outline is what is known of the session without a question to its actors, and without a lock
// of its user's side.
func (s *Session) outline() SessionTree {
	labels := s.about.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	return SessionTree{
		ID: s.id, State: s.State(), Opened: s.opened, StateSince: s.stateSince(), Backend: s.dialect.Name(), Dir: s.core.Dir(),
		AgentSessionID: s.core.Named(), Title: s.titled(), Labels: labels, Job: s.about.Job, Task: s.about.Task, Attempt: s.about.Attempt,
		Usage: s.meter.read(), Waits: []session.Wait{}, Actors: []session.ActorInfo{},
	}
}

// titled is the session's title for people.
func (s *Session) titled() string {
	if s.title == "" {
		return s.about.Task
	}
	return s.title
}

// bury remembers a session that has ended; the lock is held.
func (rt *Runtime) bury(t SessionTree) {
	if len(rt.past) == maxPast {
		rt.past = slices.Delete(rt.past, 0, 1)
	}
	rt.past = append(rt.past, t)
}

// ended are the sessions that have ended last, the newest first.
func (rt *Runtime) ended() []SessionTree {
	rt.mu.Lock()
	all := slices.Clone(rt.past)
	rt.mu.Unlock()
	slices.Reverse(all)
	if all == nil {
		all = []SessionTree{}
	}
	return all
}
