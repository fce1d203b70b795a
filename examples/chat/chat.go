package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/agent-troupe/troupe/examples/internal/choice"
	"github.com/agent-troupe/troupe/sdk"
)

type chat struct {
	client     *sdk.Client
	lines      <-chan string
	interrupts <-chan os.Signal

	asking  sync.Mutex  // one question at a time
	stopped atomic.Bool // the turn was interrupted, so its questions stay unanswered
	back    chan string // a line that a question took after that: it is the next message
	mu      sync.Mutex  // permission callbacks write, too
	out     io.Writer
}

func run(ctx context.Context, agent *choice.Agent, in io.Reader, out io.Writer, interrupts <-chan os.Signal) (err error) {
	opts, err := agent.Options()
	if err != nil {
		return err
	}
	c := &chat{lines: linesOf(in), interrupts: interrupts, back: make(chan string, 1), out: out}
	opts.IncludePartialMessages = true
	opts.CanUseTool, opts.AllowedTools = c.mayUse, nil // a person decides about each call
	c.client = sdk.NewClient(opts)
	if err := c.client.Connect(ctx); err != nil {
		return err
	}
	defer func() {
		if closed := c.client.Close(ctx); err == nil {
			err = closed
		}
	}()
	return c.talk(ctx)
}

// talk reads a line, runs its turn, and repeats.
func (c *chat) talk(ctx context.Context) error {
	for {
		c.printf("> ")
		var line string
		select {
		case typed, more := <-c.lines:
			if !more {
				c.printf("\n")
				return nil
			}
			line = strings.TrimSpace(typed)
		case typed := <-c.back:
			line = strings.TrimSpace(typed)
		case <-c.interrupts:
			c.printf("\n")
			return nil
		}
		model, isModel := strings.CutPrefix(line, "/model ")
		var err error
		switch {
		case line == "":
		case line == "/exit":
			return nil
		case isModel:
			err = c.client.SetModel(ctx, strings.TrimSpace(model))
		default:
			err = c.turn(ctx, line)
		}
		if err != nil {
			return err
		}
	}
}

// turn sends a message and prints the answer up to its result. Ctrl-C ends the
// turn, not the conversation.
func (c *chat) turn(ctx context.Context, text string) error {
	c.stopped.Store(false)
	turn, err := c.client.Send(ctx, sdk.UserText(text))
	if err != nil {
		return err
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-c.interrupts:
			c.stopped.Store(true)
			if _, err := c.client.Interrupt(ctx); err != nil {
				c.printf("\n[the agent cannot be interrupted: %v]\n", err)
			}
		case <-over:
		}
	}()
	for m, err := range turn.Messages(ctx) {
		if err != nil {
			return err
		}
		c.show(m)
	}
	select {
	case <-c.interrupts: // the Ctrl-C was for the turn and came after its end
	default:
	}
	return nil
}

func (c *chat) show(m sdk.Message) {
	switch m := m.(type) {
	case *sdk.PartialAssistantMessage: // the text, as it is written
		c.printf("%s", m.Text())
	case *sdk.AssistantMessage: // the same text, whole
		if sdk.TextOf(m) != "" {
			c.printf("\n")
		}
		for _, call := range sdk.ToolUses(m) {
			c.printf("[%s %s]\n", call.Name, call.Input)
		}
	case *sdk.UserMessage:
		for _, result := range sdk.ToolResults(m) {
			c.printf("[%s]\n", result.Content.Text())
		}
	case *sdk.ResultMessage:
		if m.Failed() {
			c.printf("[the turn ended: %s]\n", m.TerminalReason)
		}
	}
}

// mayUse implements sdk.CanUseTool: it asks, and allows only answers that begin with y.
func (c *chat) mayUse(ctx context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	c.asking.Lock()
	defer c.asking.Unlock()
	c.printf("Allow %s %s? (y or n) ", r.ToolName, r.Input)
	select {
	case line, more := <-c.lines: // "" when the input has ended
		if more && (c.stopped.Load() || ctx.Err() != nil) {
			c.back <- line
			return sdk.PermissionResult{}, context.Canceled
		}
		if strings.HasPrefix(strings.ToLower(line), "y") {
			return sdk.Allow(), nil
		}
		return sdk.Deny("The user said no."), nil
	case <-ctx.Done(): // the turn was interrupted
		return sdk.PermissionResult{}, ctx.Err()
	}
}

func (c *chat) printf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = fmt.Fprintf(c.out, format, args...) // when the terminal is gone, the input ends too
}
