package acpagent_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/agent-troupe/troupe/acp"
)

// difference is a rule: something that Troupe does otherwise than the recorded agent, on purpose.
// Its texts are a row of the table in docs/acp.md. One of the functions is set, and says for which
// lines or members the rule holds.
type difference struct {
	point, adapter, troupe string

	qoder    bool                                              // it is about qodercli
	drops    func(lane []*entry, i int) bool                   // Troupe does not write the line
	adds     func(lane []*entry, i int) bool                   // only Troupe writes the line
	moves    func(lane []*entry) []*entry                      // the lines of the recording in Troupe's order; nil: as it is
	replaces func(there, here *entry) bool                     // Troupe's line is another one altogether
	member   func(e *entry, path string, there, here any) bool // the member of a line of the recording differs; nil: it is not there
	used     *atomic.Int32
}

// entry is a line of an agent.
type entry struct {
	lane  string // the session, or "connection"
	label string // what it is, such as "update tool_call"
	id    string // of an answer
	value any    // params, result or error
	// asked are the parameters of the request that is answered, or of the prompt that runs.
	asked any
	// answer is the answer to that request in the recording; nil: there is none.
	answer *recorded
}

func (e *entry) String() string {
	data, _ := json.Marshal(e.value)
	if len(data) > 200 {
		data = append(data[:200], "…"...)
	}
	return e.label + " " + string(data)
}

// is: the line has this label, and each of the members, given as path and value.
func (e *entry) is(label string, members ...string) bool {
	if e.label != label {
		return false
	}
	for i := 0; i+1 < len(members); i += 2 {
		if text(e.value, strings.Split(members[i], ".")...) != members[i+1] {
			return false
		}
	}
	return true
}

// at is a line of a lane; an empty one outside of it.
func at(lane []*entry, i int) *entry {
	if i < 0 || i >= len(lane) {
		return &entry{}
	}
	return lane[i]
}

// entries are the lines of the agent, by lane.
func entries(recording, lines []*recorded) map[string][]*entry {
	of, answers := map[string]*recorded{}, map[string]*recorded{}
	prompts := map[string][]*recorded{} // of each session, that are not answered yet
	for _, r := range recording {
		switch {
		case r.request():
			of[string(r.ID)] = r
			if r.Method == acp.MethodSessionPrompt {
				session := text(r.Params, "sessionId")
				prompts[session] = append(prompts[session], r)
			}
		case !r.fromClient() && r.Method == "":
			answers[string(r.ID)] = r
		}
	}
	out := map[string][]*entry{}
	beside := besideOthers(recording)
	apart := map[string]bool{} // calls of background subagents have an order of their own
	for _, r := range lines {
		if r.fromClient() {
			continue
		}
		e := &entry{lane: "connection", label: "exit", id: string(r.ID)}
		asked := of[e.id]
		switch {
		case r.Dir == "exit":
			e.value = object{"how": "by itself"}
			if r.Code == nil {
				e.value = object{"how": "killed"}
			}
		case r.Method == acp.MethodSessionUpdate:
			e.label, e.value = "update "+text(r.Params, "update", "sessionUpdate"), joined(r.Params["update"])
		case r.Method != "":
			delete(r.Params, "requestId")
			e.label, e.value = "request "+r.Method, r.Params
		case asked == nil:
			e.label, e.value = "error", r.Error
		case r.Error != nil:
			e.label, e.value = "error "+asked.Method, r.Error
		default:
			e.label, e.value = "answer "+asked.Method, r.Result
		}
		for _, session := range []string{text(r.Params, "sessionId"), text(r.Result, "sessionId")} {
			e.lane = orElse(session, e.lane)
		}
		if r.Method == "" && asked != nil {
			e.lane, e.asked, e.answer = orElse(text(asked.Params, "sessionId"), e.lane), asked.Params, answers[e.id]
			prompts[e.lane] = slices.DeleteFunc(prompts[e.lane], func(p *recorded) bool { return p == asked })
			if at := slices.Index(recording, asked); asked.Method == acp.MethodSessionPrompt && openBefore(recording, at, e.lane) != nil && !runs(recording, at) {
				e.lane += ", cancelled in the queue" // its answer may come before or after that of the prompt that runs
			}
		} else if open := prompts[e.lane]; len(open) > 0 {
			e.asked, e.answer = open[0].Params, answers[string(open[0].ID)]
		}
		if parent := text(e.value, "_meta", "claudeCode", "parentToolUseId"); apart[parent] {
			e.lane += ", background"
		}
		if id := text(e.value, "toolCallId"); beside[id] && ended(e.value) {
			e.lane += ", result of " + id
		}
		input, _ := e.value.(object)["rawInput"].(object)
		if later, _ := input["run_in_background"].(bool); later {
			apart[text(e.value, "toolCallId")] = true
		}
		out[e.lane] = appended(out[e.lane], e)
	}
	return out
}

// ended: the update says how a call ended.
func ended(update any) bool {
	return slices.Contains([]string{"completed", "failed"}, text(update, "status"))
}

// besideOthers are the calls that ran beside others of the same agent. Which of them ends first is a matter of time.
func besideOthers(recording []*recorded) map[string]bool {
	beside, open := map[string]bool{}, map[string][]string{} // open calls, by the call of their subagent
	for _, r := range recording {
		update := r.Params["update"]
		id, parent := text(update, "toolCallId"), text(update, "_meta", "claudeCode", "parentToolUseId")
		switch {
		case text(update, "sessionUpdate") == "tool_call":
			if open[parent] = append(open[parent], id); len(open[parent]) > 1 {
				for _, other := range open[parent] {
					beside[other] = true
				}
			}
		case ended(update):
			open[parent] = slices.DeleteFunc(open[parent], func(other string) bool { return other == id })
		}
	}
	return beside
}

func orElse(one, other string) string {
	if one == "" {
		return other
	}
	return one
}

// appended adds a line to a lane. The pieces of a thought are one line: how the scripted agent
// cuts thoughts is its own affair.
func appended(lane []*entry, e *entry) []*entry {
	last := at(lane, len(lane)-1)
	if e.label != "update agent_thought_chunk" || last.label != e.label || text(last.value, "messageId") != text(e.value, "messageId") {
		return append(lane, e)
	}
	last.value.(object)["content"].(object)["text"] = text(last.value, "content", "text") + text(e.value, "content", "text")
	return lane
}

// joined is an update whose content is one text instead of several: the scripted agent's tools
// write one.
func joined(update any) any {
	blocks, _ := update.(object)["content"].([]any)
	all := ""
	for _, b := range blocks {
		if text(b, "content", "type") != "text" {
			return update
		}
		all += text(b, "content", "text")
	}
	if len(blocks) > 1 {
		update.(object)["content"] = []any{object{"type": "content", "content": object{"type": "text", "text": all}}}
	}
	return update
}

// comparison compares a recording with what was played.
type comparison struct {
	problems      []string
	rules         []*difference
	qoder         bool
	lines, points int
	ids           map[string]string // ids of calls and messages here, by those in the recording
	taken         map[string]string
}

func (c *comparison) compare(recording, here []*recorded) {
	there, ours := entries(recording, recording), entries(recording, here)
	lanes := slices.Collect(maps.Keys(there))
	for lane := range ours {
		if there[lane] == nil {
			lanes = append(lanes, lane)
		}
	}
	for _, lane := range slices.Sorted(slices.Values(lanes)) {
		c.lane(c.without(there[lane]), c.withoutAdded(ours[lane]))
	}
}

// holding are the rules for the recorded agent.
func (c *comparison) holding() (out []*difference) {
	for _, r := range c.rules {
		if r.qoder == c.qoder {
			out = append(out, r)
		}
	}
	return out
}

// without are the lines of a lane of the recording that Troupe should write, in Troupe's order.
func (c *comparison) without(lane []*entry) (out []*entry) {
	for _, r := range c.holding() {
		if r.moves == nil {
			continue
		}
		if moved := r.moves(lane); moved != nil {
			r.used.Add(1)
			lane = moved
		}
	}
	for i, e := range lane {
		if !c.any(func(r *difference) bool { return r.drops != nil && r.drops(lane, i) }) {
			out = append(out, e)
		}
	}
	return out
}

func (c *comparison) withoutAdded(lane []*entry) (out []*entry) {
	for i, e := range lane {
		if !c.any(func(r *difference) bool { return r.adds != nil && r.adds(lane, i) }) {
			out = append(out, e)
		}
	}
	return out
}

// any finds the first rule that holds, and counts its use.
func (c *comparison) any(holds func(*difference) bool) bool {
	for _, r := range c.holding() {
		if holds(r) {
			r.used.Add(1)
			return true
		}
	}
	return false
}

func (c *comparison) lane(there, here []*entry) {
	same := len(there) == len(here)
	other := map[int]bool{}
	for i := 0; same && i < len(there); i++ {
		other[i] = c.any(func(r *difference) bool { return r.replaces != nil && r.replaces(there[i], here[i]) })
		same = other[i] || there[i].label == here[i].label
	}
	if !same {
		words := "the lines differ. The recording:\n"
		for _, e := range there {
			words += "  " + e.String() + "\n"
		}
		words += "Troupe:\n"
		for _, e := range here {
			words += "  " + e.String() + "\n"
		}
		c.problems = append(c.problems, words)
		return
	}
	for i := range there {
		c.lines++
		if !other[i] {
			c.members(there[i], here[i])
		}
	}
}

// members compares the members of two lines.
func (c *comparison) members(there, here *entry) {
	a, b := map[string]any{}, map[string]any{}
	flatten("", there.value, a)
	flatten("", shortened(there.value, here.value), b)
	paths := slices.Collect(maps.Keys(a))
	for path := range b {
		if _, ok := a[path]; !ok {
			paths = append(paths, path)
		}
	}
	for _, path := range slices.Sorted(slices.Values(paths)) {
		c.points++
		x, y := a[path], b[path]
		if c.same(path, x, y) || c.any(func(r *difference) bool { return r.member != nil && r.member(there, path, x, y) }) {
			continue
		}
		c.problems = append(c.problems, fmt.Sprintf("%s: %s\n  the recording: %v\n  Troupe: %v", there, path, x, y))
	}
}

// same compares two members. Ids correspond, times and costs are of one kind.
func (c *comparison) same(path string, there, here any) bool {
	x, isText := there.(string)
	y, both := here.(string)
	name := path[strings.LastIndexByte(path, '.')+1:]
	switch {
	case name == "messageId" && isText && both: // the scripted agent puts texts in a row into one message
		c.ids[x] = orElse(c.ids[x], y)
		return c.ids[x] == y
	case (name == "toolCallId" || name == "parentToolUseId") && isText && both:
		if c.ids[x] == "" && c.taken[y] == "" {
			c.ids[x], c.taken[y] = y, x
		}
		return c.ids[x] == y
	case name == "updatedAt" && isText && both, path == "cost.amount" && there != nil && here != nil:
		return true
	}
	for _, launched := range []string{"Command running in background with ID: ", "```console\nCommand running in background with ID: ", "Async agent launched successfully."} {
		if both && strings.HasPrefix(x, launched) { // an id and a path follow
			return strings.HasPrefix(y, launched)
		}
	}
	if before, _, cut := strings.Cut(x, "…["); cut && both { // the recording has the first words only
		return strings.HasPrefix(y, before)
	}
	return reflect.DeepEqual(there, here)
}

// shortened is a value without what was left out of the recording: "…" marks it.
func shortened(there, here any) any {
	switch x := there.(type) {
	case object:
		y, _ := here.(object)
		_, cut := x["…"]
		out := object{}
		for k, v := range y {
			if _, ok := x[k]; ok || !cut {
				out[k] = shortened(x[k], v)
			}
		}
		if y != nil {
			return out
		}
	case []any:
		y, _ := here.([]any)
		out := []any{}
		for i, v := range y {
			if i < len(x) {
				if s, ok := x[i].(string); ok && strings.HasPrefix(s, "…") {
					return out
				}
				v = shortened(x[i], v)
			}
			out = append(out, v)
		}
		if y != nil {
			return out
		}
	}
	return here
}

// flatten collects the members of a value by their paths. An empty list, null and "" say the same
// as no member.
func flatten(path string, v any, out map[string]any) {
	switch v := v.(type) {
	case object:
		if len(v) == 0 {
			out[path] = "{}"
		}
		for k, one := range v {
			switch {
			case k == "…" || path == "" && k == "sessionUpdate":
			case path == "":
				flatten(k, one, out)
			default:
				flatten(path+"."+k, one, out)
			}
		}
	case []any:
		for i, one := range v {
			if s, ok := one.(string); !ok || !strings.HasPrefix(s, "…") {
				flatten(fmt.Sprintf("%s[%d]", path, i), one, out)
			}
		}
	case nil:
	case string:
		if v != "" {
			out[path] = v
		}
	default:
		out[path] = v
	}
}
