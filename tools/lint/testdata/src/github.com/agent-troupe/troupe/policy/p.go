package policy

import "github.com/agent-troupe/troupe/actors/machine"

type Rules struct {
	Seen machine.Routing // want `Rules exposes Routing of actors/machine`
	seen machine.Routing
}

func Compile(map[string][]*machine.Routing) {} // want `Compile exposes Routing of actors/machine`

type Alias = machine.Routing // want `Alias exposes Routing of actors/machine`

func compile(machine.Routing) {}
