package fleet_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/sdk"
)

func ExampleRun() {
	opts := &sdk.Options{Backend: scripted.New(scripted.WithScript(&scripted.Script{
		Default: scripted.Steps{scripted.Text("${prompt}: done.")}, // without a script the agent repeats the prompt
	}))}
	job := fleet.Job{Options: opts, Concurrency: 2, Tasks: []fleet.Task{
		{ID: "a", Prompt: "Fix the first bug"},
		{ID: "b", Prompt: "Fix the second bug"},
		{ID: "note", Prompt: `Write a note about {{(index .Results "a").Text}}`, After: []string{"a", "b"}},
	}}
	for result, err := range fleet.Run(context.Background(), job) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(result.ID, result.Status, result.Text)
	}
	// Unordered output:
	// a accepted Fix the first bug: done.
	// b accepted Fix the second bug: done.
	// note accepted Write a note about Fix the first bug: done.: done.
}

// A success counts only if the verifier agrees; a rejection goes back to the agent.
func ExampleVerify() {
	opts := &sdk.Options{Backend: scripted.New(scripted.WithTurns(
		scripted.Turn{Steps: scripted.Steps{scripted.Text("It is 41.")}},
		scripted.Turn{Steps: scripted.Steps{scripted.Text("It is 42.")}},
	))}
	verify := &fleet.Verify{
		Check: func(_ context.Context, c fleet.Candidate) (fleet.Verdict, error) {
			return fleet.Verdict{OK: c.Text == "It is 42.", Output: "too small"}, nil
		},
		Prompt: "That is {{.Output}}. Try again.",
	}
	job := fleet.Job{Options: opts, Verify: verify, Tasks: []fleet.Task{{ID: "answer", Prompt: "What is six times seven?"}}}
	for result, err := range fleet.Run(context.Background(), job) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(result.Status, result.Text)
	}
	// Output: accepted It is 42.
}

// One program submits a job and decides about it; another one, which may be on another machine,
// runs its tasks.
func ExampleShare() {
	ctx := context.Background()
	job := fleet.Job{
		Tasks: []fleet.Task{{ID: "a", Prompt: "Fix the first bug"}, {ID: "b", Prompt: "Fix the second bug"}},
		Queue: queue.NewMemory(queue.MemoryConfig{TTL: time.Minute}), // contrib/nats has one for many machines
	}
	submitted := job
	submitted.Share = fleet.ShareSubmit
	submitter, err := fleet.Start(ctx, submitted)
	if err != nil {
		log.Fatal(err)
	}
	if err := submitter.CancelTask(ctx, "b"); err != nil { // or fleet.Decide, which needs the queue only
		log.Fatal(err)
	}
	worker := job
	worker.Share = fleet.ShareWork
	worker.Options = &sdk.Options{Backend: scripted.New()}
	for _, err := range fleet.Run(ctx, worker) { // the results of its own tasks
		if err != nil {
			log.Fatal(err)
		}
	}
	for result, err := range submitter.Results(ctx) { // all of them
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(result.ID, result.Status)
	}
	// Unordered output:
	// a accepted
	// b canceled
}
