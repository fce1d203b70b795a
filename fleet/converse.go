package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// converse plays the turns, and the verification with its rounds.
func (r *runner) converse(ctx context.Context, a *attempt) error {
	a.asked = a.asked || a.turns > 0 // by an earlier attempt
	if a.mode == modeResume && a.turns >= len(a.prompts) && a.verify.rounds() == 0 {
		return r.judge(ctx, a) // the conversation was over when the host died
	}
	if a.turns < len(a.prompts) {
		if err := r.afford(a); err != nil {
			return err
		}
	}
	r.doing(a, "starting")
	servers, from := len(a.opts.MCPServers), r.clock.Now()
	release, err := r.share(ctx, a)
	if err != nil {
		return err
	}
	defer release()
	if len(a.opts.MCPServers) < servers {
		r.post(reached{a.task.ID, ofServer, from})
	}
	a.client = sdk.NewClient(a.opts)
	defer r.hangUp(ctx, a)
	from = r.clock.Now()
	place := runtime.AdmissionRequest{Group: r.job.ID, Priority: a.task.Priority, Labels: r.labels(a.task), Job: r.job.ID, Task: a.task.ID, Attempt: a.number}
	if err := a.client.Connect(runtime.WithAdmission(ctx, place)); err != nil {
		return err
	}
	a.ready = true
	r.tell(opened{a.id, a.number, a.client.ID()})
	r.post(reached{a.task.ID, ofProgram, from})
	for _, w := range a.client.Warnings() {
		a.warnings = append(a.warnings, w.String())
	}
	for ; a.turns < len(a.prompts); a.turns++ {
		if err := r.turn(ctx, a, a.prompts[a.turns]); err != nil {
			return err
		}
		r.post(worked{a.task.ID, a.sent})
		if err := r.records.turned(ctx, a); err != nil {
			return err
		}
		if a.turns+1 < len(a.prompts) || a.verify != nil { // else its result follows
			r.keep(ctx, a, a.turns+1)
		}
	}
	for round := 0; ; round++ {
		if err := r.judge(ctx, a); err != nil {
			return err
		}
		if a.Verdict == nil || a.Verdict.OK || round >= a.verify.rounds() {
			return nil
		}
		text, err := a.verify.feedback(*a.Verdict)
		if err != nil {
			return err
		}
		if err := r.turn(ctx, a, text); err != nil {
			return err
		}
		r.keep(ctx, a, a.turns)
	}
}

// share connects the session to the MCP servers that it shares. They must not differ by
// the variables that tell tasks apart.
func (r *runner) share(ctx context.Context, a *attempt) (release func(), err error) {
	env := a.opts.Env
	a.opts.Env = a.ownEnv
	release, err = r.servers.Share(ctx, a.opts)
	a.opts.Env = env
	return release, err
}

// sees sends the machine the agent's reports of the API.
func (r *runner) sees(a *attempt, status int, word string, wait time.Duration) {
	if saw := troubleOf(status, word); saw != 0 {
		r.post(pressed{a.task.ID, saw, wait})
	}
}

// hangUp ends the session, whose processes are gone then.
func (r *runner) hangUp(ctx context.Context, a *attempt) {
	err := a.client.Close(a.hard)
	for m, failed := range a.client.Messages(context.WithoutCancel(ctx)) { // what came too late to be read
		if failed != nil {
			break
		}
		r.note(a, m)
	}
	if id := a.client.SessionID(); id != "" {
		a.session, a.Session = id, id
	}
	var killed *session.KilledError
	var left *session.LeftoverError
	if errors.As(err, &killed) || errors.As(err, &left) || errors.As(err, new(*session.WritesLostError)) {
		a.warnings = append(a.warnings, err.Error())
	}
}

// turn sends a message and reads to its result, unless a budget is spent.
func (r *runner) turn(ctx context.Context, a *attempt, text string) error {
	if err := r.afford(a); err != nil {
		return err
	}
	r.doing(a, "thinking")
	a.began = r.clock.Now()
	a.sent = a.began
	turn, err := a.client.Send(ctx, a.message(text))
	if err != nil {
		return err
	}
	var last *sdk.ResultMessage
	for m, err := range turn.Messages(ctx) {
		if err != nil {
			return err
		}
		if result := r.note(a, m); result != nil {
			last = result
		}
	}
	if last == nil {
		return session.ErrNotRun
	}
	if err := a.failed(r.clock.Now(), last); err != nil {
		if last.APIErrorStatus != 0 || meansOverload(last.APIErrorType) {
			r.sees(a, last.APIErrorStatus, last.APIErrorType, untilReset(r.clock.Now(), a.limited, last))
		}
		if overBudget(last) { // the agent's limit is what was left of the budgets
			if spent := r.afford(a); spent != nil {
				err = fmt.Errorf("%w: %w", spent, err)
			}
		}
		return err
	}
	a.answer(last)
	if len(last.BackgroundTasks) == 0 {
		return nil
	}
	return r.background(ctx, a)
}

// background waits for the agent's background tasks, which may start further turns.
func (r *runner) background(ctx context.Context, a *attempt) error {
	r.doing(a, "background")
	reading, stop := context.WithCancel(ctx)
	defer stop()
	idle := kernel.NewPromise[[]protocol.BackgroundTask]()
	r.exec.Go(func() {
		left, err := a.client.AwaitDone(ctx)
		if err != nil {
			idle.Fail(err)
		}
		idle.Resolve(left)
		stop()
	})
	for m, err := range a.client.Messages(reading) {
		if err != nil {
			break
		}
		if result := r.note(a, m); result != nil && !result.Failed() {
			a.answer(result)
		}
	}
	left, err := idle.Wait(ctx, r.exec)
	if err == nil && len(left) > 0 {
		err = &stillRuns{left}
	}
	return err
}

// stillRuns says that the agent was done and its background tasks were not.
type stillRuns struct{ left []protocol.BackgroundTask }

func (e *stillRuns) Error() string {
	names := make([]string, len(e.left))
	for i, t := range e.left {
		names[i] = strings.TrimSpace(t.TaskID + " " + t.Description)
	}
	return "background work was alive at the end: " + strings.Join(names, ", ")
}

func (a *attempt) answer(m *sdk.ResultMessage) {
	a.Text, a.Structured = m.Text(), m.StructuredOutput
}

// failed returns the error of an unsuccessful result.
func (a *attempt) failed(now time.Time, m *sdk.ResultMessage) error {
	if !m.Failed() {
		return nil
	}
	a.answer(m)
	err := &sdk.ResultError{Result: m, RetryAfter: untilReset(now, a.limited, m)}
	if unauthorized(m, a.refused) {
		return &sdk.AuthError{Backend: backendName(a.opts), Err: err}
	}
	return err
}

// note takes a message of the agent, and returns the result that it is.
func (r *runner) note(a *attempt, m sdk.Message) *sdk.ResultMessage {
	if a.script != nil {
		if raw := m.Raw(); raw != nil {
			_, err := a.script.Write(append(raw[:len(raw):len(raw)], '\n'))
			if err != nil {
				a.unkept = &journal.FailedError{Op: "write", Err: fmt.Errorf("%s: %w", a.Transcript, err)}
				_ = a.script.Close()
				a.script = nil
				r.fail(a.unkept)
			}
		}
	}
	a.modeled(m)
	switch m := m.(type) {
	case *protocol.RateLimitMessage:
		a.limited = m
	case *protocol.APIRetryMessage:
		a.sent = r.clock.Now() // the agent asks again after this
		r.sees(a, m.ErrorStatus, m.Error, 0)
	case *sdk.UnknownMessage:
		if m.Subtype == "request_deferred" {
			r.doing(a, "waiting for a batch")
		}
	case *sdk.UserMessage:
		a.sent = r.clock.Now()
		a.heard(m)
	case *sdk.AssistantMessage:
		a.refused = a.refused || m.Error == "authentication_failed"
		if meansOverload(m.Error) { // its result may name neither status nor type
			r.sees(a, m.APIErrorStatus, m.Error, 0)
		}
		r.proves(a, m)
		r.says(a, m)
		for _, use := range sdk.ToolUses(m) {
			a.ToolCalls++
			a.acted = a.acted || !onlyReads(use.Name)
			r.doing(a, use.Name)
		}
	}
	if u, ok := m.(*sdk.UnknownMessage); ok && u.Partial != nil {
		m = u.Partial
	}
	result, ok := m.(*sdk.ResultMessage)
	if !ok {
		return nil
	}
	a.denied(result)
	a.modeled(result)
	r.turnSaid(a)
	r.bill(a, result)
	return result
}
