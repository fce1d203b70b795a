package transport

import "github.com/agent-troupe/troupe/actors/machine"

// ErrNoReturn is why a launch fails whose code ends the goroutine.
var ErrNoReturn = errNoReturn

// StageOver is the timer of a stage.
func StageOver(s machine.Stage) machine.ToTransport { return stageOver{s} }
