package fleet

import (
	"context" // want `does not import context`
)

type machine struct {
	nodes map[string]*node
	wake  func() // want `holds a function`
}

type node struct {
	spec
	state int
}

type spec struct{ id string }

func (m *machine) step(ctx context.Context) { m.nodes["a"].state++ }

func (m *machine) size() int { return len(m.nodes) }
