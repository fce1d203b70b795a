package transcript

import "slices"

// links is the order of the messages in one view: the parent of each node after the
// compactions have moved what they preserved.
type links struct {
	t  *Transcript
	up []int32
}

// relink moves the lines that compactions preserved behind the summaries.
func (t *Transcript) relink() *links {
	k := &links{t: t, up: make([]int32, len(t.nodes))}
	for i := range t.nodes {
		k.up[i] = t.nodes[i].up
	}
	for _, c := range t.compactions {
		anchor, ok := t.byID[c.anchor]
		at := make([]int32, 0, len(c.preserved))
		for _, u := range c.preserved {
			n, there := t.byID[u]
			ok = ok && there
			at = append(at, n)
		}
		if !ok {
			continue // a reader of the vendor's leaves it alone, too
		}
		first, last := at[0], at[len(at)-1]
		for i := range k.up {
			if k.up[i] == anchor && int32(i) != first {
				k.up[i] = last
			}
		}
		k.up[first] = anchor
		if !c.segment {
			for i := 1; i < len(at); i++ {
				k.up[at[i]] = at[i-1]
			}
		}
	}
	return k
}

// main reports whether the node can be the end of the main conversation.
func (n *node) main() bool {
	return n.flags != 0 && !n.flags.has(isSide|isTeam|isProgress|isFork)
}

// newestFirst returns the nodes without a child of the same kind, the last in the file
// first.
func (k *links) newestFirst(counts func(*node) bool) []int32 {
	nodes := k.t.nodes
	parents := make([]bool, len(nodes))
	for i := range nodes {
		if k.up[i] >= 0 && counts(&nodes[i]) {
			parents[k.up[i]] = true
		}
	}
	var ends []int32
	for i := range nodes {
		if counts(&nodes[i]) && !parents[i] {
			ends = append(ends, int32(i))
		}
	}
	slices.SortFunc(ends, func(a, b int32) int { return int(nodes[b].place) - int(nodes[a].place) })
	return ends
}

// leaf returns the newest user or assistant line at the end of the main conversation,
// and the line below it that led there; none if there is no conversation.
func (k *links) leaf() (leaf, end int32) {
	nodes := k.t.nodes
	seen := make([]bool, len(nodes))
	for _, end := range k.newestFirst((*node).main) {
		for at := end; at >= 0 && !seen[at]; at = k.up[at] {
			seen[at] = true
			if nodes[at].flags.talk() {
				return at, end
			}
		}
	}
	return k.anyLeaf(), none
}

// anyLeaf is the newest message at an end of the tree: of the main conversation if there is
// one. Claude's SDK uses it for files without a main conversation, such as a subagent's;
// Qoder's for all.
func (k *links) anyLeaf() int32 {
	nodes := k.t.nodes
	best := [2]int32{none, none} // of the main conversation; of all
	for _, end := range k.newestFirst(func(n *node) bool { return n.flags != 0 }) {
		at := end
		for steps := 0; at >= 0 && !nodes[at].flags.talk() && steps <= len(nodes); steps++ {
			at = k.up[at]
		}
		if at < 0 || !nodes[at].flags.talk() {
			continue
		}
		if best[1] < 0 || nodes[at].place > nodes[best[1]].place {
			best[1] = at
		}
		if !nodes[at].flags.has(isSide|isTeam|isMeta) && (best[0] < 0 || nodes[at].place > nodes[best[0]].place) {
			best[0] = at
		}
	}
	if best[0] >= 0 {
		return best[0]
	}
	return best[1]
}

// chain returns the nodes from the root to the leaf. A cycle ends it.
func (k *links) chain(leaf int32) []int32 {
	var out []int32
	seen := make([]bool, len(k.up))
	for at := leaf; at >= 0 && !seen[at]; at = k.up[at] {
		seen[at] = true
		out = append(out, at)
	}
	slices.Reverse(out)
	return out
}

// withSiblings puts back what is not on the parent chain although it belongs to it: other
// lines of one answer of the model, and the results of parallel tool calls.
func (k *links) withSiblings(chain []int32) []int32 {
	nodes := k.t.nodes
	in := make([]bool, len(nodes))
	answered := map[uint64]bool{}
	lastOf := map[uint64]int32{} // by message id: the last line of the answer in the chain
	for _, at := range chain {
		in[at] = true
		n := &nodes[at]
		if n.flags.has(isResult) {
			answered[n.tool] = true
		}
		if n.flags.has(isAssistant) && n.msg != 0 {
			lastOf[n.msg] = at
		}
	}
	if len(lastOf) == 0 {
		return chain
	}
	group := make(map[int32][]int32) // by lastOf: what follows it
	calls := map[uint64]int32{}      // by tool call: the line of the answer in the chain
	for i := range nodes {
		n := &nodes[i]
		if !n.flags.has(isAssistant) || n.msg == 0 {
			continue
		}
		last, ok := lastOf[n.msg]
		if !ok || n.flags.has(isSide) != nodes[last].flags.has(isSide) {
			continue
		}
		if n.tool != 0 {
			calls[n.tool] = last
		}
		if !in[i] {
			group[last] = append(group[last], int32(i))
		}
	}
	for i := range nodes {
		n := &nodes[i]
		if in[i] || !n.flags.has(isResult) || n.up == none || answered[n.tool] {
			continue
		}
		if last, ok := k.answerOf(n, lastOf, calls); ok && n.flags.has(isSide) == nodes[last].flags.has(isSide) {
			answered[n.tool] = true
			group[last] = append(group[last], int32(i))
		}
	}
	if len(group) == 0 {
		return chain
	}
	out := make([]int32, 0, len(chain)+8)
	for _, at := range chain {
		out = append(out, at)
		more := group[at]
		slices.SortStableFunc(more, func(a, b int32) int {
			if d := order(&nodes[a]) - order(&nodes[b]); d != 0 {
				return d
			}
			return int(nodes[a].place) - int(nodes[b].place)
		})
		out = append(out, more...)
	}
	return out
}

// order puts the lines of the answer before the results.
func order(n *node) int {
	if n.flags.has(isAssistant) {
		return 0
	}
	return 1
}

// answerOf returns the last line, in the chain, of the answer that called the tool whose
// result n is.
func (k *links) answerOf(n *node, lastOf, calls map[uint64]int32) (int32, bool) {
	for i, at := range []int32{n.up, n.source} {
		if at < 0 || i > 0 && k.t.vendor == Qoder { // Qoder's SDK goes by the parent alone
			continue
		}
		if p := &k.t.nodes[at]; p.flags.has(isAssistant) && p.msg != 0 {
			if last, ok := lastOf[p.msg]; ok {
				return last, true
			}
		}
	}
	last, ok := calls[n.tool]
	return last, ok && n.tool != 0 && k.t.vendor != Qoder
}

// trailing returns the unanswered queued commands below the leaf.
func (k *links) trailing(leaf int32, chain []int32) []int32 {
	nodes := k.t.nodes
	below := map[int32][]int32{}
	for i := range nodes {
		n := &nodes[i]
		if n.flags != 0 && !n.flags.talk() && k.up[i] >= 0 {
			below[k.up[i]] = append(below[k.up[i]], int32(i))
		}
	}
	if len(below[leaf]) == 0 {
		return nil
	}
	in := make([]bool, len(nodes))
	for _, at := range chain {
		in[at] = true
	}
	answered := make([]bool, len(nodes)) // above a message of another branch
	for i := range nodes {
		n := &nodes[i]
		if in[i] || !n.flags.talk() || n.flags.has(isSide|isTeam) {
			continue
		}
		for at := n.up; at >= 0 && !in[at] && !answered[at]; at = nodes[at].up {
			answered[at] = true
		}
	}
	var out []int32
	todo := []int32{leaf}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if at != leaf {
			if in[at] {
				continue
			}
			in[at] = true
			if nodes[at].flags.has(isQueued) && !answered[at] {
				out = append(out, at)
			}
		}
		for _, child := range slices.Backward(below[at]) {
			if !in[child] {
				todo = append(todo, child)
			}
		}
	}
	return out
}
