package differential

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Difference is one difference between what Claude Code did and what the other did.
type Difference struct {
	// Field says where: frames.system/init.tools.
	Field string
	// Want and Got are what is there; absent if nothing is.
	Want, Got string
}

const absent = "(absent)"

// String is the difference in one line.
func (d Difference) String() string {
	return fmt.Sprintf("%s: %s in place of %s", d.Field, short(d.Got), short(d.Want))
}

func short(s string) string {
	s = strings.ReplaceAll(s, "\n", `\n`)
	if len(s) > 200 {
		return strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}

// Compare returns the differences of a case, in the order of what matters most.
func Compare(c *Case, want, got *Observation) []Difference {
	var all []Difference
	note := func(d Difference) { all = append(all, d) }
	if want.Endless {
		got = got.until(want)
	}
	alone := c.alone()
	items := func(channel string, want, got []Item, note func(Difference)) {
		items(channel, want, together(want, got, alone), note)
	}
	items("gates", want.Gates, interleaved(want.Gates, got.Gates), note)
	items("files", want.Files, got.Files, note)
	if len(want.Reads) != len(got.Reads) {
		note(Difference{"reads.requests", fmt.Sprint(len(want.Reads)), fmt.Sprint(len(got.Reads))})
	}
	ties := got.ties()
	for i := range min(len(want.Reads), len(got.Reads)) {
		if w, g := want.Reads[i].Key, got.Reads[i].Key; w != g {
			note(Difference{"reads.streamed", w, g})
		}
		w, ok := want.Reads[i].Value.([]Item)
		g, _ := got.Reads[i].Value.([]Item)
		if ok {
			items("reads", w, ties.like("reads", w, g, note), note)
		}
	}
	items("structured", want.Structured, ties.like("structured", want.Structured, got.Structured, note), note)
	items("calls", want.Calls, got.Calls, note)
	background := want.background()
	wantFrames, wantAside := aside(want.Frames, background)
	gotFrames, gotAside := aside(got.Frames, background)
	items("frames", wantAside, gotAside, note)
	wantFrames, wantEvents, wantOrder := streams(wantFrames)
	gotFrames, gotEvents, gotOrder := streams(gotFrames)
	items("frames", wantFrames, ties.like("frames", wantFrames, gotFrames, note), note)
	items("frames", wantEvents, gotEvents, note)
	if same(wantFrames, gotFrames) && same(wantEvents, gotEvents) && wantOrder != gotOrder {
		note(Difference{"frames.order", wantOrder, gotOrder})
	}
	items("result", want.Results, got.Results, note)
	return all
}

// background reports whether something worked in the background.
func (o *Observation) background() bool {
	return slices.ContainsFunc(o.Frames, func(f Item) bool { return f.Key == "system/background_tasks_changed" })
}

// aside takes frames out that say what the session and its commands in the background do, if
// there are any: such a command may end before the turn or after it. That the session is idle
// between turns is not compared then.
func aside(frames []Item, background bool) (others, out []Item) {
	if !background {
		return frames, nil
	}
	var states []Item
	state := func(i Item) any { return i.Value.(map[string]any)["state"] }
	for _, f := range frames {
		switch f.Key {
		case "system/session_state_changed":
			if n := len(states); n > 0 && state(f) == "running" && state(states[n-1]) == "idle" {
				states = states[:n-1]
				continue
			}
			states = append(states, f)
		case "system/background_tasks_changed", "system/task_updated", "system/task_notification":
			out = append(out, f)
		default:
			others = append(others, f)
		}
	}
	return others, append(out, states...)
}

// streams takes the events of the model's streams out of the frames. order is that of both
// kinds.
func streams(frames []Item) (others, events []Item, order string) {
	var kinds []string
	for _, f := range frames {
		if strings.HasPrefix(f.Key, "stream_event/") {
			events = append(events, f)
		} else {
			others = append(others, f)
		}
		kinds = append(kinds, f.Key)
	}
	return others, events, strings.Join(kinds, " ")
}

// same reports whether the keys are the same.
func same(a, b []Item) bool {
	return slices.EqualFunc(a, b, func(a, b Item) bool { return a.Key == b.Key })
}

// items compares two lists, whose longest common sequence of keys is what corresponds.
func items(channel string, want, got []Item, note func(Difference)) {
	field := func(i Item) string {
		if channel == "files" || channel == "result" {
			return channel
		}
		if v, _ := i.Value.(map[string]any); channel == "reads" && i.Key == "text" && v["role"] == "system" {
			return "reads.note" // not what the user said
		}
		kind, _, _ := strings.Cut(i.Key, ":")
		return channel + "." + strings.ReplaceAll(kind, " ", "_")
	}
	w, g := 0, 0
	lone := func(wants, gots []Item) {
		for _, i := range wants {
			note(Difference{field(i), describe(i), absent})
		}
		for _, i := range gots {
			note(Difference{field(i), absent, describe(i)})
		}
	}
	for _, pair := range common(want, got) {
		lone(want[w:pair[0]], got[g:pair[1]])
		w, g = pair[0]+1, pair[1]+1
		of := field(want[pair[0]])
		value := got[pair[1]].Value
		if of == "reads.note" {
			value = likeHooks(want[pair[0]].Value, value)
		}
		values(of, want[pair[0]].Value, value, note)
	}
	lone(want[w:], got[g:])
}

// likeHooks gives what the hooks of several calls have noted the order that the other note has:
// the calls may run side by side.
func likeHooks(want, got any) any {
	w, _ := want.(map[string]any)
	g, _ := got.(map[string]any)
	theirs, _ := w["text"].(string)
	text, _ := g["text"].(string)
	own := strings.TrimSuffix(strings.TrimPrefix(text, noteBegins), noteEnds)
	order, parts := strings.Split(theirs, "\n\n"), strings.Split(own, "\n\n")
	for _, p := range parts {
		if !strings.HasPrefix(p, "PreToolUse:") && !strings.HasPrefix(p, "PostToolUse:") {
			return got
		}
	}
	slices.SortStableFunc(parts, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	g = maps.Clone(g)
	g["text"] = strings.Replace(text, own, strings.Join(parts, "\n\n"), 1)
	return g
}

const noteBegins, noteEnds = "<system-reminder>\n", "\n</system-reminder>"

// together gives results that follow each other the order that the other has: of calls that
// run together, any can end first. alone are the calls that run with no other.
func together(want, got []Item, alone map[string]bool) []Item {
	result := func(i Item) bool {
		kind, id, _ := strings.Cut(i.Key, ":")
		return !alone[id] && (kind == "tool_result" || kind == "result" || kind == "user/tool_result")
	}
	place := map[string]int{}
	for i, w := range want {
		place[w.Key] = i
	}
	got = slices.Clone(got)
	for from := 0; from < len(got); {
		to := from
		for to < len(got) && result(got[to]) {
			to++
		}
		slices.SortStableFunc(got[from:to], func(a, b Item) int { return place[a.Key] - place[b.Key] })
		from = to + 1
	}
	return got
}

// interleaved gives the gates of calls that run side by side the order that the other has: their
// hooks overlap there, so either call may come first. The order of each call's own stays.
func interleaved(want, got []Item) []Item {
	type span struct{ first, last int }
	place, spans := map[string]int{}, map[string]span{}
	for i, w := range want {
		place[w.Key] = i
		kind, id, _ := strings.Cut(w.Key, ":")
		if strings.HasPrefix(kind, "hook ") {
			s, ok := spans[id]
			if !ok {
				s.first = i
			}
			spans[id] = span{s.first, i}
		}
	}
	late := func(a, b Item) bool {
		_, x, _ := strings.Cut(a.Key, ":")
		_, y, _ := strings.Cut(b.Key, ":")
		return x != "" && y != "" && x != y && place[a.Key] > place[b.Key] && spans[x].first < spans[y].last && spans[y].first < spans[x].last
	}
	got = slices.Clone(got)
	for i := range got {
		for j := i; j > 0 && late(got[j-1], got[j]); j-- {
			got[j-1], got[j] = got[j], got[j-1]
		}
	}
	return got
}

// common are the indices of what corresponds: a common sequence of keys, in which items that
// are the same count most.
func common(a, b []Item) (pairs [][2]int) {
	const same, nearly, begins, alike = 100, 50, 10, 1
	worth := func(i, j int) int {
		if a[i].Key != b[j].Key {
			return 0
		}
		differs := false
		values("", a[i].Value, b[j].Value, func(Difference) { differs = true })
		switch {
		case !differs:
			return same
		case strings.TrimSpace(describe(a[i])) == strings.TrimSpace(describe(b[j])):
			return nearly
		case begin(describe(a[i])) == begin(describe(b[j])): // a recording may have no more
			return begins
		}
		return alike
	}
	worths := make([][]int, len(a))
	best := make([][]int, len(a)+1)
	best[len(a)] = make([]int, len(b)+1)
	for i := len(a) - 1; i >= 0; i-- {
		worths[i], best[i] = make([]int, len(b)), make([]int, len(b)+1)
		for j := len(b) - 1; j >= 0; j-- {
			worths[i][j] = worth(i, j)
			best[i][j] = max(best[i+1][j], best[i][j+1])
			if worths[i][j] > 0 {
				best[i][j] = max(best[i][j], best[i+1][j+1]+worths[i][j])
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch w := worths[i][j]; {
		case w > 0 && best[i][j] == best[i+1][j+1]+w:
			pairs = append(pairs, [2]int{i, j})
			i, j = i+1, j+1
		case best[i][j] == best[i+1][j]:
			i++
		default:
			j++
		}
	}
	return pairs
}

// begin is the beginning of a text, or of the notification in it: each agent has its own words before that.
func begin(s string) string {
	const enough = 60
	if i := strings.Index(s, "<task-notification>"); i >= 0 {
		s = s[i:]
	}
	return s[:min(len(s), enough)]
}

func describe(i Item) string {
	if m, ok := i.Value.(map[string]any); ok {
		if text, ok := m["text"].(string); ok {
			return text
		}
		if o, ok := m["text"].(map[string]any); ok && o["head"] != nil {
			return fmt.Sprint(o["head"])
		}
	}
	return i.Key + " " + shown(i.Value)
}

func shown(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// reminder is what may stand behind a long text, of which a recording has the end.
var reminder = regexp.MustCompile(`(?s)\n\n<system-reminder>.*</system-reminder>$`)

var notification = regexp.MustCompile(`(?s)<task-notification>.*</task-notification>`)

// values compares two values.
func values(field string, want, got any, note func(Difference)) {
	differs := func() { note(Difference{field, shown(want), shown(got)}) }
	switch w := want.(type) {
	case anything:
	case map[string]any:
		cut, _ := w["cut"].(bool)
		if list, ok := got.([]any); ok && w["count"] != nil && cut { // a recording has its ends and its sum
			if n, _ := w["count"].(float64); int(n) != len(list) || sumOf(list) != w["sha256"] {
				differs()
			}
			return
		}
		if cut || w["head"] != nil && w["len"] != nil {
			text, ok := got.(string)
			if tail, _ := w["tail"].(string); ok && !abridged(w, text) && reminder.MatchString(tail) {
				if with := strings.TrimRight(text, " \t\n") + reminder.FindString(tail); abridged(w, with) {
					note(Difference{field, with, text})
					return
				}
			}
			if !ok || !abridged(w, text) {
				differs()
			}
			return
		}
		g, ok := got.(map[string]any)
		if !ok {
			differs()
			return
		}
		below := func(k string) string {
			if strings.HasSuffix(field, ".modelUsage") || strings.HasSuffix(field, ".model_usage_since_last_result") {
				k = "*" // a model
			}
			return field + "." + k
		}
		for _, k := range slices.Sorted(maps.Keys(w)) {
			if k == "text_len" { // the length of a text that was left out
				text, _ := g["text"].(string)
				values(field+".length", w[k], float64(len(text)), note)
				continue
			}
			if k == "text" && w["text_len"] != nil {
				continue
			}
			if v, there := g[k]; there {
				values(below(k), w[k], v, note)
			} else if w[k] != nil {
				note(Difference{below(k), shown(w[k]), absent})
			}
		}
		for _, k := range slices.Sorted(maps.Keys(g)) {
			if k == "text" && w["text_len"] != nil {
				continue
			}
			if _, there := w[k]; !there && g[k] != nil {
				note(Difference{below(k), absent, shown(g[k])})
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			differs()
			return
		}
		for i := range w {
			values(field, w[i], g[i], note)
		}
	case string:
		g, ok := got.(string)
		if strings.Contains(w, "[notification preamble, cut]") { // only the notification is recorded
			want, got = notification.FindString(w), notification.FindString(g)
			w, g = notification.FindString(w), notification.FindString(g)
		}
		if !ok || !sameText(w, g) {
			differs()
		}
	case float64:
		g, ok := got.(float64)
		switch {
		case ok && strings.HasSuffix(field, ".retry_delay_ms"): // up to a quarter is jitter
			ok = max(w, g) <= 1.3*min(w, g)
		default:
			ok = ok && w == g
		}
		if !ok {
			differs()
		}
	default:
		if want != got {
			differs()
		}
	}
}

// sameText compares a text with one that may be cut: by what comes before.
func sameText(want, got string) bool {
	for _, mark := range []string{"[cut:", "[... cut]", "[advice, cut]"} {
		if head, _, cut := strings.Cut(want, mark); cut {
			return strings.HasPrefix(got, strings.TrimSpace(head))
		}
	}
	if parts := leftOut.Split(want, -1); len(parts) > 1 {
		for i, p := range parts {
			parts[i] = regexp.QuoteMeta(strings.TrimSpace(p))
		}
		return regexp.MustCompile(`(?s)^\s*` + strings.Join(parts, ".*") + `\s*$`).MatchString(got)
	}
	return want == got
}

// leftOut stands in a recording for a part of a text.
var leftOut = regexp.MustCompile(`\[(advice|preamble), cut\]`)

// abridged reports whether a text is the one that a recording has by its length and sum, or
// by its length and beginning.
func abridged(want map[string]any, text string) bool {
	length, _ := want["len"].(float64)
	n := int(length)
	if n != len(text) && n != len([]rune(text)) && n != len(utf16.Encode([]rune(text))) {
		return false
	}
	if sum, ok := want["sha256"].(string); ok {
		return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16] == sum
	}
	head, _ := want["head"].(string)
	return strings.HasPrefix(text, head)
}

// sumOf is the sum that recordings have of a long list of texts: of its JSON, as Python writes it.
func sumOf(list []any) string {
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = shown(v)
		if text, ok := v.(string); ok {
			parts[i] = strconv.Quote(text)
		}
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte("["+strings.Join(parts, ", ")+"]")))[:16]
}
