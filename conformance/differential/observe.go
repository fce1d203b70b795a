package differential

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/conformance/modelapi"
)

// Observation is what an agent did in a case, in a form that does not depend on the run.
type Observation struct {
	// Frames are the messages of the agent, in order. Their part about a tool's result is in
	// Structured, and results of turns are in Results.
	Frames []Item
	// Gates are the questions of the agent, and the hooks that it called, in order.
	Gates []Item
	// Reads has an item for each request of the main conversation: the blocks that came since
	// the last answer, as [][]Item would be; anything where the recording left them out.
	Reads []Item
	// Structured are tool_use_result and tool_result_meta of each call.
	Structured []Item
	// Calls are, for each call, the steps that it took.
	Calls   []Item
	Files   []Item
	Results []Item
	// Endless: the agent did not come to an end, and was stopped.
	Endless bool

	times  map[string]time.Time // of the workspace's files, before
	beside []Item               // frames that may come at any time; they go behind the others
}

// Item is one thing that happened. Key says what, with the id of the call behind a colon.
type Item struct {
	Key   string
	Value any
}

// anything is the value of what a recording left out.
type anything struct{}

func observe(c *Case, p *Place, server *modelapi.Server, log []line, files map[string]any) *Observation {
	n := newNormal(p, server.URL(), log)
	o := &Observation{}
	steps := map[string][]string{}
	var ids []string
	step := func(id any, what string) {
		if s, ok := id.(string); ok && s != "" {
			if _, seen := steps[s]; !seen {
				ids = append(ids, s)
			}
			steps[s] = append(steps[s], what)
		}
	}
	answering := map[any]string{} // requests of the host, by id
	for _, l := range log {
		var frame map[string]any
		if json.Unmarshal(l.text, &frame) != nil {
			if l.agent {
				o.Frames = append(o.Frames, Item{"not JSON", n.text(string(l.text))})
			}
			continue
		}
		frame, _ = n.value("", frame).(map[string]any)
		if !l.agent {
			if frame["type"] == "control_request" {
				request, _ := frame["request"].(map[string]any)
				answering[frame["request_id"]] = fmt.Sprint(request["subtype"])
			}
			continue
		}
		switch frame["type"] {
		case "control_request":
			o.gate(c, frame, step)
		case "control_response":
			response, _ := frame["response"].(map[string]any)
			delete(response, "pending_permission_requests")
			id := response["request_id"]
			delete(response, "request_id")
			o.Frames = append(o.Frames, Item{"control_response/" + answering[id], response})
		case "control_cancel_request", "keep_alive":
		case "result":
			o.Results = append(o.Results, Item{"result", frame})
		default:
			before := len(o.Frames)
			if o.frame(frame, step); n.beside[l.of()] && !bytes.Contains(l.text, []byte(`"<synthetic>"`)) { // a recording has those in their place
				o.beside = append(o.beside, o.Frames[before:]...)
				o.Frames = o.Frames[:before]
			}
		}
	}
	o.Frames = append(o.Frames, o.beside...)
	for _, id := range ids {
		o.Calls = append(o.Calls, Item{"call:" + id, strings.Join(steps[id], ", ")})
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		o.Files = append(o.Files, Item{n.text(name), n.value("", files[name])})
	}
	o.reads(n, server)
	return o
}

// gate notes a question of the agent.
func (o *Observation) gate(c *Case, frame map[string]any, step func(any, string)) {
	request, _ := frame["request"].(map[string]any)
	switch request["subtype"] {
	case "can_use_tool":
		delete(request, "subtype")
		step(request["tool_use_id"], "asked")
		o.Gates = append(o.Gates, Item{fmt.Sprintf("ask:%v", request["tool_use_id"]), request})
	case "hook_callback":
		index, own := hookIndex(c, request["callback_id"])
		if !own {
			return
		}
		input, _ := request["input"].(map[string]any)
		event := fmt.Sprint(input["hook_event_name"])
		step(input["tool_use_id"], event)
		o.Gates = append(o.Gates, Item{hookKey(event, input), map[string]any{"hook": index, "input": input}})
	default:
		o.Frames = append(o.Frames, Item{fmt.Sprintf("control_request/%v", request["subtype"]), request})
	}
}

// hookKey is the key of a hook's call: its event, and the tool's call that it is about, if any.
func hookKey(event any, input map[string]any) string {
	if id, ok := input["tool_use_id"].(string); ok {
		return fmt.Sprintf("hook %v:%s", event, id)
	}
	return fmt.Sprintf("hook %v", event)
}

// hookIndex is the hook's place in the case; own is false for one of package sdk's own.
func hookIndex(c *Case, id any) (index float64, own bool) {
	text := fmt.Sprint(id)
	n, err := strconv.Atoi(text[strings.LastIndexAny(text, "_-")+1:])
	return float64(n), err == nil && n < len(c.Hooks)
}

// frame notes a message of the agent.
func (o *Observation) frame(frame map[string]any, step func(any, string)) {
	key := fmt.Sprint(frame["type"])
	message, _ := frame["message"].(map[string]any)
	content, _ := message["content"].([]any)
	switch frame["type"] {
	case "system":
		key += fmt.Sprintf("/%v", frame["subtype"])
		if usage, ok := frame["usage"].(map[string]any); ok && frame["subtype"] == "task_progress" {
			delete(usage, "total_tokens")                 // Claude Code counts what it has read of the answer, which varies from run to run
			o.beside = append(o.beside, Item{key, frame}) // before the call of some subagents, and behind that of others
			return
		}
	case "stream_event":
		event, _ := frame["event"].(map[string]any)
		key += fmt.Sprintf("/%v", event["type"])
	case "assistant", "user":
		if len(content) == 0 {
			break
		}
		block, _ := content[0].(map[string]any)
		key += fmt.Sprintf("/%v", block["type"])
		switch block["type"] {
		case "tool_use":
			key += fmt.Sprintf(":%v", block["id"])
			step(block["id"], "called")
		case "tool_result":
			id := block["tool_use_id"]
			key += fmt.Sprintf(":%v", id)
			step(id, "result")
			o.Structured = append(o.Structured, Item{fmt.Sprintf("result:%v", id), map[string]any{"value": frame["tool_use_result"], "meta": frame["tool_result_meta"]}})
			delete(frame, "tool_use_result")
			delete(frame, "tool_result_meta")
		}
	}
	o.Frames = append(o.Frames, Item{key, frame})
}

// reads notes what the model was sent, request by request.
func (o *Observation) reads(n *normal, server *modelapi.Server) {
	var later []Item // of the scenarios' agents, which may work at the same time
	for _, r := range server.Requests() {
		if r.Endpoint != modelapi.Messages || subagent(r.Messages) != "" || len(r.Tools) == 0 {
			continue
		}
		from := 0
		for i, m := range r.Messages {
			if m.Role == "assistant" {
				from = i + 1
			}
		}
		var blocks []Item
		if from > 0 {
			for _, b := range r.Messages[from-1].Content {
				blocks = append(blocks, n.block("assistant", b.Raw))
			}
		}
		for _, m := range r.Messages[from:] {
			for _, b := range m.Content {
				blocks = append(blocks, n.block(m.Role, b.Raw))
			}
		}
		if one := (Item{requestKey(r.Stream), blocks}); nested(r.Messages) {
			later = append(later, one)
		} else {
			o.Reads = append(o.Reads, one)
		}
	}
	o.Reads = append(o.Reads, later...)
}

// requestKey says whether the answer is to be a stream.
func requestKey(streamed bool) string {
	if streamed {
		return "request"
	}
	return "request of an answer in one piece"
}

// block is a block of a message as it is compared.
func (n *normal) block(role string, raw json.RawMessage) Item {
	var v any
	_ = json.Unmarshal(raw, &v) // the server has read it
	return readBlock(role, n.value("", v))
}

func readBlock(role string, v any) Item {
	if text, ok := v.(string); ok {
		v = map[string]any{"type": "text", "text": text}
	}
	b, _ := v.(map[string]any)
	delete(b, "cache_control")
	if list, ok := b["citations"].([]any); ok && len(list) == 0 {
		delete(b, "citations")
	}
	key := fmt.Sprint(b["type"])
	switch {
	case role == "assistant":
		return Item{"said " + key, b}
	case key == "tool_result":
		if b["is_error"] == nil {
			b["is_error"] = false
		}
		return Item{fmt.Sprintf("tool_result:%v", b["tool_use_id"]), b}
	case key == "text":
		text := b["text"]
		if text == nil {
			text = b["outline"]
		}
		return Item{"text", map[string]any{"role": role, "text": text}}
	}
	b["role"] = role
	return Item{key, b}
}

// normal replaces what differs from run to run.
type normal struct {
	plain  *strings.Replacer
	ids    map[string]string
	beside map[string]bool // subagents in the background
}

// of is the subagent that a line is of; "": the main conversation.
func (l *line) of() string {
	var f struct {
		Agent string `json:"agent_id"`
	}
	_ = json.Unmarshal(l.text, &f) // what is not JSON has no agent
	return f.Agent
}

var (
	serverIDs = regexp.MustCompile(`\b(toolu_msg_\d+_\d+|msg_\d+|req_\d+)\b`)
	patterns  = []struct {
		find *regexp.Regexp
		put  string
	}{
		{regexp.MustCompile(`/plans/[\w.-]+\.md`), "/plans/<plan>.md"},
		{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|<uuid\d+>`), "<uuid>"},
		{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "<time>"},
		{regexp.MustCompile(`<(task|agent)\d+>`), "<$1>"},
		{regexp.MustCompile(`\b(Request|Message) ID: (<?(req|msg)[\w>]*)`), "$1 ID: <$3>"},
		{regexp.MustCompile(`\.tmp\.\d+\.[0-9a-f]+`), ".tmp.<pid>.<hex>"},
		{regexp.MustCompile(`(bash: line \d+:) +\d+ `), "$1 <pid> "},
		{regexp.MustCompile(`/claude-\d+/`), "/claude-<uid>/"},
		{regexp.MustCompile(`troupe-tools-[0-9a-f]+`), "troupe-tools-<hex>"},
		{regexp.MustCompile(`\bTROUPE_LAUNCH_\d+_[0-9a-z]+`), "TROUPE_LAUNCH_<id>"},
		{regexp.MustCompile(` [A-Z][a-z]{2} +\d+ +\d\d:\d\d`), "<date>"},
		{regexp.MustCompile(`\b20\d\d-\d\d-\d\d\b`), "<date>"},
		{regexp.MustCompile(`\(first \d+ of \d+ bytes\)`), "(first <n> of <n> bytes)"}, // paths have other lengths
		{regexp.MustCompile(`parse failed \(\d+ bytes\)`), "parse failed (<n> bytes)"},
		{regexp.MustCompile(`\bID: b[0-9a-z]{8}\b`), "ID: <task>"},
		{regexp.MustCompile(`("id": "|\bcell )[0-9a-f]{8}\b`), "$1<hex8>"}, // of a new cell
		{regexp.MustCompile(`(duration_ms: |<duration_ms>)\d+`), "${1}0"},
		{regexp.MustCompile(`(?m)^([d-][rwx-]{9} +\d+) \w+ \w+ `), "$1 <user> <group> "},
	}
)

var longDigits = regexp.MustCompile(`[0-9]{4,}`)

var slugged = regexp.MustCompile(`[^A-Za-z0-9]`)

func newNormal(p *Place, url string, log []line) *normal {
	pairs := []string{url, "http://<model>", strings.TrimPrefix(url, "http://"), "<model>", p.Root, "/w", slugged.ReplaceAllString(p.Root, "-"), "-w"}
	if cut := longDigits.ReplaceAllString(p.Root, "N"); cut != p.Root { // commands of cases leave numbers out
		pairs = append(pairs, cut, "/w")
	}
	n := &normal{ids: map[string]string{}, beside: map[string]bool{}}
	counts := map[string]int{}
	var others []line
	for i := range log {
		var f struct {
			TaskID     string `json:"task_id"`
			Kind       string `json:"task_type"`
			Background bool   `json:"is_backgrounded"`
		}
		if json.Unmarshal(log[i].text, &f) == nil && f.TaskID != "" {
			name := "<task>"
			if f.Kind == "local_agent" {
				name, n.beside[f.TaskID] = "<agent>", f.Background
			}
			if !slices.Contains(pairs, f.TaskID) {
				pairs = append(pairs, f.TaskID, name)
			}
		}
		if n.beside[log[i].of()] {
			others = append(others, log[i])
			continue
		}
		n.count(log[i].text, counts)
	}
	for i := range others {
		n.count(others[i].text, counts)
	}
	n.plain = strings.NewReplacer(pairs...)
	return n
}

// count gives the server's ids of a line their numbers.
func (n *normal) count(text []byte, counts map[string]int) {
	for _, id := range serverIDs.FindAllString(string(text), -1) {
		if n.ids[id] == "" {
			kind, _, _ := strings.Cut(id, "_")
			counts[kind]++
			n.ids[id] = fmt.Sprintf("<%s%d>", kind, counts[kind])
		}
	}
}

func (n *normal) text(s string) string {
	if n.plain != nil {
		s = n.plain.Replace(s)
	}
	for _, p := range patterns {
		s = p.find.ReplaceAllString(s, p.put)
	}
	return serverIDs.ReplaceAllStringFunc(s, func(id string) string {
		if as := n.ids[id]; as != "" {
			return as
		}
		return id
	})
}

var durations = regexp.MustCompile(`(?i)duration|elapsed|_ms$|[a-z]Ms$|^(start|end)_?time$|ttft`)

// newCell is the id of a new cell of a notebook.
var newCell = regexp.MustCompile(`^[0-9a-f]{8}$`)

// value is v with its texts normalised, and its durations 0. key is the member that it is of.
func (n *normal) value(key string, v any) any {
	switch v := v.(type) {
	case string:
		if key == "run_id" || key == "runId" {
			return "<run>"
		}
		if key == "signature" {
			return "<sig>"
		}
		if key == "cell_id" && newCell.MatchString(v) {
			return "<hex8>"
		}
		return n.text(v)
	case float64:
		if durations.MatchString(key) && key != "retry_delay_ms" && key != "timedOutAfterMs" {
			return 0.0
		}
	case []any:
		for i := range v {
			v[i] = n.value(key, v[i])
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			one := n.value(k, v[k])
			if as := n.text(k); as != k {
				delete(v, k)
				k = as
			}
			v[k] = one
		}
		if raw, ok := v["raw"].(string); ok && v["len"] != nil { // of an input, in which paths have other lengths
			v["len"] = float64(len(raw))
		}
	}
	return v
}
