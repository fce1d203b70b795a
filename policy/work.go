package policy

import "github.com/agent-troupe/troupe/protocol"

// maxWork bounds the work of one decision, in steps. A step takes about ten
// nanoseconds on an idle core, so that a decision takes less than 100
// milliseconds on a machine whose cores are shared by several processes. The
// most expensive 4 kB with 100 rules take about half of it, an ordinary script
// of that size an eighth, and a usual call less than a hundredth.
const maxWork = 2 << 20

const (
	// parseSteps is the cost of a byte that the shell's parser reads.
	parseSteps = 32
	// resolveSteps is the cost of following the links of a path.
	resolveSteps = 500
)

// work counts the steps of a decision. Each matcher spends from it before it
// does anything that grows with the input, and returns early once it is used up.
// The count depends on the rules and the call alone, not on the machine.
type work struct{ left int }

// spend reports whether there was enough left for n more steps.
func (w *work) spend(n int) bool {
	w.left -= n
	return w.left >= 0
}

// exhausted reports whether the decision took more than it may. The answers of the
// matchers are then incomplete.
func (w *work) exhausted() bool { return w.left < 0 }

// denied is the decision about a call that takes too much work.
func (w *work) denied() Explanation {
	return Explanation{Behavior: protocol.BehaviorDeny, Reason: "the call cannot be ruled out within the work that a decision may take: it is too large, or has too many paths, for this many rules"}
}
