package kernel

import "fmt"

// Moment is where, relative to one message, a test kills an actor.
type Moment int

// Before the message is handled, which the next incarnation then does; after it
// was; after an effect of an [Outbox] was carried out, which the message of the
// strike then is; or inside a step of an outbox, which is [Outbox.Broken] then.
const (
	BeforeMessage Moment = iota
	AfterMessage
	AfterEffect
	InStep
)

func (m Moment) String() string {
	return [...]string{"before", "after", "after the effect", "in the step of"}[m]
}

// Chaos kills actors on request: it is asked at each message of each actor and returns
// true to make the actor fail there. It is for tests; production systems have no Chaos.
type Chaos func(actor string, message any, at Moment) bool

// Killed is the reason of an actor that a [Chaos] killed.
type Killed struct {
	Actor   string
	Message string
	At      Moment
}

func (k *Killed) Error() string {
	return fmt.Sprintf("killed by the test %s %s in %s", k.At, k.Message, k.Actor)
}

func (c Chaos) strike(actor string, message any, at Moment) {
	if c(actor, message, at) {
		panic(&Killed{Actor: actor, Message: fmt.Sprintf("%T", message), At: at})
	}
}
