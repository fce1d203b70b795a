// Command embedded is an agent in this process, with any model: it needs no program and no
// vendor's account, only an endpoint.
//
//	go run ./examples/embedded                                             # the demonstration, no endpoint
//	go run ./examples/embedded -model http://localhost:11434/v1#qwen3:8b   # a local server, in this directory
//	go run ./examples/embedded -model anthropic/NAME -dir ~/src/thing      # with the key in ANTHROPIC_API_KEY
//	go run ./examples/embedded -model anthropic/NAME -confine              # commands write in -dir and the cache alone (Linux 6.2)
//
// Look for: the calls are real, and each has its result; without a rule a call is denied,
// since no callback is asked; the last line has the tokens, and their cost if the price is known.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/agent/embedded/demo"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

func main() {
	runtime.ServeGuard() // a confined command begins as this program
	name := flag.String("model", "", "anthropic/NAME, openai/NAME or URL#NAME; default: the demonstration")
	dir := flag.String("dir", ".", "where the agent of -model works; the demonstration works in a temporary directory")
	confined := flag.Bool("confine", false, "have the kernel confine the commands of -model: they write in -dir and the cache alone, and do not read ~/.ssh")
	flag.Parse()
	prompt := "Run the tests, and fix what fails."
	if flag.NArg() > 0 {
		prompt = strings.Join(flag.Args(), " ")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var limits embedded.Confine
	if *confined {
		limits = embedded.Confine{Landlock: true, Hide: []string{"~/.ssh"}}
		if cache, err := os.UserCacheDir(); err == nil {
			limits.Write = []string{cache} // go test needs it
		}
	}
	opts, err := options(*name, *dir, limits, os.Getenv)
	if err == nil {
		err = run(ctx, opts, prompt, os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// options returns the options of a session with the named model, or of the demonstration.
func options(name, dir string, limits embedded.Confine, getenv func(string) string) (*sdk.Options, error) {
	if name == "" {
		return demo.Options(), nil
	}
	ref, err := model.ParseRef(name)
	if err != nil {
		return nil, err
	}
	known := model.DefaultProfiles() // windows, prices, servers; Extend adds your own
	var c model.Config
	if variable := known.Server(ref.URL).KeyName; variable != "" {
		c.Key = func(context.Context) (string, error) { // asked for each request
			if key := getenv(variable); key != "" {
				return key, nil
			}
			return "", errors.New(variable + " is not set")
		}
	}
	return &sdk.Options{
		Backend:      embedded.New(embedded.Config{Model: model.Open(ref, c, known), Name: ref.Model, Profiles: known, Confine: limits}),
		Cwd:          dir,
		AllowedTools: []string{"Edit(./**)", "Bash(go test *)", "Bash(go vet *)"}, // reading needs no rule
		MaxTurns:     sdk.Some(50),
	}, nil
}

// run prints what the agent says and does, and what it has used.
func run(ctx context.Context, opts *sdk.Options, prompt string, out io.Writer) error {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	for m, err := range sdk.Query(ctx, prompt, opts) {
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *sdk.AssistantMessage:
			if text := sdk.TextOf(m); text != "" {
				say("%s", text)
			}
			for _, call := range sdk.ToolUses(m) {
				say("  -> %s %s", call.Name, call.Input)
			}
		case *sdk.UserMessage:
			for _, result := range sdk.ToolResults(m) {
				first, _, _ := strings.Cut(result.Content.Text(), "\n")
				say("  <- %s", first)
			}
		case *sdk.ResultMessage:
			for _, name := range slices.Sorted(maps.Keys(m.ModelUsage)) {
				u := m.ModelUsage[name]
				say("%s: %d tokens in, %d out, $%.4f", name, u.InputTokens, u.OutputTokens, u.CostUSD)
			}
			if m.Failed() {
				return &sdk.ResultError{Result: m}
			}
		}
	}
	return nil
}
