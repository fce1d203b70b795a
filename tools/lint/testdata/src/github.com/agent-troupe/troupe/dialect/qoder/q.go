package qoder

import "github.com/agent-troupe/troupe/protocol"

type Q protocol.Frame
