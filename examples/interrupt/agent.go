package main

import (
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
)

// options returns the options of the named agent. The scripted agent always does the same.
func options(name string) (*sdk.Options, error) {
	switch name {
	case "scripted":
		return &sdk.Options{Backend: scripted.New(scripted.WithTurns(
			scripted.Turn{Steps: scripted.Steps{&scripted.Partial{Chunks: numbers(1000), Pause: 20 * time.Millisecond}}},
			scripted.Turn{Steps: scripted.Steps{scripted.Text("Because you interrupted me.")}},
		))}, nil
	case "claude":
		return &sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{})}, nil
	case "qoder":
		return &sdk.Options{Backend: sdk.Qoder(sdk.QoderConfig{}), Auth: sdk.QoderCLIAuth()}, nil
	}
	return nil, fmt.Errorf("-agent %q is not known: use scripted, claude or qoder", name)
}

func numbers(upTo int) []string {
	all := []string{"1"}
	for n := 2; n <= upTo; n++ {
		all = append(all, fmt.Sprintf(", %d", n))
	}
	return all
}
