package runtime

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

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

// maxGates is how many decisions of a session are kept.
const maxGates = 32

// gates are the last decisions about calls of a session.
type gates struct {
	mu   sync.Mutex
	all  []gateOf // the oldest at next, once it is full
	next int
}

type gateOf struct {
	call  string
	asked string // what has sent the call to a person
	Gate
}

// Gate returns who has decided about a call of a tool, by the id of its ToolUseBlock. ok is false if no
// gate of the host has: the agent's own rules let it run, or it was among the calls before the last
// 32 that a gate has decided about.
func (s *Session) Gate(call string) (g Gate, ok bool) {
	all := s.gates.Load()
	if all == nil {
		return Gate{}, false
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	at := slices.IndexFunc(all.all, func(g gateOf) bool { return g.call == call })
	if at < 0 || all.all[at].By == "" {
		return Gate{}, false
	}
	return all.all[at].Gate, true
}

// note keeps a decision; change makes it of the last one about the same call.
func (s *Session) note(call string, change func(g *gateOf)) {
	if call == "" {
		return
	}
	all := s.gates.Load()
	if all == nil {
		s.gates.CompareAndSwap(nil, &gates{})
		all = s.gates.Load()
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	at := slices.IndexFunc(all.all, func(g gateOf) bool { return g.call == call })
	switch {
	case at >= 0:
	case len(all.all) < maxGates:
		at, all.all = len(all.all), append(all.all, gateOf{call: call})
	default:
		at, all.next = all.next, (all.next+1)%maxGates
		all.all[at] = gateOf{call: call}
	}
	change(&all.all[at])
	all.all[at].Why = short(all.all[at].Why)
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
