// Command supervisor adds an actor to a session's supervision tree, and a strategy that
// decides what a failure in that tree does.
//
//	go run ./examples/supervisor                 # a demonstration, no account
//	go run ./examples/supervisor -agent claude   # Claude Code; or qoder; -model: the embedded agent
//
// Look for: the recorder writes down what the session reports, and fails on its third line.
// The strategy says so and has it started again, with what waited; the agent does not
// notice. When the recorder's disk is full, which nothing here can repair, the strategy ends
// the session instead, with the reason.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/agent-troupe/troupe/examples/internal/choice"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

func main() { choice.Main("Say good morning.", run) }

func run(ctx context.Context, agent *choice.Agent, prompt string) (err error) {
	opts, err := agent.Options()
	if err != nil {
		return err
	}
	rt, err := runtime.New(runtime.Config{Logger: slog.New(slog.DiscardHandler)}) // OnEvent prints what matters
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Shutdown(context.WithoutCancel(ctx))) }()
	disk := &disk{jams: 3, full: 6}
	recorder, lines := newRecorder(disk)
	opts.Runtime, opts.Children = rt, []*session.Child{recorder}
	opts.Supervisors.Session.Strategy = keepCalm{}
	told := make(chan struct{})
	opts.OnEvent = func(r session.EventRecord) {
		switch e := r.Event.(type) {
		case *session.Supervision:
			describe(e)
		case *session.Ended: // the last one
			close(told)
		}
	}
	client := sdk.NewClient(opts)
	if err := client.Connect(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close(context.WithoutCancel(ctx))) }()
	turn, err := client.Send(ctx, sdk.UserText(prompt))
	if err != nil {
		return err
	}
	result, err := turn.Result(ctx)
	if err != nil {
		return err
	}
	for _, line := range []string{
		"prompt: " + prompt, "answer: " + firstLine(result.Text()), "this line jams the disk", "this one waits", "and this one", "this one finds the disk full",
	} {
		if err := lines.Send(line); err != nil {
			return err
		}
	}
	<-told // client.Done is closed before that: events come on another goroutine
	failure, ok := errors.AsType[*supervisor.Failure](client.Err())
	if !ok {
		return fmt.Errorf("the session should have failed because of the disk: %w", client.Err())
	}
	fmt.Printf("-- the session ended, because of %s: %v\n", failure.Child, failure.Reason)
	return nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// describe prints the decisions of the supervisor that matter here.
func describe(e *session.Supervision) {
	switch d := e.Decision.(type) {
	case *supervisor.ChildFailed:
		fmt.Printf("-- %s failed: %v\n", d.Child, d.Reason)
	case *supervisor.RestartScheduled:
		fmt.Printf("-- restart of %s: %s\n", strings.Join(d.Children, ", "), d.Why)
	case *supervisor.Escalated:
		fmt.Printf("-- escalated: %s\n", d.Failure.Why)
	}
}
