package user

import (
	"slices"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/protocol"
)

// tap is one who sees the messages besides their consumer.
type tap struct{ see func([]machine.Delivery) }

// Tap calls see with the messages of the agent as they are delivered, and with the user's as
// they are sent, until stop is called. It is called under the lock of the side, so it must be
// short and must not call the side. The messages are the stream's: it must not change them.
func (u *Side) Tap(see func([]machine.Delivery)) (stop func()) {
	t := &tap{see}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.taps = append(slices.Clip(u.taps), t)
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.taps = slices.DeleteFunc(slices.Clone(u.taps), func(other *tap) bool { return other == t })
		if len(u.taps) == 0 {
			u.taps = nil
		}
	}
}

// tapped shows a message that the user sends; mu is held.
func (u *Side) tapped(line []byte) {
	if len(u.taps) == 0 {
		return
	}
	f, err := protocol.ParseFrame(slices.Clone(line))
	if err != nil {
		return // an agent with another protocol
	}
	for _, t := range u.taps {
		t.see([]machine.Delivery{{Frame: f, Seq: u.stream.next}})
	}
}
