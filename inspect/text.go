package inspect

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// WriteText writes a line about the host and a table of its sessions, for people. Text
// of agents is escaped and cut, so that it cannot steer a terminal.
func (r *Report) WriteText(w io.Writer) error {
	n := shown.Count(len(r.Tree.Sessions), "session")
	if _, err := fmt.Fprintf(w, "%s, pid %d: %s\n", shown.Line(r.Host.Program), r.Host.PID, n); err != nil {
		return err
	}
	for _, line := range slices.Concat(BreakerLines(&r.Tree), AccountLines(&r.Tree)) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	if len(r.Tree.Sessions) == 0 {
		return nil
	}
	rows := [][]string{Columns()}
	for i := range r.Tree.Sessions {
		rows = append(rows, Row(&r.Tree.Sessions[i]))
	}
	return table(w, rows)
}

// BreakerLines describes, for people, the breakers of a tree that are not closed or have
// starts waiting for them: one line each. Text of agents is escaped.
func BreakerLines(t *runtime.Tree) (lines []string) {
	for i := range t.Breakers {
		b := &t.Breakers[i]
		line := fmt.Sprintf("breaker %s %s: %s", b.Kind, cell(b.Name), b.State)
		switch {
		case b.State != session.BreakerClosed:
			line += fmt.Sprintf(" for %s, starts that wait: %d", age(t.At.Sub(b.Since)), b.Held)
			if b.State == session.BreakerOpen {
				line += ", next probe in " + age(b.NextProbe.Sub(t.At))
			}
			line += "; last failure: " + shown.Line(b.LastFailure)
		case b.Held > 0:
			line += fmt.Sprintf(", starts that wait: %d, at most %d per second", b.Held, b.StartsPerSecond)
		default:
			continue
		}
		lines = append(lines, line)
	}
	return lines
}

// Columns are the headings of the table that [Report.WriteText] writes.
func Columns() []string {
	return []string{"SESSION", "STATE", "FOR", "AGENT", "PID", "RESTARTS", "UNREAD", "WAITS FOR"}
}

// Row is the line of a session in the table: one cell for each of [Columns]. The
// cells have no control characters and no line breaks.
func Row(s *runtime.SessionTree) []string {
	restarts := s.Restarts
	for _, a := range s.Actors {
		restarts += a.Restarts
	}
	return []string{
		cell(s.ID), s.State.String(), age(s.At.Sub(s.StateSince)), cell(s.Backend), pid(s.PID),
		fmt.Sprint(restarts), fmt.Sprintf("%d/%d", s.Unread, s.UnreadLimit), waitsFor(s),
	}
}

// waitsFor is the first wait, and how many more there are.
func waitsFor(s *runtime.SessionTree) string {
	if len(s.Waits) == 0 {
		if s.Partial {
			return "? (no answer)"
		}
		return "-"
	}
	first := s.Waits[0]
	text := cell(first.What) + " " + age(first.Age)
	if first.Limit > 0 {
		text += " of " + age(first.Limit)
	}
	if more := len(s.Waits) - 1; more > 0 {
		text += fmt.Sprintf(" (+%d)", more)
	}
	return text
}

// WriteSession writes one session with all that it waits for and its actors, for people.
// Text of agents is escaped and cut.
func WriteSession(w io.Writer, s *runtime.SessionTree) error {
	agent := cell(s.Backend)
	if s.AgentSessionID != "" {
		agent += ", session " + cell(s.AgentSessionID)
	}
	facts := [][]string{
		{"session", cell(s.ID)},
		{"state", fmt.Sprintf("%v for %s, opened %s ago", s.State, age(s.At.Sub(s.StateSince)), age(s.At.Sub(s.Opened)))},
		{"agent", agent},
		{"process", fmt.Sprintf("pid %s, %s; restarts: %d", pid(s.PID), s.Transport, s.Restarts)},
		{"unread", fmt.Sprintf("%d of %s, %d of %d bytes", s.Unread, shown.Count(s.UnreadLimit, "message"), s.UnreadBytes, s.UnreadBytesLimit)},
	}
	if s.Dir != "" {
		facts = append(facts, []string{"directory", shown.Line(s.Dir)})
	}
	if s.Partial {
		facts = append(facts, []string{"incomplete", "an actor did not answer in time"})
	}
	waits := [][]string{{"WAITS FOR", "ID", "AGE", "LIMIT", "SET BY"}}
	for i := range s.Waits {
		waits = append(waits, waitRow(&s.Waits[i]))
	}
	actors := [][]string{{"ACTOR", "STATE", "RESTARTS", "MAILBOX", "HANDLED", "LAST FAILURE"}}
	for _, a := range s.Actors {
		actors = append(actors, []string{
			cell(a.Name), cell(a.State), fmt.Sprint(a.Restarts), fmt.Sprint(a.Depth), fmt.Sprint(a.Handled), dash(shown.Line(a.LastFailure)),
		})
	}
	if err := table(w, facts); err != nil {
		return err
	}
	for _, list := range [][][]string{waits, actors} {
		if len(list) == 1 {
			continue // only headings
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		if err := table(w, list); err != nil {
			return err
		}
	}
	return nil
}

func waitRow(wait *session.Wait) []string {
	limit := "none"
	if wait.Limit > 0 {
		limit = age(wait.Limit)
	}
	return []string{cell(wait.What), dash(cell(wait.ID)), age(wait.Age), limit, dash(wait.SetBy)}
}

// table writes rows in columns.
func table(w io.Writer, rows [][]string) error {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(t, strings.Join(row, "\t")) // a strings.Builder does not fail
	}
	_ = t.Flush()
	_, err := io.WriteString(w, b.String())
	return err
}

// maxCell is the most characters of a text that may come from an agent.
const maxCell = 48

// cell makes a text fit into a table.
func cell(s string) string {
	s = shown.Line(s)
	if r := []rune(s); len(r) > maxCell {
		return string(r[:maxCell-1]) + "…"
	}
	return s
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func pid(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// age writes a duration in the two largest of its units, such as 3m20s or 1.5s.
func age(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		d = d.Round(time.Second)
	default:
		d = d.Round(time.Minute)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
