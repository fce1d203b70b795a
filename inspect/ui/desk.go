package ui

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// Desk keeps calls of tools that wait for a person at a window. It is safe for concurrent
// use. Calls that wait elsewhere, such as in a CanUseTool of the program's, are shown as
// waits of their session, and cannot be answered here.
type Desk struct {
	rt *runtime.Runtime

	mu   sync.Mutex
	n    int
	open []*deskCall // the oldest first
	who  []decidedBy // of the last calls, the oldest first
}

// decidedBy is who has answered a call of a tool.
type decidedBy struct{ call, who string }

// by is who has answered a call; "": not known.
func (d *Desk) by(call string) string {
	if d == nil || call == "" {
		return ""
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if at := slices.IndexFunc(d.who, func(w decidedBy) bool { return w.call == call }); at >= 0 {
		return d.who[at].who
	}
	return ""
}

type deskCall struct {
	Approval
	call   string                          // id of the ToolUseBlock
	answer func(sdk.PermissionResult) bool // false: it was answered before, or withdrawn
	done   <-chan struct{}                 // closed when it was answered or withdrawn
}

// deskJob is in place of a job in the ids of calls.
const deskJob = "desk"

// NewDesk returns a desk for sessions of the runtime. See [Config.Desk].
func NewDesk(rt *runtime.Runtime) *Desk { return &Desk{rt: rt} }

// CanUseTool is an Options.CanUseTool that waits for a person at a window. The call is
// denied when Options.PermissionTimeout is over.
func (d *Desk) CanUseTool(ctx context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	id := ""
	if s := runtime.SessionOf(ctx); s != nil {
		id = s.ID()
	}
	answer := kernel.NewPromise[sdk.PermissionResult]()
	c := d.put(id, r, answer.Resolve, answer.Done())
	defer d.remove(c)
	result, err := answer.Wait(ctx, d.rt.Executor())
	if err != nil {
		answer.Fail(err) // who answers now learns that the call is gone
	}
	return result, err
}

// Ask shows a question that [sdk.Interactive.Updates] has yielded, until it is answered at a
// window, by the program, or withdrawn. session is the runtime's id of its session.
func (d *Desk) Ask(session string, a *sdk.Ask[sdk.ToolPermissionRequest, sdk.PermissionResult]) {
	d.put(session, a.Request, a.Answer, a.Done())
}

func (d *Desk) put(session string, r *sdk.ToolPermissionRequest, answer func(sdk.PermissionResult) bool, done <-chan struct{}) *deskCall {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n++
	c := &deskCall{Approval: Approval{
		ID: callID(deskJob, strconv.Itoa(d.n)), Session: session, Tool: r.ToolName, Input: slices.Clone(r.Input), Cwd: r.Cwd,
		At: d.rt.Clock().Now(), Answer: r.ToolName != "AskUserQuestion" && r.ToolName != "ExitPlanMode",
	}, call: r.ToolUseID, answer: answer, done: done}
	d.open = append(d.open, c)
	return c
}

func (d *Desk) remove(c *deskCall) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = slices.DeleteFunc(d.open, func(other *deskCall) bool { return other == c })
}

// waiting are the calls without an answer, the oldest first.
func (d *Desk) waiting() []Approval {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = slices.DeleteFunc(d.open, (*deskCall).over)
	list := make([]Approval, len(d.open))
	for i, c := range d.open {
		list[i] = c.Approval
	}
	return list
}

func (c *deskCall) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// decide answers a call. The error matches ErrDecided if it does not wait any more.
func (d *Desk) decide(id string, v *Verdict) error {
	d.mu.Lock()
	at := slices.IndexFunc(d.open, func(c *deskCall) bool { return c.ID == id })
	if at < 0 {
		d.mu.Unlock()
		return ErrDecided
	}
	c := d.open[at]
	if !c.Answer {
		d.mu.Unlock()
		return ErrUnsupported
	}
	d.open = slices.Delete(d.open, at, at+1)
	d.who = append(d.who[max(0, len(d.who)-maxDecided+1):], decidedBy{c.call, v.Who})
	d.mu.Unlock()
	if !c.answer(v.result()) {
		return ErrDecided
	}
	return nil
}

// result is the answer for the agent.
func (v *Verdict) result() sdk.PermissionResult {
	switch {
	case v.Allow && v.Input != nil:
		return sdk.AllowInput(v.Input)
	case v.Allow:
		return sdk.Allow()
	case v.Reason == "":
		return sdk.Deny("A person has denied this call.")
	}
	return sdk.Deny("A person has denied this call. " + v.Reason)
}

// isObject reports whether an input has the form that a tool's input has.
func isObject(input json.RawMessage) bool {
	var fields map[string]json.RawMessage
	return protocol.Unmarshal(input, &fields) == nil && fields != nil
}
