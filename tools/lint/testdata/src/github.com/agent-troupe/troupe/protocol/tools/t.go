package tools

import _ "github.com/agent-troupe/troupe/protocol"

type Input struct{}
