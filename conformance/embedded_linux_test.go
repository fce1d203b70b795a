//go:build conformance

package conformance_test

import (
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance"
	"github.com/agent-troupe/troupe/conformance/differential"
)

// TestMain: modes of files are compared, so the mask of this process is that of the recordings.
func TestMain(m *testing.M) {
	syscall.Umask(0o022)
	os.Exit(m.Run())
}

// The embedded agent does what recordings of Claude Code say: those of the directory that
// TROUPE_TOOL_CASES names, from the top of the repository if it is relative. Without it, every
// tenth of those of agent/embedded, whose own test plays all.
func TestToolCases(t *testing.T) {
	t.Parallel()
	suite := differential.Recorded(t)
	suite.NotYet = "../agent/embedded/testdata/not-yet.txt"
	cases, other, err := differential.Cases("../agent/embedded/testdata/cases")
	require.NoError(t, err)
	if !other {
		cases = every(10, cases)
	}
	suite.Play(t, cases)
}

// every is one of each so many cases.
func every(step int, cases []*differential.Case) []*differential.Case {
	some := make([]*differential.Case, 0, len(cases)/step+1)
	for i := 0; i < len(cases); i += step {
		some = append(some, cases[i])
	}
	return some
}

// Both agents play the same cases, every third of them; what they do differs only in what the
// table allows. With TROUPE_FULL=1 they play all, and every scenario of modelapi, and every
// recorded case.
// testdata/not-yet-live.txt and not-yet-full.txt name the cases that differ; they only shrink.
func TestEmbeddedLive(t *testing.T) {
	t.Parallel()
	suite := differential.Live(t, conformance.Claude.CLI(t))
	cases, err := differential.Load("testdata/embedded")
	require.NoError(t, err)
	suite.NotYet, suite.Whole = "testdata/not-yet-live.txt", true
	if os.Getenv("TROUPE_FULL") != "" {
		suite.Run, suite.NotYet = "full", "testdata/not-yet-full.txt"
		recorded, err := differential.Load("../agent/embedded/testdata/cases")
		require.NoError(t, err)
		scenarios, err := differential.Scenarios()
		require.NoError(t, err)
		cases = slices.Concat(cases, scenarios, recorded)
	} else if os.Getenv("TROUPE_CASES") == "" {
		cases, suite.Whole = every(3, cases), false
	}
	suite.Play(t, cases)
}
