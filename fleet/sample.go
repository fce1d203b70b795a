package fleet

import (
	"fmt"

	"github.com/agent-troupe/troupe/base/shown"
)

// sample returns the tasks that a job with Job.Sample admits: those that earlier processes
// have finished, and as many more as it lacks, evenly spread over the rest. A task of After
// is among them only if what it comes after was accepted. r.unsampled becomes the number of
// the others.
func (r *run) sample(entries []*entry) []*entry {
	if r.job.Sample == 0 {
		return entries
	}
	lacks := r.job.Sample
	take := make(map[*entry]bool, len(entries))
	var rest []*entry
	for _, e := range entries {
		if k := r.found.tasks[e.task.ID]; k != nil && k.result != nil {
			take[e] = true
			if len(k.attempts) > 0 {
				lacks--
			}
		} else if r.found.accepted(e.task.After) {
			rest = append(rest, e)
		}
	}
	for i, n := 0, min(lacks, len(rest)); i < n; i++ {
		take[rest[(2*i+1)*len(rest)/(2*n)]] = true
	}
	admitted := make([]*entry, 0, len(take))
	for _, e := range entries {
		if take[e] {
			admitted = append(admitted, e)
		}
	}
	r.unsampled = len(entries) - len(admitted)
	return admitted
}

// accepted reports whether all of these tasks were accepted.
func (h *history) accepted(ids []string) bool {
	for _, id := range ids {
		if k := h.tasks[id]; k == nil || k.status != Accepted {
			return false
		}
	}
	return true
}

// sampled stops a job that has run all tasks of its sample. Nothing runs any more.
func (r *run) sampled() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unsampled > 0 && r.stop == nil {
		r.stop = &Stop{Reason: StopSample, Detail: fmt.Sprintf("the sample is over: %s", shown.Count(len(r.order), "task"))}
	}
}
