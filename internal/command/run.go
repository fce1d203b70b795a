package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/agent-troupe/troupe/internal/textfile"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// runCommand is troupe run.
func runCommand(ctx context.Context, p process, c *console, s *settings) int {
	if err := s.completeSession(); err != nil {
		return c.usage(err)
	}
	if len(s.words) == 0 && p.stdinTTY {
		return c.usage(&usageError{"there is no prompt", `write troupe run "PROMPT", or - to type it`})
	}
	return perform(ctx, p, c, s, func(r *runner, d *decider) {
		if !s.inCloud() {
			s.opts.CanUseTool = d.canUseTool
		}
		r.client, r.printed, r.play = sdk.NewClient(&s.opts), d.printed.printed, r.playPrompt
	})
}

// perform runs a session to its end and returns the exit code. prepare sets how it
// is played.
func perform(ctx context.Context, p process, c *console, s *settings, prepare func(*runner, *decider)) (code int) {
	if err := s.chooseAgent(p.getenv); err != nil {
		return c.usage(err)
	}
	if err := s.completeResume(ctx); err != nil {
		return c.usage(err)
	}
	defer func() {
		if code == exitUsage { // nothing was started
			s.removeDemonstration()
		}
	}()
	if err := s.placeDemonstration(p.getenv, c); err != nil {
		c.note("%v", err)
		return exitStart
	}
	s.tellDemonstration(p.getenv, c)
	s.tellEndpoint(c)
	// The command itself prints what events would log.
	rt, err := runtime.New(runtime.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		c.note("%v", err)
		return exitStart
	}
	unshow, err := s.show(rt, p, c, false)
	if err != nil {
		return c.usage(err)
	}
	defer unshow()
	s.opts.Runtime = rt
	log := c.logger(s.level)
	events := logEvents(&s.opts, log)

	r := &runner{settings: s, process: p, console: c, log: log, printer: newPrinter(s.output, c, s.quiet)}
	prepare(r, newDecider(s, p, c))
	o := r.run(ctx)
	// Every session has ended, or was given up; only the runtime's own actor remains.
	over, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
	defer cancel()
	if rt.Shutdown(over) == nil {
		events.finish(over)
	}
	code = o.code()
	if code != exitOK && code != exitPipe && !o.reported() { // a program upstream of head ends without a word
		c.note("%s", o.why())
	}
	return code
}

// runner runs one session.
type runner struct {
	settings *settings
	process  process
	console  *console
	log      *slog.Logger
	printer  printer
	client   *sdk.Client
	play     func(context.Context, *watch) outcome // the session from start to end
	printed  func(toolUseID string)
	spare    func() bool // see watch
	discard  func() bool // see watch

	mu     sync.Mutex
	result *sdk.ResultMessage // the last one
}

// run plays the session to its end while it watches for signals.
func (r *runner) run(ctx context.Context) outcome {
	if r.settings.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.settings.timeout, errTimeLimit)
		defer cancel()
	}
	w := newWatch(ctx, r)
	defer w.stop()
	done := make(chan outcome, 1)
	go func() {
		o := r.play(ctx, w)
		o.err = limited(ctx, o.err)
		done <- o
	}()
	go w.watch()
	var o outcome
	select {
	case o = <-done:
	case <-w.abandoned:
		o.err = errors.New("nobody reads the output; the run was abandoned")
	}
	o.signal, o.result, o.settings = w.first(), r.last(), r.settings
	if errors.As(o.err, new(*outputError)) || w.givenUp() {
		return o // stdout has no reader
	}
	if err := r.printer.end(o, r.settings); err != nil && o.err == nil {
		o.err = err
	}
	return o
}

// playPrompt is a session of one prompt: connect, send, print, wait for what runs
// on, close.
func (r *runner) playPrompt(ctx context.Context, w *watch) outcome {
	prompt, err := r.prompt(w.early)
	if err != nil {
		return outcome{err: err}
	}
	if err := r.connect(w); err != nil {
		return outcome{err: err}
	}
	return outcome{err: r.turn(ctx, w, prompt), closed: w.close()}
}

func (r *runner) connect(w *watch) error {
	defer r.console.working("starting the agent " + r.settings.agent)()
	if err := r.client.Connect(w.early); err != nil {
		return &startFailure{err}
	}
	logWarnings(r.log, r.settings, r.client.Warnings())
	return nil
}

func (r *runner) turn(ctx context.Context, w *watch, prompt string) error {
	turn, err := r.client.Send(w.early, sdk.UserText(prompt))
	if err != nil {
		return err
	}
	if err := r.printer.play(r.watched(turn.Messages(ctx))); err != nil {
		return err
	}
	// Background tasks may start further turns. An interrupt ends the wait for them.
	idle := make(chan error, 1)
	go func() {
		err := r.client.AwaitIdle(w.early)
		_ = w.close() // play reports it
		idle <- err
	}()
	err = r.printer.play(r.watched(r.client.Messages(context.WithoutCancel(ctx))))
	if err != nil {
		return err
	}
	return <-idle
}

// watched remembers the last result of messages, and reports the tool calls
// that were printed.
func (r *runner) watched(all messages) messages {
	return func(yield func(sdk.Message, error) bool) {
		for m, err := range all {
			if result := resultOf(m); result != nil {
				r.remember(result)
			}
			if !yield(m, err) {
				return
			}
			for _, use := range sdk.ToolUses(m) {
				r.printed(use.ID)
			}
		}
	}
}

// resultOf takes also a result of which some field did not decode.
func resultOf(m sdk.Message) *sdk.ResultMessage {
	if u, ok := m.(*sdk.UnknownMessage); ok && u.Partial != nil {
		m = u.Partial
	}
	result, _ := m.(*sdk.ResultMessage)
	return result
}

func (r *runner) remember(result *sdk.ResultMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result = result
}

func (r *runner) last() *sdk.ResultMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.result
}

// prompt is the words of the command, or stdin.
func (r *runner) prompt(ctx context.Context) (string, error) {
	if words := r.settings.words; len(words) > 0 && !(len(words) == 1 && words[0] == "-") {
		piped, err := r.piped(ctx)
		if err != nil {
			return "", err
		}
		return given(strings.Join(words, " ") + piped)
	}
	type read struct {
		text string
		err  error
	}
	ready := make(chan read, 1)
	go func() { // a read of a terminal does not end by itself
		b, err := io.ReadAll(r.process.stdin)
		ready <- read{string(b), err}
	}()
	select {
	case in := <-ready:
		if in.err != nil {
			return "", &usageError{problem: fmt.Sprintf("the prompt cannot be read from stdin: %v", in.err)}
		}
		text, err := textfile.Decode([]byte(in.text))
		if err != nil {
			return "", &usageError{problem: fmt.Sprintf("the prompt on stdin: %v", err)}
		}
		return given(strings.TrimSpace(string(text)))
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func given(prompt string) (string, error) {
	if strings.TrimSpace(prompt) == "" {
		return "", &usageError{"the prompt is empty", `write troupe run "PROMPT", or give it on stdin`}
	}
	return prompt, nil
}
