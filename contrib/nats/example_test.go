package troupenats_test

import (
	"context"
	"log"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	troupenats "github.com/agent-troupe/troupe/contrib/nats"
	"github.com/agent-troupe/troupe/contrib/nats/embedded"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
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

// A session that another host began continues here.
func ExampleOpenTranscripts() {
	ctx := context.Background()
	nc, err := troupenats.Connect("nats://token@first-machine:4222")
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	store, err := troupenats.OpenTranscripts(ctx, nc, troupenats.TranscriptsConfig{})
	if err != nil {
		log.Fatal(err)
	}
	options := &sdk.Options{SessionStore: store, Resume: "0b7de7f0-3c1c-4f5b-9d0e-1d7c3f0a0001"}
	for message, err := range sdk.Query(ctx, "Go on.", options) {
		if err != nil {
			log.Fatal(err) // a *session.LeaseError: another host has the session
		}
		log.Println(message)
	}
}

// The programs of the guide are those of the examples, which compile.
func TestTheGuideShowsTheExamples(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/machines.md")
	require.NoError(t, err)
	examples, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?ms)^```go\n.*?^func main\\(\\) {\n(.*?)^}\n```$").FindAllStringSubmatch(string(guide), -1)
	require.Len(t, blocks, 2)
	for _, block := range blocks {
		require.Contains(t, string(examples), block[1])
	}
}
