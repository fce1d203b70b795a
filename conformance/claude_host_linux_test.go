//go:build conformance

package conformance_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// hostEnv makes TestHost a host in a process of its own. Its value is a
// hostedAgent.
const hostEnv = "TROUPE_CONFORMANCE_HOST"

type hostedAgent struct {
	CLI, Dir, Prompt string
	Env              map[string]string
	State, Temp      string // directories of the runtime; empty: the default ones
	Guard            bool
}

// TestHost is not a test but a program: a host that sends its agent a prompt and
// waits for its own end.
func TestHost(t *testing.T) {
	given := os.Getenv(hostEnv)
	if given == "" {
		return // nobody asked for a host
	}
	var a hostedAgent
	require.NoError(t, json.Unmarshal([]byte(given), &a))
	cfg := runtime.Config{StateDir: a.State, TempDir: a.Temp}
	if a.Guard {
		cfg.Guard = []string{"/proc/self/exe", "-test.run=^TestServeGuard$"}
	}
	rt, err := runtime.New(cfg)
	require.NoError(t, err)
	c := sdk.NewClient(&sdk.Options{
		Backend: sdk.Claude(sdk.ClaudeConfig{Path: a.CLI}), Runtime: rt,
		Cwd: a.Dir, CleanEnv: true, Env: a.Env, SettingSources: sdk.None(),
		AdditionalDirectories: []string{a.Dir}, AllowedTools: []string{"Bash"},
	})
	require.NoError(t, c.Connect(context.Background()))
	_, err = c.Send(context.Background(), sdk.UserText(a.Prompt))
	require.NoError(t, err)
	_, _ = io.Copy(io.Discard, os.Stdin) // whoever asked for the host is gone
}

// However the host dies, the agent ends its shells and itself. 2.1.197 ends
// itself only.
func TestHostDies(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{
		"SIGKILL": syscall.SIGKILL, "SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT, "SIGHUP": syscall.SIGHUP,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.False(t, signal.Ignored(sig), "a host that inherits an ignored signal, as under nohup, does not die of it")
			r := newRig(t)
			prompt, running := r.hold()
			host := r.host(hostedAgent{Prompt: prompt})
			running()
			require.NoError(t, host.Process.Signal(sig))
			_ = host.Wait()
			// The agent takes up to 8 s, and longer on a busy machine.
			assert.Eventually(t, func() bool { return len(processesNaming(r.root)) == 0 }, turnLimit, 20*time.Millisecond)
		})
	}
}

// host starts a host in a process of its own.
func (r *rig) host(a hostedAgent) *exec.Cmd {
	r.t.Helper()
	a.CLI, a.Dir, a.Env = r.agent.CLI(r.t), r.dir, r.options().Env
	given, err := json.Marshal(a)
	require.NoError(r.t, err)
	host := exec.Command("/proc/self/exe", "-test.run=^TestHost$", "-test.count=1")
	host.Env = append(os.Environ(), hostEnv+"="+string(given))
	in, err := host.StdinPipe()
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = in.Close() })
	out, err := host.StdoutPipe()
	require.NoError(r.t, err)
	host.Stderr = host.Stdout
	require.NoError(r.t, host.Start())
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			r.t.Log(lines.Text())
		}
	}()
	return host
}
