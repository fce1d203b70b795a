package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func names(found []finding) (all []string) {
	for _, f := range found {
		all = append(all, f.pattern)
	}
	return all
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"Nobody reads it.":                                  {"nobody"},
		"the lock is held by whoever calls":                 {"nobody"},
		"A line that is no message is skipped.":             {"is none"},
		"\"\" if there\nwas none":                           {"is none"},
		"There is no limit. The call is no longer pending.": nil,
		"nil: nobody follows the session":                   {"nobody", "nil:"},
		"nil: none":                                         nil,
		"nil: no limit":                                     nil,
		"nil: none was sent":                                {"nil:"},
		"a goroutine of its own, and the user's own":        {"own", "own"},
		"the agent's own prompt":                            nil,
		"The router is told, and hears more.":               {"told", "told"},
		"The job goes on for ever.":                         {"goes on", "for ever"},
		"What it wrote stays.":                              {"clause"},
		"It ends. Whatever runs is killed.":                 {"clause"},
		"What does it do?":                                  nil,
		"kills what is left":                                {"clause"},
	} {
		assert.Equal(t, want, names(inText(text, 1)), text)
	}
}

func TestOnlyProseIsRead(t *testing.T) {
	t.Parallel()
	found, err := inGo([]byte("package p\n\n// A is\n// no B.\nvar nobody = \"nobody hears\" // nobody\n"))
	require.NoError(t, err)
	assert.Equal(t, []string{"is none", "nobody"}, names(found))
	assert.Equal(t, []int{3, 5}, []int{found[0].line, found[1].line})

	found = inMarkdown([]byte("A `nobody`.\n\n```go\n// nobody\n```\n\nA nobody.\n"))
	require.Equal(t, []string{"nobody"}, names(found))
	assert.Equal(t, 7, found[0].line)

	_, err = inGo([]byte("not Go"))
	require.Error(t, err)
}

func TestCountsOnlyFall(t *testing.T) {
	t.Parallel()
	ceiling, err := parse([]byte("# comment\n2 a own\n1 b is none\n1 gone told\n"))
	require.NoError(t, err)
	counts := table{{"own", "a"}: 3, {"is none", "b"}: 1}
	assert.Len(t, compare(counts, ceiling, false), 2, "one more in a, and gone has none")

	errs := compare(counts, ceiling, true)
	require.Len(t, errs, 1)
	require.ErrorContains(t, errs[0], `a: 3 times the pattern "own"`)
	require.ErrorContains(t, errs[0], "its own, a separate")
	assert.Equal(t, table{{"own", "a"}: 2, {"is none", "b"}: 1}, ceiling, "nothing rises, and gone is deleted")
	again, err := parse(ceiling.format())
	require.NoError(t, err)
	assert.Equal(t, ceiling, again)

	counts[key{"told", "new"}] = 1
	assert.Len(t, compare(counts, ceiling, true), 2, "a folder that is not in the table may have none")
	for _, bad := range []string{"x a own", "0 a own", "-1 a own", "1 a"} {
		_, err := parse([]byte(bad))
		assert.Error(t, err, bad)
	}
}
