package kernel

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Ref may hold one: the package is internal.
type Ref struct{ PID *actor.PID }

func now() time.Time {
	go time.Sleep(1)
	return time.Now()
}

func pick(a, b chan int) {
	select { // want `picks at random`
	case <-a:
	case <-b:
	}
}
