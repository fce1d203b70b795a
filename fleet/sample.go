package fleet

import (
	"fmt"

	"github.com/agent-troupe/troupe/base/shown"
)

// sample returns the tasks that a job with Job.Sample admits: those that earlier processes
// have finished, and as many more as it lacks, evenly spread over the rest. A task of After
// is among them only if what it comes after was accepted. unsampled is the number of the others.
func (j *Job) sample(entries []*entry, found *history) (admitted []*entry, unsampled int) {
	if j.Sample == 0 {
		return entries, 0
	}
	lacks := j.Sample
	take := make(map[*entry]bool, len(entries))
	var rest []*entry
	for _, e := range entries {
		if over, ran := found.over(e.task.ID); over {
			take[e] = true
			if ran {
				lacks--
			}
		} else if found.accepted(e.task.After) {
			rest = append(rest, e)
		}
	}
	for i, n := 0, min(lacks, len(rest)); i < n; i++ {
		take[rest[(2*i+1)*len(rest)/(2*n)]] = true
	}
	admitted = make([]*entry, 0, len(take))
	for _, e := range entries {
		if take[e] {
			admitted = append(admitted, e)
		}
	}
	return admitted, len(entries) - len(admitted)
}

// sampleOver is why a job stops that has run all tasks of its sample.
func sampleOver(tasks int) *Stop {
	return &Stop{Reason: StopSample, Detail: fmt.Sprintf("the sample is over: %s", shown.Count(tasks, "task"))}
}
