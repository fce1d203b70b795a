package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
		file, err := parser.ParseFile(token.NewFileSet(), path.Join(dir, e.Name()), nil, 0)
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
// gone, or is an alias.
func TestMovedNames(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("moved.md")
	require.NoError(t, err)
	packages := map[string]map[string]string{}
	lookUp := func(qualified string) (alias string, ok bool) {
		i := strings.LastIndex(qualified, ".")
		dir, name := qualified[:i], qualified[i+1:]
		if packages[dir] == nil {
			packages[dir] = declarations(t, "../"+dir)
		}
		alias, ok = packages[dir][name]
		return alias, ok
	}
	before, rest, _ := strings.Cut(string(raw), keptNames)
	_, rest, _ = strings.Cut(rest, "\n## ")
	document := before + rest
	rows := regexp.MustCompile("(?m)^\\| (`.*`) \\| `([^`]*)` \\| (-|`[^`]*`) \\|$").FindAllStringSubmatch(document, -1)
	assert.Len(t, rows, strings.Count(document, "\n| `"), "a row that is not read")
	listed := map[string]bool{}
	for _, row := range rows {
		is, inSDK := row[2], strings.Trim(row[3], "`")
		alias, ok := lookUp(is)
		assert.True(t, ok && alias == "", "%s is defined there", is)
		listed[is] = true
		for was := range strings.SplitSeq(row[1], ", ") {
			if was = strings.Trim(was, "`"); inSDK == "-" && strings.HasPrefix(was, "sdk.") {
				_, ok := lookUp(was)
				assert.False(t, ok, "%s is not gone", was)
			}
			if alias, ok := lookUp(was); ok {
				assert.Equal(t, is, alias, "%s is still defined there", was)
			}
		}
		if inSDK == "-" {
			continue
		}
		name, function := strings.CutSuffix(inSDK, "()")
		if alias, ok := lookUp("sdk." + name); assert.True(t, ok, "sdk.%s", name) && !function && is != "sdk."+name {
			assert.Equal(t, is, alias, "sdk.%s", name)
		}
	}
	for name, alias := range declarations(t, "../sdk") {
		if strings.HasPrefix(alias, "session.") {
			assert.True(t, listed[alias], "no row for sdk.%s, which is %s", name, alias)
		}
	}
}
