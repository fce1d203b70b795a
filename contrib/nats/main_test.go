package troupenats

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/contrib/nats/embedded"
)

// nodeEnv makes this program a server of a cluster: number, first port, directory.
const nodeEnv = "TROUPE_NATS_TEST_NODE"

// inMemory puts the directories of tests where a sync costs nothing, until end.
var inMemory = func() (end func()) { return func() {} }

// roles are what this program is instead of tests, by a variable of its environment, which they get.
var roles = map[string]func(value string){nodeEnv: node}

func TestMain(m *testing.M) {
	for variable, run := range roles {
		if v := os.Getenv(variable); v != "" {
			_ = os.Unsetenv(variable) // it is not its children's
			run(v)
			return
		}
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // these tests wait more than they compute
		panic(err)
	}
	end := inMemory()
	code := m.Run()
	end()
	os.Exit(code)
}

func node(value string) {
	v := strings.Split(value, ",")
	base, _ := strconv.Atoi(v[1])
	i, err := strconv.Atoi(v[0])
	if err != nil {
		serve(embedded.Config{Dir: v[2], Host: "127.0.0.1", Port: base})
		return
	}
	c := &embedded.Cluster{Name: "troupe", Port: base + 10 + i}
	for j := range 3 {
		if j != i {
			c.Routes = append(c.Routes, fmt.Sprintf("127.0.0.1:%d", base+10+j))
		}
	}
	serve(embedded.Config{Name: fmt.Sprint("n", i), Dir: fmt.Sprintf("%s/n%d", v[2], i), Host: "127.0.0.1", Port: base + i, Cluster: c})
}

func serve(cfg embedded.Config) {
	s, err := embedded.Start(cfg)
	if err != nil {
		panic(err)
	}
	s.Wait()
}

// process starts this program as a server, whose number is "alone" without a cluster.
func process(t *testing.T, number any, port int, dir string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	return processOf(t, exe, number, port, dir)
}

func processOf(t *testing.T, exe string, number any, port int, dir string, env ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), exe)
	c.Env = append(append(os.Environ(), fmt.Sprintf("%s=%v,%d,%s", nodeEnv, number, port, dir)), env...)
	c.Stderr = os.Stderr
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return c
}

// configured is a server with more configuration, in the syntax of its file.
func configured(t *testing.T, more string) (url string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "server.conf")
	text := fmt.Sprintf("listen: \"127.0.0.1:-1\"\njetstream { store_dir: %q, sync_interval: always }\n%s", t.TempDir(), more)
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	o, err := server.ProcessConfigFile(name)
	require.NoError(t, err)
	o.NoSigs, o.NoLog = true, true
	s, err := server.NewServer(o)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(time.Minute))
	return s.ClientURL()
}

// servers connects a test; each connection has a network that can be cut.
type servers func(t *testing.T, n *network) *nats.Conn

// single is one server in this process.
func single(t *testing.T) servers {
	t.Helper()
	s, err := embedded.Start(embedded.Config{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	return func(t *testing.T, n *network) *nats.Conn {
		t.Helper()
		nc, err := s.Connect(nats.InProcessServer(inProcess{s, n}))
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		return nc
	}
}

type inProcess struct {
	*embedded.Server
	n *network
}

func (p inProcess) InProcessConn() (net.Conn, error) {
	c, err := p.Server.InProcessConn()
	return p.n.wrap(c), err
}

// three are three servers, each a process.
func three(t *testing.T) servers {
	t.Helper()
	_, urls := cluster(t, 15222)
	return func(t *testing.T, n *network) *nats.Conn {
		t.Helper()
		return reach(t, urls, nats.SetCustomDialer(n))
	}
}

// clustered are three servers, each a process.
type clustered struct {
	base int
	dir  string
	all  [3]*exec.Cmd
	exe  string   // "": this program
	env  []string // of each server
}

func cluster(t *testing.T, base int) (c *clustered, urls string) {
	t.Helper()
	return clusterOf(t, &clustered{base: base})
}

func clusterOf(t *testing.T, c *clustered) (_ *clustered, urls string) {
	t.Helper()
	if c.dir = t.TempDir(); c.exe == "" {
		exe, err := os.Executable()
		require.NoError(t, err)
		c.exe, c.env = exe, make([]string, 3)
	}
	var all []string
	for i := range 3 {
		c.start(t, i)
		all = append(all, fmt.Sprintf("nats://127.0.0.1:%d", c.base+i))
	}
	return c, strings.Join(all, ",")
}

func (c *clustered) start(t *testing.T, i int) {
	t.Helper()
	c.all[i] = processOf(t, c.exe, i, c.base, c.dir, c.env[i])
}

func (c *clustered) kill(t *testing.T, i int) {
	t.Helper()
	require.NoError(t, c.all[i].Process.Kill())
	_ = c.all[i].Wait()
}

// reach connects to servers that may still start.
func reach(t *testing.T, urls string, options ...nats.Option) (nc *nats.Conn) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		nc, err = Connect(urls, options...)
		return err == nil
	}, 2*time.Minute, 50*time.Millisecond)
	t.Cleanup(nc.Close)
	return nc
}

// freePort is a port that nothing listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// network is what a connection goes over.
type network struct {
	mu sync.Mutex
	up chan struct{} // closed while there is a network
}

func newNetwork() *network {
	n := &network{up: make(chan struct{})}
	close(n.up)
	return n
}

func (n *network) cut() (restore func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	up := make(chan struct{})
	n.up = up
	return func() { close(up) }
}

// Dial implements nats.CustomDialer.
func (n *network) Dial(to, address string) (net.Conn, error) {
	c, err := net.Dial(to, address) //nolint:noctx // that is the interface
	if err != nil {
		return nil, err
	}
	return n.wrap(c), nil
}

func (n *network) wrap(c net.Conn) net.Conn {
	w := &wire{Conn: c, n: n, out: make(chan []byte, 1<<16), closed: make(chan struct{})}
	go w.pump()
	return w
}

// wire is a connection that keeps what is written while there is no network, as a machine does.
type wire struct {
	net.Conn
	n      *network
	out    chan []byte
	once   sync.Once
	closed chan struct{}
}

func (w *wire) wait() {
	w.n.mu.Lock()
	up := w.n.up
	w.n.mu.Unlock()
	select {
	case <-up:
	case <-w.closed:
	}
}

func (w *wire) pump() {
	for {
		select {
		case b := <-w.out:
			w.wait()
			if _, err := w.Conn.Write(b); err != nil {
				return
			}
		case <-w.closed:
			return
		}
	}
}

func (w *wire) Write(b []byte) (int, error) {
	select {
	case w.out <- append([]byte{}, b...):
		return len(b), nil
	case <-w.closed:
		return 0, net.ErrClosed
	}
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	w.wait()
	return n, err
}

func (w *wire) Close() error {
	w.once.Do(func() { close(w.closed) })
	return w.Conn.Close()
}

var jobs atomic.Int64

// job is a name that no other test has.
func job() string { return fmt.Sprint("j", jobs.Add(1)) }

func opened(t *testing.T, nc *nats.Conn, cfg Config) *Queue {
	t.Helper()
	q, err := Open(t.Context(), nc, cfg)
	require.NoError(t, err)
	t.Cleanup(q.Close)
	return q
}

// onlyFull skips what takes long.
func onlyFull(t *testing.T) {
	t.Helper()
	if os.Getenv("TROUPE_FULL") == "" {
		t.Skip("TROUPE_FULL is not set")
	}
}

// processes skips what starts many processes in a build with the race detector: it is the programs
// that meet there, and each would need three times as long.
func processes(t *testing.T) {
	t.Helper()
	if raced && os.Getenv("TROUPE_FULL") == "" {
		t.Skip("it runs without the race detector")
	}
}
