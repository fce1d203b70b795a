package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
)

// scripts returns the yaml tags of the structs of package scripted, and the types of the
// steps by their keys.
func scripts(t *testing.T) (tags map[string][]string, kinds map[string]string) {
	t.Helper()
	tags, kinds = map[string][]string{}, map[string]string{}
	files, err := filepath.Glob("../agent/scripted/*.go")
	require.NoError(t, err)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					for _, f := range s.Fields.List {
						if f.Tag == nil {
							continue
						}
						text, err := strconv.Unquote(f.Tag.Value)
						require.NoError(t, err)
						if key := reflect.StructTag(text).Get("yaml"); key != "" {
							tags[n.Name.Name] = append(tags[n.Name.Name], key)
						}
					}
				}
			case *ast.FuncDecl:
				if n.Name.Name == "stepKinds" {
					stepTypes(t, n, kinds)
				}
			}
			return true
		})
	}
	return tags, kinds
}

func stepTypes(t *testing.T, fn *ast.FuncDecl, kinds map[string]string) {
	ast.Inspect(fn, func(n ast.Node) bool {
		pair, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		key, err := strconv.Unquote(pair.Key.(*ast.BasicLit).Value)
		require.NoError(t, err)
		switch v := pair.Value.(type) {
		case *ast.CallExpr: // Text("")
			kinds[key] = v.Fun.(*ast.Ident).Name
		case *ast.UnaryExpr: // &ToolUse{}
			kinds[key] = v.X.(*ast.CompositeLit).Type.(*ast.Ident).Name
		}
		return false
	})
}

// scripted.md names every key of a script, in the section of its type, and has no other.
func TestScriptedNamesEveryKey(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("scripted.md")
	require.NoError(t, err)
	sections := map[string]string{}
	for _, s := range regexp.MustCompile(`(?m)^##+ `).Split(string(text), -1)[1:] {
		name, body, _ := strings.Cut(s, "\n")
		sections[name] = body
	}
	tags, kinds := scripts(t)
	require.Len(t, kinds, 27)
	types := map[string]string{"Script": "Script", "Turn": "Turn", "Misbehave": "Misbehaviour", "Initialize": "InitializeFault", "Die": "Die", "Child": "Child"}
	maps.Copy(types, kinds)
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\|")
	for section, name := range types {
		body, ok := sections[section]
		if !assert.True(t, ok, "scripted.md has no section %q", section) {
			continue
		}
		assert.Contains(t, body, "```yaml", "section %s has no example", section)
		var named []string
		for _, m := range row.FindAllStringSubmatch(body, -1) {
			named = append(named, m[1])
		}
		assert.ElementsMatch(t, tags[name], named, "keys of %s in section %s", name, section)
		delete(tags, name)
	}
	assert.Empty(t, tags, "types without a section")
}

func TestScriptedExamplesParse(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("scripted.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(blocks), 30)
	for _, b := range blocks {
		_, err := scripted.Parse([]byte(b[1]))
		assert.NoError(t, err, b[1])
	}
}
