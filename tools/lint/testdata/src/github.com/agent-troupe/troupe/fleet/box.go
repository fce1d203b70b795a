package fleet

import "context"

type box struct{ m *machine }

func (b *box) look(ctx context.Context) int {
	b.m.step(ctx)
	n := b.m.nodes["a"] // want `nodes is a field of the job's machine`
	_ = n.id            // want `id is a field of the job's machine`
	s := spec{id: "b"}
	return b.m.size() + len(s.id)
}
