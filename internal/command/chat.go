package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

const chatCommands = `  /help   prints the commands
  /exit   ends the session; so does the end of the input
  Ctrl-C interrupts the turn; a second Ctrl-C, or Ctrl-C at an empty prompt, ends the session. At a
  prompt with text, Ctrl-C drops the text.
  Every other line goes to the agent.
`

// chatCommand is troupe chat.
func chatCommand(ctx context.Context, p process, c *console, s *settings) int {
	if err := s.completeSession(); err != nil {
		return c.usage(err)
	}
	if len(s.words) > 0 {
		return c.usage(&usageError{"troupe chat reads its prompts from stdin", `leave the words out, or write troupe run "PROMPT"`})
	}
	restore := func() {}
	code := perform(ctx, p, c, s, func(r *runner, d *decider) {
		t := &chat{runner: r, decider: d, client: sdk.NewInteractive(&s.opts), lines: make(chan string, linesAhead), reading: make(chan struct{})}
		t.text = &textPrinter{console: c, quiet: s.quiet}
		if p.stdinTTY {
			d.fed()
		}
		r.client, r.printer, r.printed = t.client.Client, t.text, func(string) {}
		r.play, r.spare = t.play, t.interrupt
		restore = t.edit()
	})
	restore()
	return code
}

// linesAhead is how many lines may be typed ahead of the agent.
const linesAhead = 100

// States of a chat's turn.
const (
	atPrompt = iota
	inTurn
	interrupted
)

// chat is a conversation. One goroutine reads lines, one sends them, and one prints
// and answers what comes from the agent, in a turn or between two.
type chat struct {
	*runner
	client  *sdk.Interactive
	decider *decider
	text    *textPrinter
	editor  *editor // nil: lines are read as they come

	reading chan struct{} // closed when messages has the stream, or has ended
	lines   chan string   // closed at the end of the input
	readErr error         // of the input; set before lines is closed
	state   atomic.Int32
	shown   sightings // results, by UUID
	failed  bool      // the last turn did
}

// play is the session: connect, talk, close.
func (t *chat) play(_ context.Context, w *watch) outcome {
	if err := t.connect(w); err != nil {
		return outcome{err: err}
	}
	if t.editor == nil {
		go t.read(w.early)
	}
	talked := make(chan error, 1)
	go func() {
		err := t.talk(w.early)
		_ = w.close() // reported below
		talked <- err
	}()
	// The messages end when talk has closed the session.
	err := t.printer.play(t.watched(t.messages(w.early)))
	if err != nil {
		w.interrupt() // ends talk
		return outcome{err: err, closed: w.close()}
	}
	err = <-talked
	return outcome{err: err, closed: w.close(), conversation: true, failed: t.failed}
}

// read reads the input to its end. On a terminal, a line that comes while a
// question is asked answers it.
func (t *chat) read(ctx context.Context) {
	defer close(t.lines)
	terminal := t.process.stdinTTY
	if terminal {
		defer t.decider.end()
	}
	for in := bufio.NewReader(t.process.stdin); ; {
		line, err := in.ReadString('\n')
		switch {
		case line == "" || terminal && t.decider.take(line):
		case terminal: // never waits: the next line may answer a question
			select {
			case t.lines <- line:
			default:
				t.console.note("too many lines are waiting; this line is dropped: %s", brief(line))
			}
		default:
			select {
			case t.lines <- line:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.readErr = fmt.Errorf("read the input: %w", err)
			}
			return
		}
	}
}

// talk sends the lines, each when the turn before it is over.
func (t *chat) talk(ctx context.Context) error {
	for {
		line, more, err := t.next(ctx)
		line = strings.TrimSpace(line)
		switch {
		case err != nil:
			return err
		case !more && !t.process.stdinTTY:
			return t.client.AwaitIdle(ctx)
		case !more, line == "/exit":
			return nil
		case line == "/help":
			t.console.say("%s", chatCommands)
		case line != "":
			if err := t.turn(ctx, line); err != nil {
				return err
			}
		}
	}
}

// next asks for the next line; more is false at the end of the input.
func (t *chat) next(ctx context.Context) (line string, more bool, err error) {
	if t.editor != nil {
		line, err = t.editor.prompt(ctx)
		switch {
		case ctx.Err() != nil:
			return "", false, context.Cause(ctx)
		case errors.Is(err, io.EOF):
			return "", false, nil
		case err != nil:
			return "", false, fmt.Errorf("read the input: %w", err)
		}
		return line, true, nil
	}
	t.prompt()
	select {
	case line, more = <-t.lines:
		t.console.typed()
		if !more && t.process.stdinTTY {
			t.console.say("\n") // the prompt has no end
		}
		if !more {
			err = t.readErr
		}
		return line, more, err
	case <-ctx.Done():
		return "", false, context.Cause(ctx)
	}
}

// edit has the terminal edited, if it can be, until the returned function is called.
func (t *chat) edit() (restore func()) {
	p := t.process
	if !p.stdinTTY || !p.stderrTTY || p.editTTY == nil || p.getenv("TERM") == "dumb" {
		return func() {}
	}
	e := &editor{out: p.stderr, changed: make(chan struct{})}
	size, undo, err := p.editTTY(p.stdin, e.resized)
	if err != nil {
		return func() {}
	}
	e.size = size
	e.start(p.stdin)
	t.editor, t.console.editor, t.decider.editor, t.discard = e, e, e, e.drop
	return func() { e.stop(undo) }
}

// prompt asks for a line, or lets the editor do it.
func (t *chat) prompt() {
	if t.editor != nil {
		t.editor.proceed()
		return
	}
	if t.process.stdinTTY && t.process.stderrTTY {
		t.console.prompt()
	}
}

// turn sends a line, and returns when all of the answer is printed. A failure of the
// turn alone is reported, and is not an error.
func (t *chat) turn(ctx context.Context, line string) error {
	t.console.begin()
	t.remember(nil)
	t.state.Store(inTurn) // before the answer can be seen: a Ctrl-C at its first word is meant for it
	turn, err := t.client.Send(ctx, sdk.UserText(line))
	if err != nil {
		return err
	}
	t.over(ctx, turn)
	result, err := turn.Result(ctx)
	if err == nil {
		t.shown.await(ctx, result.UUID, sightingLimit)
		if result.Failed() {
			err = &sdk.ResultError{Result: result}
		}
	} else if !errors.Is(err, session.ErrNotRun) {
		return err
	}
	t.failed = err != nil && ctx.Err() == nil && t.state.Load() != interrupted
	if t.failed {
		t.console.note("%s", t.settings.advised(err.Error(), nil, result))
	}
	t.state.Store(atPrompt)
	return nil
}

// over waits until a turn is over and messages has the stream, which Result would take
// from it. A turn that was refused may be over without a message.
func (t *chat) over(ctx context.Context, turn *sdk.Turn) {
	select {
	case <-turn.Done():
	case <-ctx.Done():
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sightingLimit)
	defer cancel()
	select {
	case <-t.reading:
	case <-ctx.Done():
	}
}

// interrupt reports whether there is a turn that was not interrupted before.
func (t *chat) interrupt() bool { return t.state.CompareAndSwap(inTurn, interrupted) }

// messages yields the messages, and answers the questions in their places, until
// the session is closed. ctx bounds the questions.
func (t *chat) messages(ctx context.Context) messages {
	return func(yield func(sdk.Message, error) bool) {
		begin := sync.OnceFunc(func() { close(t.reading) })
		defer begin()
		for u, err := range t.client.Updates(context.WithoutCancel(ctx)) {
			begin()
			switch {
			case u.Permission != nil:
				t.answer(ctx, u.Permission)
			case u.Elicitation != nil:
				if !t.settings.quiet {
					t.console.note("declined a question of the MCP server %s: this command cannot ask it", printable(u.Elicitation.Request.MCPServerName))
				}
				u.Elicitation.Answer(protocol.ElicitationResult{Action: protocol.ElicitDecline})
			case u.Dialog != nil:
				u.Dialog.Answer(protocol.UserDialogResult{})
			case !yield(u.Message, err) || err != nil:
				return
			default:
				if r := resultOf(u.Message); r != nil {
					if err := t.text.endTurn(r); err != nil {
						yield(nil, err)
						return
					}
					if t.state.Load() == atPrompt { // of a turn that the agent began by itself
						t.prompt()
					}
					t.shown.printed(r.UUID)
				}
			}
		}
	}
}

// answer decides on a tool call. A question that is withdrawn meanwhile stays
// without an answer.
func (t *chat) answer(ctx context.Context, ask *sdk.Ask[sdk.ToolPermissionRequest, sdk.PermissionResult]) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-ask.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	switch decision, err := t.decider.decide(ctx, ask.Request); {
	case err == nil:
		ask.Answer(decision)
	case ctx.Err() == nil: // the agent asked what cannot be shown
		t.console.note("denied %s: %v", printable(ask.Request.ToolName), err)
		ask.Answer(sdk.Deny(err.Error()))
	}
}
