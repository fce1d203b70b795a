package transcript

import (
	_ "github.com/agent-troupe/troupe/dialect/qoder"
	_ "github.com/agent-troupe/troupe/internal/actors/routing" // want `transcript may not import internal/actors/routing: it comes later in the list`
)
