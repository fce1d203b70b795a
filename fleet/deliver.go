package fleet

import "context"

// finished makes a result known.
func (r *run) finished(e *entry) {
	r.mu.Lock()
	result := e.result
	if result != nil {
		r.deliver(*result)
	}
	r.mu.Unlock()
	if result == nil {
		return
	}
	r.tell(Event{Kind: EventFinished, Task: result.ID, Attempt: len(result.Attempts), Status: result.Status, Detail: result.Error, Result: result})
}

// deliver gives a result to the reader; mu is held.
func (r *run) deliver(t TaskResult) {
	r.results = append(r.results, t)
	r.rouse()
}

func (r *run) rouse() {
	if r.news != nil {
		close(r.news)
		r.news = nil
	}
}

// next waits for the next result.
func (r *run) next(ctx context.Context) (t TaskResult, err error, more bool) { //nolint:revive // as iter.Pull2
	for {
		r.mu.Lock()
		switch {
		case r.read < len(r.results):
			t, r.results[r.read] = r.results[r.read], TaskResult{}
			r.read++
			r.mu.Unlock()
			return t, nil, true
		case r.final:
			err, r.err = r.err, nil
			r.mu.Unlock()
			return TaskResult{}, err, err != nil
		case r.news == nil:
			r.news = make(chan struct{})
		}
		news := r.news
		r.mu.Unlock()
		if err := r.exec.Await(ctx, news); err != nil {
			return TaskResult{}, err, true
		}
	}
}

// tell calls Job.OnEvent, one call at a time.
func (r *run) tell(e Event) {
	if r.job.OnEvent == nil {
		return
	}
	e.At = r.clock.Now()
	leave, _ := r.rt.Exclusive(context.Background(), "tell "+r.marker)
	defer leave()
	_ = guard("Job.OnEvent", func() error { r.job.OnEvent(e); return nil })
}

// remark warns of something that holds for many tasks, once.
func (r *run) remark(text string) {
	r.mu.Lock()
	known := r.remarks[text]
	if r.remarks == nil {
		r.remarks = map[string]bool{}
	}
	r.remarks[text] = true
	r.mu.Unlock()
	if !known {
		r.tell(Event{Kind: EventWarning, Detail: text})
	}
}

func (r *run) progress() (p Progress) {
	r.look(func() { p = r.progressNow() })
	return p
}

// progressNow is progress for the owner of the state.
func (r *run) progressNow() Progress {
	p := Progress{Total: len(r.order), ByStatus: map[Status]int{}, Usage: r.usage, Started: r.begun, Stop: r.stop, Limit: r.limit, Parked: r.parked, Outage: r.outage, Paused: r.paused, Starved: r.gauge.starved(r.clock.Now())}
	for _, e := range r.order {
		if e.result != nil {
			p.Finished++
			if e.result.Earlier {
				p.Earlier++
			}
			p.ByStatus[e.result.Status]++
			p.Denied += e.result.Denied
		}
	}
	for _, e := range r.running {
		p.Running = append(p.Running, TaskInfo{ID: e.task.ID, State: TaskRunning, Attempts: e.number, Since: e.since, Doing: e.doing})
	}
	p.Queued = p.Total - p.Finished - len(p.Running)
	return p
}

func (r *run) doing(a *attempt, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tasks[a.task.ID].doing = what
}

// spaceOf is a workspace of an earlier attempt.
func (r *run) spaceOf(id, dir string) space {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.tasks[id].space; s.Dir == dir {
		return s
	}
	return space{Dir: dir}
}

// resultsOf are the results that a template may use.
func (r *run) resultsOf(ids []string) map[string]TaskResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[string]TaskResult, len(ids))
	for _, id := range ids {
		switch e := r.tasks[id]; {
		case e == nil:
		case e.result != nil:
			all[id] = *e.result
		case e.former != nil: // a retry of a task that began before the result was void
			all[id] = *e.former
		}
	}
	return all
}
