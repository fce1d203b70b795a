package differential

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Recording is what Claude Code did when the case was recorded.
func (c *Case) Recording() (*Observation, error) {
	var r recording
	if err := json.Unmarshal(c.raw, &r); err != nil {
		return nil, fmt.Errorf("case %q: %w", c.Name, err)
	}
	if r.Requests == nil {
		return nil, fmt.Errorf("case %q has no recording: requests is missing", c.Name)
	}
	n := &normal{ids: map[string]string{}}
	o := &Observation{Endless: r.TimedOut}
	for _, f := range r.Frames {
		if id, ok := f["request_id"].(string); ok {
			n.ids[id] = "<req>"
		}
		o.Frames = append(o.Frames, Item{fmt.Sprint(f["subtype"]), n.value("", f)})
	}
	for _, a := range r.Asks {
		o.Gates = append(o.Gates, Item{fmt.Sprintf("ask:%v", a["tool_use_id"]), n.value("", a)})
	}
	for _, h := range r.Hooks {
		o.Gates = append(o.Gates, Item{hookKey(h.Input["hook_event_name"], h.Input), map[string]any{"hook": float64(h.Hook), "input": n.value("", h.Input)}})
	}
	for _, s := range r.Structured {
		o.Structured = append(o.Structured, Item{"result:" + s.ID, map[string]any{"value": n.value("", s.Value), "meta": n.value("", s.Meta)}})
	}
	for i := range r.Requests {
		q := &r.Requests[i]
		if q.Of != "main" || q.Endpoint != "" {
			continue
		}
		key := requestKey(q.Stream == nil || *q.Stream)
		if last := len(o.Reads) - 1; q.Same && last >= 0 {
			o.Reads = append(o.Reads, Item{key, o.Reads[last].Value})
			continue
		}
		if q.New == nil {
			o.Reads = append(o.Reads, Item{key, anything{}})
			continue
		}
		var blocks []Item
		for _, b := range q.LastAssistant {
			blocks = append(blocks, readBlock("assistant", n.value("", b)))
		}
		for _, raw := range q.New {
			var m struct {
				Role    string `json:"role"`
				Content any    `json:"content"`
			}
			if err := json.Unmarshal(raw, &m); err != nil {
				return nil, fmt.Errorf("case %q: %w", c.Name, err)
			}
			list, ok := m.Content.([]any)
			if !ok {
				list = []any{m.Content}
			}
			for _, b := range list {
				blocks = append(blocks, readBlock(m.Role, n.value("", b)))
			}
		}
		o.Reads = append(o.Reads, Item{key, blocks})
	}
	for _, name := range slices.Sorted(maps.Keys(r.FilesAfter.Changed)) {
		if !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, ".claude/worktrees") { // of the workspace
			o.Files = append(o.Files, Item{name, n.value("", r.FilesAfter.Changed[name])})
		}
	}
	for _, name := range r.FilesAfter.Removed {
		o.Files = append(o.Files, Item{name, "removed"})
	}
	slices.SortFunc(o.Files, func(a, b Item) int { return strings.Compare(a.Key, b.Key) })
	for _, f := range r.Result {
		o.Results = append(o.Results, Item{"result", n.value("", f)})
	}
	return o, nil
}

// like reduces what an agent did to what recordings have.
func (o *Observation) like(want *Observation) *Observation {
	out := *o
	out.Calls, out.Frames, out.Gates, out.Results, out.Reads = nil, nil, nil, nil, slices.Clone(o.Reads)
	asks, hooks := []Item{}, []Item{}
	asking := slices.ContainsFunc(want.Frames, func(i Item) bool { return statusOf(i) == "requesting" })
	for _, f := range o.Frames {
		kept, ok := keptFrame(f)
		if !ok || statusOf(kept) == "requesting" && !asking {
			continue
		}
		if kept.Key == "model_refusal_no_fallback" {
			kept.Value.(map[string]any)["request_id"] = "<req>"
		}
		out.Frames = append(out.Frames, kept)
	}
	for _, g := range o.Gates {
		if v, ok := g.Value.(map[string]any); ok && strings.HasPrefix(g.Key, "hook ") {
			input, _ := v["input"].(map[string]any)
			delete(input, "transcript_path")
			hooks = append(hooks, g)
			continue
		}
		asks = append(asks, g)
	}
	out.Gates = append(asks, hooks...)
	out.Files = slices.DeleteFunc(slices.Clone(o.Files), func(i Item) bool { return strings.HasPrefix(i.Key, ".claude/worktrees") })
	out.Structured = slices.DeleteFunc(slices.Clone(o.Structured), func(i Item) bool { // a subagent's
		v, _ := i.Value.(map[string]any)
		return v["value"] == nil
	})
	for _, r := range o.Results {
		v, _ := r.Value.(map[string]any)
		kept := map[string]any{}
		for _, name := range []string{"subtype", "is_error", "num_turns", "terminal_reason", "stop_reason", "result", "permission_denials", "api_error_status", "errors"} {
			value, there := v[name]
			if list, ok := value.([]any); there && (!ok || len(list) > 0) && (value != nil || name != "api_error_status") {
				kept[name] = value
			}
		}
		out.Results = append(out.Results, Item{"result", kept})
	}
	for i := range out.Reads {
		var has bool
		if i < len(want.Reads) {
			blocks, _ := want.Reads[i].Value.([]Item)
			has = slices.ContainsFunc(blocks, said)
		}
		if blocks, ok := out.Reads[i].Value.([]Item); ok && !has {
			out.Reads[i].Value = slices.DeleteFunc(slices.Clone(blocks), said)
		}
	}
	return &out
}

func statusOf(i Item) any {
	v, _ := i.Value.(map[string]any)
	if i.Key != "status" {
		return nil
	}
	return v["status"]
}

func said(i Item) bool { return strings.HasPrefix(i.Key, "said ") }

// without is v without the member, wherever it is.
func without(v any, member string) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, inner := range v {
			if k != member {
				out[k] = without(inner, member)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = without(v[i], member)
		}
		return out
	}
	return v
}

// keptFrame is a frame as recordings have it, if they have it.
func keptFrame(f Item) (Item, bool) {
	frame, _ := f.Value.(map[string]any)
	message, _ := frame["message"].(map[string]any)
	content, _ := message["content"].([]any)
	switch kind, _, _ := strings.Cut(f.Key, ":"); kind {
	case "assistant/text":
		if message["model"] != "<synthetic>" {
			return f, false
		}
		kept := map[string]any{"subtype": "assistant <synthetic>", "text": content}
		if e, there := frame["error"]; there {
			kept["error"] = e
		}
		return Item{"assistant <synthetic>", kept}, true
	case "user/text":
		if frame["parent_tool_use_id"] != nil {
			return f, false // a subagent's
		}
		kept := map[string]any{"subtype": "user"}
		if synthetic, _ := frame["isSynthetic"].(bool); synthetic {
			kept["subtype"] = "user synthetic"
		}
		block, _ := content[0].(map[string]any)
		kept["text"] = block["text"]
		return Item{fmt.Sprint(kept["subtype"]), kept}, true
	case "user": // of a compaction, or what a command of the user's says
		text, _ := message["content"].(string)
		kept := map[string]any{"subtype": "user", "text": text}
		if synthetic, _ := frame["isSynthetic"].(bool); synthetic {
			kept["subtype"] = "user synthetic"
		}
		return Item{fmt.Sprint(kept["subtype"]), kept}, kept["subtype"] != "user" || strings.HasPrefix(text, "<local-command-")
	case "system/task_started", "system/task_updated", "system/task_notification", "system/background_tasks_changed",
		"system/api_retry", "system/permission_denied", "system/status", "system/informational",
		"system/compact_boundary", "system/model_refusal_no_fallback":
		kept, _ := without(frame, "run_id").(map[string]any)
		for _, name := range []string{"type", "uuid", "session_id", "run_id", "user_message_uuid", "user_message_uuids"} {
			delete(kept, name)
		}
		return Item{fmt.Sprint(frame["subtype"]), kept}, true
	}
	return f, false
}
