package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The files that the first guide has the reader save in one directory are one package and its tests.
func TestSavedFilesAreOnePackage(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("getting-started.md")
	require.NoError(t, err)
	saved := map[string]string{}
	for _, at := range regexp.MustCompile("(?s)Save this as `([a-z_]+\\.go)`.*?```go\npackage (\\w+)\n").FindAllStringSubmatch(string(guide), -1) {
		saved[at[1]] = strings.TrimSuffix(at[2], "_test")
	}
	assert.Equal(t, map[string]string{"main.go": "main", "main_test.go": "main"}, saved)
}
