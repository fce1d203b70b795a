package embedded_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// hostEnv has the JSON text of a host for TestHost.
const hostEnv = "TROUPE_EMBEDDED_HOST"

type host struct {
	Dir, State, Temp string
	Guard            bool
}

// TestServeGuard is not a test but a program: the guard of TestHost.
func TestServeGuard(*testing.T) { runtime.ServeGuard() }

// TestHost is not a test but a program: a host whose agent runs commands in the foreground
// and in the background, until the host dies.
func TestHost(t *testing.T) {
	given := os.Getenv(hostEnv)
	if given == "" {
		return // it is not run as a host
	}
	var h host
	require.NoError(t, json.Unmarshal([]byte(given), &h))
	cfg := runtime.Config{StateDir: h.State, TempDir: h.Temp}
	if h.Guard {
		cfg.Guard = []string{"/proc/self/exe", "-test.run=^TestServeGuard$"}
	}
	rt, err := runtime.New(cfg)
	require.NoError(t, err)
	leave := func(name string) string { // a shell, its child, and one that has left both
		return "(setsid bash -c 'echo $$ > " + name + "-stray; trap \"\" TERM HUP INT; sleep 300; :' &); echo $$ > " + name + "; bash -c 'echo $$ > " + name + "-child; sleep 300; :'"
	}
	answers := []*modeltest.Answer{
		modeltest.Say(modeltest.Call("Bash", map[string]any{"command": leave("back"), "run_in_background": true})),
		modeltest.Say(modeltest.Call("Bash", map[string]any{"command": leave("fore")})),
	}
	server := &modeltest.Server{Script: func(r *modeltest.Request) *modeltest.Answer { return answers[min(r.N, len(answers))-1] }}
	c := sdk.NewClient(&sdk.Options{
		Backend: embedded.New(embedded.Config{Model: server.Anthropic(model.Config{}), Name: "m", Dir: h.Temp}), Runtime: rt, Cwd: h.Dir,
		PermissionMode: sdk.ModeBypassPermissions, AllowDangerouslySkipPermissions: true,
	})
	require.NoError(t, c.Connect(context.Background()))
	_, err = c.Send(context.Background(), sdk.UserText("Go."))
	require.NoError(t, err)
	_, _ = io.Copy(io.Discard, os.Stdin) // the process that asked for the host is gone
}

// However the host dies, its commands die: those that have left the shell's group by the guard,
// and without one by the next host with the same directory.
func TestNothingOutlivesTheHost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		died  syscall.Signal
		guard bool
	}{
		"SIGKILL":            {syscall.SIGKILL, true},
		"SIGTERM":            {syscall.SIGTERM, true},
		"SIGKILL, unguarded": {syscall.SIGKILL, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.False(t, signal.Ignored(c.died), "a host that inherits an ignored signal, as under nohup, does not die of it")
			h := host{t.TempDir(), t.TempDir(), t.TempDir(), c.guard}
			given, err := json.Marshal(h)
			require.NoError(t, err)
			program := exec.Command("/proc/self/exe", "-test.run=^TestHost$", "-test.count=1")
			program.Env = append(os.Environ(), hostEnv+"="+string(given))
			in, err := program.StdinPipe()
			require.NoError(t, err)
			defer func() { _ = in.Close() }()
			require.NoError(t, program.Start())
			all := []string{"back", "back-child", "back-stray", "fore", "fore-child", "fore-stray"}
			for _, file := range all {
				require.Eventually(t, func() bool {
					b, _ := os.ReadFile(filepath.Join(h.Dir, file))
					return len(b) > 0
				}, 5*time.Minute, time.Millisecond, file) // a program has to start
			}
			require.NoError(t, program.Process.Signal(c.died))
			_ = program.Wait()
			dies := func(files ...string) {
				for _, file := range files {
					assert.Eventually(t, func() bool { return gone(t, filepath.Join(h.Dir, file)) }, time.Minute, 10*time.Millisecond, file)
				}
			}
			dies("back", "back-child", "fore", "fore-child")
			if !c.guard {
				require.False(t, gone(t, filepath.Join(h.Dir, "fore-stray")))
				next, err := runtime.New(runtime.Config{StateDir: h.State, TempDir: h.Temp})
				require.NoError(t, err)
				defer func() { assert.NoError(t, next.Shutdown(context.Background())) }()
			}
			dies(all...)
		})
	}
}
