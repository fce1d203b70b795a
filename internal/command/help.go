package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// width is how long the lines of the help become.
const width = 100

// page is the help of a command, which lists its flags.
type page struct {
	text   string
	groups []flagGroup // without a title: no help lists them
	end    string
}

type flagGroup struct {
	title string
	flags []flagSpec
}

func (p *page) flags() (all []flagSpec) {
	for _, g := range p.groups {
		all = append(all, g.flags...)
	}
	return all
}

func (p *page) String() string {
	var b strings.Builder
	b.WriteString(p.text)
	for _, g := range p.groups {
		if g.title != "" {
			b.WriteString("\n" + g.title + ":\n")
			for _, f := range g.flags {
				writeFlag(&b, f)
			}
		}
	}
	return b.String() + p.end
}

// rootPage lists the commands.
func rootPage(commands []*cobra.Command) page {
	var b strings.Builder
	b.WriteString("troupe runs coding agents: Claude Code, Qoder CLI, or one that is built in, with any model.\n\nUsage:\n")
	for _, c := range commands {
		fmt.Fprintf(&b, "  troupe %-21s%s\n", c.Use, c.Short)
	}
	return page{text: b.String(), end: `
Try it without an agent, a network or an account:
  troupe run --agent demo "Say hello and run a command"
`}
}

func runPage() page {
	return page{text: `Usage: troupe run [flags] PROMPT

Gives PROMPT to an agent, prints its answer, and ends when the agent has finished. Flags may come
before or after the prompt. Several words are one prompt. Without a prompt, or with -, troupe reads
the prompt from stdin. Text that is piped in beside a prompt is added to it:

  git diff | troupe run "Write a commit message for this diff"

The agent's answer goes to stdout, everything else to stderr. When the agent asks for permission,
troupe asks you if stderr is a terminal, and denies the call if it is not; answer with y, n, a
(always, until the session ends), ? (help) or a sentence that says why not. --yes, --no and
--allowed-tools decide without asking.

Without --agent, the agent is the embedded one if --model (or TROUPE_MODEL) says where the model is,
as in anthropic/NAME; else the one that is installed; else a demonstration, which needs nothing and
works in a temporary directory. A key in the environment alone starts nothing that costs money.

Ctrl-C interrupts the agent, a second Ctrl-C closes the session, a third one kills the agent.
`, groups: []flagGroup{
		{"The agent", agentFlags()}, {"Output", outputFlags()}, {"Permissions", permissionFlags()},
		{"Sessions", sessionFlags()}, {"Log", logFlags()},
	}, end: "\n" + exitCodes}
}

func chatPage() page {
	return page{text: `Usage: troupe chat [flags]

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
`, groups: []flagGroup{
		{"The agent", agentFlags()}, {"Output", quietFlag()}, {"Permissions", permissionFlags()},
		{"Sessions", sessionFlags()}, {"Log", logFlags()},
	}, end: "\n" + exitCodes}
}

func writeFlag(b *strings.Builder, f flagSpec) {
	const column = 34
	head := "      --" + f.name
	if f.short != "" {
		head = "  -" + f.short + ", --" + f.name
	}
	if f.optional {
		head += "[=" + f.arg + "]"
	} else if f.arg != "" {
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
