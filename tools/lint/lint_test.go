package lint_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
	"golang.org/x/tools/go/analysis/passes/inspect"

	"github.com/agent-troupe/troupe/tools/lint"
)

const module = "github.com/agent-troupe/troupe/"

// TestAnalyzers holds each analyzer against the packages that carry its
// expectations. All packages are loaded at once: a load parses the standard
// library, too.
func TestAnalyzers(t *testing.T) {
	t.Parallel()
	chosen := map[string][]*analysis.Analyzer{}
	for _, tc := range []struct {
		analyzer *analysis.Analyzer
		packages []string
	}{
		{lint.Seams(), []string{"runtime", "agent", "cmd/troupe"}},
		{lint.SelectReady(), []string{"supervisor", "internal/kernel", "cmd/troupe"}},
		{lint.MapOrder(), []string{"fleet"}},
		{lint.Layers(), []string{
			"dialect/claude", "session", "transcript", "actors/router", "internal/osproc", "conformance/modelapi", "nowhere", "actors/newcomer", "protocol/tools",
		}},
		{lint.PublicProto(), []string{"actors/mcp", "policy"}},
		{lint.Values(), []string{"actors/machine", "fleet"}},
		{lint.Owned(), []string{"fleet"}},
		{lint.Locks(), []string{"actors/router"}},
		{lint.Directives(), []string{"runtime/directives"}},
		// The kernel is where the seams are made and where the actor library
		// lives: these find nothing there, where what is expected is selectready's.
		{lint.Seams(), []string{"internal/kernel"}},
		{lint.Layers(), []string{"internal/kernel"}},
		{lint.PublicProto(), []string{"internal/kernel"}},
	} {
		for _, path := range tc.packages {
			chosen[module+path] = append(chosen[module+path], tc.analyzer)
		}
	}
	var mu sync.Mutex // packages are analyzed side by side
	ran := map[string]bool{}
	all := &analysis.Analyzer{
		Name: "all", Doc: "runs the analyzers chosen for a package",
		Requires: []*analysis.Analyzer{inspect.Analyzer},
		Run: func(pass *analysis.Pass) (any, error) {
			for _, a := range chosen[pass.Pkg.Path()] {
				if _, err := a.Run(pass); err != nil {
					return nil, fmt.Errorf("%s: %w", a.Name, err)
				}
				mu.Lock()
				ran[a.Name+" "+pass.Pkg.Path()] = true
				mu.Unlock()
			}
			return nil, nil
		},
	}
	analysistest.Run(t, analysistest.TestData(), all, slices.Sorted(maps.Keys(chosen))...)
	assert.Len(t, ran, 26)
}

func TestAnalyzersAreValid(t *testing.T) {
	t.Parallel()
	require.NoError(t, analysis.Validate(lint.Analyzers()))
}
