//go:build linux

// Linux: memory and processes are read from /proc.

package runtime_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// watched is a runtime on real processes, under watch: what its test leaves behind
// is looked for from outside. Tests with a rig run alone.
type watched struct {
	rt    *runtime.Runtime
	token string // in the arguments of every process of the test
	temp  string // where agents get their files
	n     atomic.Int64
}

// newRig remembers what this process holds. When the test and its subtests are
// over it shuts the runtime down and requires that nothing is left: no
// process, no zombie, no goroutine, no descriptor, no file.
func newRig(t *testing.T) *watched {
	t.Helper()
	_, err := scriptedBinary()
	require.NoError(t, err)
	warm(t)
	r := &watched{token: newToken(), temp: t.TempDir()}
	// Every failure is looked at by itself, whatever has failed before.
	off := runtime.Breakers{Agent: runtime.BreakerPolicy{Failures: -1}, StartsPerSecond: -1}
	r.rt, err = runtime.New(runtime.Config{TempDir: r.temp, Breakers: off})
	require.NoError(t, err)
	// The collector would close what is forgotten.
	percent, memory := debug.SetGCPercent(-1), debug.SetMemoryLimit(1<<30)
	goroutines, files := goleak.IgnoreCurrent(), openFiles(t)
	t.Cleanup(func() {
		defer debug.SetGCPercent(percent)
		defer debug.SetMemoryLimit(memory)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if !assert.NoError(t, r.rt.Shutdown(ctx)) {
			stacks := make([]byte, 1<<20)
			t.Logf("%+v\n%s", r.rt.Tree(context.Background()), stacks[:goruntime.Stack(stacks, true)])
		}
		assert.Empty(t, withToken(t, r.token), "processes")
		killAll(t, r.token) // so that a failure does not affect the next run
		assert.Empty(t, children(t), "children, dead or alive")
		assert.Empty(t, entries(t, r.temp), "files for agents")
		assert.NoError(t, leaked(goroutines), "goroutines")
		assert.Eventually(t, func() bool { return len(added(files, openFiles(t))) == 0 }, patience, time.Millisecond)
		assert.Empty(t, added(files, openFiles(t)), "descriptors")
	})
	return r
}

var tokens atomic.Int64

// newToken returns an argument that no other process of the machine has.
func newToken() string { return fmt.Sprintf("troupe-edge-%d-%d.", os.Getpid(), tokens.Add(1)) }

// spec is a session with a real agent that plays script, in which TOKEN stands
// for the token of the test.
func (r *watched) spec(t *testing.T, script string) runtime.Spec {
	t.Helper()
	token := fmt.Sprintf("%s%d.", r.token, r.n.Add(1))
	spec := processSpec(t, token, script)
	spec.Options.Cwd = t.TempDir()
	return spec
}

// tokenOf is the argument that all processes of a session have.
func tokenOf(spec runtime.Spec) string { return spec.Options.ExtraArgs["token"].Or("") }

// limit is a context that only a failure ends.
func limit(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// together runs the cases at the same time, as most of them wait for most of
// theirs.
func together[C any](t *testing.T, cases map[string]C, test func(*testing.T, C)) {
	t.Helper()
	var wg sync.WaitGroup
	for name, c := range cases {
		wg.Go(func() {
			t.Run(name, func(t *testing.T) { test(t, c) })
		})
	}
	wg.Wait()
}

// warm makes the descriptors that the language's own runtime keeps.
var warmed sync.Once

func warm(t *testing.T) {
	t.Helper()
	warmed.Do(func() {
		rt, err := runtime.New(runtime.Config{})
		require.NoError(t, err)
		ctx := limit(t)
		s, err := rt.Open(ctx, processSpec(t, newToken(), hello))
		require.NoError(t, err)
		require.NoError(t, s.Close(ctx))
		require.NoError(t, rt.Shutdown(ctx))
	})
}

// openFiles lists the descriptors of this process with what they stand for.
func openFiles(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	for _, fd := range entries(t, "/proc/self/fd") {
		if to, err := os.Readlink("/proc/self/fd/" + fd); err == nil {
			found[fd] = to
		}
	}
	return found
}

func added(before, after map[string]string) (what []string) {
	for fd, to := range after {
		if _, ok := before[fd]; !ok {
			what = append(what, fd+" "+to)
		}
	}
	return what
}

func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// children lists the processes whose parent is this one, zombies among them.
func children(t *testing.T) (found []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*") // a name below would list each directory
	require.NoError(t, err)
	for _, dir := range all {
		b, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue // it is gone
		}
		rest := string(b)[strings.LastIndexByte(string(b), ')')+1:]
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(os.Getpid()) {
			found = append(found, string(b))
		}
	}
	return found
}

// killAll ends the processes that have token in their arguments.
func killAll(t *testing.T, token string) {
	t.Helper()
	for _, name := range entries(t, "/proc") {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if b, err := os.ReadFile(filepath.Join("/proc", name, "cmdline")); err == nil && strings.Contains(string(b), token) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
		}
	}
}

// threads is how many threads this process has.
func threads(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		if n, ok := strings.CutPrefix(line, "Threads:"); ok {
			count, err := strconv.Atoi(strings.TrimSpace(n))
			require.NoError(t, err)
			return count
		}
	}
	t.Fatal("no Threads line in /proc/self/status")
	return 0
}

// answers reads a sequence of messages to its end and returns the text in them,
// and the error that came last.
func answers(ctx context.Context, s *runtime.Session) (got []string, err error) {
	for m, err := range s.Messages(ctx) {
		if err != nil {
			return got, err
		}
		if text := protocol.TextOf(m); text != "" {
			got = append(got, text)
		}
	}
	return got, nil
}

// ended waits for the end of a session.
func ended(ctx context.Context, t *testing.T, s *runtime.Session) {
	t.Helper()
	require.NoError(t, kernel.GoExecutor{}.Await(ctx, s.Done()))
}

// options returns the names of the options that err complains about.
func options(err error) (names []string) {
	for _, e := range session.ConfigErrors(err) {
		names = append(names, e.Option)
	}
	return names
}
