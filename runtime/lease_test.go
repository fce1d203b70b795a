package runtime_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	rt "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// TestLocalLeases: one holder at a time, with ids in any case.
func TestLocalLeases(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 4, 5, 6, 0, time.UTC)
	l := runtime.LocalLeases{Dir: filepath.Join(t.TempDir(), "not", "there", "yet"), Now: func() time.Time { return now }}
	release, err := l.Acquire(t.Context(), "a1B2")
	require.NoError(t, err)

	var taken *session.LeaseError
	_, err = l.Acquire(t.Context(), "A1b2")
	require.ErrorAs(t, err, &taken)
	assert.Equal(t, os.Getpid(), taken.Holder.PID)
	host, _ := os.Hostname()
	assert.Equal(t, host, taken.Holder.Host)
	assert.True(t, now.Equal(taken.Holder.Since))
	assert.Contains(t, err.Error(), "session A1b2 is in use by process ")
	assert.Contains(t, err.Error(), "since 2026-11-23T04:05:06Z; end it there, or set ForkSession")

	other, err := l.Acquire(t.Context(), "../../etc/passwd") // the agent chooses its id
	require.NoError(t, err)
	other()
	release()
	again, err := l.Acquire(t.Context(), "a1b2")
	require.NoError(t, err)
	again()
	files, err := os.ReadDir(l.Dir)
	require.NoError(t, err)
	if rt.GOOS != "windows" {
		assert.Empty(t, files, "sessions are many")
	}
}

// TestLeasesThatAreGivenBack while others ask for them are held by one at a time.
func TestLeasesThatAreGivenBack(t *testing.T) {
	t.Parallel()
	l := runtime.LocalLeases{Dir: t.TempDir()}
	var holders, granted atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 300 {
				release, err := l.Acquire(t.Context(), "s")
				if err != nil {
					var taken *session.LeaseError
					if !assert.ErrorAs(t, err, &taken) || !assert.NoError(t, taken.Err) {
						return
					}
					continue
				}
				granted.Add(1)
				assert.EqualValues(t, 1, holders.Add(1))
				holders.Add(-1)
				release()
			}
		})
	}
	all.Wait()
	assert.Positive(t, granted.Load())
}

// TestALeaseThatCannotBeGot says why.
func TestALeaseThatCannotBeGot(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := runtime.LocalLeases{Dir: filepath.Join(file, "below")}.Acquire(t.Context(), "s")
	var lease *session.LeaseError
	require.ErrorAs(t, err, &lease)
	require.Error(t, lease.Err)
	assert.Contains(t, err.Error(), "the lease of session s could not be got: ")
}

// TestALeaseOfTheDead: the lease of a program that is killed is free at once.
func TestALeaseOfTheDead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), leasesEnv+"="+dir)
	stdin, err := child.StdinPipe()
	require.NoError(t, err)
	defer stdin.Close() // it is killed
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "held") {
	}
	l := runtime.LocalLeases{Dir: dir}
	_, err = l.Acquire(t.Context(), "s")
	var taken *session.LeaseError
	require.ErrorAs(t, err, &taken)
	assert.Equal(t, child.Process.Pid, taken.Holder.PID)
	require.NoError(t, child.Process.Kill())
	_ = child.Wait()
	release, err := l.Acquire(t.Context(), "s")
	require.NoError(t, err)
	release()
}

// leasesEnv makes the test's program one that holds a lease in that directory.
const leasesEnv = "TROUPE_TEST_LEASES"

// holdALease is what TestALeaseOfTheDead kills. It does not outlive the test's program.
func holdALease(dir string) {
	if _, err := (runtime.LocalLeases{Dir: dir}).Acquire(context.Background(), "s"); err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString("held\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}
