package main

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:embed equivalent.txt
var equivalentFile string

//go:embed sample.txt
var sampleFile string

// keysOf reads keys, one a line; # begins a comment.
func keysOf(text string) (keys []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			keys = append(keys, line)
		}
	}
	return keys
}

// equivalents are the mutants that nothing could notice, with the argument for each: a key,
// and below it lines that begin with a tab.
func equivalents() (map[string]string, error) {
	all, key := map[string]string{}, ""
	for line := range strings.Lines(equivalentFile) {
		switch trimmed := strings.TrimSpace(line); {
		case trimmed == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "\t"):
			if key == "" {
				return nil, fmt.Errorf("equivalent.txt: %q is about no mutant", trimmed)
			}
			all[key] = strings.TrimSpace(all[key] + " " + trimmed)
		default:
			key = trimmed
			all[key] = ""
		}
	}
	for key, why := range all {
		if why == "" {
			return nil, fmt.Errorf("equivalent.txt: no argument for %s", key)
		}
	}
	return all, nil
}

// sampled is the mutants of sample.txt.
func sampled(all []*Site) ([]*Site, error) {
	var chosen []*Site
	var errs []error
	for _, key := range keysOf(sampleFile) {
		i := slices.IndexFunc(all, func(s *Site) bool { return s.Key == key })
		if i < 0 {
			errs = append(errs, fmt.Errorf("sample.txt: the code of %q has changed; put another killed mutant in its place", key))
			continue
		}
		chosen = append(chosen, all[i])
	}
	return chosen, errors.Join(errs...)
}

// recorded is the mutants of a file of results, without those whose code has changed.
func recorded(file string, all []*Site) ([]*Site, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	byKey := map[string]*Site{}
	for _, s := range all {
		byKey[s.Key] = s
	}
	var chosen []*Site
	for line := range strings.Lines(string(text)) {
		key, _, _ := strings.Cut(line, "\t")
		if s := byKey[key]; s != nil && !crosses(s, chosen) {
			chosen = append(chosen, s)
		} else {
			fmt.Fprintln(os.Stderr, "the code has changed:", key)
		}
	}
	return chosen, nil
}

// table is what became of the mutants.
type table struct {
	mu    sync.Mutex
	drawn []*Site
	fates map[string]Fate
	file  string
	again bool
	only  *regexp.Regexp
	seed  uint64
	same  map[string]string
	of    subject
}

func newTable(o options, drawn []*Site) (*table, error) {
	t := &table{drawn: drawn, fates: map[string]Fate{}, file: o.results, again: o.again, only: o.only, seed: o.seed, of: o.of}
	var err error
	if t.same, err = equivalents(); err != nil || t.file == "" {
		return t, err
	}
	text, err := os.ReadFile(t.file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		cells := strings.Split(line, "\t")
		if len(cells) != 6 {
			return nil, fmt.Errorf("%s: a line has six cells: key, by, history, how, played, changed; this one is %q", t.file, line)
		}
		f := Fate{By: cells[1], History: cells[2], How: cells[3], Changed: cells[5]}
		if _, err := fmt.Sscan(cells[4], &f.Played); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", t.file, line, err)
		}
		t.fates[cells[0]] = f
	}
	return t, nil
}

// left is the mutants that are to be tried, in an order that makes the first of them a fair
// sample of all.
func (t *table) left() (all []*Site) {
	for _, s := range t.drawn {
		if f, done := t.fates[s.Key]; t.only.MatchString(s.Key) && (!done || t.again && !t.of.found(f)) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *Site) int { return cmp.Compare(a.rank(t.seed+1), b.rank(t.seed+1)) })
	return all
}

func (j subject) found(f Fate) bool {
	return slices.ContainsFunc(j.simulations, func(s simulation) bool { return s.name == f.By })
}

// note takes what became of a mutant.
func (t *table) note(s *Site, f Fate) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.fates[s.Key]; f.Played == 0 { // tried on unit tests alone
		f.Played, f.Changed = old.Played, old.Changed
	}
	t.fates[s.Key] = f
	fmt.Printf("%-14s %-6s %-24s %s\n", word(f), f.History+f.Changed, f.How, s.Key)
	if t.file == "" {
		return nil
	}
	var b strings.Builder
	for _, s := range t.drawn {
		if f, ok := t.fates[s.Key]; ok {
			fmt.Fprintf(&b, "%s\t%s\t%s\t%s\t%d\t%s\n", s.Key, f.By, f.History, f.How, f.Played, f.Changed)
		}
	}
	return os.WriteFile(t.file, []byte(b.String()), 0o644)
}

func word(f Fate) string {
	if f.By == "" {
		return "LIVES"
	}
	return f.By
}

// finish prints the counts, and reports what must not be.
func (t *table) finish(o options) error {
	type count struct{ drawn, same, sim, unit, lives int }
	byArea, byOp, sum := map[string]*count{}, map[string]*count{}, &count{}
	var errs []error
	for _, s := range t.drawn {
		f, done := t.fates[s.Key]
		if !done {
			continue
		}
		counts := []*count{sum, in(byOp, s.Op)}
		for _, a := range t.of.areas {
			if a.has(s) {
				counts = append(counts, in(byArea, a.name))
			}
		}
		_, same := t.same[s.Key]
		if same && f.By != "" {
			errs = append(errs, fmt.Errorf("equivalent.txt has a mutant that %s noticed: %s", f.By, s.Key))
		}
		if o.sample && f.By == "" {
			errs = append(errs, fmt.Errorf("a mutant that simulations found is not found any more: %s", s.Key))
		}
		for _, c := range counts {
			c.drawn++
			switch {
			case t.of.found(f):
				c.sim++
			case f.By != "":
				c.unit++
			case same:
				c.same++
			default:
				c.lives++
			}
		}
	}
	row := func(name string, c *count) {
		if c != nil && c.drawn > c.same {
			n := float64(c.drawn-c.same) / 100
			fmt.Printf("| %s | %d | %d | %d (%.0f %%) | %d | %d (%.1f %%) |\n", name, c.drawn, c.same, c.sim, float64(c.sim)/n, c.unit, c.lives, float64(c.lives)/n)
		}
	}
	fmt.Println("| | mutants | equivalent | found by simulations | by unit tests only | live |\n|---|---|---|---|---|---|")
	for _, a := range t.of.areas {
		row(a.name, byArea[a.name])
	}
	for _, op := range operators() {
		row(op, byOp[op])
	}
	row("all", sum)
	return errors.Join(errs...)
}

func in[C any](m map[string]*C, key string) *C {
	if m[key] == nil {
		m[key] = new(C)
	}
	return m[key]
}
