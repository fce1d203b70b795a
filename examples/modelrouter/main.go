// Command modelrouter chooses the model of every call by its purpose: the strong one for the
// conversation, a cheap one for side work, the user's choice for subagents.
//
//	go run ./examples/modelrouter                # a scripted agent, no account
//	go run ./examples/modelrouter -agent qoder   # Qoder CLI; no other agent has such a callback
//
// Look for: each call gets a model, also a call with an unknown purpose. The callback answers
// from memory, because the agent waits only 500 ms for the answer and then cancels the call.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// routes maps purposes to models. Later releases may have other purposes.
type routes struct {
	byPurpose map[string]string
	otherwise string
	own       protocol.CustomModel // for subagents, if it has a key
	say       func(...any)
}

func (r *routes) resolve(_ context.Context, q *protocol.ModelPolicyRequest) (protocol.ModelPolicyReply, error) {
	if q.Purpose == "subagent" && r.own.APIKey != "" {
		r.say("subagent -> the user's own,", r.own) // the key is not shown
		return sdk.UseOwnModel("own-model", r.own), nil
	}
	model, ok := r.byPurpose[q.Purpose]
	if !ok || !available(q.Models, model) {
		model = r.otherwise
	}
	r.say(q.Purpose, "->", model)
	return sdk.UseModel(model), nil
}

// available reports whether the account has the model. Without a list every model is
// available.
func available(models []protocol.ModelInfo, name string) bool {
	for _, m := range models {
		if m.Value == name {
			return true
		}
	}
	return len(models) == 0
}

func main() {
	agent := flag.String("agent", "scripted", "scripted or qoder")
	flag.Parse()
	prompt := "Summarize the page and compare it with ours."
	if flag.NArg() > 0 {
		prompt = strings.Join(flag.Args(), " ")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *agent, prompt, os.Getenv("OWN_MODEL_KEY"), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, agent, prompt, key string, out io.Writer) error {
	opts, err := options(agent)
	if err != nil {
		return err
	}
	say := func(what ...any) { _, _ = fmt.Fprintln(out, what...) }
	router := &routes{
		byPurpose: map[string]string{"main": "performance", "web_fetch": "lite", "compact": "lite"},
		otherwise: "auto", say: say,
		own: protocol.CustomModel{Provider: "acme", APIKey: key},
	}
	opts.ResolveModel = router.resolve
	answer, err := sdk.Run(ctx, prompt, opts)
	if err != nil {
		return err
	}
	say(answer.Text())
	return nil
}
