package machine

import (
	"bytes"
	"strings"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// GateProof concludes from the order of the agent's messages whether the agent calls
// its hooks. It is plain data without a lock.
//
// Claude Code calls UserPromptSubmit before the system/init of every turn that
// answers a prompt: of the host, of a background task, of a monitor, or an
// agent's first one. It does not call it for its own commands (/compact, /cost)
// and for lines that ask for no answer; their assistant messages are not a
// model's, or repeat what a compaction kept (observed on 2.1.329 and 2.1.197).
//
// A turn that the host interrupts may begin without its hook: the interrupt can
// reach the agent first. Its system/init says nothing then; its assistant messages
// still do, because no model is asked before the hook.
type GateProof struct {
	Wanted      bool // the session has gates, and its agent is known to prove them
	Proven      bool // a hook was called in this turn
	Repeated    bool // what follows in this turn repeats kept messages
	Interrupted bool // the host sent an interrupt, which may end this turn or the next
}

// hookCalled notes a call of a hook.
func (p *GateProof) hookCalled() { p.Proven = true }

// compacted notes that the agent repeats messages in this turn.
func (p *GateProof) compacted() { p.Repeated = true }

// interrupt notes that the host interrupts the turn.
func (p *GateProof) interrupt() { p.Interrupted = true }

// ended notes the end of a turn: the next one needs another proof. interrupting is set
// while an interrupt has no answer: it may end the next turn.
func (p *GateProof) ended(interrupting bool) {
	p.Proven, p.Repeated, p.Interrupted = false, false, p.Interrupted && interrupting
}

// began judges the begin of a turn. It reports whether the gates are off.
func (p *GateProof) began(prompt bool) (off bool) {
	return p.Wanted && !p.Proven && !p.Interrupted && prompt
}

// spoke judges an assistant message. It reports whether the gates are off.
func (p *GateProof) spoke(model, parent string) (off bool) {
	return p.Wanted && !p.Proven && !p.Repeated && parent == "" && model != "" && model != synthetic
}

// pending reports whether messages have to be looked at.
func (p *GateProof) pending() bool { return p.Wanted && !p.Proven }

// synthetic is the model of messages that Claude Code writes itself.
const synthetic = "<synthetic>"

// IsPrompt reports whether the agent calls UserPromptSubmit for a user message in
// any case: it asks for an answer and cannot be a command.
func IsPrompt(u *protocol.UserMessage) bool {
	if u.ShouldQuery != nil && !*u.ShouldQuery {
		return false
	}
	for _, b := range u.Message.Content {
		if text, ok := b.(*protocol.TextBlock); ok && strings.HasPrefix(strings.TrimSpace(text.Text), "/") {
			return false
		}
	}
	return true
}

// isPromptHook reports whether a request is the hook of a prompt.
func isPromptHook(k session.Kind, f *protocol.Frame) bool {
	if k != session.KindHook || !bytes.Contains(f.Raw, []byte(`"`+protocol.HookUserPromptSubmit+`"`)) {
		return false
	}
	var hook struct {
		Request struct {
			Input struct {
				Event protocol.HookEvent `json:"hook_event_name"`
			} `json:"input"`
		} `json:"request"`
	}
	return protocol.Unmarshal(f.Raw, &hook) == nil && hook.Request.Input.Event == protocol.HookUserPromptSubmit
}

// answersPrompt reports whether the turn that begins answers prompts of the host and
// nothing else. An agent that does not name the messages answers the written ones, or
// its own.
func (m *Routing) answersPrompt(uuids []string) bool {
	if len(uuids) == 0 && m.Facts.SaysStarted {
		return false // it names the host's
	}
	found := false
	for i := range m.Turns {
		t := &m.Turns[i]
		named := len(uuids) == 0 && t.State >= TurnWritten
		for _, id := range uuids {
			named = named || id == t.current()
		}
		if named && !t.Prompt {
			return false
		}
		found = found || named
	}
	return found
}

// gatesBegan looks at a system/init message.
func (m *Routing) gatesBegan(uuids []string) {
	if m.Proof.pending() && m.Proof.began(m.answersPrompt(uuids)) {
		m.gatesOff("system/init")
	}
}

// gatesSpoke looks at an assistant message.
func (m *Routing) gatesSpoke(f *protocol.Frame) {
	if !m.Proof.pending() {
		return
	}
	var said struct {
		Parent  *string `json:"parent_tool_use_id"`
		Message struct {
			Model string `json:"model"`
		} `json:"message"`
	}
	if protocol.Unmarshal(f.Raw, &said) != nil {
		return
	}
	parent := ""
	if said.Parent != nil {
		parent = *said.Parent
	}
	if m.Proof.spoke(said.Message.Model, parent) {
		m.gatesOff("assistant")
	}
}

func (m *Routing) gatesOff(seen string) {
	if m.Facts.GatesOff == nil {
		m.Facts.GatesOff = &session.GatesOffError{Seen: seen}
	}
}
