package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFieldsAreDocumented checks the exported fields of exported structs: each has a
// comment, above it or at the end of its line, that says more than its name. Fields that
// share a declaration share its comment. Structs on one line are not checked.
func TestFieldsAreDocumented(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"protocol", "protocol/tools", "protocol/view", "session", "policy", "agent", "supervisor", "runtime", "sdk", "inspect"} {
		files, err := filepath.Glob("../" + dir + "/*.go")
		require.NoError(t, err)
		require.NotEmpty(t, files, dir)
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			source := token.NewFileSet()
			file, err := parser.ParseFile(source, path, nil, parser.ParseComments)
			require.NoError(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if !ok {
					return true
				}
				if !spec.Name.IsExported() {
					return false
				}
				ast.Inspect(spec, func(n ast.Node) bool {
					fields, ok := n.(*ast.StructType)
					if !ok || source.Position(n.Pos()).Line == source.Position(n.End()).Line {
						return true
					}
					for _, f := range fields.Fields.List {
						if len(f.Names) > 0 && f.Names[0].IsExported() {
							says := f.Doc.Text() + f.Comment.Text()
							assert.NotEmpty(t, beyond(says, f.Names[0].Name),
								"%s: %s.%s: the comment says nothing: %q", source.Position(f.Pos()), spec.Name.Name, f.Names[0].Name, says)
						}
					}
					return true
				})
				return false
			})
		}
	}
}

// beyond returns the words of a comment that are not part of the name and are not
// function words such as "the".
func beyond(comment, name string) []string {
	var words []string
	for _, w := range strings.FieldsFunc(strings.ToLower(comment), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		switch w {
		case "a", "an", "the", "is", "are", "of", "for", "in", "its", "this", "that", "to", "and", "or":
		default:
			if !strings.Contains(strings.ToLower(name), strings.TrimSuffix(w, "s")) {
				words = append(words, w)
			}
		}
	}
	return words
}
