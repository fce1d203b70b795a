package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxAliases is the most aliases that package sdk may have for types of other packages.
const maxAliases = 32

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
// comment of each says where the type is defined, and the type is defined there.
func TestAliasesOfSDK(t *testing.T) {
	t.Parallel()
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
		if ours {
			assert.NotContains(t, "/"+home+"/", "/internal/", "sdk.%s is a type that no program can import", a.name)
			_, name, _ := strings.Cut(a.is, ".")
			if packages[home] == nil {
				packages[home] = declarations(t, "../"+home)
			}
			defined, ok := packages[home][name]
			assert.True(t, ok && defined == "", "sdk.%s is an alias of an alias", a.name)
		}
	}
}

// declarations maps the names that a package declares to the target of an alias, or to
// "" if the package defines the name itself.
func declarations(t *testing.T, dir string) map[string]string {
	t.Helper()
	names := map[string]string{}
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return names
	}
	require.NoError(t, err)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, 0)
		require.NoError(t, err)
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					names[d.Name.Name] = ""
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						names[spec.Name.Name] = ""
						if spec.Assign.IsValid() {
							names[spec.Name.Name] = selector(spec.Type)
						}
					case *ast.ValueSpec:
						for i, name := range spec.Names {
							names[name.Name] = ""
							if i < len(spec.Values) {
								names[name.Name] = selector(spec.Values[i])
							}
						}
					}
				}
			}
		}
	}
	return names
}

// selector returns "package.Name" for an expression of that form, and "" otherwise.
func selector(e ast.Expr) string {
	if generic, ok := e.(*ast.IndexExpr); ok {
		e = generic.X
	}
	if s, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok {
			return x.Name + "." + s.Sel.Name
		}
	}
	return ""
}

// TestMovedNames checks each row of the tables: the new name exists and is defined in
// the package that the row names; the name in sdk is an alias of it; and the old name is
