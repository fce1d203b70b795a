package lint_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/agent-troupe/troupe/internal/lint"
)

const module = "github.com/agent-troupe/troupe/"

func TestAnalyzers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		analyzer *analysis.Analyzer
		packages []string
	}{
		{lint.Seams(), []string{"runtime", "agent", "cmd/troupe"}},
		{lint.SelectReady(), []string{"supervisor", "internal/kernel", "cmd/troupe"}},
		{lint.MapOrder(), []string{"fleet"}},
		{lint.Globals(), []string{"sdk", "cmd/troupe"}},
		{lint.Layers(), []string{
			"dialect/claude", "transcript", "actors/router", "internal/osproc", "conformance/modelapi", "nowhere", "actors/newcomer", "protocol/tools",
		}},
		{lint.PublicProto(), []string{"actors/mcp"}},
		{lint.Directives(), []string{"runtime/directives"}},
	} {
		t.Run(tc.analyzer.Name, func(t *testing.T) {
			t.Parallel()
			paths := make([]string, len(tc.packages))
			for i, path := range tc.packages {
				paths[i] = module + path
			}
			// One load for all: the standard library is parsed with each.
			analysistest.Run(t, analysistest.TestData(), tc.analyzer, paths...)
		})
	}
}

// The kernel is where the seams are made and where the actor library lives, but
// selectready covers it too, so its expectations stand in the same file.
func TestTheKernelIsExempt(t *testing.T) {
	t.Parallel()
	for _, analyzer := range []*analysis.Analyzer{lint.Seams(), lint.Layers(), lint.PublicProto()} {
		results := analysistest.Run(silent{t}, analysistest.TestData(), analyzer, module+"internal/kernel")
		require.NotEmpty(t, results)
		for _, result := range results {
			require.NoError(t, result.Action.Err)
			require.Empty(t, result.Action.Diagnostics)
		}
	}
}

// silent drops what analysistest says of expectations that belong to other
// analyzers.
type silent struct{ *testing.T }

func (silent) Errorf(string, ...any) {}

func TestAnalyzersAreValid(t *testing.T) {
	t.Parallel()
	require.NoError(t, analysis.Validate(lint.Analyzers()))
}
