package transcript

import (
	_ "github.com/agent-troupe/troupe/dialect/qoder"
	_ "github.com/agent-troupe/troupe/internal/actors/router" // want `transcript may not import internal/actors/router: it comes later in the list`
)
