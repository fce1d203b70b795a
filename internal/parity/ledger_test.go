package parity

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const document = `# Parity

| key | what |
|---|---|
| A | a source |

| id | name | source | here | state |
|---|---|---|---|---|
| ` + "`claude/option/a`" + ` | ` + "`a`" + ` | A 1 | ` + "`sdk.A`, `sdk.B.C`" + ` | closed: ` + "`sdk.TestA/a b`" + ` |
| ` + "`both/error/b`" + ` | ` + "`b`" + ` | A 2 | ` + "`sdk.B`" + ` | open: needs an account |
`

func TestParse(t *testing.T) {
	t.Parallel()
	l, err := Parse(document)
	require.NoError(t, err)
	assert.Equal(t, []Row{
		{ID: "claude/option/a", Name: "a", Source: "A 1", Symbols: []string{"sdk.A", "sdk.B.C"}, Test: "sdk.TestA/a b", line: 8},
		{ID: "both/error/b", Name: "b", Source: "A 2", Symbols: []string{"sdk.B"}, Reason: "needs an account", line: 9},
	}, l.Rows)
	assert.Equal(t, "b", l.Row("both/error/b").Name)
	assert.Nil(t, l.Row("both/error/c"))
	assert.Equal(t, "error           0 closed    1 open\noption          1 closed    0 open\nall             1 closed    1 open\n", Summary(l))

	for bad, why := range map[string]string{
		"| `x/option/a` | a | s | `sdk.A` | open: r |":       "is no id",
		"| `both/option/a b` | a | s | `sdk.A` | open: r |":  "is no id",
		"| `both/error/b` | a | s | `sdk.A` | open: r |":     "stands there twice",
		"| `both/error/c` | a | s | open: r |":               "4 columns",
		"| `both/error/c` | a | s | `sdk.A` | done |":        "neither closed",
		"| `both/error/c` | a | s | `sdk.A` | open: |":       "neither closed",
		"| `both/error/c` | a | s | | closed: `p.TestA` |":   "names no symbol",
		"| `both/error/c` | a | | `sdk.A` | closed: `p.T` |": "no source",
	} {
		_, err := Parse(document + bad + "\n")
		require.ErrorContains(t, err, why, bad)
		require.ErrorContains(t, err, "parity.md:11:")
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	covered := Covered{"claude/option/a": {"sdk.TestA/a b"}}
	l, err := Parse(document)
	require.NoError(t, err)
	assert.Empty(t, Check(l, covered))

	many := Covered{"claude/option/a": {"sdk.TestA/a b"}, "nobody/knows/this": {"sdk.TestB"}}
	for i := range MaxRows {
		many["x/"+strings.Repeat("y", i)] = []string{"sdk.TestB"}
	}
	for _, c := range []struct {
		covered Covered
		says    string
	}{
		{Covered{}, "claude/option/a is closed, and no test that passed covers it; it names sdk.TestA/a b"},
		{Covered{"claude/option/a": {"sdk.TestZ"}}, "claude/option/a names sdk.TestA/a b, and is covered by sdk.TestZ"},
		{Covered{"claude/option/a": {"sdk.TestA/a b"}, "both/error/b": {"sdk.TestB"}}, "both/error/b stands open (needs an account), and sdk.TestB covers it"},
		{many, "nobody/knows/this is covered by sdk.TestB, and the ledger has no such row"},
		{many, "sdk.TestB covers 11 rows; one test covers at most 10"},
	} {
		assert.Contains(t, Check(l, c.covered), c.says)
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Dir(path(root)), 0o700))
	require.NoError(t, os.WriteFile(path(root), []byte(document), 0o600))
	l, err := Read(root)
	require.NoError(t, err)
	covered := Covered{"claude/option/a": {"sdk.TestZ"}, "both/error/b": {"sdk.TestB"}}
	Update(l, covered)
	require.NoError(t, l.Write(root))
	again, err := Read(root)
	require.NoError(t, err)
	assert.Equal(t, "sdk.TestZ", again.Row("claude/option/a").Test)
	assert.Equal(t, "sdk.TestB", l.Row("both/error/b").Test)
	assert.Empty(t, l.Row("both/error/b").Reason)
}

// What is covered is what a test that passed has said.
func TestRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	none, err := ReadCovered(dir)
	require.NoError(t, err)
	assert.Empty(t, none)
	require.NoError(t, record(dir, "sdk.TestB", []string{"a/b/c", "a/b/d"}))
	require.NoError(t, record(dir, "sdk.TestA", []string{"a/b/c"}))
	require.NoError(t, record(dir, "sdk.TestA", []string{"a/b/c"}))
	c, err := ReadCovered(dir)
	require.NoError(t, err)
	assert.Equal(t, Covered{"a/b/c": {"sdk.TestA", "sdk.TestB"}, "a/b/d": {"sdk.TestB"}}, c)
	require.NoError(t, os.WriteFile(filepath.Join(dir, recordsFile), []byte("?\n"), 0o600))
	_, err = ReadCovered(dir)
	require.Error(t, err)
}
