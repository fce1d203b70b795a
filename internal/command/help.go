package command

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// width is how long the lines of the help become.
const width = 100

func help() string {
	return `troupe runs coding agents: Claude Code, Qoder CLI, or a scripted agent that is built in.

Usage:
  troupe run [flags] PROMPT   give an agent one prompt and print its answer
  troupe chat [flags]         hold a conversation on the terminal
  troupe batch [flags] TASKS  give many tasks to agents, and keep each result
  troupe ctl DIR [COMMAND]    look into a batch that runs, and decide about its tasks
  troupe approvals DIR        list and answer the calls of a batch that wait for a person
  troupe options [flags]      print how an agent would be started; starts nothing
  troupe sessions COMMAND     list, show, fork, rename, tag, delete or export sessions on disk
  troupe ps [SESSION]         list the sessions of all programs that show theirs
  troupe top                  the same, as a screen that is kept up to date
  troupe mcp                  the same, as an MCP server on stdin and stdout
  troupe acp [flags]          be an agent for editors on stdin and stdout
  troupe guard                clean up for a program that has died, which has started it for that
  troupe version              print the version of this program
  troupe help [COMMAND]       print this text, or every flag of a command

Try it without an agent, a network or an account:
  troupe run --agent scripted "Say hello and run a command"
`
}

func helpCommand(c *console, args []string) int {
	switch {
	case len(args) == 0 || args[0] == "help":
		return c.print(help())
	case args[0] == "run":
		return c.print(runHelp())
	case args[0] == "chat":
		return c.print(chatHelp())
	case args[0] == "batch":
		return c.print(batchHelp())
	case args[0] == "ctl":
		return c.print(ctlHelp())
	case args[0] == "approvals":
		return c.print(approvalsHelp())
	case args[0] == "options":
		return c.print(optionsHelp())
	case args[0] == "sessions":
		return c.print(sessionsHelp())
	case args[0] == "ps":
		return c.print(psHelp())
	case args[0] == "top":
		return c.print(topHelp())
	case args[0] == "mcp":
		return c.print(mcpHelp())
	case args[0] == "acp":
		return c.print(acpHelp())
	case args[0] == "guard":
		return c.print("Usage: troupe guard\n\nEnds what is left of a program's agents when the program dies. Programs start it: see Guard of runtime.Config.\n")
	case args[0] == "version":
		return c.print("Usage: troupe version\n\nPrints the version of this program.\n")
	}
	return c.usage(unknownCommand(args[0]))
}

func runHelp() string {
	var b strings.Builder
	b.WriteString(`Usage: troupe run [flags] PROMPT

Gives PROMPT to an agent, prints its answer, and ends when the agent has finished. Flags may come
before or after the prompt. Several words are one prompt. Without a prompt, or with -, troupe reads
the prompt from stdin.

The agent's answer goes to stdout, everything else to stderr. When the agent asks for permission,
troupe asks you if stderr is a terminal, and denies the call if it is not; answer with y, n, a
(always, until the session ends), ? (help) or a sentence that says why not. --yes, --no and
--allowed-tools decide without asking. Without a terminal, the calls of the scripted agent's own
demonstration are allowed, because they run nothing.

Ctrl-C interrupts the agent, a second Ctrl-C closes the session, a third one kills the agent.
`)
	writeFlags(&b, []flagGroup{
		{"The agent", agentFlags()}, {"Output", outputFlags()}, {"Permissions", permissionFlags()},
		{"Sessions", sessionFlags()}, {"Log", logFlags()},
	})
	b.WriteString("\n" + exitCodes)
	return b.String()
}

func chatHelp() string {
	var b strings.Builder
	b.WriteString(`Usage: troupe chat [flags]

Holds a conversation with an agent: each line of stdin is a prompt, and the answer is printed as it
comes. The answer goes to stdout, everything else to stderr.

` + chatCommands + `
On a terminal the line can be edited: arrows, Home and End, and the up arrow for earlier lines. A
paste of several lines is one prompt; its line breaks are shown as ⏎ until you press Enter.

When the agent asks for permission, answer with y, n, a (always, until the session ends), ? (help) or
a sentence that says why not. Without a terminal the call is denied. --yes, --no and --allowed-tools
decide without asking. When the input comes from a pipe,
troupe waits for the agent's background tasks at its end. The exit code is that of the last turn,
and 0 if you interrupted it.
`)
	writeFlags(&b, []flagGroup{
		{"The agent", agentFlags()}, {"Output", quietFlag()}, {"Permissions", permissionFlags()},
		{"Sessions", sessionFlags()}, {"Log", logFlags()},
	})
	b.WriteString("\n" + exitCodes)
	return b.String()
}

type flagGroup struct {
	title string
	flags []flagSpec
}

func writeFlags(b *strings.Builder, groups []flagGroup) {
	for _, group := range groups {
		b.WriteString("\n" + group.title + ":\n")
		for _, f := range group.flags {
			writeFlag(b, f)
		}
	}
}

func writeFlag(b *strings.Builder, f flagSpec) {
	const column = 34
	head := "      --" + f.name
	if f.short != "" {
		head = "  -" + f.short + ", --" + f.name
	}
	if f.arg != "" {
		head += " " + f.arg
	}
	if len(head) > column-2 {
		b.WriteString(head + "\n")
		head = ""
	}
	for _, line := range wrap(f.help, width-column) {
		fmt.Fprintf(b, "%-*s%s\n", column, head, line)
		head = ""
	}
}

// wrap breaks text into lines of at most n bytes, at spaces.
func wrap(text string, n int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > n:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// version says which build this is.
func version() string {
	at, revision, modified := "unknown", "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		at = info.Main.Version
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = " " + s.Value[:min(12, len(s.Value))]
			case s.Key == "vcs.modified" && s.Value == "true":
				modified = " (modified)"
			}
		}
	}
	return fmt.Sprintf("troupe %s%s%s %s %s/%s\n", at, revision, modified, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
