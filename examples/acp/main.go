// Command acp talks to an agent of the Agent Client Protocol, as an editor does, and decides
// about what it asks.
//
//	go run ./examples/acp                                    # its own agent, a demonstration, no account
//	go run ./examples/acp -- gemini --experimental-acp       # another agent: its command
//
// Look for: the text comes in pieces; the call that changes nothing is not asked about; the call that
// removes files is, and is denied; the turn continues.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/agent-troupe/troupe/acp/acpagent"
	"github.com/agent-troupe/troupe/acp/acpclient"
	"github.com/agent-troupe/troupe/agent/embedded/demo"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// asAgent is the argument with which this program is the agent on the other side.
const asAgent = "as-agent"

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if flag.NArg() == 1 && flag.Arg(0) == asAgent {
		err = serve(ctx)
	} else {
		err = run(ctx, flag.Args(), os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// serve is the agent: any session of Troupe can be one.
func serve(ctx context.Context) error {
	return acpagent.Serve(ctx, os.Stdin, os.Stdout, acpagent.Config{Options: sdk.Options{Backend: demo.New(demo.Config{})}})
}

// run is the editor. Without a command it starts this program again, as the agent.
func run(ctx context.Context, command []string, out io.Writer) (err error) {
	if len(command) == 0 {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		command = []string{self, asAgent}
	}
	client := sdk.NewClient(&sdk.Options{
		Backend:    acpclient.Backend(command...),
		CanUseTool: decide(out),
		OnEvent: func(r session.EventRecord) {
			if s, ok := r.Event.(*session.StderrLine); ok {
				fmt.Fprintln(os.Stderr, s.Line)
			}
		},
	})
	if err := client.Connect(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close(context.WithoutCancel(ctx))) }()
	turn, err := client.Send(ctx, sdk.UserText("Read README.md, and delete the directory build."))
	if err != nil {
		return err
	}
	for text, err := range sdk.Texts(turn.Messages(ctx)) {
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintln(out, text)
	}
	result, err := turn.Result(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "-- %s, %d call denied\n", result.Subtype, len(result.PermissionDenials))
	return err
}

// decide is asked about each call for which the agent wants a permission.
func decide(out io.Writer) sdk.CanUseTool {
	return func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		_, _ = fmt.Fprintf(out, "-- the agent asks for %s: %s; denied\n", r.ToolName, r.Input)
		return sdk.Deny("nothing is removed here"), nil
	}
}
