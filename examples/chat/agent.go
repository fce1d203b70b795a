package main

import (
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/examples/internal/demo"
	"github.com/agent-troupe/troupe/sdk"
)

// options returns the options of the named agent. The scripted agent plays its demo.
func options(name string) (*sdk.Options, error) {
	return demo.Options(name, scripted.New())
}
