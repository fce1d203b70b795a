package osproc

import (
	_ "github.com/agent-troupe/troupe/internal/kernel"
	_ "github.com/agent-troupe/troupe/protocol" // want `internal/osproc may not import protocol: internal/osproc stands on internal/kernel and session alone`
)
