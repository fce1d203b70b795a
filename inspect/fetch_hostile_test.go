package inspect_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/inspect"
)

// TestAnEventThatDoesNotEnd is read up to a limit.
func TestAnEventThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "1.sock")
	l, err := net.Listen("unix", socket) //nolint:noctx // closed with the server
	if err != nil {
		t.Skip("no socket here: ", err)
	}
	var sent atomic.Int64
	more := strings.Repeat("a", 1<<16)
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		n, err := io.WriteString(rw, `{"session":"s","type":"A"}`+"\n"+`{"text":"`)
		for err == nil {
			sent.Add(int64(n))
			n, err = io.WriteString(rw, more)
		}
	})}}
	server.Start()
	defer server.Close()
	var got []string
	err = inspect.Watch(t.Context(), socket, "", func(e inspect.Event) bool { got = append(got, e.Session); return true })
	require.ErrorIs(t, err, bufio.ErrTooLong)
	assert.Equal(t, []string{"s"}, got)
	assert.Less(t, sent.Load(), int64(16<<20))
}

// TestALinkIsNotASocket: what is in the directory of sockets may be put there by an agent, which runs as this user.
func TestALinkIsNotASocket(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "d")
	require.NoError(t, os.Mkdir(dir, 0o700))
	l, err := net.Listen("unix", filepath.Join(dir, "1.sock")) //nolint:noctx // closed below
	if err != nil {
		t.Skip("no socket here: ", err)
	}
	defer func() { assert.NoError(t, l.Close()) }()
	if err := os.Symlink(filepath.Join(dir, "1.sock"), filepath.Join(dir, "2.sock")); err != nil {
		t.Skip("no links here: ", err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "3.sock"), nil, 0o600))
	all, err := inspect.Sockets(dir)
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Join(dir, "1.sock")}, all)
}
