package fleet

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/acp/acpclient"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// A directory that agents cannot write is one error at the start, where they would write there.
func TestADirectoryThatAgentsCannotWrite(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	program := sdk.Claude(sdk.ClaudeConfig{})
	for name, c := range map[string]struct {
		opts sdk.Options
		env  map[string]string
		want string
	}{
		"a home that is a file":        {sdk.Options{Backend: program}, map[string]string{"HOME": file}, file},
		"below a file":                 {sdk.Options{Backend: program}, map[string]string{"HOME": filepath.Join(file, "home")}, file},
		"a directory by a variable":    {sdk.Options{Backend: program}, map[string]string{"CLAUDE_CONFIG_DIR": file}, file},
		"Qoder":                        {sdk.Options{Backend: sdk.Qoder(sdk.QoderConfig{})}, map[string]string{"QODER_CONFIG_DIR": file}, file},
		"shared, with a key":           {sdk.Options{Backend: program, Isolation: session.IsolationShared}, map[string]string{"HOME": file, "ANTHROPIC_API_KEY": "k"}, file},
		"a key":                        {sdk.Options{Backend: program}, map[string]string{"HOME": file, "ANTHROPIC_API_KEY": "k"}, ""},
		"private":                      {sdk.Options{Backend: program, Isolation: session.IsolationPrivate}, map[string]string{"HOME": file}, ""},
		"nothing is stored":            {sdk.Options{Backend: program, PersistSession: sdk.Some(false)}, map[string]string{"HOME": file}, ""},
		"in memory":                    {sdk.Options{Backend: scripted.New()}, map[string]string{"HOME": file}, ""},
		"another agent":                {sdk.Options{Backend: acpclient.Backend("x")}, map[string]string{"HOME": file}, ""},
		"a home that is there":         {sdk.Options{Backend: program}, map[string]string{"HOME": t.TempDir()}, ""},
		"a home that is not there yet": {sdk.Options{Backend: program}, map[string]string{"HOME": filepath.Join(t.TempDir(), "a", "b")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.opts.Cwd, c.opts.CleanEnv, c.opts.Env = "/", true, c.env
			err := (&Job{Options: &c.opts}).ready()
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.Len(t, sdk.ConfigErrors(err), 1)
			assert.ErrorContains(t, err, c.want)
		})
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".troupe-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestALimitOfOpenFiles(t *testing.T) {
	t.Parallel()
	program := &sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{})}
	for name, c := range map[string]struct {
		job   Job
		limit uint64
		want  string
	}{
		"enough":      {Job{Concurrency: 4, Options: program}, 1024, ""},
		"just enough": {Job{Concurrency: 2, Options: program}, 42, ""},
		"too few":     {Job{Concurrency: 32, Options: program}, 64, "the limit of open files is 64, and 32 tasks at a time need about 222: raise it (ulimit -n 222), or run at most 5 at a time"},
		"far too few": {Job{Concurrency: 32, Options: program}, 20, "the limit of open files is 20, and 32 tasks at a time need about 222: raise it (ulimit -n 222), or run at most 1 at a time"},
		"a pace":      {Job{Pace: &Pace{Ceiling: 10}, Options: program}, 64, "the limit of open files is 64, and up to 10 tasks at a time need about 90: raise it (ulimit -n 90), or run at most 5 at a time"},
		"not known":   {Job{Concurrency: 32, Options: program}, 0, ""},
		"in memory":   {Job{Concurrency: 32, Options: &sdk.Options{Backend: scripted.New()}}, 64, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, c.job.tight(c.limit))
		})
	}
}

// The end of an attempt is told once, and what it interrupted is still there for errors.As.
func TestACutIsToldOnce(t *testing.T) {
	t.Parallel()
	err := error(&cut{&timeLimit{5}, &sdk.ExitError{During: "a turn"}})
	assert.Equal(t, "the attempt took longer than 5ns (timeout)", err.Error())
	assert.ErrorAs(t, err, new(*timeLimit))
	assert.ErrorAs(t, err, new(*sdk.ExitError))
}
