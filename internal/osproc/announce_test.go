//go:build linux

package osproc

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func shell(script string) Command {
	return Command{Path: "/bin/sh", Args: []string{"-c", script}}
}

func TestStderrIsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, script, want string
	}{
		{"output", "read x; echo oops >&2; read x; echo again >&2", "oops\nagain\n"},
		{"end", "read x; exec 2>&-; read x", ""},
		{"exit", "read x", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := launchAgent(t, NewLauncher(Config{}), shell(tc.script))
			got := make(chan string)
			p.OnStderr(func() {
				b, _ := io.ReadAll(p.Stderr())
				got <- string(b)
			})
			_, err := io.WriteString(p.Stdin(), "\n\n")
			require.NoError(t, err)
			assert.Equal(t, tc.want, <-got)
		})
	}
}

// TestAStderrThatIsClosed was never written to, and somebody else keeps it open.
func TestAStderrThatIsClosed(t *testing.T) {
	t.Parallel()
	p := launchAgent(t, NewLauncher(Config{}), agent(newToken(), "wait"))
	done := make(chan error)
	p.OnStderr(func() {
		_, err := io.ReadAll(p.Stderr())
		done <- err
	})
	require.NoError(t, p.Stderr().Close())
	require.Error(t, <-done)
	require.NoError(t, p.Kill())
	awaitExit(t, p)
	_, err := p.Reap()
	require.NoError(t, err)
}

func TestAfterExit(t *testing.T) {
	t.Parallel()
	for _, noPidfd := range []bool{false, true} {
		l := NewLauncher(Config{})
		l.noPidfd = noPidfd
		p := launchAgent(t, l, agent(newToken(), "wait"))
		done := make(chan ExitStatus)
		reap := func() {
			st, _ := p.Reap()
			done <- st
		}
		p.AfterExit(reap)
		require.NoError(t, p.Kill())
		assert.Equal(t, -1, (<-done).Code)
		p.AfterExit(reap)
		assert.Equal(t, -1, (<-done).Code, "also when it is asked late")
	}
}

// TestALostPoller has what was watched looked after without it.
func TestALostPoller(t *testing.T) {
	t.Parallel()
	p := launchAgent(t, NewLauncher(Config{}), agent(newToken(), "wait"))
	started := make(chan struct{})
	p.OnStderr(func() { close(started) })
	w := &p.launcher.exits
	w.giveUp(w.set)
	<-started
	require.NoError(t, p.Kill())
	awaitExit(t, p)
}

// TestStdoutIsAnnouncedEachTime waits without a goroutine, again and again.
func TestStdoutIsAnnouncedEachTime(t *testing.T) {
	t.Parallel()
	p := launchAgent(t, NewLauncher(Config{}), shell("while read x; do echo $x; done"))
	told := make(chan struct{})
	b := make([]byte, 16)
	for range 50 {
		require.True(t, p.OnStdout(func() { told <- struct{}{} }))
		_, err := io.WriteString(p.Stdin(), "a\n")
		require.NoError(t, err)
		<-told
		n, err := p.Stdout().Read(b)
		require.NoError(t, err)
		assert.Equal(t, "a\n", string(b[:n]))
	}
	require.True(t, p.OnStdout(func() { told <- struct{}{} }))
	require.NoError(t, p.Stdin().Close())
	<-told
	_, err := p.Stdout().Read(b)
	require.ErrorIs(t, err, io.EOF)
}
