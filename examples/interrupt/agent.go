package main

import (
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/examples/internal/demo"
	"github.com/agent-troupe/troupe/sdk"
)

// options returns the options of the named agent. The scripted agent always does the same.
func options(name string) (*sdk.Options, error) {
	return demo.Options(name, scripted.New(scripted.WithTurns(
		scripted.Turn{Steps: scripted.Steps{&scripted.Partial{Chunks: numbers(1000), Pause: 20 * time.Millisecond}}},
		scripted.Turn{Steps: scripted.Steps{scripted.Text("Because you interrupted me.")}},
	)))
}

func numbers(upTo int) []string {
	all := []string{"1"}
	for n := 2; n <= upTo; n++ {
		all = append(all, fmt.Sprintf(", %d", n))
	}
	return all
}
