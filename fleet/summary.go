package fleet

import (
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/runtime"
)

// Summary is what summary.json says.
type Summary struct {
	Job      string         `json:"job"`
	Started  time.Time      `json:"started"` // of this process
	Ended    time.Time      `json:"ended"`
	Tasks    int            `json:"tasks"`
	Accepted int            `json:"accepted"`
	Left     int            `json:"left"` // without a result
	ByStatus map[Status]int `json:"byStatus"`
	ByFamily map[Family]int `json:"byFamily"`
	Usage    Usage          `json:"usage"` // of all processes
	// Began is when the first attempt of all processes did; or zero. Worked is for how long at
	// least one attempt ran, in all processes together.
	Began  time.Time `json:"began,omitzero"`
	Worked Duration  `json:"worked,omitzero"`
	// Agent, Model and Verifier are those of the job; a task may have its own. Verifier is the
	// command, or "a function". Title and Command are the job's.
	Title    string `json:"title,omitempty"`
	Command  string `json:"command,omitempty"`
	Agent    string `json:"agent,omitempty"`
	Model    string `json:"model,omitempty"`
	Verifier string `json:"verifier,omitempty"`
	// Of all results: attempts, how often a task was requeued, runs of the verifier in the
	// last attempts, and calls of tools that were denied in them.
	Attempts int   `json:"attempts"`
	Requeued int   `json:"requeued"`
	Rounds   int   `json:"rounds"`
	Denied   int   `json:"denied"`
	Stop     *Stop `json:"stop,omitempty"` // why it ended before all tasks had, or nil
	// Pace is how Job.Pace has changed the number of attempts that run, in this process; at
	// most the last 1,000 changes. Starved is for how long the machine had too little
	// processor time for them. Both are of jobs with Job.Pace.
	Pace    []runtime.AccountChange `json:"pace,omitempty"`
	Starved Duration                `json:"starved,omitzero"`
}

// summarize writes summary.json and the report.
func (r *reporter) summarize(end *closing) error {
	p := &end.progress
	s := Summary{
		Job: r.job.ID, Started: p.Started.UTC(), Ended: r.clock.Now().UTC(), Tasks: p.Finished + end.left, Accepted: p.ByStatus[Accepted],
		Left: end.left, ByStatus: p.ByStatus, ByFamily: map[Family]int{}, Usage: p.Usage,
	}
	if s.Left > 0 {
		s.Stop = p.Stop
	}
	r.describe(&s, end)
	if r.job.Pace != nil {
		s.Pace, s.Starved = end.changes, Duration(p.Starved.Round(time.Millisecond))
	}
	for status, n := range p.ByStatus {
		s.ByFamily[status.Family()] += n
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	err = journal.WriteFile(r.records.fs, summaryFile, func(w io.Writer) error { _, err := w.Write(append(text, '\n')); return err })
	return errors.Join(err, r.report(s, end))
}
