package transcript

import (
	_ "github.com/agent-troupe/troupe/actors/router" // want `transcript may not import actors/router: it comes later in the list`
	_ "github.com/agent-troupe/troupe/dialect/qoder"
)
