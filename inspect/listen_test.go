package inspect_test

import (
	"context"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/session"
)

func TestWhereItDoesNotListen(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t)
	open := privateDir(t)
	require.NoError(t, os.Chmod(open, 0o755))
	private := privateDir(t)
	file := filepath.Join(private, "file")
	require.NoError(t, os.WriteFile(file, []byte("precious"), 0o600))
	link := filepath.Join(private, "link")
	require.NoError(t, os.Symlink(private, link))
	for name, c := range map[string]struct {
		cfg    inspect.Config
		option string
		says   string
	}{
		"no token":                 {inspect.Config{Address: "127.0.0.1:0"}, "Address", "needs a Token"},
		"a short token":            {inspect.Config{Address: "127.0.0.1:0", Token: "secret"}, "Token", "fewer than 16"},
		"all addresses":            {inspect.Config{Address: ":0", Token: token}, "Address", "not a loopback address"},
		"all IPv6 addresses":       {inspect.Config{Address: "[::]:0", Token: token}, "Address", "not a loopback address"},
		"an address of a network":  {inspect.Config{Address: "10.0.0.1:0", Token: token}, "Address", "not a loopback address"},
		"a name":                   {inspect.Config{Address: "example.com:80", Token: token}, "Address", "not a loopback address"},
		"no port":                  {inspect.Config{Address: "127.0.0.1", Token: token}, "Address", "not a loopback address"},
		"both":                     {inspect.Config{Address: "127.0.0.1:0", Token: token, Socket: file}, "Address", "contradicts"},
		"a token for a socket":     {inspect.Config{Token: token}, "Token", "is for an Address"},
		"a directory of all":       {inspect.Config{Socket: filepath.Join(open, "s.sock")}, "Socket", "other users can enter the directory"},
		"a link to a directory":    {inspect.Config{Socket: filepath.Join(link, "s.sock")}, "Socket", "is not a directory"},
		"another user's directory": {inspect.Config{Socket: "/dev/s.sock"}, "Socket", "/dev"},
		"a file that is no socket": {inspect.Config{Socket: file}, "Socket", "is not a socket"},
		"a path that is too long":  {inspect.Config{Socket: filepath.Join(private, strings.Repeat("x", 100))}, "Socket", "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, err := inspect.Listen(rt, c.cfg)
			assert.Nil(t, server)
			var config *session.ConfigError
			require.ErrorAs(t, err, &config)
			assert.Equal(t, c.option, config.Option)
			assert.Contains(t, config.Problem, c.says)
			assert.NotEmpty(t, config.Fix)
			assert.NotContains(t, err.Error(), token)
		})
	}
	_, err := inspect.Sockets(open)
	require.ErrorContains(t, err, "other users can enter", "the sockets there may be anybody's")
}

func TestTheSocketIsTheUsersOwn(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(privateDir(t), "made")
	socket := filepath.Join(dir, "s.sock")
	server := listening(t, newRuntime(t), inspect.Config{Socket: socket})
	assert.Equal(t, socket, server.Addr())
	st, err := os.Stat(socket)
	require.NoError(t, err)
	assert.Equal(t, fs.ModeSocket|0o600, st.Mode())
	st, err = os.Stat(dir)
	require.NoError(t, err)
	assert.Equal(t, fs.ModeDir|0o700, st.Mode())
	all, err := inspect.Sockets(dir)
	require.NoError(t, err)
	assert.Equal(t, []string{socket}, all)
	require.NoError(t, server.Close())
	assert.NoFileExists(t, socket)
	all, err = inspect.Sockets(filepath.Join(dir, "none"))
	require.NoError(t, err)
	assert.Empty(t, all)
}

// TestSocketsOfOtherHosts has one of a dead host, which is replaced, and one of a live
// host, which is not.
func TestSocketsOfOtherHosts(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t)
	socket := filepath.Join(privateDir(t), "s.sock")
	leave(t, socket)
	_, err := inspect.Fetch(t.Context(), socket)
	require.ErrorIs(t, err, inspect.ErrDead)

	listening(t, rt, inspect.Config{Socket: socket})
	_, err = inspect.Fetch(t.Context(), socket)
	require.NoError(t, err)
	var used *inspect.InUseError
	_, err = inspect.Listen(rt, inspect.Config{Socket: socket})
	require.ErrorAs(t, err, &used)
	assert.Equal(t, socket, used.Socket)
	assert.Contains(t, err.Error(), socket)
	_, err = inspect.Fetch(t.Context(), socket)
	require.NoError(t, err, "it was left alone")
}

// leave leaves a socket behind, as a process that is killed does.
func leave(t *testing.T, socket string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", socket)
	require.NoError(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
}

// TestTheDefaultSocket is where troupe ps looks. What dead hosts left there is removed.
func TestTheDefaultSocket(t *testing.T) { //nolint:paralleltest // it sets the environment
	rt := newRuntime(t)
	home := privateDir(t)
	t.Setenv("XDG_RUNTIME_DIR", home)
	dir, err := inspect.DefaultDir()
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(home, "troupe"), dir)
	require.NoError(t, os.Mkdir(dir, 0o700))
	dead, other := filepath.Join(dir, "1.sock"), filepath.Join(dir, "notes")
	leave(t, dead)
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	server := listening(t, rt, inspect.Config{})
	assert.Equal(t, filepath.Join(dir, strconv.Itoa(os.Getpid())+".sock"), server.Addr())
	assert.NoFileExists(t, dead)
	assert.FileExists(t, other)

	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("HOME", "/home/user")
	t.Setenv("XDG_CACHE_HOME", "")
	dir, err = inspect.DefaultDir()
	require.NoError(t, err)
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(cache, "troupe", "run"), dir)
}
