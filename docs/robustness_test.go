package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// testsOf returns the functions in the test files of a package.
func testsOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
	require.NoError(t, err)
	names := make(map[string]bool)
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				names[f.Name.Name] = true
			}
		}
	}
	return names
}

// TestRobustness checks that every row of the known failure modes in supervision.md names
// existing tests, or says that the feature is not in this release.
func TestRobustness(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("supervision.md")
	require.NoError(t, err)
	_, tables, found := strings.Cut(string(raw), "\n## Known failure modes\n")
	require.True(t, found)
	quoted := regexp.MustCompile("`([^`]+)`")
	known := make(map[string]map[string]bool)
	rows := 0
	for line := range strings.Lines(tables) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| what happens |") {
			continue
		}
		rows++
		what := strings.TrimSpace(cells[0])
		if !assert.Len(t, cells, 3, what) {
			continue
		}
		tests, dir := 0, ""
		for _, name := range quoted.FindAllStringSubmatch(cells[2], -1) {
			if isTest := strings.HasPrefix(name[1], "Test") || strings.HasPrefix(name[1], "Fuzz"); !isTest {
				if dir = name[1]; known[dir] == nil {
					known[dir] = testsOf(t, dir)
				}
				assert.NotEmpty(t, known[dir], "%s: package %s has no tests", what, dir)
				continue
			}
			tests++
			assert.True(t, known[dir][name[1]], "%s: package %q has no %s", what, dir, name[1])
		}
		if tests == 0 {
			assert.Contains(t, cells[1], "not in this release", "%s: no test is named", what)
		}
	}
	assert.Greater(t, rows, 40, "the tables were not found")
}
