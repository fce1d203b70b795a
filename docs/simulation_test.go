package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The catalogue of simulation.md has each fault, each oracle and each flag of package
// simtests.
func TestSimulation(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("simulation.md")
	require.NoError(t, err)
	rows := map[string]string{ // of what the code has, as the page has it
		`(?m)^func (\w+)\(.*\) Fault \{`: "| `%s` |",
		`"(sim\.\w+)", "TROUPE`:          "`-%s=",
		`w\.Errorf\("([a-z-]+): `:        "| %s |",
	}
	names := 0
	files, err := os.ReadDir("../simtests")
	require.NoError(t, err)
	for _, f := range files {
		if regexp.MustCompile(`_test\.go$|^parts\.go$|^script\.go$|^cassette.*`).MatchString(f.Name()) || f.IsDir() {
			continue
		}
		code, err := os.ReadFile("../simtests/" + f.Name())
		require.NoError(t, err)
		for pattern, row := range rows {
			for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(code, -1) {
				names++
				want := strings.ReplaceAll(row, "%s", string(m[1]))
				if !strings.Contains(string(page), want) { // without the page in the message
					t.Errorf("%s of %s: simulation.md has no %q", m[1], f.Name(), want)
				}
			}
		}
	}
	assert.Greater(t, names, 50)
}
