// Command troupe runs coding agents from the command line.
//
//	troupe run [flags] PROMPT   give an agent one prompt and print its answer
//	troupe chat [flags]         hold a conversation on the terminal
//	troupe batch [flags] TASKS  give many tasks to agents, and keep each result
//	troupe ctl DIR [COMMAND]    look into a batch that runs, and decide about its tasks
//	troupe approvals DIR        list and answer the calls of a batch that wait for a person
//	troupe options [flags]      print how an agent would be started
//	troupe sessions COMMAND     list, show, fork, rename, tag, delete or export sessions on disk
//	troupe ps [SESSION]         list the sessions of all programs that show theirs
//	troupe top                  the same, as a screen that is kept up to date
//	troupe mcp                  the same, as an MCP server on stdin and stdout
//	troupe acp [flags]          be an agent for editors on stdin and stdout
//	troupe guard                clean up for a program that has died; runtime.Config.Guard starts it
//	troupe version              print the version of this program
//	troupe help [COMMAND]       print every flag and exit code
//
// The agent is Claude Code, Qoder CLI, or a scripted agent that needs neither a
// network nor an account. The answer goes to stdout as it is written, everything
// else to stderr. Ctrl-C interrupts the agent, a second Ctrl-C closes the session,
// a third one kills the agent. The command always ends the agent's whole process
// tree before it exits.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/agent-troupe/troupe/runtime"
)

func main() {
	// Asked for so that a closed stdout is an error of the write, not the end of
	// the process with an agent still running. Ignoring it would be inherited.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	os.Exit(run(context.Background(), process{
		args: os.Args[1:], getenv: ownEnv(), signals: signals,
		stdin: os.Stdin, stdout: openedStdout(), stderr: os.Stderr,
		stdinTTY: isTerminal(os.Stdin), stdoutTTY: isTerminal(os.Stdout), stderrTTY: isTerminal(os.Stderr),
		openTTY: func() (io.Reader, error) { return os.Open(ttyName) }, editTTY: editTerminal,
	}))
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
