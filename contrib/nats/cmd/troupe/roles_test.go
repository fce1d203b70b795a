package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// roles are the users of deploy/accounts.conf: a file with the seed of each.
type roles struct{ worker, submitter, viewer, system string }

// newRoles makes keys. The function puts them into a configuration, as the environment of a server does.
func newRoles(t *testing.T) (r roles, with func(configuration []byte) []byte) {
	t.Helper()
	public := map[string]string{}
	key := func(role string) string {
		k, err := nkeys.CreateUser()
		require.NoError(t, err)
		public[role], err = k.PublicKey()
		require.NoError(t, err)
		seed, err := k.Seed()
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), role+".nk")
		require.NoError(t, os.WriteFile(file, seed, 0o600))
		return file
	}
	r = roles{key("worker"), key("submitter"), key("viewer"), key("system")}
	return r, func(configuration []byte) []byte {
		for role, key := range public {
			configuration = bytes.ReplaceAll(configuration, []byte("$TROUPE_"+strings.ToUpper(role)), []byte(key))
		}
		return configuration
	}
}

// withRoles starts a server with deploy/accounts.conf.
func withRoles(t *testing.T) (url string, r roles) {
	t.Helper()
	r, with := newRoles(t)
	accounts, err := os.ReadFile("../../deploy/accounts.conf")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "accounts.conf"), with(accounts), 0o600))
	file := filepath.Join(dir, "server.conf")
	text := fmt.Sprintf("server_name: one\nlisten: \"127.0.0.1:-1\"\njetstream { store_dir: %q, sync_interval: always }\ninclude accounts.conf\n", t.TempDir())
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	o, err := server.ProcessConfigFile(file)
	require.NoError(t, err)
	o.NoSigs, o.NoLog = true, true
	s, err := server.NewServer(o)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(time.Minute))
	return s.ClientURL(), r
}

// as connects with the key of a role; denied gets what the server refuses.
func as(t *testing.T, url, seed string) (nc *nats.Conn, denied chan error) {
	t.Helper()
	denied = make(chan error, 100)
	o, err := nats.NkeyOptionFromSeed(seed)
	require.NoError(t, err)
	nc, err = nats.Connect(url, o, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err }))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc, denied
}

// A job runs with the rights of the roles, and no role reaches a subject that it must not reach.
func TestRoles(t *testing.T) {
	t.Parallel()
	url, r := withRoles(t)
	require.Zero(t, start(t, "jobs", "--nats", url, "--creds", r.submitter).exit(t), "it makes the directories")
	w := start(t, "worker", "--nats", url, "--creds", r.worker, "--dir", t.TempDir(), "--name", "w", "-j", "4")
	file, agent := tasks(t, 3, 0)
	out := filepath.Join(t.TempDir(), "out")
	place := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(place, "hello"), []byte("hi"), 0o600))
	batch := start(t, "batch", file, "--nats", url, "--creds", r.submitter, "--agent", agent, "--id", "j", "--out", out,
		"--workspace", "copy", "--cwd", place, "--verify", "grep hi hello")
	assert.Zero(t, batch.exit(t))
	assert.Len(t, results(t, out), 3)
	seen := filepath.Join(t.TempDir(), "seen")
	assert.Zero(t, start(t, "batch", "--attach", "j", "--nats", url, "--creds", r.viewer, "--out", seen).exit(t), "a viewer takes results")
	assert.Len(t, results(t, seen), 3)
	jobs := start(t, "jobs", "--nats", url, "--creds", r.viewer)
	assert.Zero(t, jobs.exit(t))
	assert.Regexp(t, `j +over`, jobs.text())
	rm := start(t, "jobs", "rm", "j", "--nats", url, "--creds", r.viewer)
	assert.Equal(t, 1, rm.exit(t), "it says so, and does not wait")
	assert.Contains(t, rm.text(), "may not")
	early := start(t, "batch", file, "--nats", url, "--creds", r.worker, "--agent", agent, "--id", "evil", "--detach")
	assert.Equal(t, 1, early.exit(t))
	assert.Contains(t, early.text(), "ermission")
	require.NoError(t, w.Process.Signal(syscall.SIGTERM))
	assert.Zero(t, w.exit(t))

	spec := "troupe.f.j." + base64.RawURLEncoding.EncodeToString([]byte(specFile))
	streams := []string{"$JS.API.STREAM.UPDATE.TROUPE_Q_j", "$JS.API.STREAM.PURGE.TROUPE_Q_j", "$JS.API.STREAM.MSG.DELETE.TROUPE_Q_j", "$JS.API.STREAM.PURGE.KV_TROUPE_JOBS",
		"$JS.API.STREAM.SNAPSHOT.TROUPE_Q_j", "$JS.API.STREAM.RESTORE.TROUPE_Q_x", "$JS.API.STREAM.LEADER.STEPDOWN.TROUPE_Q_j", "$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.PING.CONNZ", "another"}
	makes := []string{"$JS.API.STREAM.CREATE.X", "$JS.API.STREAM.DELETE.TROUPE_Q_j", "$JS.API.STREAM.DELETE.KV_TROUPE_JOBS"}
	for role, c := range map[string]struct {
		seed      string
		publish   []string
		subscribe []string
	}{
		"worker": {r.worker, append(append([]string{"$KV.TROUPE_JOBS.j", "$KV.TROUPE_JOBS.evil", "$KV.TROUPE_JOBS.w.drain", "$KV.TROUPE_CAPS.acct.a", "troupe.q.j.c.x", "troupe.h.w.tail", "_INBOX.x", spec}, makes...), streams...),
			[]string{">", "troupe.>", "$KV.>", "$JS.API.>", "$SYS.>"}},
		"submitter": {r.submitter, append([]string{"$KV.TROUPE_HOSTS.h", "$KV.TROUPE_CAPS.park.a", "$JS.API.STREAM.DELETE.KV_TROUPE_CAPS", "$JS.API.STREAM.DELETE.KV_TROUPE_JOBS", "$JS.API.STREAM.DELETE.KV_TROUPE_HOSTS"}, streams...),
			[]string{">", "troupe.>", "$KV.>", "$JS.API.>", "$SYS.>"}},
		"viewer": {r.viewer, append(append([]string{"troupe.q.j.o.x", "troupe.q.j.t.t0", "troupe.q.j.n.t0", "troupe.q.j.c.x", "troupe.f.j.x", spec, "$O.TROUPE_j.M.x", "$O.TROUPE_j.C.x",
			"$KV.TROUPE_JOBS.j", "$KV.TROUPE_JOBS.j.over", "$KV.TROUPE_HOSTS.h", "$KV.TROUPE_CAPS.acct.a", "$KV.TROUPE_CAPS.park.a"}, makes...), streams...),
			[]string{">", "troupe.>", "$KV.>", "$JS.API.>", "$SYS.>"}},
	} {
		nc, denied := as(t, url, c.seed)
		refused := func(what string) {
			t.Helper()
			require.NoError(t, nc.Flush())
			select {
			case err := <-denied:
				require.ErrorIs(t, err, nats.ErrPermissionViolation, "%s: %s", role, what)
				assert.Contains(t, strings.ToLower(err.Error()), strings.ToLower(`"`+strings.TrimPrefix(what, "subscribe ")+`"`), role)
			case <-time.After(time.Minute):
				assert.Fail(t, "it may", "%s: %s", role, what)
			}
		}
		for _, subject := range c.publish {
			t.Run(role+" publishes "+subject, func(t *testing.T) {
				require.NoError(t, nc.PublishRequest(subject, nats.NewInbox(), []byte(`{}`)))
				refused(subject)
			})
		}
		for _, subject := range c.subscribe {
			t.Run(role+" subscribes to "+subject, func(t *testing.T) {
				_, err := nc.SubscribeSync(subject)
				require.NoError(t, err)
				refused("subscribe " + subject)
			})
		}
	}
	// The rights that are there are no accident of the test: the submitter removes the job.
	assert.Zero(t, start(t, "jobs", "rm", "j", "--nats", url, "--creds", r.submitter).exit(t))

	bad, err := nkeys.CreateUser()
	require.NoError(t, err)
	seed, err := bad.Seed()
	require.NoError(t, err)
	stranger := filepath.Join(t.TempDir(), "stranger.nk")
	require.NoError(t, os.WriteFile(stranger, seed, 0o600))
	assert.NotZero(t, start(t, "jobs", "--nats", url, "--creds", stranger).exit(t))
	assert.NotZero(t, start(t, "jobs", "--nats", url).exit(t))
}

// The doctor sees a server that does not sync each write, and says what it cannot see.
func TestDoctor(t *testing.T) {
	t.Parallel()
	url, r := withRoles(t)
	seen := start(t, "doctor", "--nats", url, "--creds", r.submitter, "--system-creds", r.system)
	seen.exit(t)
	assert.Regexp(t, `ok +servers +one is \d`, seen.text())
	assert.Regexp(t, `ok +servers +one syncs each write`, seen.text())
	assert.Regexp(t, `note +servers +one server keeps all jobs`, seen.text())
	blind := start(t, "doctor", "--nats", url, "--creds", r.viewer)
	blind.exit(t)
	assert.Regexp(t, `note +servers +whether the servers sync each write cannot be seen`, blind.text())
	gone := start(t, "doctor", "--nats", "nats://127.0.0.1:1")
	assert.Equal(t, 1, gone.exit(t))
	assert.Regexp(t, `PROBLEM +servers +nats: connect`, gone.text())
	assert.True(t, tooOld("2.10.29"))
	assert.False(t, tooOld("2.11.0"))

	o := &server.Options{ServerName: "lazy", Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
		Nkeys: []*server.NkeyUser{}}
	sys, user := server.NewAccount("SYS"), server.NewAccount("A")
	o.Accounts, o.SystemAccount = []*server.Account{sys, user}, "SYS"
	o.Users = []*server.User{{Username: "sys", Password: "sys", Account: sys}}
	s, err := server.NewServer(o)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(time.Minute))
	nc, err := nats.Connect(s.ClientURL(), nats.UserInfo("sys", "sys"))
	require.NoError(t, err)
	defer nc.Close()
	all, err := ask(t.Context(), nc)
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.False(t, all[0].Data.Config.SyncAlways)
	assert.Equal(t, 2*time.Minute, all[0].Data.Config.SyncInterval)
	assert.Less(t, all[0].ahead.Abs(), time.Minute)
}
