package osproc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// GuardEnv is set in the environment of a guard, and names its state directory.
const GuardEnv = "TROUPE_GUARD_STATE"

// guardTempEnv names the directory of the temporary files for a guard.
const guardTempEnv = "TROUPE_GUARD_TEMP"

const (
	guardReady = "troupe guard is ready\n"
	guardLimit = 10 * time.Second // for a guard to say so
	// guardGrace is for agents that end themselves and their commands on the signal of
	// the kernel, and for the host's own locks to go.
	guardGrace = time.Second
)

// guard is a process that outlives the host and sweeps in its place. It runs while the
// host has launches.
type guard struct {
	argv []string
	cfg  Config

	mu   sync.Mutex
	held int
	in   io.Closer // its end is the host's death for the guard; nil: no guard runs
}

// hold starts the guard for the first launch, and for one that finds it dead. The others
// wait for it.
func (g *guard) hold(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.in == nil {
		in, err := g.start(ctx)
		if err != nil {
			return fmt.Errorf("guard %s: %w", g.argv[0], err)
		}
		g.in = in
	}
	g.held++
	return nil
}

// drop ends the guard with the last launch.
func (g *guard) drop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held--; g.held == 0 && g.in != nil {
		_ = g.in.Close()
		g.in = nil
	}
}

// died notes that the guard of in has ended, although it was not asked to.
func (g *guard) died(in io.Closer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.in == in {
		_ = in.Close()
		g.in = nil
	}
}

func (g *guard) start(ctx context.Context) (io.Closer, error) {
	cmd := exec.Command(g.argv[0], g.argv[1:]...)
	cmd.Env = append(os.Environ(), GuardEnv+"="+g.cfg.StateDir, guardTempEnv+"="+g.cfg.TempDir)
	cmd.SysProcAttr = ownSession()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ready := kernel.NewPromise[string]()
	g.cfg.Executor.Go(func() {
		line, _ := bufio.NewReader(io.LimitReader(out, 1024)).ReadString('\n')
		ready.Resolve(line)
		_ = cmd.Wait() // this child alone; it may take as long as the host lives
		g.died(in)
	})
	ctx, cancel := kernel.WithTimeout(ctx, g.cfg.Clock, &session.TimeoutError{What: "guard", Limit: guardLimit})
	defer cancel()
	err = g.cfg.Executor.Await(ctx, ready.Done())
	if err == nil {
		if line, _ := ready.Value(); line == guardReady {
			return in, nil
		}
		err = errors.New("it is no guard: its program must call runtime.ServeGuard first in main, or be troupe guard")
	}
	_ = cmd.Process.Kill()
	_ = in.Close()
	return nil, err
}

// Guard is what a guard does: it waits for the end of in, which comes with the death of
// its host or of the host's last agent, and then ends what dead hosts have left.
func Guard(in io.Reader, out io.Writer) error {
	// A terminal, or a service manager, signals the host and the guard together.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	l := NewLauncher(Config{StateDir: os.Getenv(GuardEnv), TempDir: os.Getenv(guardTempEnv)})
	if _, err := io.WriteString(out, guardReady); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, in)
	ctx, cancel := kernel.WithTimeout(context.Background(), l.cfg.Clock, &session.TimeoutError{What: "guard", Limit: guardGrace})
	defer cancel()
	_ = l.cfg.Executor.Await(ctx, nil)
	return l.SweepHosts(context.Background())
}
