package mutation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/tools/mutation"
)

func TestParse(t *testing.T) {
	t.Parallel()
	all, err := mutation.Parse("x.txt", "# a remark\n\na/b/c\nf.go\n- old\n+ new\n\n\na/b/d\ng.go\n- x\n+ y\n")
	require.NoError(t, err)
	assert.Equal(t, []mutation.Mutation{{"a/b/c", "f.go", "old", "new"}, {"a/b/d", "g.go", "x", "y"}}, all)
	for _, bad := range []string{"a\nf\n- o\n", "a\nf\no\n+ n\n", "a\nf\n+ n\n- o\n"} {
		_, err := mutation.Parse("x.txt", bad)
		assert.Error(t, err, bad)
	}
	_, err = all[0].Apply("old old")
	assert.Error(t, err)
	_, err = all[0].Apply("")
	assert.Error(t, err)
}
