package actors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// recoveryConfig is what the options and the dialect say to the life about deaths.
func (k *Core) recoveryConfig(o *session.Options) machine.RecoveryConfig {
	return machine.RecoveryConfig{
		Restarts: o.MaxRestarts, Equal: max(cmp.Or(o.EqualDeaths, session.DefaultEqualDeaths), 0), Window: o.RestartWindow, ResetAfter: cmp.Or(o.RestartBackoff.ResetAfter, supervisor.DefaultResetAfter),
		Policy: cmp.Or(o.Recovery, session.RecoverContinue), Asks: o.DecideRecovery != nil,
		Branch: o.ResumeSessionAt,
		Reads:  k.cfg.History != nil,
		Stored: o.Resume != "" || o.Continue, Unknown: k.cfg.Dialect.Traits().UnknownSession,
	}
}

// draw draws the delay before another process.
func (k *Core) draw(w *kernel.Worker, e machine.Draw) {
	b := k.input().RestartBackoff
	backoff := supervisor.Backoff{Initial: b.Initial, Max: b.Max, Factor: b.Factor, ResetAfter: b.ResetAfter, Immediate: true}
	k.session.Tell(w, machine.Drawn{Gen: e.Gen, Delay: backoff.Delay(e.Attempt, k.cfg.System.Rand())})
}

// readHistory has the agent's transcript read, as a task of the session actor's: the file may
// be large, or on a disk that does not answer.
func (k *Core) readHistory(c *kernel.Context[machine.LifeInput], e machine.ReadHistory) {
	ctx, cancel := context.WithCancelCause(context.Background())
	k.reading = cancel
	read, in := k.cfg.History, k.input()
	c.Go(func() (then func(*kernel.Worker)) {
		answer := machine.HistoryRead{Gen: e.Gen}
		defer func() {
			_ = recover() // then nothing is known
			cancel(nil)
			then = func(w *kernel.Worker) { k.session.Tell(w, answer) }
		}()
		answer.History = read(ctx, in, e.SessionID, e.Wanted)
		return nil // it is set above
	})
}

// ask has the user's function decide about a death, as a task of the session actor's.
func (k *Core) ask(c *kernel.Context[machine.LifeInput], e machine.Ask) {
	ctx, cancel := context.WithCancelCause(context.Background())
	k.undecided = cancel
	decide := k.input().DecideRecovery
	c.Go(func() (then func(*kernel.Worker)) {
		answer := machine.Decided{Gen: e.Gen, Err: errUndecided}
		defer func() {
			if p := recover(); p != nil {
				answer.Err = fmt.Errorf("DecideRecovery panicked: %w", &session.PanicError{Value: p, Message: "DecideRecovery", Stack: debug.Stack()})
			}
			cancel(nil)
			then = func(w *kernel.Worker) { k.session.Tell(w, answer) }
			if errors.Is(answer.Err, errUndecided) { // its goroutine ends here
				then(nil)
			}
		}()
		policy := decide(ctx, e.Death)
		answer.Policy, answer.Err = policy, nil
		return nil // it is set above
	})
}

// errUndecided says that the user's function has ended its goroutine.
var errUndecided = errors.New("DecideRecovery did not return")

// endDecision ends the contexts of what a death has started, if it runs.
func (k *Core) endDecision() {
	if k.reading != nil {
		k.reading(session.ErrClosed)
		k.reading = nil
	}
	if k.undecided != nil {
		k.undecided(session.ErrClosed)
		k.undecided = nil
	}
}

// errNoMessage says that a line is not a user message.
var errNoMessage = errors.New("the line is no user message")

// Again implements [machine.Rules].
func (r *rules) Again(line []byte, done []machine.ToolCall) ([]byte, error) {
	m, err := messageOf(line)
	if err != nil {
		return nil, err
	}
	m.Message.Content = preface(session.RecoveryOpening+"following message, and was started again. "+
		"Your history lacks that work.]"+listed(done), m.Message.Content)
	return r.line(m)
}

// Afresh implements [machine.Rules].
func (r *rules) Afresh(line []byte, uuid string) ([]byte, error) {
	m, err := messageOf(line)
	if err != nil {
		return nil, err
	}
	m.UUID = uuid
	return r.line(m)
}

// Onward implements [machine.Rules].
func (r *rules) Onward(line []byte, uuid string, done []machine.ToolCall, quote bool) ([]byte, error) {
	m, err := messageOf(line)
	if err != nil {
		return nil, err
	}
	m.UUID = uuid
	text := session.RecoveryOpening + "last message, and was started again.] Continue where you left off." + listed(done)
	if quote {
		m.Message.Content = preface(text+"\nThe message, in case your history lacks it:", m.Message.Content)
	} else {
		m.Message.Content = protocol.StringContent(text)
	}
	return r.line(m)
}

// line encodes a message. Fields about the arrival of the user's line are left out.
func (r *rules) line(m *protocol.UserMessage) ([]byte, error) {
	m.Origin, m.Timestamp = nil, ""
	line, err := r.cfg.Dialect.UserLine(r.core().input().UserDefaults(), m)
	if err != nil {
		return nil, fmt.Errorf("encode user message %s: %w", m.UUID, err)
	}
	return line, nil
}

// messageOf decodes a line that was made for the agent.
func messageOf(line []byte) (*protocol.UserMessage, error) {
	f, err := protocol.ParseFrame(line)
	if err != nil {
		return nil, err
	}
	m, ok := protocol.DecodeMessage(f).(*protocol.UserMessage)
	if !ok {
		return nil, errNoMessage
	}
	own := *m
	return &own, nil
}

// preface puts a text in front of a content.
func preface(text string, c protocol.Content) protocol.Content {
	if len(c) == 1 {
		if only, ok := c[0].(*protocol.TextBlock); ok && len(only.Citations)+len(only.CacheControl) == 0 {
			return protocol.StringContent(text + "\n\n" + only.Text)
		}
	}
	return slices.Concat(protocol.StringContent(text), c)
}

// listed tells the model of tool calls that may be missing in its history. Their texts
// are an agent's, and stand in a message of the user's: each stays on its line.
func listed(done []machine.ToolCall) string {
	if len(done) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nBefore it stopped, it had made these tool calls, and their effects may be there already, also where the history " +
		"does not show them. Check before you make one of them again:")
	for _, c := range done {
		fmt.Fprintf(&b, "\n- %s %s", shown.Line(c.Name), shown.Line(c.Input))
		if !c.Over {
			b.WriteString(" (no result was seen)")
		}
	}
	return b.String()
}
