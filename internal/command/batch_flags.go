package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/internal/textfile"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// batchSettings is what the flags of troupe batch say besides those of every command.
type batchSettings struct {
	job       fleet.Job
	format    string // of the tasks; "": by the name of the file
	template  string
	sets      []string // keys of tasks from columns
	places    []string // of the tasks in their file
	workspace string
	setup     string
	verify    fleet.Verify
	dryRun    bool
	noControl bool
	webhook   string // of approvals
	admission runtime.Admission
	events    string
}

// batchAgentFlags are those of troupe run. The time limit is one of each attempt, and the
// directory that of the tasks without a workspace.
func batchAgentFlags() []flagSpec {
	return slices.DeleteFunc(agentFlags(), func(f flagSpec) bool { return f.name == "timeout" })
}

func batchPermissionFlags() []flagSpec {
	flags := slices.DeleteFunc(permissionFlags(), func(f flagSpec) bool { return f.name == "no" }) // it is the default
	return append(flags, flagSpec{name: "approvals", help: "calls that no rule decides wait for troupe approvals, instead of being denied", set: func(s *settings, _ string) error {
		s.batch.job.Approvals = &fleet.Approvals{}
		return nil
	}}, flagSpec{name: "webhook", arg: "URL", help: "with --approvals: post each call that waits there, signed with the variable " + envWebhookSecret, set: text(func(s *settings) *string { return &s.batch.webhook })})
}

func taskFlags() []flagSpec {
	return []flagSpec{
		flagSpec{name: "format", arg: "FORM", help: "jsonl, csv or yaml; default: by the name of the file, jsonl for stdin"}.of(func(s *settings) *string { return &s.batch.format }, formJSONL, formCSV, formYAML),
		{name: "template", arg: "TEXT|@FILE", help: "the prompt of every task, with the fields of its line: 'Fix {{.issue}}'", set: textOrFile(func(s *settings) *string { return &s.batch.template })},
		{name: "set", arg: "KEY=TEXT", help: "with --template: a key of every task from its line, such as workspace.from='{{.repo}}', tags, verify, budget or timeout; may be repeated", set: func(s *settings, v string) error {
			s.batch.sets = append(s.batch.sets, v)
			return nil
		}},
		{name: "id", arg: "NAME", help: "the name of the job in its journal; default: job", set: text(func(s *settings) *string { return &s.batch.job.ID })},
	}
}

func limitFlags() []flagSpec {
	return []flagSpec{
		{name: "concurrency", short: "j", arg: "N|auto", help: "how many tasks run at the same time; auto: as many as the model's API takes, from 2 on; default: 4", set: setConcurrency},
		{name: "deferred", help: "the model answers within a day, for half the price: requests of all tasks are submitted together (--agent embedded, with Anthropic or OpenAI); -j is then how many sessions are open, default: 256", set: on(func(s *settings) *bool { return &s.batch.job.Deferred })},
		{name: "max-park", arg: "TIME", help: "the longest wait for the next window of a subscription that is spent; 0: none, the job stops; default: 26h", set: func(s *settings, v string) error {
			if v == "0" {
				s.batch.job.MaxPark = -1
				return nil
			}
			return duration(func(s *settings) *time.Duration { return &s.batch.job.MaxPark })(s, v)
		}},
		{name: "patience", arg: "TIME", help: "how long to wait for what all tasks need: an agent's program that does not start, a model's API that fails, a machine that is short of something; then the job stops; 0: no wait, these failures count as the task's own; default: 30m", set: func(s *settings, v string) error {
			if v == "0" {
				s.batch.job.Patience = -1
				return nil
			}
			return duration(func(s *settings) *time.Duration { return &s.batch.job.Patience })(s, v)
		}},
		{name: "retries", arg: "N", help: "how often a task is tried again after a failure that may pass; default: 2", set: func(s *settings, v string) error {
			if err := number(0, func(s *settings) *int { return &s.batch.job.Attempts })(s, v); err != nil {
				return err
			}
			s.batch.job.Attempts++
			return nil
		}},
		{name: "max-starts", arg: "N", help: "how often a task is started in all, and how many hosts in a row may die while it runs, until it is quarantined; default: 3 times the attempts", set: number(1, func(s *settings) *int { return &s.batch.job.MaxStarts })},
		{name: "equal-failures", arg: "N", help: "gives a task up after N failures in a row with the same text and no turn between them, whatever --retries says; 0: never; default: 10", set: number(0, func(s *settings) *int { return &s.batch.job.EqualFailures })},
		{name: "timeout", short: "t", arg: "TIME", help: "the time limit of each attempt, such as 90s or 10m", set: duration(func(s *settings) *time.Duration { return &s.batch.job.Timeout })},
		{name: "budget-usd", arg: "N", help: "starts nothing more when the job has cost this much, in US dollars", set: func(s *settings, v string) error {
			usd, err := strconv.ParseFloat(v, 64)
			if err != nil || !(usd > 0) {
				return fmt.Errorf("%q is not an amount of US dollars", v)
			}
			s.batch.job.Budget = &fleet.Budget{USD: usd}
			return nil
		}},
		{name: "fail-on", arg: "N|N%", help: "starts nothing more when so many tasks have failed", set: setFailOn},
	}
}

func setConcurrency(s *settings, v string) error {
	if s.batch.job.Pace = nil; v == "auto" {
		s.batch.job.Concurrency, s.batch.job.Pace = 0, &fleet.Pace{}
		return nil
	}
	if err := number(1, func(s *settings) *int { return &s.batch.job.Concurrency })(s, v); err != nil {
		return fmt.Errorf("%w, or auto", err)
	}
	return nil
}

func placeFlags() []flagSpec {
	return []flagSpec{
		{name: "out", short: "O", arg: "DIR", help: "where journal, results and transcripts go, a new or empty directory; default: the name of TASKS with the ending .out", set: text(func(s *settings) *string { return &s.batch.job.Out })},
		{name: "resume", short: "r", help: "go on with the job in --out; finished tasks are not run again", set: on(func(s *settings) *bool { return &s.batch.job.Resume })},
		flagSpec{name: "workspace", short: "w", arg: "KIND", help: "where a task works: as-is (in --cwd), copy, or worktree (of the git repository in --cwd); default: as-is"}.of(func(s *settings) *string { return &s.batch.workspace }, "as-is", "copy", "worktree"),
		{name: "setup", arg: "COMMAND", help: "run by sh in each new copy or worktree", set: text(func(s *settings) *string { return &s.batch.setup })},
		{name: "shared-mcp-dir", arg: "DIR", help: "the working directory of MCP servers that are marked shared, so that tasks in copies and worktrees share them; default: that of the task", set: text(func(s *settings) *string { return &s.batch.job.SharedMCPDir })},
		{name: "setups", arg: "N", help: "how many setups and teardowns run at the same time; default: 2", set: number(1, func(s *settings) *int { return &s.batch.job.Setups })},
	}
}

func checkFlags() []flagSpec {
	return []flagSpec{
		{name: "verify", arg: "COMMAND", help: "run by sh where the task worked; a task counts only if it ends with 0", set: text(func(s *settings) *string { return &s.batch.verify.Command })},
		{name: "verify-prompt", arg: "TEXT|@FILE", help: "what the agent is told when --verify fails; {{.Output}} is what it said", set: textOrFile(func(s *settings) *string { return &s.batch.verify.Prompt })},
		{name: "verify-rounds", arg: "N", help: "how often; default: 1", set: number(1, func(s *settings) *int { return &s.batch.verify.Rounds })},
		{name: "on-accept", arg: "COMMAND", help: "run by sh where an accepted task worked, at most once: to push a branch, or to open a pull request", set: text(func(s *settings) *string { return &s.batch.job.OnAccept })},
	}
}

// removedFlags are errors that say so. No help lists them.
func removedFlags() []flagSpec {
	return []flagSpec{{name: "lockfiles", arg: "FILES", set: func(*settings, string) error {
		return errors.New("it was removed: setups have no cache of the job any more; let --setup use the cache of its package manager")
	}}}
}

func batchOutputFlags() []flagSpec {
	return []flagSpec{
		{name: "dry-run", short: "n", help: "check everything and print the plan; starts and writes nothing, except with --estimate", set: on(func(s *settings) *bool { return &s.batch.dryRun })},
		{name: "estimate", arg: "N", help: "run N of the tasks, which costs what they cost, and print what all would use; --resume then runs the others", set: number(1, func(s *settings) *int { return &s.batch.job.Sample })},
		{name: "events", arg: "FILE", help: "append what happens to this file, a JSON object on each line", set: text(func(s *settings) *string { return &s.batch.events })},
		{name: "json", help: "print what summary.json has in place of the summary; not with --dry-run and --estimate", set: on(func(s *settings) *bool { return &s.asJSON })},
		{name: "quiet", short: "q", help: "print only the summary and errors", set: on(func(s *settings) *bool { return &s.quiet })},
		{name: "inspect", help: "show the sessions to troupe ps, troupe top and troupe mcp; so does the variable TROUPE_INSPECT=1", set: on(func(s *settings) *bool { return &s.inspect })},
		{name: "ui", help: "show the job in a browser while it runs, on a free port of this machine: prints an address that lets one browser in, which may then read all and steer the job", set: on(func(s *settings) *bool { return &s.window.open })},
		{name: "no-control", help: "open no socket in --out for troupe ctl", set: on(func(s *settings) *bool { return &s.batch.noControl })},
		helpFlag(),
	}
}

func batchPage() page {
	return page{text: `Usage: troupe batch [flags] TASKS

Gives each task in the file TASKS to an agent, several at a time, and keeps every result once. TASKS
is JSONL, CSV or YAML; - is stdin. A task has a prompt and, if you like, an id, a workspace, a budget
and more: see docs/fleets.md.

Nobody is asked for permission: a call that --allowed-tools, --yes and the file of --config do not
allow is denied, and counted. A success counts if --verify agrees; without it, if there is an answer.

Results go to results.jsonl, summary.json and report.html in --out. When troupe is killed, the same
command with --resume goes on where it was. The first Ctrl-C lets the running tasks end and starts
no others, the second one interrupts them, the third one kills the agents.
`, groups: []flagGroup{
		{"The agent", batchAgentFlags()}, {"The tasks", taskFlags()}, {"Limits", append(limitFlags(), admissionFlags()...)}, {"Places", placeFlags()},
		{"Verification", checkFlags()}, {"Permissions", batchPermissionFlags()}, {"Many machines (docs/machines.md)", sharedFlags()}, {"Output", batchOutputFlags()}, {"", removedFlags()},
	}, end: `
Exit codes:
    0  every task was accepted
    1  some task was not accepted, or has no result because a limit stopped the job, or its
       command of --on-accept has not ended with 0
    2  a mistake in the arguments or tasks; nothing was started
    3  the agent could not start; nothing was started
    4  the job failed, such as on a full disk, or when --patience was over
    7  the output could not be written
  130  stopped by Ctrl-C; 143 by SIGTERM, 129 by SIGHUP
`}
}

// defaultEqualFailures takes up to six minutes of retries: an overload may last minutes.
const defaultEqualFailures = 10

// completeBatch checks what the arguments of troupe batch say together.
func (s *settings) completeBatch() error {
	if len(s.words) != 1 {
		return &usageError{fmt.Sprintf("troupe batch takes one file of tasks, not %d", len(s.words)), "write troupe batch TASKS, or - to read them from stdin"}
	}
	if err := s.appendPrompt(); err != nil {
		return err
	}
	if s.opts.SystemPrompt.IsZero() && !s.inCloud() && !s.isACP() {
		s.opts.SystemPrompt = sdk.PresetPrompt(s.appendText)
	}
	b := &s.batch
	if b.verify.Command == "" && (b.verify.Prompt != "" || b.verify.Rounds > 0) {
		return &usageError{"--verify-prompt and --verify-rounds need --verify", "give the command that verifies"}
	}
	if b.verify.Command != "" {
		b.job.Verify = &b.verify
	}
	if b.workspace != "" && b.workspace != "as-is" || b.setup != "" {
		b.job.Workspace = &fleet.Workspace{Setup: b.setup}
		if b.workspace != "as-is" {
			b.job.Workspace.Kind = fleet.WorkspaceKind(b.workspace)
		}
	}
	if b.setup != "" && !slices.Contains([]string{"copy", "worktree"}, b.workspace) {
		return &usageError{"--setup is for a workspace that is made", "add --workspace copy or worktree"}
	}
	if b.webhook != "" && b.job.Approvals == nil {
		return &usageError{"--webhook is for --approvals", "add --approvals"}
	}
	if b.job.Approvals != nil && s.yes {
		return &usageError{"--approvals and --yes contradict each other", "leave one of them out"}
	}
	if b.job.Out == "" {
		b.job.Out = outOf(s.words[0])
	}
	b.job.Title = filepath.Base(s.words[0])
	return nil
}

// outOf is the directory for the results of a file of tasks.
func outOf(tasks string) string {
	if tasks == "-" {
		return "troupe.out"
	}
	if at := strings.LastIndexByte(tasks, '.'); at > strings.LastIndexByte(tasks, '/')+1 {
		tasks = tasks[:at]
	}
	return tasks + ".out"
}

func number(least int, field func(*settings) *int) setting {
	return func(s *settings, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < least {
			return fmt.Errorf("%q is not a number from %d", v, least)
		}
		*field(s) = n
		return nil
	}
}

func duration(field func(*settings) *time.Duration) setting {
	return func(s *settings, v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d <= 0 {
			return fmt.Errorf("%q is not a time; write 90s or 10m", v)
		}
		*field(s) = d
		return nil
	}
}

// textOrFile takes a text, or the content of the file behind an @.
func textOrFile(field func(*settings) *string) setting {
	return func(s *settings, v string) error {
		if file, ok := strings.CutPrefix(v, "@"); ok {
			b, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if b, err = textfile.Decode(b); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			v = string(b)
		}
		if strings.TrimSpace(v) == "" {
			return errors.New("its value is empty")
		}
		*field(s) = v
		return nil
	}
}

func setFailOn(s *settings, v string) error {
	percent, ok := strings.CutSuffix(v, "%")
	n, err := strconv.ParseFloat(percent, 64)
	switch {
	case err != nil || !(n > 0) || ok && n > 100 || !ok && n != float64(int(n)):
		return fmt.Errorf("%q is not a number of tasks, such as 5 or 10%%", v)
	case ok:
		s.batch.job.FailOn = fleet.Threshold{Fraction: n / 100}
	default:
		s.batch.job.FailOn = fleet.Threshold{Count: int(n)}
	}
	return nil
}
