package machine

import (
	"slices"
	"time"

	"github.com/agent-troupe/troupe/protocol"
)

// Story is what the routing remembers of the past for people. It decides nothing.
type Story struct {
	Turns     int      // that have begun, the agent's own included
	Turn      Interval // the one that runs; the zero value: none
	LastTurn  string   // the ID of the last one
	Tools     []Interval
	Process   Interval // the one that runs; the zero value: none
	Processes []Interval
	PastTurns []Interval
	PastTools []Interval
	PastWaits []Interval // for a person, of longWait or more
	Waits     []Interval // those that last; only in what Routing.Story returns
	Forgotten int        // intervals that are no longer here
}

// Interval is a part of a session's past. To is zero while it lasts.
type Interval struct {
	Name, ID string
	N        int // of a turn and a process, from 1
	From, To time.Time
}

const (
	// maxPast is the most intervals of each kind; a fifth of them goes at a time.
	maxPast = 500
	// longWait is the shortest wait for a person that is remembered: most gates answer at once.
	longWait = 100 * time.Millisecond
	// ownTurn is the ID of turns that the agent starts itself.
	ownTurn = "agent"
)

// clone shares nothing that a step changes.
func (s *Story) clone() Story {
	c := *s
	c.Tools, c.Processes = slices.Clone(s.Tools), slices.Clone(s.Processes)
	c.PastTurns, c.PastTools, c.PastWaits = slices.Clone(s.PastTurns), slices.Clone(s.PastTools), slices.Clone(s.PastWaits)
	return c
}

// Story returns what is remembered of the past, which shares nothing that a later step changes.
func (m *Routing) Story() Story {
	s := m.Memory.clone()
	for _, r := range m.requests {
		if r.Person {
			s.Waits = append(s.Waits, Interval{Name: r.named(), ID: Short(r.id()), From: r.Opened})
		}
	}
	return s
}

// keep appends an interval that is over.
func (s *Story) keep(all []Interval, i Interval, now time.Time) []Interval {
	i.To = now
	if len(all) >= maxPast {
		s.Forgotten += maxPast / 5
		all = slices.Delete(all, 0, maxPast/5)
	}
	return append(all, i)
}

// launched begins a process.
func (s *Story) launched(now time.Time, gen int) {
	s.gone(now)
	s.Process = Interval{N: gen, From: now}
}

// gone ends the process, and what ran in it.
func (s *Story) gone(now time.Time) {
	if s.Process.N > 0 {
		s.Processes = s.keep(s.Processes, s.Process, now)
		s.Process = Interval{}
	}
	s.toolsOver(now)
}

// follow begins and ends turns: the one that runs is that of the oldest message the agent was
// given, or one that it started itself.
func (m *Routing) follow() {
	s, id := &m.Memory, ""
	if t := m.oldestWritten(); t != nil {
		id = t.ID
	} else if m.Facts.OwnTurn && m.Facts.AgentRunning {
		id = ownTurn
	}
	if id == s.Turn.ID {
		return
	}
	if s.Turn.ID != "" {
		s.PastTurns = s.keep(s.PastTurns, s.Turn, m.now)
		s.Turn = Interval{}
		s.toolsOver(m.now)
	}
	if id == "" {
		return
	}
	if id != s.LastTurn || id == ownTurn { // else another process continues it
		s.Turns++
	}
	s.LastTurn, s.Turn = id, Interval{ID: id, N: s.Turns, From: m.now}
}

// calls begins and ends calls of tools.
func (s *Story) calls(now time.Time, blocks []toolBlock) {
	for i := range blocks {
		switch b := &blocks[i]; b.Type {
		case "tool_use":
			if len(s.Tools) < maxDone {
				s.Tools = append(s.Tools, Interval{Name: Short(b.Name), ID: Short(b.ID), From: now})
			}
		case "tool_result":
			id := Short(b.ToolUseID)
			if i := slices.IndexFunc(s.Tools, func(t Interval) bool { return t.ID == id }); i >= 0 {
				s.PastTools = s.keep(s.PastTools, s.Tools[i], now)
				s.Tools = slices.Delete(s.Tools, i, i+1)
			}
		}
	}
}

// toolsOver ends all calls: the turn is over, or the process is.
func (s *Story) toolsOver(now time.Time) {
	for _, t := range s.Tools {
		s.PastTools = s.keep(s.PastTools, t, now)
	}
	s.Tools = nil
}

// waited takes note of a request that is over.
func (s *Story) waited(now time.Time, r *Request) {
	if r.Person && now.Sub(r.Opened) >= longWait {
		s.PastWaits = s.keep(s.PastWaits, Interval{Name: r.named(), ID: Short(r.id()), From: r.Opened}, now)
	}
}

// named is what the request is about, for people.
func (r *Request) named() string {
	var asked struct {
		Request struct {
			Tool string `json:"tool_name"`
		} `json:"request"`
	}
	_ = protocol.Unmarshal(r.Raw, &asked) // it then has no name
	name := r.Kind.String() + " request"
	if asked.Request.Tool != "" {
		name += " " + Short(asked.Request.Tool)
	}
	return name
}
