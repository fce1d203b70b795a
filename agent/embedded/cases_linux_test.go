package embedded_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/differential"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
)

// Each recorded case gives what Claude Code 2.1.329 gave: the gates that were asked, the
// files, what the model reads, the structured results, the frames and the final result.
// testdata/not-yet.txt names those that differ, with the first difference; it only shrinks.
// TROUPE_TOOL_CASES names another directory of cases; TROUPE_DIFFERENCES=1 prints all
// differences with -v. With the race detector every twelfth case is played: the step
// conformance of .ci/run plays all, in package conformance.
func TestCases(t *testing.T) { //nolint:paralleltest // its cases are parallel
	syscall.Umask(0o022) // as when they were recorded
	suite := differential.Recorded(t)
	suite.NotYet = "testdata/not-yet.txt"
	cases, other, err := differential.Cases("testdata/cases")
	require.NoError(t, err)
	suite.Whole = !other
	if sim.Raced() {
		suite.Whole = false
		var some []*differential.Case
		for i := 0; i < len(cases); i += 12 {
			some = append(some, cases[i])
		}
		cases = some
	}
	suite.Play(t, cases)
}
