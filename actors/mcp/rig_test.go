package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/dispatch"
	"github.com/agent-troupe/troupe/actors/event"
	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/actors/message"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
)

// rig is the actor in virtual time, with a record of its answers and failures.
type rig struct {
	t      *testing.T
	sched  *sim.Scheduler
	ledger *ledger.Ledger
	ref    kernel.Ref[message.ToCallback]
	lines  []string
	failed []error
}

// newRig runs what build returns; deny answers for callbacks that fail.
func newRig(t *testing.T, build func(*ledger.Ledger, *sim.Scheduler) *dispatch.Actor, deny func(*ledger.Request, string) ([]byte, string)) *rig {
	t.Helper()
	r := &rig{t: t, sched: sim.New(1)}
	sys := kernel.NewSystem(r.sched.Config())
	r.ledger = ledger.New(ledger.Config{
		Clock: r.sched, Rand: r.sched, Exec: r.sched, Deny: deny,
		Emit: func(e event.Event) {
			if f, ok := e.(event.CallbackFailed); ok {
				r.failed = append(r.failed, f.Err)
			}
		},
	})
	r.ledger.SetOutlet(r)
	ref, err := kernel.SpawnRoot[message.ToCallback](sys, "actor", build(r.ledger, r.sched))
	require.NoError(t, err)
	r.ref = ref
	t.Cleanup(r.sched.Close)
	return r
}

// Write implements ledger.Outlet.
func (r *rig) Write(b []byte, _ ledger.Class) error {
	r.lines = append(r.lines, strings.TrimSuffix(string(b), "\n"))
	return nil
}

// ask gives a request of the agent to the actor and lets time go by.
func (r *rig) ask(line string, d time.Duration) {
	r.t.Helper()
	f, err := protocol.ParseFrame([]byte(line))
	require.NoError(r.t, err)
	r.ledger.Put([]protocol.Frame{f})
	f, _, ok := r.ledger.DeliverContent()
	require.True(r.t, ok)
	r.ledger.Open(f)
	r.ref.Tell(message.RequestsReady{})
	r.pass(0)
	r.pass(d)
}

func (r *rig) pass(d time.Duration) {
	r.t.Helper()
	over := make(chan struct{})
	r.sched.AfterFunc(d, func() { close(over) })
	require.NoError(r.t, r.sched.Await(context.Background(), over))
}

// answer is the response to the last request, or its error text.
func (r *rig) answer() string {
	r.t.Helper()
	require.NotEmpty(r.t, r.lines, "no answer")
	var m struct {
		Response struct {
			Error    string          `json:"error"`
			Response json.RawMessage `json:"response"`
		} `json:"response"`
	}
	require.NoError(r.t, json.Unmarshal([]byte(r.lines[len(r.lines)-1]), &m))
	return m.Response.Error + string(m.Response.Response)
}
