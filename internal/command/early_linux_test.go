package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A signal ends a command that waits for the other side of a pipe.
func TestSignalWhileAPipeWaits(t *testing.T) {
	t.Parallel()
	tasks := taskFile(t, "tasks.jsonl", `{"prompt":"one"}`)
	for name, args := range map[string][]string{
		"events":     {"batch", tasks, "-a", "scripted", "--events", "PIPE"},
		"template":   {"batch", tasks, "-a", "scripted", "--template", "@PIPE"},
		"tasks":      {"batch", "PIPE", "-a", "scripted"},
		"script":     {"batch", tasks, "-a", "scripted:PIPE"},
		"config":     {"run", "go", "-a", "scripted", "--config", "PIPE"},
		"mcp-config": {"run", "go", "-a", "scripted", "--mcp-config", "PIPE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pipe := filepath.Join(t.TempDir(), "pipe")
			require.NoError(t, unix.Mkfifo(pipe, 0o600))
			defer func() { // what waits ends
				f, err := os.OpenFile(pipe, os.O_RDWR|unix.O_NONBLOCK, 0)
				require.NoError(t, err)
				require.NoError(t, os.Remove(pipe)) // what opens it later finds nothing
				require.NoError(t, f.Close())
			}()
			for i, arg := range args {
				args[i] = map[string]string{"PIPE": pipe, "@PIPE": "@" + pipe, "scripted:PIPE": "scripted:" + pipe}[arg]
				if args[i] == "" {
					args[i] = arg
				}
			}
			w := newWorld()
			w.signal <- os.Interrupt
			assert.Equal(t, 130, w.run(args...), w.err)
			assert.Empty(t, w.out.String())
		})
	}
}
