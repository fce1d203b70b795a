package conformance_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance"
)

func TestVersionsAreReleases(t *testing.T) {
	t.Parallel()
	for _, agent := range []conformance.Agent{conformance.Claude, conformance.ClaudeOlder, conformance.Qoder} {
		assert.Regexp(t, `^\d+\.\d+\.\d+$`, agent.Version(), agent)
	}
	assert.NotEqual(t, conformance.Claude.Version(), conformance.ClaudeOlder.Version())
}

func TestOfflineEnvLeaksNothing(t *testing.T) {
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "secret")
	env := conformance.OfflineEnv("http://127.0.0.1:1", "/scratch")
	assert.Contains(t, env, "HOME=/scratch")
	assert.Contains(t, env, "ANTHROPIC_BASE_URL=http://127.0.0.1:1")
	assert.NotContains(t, env, "ANTHROPIC_AUTH_TOKEN=secret")
}

func TestCLITakesTheNamedProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claude")
	require.NoError(t, os.WriteFile(path, nil, 0o700))
	t.Setenv("TROUPE_CLAUDE_OLDER_CLI", path)
	assert.Equal(t, path, conformance.ClaudeOlder.CLI(t))
}

// The three ways of not finding a CLI end a test, so each plays out in a test
// process of its own.
func TestCLIWithoutAProgram(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the cache is looked for under XDG_CACHE_HOME")
	}
	for name, tc := range map[string]struct {
		env    []string
		failed bool
		says   string
	}{
		"absent":         {nil, false, "NOT RUN"},
		"required":       {[]string{conformance.EnvMode + "=require"}, true, "NOT RUN"},
		"named, missing": {[]string{"TROUPE_CLAUDE_CLI=/nosuch/claude"}, true, "/nosuch/claude"},
		"named, a dir":   {[]string{"TROUPE_CLAUDE_CLI=/"}, true, "not an executable file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-test.v")
			cmd.Env = append([]string{"TROUPE_CONFORMANCE_CHILD=1", "HOME=" + t.TempDir()}, tc.env...)
			out, err := cmd.CombinedOutput()
			assert.Equal(t, tc.failed, err != nil, "%s", out)
			assert.Contains(t, string(out), tc.says)
		})
	}
}

func TestChild(t *testing.T) {
	t.Parallel()
	if os.Getenv("TROUPE_CONFORMANCE_CHILD") == "" {
		return // only a test process of the test above plays it
	}
	conformance.Claude.CLI(t)
	t.Error("found a CLI where there is none")
}
