package command

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/agent-troupe/troupe/runtime"
)

const (
	// defaultGrace is how long a worker lets tasks run after the signal to end. systemd kills after 90 s.
	defaultGrace = time.Minute
	// defaultAffinity is enough for a worker that is started again, as with an update.
	defaultAffinity = 2 * time.Minute
)

func workerFlags() []flagSpec {
	return append(serverFlags(),
		flagSpec{name: "listen", arg: "HOST:PORT", help: "be the first machine: run the servers, too, in --dir. Beyond loopback a token is made, or --tls-ca, --tls-cert and --tls-key ask for certificates", set: text(func(s *settings) *string { return &s.machines.listen })},
		flagSpec{name: "dir", arg: "DIR", help: "of this worker alone: jobs, workspaces and, with --listen, what the servers keep; default: $XDG_STATE_HOME/troupe/worker or ~/.local/state/troupe/worker", set: text(func(s *settings) *string { return &s.machines.dir })},
		flagSpec{name: "name", arg: "NAME", help: "of this worker; default: that of the machine", set: text(func(s *settings) *string { return &s.machines.servers.Name })},
		labelFlag("label", "what --host-label of a job may ask for; may be repeated"),
		flagSpec{name: "concurrency", short: "j", arg: "N|auto", help: "how many tasks of all jobs run here at the same time; auto: as many of each job as the model's API takes; default: 4", set: setConcurrency},
		flagSpec{name: "grace", arg: "TIME", help: "how long tasks may run on after SIGTERM or Ctrl-C; then they are interrupted, and other workers get them; default: 1m", set: duration(func(s *settings) *time.Duration { return &s.machines.grace })},
		flagSpec{name: "affinity", arg: "TIME", help: "how long a task that another worker has begun is left to it once it is free: started again in its --dir, it continues the session, and this one would begin anew; 0s: not at all; default: 2m", set: setAffinity},
		flagSpec{name: "check", help: "ask the worker of --dir whether it runs and has reached the servers in the last half minute; exit code 0: it has", set: on(func(s *settings) *bool { return &s.machines.check })},
	)
}

func setAffinity(s *settings, v string) error {
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 {
		return fmt.Errorf("%q is not a time; write 0s or 2m", v)
	}
	s.machines.affinity = d
	return nil
}

func workerPage() page {
	return page{text: `Usage: troupe worker [flags]

Runs tasks of the jobs that troupe batch --nats has given to the servers, and of those that come. The
first machine can be the servers, too:

  troupe worker --listen 0.0.0.0:4222       prints the line for the next machine
  troupe worker --nats nats://first:4222 --token-file token

Agents run as the user of this program, on this machine, and can read what it can: its keys for the
servers, too. Keys of providers are variables of this program; no job has them.

SIGTERM or Ctrl-C: nothing more starts, and what runs may end within --grace. The second one interrupts
what runs, the third one kills the agents. These tasks continue when the worker is started again in its
--dir; other workers get them after --affinity, and those of a worker that is killed when their leases
have ended, too (--lease of troupe batch).
`, groups: []flagGroup{{"Flags", append(workerFlags(), append(admissionFlags(), quietFlag()...)...)}, {"", []flagSpec{helpFlag()}}}, end: `
Exit codes: 0 it has ended as it was told to, 2 a mistake in the arguments, 3 it could not start, or,
with --check, it does not run, 4 the servers refuse it.
`}
}

// workerCommand is troupe worker.
func workerCommand(ctx context.Context, p process, c *console, s *settings) int {
	if err := s.completeWorker(p); err != nil {
		return c.usage(err)
	}
	if s.machines.check {
		return s.checkWorker(c)
	}
	admission := s.batch.admission
	if !s.gave("starts-per-second") {
		admission.StartsPerSecond = defaultStarts
	}
	admission.DiskDir = s.machines.dir
	if err := os.MkdirAll(filepath.Join(s.machines.dir, "jobs"), 0o700); err != nil {
		return workerFailed(c, err)
	}
	lock := flock.New(filepath.Join(s.machines.dir, "lock"))
	if locked, err := lock.TryLock(); err != nil || !locked {
		return workerFailed(c, cmp.Or(err, fmt.Errorf("another worker has %s: give each one its own --dir", s.machines.dir)))
	}
	defer func() { _ = lock.Unlock() }()
	cluster, address, err := s.reach(ctx, p)
	if err != nil {
		return workerFailed(c, err)
	}
	defer cluster.Close()
	rt, err := runtime.New(runtime.Config{StateDir: filepath.Join(s.machines.dir, "state"), Admission: admission, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return workerFailed(c, err)
	}
	defer func() {
		over, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
		defer cancel()
		_ = rt.Shutdown(over)
	}()
	w := newWorker(p, c, s, cluster, rt)
	s.tellWorker(c, w.name, address)
	return w.play(ctx)
}

func workerFailed(c *console, err error) int {
	c.note("%s", printable(err.Error()))
	return exitStart
}

// completeWorker checks what the arguments say together.
func (s *settings) completeWorker(p process) error {
	if len(s.words) > 0 {
		return &usageError{"troupe worker takes no arguments", "leave " + s.words[0] + " out; troupe batch --nats gives workers their jobs"}
	}
	if s.machines.dir == "" {
		state := p.getenv("XDG_STATE_HOME")
		if !filepath.IsAbs(state) {
			home := p.getenv("HOME")
			if !filepath.IsAbs(home) {
				return &usageError{"there is no place for the jobs: neither XDG_STATE_HOME nor HOME is set", "add --dir DIR"}
			}
			state = filepath.Join(home, ".local", "state")
		}
		s.machines.dir = filepath.Join(state, "troupe", "worker")
	}
	dir, err := filepath.Abs(s.machines.dir)
	if err != nil {
		return &usageError{problem: "--dir: " + err.Error()}
	}
	if s.machines.dir = dir; s.machines.check {
		return nil
	}
	if err := s.completeServers(p, "troupe worker"); err != nil {
		return err
	}
	s.machines.grace = cmp.Or(s.machines.grace, defaultGrace)
	if !s.gave("affinity") {
		s.machines.affinity = defaultAffinity
	}
	if s.machines.listen == "" {
		return s.needsServers("troupe worker")
	}
	if s.gave("nats") || s.machines.servers.Creds != "" {
		return &usageError{"--listen runs the servers, and --nats and --creds are for others", "give one of them"}
	}
	return s.completeListen()
}

// completeListen makes the token of the first machine, where one is needed.
func (s *settings) completeListen() error {
	host, port, err := net.SplitHostPort(s.machines.listen)
	if err != nil || port == "" {
		return &usageError{fmt.Sprintf("--listen: %q is not HOST:PORT", s.machines.listen), "write 127.0.0.1:4222, or 0.0.0.0:4222 for other machines"}
	}
	at := &s.machines.servers
	if at.URLs = s.machines.listen; at.Token != "" || at.CA != "" && at.Cert != "" {
		return nil
	}
	if at.CA != "" || at.Cert != "" {
		return &usageError{"--listen with TLS needs --tls-ca, --tls-cert and --tls-key", "give all three, or none for a token"}
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	file := filepath.Join(s.machines.dir, "token")
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(s.machines.dir, 0o700); err == nil {
			raw = []byte(rand.Text() + "\n")
			err = os.WriteFile(file, raw, 0o600)
		}
	}
	if at.Token = strings.TrimSpace(string(raw)); err == nil && at.Token == "" {
		err = errors.New(file + " is empty: remove it, and a new token is made")
	}
	if err != nil {
		return &usageError{problem: "--listen: the token: " + err.Error()}
	}
	s.machines.tokenFile = file
	return nil
}

// reach connects to the servers, or starts them.
func (s *settings) reach(ctx context.Context, p process) (Cluster, string, error) {
	if s.machines.listen == "" {
		c, err := s.connect(ctx, p)
		return c, "", err
	}
	return p.machines.Listen(ctx, s.machines.servers, filepath.Join(s.machines.dir, "nats"))
}

// tellWorker says, whatever --quiet says, whose rights agents have and, on the first machine, how the next
// one joins.
func (s *settings) tellWorker(c *console, name, address string) {
	as := "this user"
	if u, err := user.Current(); err == nil {
		as = "the user " + u.Username
	}
	c.note("worker %s in %s. Agents run as %s, as this program does, and can read its files: give it a user and a machine, or a container, of its own", name, s.machines.dir, as)
	if address == "" {
		return
	}
	line := "troupe worker --nats " + address
	switch {
	case s.machines.tokenFile != "":
		c.note("the next machine: copy %s to it, and run there\n  %s --token-file FILE", s.machines.tokenFile, line)
	case s.machines.servers.CA != "":
		c.note("the next machine: %s --tls-ca FILE --tls-cert FILE --tls-key FILE", line)
	default:
		c.note("the next worker on this machine: %s --dir DIR --name NAME", line)
	}
}

// checkWorker says whether the worker of the directory is well.
func (s *settings) checkWorker(c *console) int {
	st, err := os.Stat(filepath.Join(s.machines.dir, beatFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.note("no worker runs in %s", s.machines.dir)
	case err != nil:
		c.note("%v", err)
	case time.Since(st.ModTime()) > 3*beatEvery:
		c.note("the worker of %s has not reached the servers for %s", s.machines.dir, rounded(time.Since(st.ModTime())))
	default:
		return exitOK
	}
	return exitStart
}
