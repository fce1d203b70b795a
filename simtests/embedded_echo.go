package simtests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
)

// shows counts a block of the answer that the agent has written.
func (a *answered) shows(b *blockIn) {
	if b.Type == "tool_use" {
		a.calls++
	} else {
		a.others++
	}
}

// shown reports whether the agent has written all of a whole answer, so that it is part of the
// conversation: of one with calls these, since a sub-agent keeps its texts to itself.
func (a *answered) shown(cut bool) bool {
	calls, others := 0, 0
	for _, b := range a.said {
		switch {
		case b.Kind == model.ToolUse:
			calls++
		case strings.TrimSpace(b.Text) != "":
			others++
		}
	}
	if !a.whole || !a.plain || a.aside {
		return false
	}
	if calls > 0 {
		return a.calls == calls
	}
	return !cut && a.agent == "" && a.others == others
}

// spoken is what an answer says, without what differs between APIs.
type spoken struct {
	text, thought, signed string
	calls                 []model.Block
}

func spokenIn(blocks []model.Block) (s spoken) {
	for _, b := range blocks {
		switch {
		case b.Kind == model.ToolUse:
			s.calls = append(s.calls, b)
		case b.Kind == model.Thinking:
			s.thought += b.Text
			s.signed += b.Signature
		case strings.TrimSpace(b.Text) != "":
			s.text += b.Text
		}
	}
	return s
}

// remembers checks that a request has the last answer of its conversation as the model gave it. from is
// the conversation that it continues. mu is held.
func (m *mind) remembers(r *modeltest.Request, from string) string {
	n := m.w.loops.ended[from]
	if n == 0 || m.w.happened(faultDisk) { // what a full disk has not taken dies with the process
		return ""
	}
	for k := n + 1; k < r.N; k++ {
		if a := m.w.loops.answers[k]; a != nil && a.begun && a.of == from && !a.aside {
			return "" // it may be part of the conversation, and the host has not read it
		}
	}
	last := -1
	for i, msg := range r.Messages {
		if msg.Role == model.Assistant {
			last = i
		}
	}
	said := spokenIn(m.w.loops.answers[n].said)
	var read spoken
	if last >= 0 {
		read = spokenIn(r.Messages[last].Blocks)
	}
	if r.API == "openai" { // thinking is given back with calls alone, and is not signed
		if said.signed = ""; len(said.calls) == 0 {
			said.thought = ""
		}
	}
	same := said.text == read.text && said.thought == read.thought && said.signed == read.signed &&
		slices.EqualFunc(said.calls, read.calls, func(a, b model.Block) bool { return a.Name == b.Name && has(b.Input, a.Input) })
	if !same {
		return fmt.Sprintf("said: request %d does not have the answer %d as the model gave it: %v, and it was %v", r.N, n, read, said)
	}
	return ""
}

// prompted is a message of the user's.
type prompted struct {
	texts []string
	asked bool // a request has had them
	began bool
	joins bool // the turn that ran
}

// meanwhile is before a message of the user's that came while the agent worked.
const meanwhile = "The user sent a new message while you were working:\n"

// gets notes a message that the host writes to the agent.
func (m *mind) gets(uuid string, line []byte) {
	var in struct {
		Query   *bool `json:"shouldQuery"`
		Message struct {
			Content json.RawMessage `json:"content"`
		} `json:"message"`
	}
	if uuid == "" || json.Unmarshal(line, &in) != nil || in.Query != nil {
		return
	}
	p := &prompted{}
	if text := textIn(in.Message.Content); text != "" {
		p.texts = []string{text}
	}
	for _, b := range blocksIn(in.Message.Content) {
		if b.Type == "text" {
			p.texts = append(p.texts, b.Text)
		}
	}
	if len(p.texts) == 0 || strings.HasPrefix(p.texts[0], "/") { // a command
		return
	}
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	m.prompts[uuid] = p
}

// asksAbout notes which messages, and which ends of tasks, a request of the session has; mu is held.
func (m *mind) asksAbout(r *modeltest.Request) {
	has := func(text string) bool {
		return slices.ContainsFunc(r.Messages, func(msg model.Message) bool {
			return slices.ContainsFunc(msg.Blocks, func(b model.Block) bool { return b.Kind == model.Text && strings.Contains(b.Text, text) })
		})
	}
	for _, id := range sortedKeys(m.prompts) {
		p := m.prompts[id]
		p.asked = p.asked || !slices.ContainsFunc(p.texts, func(t string) bool { return !has(t) })
	}
	for _, id := range sortedKeys(m.notices) {
		if has("<task-id>" + id + "</task-id>") {
			delete(m.notices, id)
		}
	}
}

// follows takes what the agent says of a message of the user's: if its turn
// has ended well, the model has read it.
// mu is held.
func (m *mind) follows(line []byte) []string {
	var in struct {
		UUID  string `json:"command_uuid"`
		State string `json:"state"`
	}
	_ = json.Unmarshal(line, &in) // the agent wrote it
	p := m.prompts[in.UUID]
	switch {
	case p == nil:
	case in.State == "started":
		p.began, p.joins, m.ended = true, !m.ended, false
		if p.joins && len(p.texts) == 1 {
			p.texts[0] = meanwhile + p.texts[0]
		}
	case in.State != "completed" || !p.began:
	case !m.ended: // it has joined the turn, whose result follows
		m.done = append(m.done, p)
	case m.well: // it is that of the turn whose result was written
		m.done = append(m.done, p)
		return m.heard()
	}
	return nil
}

// heard checks the messages of a turn that has ended well; mu is held.
func (m *mind) heard() (wrong []string) {
	for _, p := range m.done {
		if !p.asked {
			wrong = append(wrong, fmt.Sprintf("said: %s has done a turn, and the model has not read what the user wrote: %q", m.lane, p.texts))
		}
	}
	m.done = nil
	return wrong
}

// idles checks that nothing is left to do when the agent says so; mu is held.
func (m *mind) idles(line []byte) (wrong []string) {
	if !m.ended || !m.well || !bytes.Contains(line, []byte(`"state":"idle"`)) {
		return nil
	}
	for _, id := range sortedKeys(m.notices) {
		wrong = append(wrong, fmt.Sprintf("said: %s is idle, and the model has not read that the task %s has ended", m.lane, id))
	}
	clear(m.notices)
	return wrong
}
