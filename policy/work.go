package policy

import "github.com/agent-troupe/troupe/protocol"

// maxWork bounds the work of one decision, in steps. A step takes about ten
// nanoseconds, so that a decision takes less than 100 milliseconds of a busy
// machine. Input and rules of usual size take less than a hundredth of it.
const maxWork = 3 << 20

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

// exhausted reports whether the decision took more than it may. What the
// matchers said is then incomplete.
func (w *work) exhausted() bool { return w.left < 0 }

// denied is the decision about a call that takes too much work.
func (w *work) denied() Explanation {
	return Explanation{Behavior: protocol.BehaviorDeny, Reason: "the call cannot be ruled out within the work that a decision may take: it is too large, or has too many paths, for this many rules"}
}
