package fleet

import (
	"fmt"
	"slices"
)

// inherited is the note of the program that had the task before, if it continues that one's session and
// workspace. It is nil if it does not, for example because this program has worked on the task since.
func (m *machine) inherited(n *node) *TaskNote {
	if !m.rules.move || n.left.Kept == "" || fenceOf(n.left.Kept) <= n.ran {
		return nil
	}
	left := n.left
	return &left
}

// begins is how the next attempt of a task begins of which this program has the lease.
func (m *machine) begins(n *node) Mode {
	if m.inherited(n) != nil {
		return modeMoved
	}
	return n.next.mode
}

// anew says why an attempt does not continue what another program has begun; "": there is nothing to continue.
func (m *machine) anew(n *node) string {
	left := &n.left
	own := slices.ContainsFunc(n.tries, func(a Attempt) bool { return a.Session == left.Session })
	switch {
	case n.next.mode != modeFresh || left.Session == "" || left.Worker == m.rules.worker || own || m.inherited(n) != nil:
		return ""
	case !m.rules.move:
		return fmt.Sprintf("begins anew: worker %s had begun the task, and its session and workspace are there", left.Worker)
	case left.Unkept != "":
		return fmt.Sprintf("begins anew: what worker %s had done cannot be continued: %s", left.Worker, left.Unkept)
	case left.Kept != "":
		return fmt.Sprintf("begins anew: this program has worked on the task after worker %s", left.Worker)
	}
	return fmt.Sprintf("begins anew: worker %s was lost before its first turn had ended", left.Worker)
}

// sticky is the session for whose program a task is left for a while. Any program can continue at
// once a task that was kept whole.
func (t *TaskNote) sticky() string {
	if t.Kept != "" && !t.Running {
		return ""
	}
	return t.Session
}
