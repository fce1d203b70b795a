package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func file(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// TestPageIsMadeByTheCommand makes the page again from the data in it. So nobody has changed a figure
// by hand, and the page is as this version of the command writes it.
func TestPageIsMadeByTheCommand(t *testing.T) {
	t.Parallel()
	text := file(t, "../../docs/benchmarks.md")
	r, err := read(text)
	require.NoError(t, err)
	again, err := page(r)
	require.NoError(t, err)
	assert.Equal(t, again, text)
	for _, f := range forms {
		assert.NotNil(t, r.Sections[f.name], "the page has every section")
	}
	assert.Contains(t, text, command)
}

// TestReadmeHasTheFiguresOfThePage compares the README's tables with the page.
func TestReadmeHasTheFiguresOfThePage(t *testing.T) {
	t.Parallel()
	text, readme := file(t, "../../docs/benchmarks.md"), file(t, "../../README.md")
	r, err := read(text)
	require.NoError(t, err)
	renewed, err := renew(readme, r)
	require.NoError(t, err)
	assert.Equal(t, renewed, readme)
	_, rest, _ := strings.Cut(readme, opening)
	table, after, _ := strings.Cut(rest, closing)
	figures := regexp.MustCompile(`[0-9][0-9.]* (s|ms|µs|KB|MB|GB)\b|×[0-9.]+`)
	found := figures.FindAllString(table, -1)
	assert.Greater(t, len(found), 20)
	for _, figure := range found {
		assert.Contains(t, text, figure)
	}
	before, _, _ := strings.Cut(readme, opening)
	assert.Empty(t, figures.FindAllString(before+after, -1), "figures of the README are in its tables")
	assert.LessOrEqual(t, strings.Count(readme, "\n"), 120, "lines of the README")
}

// TestCasesAreThoseOfMigration compares the cases with the rows of the table.
func TestCasesAreThoseOfMigration(t *testing.T) {
	t.Parallel()
	_, rest, found := strings.Cut(file(t, "../../docs/migration.md"), "\n### When something goes wrong\n")
	require.True(t, found)
	table, _, _ := strings.Cut(rest, "\n### ")
	var rows []string
	for _, m := range regexp.MustCompile(`(?m)^\| ([^|]+) \|.*\|$`).FindAllStringSubmatch(table, -1) {
		rows = append(rows, m[1])
	}
	require.Equal(t, "case", rows[0])
	var shown []string
	for _, c := range cases {
		shown = append(shown, c.shown)
	}
	assert.Equal(t, rows[1:], shown)
}

func TestFormat(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"12.3 µs": seconds.format(12.34e-6), "0.01 µs": seconds.format(1e-8), "1.50 ms": seconds.format(1.5e-3), "250 ms": seconds.format(0.25),
		"61.0 s": seconds.format(61), "0.50 KB": bytes.format(512), "1.00 MB": bytes.format(1 << 20), "2.50 GB": bytes.format(2.5 * (1 << 30)),
	} {
		assert.Equal(t, want, got)
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	assert.Equal(t, spread{2, 3, 4}, spreadOf([]float64{5, 1, 3, 2, 4}))
	assert.Equal(t, spread{1.25, 1.5, 1.75}, spreadOf([]float64{2, 1}))
	assert.Equal(t, spread{7, 7, 7}, spreadOf([]float64{7}))
	assert.Equal(t, []float64{2, 3}, ratios([]float64{2, 6, 1}, []float64{1, 2}), "rounds that both have")
}

// TestTable has a cell for everything that can happen to one.
func TestTable(t *testing.T) {
	t.Parallel()
	s := &section{Columns: []string{bareLoop, troupe, claudeSDK}, Rows: []row{
		{Name: "hook", Unit: seconds, Cells: []cell{{Rounds: []float64{1e-6, 1e-6, 2e-6}}, {Rounds: []float64{2e-6, 3e-6, 4e-6}}, {Note: "not measured"}}},
	}}
	assert.Equal(t, "| | bare Go loop | Troupe | Claude Agent SDK |\n|---|---|---|---|\n"+
		"| hook | 1.00 µs | 3.00 µs (×2.00, 2.00 to 2.50) | not measured |\n", s.table())
	r := &report{Sections: map[string]*section{calls: s}}
	assert.Contains(t, short(r), "| to answer a hook | 1.00 µs | 3.00 µs (×2.00) | not measured | |\n", "Qoder's column is empty")
}

func TestPageAndItsData(t *testing.T) {
	t.Parallel()
	r := &report{Date: "2026-01-02", Machine: machine{System: "plan9", Cores: 3}, Sections: map[string]*section{}, Missing: []string{"a -- b"}}
	text, err := page(r)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(text, "-->"), "the data does not end the comment")
	again, err := read(text)
	require.NoError(t, err)
	assert.Equal(t, r, again)
	_, err = read("# no data")
	require.ErrorContains(t, err, "no data")
	_, err = renew("# no table", r)
	require.ErrorContains(t, err, "no line")
	renewed, err := renew("a\n"+opening+"x -->\nold\n"+closing+"\nb\n", r)
	require.NoError(t, err)
	assert.Equal(t, "a\n"+opening+"x -->\n"+short(r)+closing+"\nb\n", renewed)
}

func TestWordsOfFaults(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "error: a/b 'c' d", ended(saw{Ended: withError, Error: "a|b `c`\nd"}, ""))
	assert.Equal(t, "looks like a normal end", ended(saw{Ended: withEnd}, ""))
	assert.Equal(t, "hangs for 3 s", ended(saw{Ended: never}, ""))
	assert.Equal(t, "interrupt, then stdin closed", leaving(saw{}, "interrupt\nstdin closed\n"))
	assert.Equal(t, "stdin closed, then SIGTERM", leaving(saw{}, "stdin closed\nSIGTERM\n"))
	assert.Equal(t, "an explicit deny", answered(saw{}, `answer success {"hookSpecificOutput":{"permissionDecision":"deny"}}`))
	assert.Equal(t, "an error as the answer", answered(saw{}, "answer error  it failed"))
	assert.Equal(t, "an answer without a decision", answered(saw{}, "answer success {}"))
	assert.Equal(t, "no answer in 3 s", answered(saw{}, "no answer\n"))
	assert.Equal(t, int64(17), after("left 17\n", "left"))
	assert.Zero(t, after("killed 17\n", "left"))
}
