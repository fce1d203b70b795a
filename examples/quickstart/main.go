// Command quickstart asks an agent one thing and prints the answer as it is
// written: go run ./examples/quickstart [-agent claude|qoder]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/agent-troupe/troupe/agent/embedded/demo"
	"github.com/agent-troupe/troupe/sdk"
)

func main() {
	name := flag.String("agent", "demo", "demo (no account needed), claude or qoder")
	flag.Parse()
	opts := map[string]*sdk.Options{
		"demo":   demo.Options(),
		"claude": {Backend: sdk.Claude(sdk.ClaudeConfig{})},
		"qoder":  {Backend: sdk.Qoder(sdk.QoderConfig{}), Auth: sdk.QoderCLIAuth()},
	}[*name]
	if opts == nil {
		log.Fatalf("-agent %q is not known: use demo, claude or qoder", *name)
	}
	if err := ask(context.Background(), opts, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func ask(ctx context.Context, opts *sdk.Options, out io.Writer) error {
	opts.IncludePartialMessages = true // without it the text comes in one piece
	for m, err := range sdk.Query(ctx, "What is in this directory?", opts) {
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *sdk.PartialAssistantMessage: // as it is written
			_, _ = fmt.Fprint(out, m.Text())
		case *sdk.AssistantMessage: // the same, whole
			if sdk.TextOf(m) != "" {
				_, _ = fmt.Fprintln(out)
			}
		}
	}
	return nil
}
