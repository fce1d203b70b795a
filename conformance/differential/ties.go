package differential

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// ties are files whose times a coarse clock does not tell apart: each has the number of its
// group. Claude Code lists them as the disk does, and the embedded agent by their names.
type ties map[string]int

// tick is how coarse clocks of disks are.
const tick = 5 * time.Millisecond

func (o *Observation) ties() ties {
	names := slices.SortedFunc(maps.Keys(o.times), func(a, b string) int { return o.times[a].Compare(o.times[b]) })
	all, group := ties{}, 0
	for i, name := range names {
		if i > 0 && o.times[name].Sub(o.times[names[i-1]]) >= tick {
			group++
		}
		all[name] = group
	}
	return all
}

// like gives lists of files the order that the other has, where that differs only in files with
// equal times, and notes that it did.
func (t ties) like(channel string, want, got []Item, note func(Difference)) []Item {
	theirs := map[string]any{}
	for _, w := range want {
		theirs[w.Key] = w.Value
	}
	got = slices.Clone(got)
	for i, g := range got {
		if w, ok := theirs[g.Key]; ok {
			got[i].Value = t.value(channel, w, g.Value, note)
		}
	}
	return got
}

func (t ties) value(channel string, want, got any, note func(Difference)) any {
	switch g := got.(type) {
	case map[string]any:
		w, _ := want.(map[string]any)
		out := maps.Clone(g)
		for _, k := range slices.Sorted(maps.Keys(g)) {
			out[k] = t.value(channel, w[k], g[k], note)
		}
		return out
	case []any:
		w, _ := want.([]any)
		if t.same(texts(w), texts(g)) {
			note(Difference{channel + ".order_of_equal_times", shown(w), shown(g)})
			return w
		}
		out := slices.Clone(g)
		for i := range min(len(w), len(g)) {
			out[i] = t.value(channel, w[i], g[i], note)
		}
		return out
	case string:
		w, _ := want.(string)
		if t.same(strings.Split(w, "\n"), strings.Split(g, "\n")) {
			note(Difference{channel + ".order_of_equal_times", w, g})
			return w
		}
	}
	return got
}

// texts are the texts of a list; nil if it has others.
func texts(list []any) []string {
	var all []string
	for _, v := range list {
		s, ok := v.(string)
		if !ok {
			return nil
		}
		all = append(all, s)
	}
	return all
}

// same reports whether two lists differ in the order of files with equal times, and in nothing else.
func (t ties) same(a, b []string) bool {
	if len(a) != len(b) || slices.Equal(a, b) {
		return false
	}
	for i := range a {
		x, isFile := t[a[i]]
		y, isOther := t[b[i]]
		if a[i] != b[i] && (!isFile || !isOther || x != y) {
			return false
		}
	}
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// until is what an agent did up to where the other, which never ended, stood still.
func (o *Observation) until(want *Observation) *Observation {
	out := *o
	out.Reads = o.Reads[:min(len(o.Reads), len(want.Reads))]
	out.Frames = o.Frames[:min(len(o.Frames), len(want.Frames))]
	out.Structured = o.Structured[:min(len(o.Structured), len(want.Structured))]
	out.Results = o.Results[:min(len(o.Results), len(want.Results))]
	out.Calls = slices.Clone(o.Calls)
	for i := range min(len(out.Calls), len(want.Calls)) {
		if steps, _ := want.Calls[i].Value.(string); strings.HasPrefix(shown(out.Calls[i].Value), steps) {
			out.Calls[i].Value = steps
		}
	}
	return &out
}
