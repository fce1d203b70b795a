package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-troupe/troupe/sdk"
)

func planFlags() []flagSpec {
	return []flagSpec{
		flagSpec{name: "output", short: "o", arg: "FORM", help: "text or json; default: text"}.of(func(s *settings) *string { return &s.output }, outputText, outputJSON),
		{name: "json", help: "the same as --output json", set: func(s *settings, _ string) error { s.output = outputJSON; return nil }},
		helpFlag(),
	}
}

// ruleFlags are the permission flags without those that answer.
func ruleFlags() []flagSpec {
	return slices.DeleteFunc(permissionFlags(), func(f flagSpec) bool { return f.name == "yes" || f.name == "no" })
}

func optionsPage() page {
	return page{text: `Usage: troupe options [flags]
       troupe options [-o FORM] run [flags of run] ["PROMPT"]

Prints how an agent would be started: its arguments, the variables added to its environment, the
files written for it, the first control requests, and the time limits of the session. Secrets are
masked. Nothing is started.
The first form shows exactly the given configuration, without what troupe run adds: the agent's own
system prompt, and the questions for permission. The second form shows what troupe run would start.
`, groups: []flagGroup{
		{"The agent", agentFlags()}, {"Output", planFlags()}, {"Permissions", ruleFlags()}, {"Sessions", sessionFlags()},
	}}
}

// options is troupe options. It reads the arguments after the word run as troupe run does.
func (a *app) options() *cobra.Command {
	own := a.settings()
	cmd := a.command(own, "options [flags]", "print how an agent would be started; starts nothing", optionsPage(), optionsCommand)
	run := a.command(a.settings(), "run [flags of run] [PROMPT]", "print what troupe run would start", runPage(),
		func(ctx context.Context, p process, c *console, s *settings) int {
			return optionsRun(ctx, p, c, own, s)
		})
	run.SetHelpFunc(nil) // that of options
	cmd.AddCommand(run)
	return cmd
}

func optionsPrompt() error {
	return &usageError{"troupe options takes no prompt", "leave it out; troupe options run [flags] shows what troupe run starts"}
}

func optionsCommand(_ context.Context, p process, c *console, s *settings) int {
	if len(s.words) > 0 {
		return c.usage(optionsPrompt())
	}
	err := s.appendPrompt()
	if err == nil {
		err = s.chooseAgent(p.getenv)
	}
	if err != nil {
		return c.usage(err)
	}
	return s.showPlan(c, s.output)
}

// optionsRun is troupe options run. own is what was given before the word run.
func optionsRun(ctx context.Context, p process, c *console, own, s *settings) int {
	if own.gave("help") {
		help := optionsPage()
		return c.print(help.String())
	}
	if slices.ContainsFunc(own.given, func(f givenFlag) bool { return f.name != "output" && f.name != "json" }) {
		return c.usage(optionsPrompt())
	}
	err := cmp.Or(own.complete(), s.completeSession())
	if err == nil {
		err = s.chooseAgent(p.getenv)
	}
	if err == nil {
		err = s.completeResume(ctx)
	}
	if err != nil {
		return c.usage(err)
	}
	if !s.inCloud() {
		s.opts.CanUseTool = newDecider(s, p, c).canUseTool
	}
	return s.showPlan(c, own.output)
}

// showPlan prints how the agent would be started.
func (s *settings) showPlan(c *console, form string) int {
	plan, err := sdk.PreviewLaunch(&s.opts)
	if err != nil {
		return c.usage(&usageError{problem: s.inTerms(err.Error())})
	}
	if form != outputJSON {
		return c.print(planText(plan, s))
	}
	raw, err := json.MarshalIndent(plan, "", "  ")
	if err != nil {
		return c.usage(&usageError{problem: err.Error()})
	}
	return c.print(string(raw) + "\n")
}

// systemText says which system prompt the agent gets.
func systemText(o *sdk.Options, agent string) string {
	s := &o.SystemPrompt
	switch {
	case s.Preset && s.Append != "":
		return "the agent's own, and after it:\n" + printable(s.Append)
	case s.Preset, s.IsZero() && agent != "claude":
		return "the agent's own"
	case s.File != "":
		return "that of the file " + printable(s.File)
	case strings.Join(s.Blocks, "") == "":
		return "empty"
	}
	return printable(strings.Join(s.Blocks, "\n"))
}

// planText is a plan for people.
func planText(p *sdk.LaunchPreview, s *settings) string {
	var b strings.Builder
	line := func(name, format string, a ...any) {
		text := strings.TrimSuffix(fmt.Sprintf(format, a...), "\n")
		for i, l := range strings.Split(text, "\n") {
			if i > 0 {
				name = ""
			}
			b.WriteString(strings.TrimRight(fmt.Sprintf("%-12s%s", name, l), " ") + "\n")
		}
	}
	line("agent", "%s", p.Backend)
	program := p.Path
	if program == "" {
		program = strings.Join(p.Names, " or ") + ", on the agent's PATH"
	}
	if s.inCloud() {
		program = "none: the agent is in Qoder's cloud"
	}
	line("program", "%s", strings.Join(append(slices.Clone(p.Interpreter), program), " "))
	if p.Dir != "" {
		line("directory", "%s", p.Dir)
	}
	line("system", "%s", systemText(&s.opts, p.Backend))
	line("arguments", "%s", argumentLines(p.Args))
	var vars []string
	for _, v := range p.Env {
		vars = append(vars, v.Name+"="+v.Value)
	}
	if p.CleanEnv {
		line("environment", "%s\nand nothing else", strings.Join(vars, "\n"))
	} else {
		line("environment", "%s", strings.Join(append(vars, without(p.Unset)...), "\n"))
	}
	for _, f := range p.Files {
		line("file", "%s, %d bytes: %s\n%s", f.Name, f.Size, f.Reason, prettyJSON(f.Content))
	}
	line("initialize", "%s", prettyJSON(p.Initialize))
	for _, r := range p.Requests {
		line("then", "%s", prettyJSON(r))
	}
	line("limits", "%s", limitLines(p.Timeouts))
	for _, w := range p.Warnings {
		line("warning", "%s", s.inTerms(w.String()))
	}
	return b.String()
}

// limitLines says how long each wait may be, and which option says so.
func limitLines(limits []sdk.PreviewTimeout) string {
	lines := make([]string, len(limits))
	for i, t := range limits {
		limit := "none"
		if t.Limit > 0 {
			limit = t.Limit.String()
		}
		var by string
		switch {
		case t.Option == "":
		case t.Default:
			by = "the default of " + t.Option
		default:
			by = t.Option
		}
		lines[i] = strings.TrimRight(fmt.Sprintf("%-9s %-44s %s", limit, t.What, by), " ")
	}
	return strings.Join(lines, "\n")
}

// argumentLines has each flag on a line with its value.
func argumentLines(args []string) string {
	var lines []string
	for i, a := range args {
		if i > 0 && !strings.HasPrefix(a, "--") && strings.HasPrefix(args[i-1], "--") && !strings.Contains(args[i-1], "=") {
			lines[len(lines)-1] += " " + shellQuoted(a)
			continue
		}
		lines = append(lines, shellQuoted(a))
	}
	return strings.Join(lines, "\n")
}

// shellQuoted is an argument as a shell takes it.
func shellQuoted(arg string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./,:@%+{}"
	if arg != "" && strings.Trim(arg, plain) == "" {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

func without(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = "without " + n
	}
	return out
}

func prettyJSON(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}
