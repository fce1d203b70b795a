//go:build unix

// Unix: what a rule says is compared with what bash does.

package jobs

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
)

// shellIn runs a command in a directory, and returns all that it wrote.
func shellIn(dir, command string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-c", command)
	c.Dir = dir
	c.Env = []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + filepath.Join(dir, "..", "home"), "PWD=" + dir, "LC_ALL=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1"}
	c.WaitDelay = time.Second
	out, _ := c.CombinedOutput()
	return string(out)
}

func bash(dir, command string) policy.Call {
	return policy.Call{Tool: "Bash", Input: []byte(`{"command":` + quote(command) + `}`), Cwd: dir}
}

// resolve follows links, as the default of package sdk does.
func resolve(name string) (string, error) {
	rest := ""
	for at := name; ; {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest), nil
		}
		up := filepath.Dir(at)
		if up == at {
			return name, nil
		}
		rest, at = filepath.Join(filepath.Base(at), rest), up
	}
}

func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20:
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

// A command asks when a word may name a denied path (docs/hooks.md). Each of these has
// been run in a shell, and has read the file.
func TestDeniedPathsByAPatternOrAPrefix(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	dir := filepath.Join(root, "work")
	write(t, filepath.Join(dir, "secrets", "key"), "TOPSECRET\n")
	write(t, filepath.Join(dir, "a.txt"), "one\n")
	p, err := policy.Compile(policy.Rules{Allow: []string{"Bash"}, Deny: []string{"Read(./secrets/**)"}, Cwd: dir, Home: filepath.Join(root, "home"), Resolve: resolve})
	require.NoError(t, err)
	for _, c := range []string{
		// a pattern after ..
		"cat ../*/secrets/key", "cat < ../*/secrets/key", "cp ../*/secrets/key copy && cat copy", "grep -h '' ../*/secrets/key", "x=../*/secrets/key; cat $x",
		// what is certain except for a variable that the shell sets, behind a prefix
		"dd if=$PWD/secrets/key status=none", "curl -s file://$PWD/secrets/key", "sed 'r '$PWD/secrets/key a.txt",
		// a script with such a word
		"bash -c 'cat '$PWD/secrets/key", "bash -c 'cat '*/k??", "bash <<E\ncat $PWD/secrets/key\nE", "trap 'cat 's*/key EXIT",
	} {
		e := p.Explain(bash(dir, c))
		if e.Behavior != protocol.BehaviorAllow {
			continue
		}
		if strings.Contains(shellIn(dir, c), "TOPSECRET") {
			t.Errorf("allowed, and reads the denied file: %q", c)
		} else {
			t.Logf("allowed, and does not read it here: %q", c)
		}
	}
}
