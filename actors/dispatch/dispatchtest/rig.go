package dispatchtest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/agent-troupe/troupe/actors/dispatch"
	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/actors/message"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/internal/machine"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Rig is a callback actor in virtual time, with a record of its answers and
// failures.
type Rig struct {
	Sched  *sim.Scheduler
	Ledger *ledger.Ledger
	Lines  []string // what was written to the agent
	Failed []error  // what the events say of callbacks
	Events []session.CallbackFailed

	t  *testing.T
	at kernel.Address[message.ToCallback]
}

// Rules are those of a dialect that has nothing to say but how to deny. They know
// some subtypes of each kind.
type Rules struct {
	Deny func(k session.Kind, f protocol.Frame, reason string) (response []byte, errText string)
}

// Initialize implements [machine.Rules].
func (Rules) Initialize(int) ([]byte, error) { return []byte(`{"subtype":"initialize"}`), nil }

// Initialized implements [machine.Rules].
func (Rules) Initialized([]byte) ([]machine.Called, error) { return nil, nil }

// CheckVersion implements [machine.Rules].
func (Rules) CheckVersion(string) error { return nil }

// CheckSession implements [machine.Rules].
func (Rules) CheckSession(string) string { return "" }

// KindOf implements [machine.Rules].
func (Rules) KindOf(subtype string) (kind session.Kind, person bool) {
	switch subtype {
	case "can_use_tool":
		return session.KindPermission, true
	case "hook_callback":
		return session.KindHook, false
	case "mcp_message":
		return session.KindMCP, false
	case "get_model_policy":
		return session.KindModelPolicy, false
	case "elicitation", "request_user_dialog":
		return session.KindInquiry, true
	}
	return session.KindOther, false
}

// Denial implements [machine.Rules].
func (r Rules) Denial(k session.Kind, f protocol.Frame, reason string) (response []byte, errText string) {
	return r.Deny(k, f, reason)
}

// Begin answers the initialize call of a session that has just been connected.
func Begin(l *ledger.Ledger) {
	for _, w := range l.Snapshot().Waits {
		if w.What != "control request initialize" {
			continue
		}
		line := `{"type":"control_response","response":{"subtype":"success","response":{},"request_id":"` + w.ID + `"}}`
		if f, err := protocol.ParseFrame([]byte(line)); err == nil {
			l.Put([]protocol.Frame{f})
		}
	}
}

// New runs what build returns, with the rig's ledger; deny answers for callbacks that
// fail.
func New(t *testing.T, build func(*Rig) *dispatch.Actor, deny func(protocol.Frame, string) ([]byte, string)) *Rig {
	t.Helper()
	r := &Rig{t: t, Sched: sim.New(1)}
	sys := kernel.NewSystem(r.Sched.Config())
	r.Ledger = ledger.New(ledger.Config{
		Config: machine.Config{Rules: Rules{Deny: func(_ session.Kind, f protocol.Frame, reason string) ([]byte, string) { return deny(f, reason) }}},
		Clock:  r.Sched, Rand: r.Sched, Exec: r.Sched,
		Emit: func(e session.Event) {
			if f, ok := e.(session.CallbackFailed); ok {
				r.Failed, r.Events = append(r.Failed, f.Err), append(r.Events, f)
			}
		},
	})
	r.Ledger.SetOutlet(r)
	Begin(r.Ledger)
	r.Lines = nil // initialize
	actor := build(r)
	actor.Ledger, actor.Changed = r.Ledger, func(*kernel.Worker) {}
	r.must(kernel.SpawnRoot(sys, "actor", &r.at, actor))
	t.Cleanup(r.Sched.Close)
	return r
}

func (r *Rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// Write implements [ledger.Outlet].
func (r *Rig) Write(b []byte, _ machine.Class) error {
	r.Lines = append(r.Lines, strings.TrimSuffix(string(b), "\n"))
	return nil
}

// Ask gives a request of the agent to the actor and lets time go by.
func (r *Rig) Ask(line string, d time.Duration) {
	r.t.Helper()
	f, err := protocol.ParseFrame([]byte(line))
	r.must(err)
	if !machine.IsControl(f.Type) {
		r.t.Fatalf("%s is no control frame", line)
	}
	r.Ledger.Put([]protocol.Frame{f})
	r.at.Tell(nil, message.RequestsReady{})
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
