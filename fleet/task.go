package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Task is one piece of work for an agent. Its JSON form is one line of the input of
// troupe batch.
type Task struct {
	// ID names the task in results, files and After. It must be unique in the job, and
	// have only letters, digits, and . _ - after the first character; at most 100.
	ID string `json:"id"`
	// Prompt is the first message. If the task has After, it is a template of package
	// text/template: {{(index .Results "a").Text}} is the answer of task a.
	Prompt string `json:"prompt,omitempty"`
	// Turns are further messages in the same session, sent one after another. They are
	// templates where Prompt is one. Default: none.
	Turns []string `json:"turns,omitempty"`
	// Slash sends Prompt and Turns as they are, so that the agent takes a text that begins with a
	// slash as a command. Default: false, such a text is for the model. A success for which no
	// model was asked is suspicious, unless the command is one of the project's own, below
	// .claude in the workspace.
	Slash bool `json:"slash,omitempty"`
	// Options are options of this task alone, an object with the keys of sdk.LoadOptions.
	// They replace those of the job, key by key. Default: none.
	Options json.RawMessage `json:"options,omitempty"`
	// Workspace is where the agent works. nil: that of the job.
	Workspace *Workspace `json:"workspace,omitempty"`
	// Timeout limits one attempt, with its verification. Default: 0, that of the job.
	Timeout Duration `json:"timeout,omitzero"`
	// Budget limits all attempts of the task together. When it is spent no further turn, round
	// of the verifier or attempt starts, and the task is OverBudget. A turn that runs may
	// exceed it, but for Wall, which ends it. Default: that of the job for each task
	// (Job.TaskBudget).
	Budget *Budget `json:"budget,omitempty"`
	// Tags are for your own use: they are in the result and in the report.
	Tags []string `json:"tags,omitempty"`
	// After are the ids of tasks that must be accepted first. If one of them ends in
	// another way, this task is skipped.
	After []string `json:"after,omitempty"`
	// Exclusive is a key: two tasks with the same one never run at the same time.
	// Default: "", none.
	Exclusive string `json:"exclusive,omitempty"`
	// Priority: tasks with a higher number start first. Default: 0.
	Priority int `json:"priority,omitempty"`
	// NotBefore is the earliest start, for example the hour at which a quota is fresh. Until
	// then the task takes no place of Job.Concurrency. Default: zero, at once.
	NotBefore time.Time `json:"notBefore,omitzero"`
	// Labels are compared with runtime.Admission.Labels, when several jobs share a runtime:
	// a task that has to wait there holds its place of Job.Concurrency. Default: none, but
	// for "account" and "agent", see runtime.LabelLimit.
	Labels map[string]string `json:"labels,omitempty"`
	// Verify decides whether a success counts. nil: that of the job.
	Verify *Verify `json:"verify,omitempty"`
	// ExpectTools makes a success suspicious if the agent called no tool.
	ExpectTools bool `json:"expectTools,omitempty"`
	// ExpectChange makes a success suspicious if no file of the workspace has changed since
	// Setup. In a git repository that are commits, and files that are not ignored; elsewhere
	// names, sizes and times of files. In a workspace that is used as it is, another task may
	// have made the change.
	ExpectChange bool `json:"expectChange,omitempty"`
	// Clean starts every further attempt in a fresh session and a fresh workspace.
	Clean bool `json:"clean,omitempty"`
}

// prompts are all messages of the task.
func (t *Task) prompts() []string { return append([]string{t.Prompt}, t.Turns...) }

// Verify decides whether a success of the agent counts. Command and Check exclude each
// other.
type Verify struct {
	// Command is run by sh -c in the workspace. Exit code 0 accepts. Its environment is
	// that of this process, with TROUPE_TASK, TROUPE_SLOT, TROUPE_PORT_BASE and TROUPE_FENCE.
	// After Prompt it is not run again, and the verdict stays, if the agent has called no tool but
	// Read, Grep, Glob, LS, NotebookRead and TodoWrite, and no file of the workspace has changed.
	// With Job.CommandSpawner it is always run again.
	Command string `json:"command,omitempty"`
	// Check decides in this process. An error is a failure of the infrastructure; a panic,
	// too.
	Check func(context.Context, Candidate) (Verdict, error) `json:"-"`
	// Prompt is sent to the same session when the verification rejects. {{.Output}} is what
	// the verifier said. Default: "", no second chance.
	Prompt string `json:"prompt,omitempty"`
	// Rounds is how often Prompt is sent at most. Default: 0, which is 1.
	Rounds int `json:"rounds,omitempty"`
	// Timeout limits one run of Command or Check. Default: 0, which is 10 min.
	Timeout Duration `json:"timeout,omitzero"`
}

// Candidate is a success to verify.
type Candidate struct {
	Task       *Task // do not modify
	Attempt    int   // from 1
	Dir        string
	Text       string          // the final answer
	Structured json.RawMessage // structured output; nil: none
}

// Verdict is what a verifier says.
type Verdict struct {
	OK     bool   `json:"ok"`
	Output string `json:"output,omitempty"` // why; at most 64 KiB of it are kept
	Rounds int    `json:"rounds,omitempty"` // how often the attempt was judged; the job sets it
}

// Budget limits usage. A zero field: no limit. USD and tokens count subagents, as the
// agent reports them.
type Budget struct {
	// USD are US dollars. Qoder reports none, so that a limit is an error. An agent of the
	// Agent Client Protocol need not report them: it then spends nothing.
	USD     float64 `json:"usd,omitempty"`
	Credits float64 `json:"credits,omitempty"` // Qoder's
	Turns   int     `json:"turns,omitempty"`   // calls of the model and results of tools
	// Wall is the time that attempts took, added up.
	Wall   Duration `json:"wall,omitzero"`
	Tokens Tokens   `json:"tokens,omitzero"`
}

// Tokens are counted by class, because a token read from the cache costs a fraction of
// the others, and is usually most of what moves.
type Tokens struct {
	Input      int64 `json:"input,omitempty"` // without those of the cache
	Output     int64 `json:"output,omitempty"`
	CacheWrite int64 `json:"cacheWrite,omitempty"`
	CacheRead  int64 `json:"cacheRead,omitempty"`
}

// Usage counts tokens, cost, turns and time.
type Usage struct {
	USD     float64  `json:"usd"`
	Credits float64  `json:"credits,omitempty"`
	Turns   int      `json:"turns"`
	Wall    Duration `json:"wall"`
	Tokens  Tokens   `json:"tokens"`
}

func (u *Usage) add(o Usage) {
	u.USD += o.USD
	u.Credits += o.Credits
	u.Turns += o.Turns
	u.Wall += o.Wall
	u.Tokens.Input += o.Tokens.Input
	u.Tokens.Output += o.Tokens.Output
	u.Tokens.CacheWrite += o.Tokens.CacheWrite
	u.Tokens.CacheRead += o.Tokens.CacheRead
}

// exceeded names the limit of b that u has reached; "": none.
func (b *Budget) exceeded(u Usage) string { return b.reached(u, 1) }

// reached is exceeded for a part of each limit.
func (b *Budget) reached(u Usage, part float64) string {
	if b == nil {
		return ""
	}
	for _, l := range []struct {
		name         string
		limit, value float64
	}{
		{"usd", b.USD, u.USD},
		{"credits", b.Credits, u.Credits},
		{"turns", float64(b.Turns), float64(u.Turns)},
		{"wall", float64(b.Wall), float64(u.Wall)},
		{"tokens.input", float64(b.Tokens.Input), float64(u.Tokens.Input)},
		{"tokens.output", float64(b.Tokens.Output), float64(u.Tokens.Output)},
		{"tokens.cacheWrite", float64(b.Tokens.CacheWrite), float64(u.Tokens.CacheWrite)},
		{"tokens.cacheRead", float64(b.Tokens.CacheRead), float64(u.Tokens.CacheRead)},
	} {
		if l.limit > 0 && l.value >= l.limit*part {
			return l.name
		}
	}
	return ""
}

// leftUSD is what may still be spent; 0: no limit.
func (b *Budget) leftUSD(u Usage) float64 {
	if b == nil || b.USD <= 0 {
		return 0
	}
	return max(b.USD-u.USD, 1e-6)
}

func leastUSD(a, b float64) float64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Duration is a time.Duration whose JSON form is a text such as 1m30s.
type Duration time.Duration

func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes a text such as 1m30s.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a text such as 1m30s.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a time; write 90s or 10m", text)
	}
	*d = Duration(v)
	return nil
}
