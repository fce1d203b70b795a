package claude

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/internal/optionfile"
)

// With the default SettingSources Claude Code starts the programs that files of the project name before
// anybody is asked: command hooks, helpers for credentials, and the servers of .mcp.json. Variables of
// env change which program the agent or its shell starts (observed on 2.1.329, TestProgramsOfTheProject
// in conformance). Named sources are a decision of the host. What only the interactive agent starts,
// such as the command of a status line, is not listed, nor what needs a directory whose trust a person
// has confirmed: headersHelper of servers, hooks and servers of .claude/agents.

// helpers are keys of the settings whose text is a command. The agent runs some of them with some providers only, which
// the project's own env can select.
func helpers() []string {
	return []string{"apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "gcpAuthRefresh", "otelHeadersHelper", "proxyAuthHelper"}
}

// startsByEnv reports whether a variable decides which program the agent or its shell starts, or is code for it.
func startsByEnv(name string) bool {
	exact := []string{
		"BASH_ENV", "ENV", "SHELL", "ZDOTDIR", "PATH", "PROMPT_COMMAND", "CLAUDE_CODE_SHELL", "CLAUDE_CODE_SHELL_PREFIX", "CLAUDE_ENV_FILE",
		"NODE_OPTIONS", "BUN_OPTIONS", "PYTHONSTARTUP", "PERL5OPT", "RUBYOPT", "PAGER", "EDITOR", "VISUAL",
	}
	return slices.Contains(exact, name) || slices.ContainsFunc([]string{"LD_", "DYLD_", "GIT_"}, func(p string) bool { return strings.HasPrefix(name, p) })
}

// checkPrograms reports the programs that files of the project name, unless the host has named the
// sources.
func checkPrograms(o *dialect.Input, p *build.Problems) {
	if !o.SettingSources.IsDefault() {
		return
	}
	off := disabledServers(o)
	told := 0
	for _, f := range o.LoadedSettings {
		if f.Source == "user" {
			continue
		}
		var found []optionfile.Mistake
		if f.Servers {
			found, off = serverPrograms(f.Content, o, off)
		} else {
			found = settingsPrograms(f.Content)
		}
		for _, m := range found {
			if told++; told > maxSettingsMistakes {
				return
			}
			const fix = "name the sources in SettingSources (user, project, local) if this may run, or leave project and local out"
			problem := placed(f.Path, f.Content, m)
			if o.Unattended {
				p.Add("SettingSources", problem, fix)
			} else {
				p.Warn("SettingSources", f.Source, problem, fix)
			}
		}
	}
}

// settingsPrograms are the programs that a settings file names.
func settingsPrograms(doc []byte) []optionfile.Mistake {
	root := optionfile.ReadJSON(doc)
	if root == nil {
		return nil // the agent drops it
	}
	var found []optionfile.Mistake
	add := func(n *optionfile.Node, key, what string) { found = append(found, n.Mistake(key, what, "")) }
	for _, top := range root.Pairs {
		switch key := top.Key.Text; {
		case slices.Contains(helpers(), key) && top.Value.Text != "":
			add(top.Value, key, starts(top.Value.Text))
		case key == "hooks":
			for _, event := range top.Value.Pairs {
				for i, group := range event.Value.List {
					for j, hook := range under(group, "hooks").List {
						if command := under(hook, "command"); command.Text != "" {
							add(command, fmt.Sprintf("hooks.%s[%d].hooks[%d]", event.Key.Text, i, j), starts(commandLine(command, under(hook, "args"))))
						}
					}
				}
			}
		case key == "env":
			for _, v := range top.Value.Pairs {
				if startsByEnv(v.Key.Text) {
					add(v.Value, "env."+v.Key.Text, "decides which programs the agent and its shell start, and nobody is asked")
				}
			}
		}
	}
	return found
}

// serverPrograms are the programs that an .mcp.json names, without the servers that are off. Its own are off in the files
// of the directories above.
func serverPrograms(doc []byte, o *dialect.Input, off []string) (found []optionfile.Mistake, nowOff []string) {
	root := optionfile.ReadJSON(doc)
	if root == nil || o.StrictMCPConfig {
		return nil, off
	}
	for _, s := range under(root, "mcpServers").Pairs {
		name := s.Key.Text
		if _, replaced := o.MCPServers[name]; replaced || slices.Contains(off, name) {
			continue
		}
		off = append(off, name)
		if command := under(s.Value, "command"); command.Text != "" {
			found = append(found, command.Mistake("mcpServers."+name, starts(commandLine(command, under(s.Value, "args"))), ""))
		}
	}
	return found, off
}

// disabledServers are the names of servers that a settings file turns off.
func disabledServers(o *dialect.Input) []string {
	var names []string
	read := func(doc []byte) {
		root := optionfile.ReadJSON(doc)
		for _, name := range under(root, "disabledMcpjsonServers").List {
			names = append(names, name.Text)
		}
		for _, denied := range under(root, "deniedMcpServers").List {
			names = append(names, under(denied, "serverName").Text)
		}
	}
	for _, f := range o.LoadedSettings {
		if !f.Servers {
			read(f.Content)
		}
	}
	read(o.Settings)
	read(settingsFile(o))
	return names
}

// commandLine is a command with its arguments, as a message shows it.
func commandLine(command, args *optionfile.Node) string {
	words := []string{command.Text}
	for _, a := range args.List {
		words = append(words, a.Text)
	}
	return strings.Join(words, " ")
}

// starts says that a program is started.
func starts(command string) string {
	const most = 200
	if short := []rune(command); len(short) > most {
		command = string(short[:most]) + "…"
	}
	return fmt.Sprintf("starts %q before anybody is asked", command)
}

// under is the value of a key, or an empty node (null).
func under(n *optionfile.Node, key string) *optionfile.Node {
	if n != nil {
		if value := n.Get(key); value != nil {
			return value
		}
	}
	return &optionfile.Node{}
}
