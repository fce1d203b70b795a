package acpclient

import (
	"encoding/json"
	"slices"

	"github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/protocol"
)

// fromHost handles a line of the host's.
func (c *conn) fromHost(line []byte) {
	f, err := protocol.ParseFrame(line)
	if err != nil {
		return // the host writes none
	}
	switch f.Type {
	case protocol.TypeControlRequest:
		c.control(&f)
	case protocol.TypeControlResponse:
		c.decided(&f)
	case "user":
		c.user(line)
	}
}

// control handles a control request.
func (c *conn) control(f *protocol.Frame) {
	id := f.RequestID
	switch {
	case f.Subtype == "initialize":
		c.initID = id
		c.open()
	case !c.opened:
		c.controlFailed(id, f.Subtype+" came before the session was open")
	case f.Subtype == "interrupt":
		c.interrupt(f)
	case f.Subtype == "set_permission_mode":
		var r struct {
			Request protocol.SetPermissionModeRequest `json:"request"`
		}
		_ = protocol.Unmarshal(f.Raw, &r) // the dialect has written it
		c.setMode(string(r.Request.Mode), c.controlDone(id))
	case f.Subtype == "set_model":
		var r struct {
			Request protocol.SetModelRequest `json:"request"`
		}
		_ = protocol.Unmarshal(f.Raw, &r)
		if r.Request.Model == nil {
			c.controlFailed(id, "the protocol cannot express the default model; name one")
			return
		}
		c.setModel(*r.Request.Model, c.controlDone(id))
	default:
		c.controlFailed(id, f.Subtype+" cannot be expressed in the Agent Client Protocol")
	}
}

// controlDone answers a control request once its change is made.
func (c *conn) controlDone(id string) func(*failure) {
	return func(failed *failure) {
		if failed != nil {
			c.controlFailed(id, failed.Error())
			return
		}
		c.controlled(id, json.RawMessage(`{}`))
	}
}

func (c *conn) controlled(id string, body json.RawMessage) {
	line, err := protocol.AppendControlSuccess(nil, id, body)
	if err != nil {
		line = protocol.AppendControlError(nil, id, err.Error(), "")
	}
	c.toHost(line)
}

func (c *conn) controlFailed(id, problem string) {
	c.toHost(protocol.AppendControlError(nil, id, problem, ""))
}

// interrupt cancels the turn that runs, and with cancel_queued those that wait. The turn's
// result comes with the agent's answer.
func (c *conn) interrupt(f *protocol.Frame) {
	var r struct {
		Request protocol.InterruptRequest `json:"request"`
	}
	_ = protocol.Unmarshal(f.Raw, &r) // the dialect has written it
	var receipt protocol.InterruptResponse
	if len(c.turns) > 0 {
		c.cancel()
		for _, t := range c.turns[1:] {
			if r.Request.CancelQueued {
				receipt.Cancelled = append(receipt.Cancelled, t.uuid)
			} else {
				receipt.StillQueued = append(receipt.StillQueued, t.uuid)
			}
		}
		if r.Request.CancelQueued {
			c.turns = c.turns[:1]
		}
	}
	receipt.StillQueued = append([]string{}, receipt.StillQueued...) // a list, also when it is empty
	body, err := protocol.Marshal(receipt)
	if err != nil {
		body = json.RawMessage(`{}`)
	}
	c.controlled(f.RequestID, body)
}

// cancel cancels the turn that runs. Requests of the agent for this turn are answered with
// cancelled.
func (c *conn) cancel() {
	t := c.turns[0]
	if t.cancelled {
		return
	}
	t.cancelled = true
	for _, a := range slices.Clone(c.asks) {
		c.endAsk(a, true)
	}
	c.notify(acp.MethodSessionCancel, acp.CancelNotification{SessionID: c.id})
}
