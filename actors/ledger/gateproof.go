package ledger

import (
	"bytes"
	"strings"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// gateProof tells from the order of the agent's messages whether the agent calls
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
type gateProof struct {
	wanted      bool // the session has gates, and its agent is known to prove them
	proven      bool // a hook was called in this turn
	repeated    bool // what follows in this turn repeats kept messages
	interrupted bool // the host sent an interrupt, which may end this turn or the next
}

// hookCalled notes a call of a hook.
func (p *gateProof) hookCalled() { p.proven = true }

// compacted notes that the agent repeats messages in this turn.
func (p *gateProof) compacted() { p.repeated = true }

// interrupt notes that the host interrupts the turn.
func (p *gateProof) interrupt() { p.interrupted = true }

// ended notes the end of a turn: the next one needs a proof of its own.
// interrupting is set while an interrupt has no answer: it may end the next turn.
func (p *gateProof) ended(interrupting bool) {
	p.proven, p.repeated, p.interrupted = false, false, p.interrupted && interrupting
}

// began judges the begin of a turn. It reports whether the gates are off.
func (p *gateProof) began(prompt bool) (off bool) {
	return p.wanted && !p.proven && !p.interrupted && prompt
}

// spoke judges an assistant message. It reports whether the gates are off.
func (p *gateProof) spoke(model, parent string) (off bool) {
	return p.wanted && !p.proven && !p.repeated && parent == "" && model != "" && model != synthetic
}

// pending reports whether messages have to be looked at.
func (p *gateProof) pending() bool { return p.wanted && !p.proven }

// synthetic is the model of messages that Claude Code writes itself.
const synthetic = "<synthetic>"

// isPrompt reports whether the agent calls UserPromptSubmit for a user message
// in any case: it asks for an answer and cannot be a command.
func isPrompt(m *protocol.UserMessage) bool {
	if m.ShouldQuery != nil && !*m.ShouldQuery {
		return false
	}
	for _, b := range m.Message.Content {
		if text, ok := b.(*protocol.TextBlock); ok && strings.HasPrefix(strings.TrimSpace(text.Text), "/") {
			return false
		}
	}
	return true
}

// isPromptHook reports whether a request is the hook of a prompt.
func isPromptHook(r *Request) bool {
	if r.Kind != Hook || !bytes.Contains(r.Frame.Raw, []byte(`"`+protocol.HookUserPromptSubmit+`"`)) {
		return false
	}
	var m struct {
		Request struct {
			Input struct {
				Event protocol.HookEvent `json:"hook_event_name"`
			} `json:"input"`
		} `json:"request"`
	}
	return protocol.Unmarshal(r.Frame.Raw, &m) == nil && m.Request.Input.Event == protocol.HookUserPromptSubmit
}

// answersPrompt reports whether the turn that begins answers prompts of the host
// and nothing else. An agent that does not name the messages answers the
// written ones, or those of its own.
func (l *Ledger) answersPrompt(uuids []string) bool {
	if len(uuids) == 0 && l.facts.saysStarted {
		return false // it names the host's
	}
	found := false
	for _, t := range l.turns.open {
		named := len(uuids) == 0 && t.state >= TurnWritten
		for _, id := range uuids {
			named = named || id == t.UUID
		}
		if named && !isPrompt(t.Message) {
			return false
		}
		found = found || named
	}
	return found
}

// gatesBegan looks at a system/init message.
func (l *Ledger) gatesBegan(uuids []string) {
	if l.proof.pending() && l.proof.began(l.answersPrompt(uuids)) {
		l.gatesOff("system/init")
	}
}

// gatesSpoke looks at an assistant message.
func (l *Ledger) gatesSpoke(f *protocol.Frame) (edge bool) {
	if !l.proof.pending() {
		return false
	}
	var m struct {
		Parent  *string `json:"parent_tool_use_id"`
		Message struct {
			Model string `json:"model"`
		} `json:"message"`
	}
	if protocol.Unmarshal(f.Raw, &m) != nil {
		return false
	}
	parent := ""
	if m.Parent != nil {
		parent = *m.Parent
	}
	if !l.proof.spoke(m.Message.Model, parent) {
		return false
	}
	l.gatesOff("assistant")
	return true
}

func (l *Ledger) gatesOff(seen string) {
	if l.facts.gatesOff == nil {
		l.facts.gatesOff = &session.GatesOffError{Seen: seen}
	}
}

// GatesOff is why the agent must not go on, or nil: it does not call its hooks.
func (l *Ledger) GatesOff() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.facts.gatesOff == nil {
		return nil
	}
	return l.facts.gatesOff
}
