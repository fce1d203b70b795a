package transcript

import (
	"errors"
	"iter"
	"slices"
)

// ErrNoConversation is the error of a transcript from which the agent resumes nothing: it
// is empty, has only bookkeeping, or its pointer names a line outside the main
// conversation. The agent ends with "No conversation found with session ID".
var ErrNoConversation = errors.New("transcript: there is no conversation to resume")

// Resumption is the conversation that the agent's program continues when it resumes the
// session.
type Resumption struct {
	// LeafUUID is the last line of the conversation. The next line gets it as its parent,
	// after the lines that Repairs says.
	LeafUUID string
	// Pointed says that a last-prompt line chose the branch. A newer branch in the file,
	// if any, is then not seen by the model: see NewerBranch.
	Pointed bool
	// NewerBranch is the newest leaf of the file if it is on another branch; "": none. To
	// continue there, resume with Options.ResumeSessionAt set to it.
	NewerBranch string
	// Healed lists the lines whose parent is missing or part of a cycle, which the agent
	// joins to the line before them, in the order of the conversation.
	Healed []Healed
	// Circles is how many circles of parents there are. Each is read from its first line.
	Circles int
	// Repairs says what the agent appends before the next prompt.
	Repairs Repairs

	t    *Transcript
	list []shown
}

// Healed is a line that was joined to another one than its parent.
type Healed struct {
	UUID       string // of the line
	ParentUUID string // as written in the line
	JoinedTo   string // the line that the agent takes for the parent
}

// Repairs are the lines that the agent appends before the next prompt, so that the model's
// API accepts the conversation.
type Repairs struct {
	// ToolUseIDs are calls without a result. Each gets an error result, "[Tool call
	// interrupted: …]".
	ToolUseIDs []string
	// NoResponse says that the last line is not the model's: "No response requested." is
	// appended in its name.
	NoResponse bool
}

// Messages returns the conversation, oldest first: user, assistant and system lines, and
// text that the agent added; not attachments. The lines are read from the file while the
// loop runs.
func (r *Resumption) Messages() iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) { r.t.yield(r.list, nil, yield) }
}

// Resumed returns the conversation as the agent's program would resume it: the branch that
// the last-prompt pointer chooses (on Qoder the active-leaf line), else the newest by
// place in the file, with missing parents healed and unfinished tool calls named. The
// error is ErrNoConversation, or the file's.
//
// Observed on Claude Code 2.1.329. For Qoder, whose program cannot be observed without a
// login, only the active-leaf line is known.
func (t *Transcript) Resumed() (*Resumption, error) {
	k := t.relink()
	r := &Resumption{t: t, Circles: k.breakCycles()}
	leaf, pointed, err := t.resumeLeaf(k)
	if err != nil {
		return nil, err
	}
	if leaf < 0 {
		return nil, ErrNoConversation
	}
	r.Pointed = pointed
	if newest, _ := k.leaf(); pointed && newest >= 0 && newest != leaf {
		if r.NewerBranch, err = t.uuidOf(newest); err != nil {
			return nil, err
		}
	}
	chain, healed := k.healed(leaf)
	if r.Healed, err = t.describeHealed(healed); err != nil {
		return nil, err
	}
	chain = k.withSiblings(chain)
	for _, at := range chain {
		if f := t.nodes[at].flags; f.talk() || f.has(isSystem) {
			r.list = append(r.list, shown{node: at})
		}
	}
	last := lastTalk(t, chain)
	if r.LeafUUID, err = t.uuidOf(last); err != nil {
		return nil, err
	}
	return r, r.findRepairs(chain, last)
}

// resumeLeaf returns the last line of the conversation, and whether a pointer chose the
// branch.
func (t *Transcript) resumeLeaf(k *links) (leaf int32, pointed bool, err error) {
	if t.vendor == Qoder {
		return k.activeLeaf(), t.activeSet == 1, nil
	}
	newest, _ := k.leaf()
	at, known := t.byID[t.pointer]
	if !t.hasPointer || !known {
		return newest, false, nil
	}
	if t.nodes[at].flags.has(isSide) {
		return none, false, ErrNoConversation
	}
	for steps, up := 0, newest; up >= 0 && steps <= len(t.nodes); steps, up = steps+1, k.up[up] {
		if up == at {
			return newest, false, nil
		}
	}
	// The pointed line may be an attachment.
	for steps := 0; at >= 0 && !t.nodes[at].flags.talk() && steps <= len(t.nodes); steps++ {
		at = k.up[at]
	}
	return at, true, nil
}

// healing is a line that was joined to the line before it.
type healing struct{ node, to int32 }

// healed returns the chain up to the leaf. Where a parent is missing, or the chain is a
// cycle, it continues with the previous line of the file.
func (k *links) healed(leaf int32) (chain []int32, healed []healing) {
	nodes := k.t.nodes
	seen := make([]bool, len(nodes))
	at := leaf
	for at >= 0 {
		seen[at] = true
		chain = append(chain, at)
		up := k.up[at]
		if up == missing || up >= 0 && seen[up] {
			up = k.before(at, seen)
			if up >= 0 {
				healed = append(healed, healing{at, up})
			}
		}
		at = up
	}
	slices.Reverse(chain)
	slices.Reverse(healed)
	return chain, healed
}

// before returns the last line of the main conversation that precedes all of the chain
// below the node in the file; or none.
func (k *links) before(at int32, seen []bool) int32 {
	nodes := k.t.nodes
	for i := int(nodes[at].place) - 1; i >= 0; i-- {
		j := int32(i)
		if n := &nodes[j]; n.flags == 0 || int(n.place) != i || seen[j] || !n.main() {
			continue
		}
		return j
	}
	return none
}

// breakCycles makes the first line of each cycle one whose parent is missing, and counts them.
func (k *links) breakCycles() (n int) {
	nodes := k.t.nodes
	round := make([]int32, len(nodes)) // in which walk a node was first seen
	for i := range nodes {
		walk := int32(i) + 1
		at := int32(i)
		for at >= 0 && round[at] == 0 {
			round[at] = walk
			at = k.up[at]
		}
		if at < 0 || round[at] != walk {
			continue
		}
		first := at
		for next := k.up[at]; next != at; next = k.up[next] {
			if nodes[next].place < nodes[first].place {
				first = next
			}
		}
		k.up[first] = missing
		n++
	}
	return n
}

func (t *Transcript) describeHealed(list []healing) ([]Healed, error) {
	var out []Healed
	for _, h := range list {
		l, err := t.lineOf(h.node)
		if err != nil {
			return nil, err
		}
		to, err := t.uuidOf(h.to)
		if err != nil {
			return nil, err
		}
		out = append(out, Healed{UUID: l.UUID(), ParentUUID: l.ParentUUID(), JoinedTo: to})
	}
	return out, nil
}

// lastTalk returns the last user or assistant line of the chain.
func lastTalk(t *Transcript, chain []int32) int32 {
	for i := len(chain) - 1; i >= 0; i-- {
		if t.nodes[chain[i]].flags.talk() {
			return chain[i]
		}
	}
	return none
}

// findRepairs finds the calls without a result among the lines at the end.
func (r *Resumption) findRepairs(chain []int32, last int32) error {
	t := r.t
	if last < 0 {
		return nil
	}
	answered := map[uint64]bool{}
	for _, at := range chain {
		if n := &t.nodes[at]; n.flags.has(isResult) {
			answered[n.tool] = true
		}
	}
	for _, at := range chain {
		n := &t.nodes[at]
		if !n.flags.has(isCall) || answered[n.tool] {
			continue
		}
		l, err := t.lineOf(at)
		if err != nil {
			return err
		}
		r.Repairs.ToolUseIDs = append(r.Repairs.ToolUseIDs, callIDs(l)...)
	}
	r.Repairs.NoResponse = !t.nodes[last].flags.has(isAssistant) || len(r.Repairs.ToolUseIDs) > 0
	return nil
}

// callIDs returns the ids of the tool calls of an assistant line.
func callIDs(l *Line) []string {
	content := get(l.head.message, "content")
	if !isArray(content) {
		return nil
	}
	var out []string
	blocks := elementsOf(content)
	for blocks.next() {
		if isObject(blocks.value) && string(get(blocks.value, "type")) == `"tool_use"` {
			out = append(out, text(get(blocks.value, "id")))
		}
	}
	return out
}

// lineOf reads the line of a node.
func (t *Transcript) lineOf(at int32) (*Line, error) {
	n := &t.nodes[at]
	w := window{r: t.r, size: n.off + int64(n.size)}
	raw, err := w.read(n.off, int(n.size))
	if err != nil {
		return nil, err
	}
	return parseLine(raw), nil
}

// uuidOf reads the UUID of a node.
func (t *Transcript) uuidOf(at int32) (string, error) {
	if at < 0 {
		return "", nil
	}
	l, err := t.lineOf(at)
	if err != nil {
		return "", err
	}
	return l.UUID(), nil
}
