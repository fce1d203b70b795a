package sdk

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
)

// Interactive is a [Client] for programs that show messages and questions to a person.
// One loop over [Interactive.Updates] reads both.
type Interactive struct {
	*Client
	questions questions
}

// Update is one element of [Interactive.Updates]. Exactly one field is set.
type Update struct {
	// Message is a message of the agent.
	Message Message
	// Permission asks whether a tool call may run. Answer it with [Allow], [Deny] or a
	// related function. Calls of AskUserQuestion and ExitPlanMode arrive here, too; see
	// [QuestionsOf] and [PlanOf].
	Permission *Ask[ToolPermissionRequest, PermissionResult]
	// Elicitation is a question of an MCP server. Answer it with [AcceptElicitation].
	Elicitation *Ask[protocol.ElicitationRequest, protocol.ElicitationResult]
	// Dialog is a dialog of one of Options.SupportedDialogKinds. Claude.
	Dialog *Ask[protocol.UserDialogRequest, protocol.UserDialogResult]
}

// Ask is a question of the agent that waits for an answer. It is safe for concurrent
// use. It may be answered in the loop, later, or after the loop has ended.
type Ask[Request, Answer any] struct {
	Request *Request // the question; do not modify it

	answer *kernel.Promise[Answer]
}

// Answer answers the question. It reports whether the answer was accepted. It returns
// false if the question was answered before or was withdrawn. The zero answer denies.
func (a *Ask[Request, Answer]) Answer(answer Answer) bool { return a.answer.Resolve(answer) }

// Done returns a channel that is closed when the question is answered or withdrawn. A
// question is withdrawn when its turn is interrupted, when it takes longer than
// Options.PermissionTimeout, and when the session ends.
func (a *Ask[Request, Answer]) Done() <-chan struct{} { return a.answer.Done() }

// NewInteractive returns a client like [NewClient], and sets callbacks whose questions
// [Interactive.Updates] yields: CanUseTool unless Options.PermissionPromptToolName is
// set, OnElicitation, and OnUserDialog if Options.SupportedDialogKinds is set. A
// callback that the options already have is kept, and its questions are not updates.
// opts may be nil.
func NewInteractive(opts *Options) *Interactive {
	o := copied(opts)
	i := &Interactive{}
	if o.CanUseTool == nil && o.PermissionPromptToolName == "" {
		o.CanUseTool = func(ctx context.Context, r *ToolPermissionRequest) (PermissionResult, error) {
			a := newAsk[ToolPermissionRequest, PermissionResult](r)
			return put(ctx, i, a, Update{Permission: a})
		}
	}
	if o.OnElicitation == nil {
		o.OnElicitation = func(ctx context.Context, r *protocol.ElicitationRequest) (protocol.ElicitationResult, error) {
			a := newAsk[protocol.ElicitationRequest, protocol.ElicitationResult](r)
			return put(ctx, i, a, Update{Elicitation: a})
		}
	}
	if o.OnUserDialog == nil && len(o.SupportedDialogKinds) > 0 {
		o.OnUserDialog = func(ctx context.Context, r *protocol.UserDialogRequest) (protocol.UserDialogResult, error) {
			a := newAsk[protocol.UserDialogRequest, protocol.UserDialogResult](r)
			return put(ctx, i, a, Update{Dialog: a})
		}
	}
	i.Client = NewClient(o)
	return i
}

// Updates yields the messages of [Client.Messages] and the questions of the agent, in
// order: a question follows the messages that the agent wrote before it. The agent
// waits for the answer. The program may answer in the loop or later, from any
// goroutine; messages of other work arrive meanwhile. If there is an error, it is
// yielded last, as by Messages.
//
// Questions that arrive while no loop runs are kept for the next loop, also questions
// during [Client.Connect]. A question that was withdrawn before it could be yielded is
// not yielded. If the loop ends early, the next loop gets the remaining updates.
func (i *Interactive) Updates(ctx context.Context) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		d, err := i.connected()
		if err != nil {
			yield(Update{}, err)
			return
		}
		r, err := d.session.Read()
		if err != nil {
			yield(Update{}, err)
			return
		}
		defer r.Close()
		defer i.questions.rest()
		for {
			wait, place, asked := i.questions.next(ctx)
			var u Update
			if !asked || place > r.Place() {
				u.Message, err = r.Next(wait)
			}
			switch {
			case u.Message != nil:
			case err == nil, errors.Is(err, errAsked):
				// All that came before the question is read.
				if u, err = i.questions.take(), nil; u == (Update{}) {
					continue
				}
			case errors.Is(err, io.EOF):
				return
			default:
				yield(Update{}, kernel.Ended(ctx, err))
				return
			}
			if !yield(u, nil) {
				return
			}
		}
	}
}

// errAsked ends the wait for a message: there is a question.
var errAsked = errors.New("the agent asks")

// questions are those that no loop has yielded yet, in order.
type questions struct {
	mu    sync.Mutex
	queue []question
	wait  context.Context // in which the loop waits for a message; nil if it does not wait
	wake  context.CancelCauseFunc
}

type question struct {
	Update
	place uint64          // in the stream of messages
	done  <-chan struct{} // closed: it was withdrawn
}

func newAsk[Request, Answer any](r *Request) *Ask[Request, Answer] {
	return &Ask[Request, Answer]{Request: r, answer: kernel.NewPromise[Answer]()}
}

// put queues a question, and waits until it is answered or ctx ends.
func put[Request, Answer any](ctx context.Context, i *Interactive, a *Ask[Request, Answer], u Update) (Answer, error) {
	q := question{Update: u, done: ctx.Done()}
	i.mu.Lock()
	home := i.dialing.home // a callback runs in a session
	i.mu.Unlock()
	if d, err := i.connected(); err == nil {
		q.place = d.session.Delivered()
	}
	i.questions.add(q)
	answer, err := a.answer.Wait(ctx, home.Executor())
	if err != nil {
		a.answer.Fail(err) // withdrawn
	}
	return answer, err
}

func (q *questions) add(one question) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = append(q.queue, one)
	q.end(errAsked)
}

// end ends the wait of the loop; mu is held.
func (q *questions) end(why error) {
	if q.wake != nil {
		q.wake(why)
		q.wait, q.wake = nil, nil
	}
}

// rest is the end of the loop.
func (q *questions) rest() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.end(nil)
}

// next returns the place of the first question, if there is one, and the context in
// which to read the next message: it ends when there is a question, so that only what
// is there already is read.
func (q *questions) next(ctx context.Context) (wait context.Context, place uint64, asked bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.queue) > 0 && over(q.queue[0].done) {
		q.queue = q.queue[1:]
	}
	if q.wake == nil {
		q.wait, q.wake = context.WithCancelCause(ctx)
	}
	if wait = q.wait; len(q.queue) == 0 {
		q.queue = nil
		return wait, 0, false
	}
	q.end(errAsked)
	return wait, q.queue[0].place, true
}

// take removes the first question and returns it; the zero Update if the queue is
// empty.
func (q *questions) take() (u Update) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) > 0 {
		u, q.queue = q.queue[0].Update, q.queue[1:]
	}
	return u
}

func over(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
