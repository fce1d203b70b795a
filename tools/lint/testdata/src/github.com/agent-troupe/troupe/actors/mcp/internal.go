package mcp

import (
	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/protocol/tools"
)

func Route(*machine.Routing) {} // no compatibility is promised for either

type Input = tools.Input // want `Input is another name of protocol/tools.Input`
