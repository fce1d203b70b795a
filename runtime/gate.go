package runtime

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Gate says who has decided about a call of a tool.
type Gate struct {
	// By is "rule" for a rule of Options.Policy, "policy" for the rest of it, "hook" for a hook of
	// PreToolUse, or "person" for Options.CanUseTool, which may ask one.
	By    string `json:"by"`
	Allow bool   `json:"allow"`         // false: the call was denied
	Why   string `json:"why,omitempty"` // the rule, or the reason that was given; at most 200 characters
}

// maxGates is how many calls of a session are kept, with what was decided.
const maxGates = 32

// gateOf is what was decided about a call. It does not change: what is decided next about the
// same call stands before it. A list takes no lock, which each permission would pay for.
type gateOf struct {
	call  string
	asked string // what has sent the call to a person
	Gate
	before *gateOf // the one before it
	n      int     // how many there are
}

// of returns the last decision about a call, or nil.
func (g *gateOf) of(call string) *gateOf {
	for ; g != nil; g = g.before {
		if g.call == call {
			return g
		}
	}
	return nil
}

// last is the list with the last maxGates calls alone.
func (g *gateOf) last() *gateOf {
	var kept []*gateOf
	for ; g != nil && len(kept) < maxGates; g = g.before {
		if !slices.ContainsFunc(kept, func(k *gateOf) bool { return k.call == g.call }) {
			kept = append(kept, g)
		}
	}
	var list *gateOf
	for i, k := range slices.Backward(kept) {
		list = &gateOf{call: k.call, asked: k.asked, Gate: k.Gate, before: list, n: len(kept) - i}
	}
	return list
}

// Gate returns who has decided about a call of a tool, by the id of its ToolUseBlock. ok is false if no
// gate of the host has: the agent's own rules let it run, or it was among the calls before the last
// 32 that a gate has decided about.
func (s *Session) Gate(call string) (g Gate, ok bool) {
	found := s.gates.Load().of(call)
	if found == nil || found.By == "" {
		return Gate{}, false
	}
	return found.Gate, true
}

// note keeps a decision; change makes it of the last one about the same call.
func (s *Session) note(call string, change func(g *gateOf)) {
	if call == "" {
		return
	}
	for {
		head := s.gates.Load()
		next := gateOf{call: call}
		if before := head.of(call); before != nil {
			next = *before
		}
		change(&next)
		next.Why = short(next.Why)
		next.before, next.n = head, 1
		if head != nil && head.n >= 2*maxGates {
			next.before = head.last()
		}
		if next.before != nil {
			next.n = next.before.n + 1
		}
		if s.gates.CompareAndSwap(head, &next) {
			return
		}
	}
}

// told takes what the policy says of a call. A hook that has denied it counts more.
func (s *Session) told(call string, says protocol.PermissionBehavior, rule bool, why string) {
	by := "policy"
	if rule {
		by = "rule"
	}
	s.note(call, func(g *gateOf) {
		switch {
		case says == protocol.BehaviorAsk:
			g.asked = short(why)
		case g.By == "" || g.Allow || says == protocol.BehaviorDeny && g.By != "hook":
			g.Gate = Gate{by, says == protocol.BehaviorAllow, why}
		}
	})
}

// answered takes what Options.CanUseTool says of a call.
func (s *Session) answered(call string, result *protocol.PermissionResult, err error) {
	s.note(call, func(g *gateOf) {
		why := result.Message
		switch {
		case err != nil:
			why = "CanUseTool failed: " + err.Error()
		case why == "" && g.asked != "":
			why = g.asked
		}
		g.Gate, g.asked = Gate{"person", err == nil && result.Allowed(), why}, ""
	})
}

// heard makes hooks of PreToolUse tell what they decide.
func (s *Session) heard(all []session.Hook) []session.Hook {
	if !slices.ContainsFunc(all, func(h session.Hook) bool { return h.Event == protocol.HookPreToolUse && h.Func != nil }) {
		return all
	}
	all = slices.Clone(all)
	for i := range all {
		run := all[i].Func
		if all[i].Event != protocol.HookPreToolUse || run == nil {
			continue
		}
		all[i].Func = func(ctx context.Context, c *session.HookCall) (json.RawMessage, error) {
			out, err := run(ctx, c)
			s.hooked(c.ToolUseID, out, err, all[i].OnFailure)
			return out, err
		}
	}
	return all
}

// hooked takes the output of a hook.
func (s *Session) hooked(call string, out json.RawMessage, err error, onFailure session.FailureAction) {
	var says struct {
		Decision string `json:"decision"`
		Reason   string `json:"reason"`
		Specific struct {
			Decision protocol.HookPermission `json:"permissionDecision"`
			Reason   string                  `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	g := Gate{By: "hook"}
	switch {
	case err != nil && onFailure == session.ContinueOnFailure:
		return
	case err != nil:
		g.Why = "the hook failed: " + err.Error()
	case protocol.Unmarshal(out, &says) != nil:
		return
	case says.Specific.Decision == protocol.HookDeny || says.Decision == "block":
		if g.Why = says.Specific.Reason; g.Why == "" {
			g.Why = says.Reason
		}
	case says.Specific.Decision == protocol.HookAllow || says.Decision == "approve":
		g.Allow, g.Why = true, says.Specific.Reason
	default:
		return
	}
	s.note(call, func(of *gateOf) {
		if of.By == "" || !g.Allow || of.Allow {
			of.Gate = g
		}
	})
}
