package inspect_test

import (
	"context"
	"flag"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// privateDir is a directory for sockets, with a short path.
func privateDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "troupe")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o700))
	return dir
}

// newRuntime is a runtime that ends with the test.
func newRuntime(t *testing.T) *runtime.Runtime {
	t.Helper()
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rt.Shutdown(context.Background())) })
	return rt
}

// asking is a runtime with a session "s" that waits for a permission until the test ends.
func asking(t *testing.T) *runtime.Runtime {
	t.Helper()
	rt := newRuntime(t)
	spec := runtime.Spec{ID: "s", Dialect: claude.New(), Program: scripted.New(scripted.WithScript(&scripted.Script{Turns: []scripted.Turn{
		{Steps: scripted.Steps{&scripted.ToolUse{Name: "Ba\x1b[2J\u202esh", Input: map[string]any{"command": "ls"}, Gate: "ask"}}},
	}}))}
	asked := make(chan struct{})
	spec.Options.PermissionTimeout = time.Hour
	spec.Options.CanUseTool = func(ctx context.Context, _ *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
		close(asked)
		<-ctx.Done()
		return protocol.PermissionResult{}, ctx.Err()
	}
	s, err := rt.Open(t.Context(), spec)
	require.NoError(t, err)
	_, err = s.Send(t.Context(), &protocol.UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.StringContent("go")}})
	require.NoError(t, err)
	<-asked
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Equal(c, session.StateAwaitingHost, s.State())
	}, 10*time.Second, time.Millisecond)
	return rt
}

// listening serves a runtime until the test ends.
func listening(t *testing.T, rt *runtime.Runtime, cfg inspect.Config) *inspect.Server {
	t.Helper()
	server, err := inspect.Listen(rt, cfg)
	require.NoError(t, err)
	over := make(chan error, 1)
	go func() { over <- server.Serve() }()
	t.Cleanup(func() {
		assert.NoError(t, server.Close())
		assert.NoError(t, <-over)
		assert.NoError(t, server.Close(), "again")
	})
	return server
}

// by is a client that dials one address, whatever a URL names.
func by(t *testing.T, network, address string) *http.Client {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
