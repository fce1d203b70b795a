package fleet

import (
	"bytes"
	"encoding/json"
	"io"
	"time"

	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// projectEvery is the longest time that a result is missing in results.jsonl.
const projectEvery = 5 * time.Second

// reporter writes results.jsonl, the summary and the report. Only the carrier uses it.
type reporter struct {
	*env
	records    *records
	projection projection
}

// projection is the state of results.jsonl. The zero value has nothing to write.
type projection struct {
	lags  time.Time     // since when the file lacks a change; zero: it has all of them
	timer session.Timer // that wakes the job to write the file
}

// outdated says that results.jsonl lacks a change. It is written within projectEvery, with
// all changes that come meanwhile.
func (r *reporter) outdated() {
	if p := &r.projection; r.root != "" && p.lags.IsZero() {
		p.lags = r.clock.Now()
		p.timer = r.clock.AfterFunc(projectEvery, func() { r.post(woken{}) })
	}
}

// update writes results.jsonl if it is time. A failed write is tried again.
func (r *reporter) update(now time.Time) {
	if p := &r.projection; p.lags.IsZero() || now.Sub(p.lags) < projectEvery {
		return
	}
	r.projection = projection{}
	all, _ := question(r.env, func(to *kernel.Promise[[]*TaskResult]) note { return resultsOf{to} })
	if err := r.project(all); err != nil {
		r.told(Event{Kind: EventWarning, Detail: err.Error()})
		r.outdated()
	}
}

// project writes results.jsonl anew.
func (r *reporter) project(all []*TaskResult) error {
	if r.projection.timer != nil {
		r.projection.timer.Stop()
	}
	return journal.WriteFile(r.records.fs, resultsFile, func(w io.Writer) error {
		var b bytes.Buffer
		for _, t := range all {
			line, err := json.Marshal(t)
			if err != nil {
				return err
			}
			b.Write(line)
			b.WriteByte('\n')
			if b.Len() > 1<<20 {
				if _, err := b.WriteTo(w); err != nil {
					return err
				}
			}
		}
		_, err := b.WriteTo(w)
		return err
	})
}
