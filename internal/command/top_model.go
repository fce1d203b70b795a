package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/runtime"
)

// topModel is the screen of troupe top as a value.
type topModel struct {
	look tea.Cmd // asks the hosts

	rows          []topRow // in the order of the screen
	breakers      []string // lines about those that are not closed, and about accounts
	hosts         int
	err           error // of hosts that did not answer
	ever          bool  // the hosts have been asked
	sorted        int   // place in topOrders
	reversed      bool
	selected      topKey
	open          bool // the selected session is shown, not the list
	width, height int  // of the terminal; 0: not known
}

// topRow is a session of a host.
type topRow struct {
	host    inspect.Host
	session runtime.SessionTree
}

// topKey identifies a session.
type topKey struct {
	socket, id string
}

func (r *topRow) key() topKey { return topKey{r.host.Socket, r.session.ID} }

// topOrder is one way to sort.
type topOrder struct {
	column  string
	compare func(a, b *topRow) int
}

// topOrders are the ways to sort, in the order of the columns.
func topOrders() []topOrder {
	return []topOrder{
		{"SESSION", func(a, b *topRow) int { return cmp.Compare(a.session.ID, b.session.ID) }},
		{"STATE", func(a, b *topRow) int { return cmp.Compare(a.session.State.String(), b.session.State.String()) }},
		{"FOR", func(a, b *topRow) int { return cmp.Compare(b.inState(), a.inState()) }},
		{"RESTARTS", func(a, b *topRow) int { return cmp.Compare(b.restarts(), a.restarts()) }},
		{"UNREAD", func(a, b *topRow) int { return cmp.Compare(b.session.Unread, a.session.Unread) }},
		{"WAITS FOR", func(a, b *topRow) int { return cmp.Compare(b.waiting(), a.waiting()) }},
	}
}

func (r *topRow) inState() time.Duration { return r.session.At.Sub(r.session.StateSince) }

func (r *topRow) restarts() int {
	n := r.session.Restarts
	for _, a := range r.session.Actors {
		n += a.Restarts
	}
	return n
}

// waiting is how long the session has been waiting for what its row names.
func (r *topRow) waiting() time.Duration {
	if len(r.session.Waits) == 0 {
		return -1
	}
	return r.session.Waits[0].Age
}

// took replaces the rows by those of a new look.
func (m *topModel) took(l looked) {
	m.ever, m.err, m.hosts, m.rows, m.breakers = true, l.err, len(l.reports), nil, nil
	for _, r := range l.reports {
		for _, line := range slices.Concat(inspect.BreakerLines(&r.Tree), inspect.AccountLines(&r.Tree)) {
			m.breakers = append(m.breakers, fmt.Sprintf("%d: %s", r.Host.PID, line))
		}
		for i := range r.Tree.Sessions {
			m.rows = append(m.rows, topRow{r.Host, r.Tree.Sessions[i]})
		}
	}
	m.sort()
	if m.at() < 0 {
		m.open = false // it has ended
		m.moveTo(0)
	}
}

func (m *topModel) sort() {
	compare := topOrders()[m.sorted].compare
	m.rows = slices.Clone(m.rows) // the model is a value: the one before keeps its order
	slices.SortStableFunc(m.rows, func(a, b topRow) int {
		by := compare(&a, &b)
		if m.reversed {
			by = -by
		}
		return cmp.Or(by, cmp.Compare(a.session.ID, b.session.ID), cmp.Compare(a.host.Socket, b.host.Socket))
	})
}

// at is the place of the selected session; -1: it is not there.
func (m *topModel) at() int {
	return slices.IndexFunc(m.rows, func(r topRow) bool { return r.key() == m.selected })
}

func (m *topModel) moveTo(place int) {
	m.selected = topKey{}
	if len(m.rows) > 0 {
		m.selected = m.rows[min(max(place, 0), len(m.rows)-1)].key()
	}
}

// pressed takes a key, and reports whether it is the one that ends the program.
func (m *topModel) pressed(key string) (quit bool) {
	switch key {
	case "q", "ctrl+c":
		return true
	case "up", "k":
		m.moveTo(m.at() - 1)
	case "down", "j":
		m.moveTo(m.at() + 1)
	case "enter":
		m.open = !m.open && len(m.rows) > 0
	case "esc":
		m.open = false
	case "s":
		m.sorted = (m.sorted + 1) % len(topOrders())
		m.sort()
	case "r":
		m.reversed = !m.reversed
		m.sort()
	}
	return false
}

// text is the screen, cut to the size of the terminal.
func (m *topModel) text() string {
	order := ""
	if m.reversed {
		order = ", reversed"
	}
	head := []string{
		fmt.Sprintf("troupe top: %s, %s, sorted by %s%s", shown.Count(m.hosts, "program"), shown.Count(len(m.rows), "session"), topOrders()[m.sorted].column, order),
		"",
	}
	if m.err != nil {
		head = append(head, strings.Split("troupe: "+printable(m.err.Error()), "\n")...)
	}
	if len(m.breakers) > 0 && !m.open {
		head = slices.Concat(head, m.breakers, []string{""})
	}
	foot := []string{"", "up/down select  Enter show  s sort  r reverse  q quit"}
	var body []string
	at := 0
	switch {
	case !m.ever:
		body = []string{"asking"}
	case m.open:
		body = m.sessionLines()
	case len(m.rows) == 0:
		body = []string{nobodyShows}
	default:
		body, at = m.tableLines(), 1+m.at()
	}
	if room := m.height - len(head) - len(foot); m.height > 0 && len(body) > max(room, 1) {
		body = window(body, max(room, 1), at)
	}
	lines := slices.Concat(head, body, foot)
	for i, line := range lines {
		lines[i] = cut(printable(line), m.width)
	}
	return strings.Join(lines, "\n")
}

// window is the part of the lines that fits: the headings, and what is around place at.
func window(lines []string, room, at int) []string {
	if room == 1 {
		return lines[at : at+1]
	}
	from := min(max(at-room+2, 1), len(lines)-room+1)
	return slices.Concat(lines[:1], lines[from:from+room-1])
}

// tableLines are the rows with their headings. The selected one is marked.
func (m *topModel) tableLines() []string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(mark, host string, cells []string) {
		_, _ = fmt.Fprintln(t, mark+host+"\t"+strings.Join(cells, "\t")) // a strings.Builder does not fail
	}
	line("  ", "HOST", inspect.Columns())
	for i := range m.rows {
		r, mark := &m.rows[i], "  "
		if r.key() == m.selected {
			mark = "> "
		}
		line(mark, fmt.Sprint(r.host.PID), inspect.Row(&r.session))
	}
	_ = t.Flush()
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// sessionLines are those of the selected session.
func (m *topModel) sessionLines() []string {
	at := m.at()
	if at < 0 {
		return []string{"the session has ended"}
	}
	var b strings.Builder
	if err := inspect.WriteSession(&b, &m.rows[at].session); err != nil {
		return []string{printable(err.Error())}
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// cut shortens a line to the width of the terminal, if that is known.
func cut(line string, width int) string {
	if r := []rune(line); width > 0 && len(r) > width {
		return string(r[:width])
	}
	return line
}
