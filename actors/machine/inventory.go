package machine

import "github.com/agent-troupe/troupe/protocol"

// Inventory is what is under way in a session.
type Inventory struct {
	Running string   // the id of the turn that the agent works on; "": none
	OwnTurn bool     // it works on a turn that it started itself
	Queued  []string // the other open turns, in order
	Tasks   []protocol.BackgroundTask
}

// Inventory lists what is under way.
func (m *Routing) Inventory() Inventory {
	all := Inventory{OwnTurn: m.Facts.OwnTurn, Tasks: m.LiveTasks()}
	running := m.oldestWritten()
	for i := range m.Turns {
		if t := &m.Turns[i]; t == running && !all.OwnTurn {
			all.Running = t.ID
		} else {
			all.Queued = append(all.Queued, t.ID)
		}
	}
	return all
}
