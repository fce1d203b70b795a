package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// Agent is an agent that a program adds to those of the command.
type Agent struct {
	// Name is what --agent takes, also with an argument after a colon. It wins over an agent of the
	// command with the same name.
	Name string
	// Backend returns the backend of a session. argument is "" without a colon; an error is a mistake in
	// the arguments.
	Backend func(argument string) (session.Backend, error)
}

// Main runs the command that args name, without the name of the program, and returns the exit
// code. It reads and writes the standard files of this process, takes its signals, and takes the
// variable with the secret of webhooks out of its environment. troupe help run lists the exit codes.
func Main(ctx context.Context, args []string, agents ...Agent) int {
	return Program{Agents: agents}.Main(ctx, args)
}

// Program is a command with more than that of the main module.
type Program struct {
	Agents   []Agent
	Machines Machines // nil: jobs stay on this machine
}

// Main is the function [Main].
func (pr Program) Main(ctx context.Context, args []string) int {
	// Asked for so that a closed stdout is an error of the write, not the end of
	// the process with an agent still running. Ignoring it would be inherited.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, endings()...)
	return run(ctx, process{
		args: args, agents: pr.Agents, machines: pr.Machines, getenv: ownEnv(), signals: signals,
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
	agents                         []Agent
	machines                       Machines
	getenv                         func(string) string
	signals                        <-chan os.Signal
	stdin                          io.Reader
	stdout, stderr                 io.Writer
	stdinTTY, stdoutTTY, stderrTTY bool
	// openTTY opens the terminal that questions are answered on when stdin is
	// not it.
	openTTY func() (io.Reader, error)
	// editTTY has the terminal on stdin send each key; see [editTerminal]. nil without a
	// terminal.
	editTTY func(in io.Reader, changed func()) (size func() (int, int), restore func(), err error)
	// patience is how long something may take before a person reads what it is; 0: a second.
	patience time.Duration
}

// action carries out a command and returns the exit code. s has the flags and the words.
type action func(ctx context.Context, p process, c *console, s *settings) int

// app is one run of the command.
type app struct {
	process process
	console *console
	code    int
	made    map[*cobra.Command]made
}

// made is what a command was made of.
type made struct {
	settings *settings
	page     page
}

// run runs the command that the arguments name and returns its exit code.
func run(ctx context.Context, p process) int {
	a := &app{process: p, console: newConsole(p)}
	root := a.tree()
	args, err := p.args, error(nil)
	if completes(args) {
		a.complete(root)
		root.SetOut(p.stdout)
	} else {
		args, err = longFlags(root, args)
	}
	if err == nil {
		root.SetArgs(args)
		err = root.ExecuteContext(ctx)
	}
	if needs := (*pflag.ValueRequiredError)(nil); errors.As(err, &needs) {
		f := needs.GetFlag()
		err = &usageError{fmt.Sprintf("--%s needs a value", f.Name), fmt.Sprintf("write --%s %s", f.Name, f.Value.Type())}
	}
	if usage := (*usageError)(nil); errors.As(err, &usage) {
		err = usage // without what pflag says about it
	}
	if err != nil {
		return a.console.usage(err)
	}
	return a.code
}

// flagsAfter is the annotation of a command that has no flags: where they are written.
const flagsAfter = "flags"

// tree has all commands, in the order of the help.
func (a *app) tree() *cobra.Command {
	add := func(use, short string, p page, do action) *cobra.Command {
		return a.command(a.settings(), use, short, p, do)
	}
	var root *cobra.Command
	top := func() *cobra.Command { return root }
	helps := add("help [COMMAND]", "print this text, or every flag of a command", page{}, nil)
	commands := []*cobra.Command{
		add("run [flags] PROMPT", "give an agent one prompt and print its answer", runPage(), runCommand),
		add("chat [flags]", "hold a conversation on the terminal", chatPage(), chatCommand),
		add("batch [flags] TASKS", "give many tasks to agents, and keep each result", batchPage(), batchCommand),
		add("worker [flags]", "run tasks of jobs that are shared by many machines", workerPage(), workerCommand),
		add("jobs [rm JOB]", "list or remove the jobs that are shared by many machines", jobsPage(), jobsCommand),
		add("ctl DIR [COMMAND]", "look into a batch that runs, and decide about its tasks", ctlPage(), ctlCommand),
		add("approvals DIR", "list and answer the calls of a batch that wait for a person", approvalsPage(), approvalsCommand),
		a.options(),
		a.sessions(),
		add("ps [SESSION]", "list the sessions of all programs that show theirs", psPage(), psCommand),
		add("top", "the same, as a screen that is kept up to date", topPage(), topCommand),
		add("mcp", "the same, as an MCP server on stdin and stdout", mcpPage(), mcpCommand),
		add("acp [flags]", "be an agent for editors on stdin and stdout", acpPage(), acpCommand),
		add("doctor", "say what this machine has for agents, and what is wrong", doctorPage(), doctorCommand),
		add("schema [NAME]", "print the JSON schema of a file", schemaPage(), schemaCommand),
		add("completion SHELL", "print a script that completes command lines in a shell", completionPage(), completionCommand(top)),
		add("man [COMMAND]", "print the manual page of a command", manPage(), a.manual(top)),
		add("guard", "clean up for a program that has died, which has started it for that", guardPage(), guardCommand),
		add("version", "print the version of this program", versionPage(), versionCommand),
		helps,
	}
	help := rootPage(commands)
	root = add("troupe", "run coding agents", help, nil)
	root.AddCommand(commands...)
	root.Flags().Bool("version", false, "print the version of this program")
	root.Annotations = map[string]string{flagsAfter: "troupe run [flags] PROMPT"}
	root.TraverseChildren, root.SilenceErrors, root.SilenceUsage = true, true, true
	root.CompletionOptions.DisableDefaultCmd = true
	root.RunE = func(cmd *cobra.Command, words []string) error {
		switch {
		case cmd.Flags().Changed("version"):
			a.code = a.console.print(version())
		case len(words) == 0:
			a.console.say("%s", help.String())
			a.code = exitUsage
		case child(root, words[0]) != nil: // after --
			return flagFirst(root)
		default:
			return unknownCommand(words[0], commands)
		}
		return nil
	}
	helps.SetHelpFunc(nil) // that of root
	helps.RunE = func(_ *cobra.Command, words []string) error {
		cmd := root
		for _, word := range words {
			next := child(cmd, word)
			if next == nil && cmd == root {
				return unknownCommand(word, commands)
			}
			cmd = cmp.Or(next, cmd)
		}
		return cmd.Help()
	}
	root.SetHelpCommand(helps)
	return root
}

// command is a command with its flags, which fill s.
func (a *app) command(s *settings, use, short string, p page, do action) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: func(cmd *cobra.Command, words []string) error {
		s.words = words
		complete := s.complete
		if s.readsFiles() {
			complete = func() error { return a.process.unlessEnded(s.complete) }
		}
		if err := complete(); err != nil {
			return err
		}
		a.console.quiet = s.quiet
		a.code = do(cmd.Context(), a.process, a.console, s)
		return nil
	}}
	if a.made == nil {
		a.made = map[*cobra.Command]made{}
	}
	a.made[cmd] = made{s, p}
	addFlags(cmd.Flags(), p.flags(), s)
	cmd.InitDefaultHelpFlag() // unless there is one
	cmd.SetHelpFunc(func(*cobra.Command, []string) { a.code = a.console.print(p.String()) })
	return cmd
}

func guardPage() page {
	return page{text: "Usage: troupe guard\n\nEnds what is left of a program's agents when the program dies. Programs start it: see Guard of runtime.Config.\n"}
}

func guardCommand(_ context.Context, _ process, c *console, _ *settings) int {
	runtime.ServeGuard() // does not return if a runtime has started it
	return c.usage(errors.New("troupe guard is started by programs: see Guard of runtime.Config"))
}
