// Command cloud talks to an agent in Qoder's cloud.
//
//	go run ./examples/cloud                                # a service in memory, no account
//	QODER_TOKEN=… go run ./examples/cloud -session sess_1  # a session in the cloud
//
// Look for: the ids of what was created, the cloud's events, a stream that breaks and is
// opened again, and one result.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/agent-troupe/troupe/agent/cloud"
	"github.com/agent-troupe/troupe/agent/cloud/cloudtest"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

func main() {
	id := flag.String("session", "", "id of a session in the cloud; empty: a service in memory")
	flag.Parse()
	prompt := "good morning"
	if flag.NArg() > 0 {
		prompt = strings.Join(flag.Args(), " ")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, options(*id), prompt); err != nil {
		log.Fatal(err)
	}
}

// options are those for a session in the cloud, or for a new one of a service in memory.
func options(id string) *sdk.Options {
	if id != "" {
		return &sdk.Options{
			Auth:                   sdk.AccessTokenFromEnv("QODER_TOKEN"),
			ExperimentalCloudAgent: &session.CloudAgent{Session: session.CloudSession{ID: id}},
		}
	}
	streams := 0
	service := &cloudtest.Server{Fault: func(_ int, r *cloudtest.Request) *cloudtest.Fault {
		if !r.Stream() {
			return nil
		}
		if streams++; streams > 1 {
			return nil
		}
		return &cloudtest.Fault{ResetAt: 200} // the connection breaks after so many bytes
	}}
	return &sdk.Options{
		Backend: cloud.Backend(cloud.Config{HTTP: service}),
		Auth:    sdk.AccessToken("a token"),
		ExperimentalCloudAgent: &session.CloudAgent{
			Agent:   &session.CloudAgentReference{Create: &session.CloudAgentCreate{Name: "greeter", Model: "auto"}},
			Session: session.CloudSession{Create: &session.CloudSessionCreate{EnvironmentID: "env_1"}},
		},
	}
}

func run(ctx context.Context, opts *sdk.Options, prompt string) (err error) {
	opts.MaxRestarts = 3 // connections, as processes elsewhere
	told := make(chan struct{})
	opts.OnEvent = func(e session.EventRecord) {
		switch e := e.Event.(type) {
		case *session.CloudOpened, *session.CloudInterrupted, *session.CloudLeft:
			fmt.Println("--", e)
		case *session.CloudReconnecting:
			fmt.Println("-- the stream broke, and is opened again:", e.Err)
		case *session.Ended: // the last one: events come on another goroutine
			close(told)
		}
	}
	client := sdk.NewClient(opts)
	if err := client.Connect(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close(context.WithoutCancel(ctx))); <-told }()
	turn, err := client.Send(ctx, sdk.UserText(prompt))
	if err != nil {
		return err
	}
	for m, err := range turn.Messages(ctx) {
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *protocol.CloudAgentEventMessage:
			fmt.Println(m.Event)
		case *protocol.ResultMessage:
			fmt.Printf("%s ($%.2f)\n", m.Result, m.TotalCostUSD)
		}
	}
	return nil
}
