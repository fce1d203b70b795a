package peers

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	pid, parent, used, err := parseStat("42 (a b) c) S 7 42 42 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 100 1 1\n")
	require.NoError(t, err)
	assert.Equal(t, 42, pid)
	assert.Equal(t, 7, parent)
	assert.Equal(t, time.Second, used, "time of its own and of its children that were reaped, in hundredths of a second")
	for _, bad := range []string{"", "42 S 7", "42 (a) S 7", "x (a) S 7 42 42 0 -1 4194560 1 2 3 4 10 20 30 40 20"} {
		_, _, _, err := parseStat(bad)
		require.Error(t, err, "%q", bad)
	}
}

func TestMegabytes(t *testing.T) {
	t.Parallel()
	const rollup = "5570-5571 rw-p 00000000 00:00 0 [rollup]\nRss:    4000 kB\nPss:                2048 kB\nPss_Dirty:  1 kB\n"
	assert.InDelta(t, 2, megabytes(rollup, "Pss"), 0)
	assert.Zero(t, megabytes("nothing", "Pss"))
	assert.Positive(t, available())
	own, err := os.ReadFile("/proc/self/smaps_rollup")
	if err == nil { // not on every kernel
		assert.Positive(t, megabytes(string(own), "Pss"))
	}
}

func TestWhy(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "npm error Error: no network", why("npm error throw\nnpm error Error: no network\nnpm error A complete log of this run can be found in: x\n"))
	assert.Equal(t, "the end", why("a\n\nthe end\n\n"))
	assert.Empty(t, why(""))
}

// asked is a request of an agent whose calls have brought so many results.
func asked(t *testing.T, s *modelapi.Server, prompt string, tools []string, results ...string) string {
	t.Helper()
	messages := []any{map[string]any{"role": "user", "content": prompt}}
	for i, text := range results {
		id := "toolu_" + strconv.Itoa(i)
		messages = append(messages,
			map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "tool_use", "id": id, "name": "x", "input": map[string]any{}}}},
			map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": id, "content": text}}})
	}
	offered := []any{}
	for _, name := range tools {
		offered = append(offered, map[string]any{"name": name})
	}
	body, err := json.Marshal(map[string]any{"model": "m", "messages": messages, "tools": offered})
	require.NoError(t, err)
	resp, err := http.Post(s.URL()+"/v1/messages", "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(answer)
}

func TestScript(t *testing.T) {
	t.Parallel()
	s, err := modelapi.Start(modelapi.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	for _, p := range all() {
		p.script(s, time.Second)
		prompt, tools := p.prompt("/d/1", ""), []string{"some"}
		s.Reset()
		_, _, err := seen(s.Requests(), []string{"/d/1"})
		require.ErrorContains(t, err, "no request", p.name)
		assert.Contains(t, asked(t, s, prompt, nil), "A title", p.name)
		first := asked(t, s, prompt, tools)
		assert.Contains(t, first, "/d/1/file.txt", p.name)
		_, _, err = seen(s.Requests(), []string{"/d/1"})
		require.ErrorContains(t, err, "1 of 3 calls", p.name)
		assert.Contains(t, asked(t, s, prompt, tools, fileText), "echo hi", p.name)
		assert.Contains(t, asked(t, s, prompt, tools, fileText, "hi\n"), lastText, p.name)
		traffic, sum, err := seen(s.Requests(), []string{"/d/1"})
		require.NoError(t, err, p.name)
		assert.Equal(t, 3, traffic[0].steps)
		assert.Less(t, traffic[0].firstBytes, sum)
		_, _, err = seen(s.Requests(), []string{"/d/1", "/d/2"})
		require.ErrorContains(t, err, "0 of 3 calls", "the other session has done nothing")
	}
}

func TestCallThatBringsNothing(t *testing.T) {
	t.Parallel()
	s, err := modelapi.Start(modelapi.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	p := all()[0]
	p.script(s, time.Second)
	asked(t, s, p.prompt("/d", ""), []string{"Read"})
	asked(t, s, p.prompt("/d", ""), []string{"Read"}, "no such tool")
	_, _, err = seen(s.Requests(), []string{"/d"})
	require.ErrorContains(t, err, `but "no such tool"; the agent offers [Read]`)
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	alone := func(name string, first, cpu time.Duration, bytes int) row {
		return row{name: name, kind: "a process each", runs: []ran{{n: 1, wanted: 1, figures: figures{first: first, cpu: cpu, firstBytes: bytes}}}}
	}
	shared := func(idle, busy float64, task time.Duration) []row {
		return []row{{name: ours, kind: "one process", sharing: &sharing{sessions: 50, idle: idle, busy: busy, task: task}}}
	}
	crush := alone("crush", 90*time.Millisecond, 100*time.Millisecond, 0)
	for name, c := range map[string]struct {
		alone  []row
		shared []row
		missed string
		says   string
	}{
		"held":        {[]row{alone(ours, 30*time.Millisecond, 0, 8192), crush}, shared(0.06, 0.3, 25*time.Millisecond), "", "held"},
		"no crush":    {[]row{alone(ours, time.Second, 0, 8192)}, shared(0, 0, time.Second), "", "not checked, without crush"},
		"not ours":    {[]row{crush}, nil, "", "was not measured"},
		"request":     {[]row{alone(ours, 0, 0, 8193)}, nil, "1 limits", "MISSED"},
		"idle":        {[]row{alone(ours, 0, 0, 1)}, shared(0.061, 0, 0), "1 limits", "MISSED"},
		"busy":        {[]row{alone(ours, 0, 0, 1)}, shared(0, 0.31, 0), "1 limits", "MISSED"},
		"late":        {[]row{alone(ours, 31*time.Millisecond, 0, 1), crush}, shared(0, 0, 0), "1 limits", "MISSED"},
		"busy CPU":    {[]row{alone(ours, time.Millisecond, 0, 1), crush}, shared(0, 0, 26*time.Millisecond), "1 limits", "MISSED"},
		"all at once": {[]row{alone(ours, time.Second, 0, 9000), crush}, shared(1, 1, time.Second), "5 limits", "MISSED"},
	} {
		var out strings.Builder
		err := verdict(&out, c.alone, c.shared)
		if c.missed == "" {
			require.NoError(t, err, "%s: %s", name, out.String())
		} else {
			require.ErrorContains(t, err, c.missed, name)
		}
		assert.Contains(t, out.String(), c.says, name)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	rows := []row{{name: "a", version: "1", kind: "a process each", runs: []ran{
		{n: 1, wanted: 1, figures: figures{wall: 12 * time.Second, first: 1500 * time.Millisecond, cpu: 5 * time.Millisecond, mb: 20, kb: 9.5, resident: true}},
		{n: 28, wanted: 64, figures: figures{wall: 250 * time.Millisecond, mb: 436}},
		{n: 2, wanted: 2},
	}}}
	assert.Equal(t, atOnceHead+"\n|---|---|---|---|---|---|---|---|\n"+
		"| a 1 | a process each | 1 | 12 s | 1.5 s | 5.0 ms | 20.0 MB (RSS) | 9.5 KB |\n"+
		"| a 1 | a process each | 28: no memory for 64 | 0.25 s | 0.0 ms | 0.0 ms | 436.0 MB | 0.0 KB |\n"+
		"| a 1 | a process each | 2 | 0.0 ms | 0.0 ms | 0.0 ms | too short to sample | 0.0 KB |\n", table(atOnceHead, rows))
}

// TestHost has two sessions in a process like that of the second table, over pipes.
func TestHost(t *testing.T) {
	t.Setenv("HOME", t.TempDir()) // commands read ~/.bashrc
	s, err := modelapi.Start(modelapi.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	p := all()[0]
	p.script(s, time.Second)
	b := bench{dir: t.TempDir(), server: s}
	sites, dirs, err := b.places(&p, 2, "")
	require.NoError(t, err)
	in, calls := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- host(in, out, s.URL()+"/v1", t.TempDir())
		_ = out.Close()
	}()
	client := &appServer{in: calls, ended: make(chan struct{}), turns: map[string]chan turn{}}
	go client.read(answers)
	require.NoError(t, client.tasks(t.Context(), sites))
	require.ErrorContains(t, client.task(t.Context(), "7", "x"), "no such thread")
	require.NoError(t, calls.Close())
	require.NoError(t, <-ended)
	_, _, err = seen(s.Requests(), dirs)
	require.NoError(t, err)
}
