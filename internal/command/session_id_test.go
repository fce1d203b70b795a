package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/runtime"
)

func TestSessionsByPrefix(t *testing.T) {
	t.Parallel()
	home, folder := newHome(t)
	const other = "5e55aaaa-0000-4000-8000-000000000001"
	raw, err := os.ReadFile(filepath.Join(folder, restSecond+".jsonl"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, other+".jsonl"), []byte(strings.ReplaceAll(string(raw), restSecond, other)), 0o600))
	for name, c := range map[string]struct {
		args   []string
		code   int
		out    string
		err    []string
		absent string
	}{
		"show":                 {[]string{"show", "5e55a"}, exitOK, "user: another\n", nil, ""},
		"in capitals":          {[]string{"show", "5E55A"}, exitOK, "user: another\n", nil, ""},
		"export":               {[]string{"export", "5e55aaaa-00"}, exitOK, "# Session", nil, ""},
		"rename":               {[]string{"rename", "5e55a", "x"}, exitOK, "", nil, ""},
		"tag":                  {[]string{"tag", "5e55a", "x"}, exitOK, "", nil, ""},
		"several":              {[]string{"fork", "5e55"}, exitUsage, "", []string{"3 sessions have an id that begins with 5e55; write more of it:", restFirst + "  20", restSecond, other}, ""},
		"several, fewer":       {[]string{"delete", "5e550000", "--yes"}, exitUsage, "", []string{"2 sessions have an id", restFirst, restSecond}, other},
		"none":                 {[]string{"show", "abcd"}, exitResult, "", []string{"it must be a UUID"}, ""},
		"too short":            {[]string{"delete", "5e5", "--yes"}, exitResult, "", []string{"it must be a UUID"}, ""},
		"the id of no session": {[]string{"show", "5e55aaaa-0000-4000-8000-000000000002"}, exitResult, "", []string{"not found"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.getenv = home.getenv
			assert.Equal(t, c.code, w.run(append([]string{"sessions"}, c.args...)...), w.err)
			assert.True(t, strings.HasPrefix(w.out.String(), c.out), w.out)
			for _, text := range c.err {
				assert.Contains(t, w.err.String(), text)
			}
			if c.absent != "" {
				assert.NotContains(t, w.err.String(), c.absent)
			}
		})
	}
}

// The id of --resume is completed among the sessions of the directory.
func TestResumeByPrefix(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	home := t.TempDir()
	folder := filepath.Join(home, "projects", strings.NewReplacer("/", "-", "_", "-", ".", "-").Replace(dir))
	require.NoError(t, os.MkdirAll(folder, 0o700))
	for _, id := range []string{restFirst, restSecond, "5e55aaaa-0000-4000-8000-000000000001"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, id+".jsonl"),
			[]byte(`{"type":"user","uuid":"00000000-0000-4000-8000-000000000001","parentUuid":null,"message":{"role":"user","content":"hi"},"sessionId":"`+id+`","cwd":"`+dir+`","timestamp":"2026-11-22T00:00:00.000Z"}`+"\n"), 0o600))
	}
	missing := filepath.Join(t.TempDir(), "no-agent")
	for id, want := range map[string]struct {
		code int
		says string
	}{
		"5e550":    {exitUsage, "2 sessions have an id that begins with 5e550"},
		"5e55a":    {exitStart, "no-agent"},
		"a title":  {exitStart, "no-agent"},
		restSecond: {exitStart, "no-agent"},
	} {
		for _, command := range []string{"run", "chat"} {
			w := newWorld()
			args := []string{command, "-a", "claude", "--path", missing, "-C", dir, "-e", "CLAUDE_CONFIG_DIR=" + home, "--resume", id}
			if command == "run" {
				args = append(args, "go")
			}
			assert.Equal(t, want.code, w.run(args...), "%s: %s", id, w.err)
			assert.Contains(t, w.err.String(), want.says)
		}
	}
	s, err := parseRun(t, []string{"-a", "claude", "-C", dir, "-e", "CLAUDE_CONFIG_DIR=" + home, "--resume", "5e55a", "go"})
	require.NoError(t, err)
	err = s.chooseAgent(func(string) string { return "" })
	require.NoError(t, err)
	require.NoError(t, s.completeResume(t.Context()))
	assert.Equal(t, "5e55aaaa-0000-4000-8000-000000000001", s.opts.Resume)
	for _, args := range [][]string{
		{"-a", "embedded", "--model", "http://localhost:1/v1#m", "-C", dir},
		{"-a", "demo"}, // its directories are temporary
	} {
		s, err := parseRun(t, append(args, "-e", "TROUPE_EMBEDDED_DIR="+home, "--resume", "5e55a", "go"))
		require.NoError(t, err)
		require.NoError(t, s.chooseAgent(func(string) string { return "" }))
		require.NoError(t, s.completeResume(t.Context()))
		assert.Equal(t, "5e55aaaa-0000-4000-8000-000000000001", s.opts.Resume, args)
	}
}

func TestPsByPrefix(t *testing.T) {
	t.Parallel()
	host := func(ids ...string) *inspect.Report {
		r := &inspect.Report{}
		for _, id := range ids {
			r.Tree.Sessions = append(r.Tree.Sessions, runtime.SessionTree{ID: id})
		}
		return r
	}
	reports := []*inspect.Report{host("ab1", "ab12", "cd"), host("cd", "ab2")}
	for id, want := range map[string][2]int{"ab1": {1, 0}, "ab12": {1, 0}, "c": {2, 0}, "cd": {2, 0}, "ab": {3, 3}, "x": {0, 0}, "": {0, 0}} {
		found, several := sessionsOf(reports, id)
		assert.Len(t, found, want[0], id)
		assert.Len(t, several, want[1], id)
	}
}
