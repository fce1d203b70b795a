package peers

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// row is a line of one of the tables.
type row struct {
	name, version, kind string
	runs                []ran
	sharing             *sharing
}

// ran is a run of n at once, where wanted were asked for.
type ran struct {
	n, wanted int
	figures
}

const (
	atOnceHead = "| agent | sessions | at once | wall | first request | CPU each | memory each | requests each |"
	sharedHead = "| one process | base | further session: idle | busy | after the task | CPU of opening | CPU of the task |"
)

// table is a Markdown table.
func table(head string, rows []row) string {
	var b strings.Builder
	b.WriteString(head + "\n" + strings.Repeat("|---", strings.Count(head, "|")-1) + "|\n")
	for _, r := range rows {
		name := strings.TrimSpace(r.name + " " + r.version)
		for _, f := range r.runs {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %.1f KB |\n", name, r.kind, f.count(), seconds(f.wall), seconds(f.first), seconds(f.cpu), f.memory(), f.kb)
		}
		if s := r.sharing; s != nil {
			fmt.Fprintf(&b, "| %s, %d sessions | %.0f MB | %.2f MB | %.2f MB | %.2f MB | %s | %s |\n", name, s.sessions, s.base, s.idle, s.busy, s.done, seconds(s.open), seconds(s.task))
		}
	}
	return b.String()
}

func (r ran) count() string {
	if r.n < r.wanted {
		return fmt.Sprintf("%d: no memory for %d", r.n, r.wanted)
	}
	return fmt.Sprint(r.n)
}

func (f figures) memory() string {
	if f.mb == 0 {
		return "too short to sample"
	}
	if f.resident {
		return fmt.Sprintf("%.1f MB (RSS)", f.mb)
	}
	return fmt.Sprintf("%.1f MB", f.mb)
}

// seconds has two digits that count.
func seconds(d time.Duration) string {
	switch s := d.Seconds(); {
	case s >= 10:
		return fmt.Sprintf("%.0f s", s)
	case s >= 1:
		return fmt.Sprintf("%.1f s", s)
	case s >= 0.1:
		return fmt.Sprintf("%.2f s", s)
	default:
		return fmt.Sprintf("%.1f ms", s*1000)
	}
}

// Limits of the embedded agent.
const (
	timesSooner  = 3.0     // its first request than crush's, one at a time
	partOfCPU    = 0.25    // its task in one process of crush's, a process each
	idleMB       = 0.06    // a further session
	busyMB       = 0.3     // the same
	requestBytes = 8 << 10 // the first request
)

// verdict prints whether the embedded agent is within its limits, and fails if it is not.
func verdict(w io.Writer, alone, shared []row) error {
	missed := 0
	check := func(name string, got, limit float64, held bool) {
		note := "held"
		if !held {
			note = "MISSED"
			missed++
		}
		_, _ = fmt.Fprintf(w, "%-72s %9.3f  limit %g  %s\n", name, got, limit, note)
	}
	mine, ok := find(alone, ours, "a process each", 1)
	if !ok {
		_, _ = fmt.Fprintln(w, "not checked: the embedded agent was not measured")
		return nil
	}
	check("bytes of the first request", float64(mine.firstBytes), requestBytes, mine.firstBytes <= requestBytes)
	i := slices.IndexFunc(shared, func(r row) bool { return r.name == ours })
	if i >= 0 {
		s := shared[i].sharing
		check("MB of a further session that is idle", s.idle, idleMB, s.idle <= idleMB)
		check("MB of a further session that is busy", s.busy, busyMB, s.busy <= busyMB)
	}
	const sooner, part = "first request, times sooner than crush's", "CPU of the task in one process, part of crush's"
	crush, ok := find(alone, "crush", "a process each", 1)
	if !ok {
		_, _ = fmt.Fprintf(w, "not checked, without crush: %s (at least %g); %s (at most %g)\n", sooner, timesSooner, part, partOfCPU)
	} else {
		times := crush.first.Seconds() / mine.first.Seconds()
		check(sooner, times, timesSooner, times >= timesSooner)
		if i >= 0 {
			of := shared[i].sharing.task.Seconds() / crush.cpu.Seconds()
			check(part, of, partOfCPU, of <= partOfCPU)
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d limits of the embedded agent are missed", missed)
	}
	return nil
}

// find is the run of so many at once.
func find(rows []row, name, kind string, n int) (ran, bool) {
	for _, r := range rows {
		if r.name != name || r.kind != kind {
			continue
		}
		if i := slices.IndexFunc(r.runs, func(f ran) bool { return f.n == n }); i >= 0 {
			return r.runs[i], true
		}
	}
	return ran{}, false
}
