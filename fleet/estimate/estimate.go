package estimate

import (
	"math"
	"time"

	"github.com/agent-troupe/troupe/fleet"
)

// Estimate is what all tasks of a job will probably use, by what some of them have used.
type Estimate struct {
	Tasks    int // of the job
	Samples  int // tasks that ran; without any, the fields below are zero
	Accepted int // of Samples
	// USD, Credits and Turns are as in [fleet.Usage], and the tokens as in [fleet.Tokens]. A quantity that
	// the agent does not report is zero.
	USD, Credits, Turns                              Projection
	InputTokens, OutputTokens, CacheWrite, CacheRead Projection
	// Seconds is the time of all attempts, added up. See Elapsed.
	Seconds Projection
}

// Projection is the total of one quantity over all tasks of a job.
type Projection struct {
	Total float64
	// Low and High enclose the total in nine of ten cases, if the samples are like the other
	// tasks. With one sample they are equal to Total, and say nothing.
	Low, High float64
	// Least and Most are those of a single sample.
	Least, Most float64
}

// New estimates what a number of tasks uses, the tasks of results included. Tasks
// that never ran, such as skipped ones, use nothing and do not count as samples.
func New(tasks int, results []fleet.TaskResult) Estimate {
	e := Estimate{Tasks: tasks}
	rest := tasks - len(results)
	var ran []*fleet.TaskResult
	for i := range results {
		if r := &results[i]; len(r.Attempts) > 0 {
			ran = append(ran, r)
			if r.OK() {
				e.Accepted++
			}
		}
	}
	e.Samples = len(ran)
	for _, q := range []struct {
		to *Projection
		of func(*fleet.Usage) float64
	}{
		{&e.USD, func(u *fleet.Usage) float64 { return u.USD }},
		{&e.Credits, func(u *fleet.Usage) float64 { return u.Credits }},
		{&e.Turns, func(u *fleet.Usage) float64 { return float64(u.Turns) }},
		{&e.InputTokens, func(u *fleet.Usage) float64 { return float64(u.Tokens.Input) }},
		{&e.OutputTokens, func(u *fleet.Usage) float64 { return float64(u.Tokens.Output) }},
		{&e.CacheWrite, func(u *fleet.Usage) float64 { return float64(u.Tokens.CacheWrite) }},
		{&e.CacheRead, func(u *fleet.Usage) float64 { return float64(u.Tokens.CacheRead) }},
		{&e.Seconds, func(u *fleet.Usage) float64 { return time.Duration(u.Wall).Seconds() }},
	} {
		values := make([]float64, len(ran))
		for i, r := range ran {
			values[i] = q.of(&r.Usage)
		}
		*q.to = project(values, max(rest, 0))
	}
	return e
}

// Elapsed is Seconds as the time that the job takes with so many attempts at the same time.
// It leaves out backoff, waits for other tasks and for the account, so the job may take longer.
func (e *Estimate) Elapsed(concurrency int) (likely, low, high time.Duration) {
	at := func(total float64) time.Duration {
		each := max(total/float64(max(min(concurrency, e.Tasks), 1)), e.Seconds.Most)
		return time.Duration(each * float64(time.Second))
	}
	return at(e.Seconds.Total), at(e.Seconds.Low), at(e.Seconds.High)
}

// project adds to the values of the samples what the rest will probably have. The interval
// is that of a sum of new values: it has the spread of the rest itself, and the doubt about
// the mean.
func project(values []float64, rest int) Projection {
	if len(values) == 0 {
		return Projection{}
	}
	n := float64(len(values))
	p := Projection{Least: values[0], Most: values[0]}
	var known, squares float64
	for _, v := range values {
		known += v
		p.Least, p.Most = min(p.Least, v), max(p.Most, v)
	}
	mean := known / n
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	m := float64(rest)
	p.Total = known + m*mean
	p.Low, p.High = p.Total, p.Total
	if len(values) > 1 {
		half := quantile(len(values)-1) * math.Sqrt(squares/(n-1)*m*(1+m/n))
		p.Low, p.High = max(known, p.Total-half), p.Total+half // nothing uses less than nothing
	}
	return p
}

// quantile is that of Student's distribution below which 95 of 100 values are.
func quantile(freedom int) float64 {
	table := [...]float64{
		6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812,
		1.796, 1.782, 1.771, 1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725,
		1.721, 1.717, 1.714, 1.711, 1.708, 1.706, 1.703, 1.701, 1.699, 1.697,
	}
	if freedom <= len(table) {
		return table[freedom-1]
	}
	return 1.645 + 1.52/float64(freedom) // within 0.001 of the table beyond it
}
