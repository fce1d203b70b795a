package fleet

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/fleet/sharedmcp"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// Job is a set of tasks and how to run them. The zero value of each field but Tasks has a
// sensible meaning.
type Job struct {
	// ID names the job in its journal. Default: "job".
	ID string
	// Title is what the report is about, and Command what was typed to start the job. Neither
	// has an effect. Secrets that the job knows are hidden in them. Default: "", none.
	Title, Command string
	// Tasks are the tasks. [Stream] takes them one by one instead.
	Tasks []Task
	// Options are the options of every session. nil: the zero value. Cwd is the workspace
	// of tasks without one. Runtime, if set, runs the job; otherwise the job has its own.
	//
	// The session is unattended (Options.Unattended), because no person is there to answer.
	// Without CanUseTool and Policy, the policy allows AllowedTools and denies all other calls;
	// with Approvals, it asks a person about them. An agent of the Agent Client Protocol has no
	// policies; CanUseTool then denies.
	//
	// Limits.StallKill is a minute unless it is set: an agent that is silent for Limits.Stall,
	// and ignores the interrupt, is killed, and the task is tried again.
	//
	// If Spawner is a session.Adopter, a job that is resumed first ends the agents that
	// outlived the earlier process.
	//
	// Isolation is auto unless it is set: with an API key or a token, each session has a
	// private configuration directory. With Out, this needs a runtime that has a StateDir, so
	// that a later host can resume the sessions, as the job's own has.
	Options *sdk.Options
	// Configure changes the options of one task, after Task.Options. It is called before
	// each attempt. nil: no changes.
	Configure func(context.Context, *Task, *sdk.Options) error
	// Attended turns Options.Unattended off: CanUseTool then may wait for a person without a
	// limit.
	Attended bool

	// Deferred is for sessions whose model answers late, for half the price: the backend is the embedded
	// agent with a model of package model/batch. Concurrency is then how many sessions are open, since
	// their requests are submitted together; most of them wait. A session that is resumed makes the
	// request that it had made before, byte for byte, in place of the note that it was interrupted, so
	// that the answer is paid once. A task with which hosts have died does not start alone. Timeouts and
	// budgets of time include the waits. Default: false.
	Deferred bool
	// Concurrency is how many attempts run at the same time. Default: 0, which is 4, and 256 of a
	// Deferred job.
	Concurrency int
	// Pace adapts how many attempts run at the same time, in place of Concurrency, which must
	// be 0. nil: Concurrency.
	Pace *Pace
	// Account names the provider's account that the job uses. Jobs of one runtime with the
	// same account share its pace, and wait together while it is parked, see MaxPark. Tasks
	// whose own options have other credentials belong in a separate job. Default: "", which
	// is the backend with a hash of the credentials that Options.Env and the environment
	// name.
	Account string
	// MaxPark is the longest wait for an exhausted quota of a subscription to reset. Nothing
	// starts before the reset; then one task probes the account, up to a minute later than
	// the agent said. The wait outlives the program: a resumed job continues to wait. The
	// time of the reset comes from the agent's rate_limit_event or, without one, from the
	// text of its result, if that names a time with its zone. Without a time, or if the wait
	// would be longer than this, the job stops. Default: 0, which is 26 h; negative: the job
	// stops at once.
	MaxPark time.Duration
	// Patience is how long the job waits during a failure that affects all of its tasks and that
	// none of them can fix: an agent's program that does not start, a model's API that fails, a
	// shared MCP server, a machine that has no descriptors, processes, memory or disk left. Such a
	// failure does not count, and while it lasts one attempt at a time probes whether it has
	// passed. After Patience the job stops with the reason [StopOutage], and a resume runs the
	// other tasks. A program that has not started once in this process gets a minute. An agent in
	// memory has no API that all tasks share, unless this is set. Default: 0, which is 30 min;
	// negative: none, and these failures count as the task's own.
	Patience time.Duration
	// Out is the directory of the journal, transcripts and workspaces, and of results.jsonl, a
	// [TaskResult] on each line in the order of the tasks; summary.json, a [Summary]; and
	// report.html, the report for people. It is made
	// if it does not exist, and is empty unless it has the journal of a job; links in it are
	// not followed. "": nothing is kept, and the job cannot be resumed.
	Out string
	// FS stores the files in Out, except workspaces and private configuration directories. A
	// file system that fails and crashes, such as journaltest.Disk, shows in tests what a job
	// does then. nil: the directory Out of this machine.
	FS journal.FS
	// Queue shares the tasks with other programs, which run the same job with the same tasks and
	// a separate directory Out. Each task runs in one of them, with all of its attempts, and
	// each program has all results. A program that loses the lease of a task kills the agent's
	// processes at once, and its result is void. Limits such as Concurrency and FailOn hold for
	// each program. CancelTask, Requeue and Handle.Decide decide for all of them, and so does
	// [Decide] without any of them; what Amend requeues, the others learn when this program
	// resumes. Not for [Stream]. nil: the tasks are this program's alone.
	Queue queue.Queue
	// Share says what this program does for the job of Queue. Default: "", which is [ShareAll].
	Share Share
	// Hashes identify the content of tasks, by their ids, as [Task.Hash] of the program that has
	// submitted the job made them: programs of other versions then agree. A task without one gets
	// its own.
	Hashes map[string]string
	// Files keep long answers, diffs and transcripts for the other programs of Queue. nil:
	// answers are in the queue whole, and diffs and transcripts stay in the directory Out of the program
	// that ran the task.
	Files queue.Files
	// QueueGrace is how long calls of Queue may take after the job was canceled, or has failed:
	// then results that the queue has not taken do not count, and leases end by themselves.
	// Default: 0, which is 10 s.
	QueueGrace time.Duration
	// Affinity is for how long a task that another program has begun is left to it, once its lease has
	// ended without a result: that program, or the next one in its directory Out, resumes the session,
	// and any other one begins anew. Default: 0, the first program that asks for it gets it.
	Affinity time.Duration
	// Move lets another program of Queue continue a task whose program has given it back, or has died: after
	// each turn, and when an attempt is interrupted, the session and the workspace are put into Files. The
	// other one makes a new workspace, fills it, and resumes the session. Of a git repository the commits
	// and changes since the start travel, but not what git ignores, nor repositories inside; of another copy all
	// files; of a directory that is used as it is nothing. Both have 256 MB together. A task
	// that cannot be continued begins anew, and Attempt.Note says so. It needs Files and Out. Default: false.
	Move bool
	// Worker names this program in Queue. No two programs may have the same name. Default:
	// "", which is the name of the machine, the process id, and a random number.
	Worker string
	// Resume continues the job whose journal is in Out. Its tasks must be the same ones.
	Resume bool

	// Sample runs only so many of Tasks, spread evenly, to learn from them what all would use
	// ([NewEstimate]). The job then stops with the reason [StopSample]; with Out, a resume
	// without Sample runs the others. Tasks that are over in the journal count as samples, and
	// a task of After is one only if what it comes after was accepted. Default: 0, all run.
	Sample int

	// Attempts is how many attempts a task has that end by themselves, the first included.
	// Only failures that may pass are tried again. Default: 0, which is 3.
	Attempts int
	// MaxStarts is how often a task is started in all; then it is quarantined. Starts that
	// failed by no fault of the task ([Job.Patience]) do not count. Those that the death of the
	// host ended count apart: a task with which two hosts in a row have died starts last, and
	// while nothing else runs; it is quarantined when MaxStarts hosts in a row have died while it
	// ran, the last of them while it ran alone. Default: 0, which is 3 times Attempts.
	MaxStarts int
	// EqualFailures gives a task up after this many consecutive identical failures without
	// a completed turn, regardless of Attempts. Default: 0, off.
	EqualFailures int
	// Backoff is the delay before a further attempt. Default: up to 1 s, doubled up to 2 min.
	Backoff supervisor.Backoff
	// FailOn stops the job when too many tasks have failed. Default: never.
	FailOn Threshold
	// Budget limits the job. When it is spent no attempt, no turn and no round of a verifier
	// starts; a turn that runs may exceed it. The job stops, and its tasks continue when it
	// is resumed. An event warns at four fifths. nil: no limit.
	Budget *Budget
	// TaskBudget limits each task without Task.Budget. nil: no limit.
	TaskBudget *Budget
	// Subagents limits the subagents of each attempt, and of the job. nil: no limit.
	Subagents *Subagents
	// Timeout limits each attempt of a task without Timeout. Default: 0, no limit.
	Timeout time.Duration
	// Workspace is where each task without one works. nil: Options.Cwd, as it is.
	Workspace *Workspace
	// Setups is how many Setup, Teardown and OnAccept commands run at the same time.
	// Default: 0, which is 2.
	Setups int
	// Verify is the verification of each task without one. nil: none.
	Verify *Verify
	// OnAccept is run by sh -c where a task worked, after its result is accepted and durable: to
	// push a branch, or to open a pull request. It runs at most once for a result; if the host
	// dies meanwhile, its state is unknown, and [Handle.RunOnAccept] runs it again. Its
	// git has the settings that the repository had before the agent ran, and no hooks and filters;
	// commits that it makes are in no repository until it pushes them. Its environment
	// is that of this program without the keys and tokens of the agents and those that the options name, with
	// TROUPE_TASK, TROUPE_FENCE and, in a repository, TROUPE_BASE, the commit that the task began
	// with. It has ten minutes. Remove waits until it has ended with 0. TaskResult.OnAccept has how
	// it ended, in results.jsonl and in a Snapshot; a result that was read before says pending.
	// Default: "", nothing.
	OnAccept string
	// CommandSpawner starts the commands that run in workspaces: Setup, Teardown, Verify.Command
	// and OnAccept, each as sh -c. Verifiers run what agents have written: if Options.Spawner puts
	// agents into containers, this one should put these commands there, too. Command.Dir is the
	// workspace. If it is a session.Adopter, a job that is resumed first ends the commands that
	// outlived the earlier process. nil: this machine, with its environment.
	CommandSpawner session.Spawner

	// Approvals let a person answer later the calls that no rule decides. Options.CanUseTool
	// must be nil. nil: those calls are denied.
	Approvals *Approvals

	// SharedMCP runs the servers of Options.MCPServers that are marked Shared. The caller
	// closes it. nil: the job has its own, which end with it.
	SharedMCP *sharedmcp.Servers
	// SharedMCPDir is the working directory of the job's own servers, so that tasks with
	// separate workspaces share them. Default: "", the directories of the tasks.
	SharedMCPDir string

	// Before is asked before every start of a task, also before retries and after a resume:
	// perhaps the work is done already. nil: every task runs.
	Before func(context.Context, *Task) (Decision, error)
	// OnEvent receives job events, one at a time, in order. It must return quickly.
	// nil: none.
	OnEvent func(Event)
}

// Decision is the answer of Job.Before. The zero value runs the task.
type Decision struct {
	Skip bool
	Fail bool // the task is Failed
	Why  string
}

// Threshold is a number of tasks that failed.
type Threshold struct {
	Count int // 0: no limit
	// Fraction, from 0 to 1, of all tasks of the job, or of the first 10 and more that are
	// over while their number is not known. 0: no limit.
	Fraction float64
}

func (t Threshold) exceeded(failed, over, total int) bool {
	total = cmp.Or(total, max(over, 10))
	return t.Count > 0 && failed >= t.Count || t.Fraction > 0 && failed > 0 && float64(failed) >= t.Fraction*float64(total)
}

// Reasons of a [Stop].
const (
	StopBudget       = "budget"
	StopFailures     = "failures"
	StopDrained      = "drained"
	StopCanceled     = "canceled"
	StopUnauthorized = "unauthorized"
	StopUsageLimit   = "usage_limit"
	StopJournal      = "journal"
	StopQueue        = "queue"  // Job.Queue has failed
	StopOutage       = "outage" // something that all tasks need has failed for longer than Job.Patience
	StopSample       = "sample" // the tasks of Job.Sample are over
)

// Stop says why a job ended before all of its tasks had.
type Stop struct {
	Reason string `json:"reason"` // one of the constants
	Detail string `json:"detail,omitempty"`
}

// StoppedError is the error of a job that ended before all of its tasks had. Resume it
// when the reason has gone.
type StoppedError struct {
	Stop
	Left int   // tasks without a result
	Err  error // the cause; may be nil
}

func (e *StoppedError) Error() string {
	s := fmt.Sprintf("the job has stopped (%s) with %s left", e.Reason, shown.Count(e.Left, "task"))
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

func (e *StoppedError) Unwrap() error { return e.Err }

// noTasks is the error of a job without tasks: a job that ran nothing has failed.
func noTasks() error {
	return &sdk.ConfigError{Option: "Tasks", Problem: "is empty: the job has no tasks, and one that runs nothing has failed", Fix: "give at least one"}
}

// TaskError reports an invalid task.
type TaskError struct {
	Index int    // in Job.Tasks, from 0
	ID    string // may be empty
	Field string // as in JSON
	Err   string
}

func (e *TaskError) Error() string {
	return fmt.Sprintf("task %d (%s): %s %s", e.Index+1, e.ID, e.Field, e.Err)
}

const (
	defaultConcurrency = 4
	deferredSessions   = 256
	defaultAttempts    = 3
	startsPerAttempt   = 3
	defaultQueueGrace  = 10 * time.Second
	maxDependencies    = 1000
)

func (j *Job) withDefaults() {
	j.ID = cmp.Or(j.ID, "job")
	if j.Concurrency <= 0 && j.Pace == nil {
		if j.Concurrency = defaultConcurrency; j.Deferred {
			j.Concurrency = deferredSessions
		}
	}
	if j.Attempts <= 0 {
		j.Attempts = defaultAttempts
	}
	j.Setups = cmp.Or(j.Setups, defaultSetups)
	if j.QueueGrace <= 0 {
		j.QueueGrace = defaultQueueGrace
	}
	if j.MaxStarts <= 0 {
		j.MaxStarts = startsPerAttempt * j.Attempts
	}
	if j.Backoff == (supervisor.Backoff{}) {
		j.Backoff = supervisor.Backoff{Initial: time.Second, Max: 2 * time.Minute}
	}
	j.MaxPark = cmp.Or(j.MaxPark, maxPark)
	if j.Options == nil {
		j.Options = &sdk.Options{}
	}
}

// stateName is the directory in Out for the state of a runtime.
const stateName = "state"

// StateDir is the directory in Out for runtime.Config.StateDir, where the sessions of the job
// keep their private configuration directories; "" without Out. A job without
// Options.Runtime uses it.
func (j *Job) StateDir() string {
	dir, err := filepath.Abs(filepath.Join(j.Out, stateName))
	if j.Out == "" || err != nil {
		return ""
	}
	return dir
}
