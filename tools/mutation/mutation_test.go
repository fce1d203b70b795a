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

func TestFound(t *testing.T) {
	t.Parallel()
	for out, want := range map[string][2]string{
		"    reach_test.go:12: answered-once: agent#1 got 2 answers\n\n seed 6, after 7 histories, in 8 steps": {"7", "answered-once"},
		"    fleet_test.go:9: one-cut: \"4 -> 2: x\"\n\n seed 3, after 4 histories, in 9 steps":                {"4", "one-cut"},
		"simtests: TestPlantedBugs, seed 9, token sim1-9\nno step in 5s":                                       {"10", "watchdog"},
		"panic: oh\n\ngoroutine 213 [running, synctest bubble 11]:\n":                                          {"11", "panic"},
		"signal: killed": {"?", "the end of the test's process"},
	} {
		took, by := mutation.Found(out)
		assert.Equal(t, want, [2]string{took, by}, out)
	}
}
