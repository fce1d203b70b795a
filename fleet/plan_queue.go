package fleet

// readyQueue has the tasks that may start: by priority, then in order.
type readyQueue []*node

func (q readyQueue) Len() int { return len(q) }
func (q readyQueue) Less(i, j int) bool {
	if q[i].priority != q[j].priority {
		return q[i].priority > q[j].priority
	}
	return q[i].order < q[j].order
}
func (q readyQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *readyQueue) Push(x any)   { *q = append(*q, x.(*node)) } //nolint:forcetypeassert // only nodes
func (q *readyQueue) Pop() any     { return pop((*[]*node)(q)) }

// restQueue has the tasks that are not due, by the time when they are.
type restQueue []*node

func (q restQueue) Len() int { return len(q) }
func (q restQueue) Less(i, j int) bool {
	if !q[i].due.Equal(q[j].due) {
		return q[i].due.Before(q[j].due)
	}
	return q[i].order < q[j].order
}
func (q restQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *restQueue) Push(x any)   { *q = append(*q, x.(*node)) } //nolint:forcetypeassert // only nodes
func (q *restQueue) Pop() any     { return pop((*[]*node)(q)) }

func pop(q *[]*node) *node {
	last := len(*q) - 1
	n := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return n
}
