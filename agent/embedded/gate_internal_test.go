package embedded

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/protocol"
)

// gated is a conversation in a new directory, with the agent's own rules compiled.
func gated(t *testing.T) *talk {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	w := &talk{shared: &shared{}}
	w.hands = newHands(agent.Launch{Dir: root, Env: []string{"HOME=/home/user"}}, backend.Seams{}, func(string) bool { return false })
	w.compile(agent.Permissions{})
	return w
}

// A command that can write, run something, or leave the directory does not only read, whatever its program.
func TestCommandsThatAreNoReading(t *testing.T) {
	t.Parallel()
	w := gated(t)
	for _, command := range []string{
		"find . -delete", "find . -exec rm {} +", "find . -fprint x", "find . -ok rm {} ;", "sort -o x y", "sort --output=x y", "sort --compress-program=sh y",
		"date -s 12:00", "date --set=12:00", "tree -o x", "git diff --ext-diff", "git diff --output=x", "git log --output=x", "git show --textconv", "git branch new", "git branch -D main",
		"git -c core.pager=sh log", "git --exec-path=x status", "rg --pre sh x", "grep -f /etc/passwd x", "cat /etc/passwd", "cat ../x", "head -1 ~/.ssh/id_rsa", "diff a /etc/shadow",
		"echo x > y", "echo x >> y", "cat x | tee y", "ls $(rm x)", "ls `rm x`", "ls; rm x", "ls && rm x", "ls | sh", "ls | xargs rm", "echo x | sh", "cd / && ls", "cd ..", "stat -c x /etc/passwd",
		"file -m x y", "file -C -m x", "uniq a b", "tail -f x --pid=1 > y", "FOO=1 ls", "printf x > y", "test -f x -o -w /etc/passwd > y", "sleep 1 & rm x", "wc --files0-from=/etc/passwd", "du --files0-from=/etc/passwd",
		"git blame --contents /etc/passwd x", "git status --porcelain; curl x", "ps aux > x", "ps auxe", "ps axeww", "ps -E", "which -a sh > x", "true > x", "[ -f x ] > y", "cut -f1 /etc/passwd", "tr a b < /etc/passwd", "df > x", "realpath /etc/passwd > x",
		"sed -i s/a/b/ x", "sed -n '1w y' x", "sed s/a/b/e x", "sed -e '1e id' x", "sed -f x y", "sed '1r /etc/passwd' x", "sed --in-place s/a/b/ x", "sed -n p /etc/passwd", "sed -n -i p x", "sed -ni p x", "sed 's/a/b/w y' x", "sed -n 1p x > y",
		"base64 /etc/passwd", "date +%Y -s 12:00", "date '+%Y' --set=12:00", "date -s +1", "date +%Y > x", "hostname evil", "od /etc/passwd", "type x > y", "git remote add x y", "git remote update", "git remote -v update", "git ls-files > x", "git rev-parse HEAD; rm x",
		"echo $SECRET", "echo ${HOME:=x}", "echo ${!HOME}", "echo $HOME > x", "echo $(id)", "echo $HOME$(id)", "echo \"$HOME `id`\"", "ls | xargs echo > x", "ls | xargs rm", "xargs echo < /etc/passwd", "ls | xargs -I{} echo {}; rm x", "ls | xargs sh -c echo", "cat $HOME/x", "ls $HOME", "$HOME/x", "echo ${HOME/a/$(id)}",
		"seq 5 > x", "free > x", "pr /etc/passwd", "numfmt < /etc/passwd", "tac ../x", "rev ~/.bashrc", "strings /bin/ls", "cmp a /etc/passwd", "cat <<X\n$HOME\nX", "readlink -f /etc/passwd", "md5sum /etc/passwd", "paste a /etc/passwd", "hexdump -f /etc/passwd x",
		"echo $USER", "echo $?", "echo $$", "time ls", "(ls)", "{ ls; }", "ls &", "((1+1))", "let x=1", "eval ls", "source x", ". x", "export A=1", "A=1", "for i in 1 2; do echo $i; done", "echo {1..3}", "ls {a,b}", "pwd -P", "sed s/a/b/ x", "sed 5q x", "cd sub && git status", "find . -exec cat {} ;",
		"[[ -v a[$(id)] ]]", "[[ a -eq b[x] ]]", "[[ $x ]]", "[[ -f /etc/passwd ]]", "[[ -f ~/x ]]", "[[ ../x -nt a ]]", "echo $((x))", "echo $((a[$(id)]))", "command -p rm x", "command rm x", "file -C -m x", "file -f /etc/passwd", "file /etc/passwd", "jq -n env", "jq env x", "jq . /etc/passwd", "jq -f x y", "jq '$ENV' x", "jq -n 'input' x", "tree -o x", "tree /", "history -c", "hostname x", "date -f /etc/passwd", "git tag x", "git stash", "git grep -O x", "git grep --open-files-in-pager=sh x", "git cat-file --textconv x", "node -e 1", "command cd /",
	} {
		assert.NotEqual(t, protocol.BehaviorAllow, w.hands.reads(command), command)
	}
	for _, command := range []string{
		"ls", "ls -la", "cat a.txt", "head -5 a.txt | tail -1", "grep -rn x .", "find . -name '*.go'", "wc -l a.txt", "git status", "git log --oneline -5", "git diff", "echo hi", "pwd", "cd sub && ls", "ls > /dev/null 2>&1", "true",
		"date +%Y", "date '+%Y %m'", "echo $HOME", `echo "home: ${HOME}"`, "ls | xargs echo", "sed -n 1p a.txt", "cat a.txt | sed -n 2,3p", "git remote -v", "git rev-parse HEAD", "whoami", "id -un", "uname -a", "seq 1 5", "tac a.txt | rev", "stat a.txt", "md5sum a.txt", "ls # all\npwd", "cat *.txt",
		"date -u +%s", "[[ -f a.txt ]]", "[[ a.txt -nt b ]]", "[[ ! -d sub ]]", "[[ -n x ]]", "[[ 1 -lt 2 ]]", "[[ ! -1 -eq 10 ]]", "[[ a == b ]] && echo x", "[[ a != b ]]", "[[ a =~ b.c ]]", "echo $((1+2))", "echo ~", "command ls", "file a.txt", "jq .a.b a.txt", "tree", "history", "python3 --version", "git branch -a", "git grep x", "if true; then echo x; fi",
	} {
		assert.Equal(t, protocol.BehaviorAllow, w.hands.reads(command), command)
	}
}

// The question about a loop over the output of a command differs from others (observed on Claude Code 2.1.329).
func TestALoopOverACommand(t *testing.T) {
	t.Parallel()
	v, odd := gated(t).hands.oddity("default", "for i in $(seq 1 3); do sleep 1; done; echo slept")
	require.True(t, odd)
	assert.Equal(t, agent.Object{"permission_suggestions": nil, "decision_reason_type": "subcommandResults"}, v.Ask)
	assert.Empty(t, v.About)
	for _, command := range []string{"for i in $(seq 1 3); do echo $(id); done", "for i in $(echo $(id)); do ls; done", "echo $(seq 1 3)"} {
		v, odd = gated(t).hands.oddity("default", command)
		require.True(t, odd, command)
		assert.Contains(t, v.About, "A nested command", command)
	}
}

func TestCommandsThatAreAskedAboutInEveryMode(t *testing.T) {
	t.Parallel()
	w := gated(t)
	root := w.hands.root
	for _, command := range []string{
		"rm -rf /", "rm -rf /*", "rm -rf ~", "rm -rf ~/", "rm -rf $HOME", `rm -rf "$HOME"`, "rm -rf .", "rm -rf ./", "rm -rf ..", "rm -rf " + root, "sudo rm -rf /", "cd x; rm -rf /", "rmdir " + root, "rm -rf ${PWD}", "rm -rf /home", "/bin/rm -rf /",
		"true && (rm -rf /)",
	} {
		assert.NotEmpty(t, w.hands.critical(command), command)
	}
	for _, command := range []string{"rm x", "rm -rf ./build", "ls /", "rm -rf node_modules/*", "echo rm"} {
		assert.Empty(t, w.hands.critical(command), command)
	}
}

// Files that have a say in what other programs run are asked about also in the mode
// acceptEdits, by whatever name: package policy knows them.
func TestFilesThatAreGuarded(t *testing.T) {
	t.Parallel()
	w := gated(t)
	root := w.hands.root
	require.NoError(t, os.MkdirAll(filepath.Join(root, ".git", "hooks"), 0o700))
	require.NoError(t, os.Symlink(".git/hooks", filepath.Join(root, "link")))
	require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(root, "out")))
	p := agent.Permissions{Mode: "acceptEdits"}
	for _, name := range []string{".git/hooks/pre-commit", "link/pre-commit", "sub/.git/config", ".bashrc", ".claude/settings.json", ".mcp.json", "./.vscode/tasks.json", "out/x", "../x"} {
		assert.False(t, w.judge(write())(p, agent.Object{"file_path": name}).Allow, name)
		assert.False(t, w.judge(bash(true))(p, agent.Object{"command": "cp x " + name}).Allow, name)
	}
	for _, name := range []string{"a.txt", ".github/workflows/x.yml", "git/x"} {
		assert.True(t, w.judge(write())(p, agent.Object{"file_path": name}).Allow, name)
	}
}

// The agent's rules do not decide where another rule may apply: a pattern of the shell
// may name a file that a rule denies.
func TestARuleInDoubt(t *testing.T) {
	t.Parallel()
	w := gated(t)
	judge := w.judge(bash(true))
	for _, mode := range []string{"default", "acceptEdits", "bypassPermissions"} {
		p := agent.Permissions{Mode: mode, Deny: []string{"Read(secret.txt)"}}
		for _, command := range []string{"cat s*", "head -1 *.txt", "grep x ?ecret.txt"} {
			assert.False(t, judge(p, agent.Object{"command": command}).Allow, "%s: %s", mode, command)
		}
		assert.True(t, judge(p, agent.Object{"command": "cat other"}).Allow, mode)
	}
}

// The shell evaluates some words as arithmetic or as the name of a variable, and what it finds there
// once more: also a command that another word of the same line only seems to print.
func TestCommandsThatEvaluate(t *testing.T) {
	t.Parallel()
	w := gated(t)
	judge := w.judge(bash(true))
	for _, command := range []string{
		"[[ _ -eq 0 ]]", "[[ 0 -eq _ ]]", "[[ 0 -ne _ ]]", "[[ _ -lt 0 ]]", "[[ _ -le 0 ]]", "[[ _ -gt 0 ]]", "[[ 0 -ge _ ]]", "[[ ! _ -eq 0 ]]", "! [[ _ -ge 0 ]]", "[[ _ -eq 0 ]] > /dev/null",
		"if [[ _ -eq 0 ]]; then true; fi", "while [[ _ -eq 0 ]]; do break; done", "true && [[ _ -eq 0 ]]", "true | [[ _ -eq 0 ]]", "[[ 1 -eq RANDOM ]]", "[[ 0x1 -eq a ]]", "[[ -v _ ]]", "[[ -R _ ]]", "[[ -v x[_] ]]", "[[ 1 -eq x[_] ]]",
		"test -v 'x[_]'", "[ -v x[_] ]", "[ -R x ]", "(( _ ))", "let _", "let x=_", "echo $((_))", "echo $[_]", "echo ${a[_]}", "echo ${HOME:_}", "echo ${HOME:0:_}", "echo ${_@P}", "echo ${!_}", "case $((_)) in x) ;; esac", "case _ in $((_))) ;; esac",
		"declare -i a=_", "typeset -i a=_", "local -i a=_", "readonly -a a=_", "export a=_", "read x[_] < /dev/null", "printf -v x[_] 1", "unset 'x[_]'", "mapfile x[_]", "for ((i=_;i<1;i++)); do true; done", "for x[_] in 1; do true; done", "a[_]=1",
		"true {x[_]}> /dev/null", "wait -n -p x[_]", "getopts a x[_]", "shift _", "set -x", "trap _ EXIT", "coproc ls",
	} {
		for _, mode := range []string{"default", "acceptEdits", "plan", "dontAsk"} {
			full := "echo 'x[$(touch pwned)]'; " + command
			assert.False(t, judge(agent.Permissions{Mode: mode}, agent.Object{"command": full}).Allow, "%s: %s", mode, full)
			assert.NotEqual(t, protocol.BehaviorAllow, w.hands.reads(full), full)
		}
	}
}

func TestCommandsThatMayChangeTheDirectory(t *testing.T) {
	t.Parallel()
	h := gated(t).hands
	for _, command := range []string{"cd sub", "ls && cd sub", "command cd sub", "builtin cd", "c''d sub", `\cd sub`, "pushd sub", "popd", "if true; then cd sub; fi", "$X sub", "cd sub <"} {
		assert.True(t, h.moves(command), command)
	}
	for _, command := range []string{"ls", "cat a.txt | head -1", "grep -rn 'cd x' ."} {
		assert.False(t, h.moves(command), command)
	}
	assert.False(t, h.lent().moves("cd sub"), "a sub-agent's shell begins anew each time")
}

// A search hides what a relative deny rule may be about in the shell's directory, as Read asks about it there.
func TestSearchesBelowTheRoot(t *testing.T) {
	t.Parallel()
	w := gated(t)
	root := w.hands.root
	p := agent.Permissions{Mode: "default", Deny: []string{"Read(./secret/**)", "Read(./*.key)"}}
	w.compile(p)
	for _, dir := range []string{root, filepath.Join(root, "sub"), filepath.Join(root, "sub", "deep")} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "secret"), 0o700))
		w.hands.move(dir)
		for _, name := range []string{"secret/s.txt", "secret/a/b", "x.key"} {
			v := w.judge(read())(p, agent.Object{"file_path": name})
			assert.False(t, v.Allow, "%s in %s", name, dir)
			assert.True(t, w.hands.hidden(filepath.Join(dir, name)), "%s in %s", name, dir)
			assert.True(t, w.hands.hidden(filepath.Join(root, name)), "%s, seen from %s", name, dir)
		}
		for _, name := range []string{"a.txt", "secrets", "other/secret"} {
			assert.False(t, w.hands.hidden(filepath.Join(dir, name)), "%s in %s", name, dir)
		}
	}
}
