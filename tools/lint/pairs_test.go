package lint_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pairs lists the top-level folders that import each other, each with its reason.
var pairs = map[string]string{
	"acp dialect": "dialect/acp uses the types of acp; acp/acpclient is made of that dialect",
}

// folder is the top-level folder of a package. The body of the command is in internal/, so
// that other modules of the project can build the command with more in it, and counts as cmd.
func folder(path string) string {
	if path == "internal/command" {
		return "cmd"
	}
	top, _, _ := strings.Cut(path, "/")
	return top
}

// TestPairsOfFolders checks that top-level folders import each other only where the table
// says why. Dependencies between all other folders point one way.
func TestPairsOfFolders(t *testing.T) {
	t.Parallel()
	list := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...")
	list.Dir, list.Env = "../..", append(os.Environ(), "GOWORK=off") // the main module alone
	out, err := list.Output()
	require.NoError(t, err)
	imports := map[[2]string][]string{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		require.NoError(t, dec.Decode(&pkg))
		from := folder(strings.TrimPrefix(pkg.ImportPath, module))
		for _, path := range pkg.Imports {
			rest, ours := strings.CutPrefix(path, module)
			to := folder(rest)
			if ours && from != to {
				edge := [2]string{from, to}
				imports[edge] = append(imports[edge], strings.TrimPrefix(pkg.ImportPath, module)+" -> "+rest)
			}
		}
	}
	found := map[string]bool{}
	for edge, why := range imports {
		back := imports[[2]string{edge[1], edge[0]}]
		if back == nil || edge[0] > edge[1] {
			continue
		}
		pair := edge[0] + " " + edge[1]
		found[pair] = true
		slices.Sort(why)
		slices.Sort(back)
		assert.Contains(t, pairs, pair, "folders that import each other:\n%s\nand\n%s",
			strings.Join(why, "\n"), strings.Join(back, "\n"))
	}
	for pair := range pairs {
		assert.True(t, found[pair], "%s no longer import each other; remove the row", pair)
	}
}
