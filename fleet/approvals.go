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
	"strings"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol/view"
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

	Session string `json:"session,omitempty"` // the id of the session in its runtime; it has ended if HoldUntil is over
	// HoldUntil is until when the task keeps its process; zero: it has given it up at once.
	HoldUntil time.Time `json:"hold_until,omitzero"`
	// Rule is the rule of the policy that asks, as it was written, RuleList its list (ask), and
	// RuleFrom where it is, such as "Options.Policy.Ask[2]". Without a rule RuleFrom is
	// "Policy.Default: ask". It is empty without a policy. Reason explains it in words.
	Rule     string `json:"rule,omitempty"`
	RuleList string `json:"rule_list,omitempty"`
	RuleFrom string `json:"rule_from,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Diff is what an edit would change, as view.Diff writes it; empty for other calls.
	Diff string `json:"diff,omitempty"`
}

// Decided is what a person has decided about a call.
type Decided struct {
	ID     string    `json:"id"` // of the [Approval]
	Task   string    `json:"task"`
	Tool   string    `json:"tool"`
	Allow  bool      `json:"allow"`
	Edited bool      `json:"edited,omitempty"` // it was allowed with another input
	By     string    `json:"by,omitempty"`     // who; "": not known
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at,omitzero"` // zero in the records of older releases
}

// DecidedError says that a call was decided before, and how: the first answer counts. It
// matches [ErrNoApproval].
type DecidedError struct{ Decided }

func (e *DecidedError) Error() string {
	how, by := "denied", cmp.Or(e.By, "somebody else")
	if e.Allow {
		how = "allowed"
	}
	return fmt.Sprintf("the call %q was %s by %s before", e.ID, how, by)
}

// Is makes the error match [ErrNoApproval].
func (e *DecidedError) Is(target error) bool { return target == ErrNoApproval }

// ErrNoApproval says that no call with the id waits: it never did, it was decided, or the
// task is over.
var ErrNoApproval = errors.New("no call with this id waits for an approval")

// Kinds of records about approvals.
const (
	kindAsked   = "asked"   // a call waits for a person
	kindDecided = "decided" // a person has decided
	kindUsed    = "used"    // an answer was given to the agent
)

type decidedRecord struct {
	ID     string          `json:"id"`
	Allow  bool            `json:"allow,omitempty"`
	Reason string          `json:"reason,omitempty"`
	Input  json.RawMessage `json:"input,omitempty"`
	By     string          `json:"by,omitempty"`
	At     time.Time       `json:"at,omitzero"`
}

// answerRecord is the record of an answer.
func answerRecord(a Answer, at time.Time) decidedRecord {
	return decidedRecord{ID: a.ID, Allow: a.Allow, Reason: a.Reason, Input: a.Input, By: a.By, At: at.UTC()}
}

// check finds a mistake in an answer.
func (a *Answer) check() error {
	if a.Input == nil {
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(a.Input, &object); err != nil || object == nil {
		return fmt.Errorf("approval %q: the changed input must be a JSON object", a.ID)
	}
	if !a.Allow {
		return fmt.Errorf("approval %q: a call that is denied has no changed input", a.ID)
	}
	return nil
}

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
func (h *Handle) Approvals() []Approval {
	return ask(h.b, func(to *kernel.Promise[[]Approval]) note { return approvalsOf{to} })
}

// Decide is [Handle.Answer] without a changed input and a name.
func (h *Handle) Decide(ctx context.Context, id string, allow bool, reason string) error {
	return h.Answer(ctx, Answer{ID: id, Allow: allow, Reason: reason})
}

// Answer answers a call that waits for a person. The model reads the reason of a denial.
// When it returns nil the decision is durable. Of several answers the first counts: the error
// of the others is a *[DecidedError]. Otherwise it matches [ErrNoApproval], or says that the
// input is not a JSON object, or that the journal cannot be written.
func (h *Handle) Answer(ctx context.Context, a Answer) error {
	if err := a.check(); err != nil {
		return err
	}
	b := h.b
	if b.worker != "" {
		reply := kernel.NewPromise[struct{}]()
		b.post(answers{a, reply})
		_, err := reply.Wait(ctx, b.exec)
		return err
	}
	found, err := question(b.env, func(to *kernel.Promise[Approval]) note { return deciding{a.ID, to} })
	if err != nil {
		return err
	}
	r := b.carrier.records
	record := answerRecord(a, r.clock.Now())
	err = r.append(ctx, r.record(kindDecided, found.Task, found.Attempt, record))
	b.post(decided{found.Task, record, err != nil})
	if err != nil {
		b.fail(err)
	}
	return err
}

// ask is Options.CanUseTool of a job with Approvals.
func (r *runner) ask(ctx context.Context, a *attempt, req *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	if req.ToolName == "AskUserQuestion" || req.ToolName == "ExitPlanMode" {
		return sdk.Deny("Nobody is there to answer. Decide yourself and go on."), nil
	}
	wanted := Approval{
		ID: callID(a.task.ID, req.ToolName, req.Input), Task: a.task.ID, Attempt: a.number, Tool: req.ToolName, Input: req.Input,
		Cwd: cmp.Or(req.Cwd, a.opts.Cwd), Said: r.saidBefore(ctx, a, req.ToolUseID), At: r.clock.Now().UTC(),
		Session: a.client.ID(), Diff: view.Diff(req.ToolName, req.Input),
	}
	if hold := r.job.Approvals.hold(); hold > 0 {
		wanted.HoldUntil = wanted.At.Add(hold)
	}
	wanted.explain(a.opts.Policy, req)
	call, _ := question(r.env, func(to *kernel.Promise[asking]) note { return asks{a.task.ID, wanted, to} })
	if call.isNew {
		if err := r.records.append(ctx, r.records.record(kindAsked, a.task.ID, a.number, call.Approval)); err != nil {
			r.fail(err)
			return sdk.DenyAndStop("The call could not be written down."), nil
		}
		r.tell(shows{a.task.ID, call.ID})
		r.say(Event{Kind: EventAsked, Task: a.task.ID, Attempt: a.number, Detail: call.ID + " " + req.ToolName, Approval: &call.Approval})
	}
	r.doing(a, "waiting: approval")
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	if hold := r.job.Approvals.hold(); hold > 0 {
		defer r.clock.AfterFunc(hold, stop).Stop()
	} else {
		stop()
	}
	_, _ = call.resolved.Wait(waiting, r.exec)
	said, _ := question(r.env, func(to *kernel.Promise[verdictOn]) note { return takes{a.task.ID, call.ID, to} })
	if said.state == askWaits {
		a.waits.Resolve(struct{}{})
		a.stop() // the task waits without its process
		return sdk.DenyAndStop("This call waits for an approval. You will be told when it is decided."), nil
	}
	// Used before the agent learns it: an answer works once, also when the host dies now.
	if err := r.records.append(ctx, r.records.record(kindUsed, a.task.ID, a.number, decidedRecord{ID: call.ID})); err != nil {
		r.fail(err)
		return sdk.DenyAndStop("The approval could not be written down."), nil
	}
	if err := r.jot(ctx, a, a.turns, false, true); err != nil { // the task is another program's
		return sdk.DenyAndStop("The approval could not be written down."), nil
	}
	r.doing(a, req.ToolName)
	if said.state == askAllowed {
		allowed := sdk.Allow()
		allowed.UpdatedInput = said.input
		return allowed, nil
	}
	return sdk.Deny(strings.TrimSpace("A person has denied this call. " + said.reason)), nil
}

// explain says which rule asks about the call.
func (w *Approval) explain(rules *policy.Rules, req *sdk.ToolPermissionRequest) {
	w.Reason = req.DecisionReason
	if rules == nil {
		return
	}
	compiled, err := policy.Compile(*rules)
	if err != nil {
		return // the session has filled in what this lacks
	}
	why := compiled.Explain(policy.Call{Tool: w.Tool, Input: w.Input, Cwd: w.Cwd, Blocked: req.BlockedPath})
	w.Reason = why.String()
	if why.Rule.Text == "" {
		w.RuleFrom = "Policy.Default: " + string(cmp.Or(rules.Default, policy.Ask))
		return
	}
	list := string(why.Rule.Behavior)
	w.Rule, w.RuleList = why.Rule.Text, list
	w.RuleFrom = fmt.Sprintf("Options.Policy.%s%s[%d]", strings.ToUpper(list[:1]), list[1:], why.Rule.Index)
}
