package troupenats_test

import (
	"context"
	"log"

	troupenats "github.com/agent-troupe/troupe/contrib/nats"
	"github.com/agent-troupe/troupe/contrib/nats/embedded"
	"github.com/agent-troupe/troupe/fleet"
)

// The first machine: its program has the server, and runs tasks as all others do.
func Example() {
	server, err := embedded.Start(embedded.Config{Dir: "nats", Host: "0.0.0.0", Port: 4222, Token: "token"})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	ctx := context.Background()
	nc, err := troupenats.Connect("nats://token@first-machine:4222")
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	config := troupenats.Config{Job: "nightly"}
	tasks, err := troupenats.Open(ctx, nc, config)
	if err != nil {
		log.Fatal(err)
	}
	defer tasks.Close()
	files, err := troupenats.OpenFiles(ctx, nc, config)
	if err != nil {
		log.Fatal(err)
	}
	job := fleet.Job{Tasks: []fleet.Task{{ID: "a", Prompt: "Say hello."}}, Out: "out", Queue: tasks, Files: files}
	for result, err := range fleet.Run(ctx, job) {
		if err != nil {
			log.Fatal(err)
		}
		log.Println(result.ID, result.Text)
	}
}
