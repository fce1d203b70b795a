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

// maxAliases is the most aliases that package sdk may have for types of other packages.
const maxAliases = 60

// keptNames is the heading of the list of these aliases in moved.md.
const keptNames = "\n## Names that `sdk` keeps\n"

// sdkAlias is an alias in package sdk for a type of another package.
type sdkAlias struct {
	name string
	is   string // "package.Name" of the type, with the package's name in the file
	path string // the import path of that package
	says string // the comment
}

// sdkAliases returns all aliases of package sdk.
func sdkAliases(t *testing.T) []sdkAlias {
	t.Helper()
	files, err := filepath.Glob("../sdk/*.go")
	require.NoError(t, err)
	var all []sdkAlias
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		require.NoError(t, err)
		imports := map[string]string{}
		for _, spec := range file.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			name := path[strings.LastIndex(path, "/")+1:]
			if spec.Name != nil {
				name = spec.Name.Name
			}
			imports[name] = path
		}
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range decl.Specs {
				spec, ok := s.(*ast.TypeSpec)
				if !ok || !spec.Assign.IsValid() || !spec.Name.IsExported() {
					continue
				}
				says := spec.Doc.Text()
				if !decl.Lparen.IsValid() {
					says = decl.Doc.Text()
				}
				is := selector(spec.Type)
				home, _, _ := strings.Cut(is, ".")
				all = append(all, sdkAlias{spec.Name.Name, is, imports[home], says})
			}
		}
	}
	return all
}

// TestAliasesOfSDK checks the aliases of package sdk: there are at most maxAliases, the
// comment of each says where the type is defined, the type is defined there, and
// moved.md lists the alias.
func TestAliasesOfSDK(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("moved.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(raw), keptNames)
	section, _, _ = strings.Cut(section, "\n## ")
	listed := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| `([^`]+)` \\|$").FindAllStringSubmatch(section, -1) {
		listed[row[1]] = row[2]
	}
	aliases := sdkAliases(t)
	require.NotEmpty(t, aliases)
	packages := map[string]map[string]string{}
	assert.LessOrEqual(t, len(aliases), maxAliases, "aliases of package sdk")
	for _, a := range aliases {
		if !assert.NotEmpty(t, a.path, "sdk.%s is an alias of a type that sdk defines itself", a.name) {
			continue
		}
		says := strings.Join(strings.Fields(a.says), " ")
		assert.Contains(t, says, " It is ["+a.is+"]", "the comment of sdk.%s does not say where the type is defined", a.name)
		home, ours := strings.CutPrefix(a.path, "github.com/agent-troupe/troupe/")
		is := a.is
		if ours {
			assert.NotContains(t, "/"+home+"/", "/internal/", "sdk.%s is a type that no program can import", a.name)
			_, name, _ := strings.Cut(a.is, ".")
			if packages[home] == nil {
				packages[home] = declarations(t, "../"+home)
			}
			defined, ok := packages[home][name]
			assert.True(t, ok && defined == "", "sdk.%s is an alias of an alias", a.name)
			is = home + "." + name
		}
		assert.Equal(t, is, listed[a.name], "sdk.%s in moved.md", a.name)
		delete(listed, a.name)
	}
	assert.Empty(t, listed, "moved.md lists names that sdk does not have")
}
