// Command quickstart asks an agent one thing and prints the answer as it is
// written: go run ./examples/quickstart [-agent claude|qoder]
package main

import (
	"context"
	"flag"
	"fmt"
	"log"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
)

func main() {
	name := flag.String("agent", "scripted", "scripted (no account needed), claude or qoder")
	flag.Parse()
	opts := map[string]*sdk.Options{
		"scripted": {Backend: scripted.New(scripted.WithTurns(scripted.Turn{Steps: scripted.Steps{
			&scripted.Partial{Text: "Hello from the scripted agent, which says the same every time.", Chunk: 4, Pause: 3e7},
		}}))},
		"claude": {Backend: sdk.Claude(sdk.ClaudeConfig{})},
		"qoder":  {Backend: sdk.Qoder(sdk.QoderConfig{}), Auth: sdk.QoderCLIAuth()},
	}[*name]
	if opts == nil {
		log.Fatalf("-agent %q is not known: use scripted, claude or qoder", *name)
	}
	opts.IncludePartialMessages = true // without it the text comes in one piece
	for text, err := range sdk.Texts(sdk.Query(context.Background(), "Say hello in one sentence.", opts)) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(text)
	}
	fmt.Println()
}
