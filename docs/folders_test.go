package docs_test

import (
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

// TestEachFolderSaysWhatItIsFor checks that each top-level folder has a doc.go whose first sentence
// says what is in it.
func TestEachFolderSaysWhatItIsFor(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("..")
	require.NoError(t, err)
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") || e.Name() == "dist" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", e.Name(), "doc.go"), nil, parser.ParseComments|parser.PackageClauseOnly)
		if !assert.NoError(t, err, "a top-level folder has a doc.go") {
			continue
		}
		first, _, _ := strings.Cut(strings.ReplaceAll(file.Doc.Text(), "\n", " "), ". ")
		assert.Regexp(t, `^Package `+regexp.QuoteMeta(file.Name.Name)+` \S+ (\S+ ){3,}`, first+" ", e.Name())
	}
}
