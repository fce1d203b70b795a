package main

import (
	"context"
	"errors"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/bench/internal/fast"
)

func TestMain(m *testing.M) {
	if os.Getenv(roleEnv) != "" || os.Getenv(fast.RoleEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func file(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// TestPageIsMadeByTheCommand makes the page again from the data in it. A figure that was changed by hand
// fails it, and so does a page of an older version of the command.
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

// TestFaultsOfTroupe plays each case with this library. Each has one outcome that the tables promise.
func TestFaultsOfTroupe(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("processes are ended for sure on Linux only")
	}
	hosts, err := findHosts(t.Context(), t.TempDir(), false)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	b := &bench{self: self, hosts: hosts}
	want := map[string]string{
		fast.Exits: "error: agent AGENT ended during a turn: exit code 0", fast.Null: "the turn has its result", fast.Leaves: "the process is killed",
		fast.Mute: "error: initialize: no answer within 1s (set by Limits.Initialize)", fast.Twice: "the callback runs once",
		fast.Asks: "an explicit deny", fast.Hooked: "an explicit deny", fast.Streams: "interrupt, then stdin closed",
		fast.Env: "the agent has `PATH`", fast.Args: "not on the command line",
	}
	require.Len(t, want, len(cases))
	for _, c := range cases {
		t.Run(c.fault, func(t *testing.T) {
			t.Parallel()
			seen, report, err := b.provoke(t.Context(), hosts[1], c.fault)
			require.NoError(t, err)
			assert.Equal(t, want[c.fault], c.words(seen, report))
		})
	}
	t.Run(fast.Dies, func(t *testing.T) {
		t.Parallel()
		for name, ended := range map[string]string{fast.Dies: withError, recovers + fast.Dies: withResult} {
			seen, report, err := b.provoke(t.Context(), hosts[1], name)
			require.NoError(t, err)
			assert.Equal(t, ended, seen.Ended, "%s: %s", name, seen.Error)
			assert.Greater(t, seen.At, after(report, fast.Killed))
		}
	})
}

// TestMissingAndFailing has a host that is not installed, and one that fails in the second round.
func TestMissingAndFailing(t *testing.T) {
	t.Parallel()
	b := &bench{report: &report{Sections: map[string]*section{}}}
	hosts := []*host{{name: bareLoop}, {name: claudeSDK, err: errors.New("not installed")}, {name: qoderSDK}}
	rounds := 0
	measure := func(_ context.Context, h *host) ([]float64, error) {
		if h.name == bareLoop {
			rounds++
		}
		if h.err != nil {
			return nil, h.err
		}
		if h.name == qoderSDK && rounds == 2 {
			return nil, errors.New("it broke")
		}
		return []float64{float64(rounds), 0}, nil
	}
	require.NoError(t, b.table(t.Context(), calls, hosts, []row{{Name: "hook"}, {Name: "heap"}}, 3, measure))
	s := b.report.Sections[calls]
	assert.Equal(t, []row{
		{Name: "hook", Cells: []cell{{Rounds: []float64{1, 2, 3}}, {Note: "not measured"}, {Note: "not measured"}}},
		{Name: "heap", Cells: []cell{{Note: "not known here"}, {Note: "not measured"}, {Note: "not measured"}}},
	}, s.Rows)
	assert.Equal(t, []string{"Claude Agent SDK: not installed", "Qoder SDK, hook: it broke"}, b.report.Missing)
	assert.Equal(t, " Rounds: 3.", s.rounds())
	own := []*host{{name: troupe}}
	err := b.table(t.Context(), starts, own, []row{{Name: "x"}}, 1, func(context.Context, *host) ([]float64, error) { return nil, errors.New("it broke") })
	require.ErrorContains(t, err, "it broke", "a failure of this library is one of the program")
}
