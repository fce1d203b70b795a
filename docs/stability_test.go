package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// importable lists the packages that other modules can import, of the main module and of those in
// contrib, by their paths below the main module.
func importable(t *testing.T) (all []string) {
	t.Helper()
	modules, err := filepath.Glob("../contrib/*/go.mod")
	require.NoError(t, err)
	for _, mod := range append(modules, "../go.mod") {
		cmd := exec.Command("go", "list", "-find", "-f", "{{.Name}} {{.ImportPath}}", "./...")
		cmd.Dir, cmd.Env = filepath.Dir(mod), append(os.Environ(), "GOWORK=off")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", mod, out)
		for line := range strings.Lines(string(out)) {
			name, path, ok := strings.Cut(strings.TrimSpace(line), " github.com/agent-troupe/troupe/")
			if ok && name != "main" && path != "internal" && !strings.HasPrefix(path, "internal/") && !strings.Contains(path, "/internal/") {
				all = append(all, path)
			}
		}
	}
	return all
}

// TestStabilityListsEachPackage compares the list in stability.md with go list.
func TestStabilityListsEachPackage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("stability.md")
	require.NoError(t, err)
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (\\S+) \\| (.*)\\|$").FindAllStringSubmatch(string(page), -1) {
		assert.Contains(t, []string{"stable", "none"}, row[2], "the promise of %s", row[1])
		assert.False(t, row[2] == "none" && strings.TrimSpace(row[3]) == "", "the list says why %s has no promise", row[1])
		assert.NotContains(t, listed, row[1], "a package is in the list once")
		listed = append(listed, row[1])
	}
	assert.ElementsMatch(t, importable(t), listed, "docs/stability.md has each package that can be imported: add yours to its list")
}
