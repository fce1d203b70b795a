package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every section of programs.txt can be read, and says each thing once.
func TestTheTableOfPrograms(t *testing.T) {
	t.Parallel()
	_, err := readPrograms(programsTable)
	require.NoError(t, err)
	all, err := sections(programsTable)
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, s := range all {
		paths := [][]string{{}}
		for _, names := range s.head {
			var longer [][]string
			for _, path := range paths {
				for _, name := range names {
					longer = append(longer, append(slices.Clone(path), name))
				}
			}
			paths = longer
		}
		for _, path := range paths {
			at := strings.Join(path, " ")
			assert.False(t, seen[at], "%s is there twice", at)
			seen[at] = true
			u := &usage{inner: programs()}
			for _, name := range path {
				assert.NotEmpty(t, name, at)
				u = u.inner[name]
				require.NotNil(t, u, at)
			}
			for i, kind := range u.operands {
				assert.True(t, i == len(u.operands)-1 || kind != "run" && kind != "shell" && kind != "rest", at)
			}
		}
		var names []string
		for _, a := range s.attributes {
			assert.NotContains(t, names, a.name, "%s", s.head)
			assert.NotEmpty(t, a.values, "%s %s", s.head, a.name)
			names = append(names, a.name)
		}
	}
	assert.Greater(t, len(seen), 300)
}

func TestTheTableOfAliases(t *testing.T) {
	t.Parallel()
	all, err := sections(aliasesTable)
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, s := range all {
		require.Len(t, s.head, 1)
		for _, program := range s.head[0] {
			for _, a := range s.attributes {
				for _, alias := range append([]string{a.name}, a.values...) {
					assert.False(t, seen[program+" "+alias], "%s %s is there twice", program, alias)
					seen[program+" "+alias] = true
				}
			}
		}
	}
	assert.Equal(t, "install", aliasOf("pnpm", "i"))
	assert.Equal(t, "add", aliasOf("git", "stage"))
	assert.Equal(t, "remove", aliasOf("npx", "remove"))
}

func TestATableThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for table, why := range map[string]string{
		"is: here":                          "line 1 of a table",
		"[x]\nnothing":                      "line 2 of a table",
		"[x]\n\t-v":                         "line 2 of a table",
		"[x\nis: here":                      "line 1 of a table",
		"[]":                                "line 1 of a table",
		"[x]\n\noption: -v":                 `[[x]]: there is no attribute "option"`,
		"[x y|z]\nis: her":                  `[[x] [y z]]: is has no value "her"`,
		"[x]\noperands: plane":              `operands has no value "plane"`,
		"[x]\noptions: v":                   `options: "v" is there twice, or no option`,
		"[x]\noptions: -v\n\t-a -v=":        `options: "-v=" is there twice, or no option`,
		"[x]\noptions: --v==":               `"--v=="`,
		"[x]\noptions: --v=y":               `"--v=y"`,
		"[x]\noptions: -v\nrun-options: -v": `run-options: "-v" is there twice`,
	} {
		_, err := readPrograms(table)
		assert.ErrorContains(t, err, why, "%q", table)
	}
}

// The sections of one program.
func TestASection(t *testing.T) {
	t.Parallel()
	all, err := readPrograms("# it\n[x|y]\nis: here\n\tlocal\noptions: -v -o= --color?\nrun-options: -e=\nwrite-options: -w\noperands: plain script\n\n[x z]\n")
	require.NoError(t, err)
	assert.Equal(t, &usage{
		options: map[string]option{
			"-v": {harmless, ""}, "-o": {harmless, "="}, "--color": {harmless, "?"}, "-e": {runsSomething, "="}, "-w": {writesFile, ""},
		},
		operands: []string{"plain", "script"}, traits: []string{"here", "local", "script"},
	}, all["y"])
	assert.Equal(t, map[string]*usage{"z": {}}, all["x"].inner)
	for word, want := range map[string]struct {
		does   effect
		value  string
		valued bool
	}{
		"-v": {harmless, "", false}, "-o": {harmless, "", true}, "-o=1": {harmless, "1", false}, "-o1": {harmless, "1", false}, "-vo": {harmless, "", true},
		"--color": {harmless, "", false}, "--color=x": {harmless, "x", false}, "-v=1": {unknown, "", false}, "--v": {unknown, "", false},
		"-ve": {runsSomething, "", true}, "-vw": {writesFile, "", false}, "-wex": {runsSomething, "x", false}, "-9": {unknown, "", false},
	} {
		does, value, valued := all["x"].option(word)
		assert.Equal(t, want, struct {
			does   effect
			value  string
			valued bool
		}{does, value, valued}, word)
	}
}

func BenchmarkReadPrograms(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, _ = readPrograms(programsTable)
	}
}
