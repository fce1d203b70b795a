package sdk_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// itself is a wrapper that starts this program, which plays the agent.
func itself(t *testing.T, seen *session.Command) func(*session.Command) []string {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	return func(c *session.Command) []string {
		*seen = *c
		c.Env = append(c.Env, agentEnv+"=1")
		return append([]string{program}, c.Args...)
	}
}

func TestSpawnThroughAnotherCommand(t *testing.T) {
	t.Parallel()
	var seen session.Command
	start := itself(t, &seen)
	removed := 0
	o := &sdk.Options{
		Backend: sdk.Claude(sdk.ClaudeConfig{}), Model: "opus", UnsetEnv: []string{"CLAUDE_CODE_EXECUTABLE"},
		Spawner: sdk.SpawnThrough(func(c *session.Command) ([]string, func(context.Context) error, error) {
			return start(c), func(context.Context) error { removed++; return nil }, nil
		}),
	}
	r, err := sdk.Run(t.Context(), "hello", o)
	require.NoError(t, err)
	assert.NotEmpty(t, r.Result)
	assert.Equal(t, 1, removed, "once, at the end")
	assert.Equal(t, "claude", seen.Argv()[0])
	assert.Subset(t, seen.Argv(), []string{"--model=opus"})
}

func TestWhatIsNotRemovedIsAnErrorOfTheClose(t *testing.T) {
	t.Parallel()
	var seen session.Command
	start := itself(t, &seen)
	stuck := errors.New("the container is stuck")
	c := sdk.NewClient(&sdk.Options{
		Backend: sdk.Claude(sdk.ClaudeConfig{}),
		Spawner: sdk.SpawnThrough(func(c *session.Command) ([]string, func(context.Context) error, error) {
			return start(c), func(context.Context) error { return stuck }, nil
		}),
	})
	require.NoError(t, c.Connect(t.Context()))
	require.ErrorIs(t, c.Close(context.Background()), stuck)
}

func TestSpawnThroughThatFails(t *testing.T) {
	t.Parallel()
	odd := errors.New("odd")
	for name, c := range map[string]struct {
		argv []string
		err  error
		says string
	}{
		"an error":        {nil, odd, "odd"},
		"nothing":         {nil, nil, "no command line"},
		"no such program": {[]string{"troupe-no-such-program", "-x"}, nil, "troupe-no-such-program"},
		"no such path":    {[]string{filepath.Join(t.TempDir(), "none")}, nil, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			removed := 0
			_, err := sdk.Run(t.Context(), "hi", &sdk.Options{
				Backend: sdk.Claude(sdk.ClaudeConfig{}),
				Spawner: sdk.SpawnThrough(func(*session.Command) ([]string, func(context.Context) error, error) {
					return c.argv, func(context.Context) error { removed++; return nil }, c.err
				}),
			})
			require.ErrorAs(t, err, new(*sdk.StartError))
			require.ErrorContains(t, err, c.says)
			if c.err != nil {
				require.ErrorIs(t, err, c.err)
			}
			assert.Equal(t, 1, removed)
		})
	}
}

func TestArgvOfACommand(t *testing.T) {
	t.Parallel()
	file := session.File{Name: "settings.json"}
	for _, c := range []struct {
		command session.Command
		want    []string
	}{
		{session.Command{Names: []string{"claude", "claude.exe"}, Args: []string{"-p"}}, []string{"claude", "-p"}},
		{session.Command{Path: "/opt/claude", Names: []string{"claude"}}, []string{"/opt/claude"}},
		{session.Command{Interpreter: []string{"node"}, Path: "cli.js", Args: []string{file.Placeholder()}}, []string{"node", "cli.js", "{{file:settings.json}}"}},
	} {
		assert.Equal(t, c.want, c.command.Argv())
	}
}
