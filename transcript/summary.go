package transcript

import (
	"bytes"
	"cmp"
	"encoding/json"
	"time"
)

// FoldSummary returns the summary of a session after entries were appended to it, for
// stores that implement session.StoreSummaries. data is the summary before, nil at first;
// it is not changed. The JSON is that of the Claude Agent SDK's foldSessionSummary
// (observed on 0.3.329): members that it does not know stay.
//
// The whole session counts, so a title in the middle of a long session is seen, unlike in
// a list of files.
func FoldSummary(data json.RawMessage, entries []json.RawMessage) json.RawMessage {
	s := map[string]any{}
	_ = json.Unmarshal(data, &s) // a summary that is not an object is begun anew
	if s == nil {
		s = map[string]any{}
	}
	for _, e := range entries {
		l := parseLine(bytes.TrimSpace(e))
		if l.Damage == "" {
			foldEntry(s, l)
		}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil { // it came from JSON
		return data
	}
	return bytes.TrimSpace(out.Bytes())
}

func foldEntry(s map[string]any, l *Line) {
	first := func(name string, value any) {
		if _, there := s[name]; !there {
			s[name] = value
		}
	}
	first("isSidechain", l.Sidechain())
	if at := l.Time(); !at.IsZero() {
		first("createdAt", at.UnixMilli())
	}
	m := membersOf(l.Raw)
	for m.next() {
		v, ok := unquote(m.value)
		if !ok {
			continue
		}
		switch string(m.key) {
		case "cwd":
			if v != "" {
				first("cwd", v)
			}
		case "customTitle", "aiTitle", "lastPrompt", "gitBranch":
			s[string(m.key)] = v
		case "summary":
			s["summaryHint"] = v
		case "tag":
			if l.Type() != typeTag {
				continue
			}
			if s["tag"] = v; v == "" {
				delete(s, "tag")
			}
		case "relocatedCwd":
			if l.Type() == typeRelocated && v != "" {
				s["cwd"] = v
			}
		}
	}
	if locked, _ := s["firstPromptLocked"].(bool); !locked {
		foldPrompt(s, l)
	}
}

// foldPrompt looks for the first prompt in a user line.
func foldPrompt(s map[string]any, l *Line) {
	if l.Type() != typeUser || hasToolResult(l.head.message) {
		return
	}
	f := &facts{}
	f.addText(l, false)
	if f.firstPromptDecided {
		s["firstPrompt"], s["firstPromptLocked"] = f.firstPrompt, true
	}
	if _, there := s["commandFallback"]; !there && f.commandPrompt != "" {
		s["commandFallback"] = f.commandPrompt
	}
}

func hasToolResult(message []byte) bool {
	if !isObject(message) {
		return false
	}
	content := get(message, "content")
	if !isArray(content) {
		return false
	}
	blocks := elementsOf(content)
	for blocks.next() {
		if isObject(blocks.value) && text(get(blocks.value, "type")) == "tool_result" {
			return true
		}
	}
	return false
}

// summaryInfo describes a session by its summary; nil if it has nothing to show.
func summaryInfo(id string, modified time.Time, data json.RawMessage, dir string) *Info {
	var s struct {
		IsSidechain                       bool
		CreatedAt                         float64
		Cwd, FirstPrompt, CommandFallback string
		CustomTitle, AITitle, LastPrompt  string
		SummaryHint, GitBranch, Tag       string
		FirstPromptLocked                 bool
	}
	if json.Unmarshal(data, &s) != nil || s.IsSidechain {
		return nil
	}
	prompt := s.CommandFallback
	if s.FirstPromptLocked {
		prompt = s.FirstPrompt
	}
	info := &Info{
		SessionID: id, LastModified: modified, CustomTitle: cmp.Or(s.CustomTitle, s.AITitle), FirstPrompt: prompt,
		GitBranch: s.GitBranch, Cwd: cmp.Or(s.Cwd, dir), Tag: s.Tag,
	}
	if s.CreatedAt != 0 {
		info.CreatedAt = time.UnixMilli(int64(s.CreatedAt)).UTC()
	}
	if info.Summary = cmp.Or(info.CustomTitle, s.LastPrompt, s.SummaryHint, prompt); info.Summary == "" {
		return nil
	}
	return info
}
