package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tree writes a small checkout: the main module with package queue, and a module of contrib that
// depends on it.
func tree(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, content := range map[string]string{
		"go.mod":                "module " + modulePath + "\n\ngo 1.26.0\n",
		"queue/queue.go":        "package queue\n\ntype Lease struct{ Fence uint64 }\n",
		"contrib/nats/go.mod":   "module " + modulePath + "/contrib/nats\n\ngo 1.26.0\n\nrequire " + modulePath + " v0.0.0\n\nreplace " + modulePath + " => ../..\n",
		"contrib/nats/nats.go":  natsBefore,
		"contrib/nats/in/in.go": "package in\n\nfunc In() {}\n",
		stabilityFile:           "| `queue` | stable | |\n| `contrib/nats` | stable | |\n| `contrib/nats/in` | stable | |\n| `contrib/otel` | none | young |\n",
		changelogFile:           "# Changelog\n\n## [Unreleased]\n\n- nothing\n",
	} {
		put(t, root, name, content)
	}
	require.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(recordFile)), 0o755))
	return root
}

func put(t *testing.T, root, name, content string) {
	t.Helper()
	name = filepath.Join(root, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
}

const natsBefore = "package troupenats\n\nimport \"" + modulePath + "/queue\"\n\nfunc Open() queue.Lease { return queue.Lease{} }\nfunc Remove() {}\n"

// The modules of contrib have the same rule as the main one.
func TestANameOfAModuleOfContrib(t *testing.T) {
	t.Parallel()
	root := tree(t)
	problems, err := run(root, true)
	require.NoError(t, err)
	require.Empty(t, problems)
	old, err := read(filepath.Join(root, recordFile))
	require.NoError(t, err)
	require.Equal(t, []string{"contrib/nats", "contrib/nats/in", "queue"}, old.paths())
	problems, err = run(root, false)
	require.NoError(t, err)
	require.Empty(t, problems)

	put(t, root, "contrib/nats/nats.go", natsBefore+"func More() {}\n")
	problems, err = run(root, false)
	require.NoError(t, err)
	require.Empty(t, problems, "an addition")

	put(t, root, "contrib/nats/nats.go", "package troupenats\n\nimport \""+modulePath+"/queue\"\n\nfunc Open() queue.Lease { return queue.Lease{} }\n")
	problems, err = run(root, false)
	require.NoError(t, err)
	require.Len(t, problems, 1)
	assert.Contains(t, problems[0], "contrib/nats.Remove: Remove: removed")
	put(t, root, changelogFile, "# Changelog\n\n## [Unreleased]\n\n- `contrib/nats.Remove` is gone\n")
	problems, err = run(root, false)
	require.NoError(t, err)
	assert.Empty(t, problems, "it is named")

	put(t, root, stabilityFile, "| `queue` | stable | |\n| `contrib/nats` | stable | |\n")
	problems, err = run(root, false)
	require.NoError(t, err)
	require.Len(t, problems, 1)
	assert.Contains(t, problems[0], "contrib/nats/in: the package is gone")
}

// The modules of this checkout that promise something are in the record.
func TestTheRecordHasContrib(t *testing.T) {
	t.Parallel()
	root, err := checkout("")
	require.NoError(t, err)
	old, err := read(filepath.Join(root, recordFile))
	require.NoError(t, err)
	assert.Subset(t, old.paths(), []string{"contrib/nats", "contrib/sqlite"})
	for path, dir := range map[string]string{"sdk": "", "fleet/queue": "", "contrib/nats": "contrib/nats", "contrib/nats/embedded": "contrib/nats"} {
		assert.Equal(t, filepath.Join(root, dir), moduleOf(root, path), path)
	}
}
