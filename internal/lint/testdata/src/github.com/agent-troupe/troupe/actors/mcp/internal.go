package mcp

import (
	"github.com/agent-troupe/troupe/internal/machine"
	"github.com/agent-troupe/troupe/protocol/tools"
)

func Route(*machine.Routing) {} // want `Route exposes Routing of internal/machine`

type Input = tools.Input // want `Input is another name of protocol/tools.Input`
