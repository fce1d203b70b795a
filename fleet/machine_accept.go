package fleet

import "fmt"

// catchUp runs the command after acceptance that an earlier process has not begun.
func (m *machine) catchUp(n *node, out []effect) []effect {
	if !m.rules.onAccept || n.result.OnAccept == nil || n.result.OnAccept.State != onAcceptPending {
		return out
	}
	m.after++
	return append(out, runAgain{n.id, repetition{n.used(), n.result.Requeued}})
}

// used are the remains of the last attempt of a task, or of its workspace.
func (n *node) used() *remains {
	if n.remains != nil {
		return n.remains
	}
	return &remains{task: n.task, space: n.space}
}

// repeat lets the command after acceptance run once more for a task.
func (m *machine) repeat(id string) (r repetition, err error) {
	n := m.nodes[id]
	switch {
	case n == nil:
		err = ErrNoTask
	case m.halted || m.final:
		err = ErrJobOver
	default:
		err = mayRepeat(n.result)
	}
	if err != nil {
		return r, fmt.Errorf("task %q: %w", id, err)
	}
	r = repetition{n.used(), n.result.Requeued}
	n.setOnAccept(r.requeued, OnAccept{State: onAcceptPending})
	m.after++
	return r, nil
}

// accepting begins the command for the result of a task, if that is to run. While the command waited for
// its turn, the task may have begun anew: the command of the result that it has now follows.
func (m *machine) accepting(id string, requeued int) acceptance {
	n := m.nodes[id]
	if n == nil || n.result == nil || n.result.Requeued != requeued || n.result.OnAccept == nil {
		return acceptance{nothing: true}
	}
	if n.result.OnAccept.State != onAcceptPending || !m.rules.onAccept {
		return acceptance{}
	}
	n.setOnAccept(requeued, OnAccept{State: onAcceptRunning})
	return acceptance{wanted: true}
}

// settleOnAccept takes how the command has ended.
func (in settledOnAccept) step(m *machine, out []effect) []effect {
	m.nodes[in.id].setOnAccept(in.requeued, in.said)
	return append(out, outdated{}, tell{Event{Kind: EventOnAccept, Task: in.id, Detail: in.detail}})
}

// setOnAccept replaces the result of a task by one that says so. requeued is its number.
func (n *node) setOnAccept(requeued int, said OnAccept) {
	if n.result == nil || n.result.Requeued != requeued {
		return
	}
	t := *n.result // others read the old one
	t.OnAccept = &said
	n.result = &t
}

// remark warns of something that holds for many tasks, once.
func (in remarked) step(m *machine, out []effect) []effect {
	if m.remarks[in.text] {
		return out
	}
	if m.remarks == nil {
		m.remarks = map[string]bool{}
	}
	m.remarks[in.text] = true
	return append(out, tell{Event{Kind: EventWarning, Detail: in.text}})
}
