package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const deploy = "../../deploy/"

// systemd takes the unit, where it is installed.
func TestUnits(t *testing.T) {
	t.Parallel()
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	unit, err := os.ReadFile(deploy + "troupe-worker.service")
	require.NoError(t, err)
	exe, err := os.Executable()
	require.NoError(t, err)
	require.Contains(t, string(unit), "/usr/local/bin/troupe ")
	file := filepath.Join(t.TempDir(), "troupe-worker.service")
	require.NoError(t, os.WriteFile(file, bytes.ReplaceAll(unit, []byte("/usr/local/bin/troupe "), []byte(exe+" ")), 0o600))
	said, err := exec.CommandContext(t.Context(), verify, "verify", file).CombinedOutput()
	require.NoError(t, err, "%s", said)
	assert.NotContains(t, string(said), file, "no warning")
	broken := filepath.Join(t.TempDir(), "troupe-worker.service")
	require.NoError(t, os.WriteFile(broken, []byte("[Service]\nExecStart=nothing\n"), 0o600))
	assert.Error(t, exec.CommandContext(t.Context(), verify, "verify", broken).Run())
}

// The server's file is a cluster that syncs each write, with TLS both ways and the roles.
func TestServerConfiguration(t *testing.T) {
	t.Parallel()
	_, with := newRoles(t)
	dir := t.TempDir()
	for _, name := range []string{"nats-server.conf", "accounts.conf"} {
		raw, err := os.ReadFile(deploy + name)
		require.NoError(t, err)
		// Its certificates are not here.
		var lines []string
		for line := range strings.Lines(strings.ReplaceAll(string(with(raw)), "$SERVER_NAME", "nats-0")) {
			if strings.Contains(line, "tls {") {
				assert.Contains(t, line, "verify: true")
				continue
			}
			lines = append(lines, line)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(lines, "")), 0o600))
	}
	o, err := server.ProcessConfigFile(filepath.Join(dir, "nats-server.conf"))
	require.NoError(t, err)
	assert.True(t, o.SyncAlways)
	assert.Equal(t, "troupe", o.Cluster.Name)
	assert.Len(t, o.Routes, 3)
	assert.Len(t, o.Nkeys, 4)
	assert.Equal(t, "SYS", o.SystemAccount)
}

// Files that could not be run are YAML, say so, and call the command with flags that it has.
func TestDeployFiles(t *testing.T) {
	t.Parallel()
	help := start(t, "help", "worker")
	require.Zero(t, help.exit(t))
	for _, name := range []string{"compose.yaml", "kubernetes.yaml"} {
		raw, err := os.ReadFile(deploy + name)
		require.NoError(t, err)
		assert.True(t, strings.HasPrefix(string(raw), "# Not run: "), name)
		d := yaml.NewDecoder(bytes.NewReader(raw))
		docs := 0
		for {
			var v any
			if err := d.Decode(&v); err != nil {
				break
			}
			docs++
			flags(t, v, help.text())
		}
		assert.Equal(t, map[string]int{"compose.yaml": 1, "kubernetes.yaml": 2}[name], docs)
	}
	unit, err := os.ReadFile(deploy + "troupe-worker.service")
	require.NoError(t, err)
	for word := range strings.FieldsSeq(string(unit)) {
		if strings.HasPrefix(word, "--") && word != "--grace." {
			assert.Contains(t, help.text(), word)
		}
	}
}

// flags looks for the flags of the worker in a document.
func flags(t *testing.T, v any, help string) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		for _, of := range v {
			flags(t, of, help)
		}
	case []any:
		for _, of := range v {
			flags(t, of, help)
		}
	case string:
		if strings.HasPrefix(v, "--") {
			assert.Contains(t, help, v+" ", "the worker has no %s", v)
		}
	}
}
