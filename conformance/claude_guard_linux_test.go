//go:build conformance

package conformance_test

import (
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/runtime"
)

// TestServeGuard is not a test but a program: the guard of TestHost.
func TestServeGuard(*testing.T) { runtime.ServeGuard() }

// What a shell command has started in another session, and whose parent has ended, outlives
// the agent, which ends its shells and their descendants. The guard ends it, however the host dies; without one the
// next host with the same directory does.
func TestGuard(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		died  syscall.Signal
		guard bool
	}{
		"SIGKILL":            {syscall.SIGKILL, true},
		"SIGTERM":            {syscall.SIGTERM, true},
		"SIGINT":             {syscall.SIGINT, true},
		"SIGHUP":             {syscall.SIGHUP, true},
		"SIGKILL, unguarded": {syscall.SIGKILL, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.False(t, signal.Ignored(c.died), "a host that inherits an ignored signal, as under nohup, does not die of it")
			r := newRig(t)
			prompt, running := r.hold()
			r.model.Script("hold", modelapi.Say(modelapi.ToolUse("Bash", modelapi.Args{
				"command":     `(setsid bash -c 'trap "" TERM HUP INT; exec -a ` + r.root + `/stray sleep 300' &); ` + r.holdCommand(),
				"description": "hold, and leave something behind",
			})))
			strays := func() []process { // and not the shell, which names it too
				return slices.DeleteFunc(processesNaming(r.root+"/stray"), func(p process) bool { return !strings.HasPrefix(p.args, r.root) })
			}
			state, temp := t.TempDir(), t.TempDir()
			host := r.host(hostedAgent{Prompt: prompt, State: state, Temp: temp, Guard: c.guard})
			running()
			require.Eventually(t, func() bool { return len(strays()) == 1 }, turnLimit, 20*time.Millisecond)
			require.NoError(t, host.Process.Signal(c.died))
			_ = host.Wait()
			if !c.guard {
				require.Eventually(t, func() bool { return len(processesNaming(r.root)) == 1 }, turnLimit, 20*time.Millisecond)
				require.Len(t, strays(), 1)
				next, err := runtime.New(runtime.Config{StateDir: state, TempDir: temp})
				require.NoError(t, err)
				defer func() { assert.NoError(t, next.Shutdown(r.ctx)) }()
			}
			assert.Eventually(t, func() bool { return len(processesNaming(r.root)) == 0 }, turnLimit, 20*time.Millisecond)
			for _, dir := range []string{state, temp} {
				assert.Eventually(t, func() bool {
					left, err := os.ReadDir(dir)
					return err == nil && len(left) == 0
				}, turnLimit, 20*time.Millisecond, "files")
			}
		})
	}
}
