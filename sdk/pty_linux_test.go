package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// openTerminal returns the two ends of a new pseudo-terminal, which echoes.
func openTerminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	raw, err := ours.SyscallConn()
	require.NoError(t, err)
	number := 0
	require.NoError(t, raw.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	}))
	require.NoError(t, err)
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	return ours, theirs
}

// terminalProcess is a process behind a terminal, as with docker run -t.
type terminalProcess struct {
	cmd    *exec.Cmd
	ours   *os.File
	exited chan struct{}
}

func (p *terminalProcess) PID() int                    { return p.cmd.Process.Pid }
func (p *terminalProcess) Stdin() io.WriteCloser       { return p.ours }
func (p *terminalProcess) Stdout() io.Reader           { return terminalOutput{p.ours} }
func (p *terminalProcess) Stderr() io.Reader           { return nil }
func (p *terminalProcess) Signal(session.Signal) error { return p.cmd.Process.Kill() }
func (p *terminalProcess) Kill() error                 { return p.cmd.Process.Kill() }
func (p *terminalProcess) Exited() <-chan struct{}     { return p.exited }
func (p *terminalProcess) CloseOutput()                { _ = p.ours.Close() }

func (p *terminalProcess) Reap() (session.ExitStatus, error) {
	return session.ExitStatus{Code: p.cmd.ProcessState.ExitCode()}, nil
}

func (p *terminalProcess) Sweep(context.Context) ([]session.ProcInfo, error) { return nil, nil }

// terminalOutput ends as a pipe does: a terminal whose other end is closed says EIO.
type terminalOutput struct{ *os.File }

func (o terminalOutput) Read(b []byte) (int, error) {
	n, err := o.File.Read(b)
	if errors.Is(err, syscall.EIO) || errors.Is(err, os.ErrClosed) {
		err = io.EOF
	}
	return n, err
}

func TestAnAgentBehindATerminal(t *testing.T) {
	t.Parallel()
	ours, theirs := openTerminal(t)
	_, err := sdk.Run(t.Context(), "hi", &sdk.Options{
		Backend: sdk.Claude(sdk.ClaudeConfig{Path: "agent"}), Graces: session.Graces{EOF: time.Millisecond},
		Spawner: spawnerFunc(func(context.Context, session.Command) (session.Process, error) {
			cmd := exec.Command("sleep", "60") // it reads nothing, so what comes is the terminal's echo
			cmd.Stdin, cmd.Stdout = theirs, theirs
			if err := cmd.Start(); err != nil {
				return nil, err
			}
			p := &terminalProcess{cmd, ours, make(chan struct{})}
			go func() {
				_ = cmd.Wait()
				_ = theirs.Close()
				close(p.exited)
			}()
			return p, nil
		}),
	})
	var echoed *session.EchoError
	require.ErrorAs(t, err, &echoed)
	assert.Contains(t, err.Error(), "stty -echo -icanon")
}
