package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/sdk"
)

func TestOptionsPrintsTheMapping(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{"claude", "qoder"} {
		dir := filepath.Join("testdata", "options")
		w := newWorld()
		code := w.run("options", "--agent", agent, "--config", filepath.Join(dir, agent+".yaml"))
		require.Equal(t, exitOK, code, w.err.String())
		golden := filepath.Join(dir, agent+".txt")
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(w.out.String()), 0o600))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		assert.Equal(t, string(want), w.out.String(), "run go test ./cmd/troupe -update if this is meant")
		assert.NotContains(t, w.out.String(), "s3cr3t")
	}
}

func TestOptionsAsJSON(t *testing.T) {
	t.Parallel()
	w := newWorld()
	config := filepath.Join("testdata", "options", "claude.yaml")
	require.Equal(t, exitOK, w.run("options", "-a", "claude", "-o", "json", "--config", config, "--path", "/other/claude", "-m", "haiku",
		"--allowed-tools", "Glob", "--append-system-prompt", "Be loud.", "-e", "GONE=here"), w.err.String())
	var plan sdk.LaunchPreview
	require.NoError(t, json.Unmarshal([]byte(w.out.String()), &plan))
	assert.Equal(t, "/other/claude", plan.Path, "a flag wins over the file")
	assert.Empty(t, plan.Interpreter)
	assert.Contains(t, plan.Args, "--model=haiku")
	assert.Contains(t, plan.Args, "--allowedTools=Read,Bash(git *),Glob,Skill(pdf)", "rules add to those of the file")
	assert.Contains(t, string(plan.Initialize), `"Be loud."`)
	assert.Contains(t, plan.Env, sdk.PreviewVar{Name: "GONE", Value: sdk.Masked})
	assert.NotContains(t, w.out.String(), "s3cr3t")
}

func TestOptionsThatCannotWork(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	negative := filepath.Join(t.TempDir(), "negative.yaml")
	require.NoError(t, os.WriteFile(negative, []byte("maxTurns: -1\nauth: {type: qodercli}\n"), 0o600))
	require.NoError(t, os.WriteFile(bad, []byte("model: 3\nmaxturns: 1\n"), 0o600))
	for args, want := range map[string]string{
		"options --agent claude hello":                              "troupe options takes no prompt; leave it out",
		"options --agent qoder --config " + negative:                "option maxTurns in " + negative + " (qoder): is -1; the agent refuses to start; give 0 or more",
		"options --agent qoder --max-turns -1 --config " + negative: "option --max-turns (qoder): is -1",
		"options --agent qoder --fork-session --config " + negative: "option --fork-session (qoder): there is no session to fork, and the agent refuses to start; give --resume or --continue",
		"options --agent claude --config " + bad: bad + ":1:8: model is a number, and has to be a text; put it in quotes\n" +
			bad + ":2:1: maxturns is not known; did you mean maxTurns?",
		"run hi --config " + bad:                "",
		"options --agent claude --config /none": "load options: open /none: no such file or directory",
		"options --yes":                         "there is no flag --yes",
		"options --agent claude --config " + filepath.Join("testdata", "options", "qoder.yaml"): "option ",
	} {
		w := newWorld()
		assert.Equal(t, exitUsage, w.run(strings.Fields(args)...), args)
		assert.True(t, strings.HasPrefix(strings.NewReplacer("troupe: ", "", "\n        ", "\n").Replace(w.err.String()), want), "%s: %s", args, w.err.String())
		assert.Empty(t, w.out.String(), args)
	}
}

func TestRunTakesAConfiguration(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "o.yaml")
	require.NoError(t, os.WriteFile(config, []byte("allowedTools: [Bash]\nsystemPrompt: Be brief.\nmaxTurns: 9\n"), 0o600))
	s, err := parseRun(t, []string{"--config", config, "--max-turns", "3", "hi"})
	require.NoError(t, err)
	assert.Equal(t, []string{"Bash"}, s.opts.AllowedTools)
	assert.Equal(t, sdk.PromptText("Be brief."), s.opts.SystemPrompt)
	assert.Equal(t, sdk.Some(3), s.opts.MaxTurns)
	assert.Equal(t, []string{"hi"}, s.words)

	_, err = parseRun(t, []string{"--config", config, "--append-system-prompt", "x", "hi"})
	require.ErrorContains(t, err, "replaces it")

	w := newWorld()
	require.Equal(t, exitOK, w.run("run", "--agent", "scripted", "--config", config, "hi"), w.err.String())
}

func TestOptionsHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"options", "--help"}, {"help", "options"}} {
		w := newWorld()
		require.Equal(t, exitOK, w.run(args...))
		assert.Contains(t, w.out.String(), "Usage: troupe options")
		assert.NotContains(t, w.out.String(), "--yes")
	}
}

// After the word run, the plan is that of troupe run: with the agent's own system prompt, and
// with questions for permission.
func TestOptionsOfARun(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][]string{
		"options -a claude":                               {"system      empty", "warning     option --system-prompt: is not given, so it is empty"},
		"options -a qoder":                                {"system      the agent's own\n"},
		"options run -a claude fix it":                    {"system      the agent's own\n", "--permission-prompt-tool=stdio", "--include-partial-messages"},
		"options run -a claude --append-system-prompt hi": {"system      the agent's own, and after it:\n            hi\n", `"appendSystemPrompt": "hi"`},
		"options run -a claude --system-prompt hi":        {"system      hi\n"},
		"options -o json run -a claude -o stream-json":    {`"--permission-prompt-tool=stdio"`},
		"options run --help":                              {"Usage: troupe options"},
	} {
		w := newWorld()
		require.Equal(t, exitOK, w.run(strings.Fields(args)...), "%s: %s", args, w.err)
		for _, text := range want {
			assert.Contains(t, w.out.String(), text, args)
		}
		if strings.HasPrefix(args, "options run") || strings.Contains(args, "qoder") {
			assert.NotContains(t, w.out.String(), "option --system-prompt", args)
		}
	}
	for args, want := range map[string]string{
		"options -a claude run":  "troupe options takes no prompt",
		"options run --yes --no": "--yes and --no contradict each other",
		"options -q run":         "there is no flag",
	} {
		w := newWorld()
		code := w.run(strings.Fields(args)...)
		if want != "" {
			assert.Equal(t, exitUsage, code, args)
			assert.Contains(t, w.err.String(), want, args)
		}
	}
}
