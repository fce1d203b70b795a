package simtests

import (
	"fmt"
	"slices"
	"strings"
)

// checking is how far the command of Config.Check is in a session: a turn ends well only if its last
// check has passed, and nothing was changed since. The world's mutex guards it.
type checking struct {
	changed string // what was done since the last check; "": nothing that could change something
	failed  bool   // the last check of the turn
}

// checks reports whether the arguments are those of the check. It runs alone.
func (m *mind) checks(args []string) bool {
	c := m.e.Config.Check
	if c == nil || c.Command == "" || !slices.Contains(args, c.Command) {
		return false
	}
	m.alive("runs the check")
	m.w.mu.Lock()
	beside := m.beside("")
	m.checking.changed = ""
	m.w.mu.Unlock()
	if len(beside) > 0 {
		m.w.Errorf("checked: %s runs the check while these commands run: %s", m.lane, strings.Join(beside, ", "))
	}
	return true
}

// passed holds the end of a turn against the check; mu is held.
func (m *mind) passed(in *frame) (wrong []string) {
	if c := m.e.Config.Check; c == nil || c.Command == "" {
		return nil
	}
	well := !in.IsError && in.Terminal == "completed"
	if well && m.checking.failed {
		wrong = append(wrong, fmt.Sprintf("checked: %s ends a turn well, and its check has failed", m.lane))
	}
	if well && m.checking.changed != "" {
		wrong = append(wrong, fmt.Sprintf("checked: %s ends a turn well, and no check came after it %s", m.lane, m.checking.changed))
	}
	m.checking.failed = false
	return wrong
}
