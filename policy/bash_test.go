package policy_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
)

// A real shell agrees on what an allowed command runs: only programs that the
// rules name, with the words that the rules begin with, and nothing that a rule
// denies, even where everything else is allowed.
func TestAllowedCommandsInARealShell(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("it runs a POSIX shell")
	}
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash on this machine")
	}
	dir := t.TempDir()
	bin, log := filepath.Join(dir, "bin"), filepath.Join(dir, "log")
	require.NoError(t, os.Mkdir(bin, 0o700))
	programs := []string{"one", "two", "bad", "x", "-c", "push", "log"}
	for _, name := range programs {
		script := "#!/bin/sh\nprintf '%s\\0' \"${0##*/}\" \"$@\" >>" + log + "\nprintf '\\0\\0' >>" + log + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700))
	}
	for _, name := range []string{"sh", "env"} {
		if path, err := exec.LookPath(name); err == nil {
			require.NoError(t, os.Symlink(path, filepath.Join(bin, name)))
		}
	}
	strict := compile(t, policy.Rules{Allow: []string{"Bash(one:*)", "Bash(two log *)"}, Deny: []string{"Bash(one push:*)"}})
	loose := compile(t, policy.Rules{Allow: []string{"Bash"}, Deny: []string{"Bash(one push:*)"}})
	piece := rapid.SampledFrom([]string{
		"one ", "one", "pu", "sh", "sh -c ", "eval ", "env ", "exec ", "alias a=one\n", "a push", "f() one push\nf", "two log ", "two", "bad", "x", "push", "log", " one ", " bad ", "-c", "a b", "=", "A=b ", "1", "-",
		" ", " ", " ", "\n", "\t", "\r", ";", "; ", "&", "&& ", "|", "| ", "|| ", "|&", "!", "#", " #", "\\", "\\\n", "'", "'", "\"", "\"", "`", "$", "$(", ")", "(", "{", "}", "{a,b}",
		"<", ">", ">&2", "<<E\n", "\nE\n", "*", "?", "[a]", "~", "~root", "$x", "$1", "${x}", "$'", "@", "%", "^", ",", ":", "+", "é", "\u00a0", "[[", "]]", "((", "time ", "if ", "then ", "fi", "in", "do",
		" 2>&1", " >/dev/null", " 2>/dev/null", " >&1 ", " </dev/null", "timeout 5 ", "while ", "done", "<<'E'\n", "\"$(cat <<'E'\n", "\nE\n)\"", "$?", "CI=1 ", "echo x", "cd sub", "cat", "|head -1", "x*", "# x\\\n", "!",
	})
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.SampledFrom([]string{"one ", "two log ", "", "one x;", "one pu", "env one ", "command one ", "one 'a' && "}).Draw(t, "start")
		command := start + strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces"), "")
		strictly := strict.Decide(bash(command)) == protocol.BehaviorAllow
		if !strictly && loose.Decide(bash(command)) != protocol.BehaviorAllow {
			return
		}
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range left {
			if e.Name() != "bin" { // where everything is allowed, a command may make files
				require.NoError(t, os.RemoveAll(filepath.Join(dir, e.Name())))
			}
		}
		require.NoError(t, os.WriteFile(log, nil, 0o600))
		cmd := exec.Command(shell, "--noprofile", "--norc", "-c", command)
		cmd.Env, cmd.Dir = []string{"PATH=" + bin, "HOME=" + dir}, dir
		ended, open, err := os.Pipe()
		require.NoError(t, err)
		cmd.ExtraFiles = []*os.File{open} // of all processes of the command, also of those in the background
		_ = cmd.Run()                     // whatever the programs make of it
		require.NoError(t, open.Close())
		_, err = ended.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, ended.Close())
		raw, err := os.ReadFile(log)
		require.NoError(t, err)
		for line := range strings.SplitSeq(strings.TrimSuffix(string(raw), "\x00\x00\x00"), "\x00\x00\x00") {
			words := strings.Split(line, "\x00")
			named := words[0] == "one" || words[0] == "two" && len(words) > 1 && words[1] == "log" || line == ""
			if strictly && !named || words[0] == "one" && len(words) > 1 && words[1] == "push" {
				t.Fatalf("%q ran %q", command, words)
			}
		}
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		if strictly {
			require.Len(t, entries, 2, "%q made a file", command)
		}
	})
}
