//go:build linux

// Linux: threads are counted in /proc.

package runtime_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	gort "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// endThreads runs n goroutines that take their threads along when they end.
func endThreads(n int) {
	var wg sync.WaitGroup
	for range n {
		wg.Go(gort.LockOSThread)
	}
	wg.Wait()
}

// TestEdgeThreadsThatEnd: a process that asks for Pdeathsig is killed when the thread
// that started it ends, and Go ends threads as it likes. Agents live through the end of
// a thousand of them, including the one that opened their session.
func TestEdgeThreadsThatEnd(t *testing.T) {
	r := newRig(t)
	ctx := limit(t)
	specs := make([]runtime.Spec, 6)
	for i := range specs {
		specs[i] = r.spec(t, hello)
	}
	sessions := make([]*runtime.Session, len(specs))
	var wg sync.WaitGroup
	for i := range specs {
		wg.Go(func() {
			if i%2 == 0 {
				gort.LockOSThread() // and never unlock: the thread ends with the goroutine
			}
			var err error
			sessions[i], err = r.rt.Open(ctx, specs[i])
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	require.False(t, t.Failed())
	endThreads(1000)
	for _, s := range sessions {
		turn, err := s.Send(ctx, userText("still there?"))
		require.NoError(t, err)
		result, err := turn.Result(ctx)
		require.NoError(t, err)
		assert.Equal(t, "hello", result.Result)
		require.NoError(t, s.Close(ctx))
	}
}

// hostEnv makes TestEdgeHost a host in a separate process. Its value are the token, the
// agent's program, its script, its directory, the prompt, and "claude" or "killed", on
// separate lines.
const hostEnv = "TROUPE_EDGE_HOST"

// killed is the name of a backend whose agents may trap SIGTERM, as Qoder's may.
const killed = "killed"

type killedWithItsHost struct{ claude.Dialect }

func (d killedWithItsHost) Traits() dialect.Traits {
	traits := d.Dialect.Traits()
	traits.TermOnHostDeath = false
	return traits
}

// TestEdgeHost is not a test but a program: a host that sends its agent a
// prompt. It says when the turn has its result, or waits for the decision of a
// gate, and waits for its own end.
func TestEdgeHost(t *testing.T) {
	given := strings.Split(os.Getenv(hostEnv), "\n")
	if len(given) != 6 {
		return // the test is not run as a host
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3) // the parent of the host is gone
	}()
	ctx := context.Background()
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	asked := make(chan struct{})
	var speaks dialect.Dialect = claude.New()
	if given[5] == killed {
		speaks = killedWithItsHost{claude.New()}
	}
	s, err := rt.Open(ctx, runtime.Spec{
		Dialect: speaks,
		Options: session.Options{
			PathToExecutable: given[1], Cwd: given[3], Env: map[string]string{"TROUPE_SCRIPT": given[2]},
			ExtraArgs: map[string]session.Opt[string]{"token": session.Some(given[0])},
			CanUseTool: func(ctx context.Context, _ *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
				close(asked)
				<-ctx.Done()
				return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, nil
			},
		},
	})
	require.NoError(t, err)
	endThreads(100)
	turn, err := s.Send(ctx, userText(given[4]))
	require.NoError(t, err)
	select {
	case <-asked:
	case <-turn.Done():
	}
	fmt.Println("ready", s.PID())
	select {}
}

// TestEdgeHostIsKilled: when the host dies without a word, its agents die with
// it, and what waited for a gate never runs. Claude Code gets SIGTERM then, so
// that it can end its shells, and so has to listen. Others get SIGKILL.
func TestEdgeHostIsKilled(t *testing.T) {
	r := newRig(t)
	type death struct{ backend, prompt, misbehave string }
	cases := map[string]death{}
	for backend, all := range map[string]map[string]death{
		claude.Name: {
			"idle":              {prompt: "talk"},
			"gate open":         {prompt: "work"},
			"gate open, blind":  {prompt: "work", misbehave: "ignore_eof: true, ignore: ['*']"},
			"gate open, halves": {prompt: "work", misbehave: "split: halves"},
		},
		killed: {
			"idle":            {prompt: "talk"},
			"idle, deaf":      {prompt: "talk", misbehave: "trap_term: true, ignore_eof: true"},
			"idle, slow":      {prompt: "talk", misbehave: "exit_delay: 1h"},
			"gate open":       {prompt: "work"},
			"gate open, deaf": {prompt: "work", misbehave: "trap_term: true, ignore_eof: true"},
		},
	} {
		for name, c := range all {
			c.backend = backend
			cases[backend+", "+name] = c
		}
	}
	together(t, cases, func(t *testing.T, c death) {
		dir := t.TempDir()
		effect := filepath.Join(dir, "effect")
		spec := r.spec(t, strings.ReplaceAll(gatedYAML, "EFFECT", effect)+
			"- when: talk\n  steps: [{text: hello}]\nmisbehave: {"+c.misbehave+"}")
		host := exec.Command("/proc/self/exe", "-test.run=^TestEdgeHost$", "-test.count=1")
		host.Env = append(os.Environ(), hostEnv+"="+strings.Join([]string{
			tokenOf(spec), spec.Options.PathToExecutable, spec.Options.Env["TROUPE_SCRIPT"], dir, c.prompt, c.backend,
		}, "\n"))
		host.Stderr = os.Stderr
		_, err := host.StdinPipe()
		require.NoError(t, err)
		out, err := host.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, host.Start())
		t.Cleanup(func() { _ = host.Process.Kill() }) // it may be gone
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, "ready ")
		require.Len(t, withToken(t, tokenOf(spec)), 1)

		require.NoError(t, host.Process.Kill())
		require.Error(t, host.Wait())
		require.Eventually(t, func() bool { return len(withToken(t, tokenOf(spec))) == 0 }, patience, 5*time.Millisecond, "the agent dies with its host")
		assert.NoFileExists(t, effect, "fail-closed")
	})
}

// TestEdgeManyAgentsNeedNoThreads: a live agent costs no thread of the host, and
// no goroutine while it has nothing to do, neither to be waited for nor to be
// read from. TROUPE_SCALE has 2,000 of them instead of 300, and -short 100.
func TestEdgeManyAgentsNeedNoThreads(t *testing.T) {
	r := newRig(t)
	n, wait := 300, patience
	if os.Getenv("TROUPE_SCALE") != "" {
		n, wait = 2000, 10*time.Minute
	} else if testing.Short() {
		n = 100
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	spec := r.spec(t, hello)
	spec.Options.Graces = session.Graces{EOF: wait, Terminate: wait} // a busy machine must not lead to a kill
	sessions := make(chan *runtime.Session, n)
	before, goroutines := threads(t), gort.NumGoroutine()
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := worker; i < n; i += 8 {
				s, err := r.rt.Open(ctx, spec)
				if !assert.NoError(t, err) {
					return
				}
				sessions <- s
			}
		})
	}
	wg.Wait()
	close(sessions)
	require.Len(t, withToken(t, tokenOf(spec)), n)
	few := min(100, n/3) // a system call that blocks, as on a busy machine, takes a thread, too
	assert.Less(t, threads(t)-before, few, "of %d agents", n)
	assert.Eventually(t, func() bool { return gort.NumGoroutine()-goroutines < 24 }, patience, time.Millisecond, "goroutines of agents that idle")
	for s := range sessions {
		turn, err := s.Send(ctx, userText("hi"))
		require.NoError(t, err)
		wg.Go(func() {
			result, err := turn.Result(ctx)
			if assert.NoError(t, err) {
				assert.Equal(t, "hello", result.Result)
			}
		})
	}
	wg.Wait()
	assert.Less(t, threads(t)-before, few, "of %d agents at work", n)
	require.NoError(t, r.rt.Shutdown(ctx))
	assert.Empty(t, withToken(t, r.token), "no-orphans")
}
