package simtests

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/protocol"
)

// hooking is what hooks and the callback for permission have said beside yes and no, by
// conversation: the agent has to do it. The world's mutex guards it.
type hooking struct {
	notes    map[string][]string // for the next request
	ended    map[string]bool     // no request follows
	goesOn   map[string]bool     // a request follows: its end was blocked
	stays    map[string]bool     // it is not compacted
	replaced map[string]string   // results, by call
	refused  bool                // the last prompt
}

func newHooking() hooking {
	return hooking{
		notes: make(map[string][]string), ended: make(map[string]bool), goesOn: make(map[string]bool), stays: make(map[string]bool),
		replaced: make(map[string]string),
	}
}

// takes notes what a hook answers; mu is held.
func (h *hooking) takes(a *asked, f protocol.Frame) {
	var says struct {
		Continue *bool  `json:"continue"`
		Decision string `json:"decision"`
		Specific struct {
			Context string          `json:"additionalContext"`
			Output  json.RawMessage `json:"updatedToolOutput"`
		} `json:"hookSpecificOutput"`
	}
	if json.Unmarshal(said(f), &says) != nil {
		return // it says nothing
	}
	blocks := says.Decision == "block"
	switch protocol.HookEvent(a.event) {
	case protocol.HookPreToolUse, protocol.HookPostToolUse:
		if text := says.Specific.Context; text != "" {
			h.notes[a.agent] = append(h.notes[a.agent], text)
		}
		h.ended[a.agent] = h.ended[a.agent] || says.Continue != nil && !*says.Continue
		if text := textIn(says.Specific.Output); text != "" {
			h.replaced[a.tool] = text
		}
	case protocol.HookUserPromptSubmit:
		h.refused = blocks
		if text := says.Specific.Context; text != "" && !blocks {
			h.notes[""] = append(h.notes[""], text)
		}
	case protocol.HookStop, protocol.HookSubagentStop:
		h.goesOn[a.agent] = h.goesOn[a.agent] || blocks
	case protocol.HookPreCompact:
		h.stays[a.agent] = blocks
	}
}

// asks checks a request of a conversation; mu is held.
func (h *hooking) asks(r *modeltest.Request, agent string, compacted bool) (wrong []string) {
	if h.ended[agent] {
		wrong = append(wrong, fmt.Sprintf("hooked: request %d of %s comes although the host has ended that", r.N, r.User))
	}
	if agent == "" && h.refused {
		wrong = append(wrong, fmt.Sprintf("hooked: request %d of %s comes although a hook has refused the prompt", r.N, r.User))
	}
	for _, note := range h.notes[agent] {
		told := slices.ContainsFunc(r.Messages, func(msg model.Message) bool {
			return slices.ContainsFunc(msg.Blocks, func(b model.Block) bool { return b.Kind == model.Text && strings.Contains(b.Text, note) })
		})
		if !told && !compacted {
			wrong = append(wrong, fmt.Sprintf("hooked: request %d of %s has not what a hook has added: %q", r.N, r.User, note))
		}
	}
	delete(h.notes, agent)
	delete(h.goesOn, agent)
	return wrong
}

// ends checks the end of a turn, or of a sub-agent; mu is held.
func (h *hooking) ends(lane, agent string, well bool) (wrong []string) {
	if well && h.goesOn[agent] {
		wrong = append(wrong, fmt.Sprintf("hooked: %s ends %s whose end a hook has blocked", lane, either(agent == "", "a turn", "the sub-agent "+agent)))
	}
	delete(h.goesOn, agent)
	delete(h.ended, agent)
	delete(h.notes, agent)
	h.refused = h.refused && agent != ""
	return wrong
}

// gives checks the result of a call that a hook has replaced; mu is held.
func (h *hooking) gives(lane string, u *use, b *blockIn) []string {
	want, is := h.replaced[u.id]
	if !is || len(u.also) > 0 || b.IsError {
		return nil
	}
	delete(h.replaced, u.id)
	if got := textIn(b.Content); got != want {
		return []string{fmt.Sprintf("hooked: %s writes the result of %s as %.200q, and a hook has replaced it by %q", lane, u.id, got, want)}
	}
	return nil
}

func either(is bool, a, b string) string {
	if is {
		return a
	}
	return b
}
