package claude

import (
	"github.com/agent-troupe/troupe/dialect/qoder" // want `dialect/claude may not import dialect/qoder: they stand side by side`
	"github.com/agent-troupe/troupe/protocol"
)

type C struct {
	protocol.Frame
	qoder.Q
}
