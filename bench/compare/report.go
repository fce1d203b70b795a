package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// report is everything that one run has found. The page is made from it alone.
type report struct {
	Date     string              `json:"date"`
	Machine  machine             `json:"machine"`
	Load     [2]string           `json:"load"` // before and after
	Versions []version           `json:"versions"`
	Sections map[string]*section `json:"sections"` // by their names in forms
	Missing  []string            `json:"missing,omitempty"`
}

// version is a program that was measured.
type version struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// section is a table: Columns are what is compared.
type section struct {
	Columns []string `json:"columns"`
	Rows    []row    `json:"rows"`
}

type row struct {
	Name  string `json:"name"`
	Unit  unit   `json:"unit,omitempty"`
	Cells []cell `json:"cells"` // one for each column
}

// cell has what each round has measured, or a note in its place.
type cell struct {
	Rounds []float64 `json:"rounds,omitempty"`
	Note   string    `json:"note,omitempty"`
}

// unit is what the figures of a row are.
type unit string

const (
	seconds unit = "s"
	bytes   unit = "B"
)

// format writes a value with three digits that count.
func (u unit) format(v float64) string {
	steps := []struct {
		from float64
		name string
	}{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}}
	if u == bytes {
		steps = steps[:0]
		for _, s := range []string{"GB", "MB", "KB"} {
			steps = append(steps, struct {
				from float64
				name string
			}{map[string]float64{"GB": 1 << 30, "MB": 1 << 20, "KB": 1 << 10}[s], s})
		}
	}
	for _, s := range steps {
		if v >= s.from || s == steps[len(steps)-1] {
			return digits(v/s.from) + " " + s.name
		}
	}
	return digits(v)
}

// digits writes a number with two or three digits that count.
func digits(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// spread is the middle of some values, and the quartiles on either side.
type spread struct{ low, median, high float64 }

func spreadOf(values []float64) spread {
	sorted := slices.Sorted(slices.Values(values))
	at := func(part float64) float64 {
		place := part * float64(len(sorted)-1)
		i := int(place)
		if i+1 == len(sorted) {
			return sorted[i]
		}
		return sorted[i] + (sorted[i+1]-sorted[i])*(place-float64(i))
	}
	return spread{at(0.25), at(0.5), at(0.75)}
}

// ratios are those of the rounds that both have.
func ratios(of, by []float64) []float64 {
	var all []float64
	for i, v := range of {
		if i < len(by) && by[i] > 0 {
			all = append(all, v/by[i])
		}
	}
	return all
}

// column is the place of what is compared; -1: the section does not have it.
func (s *section) column(name string) int { return slices.Index(s.Columns, name) }

// text is a cell: the median, and how many times the first figure of the row it is, with the quartiles.
func (s *section) text(r row, column int, quartiles bool) string {
	c := r.Cells[column]
	if len(c.Rounds) == 0 {
		return c.Note
	}
	text := r.Unit.format(spreadOf(c.Rounds).median)
	of := slices.IndexFunc(r.Cells, func(c cell) bool { return len(c.Rounds) > 0 })
	if of == column {
		return text
	}
	all := ratios(c.Rounds, r.Cells[of].Rounds)
	if len(all) == 0 {
		return text
	}
	times := spreadOf(all)
	text += " (×" + digits(times.median)
	if quartiles && len(all) > 2 {
		text += ", " + digits(times.low) + " to " + digits(times.high)
	}
	return text + ")"
}

// rounds says how many rounds the figures are from; "": the section has no figures.
func (s *section) rounds() string {
	counts := map[int]bool{}
	for _, r := range s.Rows {
		for _, c := range r.Cells {
			if len(c.Rounds) > 0 {
				counts[len(c.Rounds)] = true
			}
		}
	}
	var words []string
	for _, n := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, strconv.Itoa(n))
	}
	if len(words) == 0 {
		return ""
	}
	return " Rounds: " + strings.Join(words, " and ") + "."
}
