package router

import (
	_ "github.com/asynkron/protoactor-go/actor" // want `github.com/asynkron/protoactor-go stays behind internal/kernel`

	_ "github.com/agent-troupe/troupe/internal/kernel"
)
