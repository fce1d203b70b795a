package fleet

import (
	"cmp"
	"slices"
	"time"
)

// describe adds to a summary what the job is, and what its results add up to.
func (r *reporter) describe(s *Summary, end *closing) {
	hide := r.redactor(end)
	s.Title, s.Command = hide.Replace(r.job.Title), hide.Replace(r.job.Command)
	s.Agent, s.Model = backendName(r.job.Options), r.job.Options.Model
	if v := r.job.Verify; v != nil {
		s.Verifier = cmp.Or(hide.Replace(v.Command), "a function")
	}
	var attempts []Attempt
	for _, t := range end.results {
		s.Requeued += t.Requeued
		s.Denied += t.Denied
		if t.Verdict != nil {
			s.Rounds += t.Verdict.Rounds
		}
		attempts = append(attempts, t.Attempts...)
	}
	s.Attempts = len(attempts)
	s.Began, s.Worked = timeOf(attempts)
}

// timeOf returns when the first attempt began, and for how long at least one ran.
func timeOf(attempts []Attempt) (began time.Time, total Duration) {
	slices.SortFunc(attempts, func(a, b Attempt) int { return a.Started.Compare(b.Started) })
	var until time.Time
	for i := range attempts {
		a := &attempts[i]
		if a.Started.IsZero() {
			continue
		}
		if began.IsZero() {
			began = a.Started
		}
		from := a.Started
		if until.After(from) {
			from = until
		}
		if a.Ended.After(from) {
			total += Duration(a.Ended.Sub(from))
			until = a.Ended
		}
	}
	return began, total
}
