package main

import (
	"context"

	"github.com/agent-troupe/troupe/internal/command"
)

// Check implements command.Machines.
func (machines) Check(context.Context, command.Servers) ([]command.Finding, error) { return nil, nil }
