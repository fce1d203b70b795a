package command

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/agent-troupe/troupe/runtime"
)

// Main runs the command that args name, without the name of the program, and returns the exit
// code. It reads and writes the standard files of this process, takes its signals, and takes the
// variable with the secret of webhooks out of its environment. The ways to end are in help.
func Main(ctx context.Context, args []string) int {
	// Asked for so that a closed stdout is an error of the write, not the end of
	// the process with an agent still running. Ignoring it would be inherited.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	return run(ctx, process{
		args: args, getenv: ownEnv(), signals: signals,
		stdin: os.Stdin, stdout: openedStdout(), stderr: os.Stderr,
		stdinTTY: isTerminal(os.Stdin), stdoutTTY: isTerminal(os.Stdout), stderrTTY: isTerminal(os.Stderr),
		openTTY: func() (io.Reader, error) { return os.Open(ttyName) }, editTTY: editTerminal,
	})
}

// openedStdout is stdout, or a writer that fails if stdout was closed when the program
// was started. When stderr was closed too, the output is meant to go nowhere.
func openedStdout() io.Writer {
	if wasClosed(os.Stdout) && !wasClosed(os.Stderr) {
		return closedStdout{}
	}
	return os.Stdout
}

// closedStdout is a stdout that is not there.
type closedStdout struct{}

func (closedStdout) Write([]byte) (int, error) {
	return 0, errors.New("stdout is closed, or is /dev/null opened for reading and writing")
}

// process is the world a command runs in.
type process struct {
	args                           []string // without the program's name
	getenv                         func(string) string
	signals                        <-chan os.Signal
	stdin                          io.Reader
	stdout, stderr                 io.Writer
	stdinTTY, stdoutTTY, stderrTTY bool
	// openTTY opens the terminal that questions are answered on when stdin is
	// not it.
	openTTY func() (io.Reader, error)
	// editTTY has the terminal on stdin send each key; see [editTerminal]. nil: it cannot.
	editTTY func(in io.Reader, changed func()) (size func() (int, int), restore func(), err error)
}

// run runs the command that the arguments name and returns its exit code.
func run(ctx context.Context, p process) int {
	c := newConsole(p)
	name, args := "", p.args
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	switch name {
	case "run":
		return runCommand(ctx, p, c, args)
	case "chat":
		return chatCommand(ctx, p, c, args)
	case "batch":
		return batchCommand(ctx, p, c, args)
	case "ctl":
		return ctlCommand(ctx, p, c, args)
	case "approvals":
		return approvalsCommand(ctx, p, c, args)
	case "options":
		return optionsCommand(ctx, p, c, args)
	case "sessions":
		return sessionsCommand(ctx, p, c, args)
	case "ps":
		return psCommand(ctx, p, c, args)
	case "top":
		return topCommand(ctx, p, c, args)
	case "mcp":
		return mcpCommand(ctx, p, c, args)
	case "acp":
		return acpCommand(ctx, p, c, args)
	case "guard":
		runtime.ServeGuard() // does not return if a runtime has started it
		return c.usage(errors.New("troupe guard is started by programs: see Guard of runtime.Config"))
	case "version", "--version", "-version":
		return c.print(version())
	case "help", "--help", "-help", "-h":
		return helpCommand(c, args)
	case "":
		c.say("%s", help())
		return exitUsage
	}
	return c.usage(unknownCommand(name))
}
