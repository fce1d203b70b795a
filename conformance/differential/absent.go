package differential

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// vendorTools are the tools of Claude Code 2.1.329, by the names that models use.
func vendorTools() []string {
	return []string{
		"Agent", "AskUserQuestion", "Bash", "CronCreate", "CronDelete", "CronList", "Edit", "EnterPlanMode", "EnterWorktree",
		"ExitPlanMode", "ExitWorktree", "Glob", "Grep", "KillShell", "ListAgents", "Monitor", "NotebookEdit", "Read",
		"ReportFindings", "ScheduleWakeup", "SendMessage", "Skill", "Task", "TaskCreate", "TaskGet", "TaskList", "TaskStop",
		"TaskUpdate", "TodoWrite", "ToolSearch", "WebFetch", "WebSearch", "Workflow", "Write",
	}
}

// programs are those that a machine may not have, and cases run.
var programs = regexp.MustCompile(`\b(python3|node|git|npm|ps|awk|diff|setsid|nohup|xargs)\b`)

// Absent is what an agent with these tools does not have of what the case is about; "": it
// has all.
func (c *Case) Absent(tools []string) string {
	for _, name := range c.Calls() {
		known := name
		switch name {
		case "KillShell": // an old name
			known = "TaskStop"
		case "Agent": // which system/init says by its old name
			known = "Task"
		}
		if slices.Contains(vendorTools(), name) && !slices.Contains(tools, known) {
			return "tool " + name
		}
	}
	switch {
	case c.Sources != "" && !slices.Contains(c.Calls(), "Skill"):
		return "option SettingSources"
	case c.Settings.Hooks != nil || c.Settings.Sandbox != nil || c.Settings.Permissions.Ask != nil:
		return "option Settings"
	case len(c.servers()) > 0 && !exists("/usr/bin/python3"):
		return "program python3"
	case slices.Contains(c.Calls(), "WebFetch") && !c.Settings.SkipWebFetchPreflight:
		return "the vendor's check of hosts"
	}
	for _, prompt := range c.Prompts {
		if name, is := strings.CutPrefix(prompt, "/"); is && name != "compact" {
			return "command /" + strings.Fields(name)[0]
		}
	}
	for _, s := range c.Script {
		for _, b := range s.Content {
			if needs := programs.FindString(string(b.Input)); needs != "" {
				if _, err := exec.LookPath(needs); err != nil {
					return "program " + needs
				}
			}
		}
	}
	if os.Getuid() == 0 && c.guarded() {
		return "a user who is not root"
	}
	return ""
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// guarded reports whether the case has files that its user must not touch: nothing is
// forbidden to root.
func (c *Case) guarded() bool {
	for _, f := range c.Files {
		if f.Mode == "0000" || f.Mode == "0555" && f.Dir {
			return true
		}
	}
	return false
}
