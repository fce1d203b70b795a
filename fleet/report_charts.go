package fleet

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/runtime"
)

// reportJob is what the charts of the report need besides its rows. The names are those of
// [Snapshot], because the same modules read both.
type reportJob struct {
	Started time.Time               `json:"started"`
	Ended   time.Time               `json:"ended"`
	Usage   Usage                   `json:"usage"`
	Pace    []runtime.AccountChange `json:"pace,omitempty"`
	Budget  *reportBudget           `json:"budget,omitempty"`
	Running [][2]int64              `json:"running_over_time"` // when, in Unix milliseconds, and how many
}

type reportBudget struct {
	USD float64 `json:"usd"`
}

func (r *reporter) data(s *Summary, all []*TaskResult) string {
	j := reportJob{Started: s.Started, Ended: s.Ended, Usage: s.Usage, Pace: s.Pace, Running: running(all)}
	if s.Began.Before(s.Started) && !s.Began.IsZero() {
		j.Started = s.Began
	}
	if b := r.job.Budget; b != nil && b.USD > 0 {
		j.Budget = &reportBudget{b.USD}
	}
	return string(asJSON(j))
}

// asJSON is the JSON of a value that can be written as JSON.
func asJSON(v any) []byte {
	raw, _ := json.Marshal(v)
	return raw
}

// running is how many attempts ran, in at most 400 steps of equal length that have a change: the
// most in each step, and then the number at its end.
func running(all []*TaskResult) [][2]int64 {
	type edge struct {
		at time.Time
		by int64
	}
	var edges []edge
	for _, t := range all {
		for _, a := range t.Attempts {
			edges = append(edges, edge{a.Started, 1}, edge{a.Ended, -1})
		}
	}
	if len(edges) == 0 {
		return [][2]int64{}
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return a.at.Compare(b.at) })
	const steps = 400
	from, to := edges[0].at, edges[len(edges)-1].at
	list := make([][2]int64, 0, min(len(edges), steps)+1)
	n, i := int64(0), 0
	for s := range steps {
		until := from.Add(time.Duration(float64(to.Sub(from)) * float64(s+1) / steps))
		most, changed := n, false
		for ; i < len(edges) && !edges[i].at.After(until); i++ {
			n += edges[i].by
			most, changed = max(most, n), true
		}
		if changed {
			list = append(list, [2]int64{from.Add(time.Duration(float64(to.Sub(from)) * float64(s) / steps)).UnixMilli(), most})
			if n < most { // and then fewer
				list = append(list, [2]int64{until.UnixMilli(), n})
			}
		}
	}
	return list
}

// hashOf is the source of a Content-Security-Policy that allows one text.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
