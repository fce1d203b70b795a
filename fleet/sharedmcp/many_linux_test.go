package sharedmcp_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/fleet/sharedmcp"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// A thousand sessions of the embedded agent that are open at once use one process, and their gates see
// each call. With -v it prints what a session costs.
func TestAThousandSessionsShareAServer(t *testing.T) {
	n := 1000
	if testing.Short() || sim.Raced() {
		n = 50
	}
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	servers := sharedmcp.New(rt, sharedmcp.Options{Dir: t.TempDir(), Linger: -1})
	t.Cleanup(func() {
		assert.NoError(t, servers.Close(context.Background()))
		assert.NoError(t, rt.Shutdown(context.Background()))
	})
	m := &modeltest.Server{Script: func(r *modeltest.Request) *modeltest.Answer {
		if len(r.Results()) == 0 {
			return modeltest.Say(modeltest.Call("mcp__db__pid", map[string]any{}))
		}
		return modeltest.Say(modeltest.Text(string(r.Results()[0].Content)))
	}}
	backend := embedded.New(embedded.Config{Model: m.Anthropic(model.Config{}), Name: "m"})
	starts := t.TempDir() + "/starts"
	clients := make([]*sdk.Client, n)
	results := make([]string, n)
	all := func(fn func(i int)) {
		var tasks sync.WaitGroup
		for w := range 16 {
			tasks.Go(func() {
				for i := w; i < n; i += 16 {
					fn(i)
				}
			})
		}
		tasks.Wait()
	}
	began, before := time.Now(), processorTime(t)
	all(func(i int) {
		o := &sdk.Options{
			Backend: backend, Runtime: rt, Cwd: os.TempDir(), PersistSession: sdk.Some(false), AllowedTools: []string{"mcp__db__pid"},
			Env: map[string]string{"ANTHROPIC_API_KEY": "secret"},
			MCPServers: map[string]sdk.MCPServerConfig{"db": {
				Command: os.Args[0], Env: map[string]string{serverEnv: starts}, Shared: true, Timeout: time.Minute,
			}},
		}
		release, err := servers.Share(context.Background(), o)
		if !assert.NoError(t, err) {
			return
		}
		t.Cleanup(release)
		clients[i] = sdk.NewClient(o)
		assert.NoError(t, clients[i].Connect(context.Background()))
	})
	all(func(i int) {
		turn, err := clients[i].Send(context.Background(), sdk.UserText("go"))
		if assert.NoError(t, err) {
			r, err := turn.Result(context.Background())
			if assert.NoError(t, err) {
				results[i] = r.Result
			}
		}
	})
	took, used := time.Since(began), processorTime(t)-before
	assert.Equal(t, 1, servers.Running())
	b, err := os.ReadFile(starts)
	require.NoError(t, err)
	noted := strings.Split(strings.TrimSpace(string(b)), "\n")
	require.Len(t, noted, 1, "one process")
	pid, _, _ := strings.Cut(noted[0], " ")
	for _, r := range results {
		assert.Contains(t, r, pid)
	}
	env, err := os.ReadFile("/proc/" + pid + "/environ")
	require.NoError(t, err)
	assert.NotContains(t, string(env), "ANTHROPIC_API_KEY=")
	t.Logf("%d sessions, each with a call: %s, %s of processor time each; 1 process", n, took.Round(time.Millisecond), (used / time.Duration(n)).Round(time.Microsecond))
	all(func(i int) { assert.NoError(t, clients[i].Close(context.Background())) })
}

// processorTime is what this process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
