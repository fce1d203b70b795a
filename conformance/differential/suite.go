package differential

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

var update = flag.Bool("update-not-yet", false, "rewrite the list of cases that differ")

// Suite runs cases and judges them by the table.
type Suite struct {
	// Run is the kind of run, which rows name: recorded, live or full.
	Run string
	// NotYet is the file with the cases that differ, each with its first difference. It only
	// shrinks: a case that is not there and differs is a failure, and one that is there and
	// does not, too. "": every difference is a failure.
	NotYet string
	// Whole: the cases are all that the run has, so that each of its rows must excuse one.
	Whole bool
	// Workers is how many cases are played at the same time.
	Workers int
	// Tools are those of the embedded agent.
	Tools []string
	// Want is what Claude Code did.
	Want func(t *testing.T, c *Case) (*Observation, error)
	// Got is what the other did, knowing what Claude Code did.
	Got func(t *testing.T, c *Case, want *Observation) (*Observation, error)

	equal, excused, different map[string]string
	absent                    map[string][]string // by what is absent
	rows                      map[string]int
}

// Play plays the cases as subtests of t, and prints what became of them. A case that may differ
// by chance is played once more. TROUPE_CASES is a regular expression: only cases whose names
// match it are played.
func (s *Suite) Play(t *testing.T, cases []*Case) {
	t.Helper()
	if only := os.Getenv("TROUPE_CASES"); only != "" {
		names, err := regexp.Compile(only)
		if err != nil {
			t.Fatalf("TROUPE_CASES: %v", err)
		}
		cases, s.Whole = slices.DeleteFunc(slices.Clone(cases), func(c *Case) bool { return !names.MatchString(c.Name) }), false
	}
	table, err := Rows()
	if err != nil {
		t.Fatal(err)
	}
	s.equal, s.excused, s.different, s.absent, s.rows = map[string]string{}, map[string]string{}, map[string]string{}, map[string][]string{}, map[string]int{}
	notYet := s.read(t)
	all := map[string]bool{}
	var played []*Case
	for _, c := range cases {
		all[c.Name] = true
		if why := c.Absent(s.Tools); why != "" {
			s.absent[why] = append(s.absent[why], c.Name)
			continue
		}
		played = append(played, c)
	}
	outcomes := make([]outcome, len(played))
	done := make([]chan struct{}, len(played)) // its outcome is written
	for i := range done {
		done[i] = make(chan struct{})
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range max(1, s.Workers) { // most of a case is waiting: more of them than t.Parallel has
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(played)); i = next.Add(1) - 1 {
				outcomes[i] = s.compare(t, played[i], table)
				if _, known := notYet[played[i].Name]; outcomes[i].chance() && !known {
					outcomes[i] = s.compare(t, played[i], table)
				}
				close(done[i])
			}
		})
	}
	defer workers.Wait()
	for i, c := range played {
		t.Run(c.Name, func(t *testing.T) {
			<-done[i]
			s.judge(t, c, &outcomes[i], notYet)
		})
	}
	s.report(t, table)
	if *update && s.NotYet != "" {
		s.write(t, notYet, all)
	}
}

// outcome is what became of a case.
type outcome struct {
	first  string // the first difference that is not excused; "" without one
	rows   []string
	all    []string // all differences, if they are wanted
	beside bool     // something worked in the background
}

// chance reports whether the difference may come by chance, and then is not there again: agents
// work beside each other, and on a busy machine any command may be a long one, with a frame.
func (o *outcome) chance() bool {
	return o.first != "" && (o.beside || strings.HasPrefix(o.first, "frames.task_started: task_started"))
}

// judge decides whether the outcome of a case is as the list says.
func (s *Suite) judge(t *testing.T, c *Case, o *outcome, notYet map[string]string) {
	t.Helper()
	for _, d := range o.all {
		t.Log(d)
	}
	was, listed := notYet[c.Name]
	if problem := o.against(was, listed, s.NotYet); problem != "" && !*update {
		t.Error(problem)
	}
	switch {
	case o.first != "":
		s.different[c.Name] = o.first
	case len(o.rows) > 0:
		for _, r := range o.rows {
			s.rows[r]++
		}
		s.excused[c.Name] = strings.Join(o.rows, ", ")
	default:
		s.equal[c.Name] = ""
	}
}

// against says what is wrong with an outcome; "": nothing. was is what the list says of the case,
// if it is listed there. A listed case may differ only where it did: another field comes first
// when something that matters more differs.
func (o *outcome) against(was string, listed bool, list string) string {
	before, _, _ := strings.Cut(was, ": ")
	now, _, _ := strings.Cut(o.first, ": ")
	switch {
	case o.first == "" && listed:
		return "it is the same now: take it out of " + list
	case o.first != "" && !listed:
		return o.first
	case o.first != "" && now != before:
		return list + " says that it differs in " + before + ", and now it does here: " + o.first
	}
	return ""
}

// compare finds the first difference that nothing excuses, or else the rows that excuse.
func (s *Suite) compare(t *testing.T, c *Case, table Table) (o outcome) {
	t.Helper()
	want, err := s.Want(t, c)
	if err != nil {
		o.first = "Claude Code: " + err.Error()
		return o
	}
	got, err := s.Got(t, c, want)
	if err != nil {
		o.first = "no observation: " + err.Error()
		return o
	}
	o.beside = want.background()
	verbose := os.Getenv("TROUPE_DIFFERENCES") != "" // all of them, and not the first
	for _, d := range Compare(c, want, got) {
		used := table.Excuse(d)
		if used == nil {
			if o.first == "" {
				o.first = d.String()
			}
			if verbose {
				o.all = append(o.all, fmt.Sprintf("%s: %s in place of %s", d.Field, d.Got, d.Want))
			}
			continue
		}
		for _, r := range used {
			if !slices.Contains(o.rows, r.Name) {
				o.rows = append(o.rows, r.Name)
			}
		}
	}
	return o
}

// report prints what became of the cases, and fails for rows that excuse none.
func (s *Suite) report(t *testing.T, table Table) {
	t.Helper()
	var b strings.Builder
	missing := 0
	for _, names := range s.absent {
		missing += len(names)
	}
	fmt.Fprintf(&b, "%d cases are equal, %d are excused, %d differ, %d are of tools or options that this agent does not have\n", len(s.equal), len(s.excused), len(s.different), missing)
	for _, name := range slices.Sorted(maps.Keys(s.equal)) {
		fmt.Fprintf(&b, "equal      %s\n", name)
	}
	for _, name := range slices.Sorted(maps.Keys(s.excused)) {
		fmt.Fprintf(&b, "excused    %s: %s\n", name, s.excused[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.different)) {
		fmt.Fprintf(&b, "different  %s: %s\n", name, s.different[name])
	}
	for _, why := range slices.Sorted(maps.Keys(s.absent)) {
		fmt.Fprintf(&b, "absent     %s: %d cases: %s\n", why, len(s.absent[why]), strings.Join(s.absent[why], " "))
	}
	for _, r := range table {
		fmt.Fprintf(&b, "row        %s excuses %d cases\n", r.Name, s.rows[r.Name])
		if s.Whole && s.rows[r.Name] == 0 && slices.Contains(r.Runs, s.Run) && !*update {
			t.Errorf("row %q of the allowed differences excuses no case of this run: take it out, or the run out of its runs", r.Name)
		}
	}
	t.Log(b.String())
}

func (s *Suite) read(t *testing.T) map[string]string {
	t.Helper()
	list := map[string]string{}
	if s.NotYet == "" {
		return list
	}
	text, err := os.ReadFile(s.NotYet)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name, why, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && !strings.HasPrefix(line, "#") {
			list[name] = why
		}
	}
	return list
}

const head = `# Cases that differ from Claude Code and will not stay so: the case, and the first difference.
# The list only shrinks. go test with -update-not-yet rewrites it.
`

// write writes the list anew. Entries of cases that were not played stay.
func (s *Suite) write(t *testing.T, before map[string]string, all map[string]bool) {
	t.Helper()
	list := maps.Clone(s.different)
	for name, why := range before {
		if !all[name] && !s.Whole {
			list[name] = why
		}
	}
	var b strings.Builder
	b.WriteString(head)
	for _, name := range slices.Sorted(maps.Keys(list)) {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.ReplaceAll(list[name], "\n", `\n`))
	}
	if err := os.WriteFile(s.NotYet, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}
