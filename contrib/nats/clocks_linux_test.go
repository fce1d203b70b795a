package troupenats

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// aheadEnv is by how many seconds the clock of a server is ahead.
const aheadEnv = "TROUPE_NATS_TEST_AHEAD"

// nodeProgram is a server of a cluster, as node is one.
const nodeProgram = `package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/agent-troupe/troupe/contrib/nats/embedded"
)

func main() {
	v := strings.Split(os.Getenv("` + nodeEnv + `"), ",")
	i, _ := strconv.Atoi(v[0])
	base, _ := strconv.Atoi(v[1])
	c := &embedded.Cluster{Name: "troupe", Port: base + 10 + i}
	for j := range 3 {
		if j != i {
			c.Routes = append(c.Routes, fmt.Sprintf("127.0.0.1:%d", base+10+j))
		}
	}
	s, err := embedded.Start(embedded.Config{Name: fmt.Sprint("n", i), Dir: fmt.Sprintf("%s/n%d", v[2], i), Host: "127.0.0.1", Port: base + i, Cluster: c})
	if err != nil {
		panic(err)
	}
	s.Wait()
}
`

// aheadFile reads how wrong the clock is.
const aheadFile = `package time

import "syscall"

var ahead = func() (n int64) {
	text, _ := syscall.Getenv("` + aheadEnv + `")
	for _, c := range text {
		if c >= '0' && c <= '9' {
			n = 10*n + int64(c-'0')
		}
	}
	if len(text) > 0 && text[0] == '-' {
		return -n
	}
	return n
}()
`

// wrongServer builds a server whose package time adds aheadEnv to the time of the machine.
func wrongServer(t *testing.T) (exe string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	source := filepath.Join(runtime.GOROOT(), "src", "time")
	if root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output(); err == nil { // GOROOT is empty with -trimpath
		source = filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	}
	now, err := os.ReadFile(filepath.Join(source, "time.go"))
	require.NoError(t, err)
	const reads = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	require.Contains(t, string(now), reads, "package time reads the clock in another way")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(source, "time.go"):         write("time.go", strings.Replace(string(now), reads, reads+"\tsec += ahead\n", 1)),
		filepath.Join(source, "troupe_ahead.go"): write("ahead.go", aheadFile),
	}})
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "node"), 0o700))
	exe = filepath.Join(dir, "server")
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", write("overlay.json", string(overlay)), "-o", exe, write("node/main.go", nodeProgram))
	said, err := build.CombinedOutput()
	require.NoError(t, err, "%s", said)
	return exe
}

// serversApart has a job on three servers of which one is 20 s ahead and one 5 s behind. The first becomes the
// leader, and is killed: the next one is 20 s or 25 s behind it.
func serversApart(t *testing.T, m *machines) {
	c := &clustered{base: 15922, exe: wrongServer(t), env: []string{aheadEnv + "=0", aheadEnv + "=20", aheadEnv + "=-5"}}
	all, urls := clusterOf(t, c)
	m.begin(t, urls, m.config(12*time.Second))
	nc := reach(t, urls)
	m.hire("w0", "w1")
	m.at(1./3, func() {
		m.more += 2 * m.spec.Places // all leases may end at once
		assert.Eventually(t, func() bool {
			said, err := nc.Request("$JS.API.STREAM.LEADER.STEPDOWN."+queueStream(m.spec.Job), []byte(`{"placement":{"preferred":"n1"}}`), time.Second)
			if err == nil {
				t.Logf("%s", said.Data)
			}
			info, err := m.q.stream.Info(t.Context())
			return err == nil && info.Cluster != nil && info.Cluster.Leader == "n1"
		}, 30*time.Second, 200*time.Millisecond, "it is ahead")
	})
	m.at(2./3, func() {
		m.more += 2 * m.spec.Places
		leader := all.leader(t, m.q)
		r, err := m.q.read(t.Context(), m.q.prefix+".>")
		assert.NoError(t, err)
		t.Logf("the clock of leader %d is %s ahead", leader, time.Until(r.at).Round(time.Second))
		assert.Greater(t, time.Until(r.at), 10*time.Second, "the clock is wrong")
		all.kill(t, leader)
	})
	m.check(m.follow())
}
