package simtests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-troupe/troupe/protocol"
)

// writes looks at a line that the agent writes.
func (m *mind) writes(f protocol.Frame, line []byte) {
	if bytes.Contains(line, []byte(theKey)) {
		m.w.Errorf("secret: %s writes the key: %.300s", m.lane, line)
	}
	switch f.Type {
	case "assistant", "user", "result":
		m.moves(f, line)
	case "system":
		m.hearsOf(f.Subtype, f.Raw)
	case "command_lifecycle":
		m.w.mu.Lock()
		wrong := m.follows(f.Raw)
		m.w.mu.Unlock()
		m.complain(wrong)
	case "control_response":
		m.rewound(f.RequestID)
	}
}

func (m *mind) complain(wrong []string) {
	for _, text := range wrong {
		m.w.Errorf("%s", text)
	}
}

// moves looks at a line of the conversation, or at the end of a turn.
func (m *mind) moves(f protocol.Frame, line []byte) {
	var in frame
	if json.Unmarshal(f.Raw, &in) != nil || in.Parent != nil && in.Agent == "" {
		return
	}
	var wrong []string
	m.w.mu.Lock()
	kept := false
	switch f.Type {
	case "assistant":
		kept = true
		wrong = m.says(&in)
	case "user":
		kept = in.Made && bytes.Contains(in.Message.Content, []byte("This session is being continued")) // a summary
		for _, b := range blocksIn(in.Message.Content) {
			if b.Type == "tool_result" {
				kept = true
				wrong = append(wrong, m.answers(&in, &b)...)
			}
		}
	case "result":
		m.ended, m.well = true, !in.IsError && in.Terminal == "completed" && !m.hooking.refused
		wrong = slices.Concat(m.tallies(&in), m.patient(&in), m.ends(&in, f.Subtype), m.passed(&in), m.hooking.ends(m.lane, "", m.well))
		if m.well {
			wrong = append(wrong, m.heard()...)
		}
		m.done = nil
		delete(m.asking, "")
	}
	full := m.w.happened(faultDisk)
	m.w.mu.Unlock()
	if kept && !full && m.keeps() && in.UUID != "" && !m.log(conversation(in.Session, in.Agent)).uuids[in.UUID] {
		wrong = append(wrong, fmt.Sprintf("recorded: %s writes %s, which is not stored: %.200s", m.lane, f.Type, line))
	}
	m.complain(wrong)
	m.moment()
}

// answers takes the result of a call; mu is held.
func (m *mind) answers(in *frame, b *blockIn) (wrong []string) {
	u := m.use(b.ToolUse)
	if bytes.Contains(in.Ran, []byte(`"backgroundTaskId":"`)) {
		for _, o := range slices.Concat([]*use{u}, u.also, u.changed) {
			o.background = true
		}
	}
	u.well = u.well || !b.IsError
	m.lost = m.lost || bytes.Contains(b.Content, []byte("The call was not made: "))
	wrong = slices.Concat(m.shows(u, b), m.prints(u, b), m.reports(u, in.Ran), m.hooking.gives(m.lane, u, b))
	m.told[b.ToolUse] = append(m.told[b.ToolUse], textIn(b.Content))
	if u.message == "" && !m.doubled {
		wrong = append(wrong, fmt.Sprintf("results: %s writes the result of the call %s, and has not written the call", m.lane, u.id))
	}
	if u.results++; u.results > 1+len(u.also) {
		wrong = append(wrong, fmt.Sprintf("results: %s writes %d results of the call %s", m.lane, u.results, u.id))
	}
	if len(u.also) == 0 && slices.ContainsFunc(m.procs, func(p *shell) bool { return p.use == u && !u.background && p.there() }) {
		wrong = append(wrong, fmt.Sprintf("tasks: %s writes the result of the call %s, whose command still runs: %s", m.lane, u.id, u.command))
	}
	return wrong
}
