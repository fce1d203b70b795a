package command

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/agent/embedded/demo"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/control"
	"github.com/agent-troupe/troupe/schema"
	"github.com/agent-troupe/troupe/transcript"
)

func completionPage() page {
	return page{text: `Usage: troupe completion SHELL

Prints a script for bash, zsh, fish or powershell that completes commands, flags and their values,
agents, the ids of sessions, and the tasks and waiting calls of a job. For this shell only:

  source <(troupe completion bash)     # needs the package bash-completion
  source <(troupe completion zsh)
  troupe completion fish | source

For each new shell:

  troupe completion bash > ~/.local/share/bash-completion/completions/troupe
  troupe completion zsh > "${fpath[1]}/_troupe"
  troupe completion fish > ~/.config/fish/completions/troupe.fish
`, groups: []flagGroup{{"Flags", []flagSpec{helpFlag()}}}}
}

func shells() []string { return []string{"bash", "zsh", "fish", "powershell"} }

// completionCommand is troupe completion for the commands below root.
func completionCommand(root func() *cobra.Command) action {
	return func(_ context.Context, _ process, c *console, s *settings) int {
		if len(s.words) != 1 || !slices.Contains(shells(), s.words[0]) {
			return c.usage(&usageError{"troupe completion takes one shell", "write one of " + strings.Join(shells(), ", ")})
		}
		var b bytes.Buffer
		var err error
		switch s.words[0] {
		case "bash":
			err = root().GenBashCompletionV2(&b, true)
		case "zsh":
			err = root().GenZshCompletion(&b)
		case "fish":
			err = root().GenFishCompletion(&b, true)
		default:
			err = root().GenPowerShellCompletionWithDesc(&b)
		}
		if err != nil {
			return c.usage(err)
		}
		return c.print(b.String())
	}
}

// completes reports whether a shell asks for completions. Its arguments are not yet those of a command.
func completes(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// completionTime is how long completions may take, which a person waits for.
const completionTime = 2 * time.Second

// suggestions are what a shell completes a word to, and by which rule.
type suggestions struct {
	names []cobra.Completion
	rule  cobra.ShellCompDirective
}

func suggest(names ...cobra.Completion) suggestions {
	return suggestions{names, cobra.ShellCompDirectiveNoFileComp}
}

// files suggests files, or those with one of the endings.
func files(endings ...string) suggestions {
	if len(endings) == 0 {
		return suggestions{nil, cobra.ShellCompDirectiveDefault}
	}
	return suggestions{endings, cobra.ShellCompDirectiveFilterFileExt}
}

// beginning is the answer to a shell: the names that begin with the text.
func (s suggestions) beginning(with string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if s.rule == cobra.ShellCompDirectiveNoFileComp {
		s.names = slices.DeleteFunc(slices.Clone(s.names), func(name string) bool { return !strings.HasPrefix(name, with) })
	}
	return s.names, s.rule
}

func directories() suggestions { return suggestions{nil, cobra.ShellCompDirectiveFilterDirs} }

// complete adds to the commands what a shell may complete.
func (a *app) complete(root *cobra.Command) {
	for cmd, m := range a.made { //troupe:maporder each is by itself
		cmd.ValidArgsFunction = func(cmd *cobra.Command, words []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
			ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
			defer cancel()
			m.settings.words = words
			_ = m.settings.complete() // what is wrong is said when the command runs
			return a.wordsOf(ctx, root, cmd, m.settings).beginning(begin)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			v, mine := f.Value.(*flagValue)
			if !mine || v.arg == "" {
				return
			}
			_ = cmd.RegisterFlagCompletionFunc(f.Name, func(cmd *cobra.Command, _ []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
				ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
				defer cancel()
				_ = m.settings.complete()
				return a.valuesOf(ctx, v, m.settings).beginning(begin)
			}) // an error means that it is there already
		})
	}
}

// wordsOf are what may be the next word of a command.
func (a *app) wordsOf(ctx context.Context, root, cmd *cobra.Command, s *settings) suggestions {
	words := s.words
	switch path := strings.TrimPrefix(cmd.CommandPath(), "troupe "); {
	case strings.HasPrefix(path, "sessions ") && len(words) == 0 && cmd.Name() != "list":
		all, err := s.transcripts(a.process, cmd.Name())
		if err != nil {
			return suggest()
		}
		return suggest(sessionNames(ctx, all)...)
	case path == "ps" && len(words) == 0:
		return suggest(a.liveSessions(ctx, s)...)
	case (path == "ctl" || path == "approvals") && len(words) == 0:
		return directories()
	case path == "ctl" || path == "approvals":
		return suggest(jobWords(ctx, path, s)...)
	case path == "batch" && len(words) == 0:
		return files("yaml", "yml", "json", "jsonl", "csv", "txt")
	case (path == "help" || path == "man") && len(words) == 0:
		return suggest(commandNames(root)...)
	case path == "schema" && len(words) == 0:
		return suggest(schema.Names()...)
	case path == "completion" && len(words) == 0:
		return suggest(shells()...)
	}
	return suggest()
}

func commandNames(root *cobra.Command) (names []cobra.Completion) {
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
		}
	}
	return names
}

// valuesOf are what may be the value of a flag.
func (a *app) valuesOf(ctx context.Context, f *flagValue, s *settings) suggestions {
	switch {
	case len(f.values) > 0:
		return suggest(f.values...)
	case f.name == "agent":
		return suggest(a.agentNames()...)
	case f.name == "resume":
		return suggest(s.resumable(ctx, a.process)...)
	case f.name == "status":
		return suggest(statuses()...)
	case f.arg == "DIR":
		return directories()
	case strings.HasPrefix(f.arg, "FILE"):
		return files()
	}
	return suggest()
}

// agentNames are what --agent takes, those that the program adds first.
func (a *app) agentNames() (names []cobra.Completion) {
	for _, added := range a.process.agents {
		names = append(names, added.Name)
	}
	return append(names, cobra.CompletionWithDesc(claude.Name, "Claude Code"), cobra.CompletionWithDesc(qoder.Name, "Qoder CLI"),
		cobra.CompletionWithDesc(embedded.Name, "in this program, with --model"), cobra.CompletionWithDesc(demo.Name, "with a few built-in rules as its model"),
		cobra.CompletionWithDesc(nameScripted, "plays a script"), cobra.CompletionWithDesc(nameACP+":", "a command that speaks the Agent Client Protocol"))
}

// sessionNames are the ids of stored sessions, the last changed first, with their titles.
func sessionNames(ctx context.Context, all *transcript.Sessions) (names []cobra.Completion) {
	const most = 100
	list, err := all.List(ctx, transcript.ListOptions{Limit: most})
	if err != nil {
		return nil
	}
	for i := range list {
		names = append(names, cobra.CompletionWithDesc(list[i].SessionID, printable(brief(oneLine(titleOf(&list[i]))))))
	}
	return names
}

// resumable are the sessions that --resume may continue: those of the directory.
func (s *settings) resumable(ctx context.Context, p process) []cobra.Completion {
	if err := s.chooseAgent(p.getenv); err != nil {
		return nil
	}
	all, err := s.sessionsHere()
	if err != nil {
		return nil
	}
	return sessionNames(ctx, all)
}

// liveSessions are the sessions that troupe ps lists.
func (a *app) liveSessions(ctx context.Context, s *settings) (names []cobra.Completion) {
	reports, _ := s.ask(ctx) // of those that answer
	for _, r := range reports {
		for i := range r.Tree.Sessions {
			t := &r.Tree.Sessions[i]
			names = append(names, cobra.CompletionWithDesc(printable(t.ID), t.State.String()))
		}
	}
	return names
}

func statuses() []cobra.Completion {
	all := []cobra.Completion{string(fleet.Accepted)}
	for _, s := range []fleet.Status{
		fleet.Rejected, fleet.Suspicious, fleet.Incomplete, fleet.Failed, fleet.MaxTurns, fleet.OverBudget, fleet.TimedOut, fleet.ContextFull,
		fleet.Overloaded, fleet.Crashed, fleet.NotStarted, fleet.BadWorkspace, fleet.NotVerified, fleet.Quarantined, fleet.Invalid, fleet.Skipped, fleet.Canceled,
	} {
		all = append(all, string(s))
	}
	return all
}

// jobWords are what follows the directory in troupe ctl and troupe approvals: a command, and then the
// tasks or the calls that it may be about.
func jobWords(ctx context.Context, command string, s *settings) (names []cobra.Completion) {
	dir, words := s.words[0], s.words[1:]
	if st, err := os.Stat(dir); err == nil && st.Mode().IsRegular() {
		dir = outOf(dir)
	}
	if len(words) == 0 {
		if command == "approvals" {
			return []cobra.Completion{"list", "allow", "deny", "ask"}
		}
		return ctlCommands()
	}
	j, err := control.Read(ctx, dir)
	if err != nil {
		return nil
	}
	if command == "approvals" {
		for i := range j.Approvals {
			if a := &j.Approvals[i]; words[0] == "allow" || words[0] == "deny" && len(words) == 1 {
				names = append(names, cobra.CompletionWithDesc(a.ID, printable(brief(a.Task+": "+a.Tool))))
			}
		}
		return names
	}
	states := map[string][]fleet.TaskState{
		"tail": {fleet.TaskRunning}, "cancel": {fleet.TaskRunning, fleet.TaskQueued, fleet.TaskWaiting},
		"requeue": {fleet.TaskOver}, "on-accept": {fleet.TaskOver},
	}[words[0]]
	for i := range j.Tasks {
		t := &j.Tasks[i]
		if slices.Contains(states, t.State) && !slices.Contains(words[1:], t.ID) && (words[0] != "tail" || len(words) == 1) {
			names = append(names, cobra.CompletionWithDesc(printable(t.ID), fmt.Sprintf("%s %s", t.State, t.Status)))
		}
	}
	return names
}

// ctlCommands are the commands of troupe ctl.
func ctlCommands() []string {
	return []string{"status", "results", "tail", "pause", "resume", "retune", "cancel", "requeue", "on-accept"}
}
