package policy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/policy"
)

// A denied path is not read through a pattern or a prefix. A shell reads the file with
// each of the first commands; none of the others names it, and they run.
func TestDeniedPathsByPatternsAndPrefixes(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	dir, home := filepath.Join(root, "work"), filepath.Join(root, "home")
	for name, text := range map[string]string{
		filepath.Join(dir, "secrets", "key"): "TOPSECRET\n", filepath.Join(dir, "secrets", "deep", "er"): "TOPSECRET\n",
		filepath.Join(dir, ".env"): "TOPSECRET\n", filepath.Join(home, ".ssh", "id"): "TOPSECRET\n", filepath.Join(dir, "a.txt"): "one\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	p := compile(t, policy.Rules{Allow: []string{"Bash"}, Deny: []string{"Read(./secrets/**)", "Read(.env)", "Read(~/.ssh/**)"}, Cwd: dir, Root: dir, Home: home})
	decide := func(command string) policy.Explanation {
		c := bash(command)
		c.Cwd = dir
		return p.Explain(c)
	}
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash on this machine")
	}
	for _, command := range []string{
		"cat ../*/secrets/key", "cat ../w*/s*/k*", "cat ../[w]ork/secrets/key", "cat ../????/secrets/key", "cat ../*/.env", "cat ../*/.e*", "cat ../../*/work/secrets/key", "cat a*/../secrets/key",
		"cat < ../*/secrets/key", "x=../*/secrets/key; cat $x", "cat $PWD/../*/secrets/key", "cat ../*/secrets/*/er", "cat {../work/secrets,x}/key", "cat {.,x}env", "cat {..,x}/{work,y}/{secrets,z}/key", "cat .{x,{env,y}}",
		"cat ${PWD%/}/secrets/key", "cat $(pwd)/secrets/key", "cat `pwd`/.env", "cat \"$(dirname $PWD)\"/work/secrets/key", "cat ${PWD%work}work/secrets/key",
		"dd if=$PWD/secrets/key status=none", "dd if=\"$PWD/.env\" status=none", "dd if=$(pwd)/secrets/key", "dd if=se{crets,x}/key", "dd if={secrets/key,}", "x=; dd if=$x$PWD/.env", "grep --file=$PWD/.env -v zzz a.txt; grep '' --file=$PWD/.env secrets/../.e*",
		"curl -s file://$PWD/secrets/key", "curl -s \"file://$PWD/.env\"", "curl -s -K $PWD/.env; cat s*/key", "sed 'r '$PWD/secrets/key a.txt", "sed \"r $PWD/secrets/key\" a.txt", "awk '{ while ((getline l < \"'$PWD'/.env\") > 0) print l }' a.txt",
		"bash -c 'cat '$PWD/secrets/key", "bash -c \"cat $PWD/.env\"", "bash -c 'cat '*/k??", "bash -c \"cat */k??\"", "bash -c 'cat se\"\"crets/'$(echo key)", "bash -lc 'cat .e\"\"'${X:-nv}", "sh -c 'cat '../*/.en?", "env bash -c 'cat .\"\"'$(echo env)",
		"bash <<E\ncat $PWD/secrets/key\nE", "bash <<E\ncat */k??\nE", "trap 'cat 's*/key EXIT", "trap 'cat .e\"\"'$(echo nv) EXIT", "eval cat .e\"${X:-nv}\"", "eval 'cat se\"\"crets/'$(echo key)",
		"cat $HOME/.ssh/id", "cat ../home/.s*/id", "cat ../*/.ssh/*", "dd if=$HOME/.ssh/id status=none", "curl -s file://$HOME/.ssh/id", "cat ${HOME}/.s?h/i*",
	} {
		if e := decide(command); e.Behavior == allow {
			assert.Fail(t, "allowed", "%s", command)
		}
		cmd := exec.Command(shell, "--noprofile", "--norc", "-c", command)
		cmd.Dir, cmd.Env = dir, []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + home, "PWD=" + dir}
		out, _ := cmd.CombinedOutput()
		if !strings.Contains(string(out), "TOPSECRET") {
			t.Logf("does not read it here: %s", command) // without curl, or by another shell
		}
	}
	for _, command := range []string{
		"cat ../*/readme", "ls ../*.go", "cat $X", "cat src/$X", "mv \"$f\" \"${f%.js}.ts\"", "cat {a,b}.txt", "mkdir -p src/{a,b}/{c,d}", "cat src/**/*.go", "bash -c 'cat src/a.txt'", "bash build.sh \"$TARGET\"",
		"find . -name '*.go' -exec wc -l {} +", "echo \"$HOME/x: $PWD\"", "ls /tmp/{1..3}", "git show 'HEAD@{1}'", "git show HEAD@{1}",
	} {
		e := decide(command)
		assert.Equal(t, allow, e.Behavior, "%s: %s", command, e)
	}
}
