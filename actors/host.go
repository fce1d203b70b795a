package actors

import (
	"bytes"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
)

// Host is what all sessions of a runtime share.
type Host struct {
	System *kernel.System
	Budget *user.Budget

	answer atomic.Pointer[answer]            // the last one to initialize
	list   atomic.Pointer[[]string]          // the last one that was shared
	calls  [2]atomic.Pointer[machine.Called] // the last ones that interrupt
}

// answer is an answer to initialize, and the capabilities in it.
type answer struct {
	text         []byte
	capabilities []string
}

// keep returns a copy of an agent's answer to initialize, with its capabilities: the same
// one as long as the agents answer alike, since it takes some KB.
func (h *Host) keep(text []byte) ([]byte, []string) {
	last := h.answer.Load()
	if last == nil || !bytes.Equal(last.text, text) {
		last = &answer{text: bytes.Clone(text)}
		var in struct {
			Capabilities []string `json:"capabilities"`
		}
		if protocol.Unmarshal(text, &in) == nil {
			last.capabilities = in.Capabilities
		}
		h.answer.Store(last)
	}
	return last.text, last.capabilities
}

// shared is a list equal to this one: the last one, while sessions have equal ones.
func (h *Host) shared(list []string) []string {
	if last := h.list.Load(); last != nil && slices.Equal(*last, list) {
		return *last
	}
	h.list.Store(&list)
	return list
}

// interrupt is the call that stops a turn: the same one, while sessions have equal ones.
func (h *Host) interrupt(d dialect.Dialect, limit time.Duration, queued bool) *machine.Called {
	c, last := interrupt(d, limit, queued), &h.calls[0]
	if queued {
		last = &h.calls[1]
	}
	if known := last.Load(); known != nil && c != nil && known.Limit == c.Limit && bytes.Equal(known.Body, c.Body) {
		return known
	}
	last.Store(c)
	return c
}

// interrupt is the call that stops a turn, and with queued the messages after it, or nil.
func interrupt(d dialect.Dialect, limit time.Duration, queued bool) *machine.Called {
	req := &protocol.InterruptRequest{CancelQueued: queued}
	body, err := d.Encode(req)
	if err != nil {
		return nil // an agent without it is ended
	}
	return &machine.Called{Subtype: req.Subtype(), Body: body, Own: true, Limit: max(limit, 0), SetBy: "Limits.Control"}
}

// sent is who wants to know of the user's messages, or nil.
func (c *Config) sent() func(context.Context, time.Time, *protocol.UserMessage) {
	if c.Trace == nil {
		return nil
	}
	return c.Trace.Sent
}
