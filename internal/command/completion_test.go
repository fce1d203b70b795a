package command

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// completed are the completions of a command line, and the rule that its shell gets.
func completed(t *testing.T, w *world, words ...string) (names []string, rule string) {
	t.Helper()
	require.Equal(t, exitOK, w.run(append([]string{"__completeNoDesc"}, words...)...), w.err.String())
	lines := strings.Split(strings.TrimSpace(w.out.String()), "\n")
	return lines[:len(lines)-1], lines[len(lines)-1]
}

const (
	nothingElse = ":4"  // no files
	someFiles   = ":0"  // files, if nothing fits
	byEnding    = ":8"  // files with these endings
	onlyFolders = ":16" // folders
)

func TestCompletions(t *testing.T) {
	t.Parallel()
	jobDir := t.TempDir()
	for result, err := range fleet.Run(t.Context(), fleet.Job{
		Out: jobDir, Options: &sdk.Options{Backend: scripted.New()},
		Tasks: []fleet.Task{{ID: "first", Prompt: "a"}, {ID: "second", Prompt: "b"}},
	}) {
		require.NoError(t, err)
		require.True(t, result.OK())
	}
	for line, want := range map[string]struct {
		names string // with a space between them; those after … are not all
		rule  string
	}{
		"ru":                             {"run", nothingElse},
		"sessions f":                     {"fork", nothingElse},
		"run --perm":                     {"--permission-mode", nothingElse},
		"run --agent ":                   {"added claude qoder embedded demo scripted acp:", nothingElse},
		"run -a cl":                      {"claude", nothingElse},
		"run --output=s":                 {"stream-json", nothingElse},
		"options -o ":                    {"text json", nothingElse},
		"run --config ":                  {"", someFiles},
		"run --cwd ":                     {"", onlyFolders},
		"run --timeout ":                 {"", nothingElse},
		"run a prompt ":                  {"", nothingElse},
		"batch ":                         {"yaml yml json jsonl csv txt", byEnding},
		"batch --workspace w":            {"worktree", nothingElse},
		"completion ":                    {"bash zsh fish powershell", nothingElse},
		"help app":                       {"approvals", nothingElse},
		"ctl ":                           {"", onlyFolders},
		"ctl JOB re":                     {"results resume retune requeue", nothingElse},
		"ctl JOB requeue ":               {"first second", nothingElse},
		"ctl JOB requeue first ":         {"second", nothingElse},
		"ctl JOB cancel ":                {"", nothingElse},
		"ctl JOB requeue --status ac":    {"accepted", nothingElse},
		"approvals JOB ":                 {"list allow deny ask", nothingElse},
		"approvals JOB allow ":           {"", nothingElse},
		"ctl /there/is/no/job cancel ":   {"", nothingElse},
		"sessions show --store /none ":   {"", nothingElse},
		"sessions export ID --format ht": {"html", nothingElse},
	} {
		w := newWorld()
		w.agents = []Agent{{Name: "added", Backend: func(string) (session.Backend, error) { return scripted.New(), nil }}}
		names, rule := completed(t, w, strings.Split(strings.ReplaceAll(line, "JOB", jobDir), " ")...)
		assert.Equal(t, strings.Fields(want.names), slices.DeleteFunc(names, func(n string) bool { return n == "" }), line)
		assert.Equal(t, want.rule, rule, line)
	}
}

// Stored sessions are completed by their ids, with their titles.
func TestCompletionsOfSessions(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	const id = "0193a000-0000-4000-8000-000000000001"
	dir := filepath.Join(home, ".claude", "projects", "-work")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, id+".jsonl"), []byte(`{"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user","content":"mend the gate"},"uuid":"0193a000-0000-4000-8000-000000000002","timestamp":"2026-11-22T00:00:00.000Z","cwd":"/work","sessionId":"`+id+`"}`+"\n"), 0o600))
	for line, want := range map[string]string{
		"__complete sessions show ":         id + "\tmend the gate\n:4\n",
		"__complete sessions show 02":       ":4\n",
		"__completeNoDesc sessions fork 01": id + "\n:4\n",
		"__complete sessions list ":         ":4\n",
	} {
		w := newWorld()
		w.getenv = func(name string) string { return map[string]string{"HOME": home}[name] }
		require.Equal(t, exitOK, w.run(strings.Split(line, " ")...))
		assert.Equal(t, want, w.out.String(), line)
	}
}

// The scripts are those of a shell, where it is installed.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range shells() {
		w := newWorld()
		require.Equal(t, exitOK, w.run("completion", shell), w.err.String())
		script := w.out.String()
		assert.Contains(t, script, "__complete", shell)
		if path, err := exec.LookPath(shell); err == nil && shell != "powershell" {
			cmd := exec.CommandContext(context.Background(), path, "-n", "/dev/stdin") //nolint:usetesting // it ends by itself
			cmd.Stdin = strings.NewReader(script)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s: %s", shell, out)
		}
	}
	w := newWorld()
	assert.Equal(t, exitUsage, w.run("completion", "csh"))
	assert.Equal(t, "troupe: troupe completion takes one shell; write one of bash, zsh, fish, powershell\n", w.err.String())
}

// Bash completes with the script and with this program.
func TestBashCompletes(t *testing.T) {
	t.Parallel()
	const library = "/usr/share/bash-completion/bash_completion"
	if _, err := os.Stat(library); err != nil || runtime.GOOS == "windows" {
		t.Skip("the package bash-completion is not installed")
	}
	w := newWorld()
	require.Equal(t, exitOK, w.run("completion", "bash"))
	asked := newWorld()
	require.Equal(t, exitOK, asked.run("__complete", "sess"))
	dir := t.TempDir()
	program(t, filepath.Join(dir, "troupe"), "cat <<'EOF'\n"+asked.out.String()+"EOF")
	cmd := exec.Command("bash", "-c", `. `+library+`; . /dev/stdin; COMP_WORDS=(troupe sess); COMP_CWORD=1; COMP_LINE="troupe sess"; COMP_POINT=11; COMP_TYPE=9
__start_troupe; printf '%s\n' "${COMPREPLY[@]}"`)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	cmd.Stdin = strings.NewReader(w.out.String())
	out, err := cmd.Output() // compopt says on stderr that no shell waits
	require.NoError(t, err)
	assert.Equal(t, "sessions", strings.TrimSpace(string(out)))
}
