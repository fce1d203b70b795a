package mcp

import "github.com/asynkron/protoactor-go/actor"

type hidden struct {
	Ref *actor.PID // want `Shown exposes PID of the actor library`
	own *actor.PID
}

type Shown struct{ H []hidden }

type Kept struct {
	pid *actor.PID
	own map[string]hidden
}

func (k *Kept) PID() *actor.PID { return k.pid } // want `Kept exposes PID`

func (k *Kept) pidOf() *actor.PID { return k.pid }

func Start(f func(map[string]actor.Context)) {} // want `Start exposes Context`

func start(c actor.Context) {}

type Alias = actor.PID // want `Alias exposes PID`

var Default *actor.PID // want `Default exposes PID`

type Sender interface {
	Send(to chan<- *actor.PID) // want `Sender exposes PID`
}

type Box[T interface{ *actor.PID | string }] struct{ V T } // want `Box exposes PID`

type Embeds struct {
	actor.Context // want `Embeds exposes Context`
}

type List struct{ next *List }

func Of(l *List) []Kept { return nil }
