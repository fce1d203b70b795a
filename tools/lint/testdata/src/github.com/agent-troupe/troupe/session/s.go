package session

import (
	_ "github.com/agent-troupe/troupe/dialect/qoder" // want `session may not import dialect/qoder: session stands on protocol and policy and supervisor and base/shown and base/wire alone`
	_ "github.com/agent-troupe/troupe/protocol"
)
