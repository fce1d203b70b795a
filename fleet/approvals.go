package fleet

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/sdk"
)

// Approvals let a person answer later the calls of tools that no rule decides.
//
// A call that needs a person is in the journal, and in Handle.Approvals. For Hold the
// task keeps its place and its process, and the answer goes to the agent at once. Then the
// call is denied, the attempt is interrupted, and the task waits without a place and a
// process. When it is decided, the session is resumed in its workspace and told; the same
// call is then allowed once. The end of the host, too, denies the call, and the task waits
// in the next host.
//
// Each such wait is a start for Job.MaxStarts. Questions to the user (AskUserQuestion,
// ExitPlanMode) are denied at once: there is nothing to approve.
type Approvals struct {
	Hold time.Duration // default: 0, which is 1 minute; negative: none
}

// Approval is a call of a tool that waits for a person.
type Approval struct {
	// ID is the hash of the task, the tool and its input, with the number of the call where
	// the task has asked for the same before. An answer to it works once.
	ID      string          `json:"id"`
	Task    string          `json:"task"`
	Attempt int             `json:"attempt"`
	Tool    string          `json:"tool"`
	Input   json.RawMessage `json:"input"`
	// Cwd is the directory that the agent works in, as the agent names it.
	Cwd string `json:"cwd,omitempty"`
	// Said is what the agent, or its subagent, said last before the call: the end of it, if
	// it is longer than 2,000 bytes.
	Said string    `json:"said,omitempty"`
	At   time.Time `json:"at"`
}

// ErrNoApproval says that no call with the id waits: there was none, somebody has decided,
// or the task is over.
var ErrNoApproval = errors.New("no call with this id waits for an approval")

// Kinds of records about approvals.
const (
	kindAsked   = "asked"   // a call waits for a person
	kindDecided = "decided" // a person has decided
	kindUsed    = "used"    // an answer was given to the agent
)

type decidedRecord struct {
	ID     string `json:"id"`
	Allow  bool   `json:"allow,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// asked is a call and what became of it.
type asked struct {
	Approval
	state    askState
	taken    bool // somebody is deciding
	reason   string
	resolved chan struct{} // closed when it is decided
}

type askState int8

const (
	askWaits askState = iota
	askAllowed
	askDenied
	askUsed
)

const defaultHold = time.Minute

func (a *Approvals) hold() time.Duration { return cmp.Or(a.Hold, defaultHold) }

// callID is the hash of a call. The order of keys does not matter.
func callID(task, tool string, input json.RawMessage) string {
	var v any
	d := json.NewDecoder(bytes.NewReader(input))
	d.UseNumber() // large numbers stay apart
	if d.Decode(&v) == nil {
		if same, err := json.Marshal(v); err == nil {
			input = same
		}
	}
	sum := sha256.New()
	for _, part := range []string{task, tool, string(input)} {
		_, _ = fmt.Fprintf(sum, "%d:%s", len(part), part) // it never fails
	}
	return hex.EncodeToString(sum.Sum(nil))[:24]
}

// Approvals returns the calls that wait for a person, in the order in which they came.
func (h *Handle) Approvals() (all []Approval) {
	h.r.look(func() { all = h.r.approvals() })
	return all
}

func (r *run) approvals() []Approval {
	h := &Handle{r}
	var all []Approval
	for _, e := range h.r.order {
		for _, a := range e.asks {
			if a.state == askWaits && e.result == nil {
				all = append(all, a.Approval)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Approval) int { return a.At.Compare(b.At) })
	return all
}

// Decide answers a call that waits for a person. The model reads the reason of a denial.
// When it returns nil the decision is durable. The error matches [ErrNoApproval], or says
// that the journal cannot be written.
func (h *Handle) Decide(ctx context.Context, id string, allow bool, reason string) error {
	r := h.r
	r.mu.Lock()
	var found *asked
	for _, e := range r.order {
		for _, a := range e.asks {
			if a.ID == id && a.state == askWaits && !a.taken && e.result == nil {
				found = a
			}
		}
	}
	if found == nil || r.final {
		r.mu.Unlock()
		return fmt.Errorf("approval %q: %w", id, ErrNoApproval)
	}
	found.taken = true
	r.mu.Unlock()
	err := r.append(ctx, r.record(kindDecided, found.Task, found.Attempt, decidedRecord{id, allow, reason}))
	r.mu.Lock()
	if found.taken = false; err == nil {
		found.decide(allow, reason)
		r.put(approved{found.Task})
	}
	r.mu.Unlock()
	if err != nil {
		r.fail(err)
	}
	return err
}

func (a *asked) decide(allow bool, reason string) {
	a.state, a.reason = askDenied, reason
	if allow {
		a.state = askAllowed
	}
	if a.resolved != nil {
		close(a.resolved)
	}
}

// ask is Options.CanUseTool of a job with Approvals.
func (r *run) ask(ctx context.Context, a *attempt, req *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	if req.ToolName == "AskUserQuestion" || req.ToolName == "ExitPlanMode" {
		return sdk.Deny("Nobody is there to answer. Decide yourself and go on."), nil
	}
	call, isNew := r.called(a, req, r.saidBefore(ctx, a, req.ToolUseID))
	if isNew {
		if err := r.append(ctx, r.record(kindAsked, a.task.ID, a.number, call.Approval)); err != nil {
			r.fail(err)
			return sdk.DenyAndStop("The call could not be written down."), nil
		}
		waits := call.Approval
		r.tell(Event{Kind: EventAsked, Task: a.task.ID, Attempt: a.number, Detail: call.ID + " " + req.ToolName, Approval: &waits})
	}
	r.doing(a, "waiting: approval")
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	if hold := r.job.Approvals.hold(); hold > 0 {
		defer r.clock.AfterFunc(hold, stop).Stop()
	} else {
		stop()
	}
	_ = r.exec.Await(waiting, call.resolved)
	r.mu.Lock()
	state, reason := call.state, call.reason
	if state != askWaits {
		call.state = askUsed
	}
	r.mu.Unlock()
	if state == askWaits {
		a.stop() // the task waits without its process
		return sdk.DenyAndStop("This call waits for an approval. You will be told when it is decided."), nil
	}
	// Used before the agent learns it: an answer works once, also when the host dies now.
	if err := r.append(ctx, r.record(kindUsed, a.task.ID, a.number, decidedRecord{ID: call.ID})); err != nil {
		r.fail(err)
		return sdk.DenyAndStop("The approval could not be written down."), nil
	}
	r.doing(a, req.ToolName)
	if state == askAllowed {
		return sdk.Allow(), nil
	}
	return sdk.Deny(strings.TrimSpace("A person has denied this call. " + reason)), nil
}

// called finds the call among those that the task has asked for, or adds it.
func (r *run) called(a *attempt, req *sdk.ToolPermissionRequest, said string) (call *asked, isNew bool) {
	id := callID(a.task.ID, req.ToolName, req.Input)
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.tasks[a.task.ID]
	number := 1
	for _, c := range e.asks {
		if base, _, _ := strings.Cut(c.ID, "-"); base == id {
			if number++; c.state != askUsed {
				call = c
			}
		}
	}
	if call == nil {
		if number > 1 {
			id += fmt.Sprintf("-%d", number)
		}
		call = &asked{Approval: Approval{
			ID: id, Task: a.task.ID, Attempt: a.number, Tool: req.ToolName, Input: req.Input,
			Cwd: cmp.Or(req.Cwd, a.opts.Cwd), Said: said, At: r.clock.Now().UTC(),
		}}
		e.asks = append(e.asks, call)
		isNew = true
	}
	if call.resolved == nil {
		call.resolved = make(chan struct{})
		if call.state != askWaits {
			close(call.resolved)
		}
	}
	return call, isNew
}

// asking reports whether a call of the task waits for a person; mu is held.
func (e *entry) asking() bool {
	return slices.ContainsFunc(e.asks, func(a *asked) bool { return a.state == askWaits })
}

// decisions tells the model what was decided while it was not there; mu is not held.
func (r *run) decisions(task string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, a := range r.tasks[task].asks {
		switch a.state {
		case askAllowed:
			fmt.Fprintf(&b, "\nYour call of %s was approved, once. Make exactly the same call again: %s", a.Tool, short(string(a.Input)))
		case askDenied:
			fmt.Fprintf(&b, "\nYour call of %s was denied by a person. %s Do not make it again: %s", a.Tool, a.reason, short(string(a.Input)))
		}
	}
	return b.String()
}

// approval is what a record says about the calls of a task.
func (k *known) approval(kind string, decode func(any) error) error {
	if kind == kindAsked {
		var a Approval
		err := decode(&a)
		k.asks = append(k.asks, &asked{Approval: a})
		return err
	}
	var d decidedRecord
	err := decode(&d)
	for _, a := range k.asks {
		switch {
		case a.ID != d.ID:
		case kind == kindUsed:
			a.state = askUsed
		default:
			a.decide(d.Allow, d.Reason)
		}
	}
	return err
}

// waits reports whether a call of the task waits for a person.
func (k *known) waits() bool { return (&entry{asks: k.asks}).asking() }
