package machine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/protocol"
)

// TestTheHostsOwnInterruptIsNoFailure: an agent need not say that it was interrupted, and
// an interrupt excuses no turn but the one that ran.
func TestTheHostsOwnInterruptIsNoFailure(t *testing.T) {
	t.Parallel()
	failed := func(id string) protocol.Frame {
		return frame(`{"type":"result","subtype":"error_during_execution","is_error":true,"user_message_uuids":[%q]}`, id)
	}
	interrupt := machine.Called{ID: "i", Subtype: "interrupt", Body: []byte(`{"subtype":"interrupt"}`)}
	for name, c := range map[string]struct {
		before func(*bench)
		id     string // of the message whose turn fails
		want   string
	}{
		"of the turn that runs": {func(b *bench) { b.send("a"); b.step(interrupt) }, "a", ""},
		"without one":           {func(b *bench) { b.send("a") }, "a", "error_during_execution"},
		"of the turn before": {func(b *bench) {
			b.send("a")
			b.step(interrupt)
			b.read(failed("a"))
			b.send("b")
		}, "b", "error_during_execution"},
		"while nothing ran": {func(b *bench) { b.step(interrupt); b.send("a") }, "a", "error_during_execution"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, true)
			b.ready()
			c.before(b)
			b.read(failed(c.id))
			said := b.m.Snapshot().Told
			require.NotNil(t, said)
			assert.Equal(t, c.want, said.Failure)
		})
	}
}

// TestInventory is what a stop compares.
func TestInventory(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	b.ready()
	assert.Equal(t, machine.Inventory{}, b.m.Inventory())
	b.send("a")
	b.send("b")
	b.read(frame(`{"type":"system","subtype":"task_started","task_id":"t","description":"npm"}`))
	all := b.m.Inventory()
	assert.Equal(t, "a", all.Running)
	assert.Equal(t, []string{"b"}, all.Queued)
	require.Len(t, all.Tasks, 1)
	b.read(frame(`{"type":"result","subtype":"success","user_message_uuids":["a"]}`))
	assert.Equal(t, "b", b.m.Inventory().Running)
}
