package acpclient

import (
	"encoding/json"
	"slices"

	"github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/protocol"
)

// ask is a permission request of the agent that the host has not answered.
type ask struct {
	id      acp.ID // the agent's
	hostID  string
	tool    *tool
	options []acp.PermissionOption
}

// permission asks the host.
func (c *conn) permission(id acp.ID, r *acp.RequestPermissionRequest) {
	if len(c.turns) > 0 && c.turns[0].cancelled || c.shown.closed[string(r.ToolCall.ToolCallID)] {
		c.answer(id, outcome(""))
		return
	}
	t := c.learn(&r.ToolCall)
	c.called(t)
	a := &ask{id: id, hostID: c.uuid(), tool: t, options: r.Options}
	c.asks = append(c.asks, a)
	body, err := protocol.Marshal(struct {
		Subtype   string          `json:"subtype"`
		ToolName  string          `json:"tool_name"`
		Input     json.RawMessage `json:"input"`
		ToolUseID string          `json:"tool_use_id"`
		Title     string          `json:"title,omitempty"`
	}{"can_use_tool", t.toolName(), t.toolInput(), t.id, t.title})
	if err == nil {
		var line []byte
		if line, err = protocol.AppendControlRequest(nil, a.hostID, body); err == nil {
			c.toHost(line)
			return
		}
	}
	c.warn("a permission request cannot be passed on, and is denied: %v", err)
	c.endAsk(a, false)
}

// outcome is an answer to a permission request; "": cancelled.
func outcome(option acp.PermissionOptionID) acp.RequestPermissionResponse {
	if option == "" {
		return acp.RequestPermissionResponse{Outcome: acp.RequestPermissionOutcome{Cancelled: &acp.Empty{}}}
	}
	return acp.RequestPermissionResponse{Outcome: acp.RequestPermissionOutcome{Selected: &acp.SelectedPermissionOutcome{OptionID: option}}}
}

// endAsk answers a permission request with cancelled. tell: the host still thinks about it.
func (c *conn) endAsk(a *ask, tell bool) {
	c.forget(a)
	c.answer(a.id, outcome(""))
	if tell {
		c.toHost(protocol.AppendControlCancel(nil, a.hostID))
	}
}

func (c *conn) forget(a *ask) {
	c.asks = slices.DeleteFunc(c.asks, func(other *ask) bool { return other == a })
}

// withdraw ends a request that the agent has taken back.
func (c *conn) withdraw(id acp.ID) {
	for _, a := range c.asks {
		if a.id == id {
			c.forget(a)
			c.refuse(a.id, &acp.Error{Code: acp.CodeRequestCancelled, Message: "cancelled"})
			c.toHost(protocol.AppendControlCancel(nil, a.hostID))
			return
		}
	}
}

// decided passes the host's decision on. Anything but a clear allow denies.
func (c *conn) decided(f *protocol.Frame) {
	var answer struct {
		Response struct {
			Subtype   string `json:"subtype"`
			RequestID string `json:"request_id"`
			Response  struct {
				Behavior  protocol.PermissionBehavior `json:"behavior"`
				Interrupt bool                        `json:"interrupt"`
			} `json:"response"`
		} `json:"response"`
	}
	_ = protocol.Unmarshal(f.Raw, &answer) // an unreadable answer is not an allow
	r := &answer.Response
	at := slices.IndexFunc(c.asks, func(a *ask) bool { return a.hostID == r.RequestID })
	if at < 0 {
		return // cancelled, or withdrawn
	}
	a := c.asks[at]
	c.forget(a)
	kind, allowed := acp.PermissionOptionKindRejectOnce, r.Subtype == "success" && r.Response.Behavior == protocol.BehaviorAllow
	if allowed {
		kind = acp.PermissionOptionKindAllowOnce
	} else if len(c.turns) > 0 {
		c.turns[0].denials = append(c.turns[0].denials, denial{a.tool.toolName(), a.tool.id, a.tool.toolInput()})
	}
	option := a.option(kind)
	if option == "" {
		c.warn("the agent offers no option of the kind %s for %s, so its permission request was answered with cancelled", kind, a.tool.toolName())
	}
	c.answer(a.id, outcome(option))
	if !allowed && r.Response.Interrupt && len(c.turns) > 0 {
		c.cancel()
	}
}

// option returns the first option of a kind, or "". Those that last longer than the call are
// never chosen.
func (a *ask) option(kind acp.PermissionOptionKind) acp.PermissionOptionID {
	for _, o := range a.options {
		if o.Kind == kind {
			return o.OptionID
		}
	}
	return ""
}
