// Command resume keeps a turn alive over the death of its agent: another process
// resumes the session and finishes the turn.
//
//	go run ./examples/resume                 # a scripted agent that dies in its turn, no account
//	go run ./examples/resume -agent claude   # Claude Code; or qoder. Kill the process that is named
//
// The agent is a script: the demonstration of the other examples has no process to kill.
//
// Look for: the agent dies, the events say what was under way and what the next process got of it,
// and the one turn has its one result.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-troupe/troupe/examples/internal/choice"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

func main() { choice.Main("Run `sleep 60` in a shell, then say good morning.", run) }

func run(ctx context.Context, agent *choice.Agent, prompt string) (err error) {
	opts, err := options(agent)
	if err != nil {
		return err
	}
	opts.AllowedTools = []string{"Bash(sleep *)"}
	opts.MaxRestarts = 3 // without it the death ends the session
	told := make(chan struct{})
	opts.OnEvent = func(e session.EventRecord) {
		switch e := e.Event.(type) {
		case *session.Recovering:
			fmt.Printf("-- the agent died with %d message under way; policy: %s\n", len(e.Death.Messages), e.Policy)
		case *session.Recovered:
			fmt.Printf("-- the next process got: %s, because %s\n", e.Sent, e.Why)
		case *session.Ended: // the last one: events come on another goroutine
			close(told)
		}
	}
	client := sdk.NewClient(opts)
	if err := client.Connect(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close(context.WithoutCancel(ctx))); <-told }()
	if *agent != (choice.Agent{}) {
		fmt.Println("-- now kill -9 the agent: its arguments have --input-format stream-json")
	}
	turn, err := client.Send(ctx, sdk.UserText(prompt))
	if err != nil {
		return err
	}
	result, err := turn.Result(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%s (recovered: %v)\n", result.Text(), result.Recovered)
	return nil
}
