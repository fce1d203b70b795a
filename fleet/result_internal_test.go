package fleet

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A journal may name every status of this release, and no other text.
func TestStatusesThatExist(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "result.go", nil, 0)
	require.NoError(t, err)
	n := 0
	ast.Inspect(file, func(node ast.Node) bool {
		v, ok := node.(*ast.ValueSpec)
		if ok && len(v.Values) == 1 {
			if kind, ok := v.Type.(*ast.Ident); ok && kind.Name == "Status" {
				text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				assert.NoError(t, err)
				assert.True(t, Status(text).known(), text)
				n++
			}
		}
		return true
	})
	assert.Greater(t, n, 15)
	for _, s := range []Status{"", "acc\x1b[2J", "accepted ", "Accepted"} {
		assert.False(t, s.known(), s)
	}
}
