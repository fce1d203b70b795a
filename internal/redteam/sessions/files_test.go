//go:build linux

// Linux: the command line of an agent is read from /proc.

package sessions_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Where secrets are while an agent runs, and after.
func TestSecretFiles(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	seen := filepath.Join(tmp, "seen")
	o := secretOptions(nil)
	o.Auth, o.ModelRequestPatches, o.Proxy, o.VPCEndpoint, o.ExtraArgs = nil, nil, "", "", nil
	o.Settings = []byte(`{"env":{"X":"SECRET-settingsenv"}}`)
	o.ManagedSettings = nil
	o.Env = map[string]string{"MY_TOKEN": "SECRET-env", "FAKE_SPAWN": "tr '\\0' '\\n' </proc/$PPID/cmdline >" + seen + "; find " + tmp + " -path '*troupe-*' -printf '%m %u %p\\n' >>" + seen}
	converse(t, o)
	raw, _ := os.ReadFile(seen)
	t.Logf("while it runs: leaks %v\n%s", leaks(string(raw)), raw)
	_ = filepath.WalkDir(tmp, func(p string, d fs.DirEntry, _ error) error {
		if strings.Contains(p, "troupe-") {
			t.Log("left:", p)
		}
		return nil
	})
}

// TestHelperHost is a host that is killed.
func TestHelperHost(t *testing.T) {
	if os.Getenv("RT_HOST") == "" {
		t.Skip("only for TestFilesOfAKilledHost")
	}
	o := secretOptions(nil)
	o.Auth, o.ModelRequestPatches, o.Proxy, o.VPCEndpoint, o.ExtraArgs, o.ManagedSettings = nil, nil, "", "", nil, nil
	o.Env["FAKE_SPAWN"] = "sleep 30"
	converse(t, o)
}

func TestFilesOfAKilledHost(t *testing.T) {
	tmp := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run", "TestHelperHost$")
	cmd.Env = append(os.Environ(), "RT_HOST=1", "TMPDIR="+tmp)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	require.Eventually(t, func() bool { // its agent has the prompt, so that it makes no more files
		logs, _ := filepath.Glob(filepath.Join(tmp, "*", "*", "log"))
		return slices.ContainsFunc(logs, func(name string) bool {
			raw, _ := os.ReadFile(name)
			return strings.Contains(string(raw), `"type":"user"`)
		})
	}, time.Minute, 10*time.Millisecond)
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = cmd.Wait()
	time.Sleep(500 * time.Millisecond)
	_ = filepath.WalkDir(tmp, func(p string, d fs.DirEntry, _ error) error {
		if strings.Contains(p, "troupe-") && !d.IsDir() {
			raw, _ := os.ReadFile(p)
			info, _ := d.Info()
			t.Logf("left: %s %v %v", p, info.Mode(), leaks(string(raw)))
		}
		return nil
	})
}
