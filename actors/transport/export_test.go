package transport

import "github.com/agent-troupe/troupe/actors/machine"

// StageOver is the timer of a stage.
func StageOver(s machine.Stage) machine.ToTransport { return stageOver{s} }
