package policy

import "github.com/agent-troupe/troupe/internal/machine"

type Rules struct {
	Seen machine.Routing // want `Rules exposes Routing of internal/machine`
	seen machine.Routing
}

func Compile(map[string][]*machine.Routing) {} // want `Compile exposes Routing of internal/machine`

type Alias = machine.Routing // want `Alias exposes Routing of internal/machine`

func compile(machine.Routing) {}
