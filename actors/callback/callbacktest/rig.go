package callbacktest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/agent-troupe/troupe/actors/callback"
	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/router/routertest"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Rig is a callback actor in virtual time, with a record of its answers and
// failures.
type Rig struct {
	Sched  *sim.Scheduler
	Lines  []string // what was written to the agent
	Failed []error  // what the events say of callbacks
	Events []*session.CallbackFailed

	t    *testing.T
	host *Host
}

// New runs what build returns, with the rig's router; deny answers for callbacks that
// fail.
func New(t *testing.T, build func(*Rig) *callback.Actor, deny func(protocol.Frame, string) ([]byte, string)) *Rig {
	t.Helper()
	r := &Rig{t: t, Sched: sim.New(1)}
	sys := kernel.NewSystem(r.Sched.Config())
	var err error
	r.host, err = NewHost(sys, routertest.Config{
		Config: machine.Config{Rules: routertest.Rules{Deny: func(_ session.Kind, f protocol.Frame, reason string) ([]byte, string) { return deny(f, reason) }}},
		Emit:   r.emit,
	}, func(line []byte) { r.Lines = append(r.Lines, strings.TrimSuffix(string(line), "\n")) })
	r.must(err)
	r.Pass(0)
	r.Lines = nil // initialize
	actor := build(r)
	actor.Emit = r.emit
	r.host.Start(actor)
	t.Cleanup(r.Sched.Close)
	return r
}

func (r *Rig) emit(e session.Event) {
	if f, ok := e.(*session.CallbackFailed); ok {
		r.Failed, r.Events = append(r.Failed, f.Err), append(r.Events, f)
	}
}

func (r *Rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// Waits is what the session waits for.
func (r *Rig) Waits() []machine.Waiting { return r.host.Waits() }

// Cancel is the agent's word that it takes a request back.
func (r *Rig) Cancel(id string) {
	r.t.Helper()
	f, err := protocol.ParseFrame([]byte(`{"type":"control_cancel_request","request_id":"` + id + `"}`))
	r.must(err)
	r.host.Put(f)
}

// Ask gives a request of the agent to the actor and lets time go by.
func (r *Rig) Ask(line string, d time.Duration) {
	r.t.Helper()
	f, err := protocol.ParseFrame([]byte(line))
	r.must(err)
	if !machine.IsControl(f.Type) {
		r.t.Fatalf("%s is no control frame", line)
	}
	r.host.Put(f)
	r.Pass(0)
	r.Pass(d)
}

// Pass lets time go by.
func (r *Rig) Pass(d time.Duration) {
	r.t.Helper()
	over := make(chan struct{})
	r.Sched.AfterFunc(d, func() { close(over) })
	r.must(r.Sched.Await(context.Background(), over))
}

// Answer is the response to the last request, or its error text.
func (r *Rig) Answer() string {
	r.t.Helper()
	if len(r.Lines) == 0 {
		r.t.Fatal("no answer")
	}
	var m struct {
		Response struct {
			Error    string          `json:"error"`
			Response json.RawMessage `json:"response"`
		} `json:"response"`
	}
	r.must(protocol.Unmarshal([]byte(r.Lines[len(r.Lines)-1]), &m))
	return m.Response.Error + string(m.Response.Response)
}
