package parity

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Covered says which tests covered a row, by its id.
type Covered map[string][]string

// ReadCovered reads what the tests of a run left in dir.
func ReadCovered(dir string) (Covered, error) {
	text, err := os.ReadFile(filepath.Join(dir, recordsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Covered{}, nil
	}
	if err != nil {
		return nil, err
	}
	c := Covered{}
	for line := range strings.Lines(string(text)) {
		id, test, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok {
			return nil, fmt.Errorf("%s: %q is not a row and a test", recordsFile, line)
		}
		if !slices.Contains(c[id], test) {
			c[id] = append(c[id], test)
		}
	}
	for _, tests := range c {
		slices.Sort(tests)
	}
	return c, nil
}

// Check holds the ledger against what was covered, and says what does not fit.
func Check(l *Ledger, c Covered) []string {
	var problems []string
	report := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, r := range l.Rows {
		tests := c[r.ID]
		switch {
		case r.Test == "" && len(tests) > 0:
			report("%s stands open (%s), and %s covers it", r.ID, r.Reason, tests[0])
		case r.Test != "" && len(tests) == 0:
			report("%s is closed, and no test that passed covers it; it names %s", r.ID, r.Test)
		case r.Test != "" && !slices.Contains(tests, r.Test):
			report("%s names %s, and is covered by %s", r.ID, r.Test, strings.Join(tests, ", "))
		}
	}
	rows := map[string]int{}
	for _, id := range slices.Sorted(maps.Keys(c)) {
		if l.Row(id) == nil {
			report("%s is covered by %s, and the ledger has no such row", id, c[id][0])
		}
		for _, test := range c[id] {
			rows[test]++
		}
	}
	for _, test := range slices.Sorted(maps.Keys(rows)) {
		if rows[test] > MaxRows {
			report("%s covers %d rows; one test covers at most %d", test, rows[test], MaxRows)
		}
	}
	return problems
}

// Update names in each covered row a test that covered it, and closes it.
func Update(l *Ledger, c Covered) {
	for i := range l.Rows {
		r := &l.Rows[i]
		if tests := c[r.ID]; len(tests) > 0 && !slices.Contains(tests, r.Test) {
			l.setTest(r, tests[0])
		}
	}
}

// Summary counts the rows, kind by kind.
func Summary(l *Ledger) string {
	type count struct{ closed, open int }
	kinds := map[string]*count{}
	all := &count{}
	for _, r := range l.Rows {
		kind := strings.Split(r.ID, "/")[1]
		if kinds[kind] == nil {
			kinds[kind] = &count{}
		}
		for _, c := range []*count{kinds[kind], all} {
			if r.Test != "" {
				c.closed++
			} else {
				c.open++
			}
		}
	}
	var out strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(&out, "%-12s %4d closed %4d open\n", kind, kinds[kind].closed, kinds[kind].open)
	}
	fmt.Fprintf(&out, "%-12s %4d closed %4d open\n", "all", all.closed, all.open)
	return out.String()
}
