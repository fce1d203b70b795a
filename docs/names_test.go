package docs_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// updateNames rewrites the counts of the table after names have gone.
var updateNames = flag.Bool("update-names", false, "rewrite testdata/names.txt")

const namesTable = "testdata/names.txt"

// maxNames is the most exported names that all packages of the table may have together.
const maxNames = 2100 +
	115 + // of the embedded agent and the models it calls, one by one and in batches
	12 + // of jobs that programs on many machines share
	50 // of the window in a browser, and of what it changes at other hosts

// notLibrary lists the trees whose names have no compatibility promise: programs, what drives them,
// and packages that are importable without a promise.
var notLibrary = [...]string{"actors", "base", "bench", "cmd", "conformance", "contrib", "docs", "examples", "internal", "scripts", "tools"}

// exportedNames returns the number of exported package-level names of each library
// package of this module: types, functions, constants and variables, without methods.
func exportedNames(t *testing.T) map[string]int {
	t.Helper()
	counts := map[string]int{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := strings.TrimPrefix(filepath.ToSlash(path), "../")
		if d.IsDir() {
			top, _, _ := strings.Cut(rel, "/")
			base := d.Name()
			if slices.Contains(notLibrary[:], top) || base == "internal" || base == "testdata" || path != ".." && strings.HasPrefix(base, ".") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if file.Name.Name != "main" {
			counts[rel[:strings.LastIndex(rel, "/")]] += exportedIn(file)
		}
		return nil
	})
	require.NoError(t, err)
	return counts
}

func exportedIn(file *ast.File) int {
	n := 0
	count := func(name *ast.Ident) {
		if name.IsExported() {
			n++
		}
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				count(decl.Name)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					count(spec.Name)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						count(name)
					}
				}
			}
		}
	}
	return n
}

// TestNames holds the number of exported names of each library package to the table. A
// package with fewer names lowers its number (-update-names); one with more raises it by
// hand, with the reason behind the number.
func TestNames(t *testing.T) {
	t.Parallel()
	counts := exportedNames(t)
	raw, err := os.ReadFile(namesTable)
	require.NoError(t, err)
	var table bytes.Buffer
	sum := 0
	for line := range strings.Lines(string(raw)) {
		number, rest, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || strings.HasPrefix(line, "#") {
			table.WriteString(line)
			continue
		}
		ceiling, err := strconv.Atoi(number)
		require.NoError(t, err, "%s: %q", namesTable, line)
		pkg, reason, _ := strings.Cut(rest, " ")
		count, there := counts[pkg]
		if !there && *updateNames {
			continue
		}
		assert.True(t, there, "%s: there is no package %s; delete the row", namesTable, pkg)
		delete(counts, pkg)
		sum += count
		if count < ceiling && *updateNames {
			ceiling = count
		}
		assert.Equal(t, ceiling, count, "%s: exported names of package %s: "+
			"lower the number with -update-names, or raise it by hand and give the reason", namesTable, pkg)
		fmt.Fprintf(&table, "%d %s", ceiling, pkg)
		if reason != "" {
			fmt.Fprintf(&table, " %s", reason)
		}
		table.WriteByte('\n')
	}
	assert.Empty(t, counts, "%s lacks these packages", namesTable)
	assert.LessOrEqual(t, sum, maxNames, "exported names of all packages together")
	if *updateNames {
		require.NoError(t, os.WriteFile(namesTable, table.Bytes(), 0o644))
	}
}
