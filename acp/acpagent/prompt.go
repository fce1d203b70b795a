package acpagent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/sdk"
	sessions "github.com/agent-troupe/troupe/session"
)

// errCancelled is why a prompt ends that the person cancelled.
var errCancelled = errors.New("the prompt was cancelled")

// prompt is a prompt that has no answer yet.
type prompt struct {
	ctx    context.Context // ends when the prompt is cancelled
	cancel context.CancelCauseFunc
	before <-chan struct{} // closed when the prompt before it is answered, or nil
	done   chan struct{}   // closed when it is answered
}

// prompt begins with session/prompt: prompts are queued in the order in which they came.
func (s *server) prompt(ctx context.Context, params json.RawMessage) func() (any, error) {
	var r acp.PromptRequest
	if err := acp.Decode(acp.MethodSessionPrompt, params, &r); err != nil {
		return func() (any, error) { return nil, err }
	}
	one := s.find(r.SessionID)
	if one == nil {
		return func() (any, error) { return nil, notFound(r.SessionID) }
	}
	message, err := userMessage(r.Prompt)
	if err != nil {
		return func() (any, error) { return nil, err }
	}
	p := one.queue(ctx)
	return func() (any, error) {
		reason, err := one.run(p, message)
		after := acp.After{Result: acp.PromptResponse{StopReason: reason}, Then: func() { one.answered(p) }}
		if p.ctx.Err() != nil { // never an error
			after.Result, err = acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
		}
		return after, err
	}
}

// queue puts a prompt behind the others. The end of ctx, which is a $/cancel_request or
// the end of the connection, cancels it.
func (s *session) queue(ctx context.Context) *prompt {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &prompt{done: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	if len(s.prompts) > 0 {
		p.before = s.prompts[len(s.prompts)-1].done
	}
	s.prompts = append(s.prompts, p)
	return p
}

// answered takes a prompt out of the queue.
func (s *session) answered(p *prompt) {
	p.cancel(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompts = slices.DeleteFunc(s.prompts, func(o *prompt) bool { return o == p })
	close(p.done)
}

// cancel cancels all prompts of the session and denies what it asks for.
func (s *session) cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.prompts {
		p.cancel(errCancelled)
	}
	for a := range s.asks { //troupe:maporder all get the same answer
		a.deny()
	}
}

// run runs a prompt to its end.
func (s *session) run(p *prompt, m sdk.UserMessage) (acp.StopReason, error) {
	if p.before != nil {
		//troupe:select a cancelled prompt is not run, even if it is its turn
		select {
		case <-p.before:
		case <-p.ctx.Done():
		}
	}
	if p.ctx.Err() != nil {
		return "", errCancelled
	}
	c, turn, err := s.begin(p.ctx, m)
	if err != nil {
		return "", err
	}
	//troupe:select a turn that ends while it is cancelled counts as cancelled
	select {
	case <-turn.Done():
	case <-p.ctx.Done():
		s.interrupt(c, turn)
	}
	s.awaitReader()
	result, err := turn.Result(context.WithoutCancel(p.ctx))
	if err != nil {
		if !ofTurn(err) {
			s.awaitEnd(c)
		}
		s.shown.mu.Lock()
		s.failTools(true, "The turn ended without the tool's result.")
		s.shown.mu.Unlock()
		return "", turnError(err)
	}
	s.awaitResult(c, result.UUID)
	s.retitle(context.WithoutCancel(p.ctx))
	return stopReason(result)
}

// begin sends a message to the agent. An agent that has died takes none: the next one does.
func (s *session) begin(ctx context.Context, m sdk.UserMessage) (c *sdk.Interactive, turn *sdk.Turn, err error) {
	for range 2 {
		if c, err = s.connected(ctx); err != nil {
			return nil, nil, startError(err)
		}
		if turn, err = c.Send(ctx, m); err == nil {
			return c, turn, nil
		}
		if !errors.Is(err, sessions.ErrClosed) {
			break
		}
		s.awaitEnd(c)
	}
	return nil, nil, turnError(err)
}

// interrupt ends a turn: it asks the agent, again and again, and ends its process after
// the grace. When it returns, no interrupt is under way that could end the next turn.
func (s *session) interrupt(c *sdk.Interactive, turn *sdk.Turn) {
	ctx, cancel := context.WithCancel(context.Background())
	var asking sync.Mutex // held while the agent is asked
	defer asking.Unlock() // for a later one, which asks nothing
	defer asking.Lock()
	defer cancel()
	grace := s.server.config.CancelGrace
	stop := after(grace, func() { _ = c.Close(context.WithoutCancel(ctx)) })
	defer stop()
	var again func()
	again = func() {
		asking.Lock()
		defer asking.Unlock()
		if ctx.Err() != nil {
			return
		}
		_, _ = c.Interrupt(ctx) // what it does not end, the grace does
		after(grace/4, again)
	}
	start(again)
	<-turn.Done()
}

// awaitReader waits until the messages are read by show, which Turn.Result would take away
// otherwise. A turn that was refused may be over without a message.
func (s *session) awaitReader() {
	s.mu.Lock()
	reading := s.reading
	s.mu.Unlock()
	late := make(chan struct{})
	stop := after(time.Second, func() { close(late) })
	defer stop()
	//troupe:select after the wait both are the same
	select {
	case <-reading:
	case <-late:
	}
}

// awaitResult waits until a result is shown, or nothing is shown any more.
func (s *session) awaitResult(c *sdk.Interactive, uuid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.rendered[uuid] && s.client == c {
		s.changed.Wait()
	}
	clear(s.rendered)
}

// ofTurn reports whether an error is of a turn alone, and not of its session.
func ofTurn(err error) bool {
	return errors.Is(err, sessions.ErrNotRun) || errors.Is(err, sessions.ErrResultSkipped) || errors.Is(err, sessions.ErrResultBroken)
}

// awaitEnd waits until all messages of an agent that ends are shown. Its turns end a moment before its session does.
func (s *session) awaitEnd(c *sdk.Interactive) {
	late := make(chan struct{})
	stop := after(s.server.config.CancelGrace, func() { close(late) })
	defer stop()
	//troupe:select after the wait both are the same
	select {
	case <-c.Done():
	case <-late:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.client == c {
		s.changed.Wait()
	}
}
