package simtests

import (
	"encoding/json"
	"strings"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
)

const (
	cacheMark  = `,"cache_control":{"type":"ephemeral"}`
	asksToSum  = "You now write the summary"
	truncated  = "[earlier conversation truncated"
	isLeftOut  = "[This result was left out"
	leftOutIn  = "It is in the line with the uuid "
	leftOutAs  = "troupe_left_out"
	boundaryAs = "compact_boundary"
)

// asksSummary reports whether a request asks for a summary of the conversation.
func asksSummary(r *modeltest.Request) bool { return strings.Contains(r.Prompt(), asksToSum) }

// passes counts the compactions of a session's file: a boundary counts with its summary.
func (l *stored) passes(in *frame) {
	switch {
	case in.Type == "system" && in.Subtype == boundaryAs:
		l.edge = in.UUID
		return
	case in.Summary && l.edge != "" && in.Before == l.edge, in.Type == "attachment" && in.Added.Type == leftOutAs:
		l.edges++
	}
	l.edge = ""
}

// edges are the compactions of a session so far.
func (m *mind) edges(session string) int {
	if !m.keeps() {
		return 0
	}
	l := m.log(session)
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	return l.edges
}

// sums checks a request for a summary: it is about what the model was asked before, in the same
// bytes, and has the same model, tools and system prompt.
func (m *mind) sums(r *modeltest.Request) {
	var body struct {
		Messages []json.RawMessage `json:"messages"`
	}
	_ = json.Unmarshal(r.Body, &body) // the server has read it
	var parts []string
	for _, msg := range body.Messages[:max(len(body.Messages)-1, 0)] {
		parts = append(parts, strings.ReplaceAll(string(msg), cacheMark, ""))
	}
	now := strings.Join(parts, ",")
	head := headOf(r)
	edges := m.edges(r.User)
	w := m.w
	w.mu.Lock()
	ms := w.loops
	from, session, of := m.origin(r)
	before, was := ms.last[from], m.heads[of+" "+r.Model]
	if ms.edges[from] != edges {
		before = ""
	}
	m.session = session
	w.mu.Unlock()
	if !strings.HasPrefix(before, now) && !strings.HasPrefix(now, strings.TrimSuffix(strings.TrimSuffix(before, "]}"), `"}`)) && !strings.Contains(now, truncated) {
		w.Errorf("prefix: request %d of session %s asks for a summary of another conversation than the one before: %.300q, and it was %.300q", r.N, r.User, now, before)
	}
	if was != "" && was != head {
		w.Errorf("prefix: request %d of session %s, of a summary, has another model, other tools or another system prompt: %.300q, and it was %.300q", r.N, r.User, head, was)
	}
}

// leavesOut checks that each stub in a request names the line of the log that has the result.
func (m *mind) leavesOut(r *modeltest.Request, log *stored) {
	for _, msg := range r.Messages {
		for _, b := range msg.Blocks {
			if b.Kind != model.ToolResult || !strings.HasPrefix(b.Text, isLeftOut) {
				continue
			}
			_, line, _ := strings.Cut(b.Text, leftOutIn)
			line, _, _ = strings.Cut(line, " ")
			m.w.mu.Lock()
			held := log.held[line+" "+b.ID]
			m.w.mu.Unlock()
			if !held {
				m.w.Errorf("recorded: request %d says that the result of %s is in the line %q of the log, and it is not: %.200q", r.N, b.ID, line, b.Text)
			}
		}
	}
}
