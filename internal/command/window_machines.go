package command

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/inspect/ui"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

const (
	clusterLook = 2 * time.Second  // between two questions to the servers
	clusterStep = 10 * time.Second // of the history
	clusterID   = "servers"        // of the host that has the jobs and the accounts
)

// clusterWindow is what troupe top --cluster --ui shows: each worker is a host, and so are the servers,
// which have the jobs and the accounts.
type clusterWindow struct {
	cluster Cluster
	ctx     context.Context //nolint:containedctx // of the jobs that are followed
	stop    context.CancelFunc
	work    sync.WaitGroup

	mu      sync.Mutex
	looked  time.Time
	seen    clusterSeen
	caps    []Cap
	jobs    map[string]*clusterJob
	readers []*clusterReader
	past    []clusterSample // oldest first
}

// clusterReader is a loop over the events of a host.
type clusterReader struct {
	host string
	to   chan inspect.Event
}

// clusterSample is a moment of the history.
type clusterSample struct {
	at             time.Time
	running, gates int
	usd            float64 // since the beginning
	turns          int
}

func newClusterWindow(ctx context.Context, cluster Cluster) *clusterWindow {
	w := &clusterWindow{cluster: cluster, jobs: map[string]*clusterJob{}}
	w.ctx, w.stop = context.WithCancel(ctx)
	return w
}

func (w *clusterWindow) close() {
	w.stop()
	w.work.Wait()
}

// hosts are the workers that are alive, and the servers.
func (w *clusterWindow) hosts(ctx context.Context) ([]ui.Host, error) {
	if err := w.look(ctx); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []ui.Host{&clusterHost{w: w, id: clusterID}}
	for i := range w.seen.Hosts {
		all = append(all, &clusterHost{w: w, id: w.seen.Hosts[i].Host})
	}
	return all, nil
}

// look asks the servers, if the last answer is old.
func (w *clusterWindow) look(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if now.Sub(w.looked) < clusterLook {
		return w.seen.err
	}
	ctx, cancel := context.WithTimeout(ctx, clusterLook)
	defer cancel()
	var seen clusterSeen
	seen.Hosts, seen.err = w.cluster.Hosts(ctx)
	if seen.err == nil {
		seen.Jobs, seen.err = w.cluster.Jobs(ctx)
	}
	if seen.err == nil {
		w.caps, seen.err = w.cluster.Caps(ctx)
	}
	w.looked = now
	if seen.err != nil && !w.seen.at.IsZero() && now.Sub(w.seen.at) < 15*time.Second {
		return nil // a moment without servers: what was known stays
	}
	if seen.err != nil {
		w.seen.err = seen.err
		return seen.err
	}
	seen.at = now
	w.differ(&w.seen, &seen)
	w.seen = seen
	w.openJobs()
	w.sample(now)
	return nil
}

// differ makes events of what has changed; mu is held.
func (w *clusterWindow) differ(before, now *clusterSeen) {
	if before.at.IsZero() {
		return
	}
	was := map[string]*HostEntry{}
	for i := range before.Hosts {
		was[before.Hosts[i].Host] = &before.Hosts[i]
	}
	for i := range now.Hosts {
		h := &now.Hosts[i]
		switch last := was[h.Host]; {
		case last == nil:
			w.tell(h.Host, "INFO", "WorkerJoined", fmt.Sprintf("worker %s of %s, with %s", h.Host, h.Machine, strings.Join(h.Agents, ", ")))
		case !last.Started.Equal(h.Started):
			w.tell(h.Host, "WARN", "WorkerRestarted", "worker "+h.Host+" was started anew")
		case h.Draining && !last.Draining:
			w.tell(h.Host, "INFO", "WorkerDrains", "worker "+h.Host+" starts nothing more")
		}
		delete(was, h.Host)
	}
	for i := range before.Hosts {
		if h := &before.Hosts[i]; was[h.Host] != nil {
			level := "WARN"
			if h.Draining {
				level = "INFO"
			}
			w.tell(h.Host, level, "WorkerGone", fmt.Sprintf("worker %s is not heard any more; it ran %d tasks", h.Host, h.Running))
		}
	}
	states := map[string]JobState{}
	for i := range before.Jobs {
		states[before.Jobs[i].Job] = before.Jobs[i].State
	}
	for i := range now.Jobs {
		e := &now.Jobs[i]
		switch last, known := states[e.Job]; {
		case !known:
			w.tell(clusterID, "INFO", "JobSubmitted", fmt.Sprintf("job %s of %s, %d tasks", e.Job, e.Submitter, e.Tasks))
		case last != e.State:
			w.tell(clusterID, "INFO", "JobChanged", fmt.Sprintf("job %s is %s", e.Job, e.State))
		}
	}
}

// tell gives an event to those who read the host's; mu is held.
func (w *clusterWindow) tell(host, level, kind, text string) {
	e := inspect.Event{At: time.Now(), Type: kind, Level: level, Text: text}
	for _, r := range w.readers {
		if r.host != host && (r.host != clusterID || w.known(host)) { // of a worker that is gone the servers tell
			continue
		}
		select {
		case r.to <- e:
		default: // a reader that is far behind misses it
		}
	}
}

// known reports whether the events of a host are read; mu is held.
func (w *clusterWindow) known(host string) bool {
	return slices.ContainsFunc(w.readers, func(r *clusterReader) bool { return r.host == host })
}

// did makes an event of what a person has done.
func (w *clusterWindow) did(host, who, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := inspect.Event{At: time.Now(), Type: "Steered", Level: "INFO", Text: what, By: who}
	for _, r := range w.readers {
		if r.host == host {
			select {
			case r.to <- e:
			default:
			}
		}
	}
}

// openJobs follows the jobs that there are, and no others; mu is held.
func (w *clusterWindow) openJobs() {
	there := map[string]bool{}
	for i := range w.seen.Jobs {
		e := w.seen.Jobs[i]
		if e.State == JobRemoving {
			continue
		}
		there[e.Job] = true
		j := w.jobs[e.Job]
		if j != nil && j.entry.Submitted.Equal(e.Submitted) {
			j.learn(e)
			continue
		}
		if j != nil { // another job with this name
			j.stop()
		}
		j = newClusterJob(w, e)
		w.jobs[e.Job] = j
		w.work.Go(func() { j.follow() })
	}
	for name, j := range w.jobs {
		if !there[name] {
			j.stop()
			delete(w.jobs, name)
		}
	}
}

// sample measures now and then; mu is held.
func (w *clusterWindow) sample(now time.Time) {
	s := clusterSample{at: now}
	for i := range w.seen.Hosts {
		s.running += w.seen.Hosts[i].Running
	}
	for _, j := range w.jobs {
		gates, usd, turns := j.sums()
		s.gates, s.usd, s.turns = s.gates+gates, s.usd+usd, s.turns+turns
	}
	if n := len(w.past); n > 0 && now.Sub(w.past[n-1].at) < clusterStep {
		return
	}
	w.past = append(w.past, s)
	if most := int(24 * time.Hour / clusterStep); len(w.past) > most {
		w.past = slices.Delete(w.past, 0, len(w.past)-most)
	}
}

// history is what was measured while a page looked.
func (w *clusterWindow) history(window time.Duration) runtime.History {
	step := clusterStep
	switch {
	case window > 3*time.Hour:
		window, step = 24*time.Hour, 10*time.Minute
	case window > 15*time.Minute:
		window, step = 3*time.Hour, time.Minute
	default:
		window = 15 * time.Minute
	}
	n, now := int(window/step), time.Now()
	last := (now.UnixNano() - 1) / int64(step)
	none := func() runtime.HistoryValues { return slices.Repeat(runtime.HistoryValues{math.NaN()}, n) }
	h := runtime.History{At: time.Unix(0, (last+1)*int64(step)), StepMS: step.Milliseconds()}
	s := &h.Series
	for _, v := range []*runtime.HistoryValues{&s.Running, &s.Gates, &s.RSS, &s.Turns, &s.Tokens, &s.USD, &s.Restarts, &s.Refused} {
		*v = none()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	highest := func(to *float64, v float64) {
		if math.IsNaN(*to) || v > *to {
			*to = v
		}
	}
	add := func(to *float64, v float64) {
		if math.IsNaN(*to) {
			*to = 0
		}
		*to += v
	}
	for i, p := range w.past {
		k := n - 1 - int(last-(p.at.UnixNano()-1)/int64(step))
		if k < 0 || k >= n {
			continue
		}
		highest(&s.Running[k], float64(p.running))
		highest(&s.Gates[k], float64(p.gates))
		if i > 0 && p.at.Sub(w.past[i-1].at) < 3*clusterStep {
			before := &w.past[i-1]
			add(&s.USD[k], max(0, p.usd-before.usd)*float64(time.Hour)/float64(step))
			add(&s.Turns[k], float64(max(0, p.turns-before.turns))*float64(time.Minute)/float64(step))
		}
	}
	return h
}

// clusterHost is a worker, or the servers.
type clusterHost struct {
	w  *clusterWindow
	id string
}

// ID implements [ui.Host].
func (h *clusterHost) ID() string { return h.id }

// Report implements [ui.Host]. Each task that a worker runs is a session.
func (h *clusterHost) Report(context.Context) (*inspect.Report, error) {
	w := h.w
	w.mu.Lock()
	defer w.mu.Unlock()
	r := &inspect.Report{Host: inspect.Host{Program: h.id}, Tree: runtime.Tree{At: w.seen.at, Sessions: []runtime.SessionTree{}, Breakers: []runtime.Breaker{}, Accounts: []runtime.AccountStat{}}}
	if h.id == clusterID {
		r.Tree.Accounts = w.accounts()
		return r, nil
	}
	at := slices.IndexFunc(w.seen.Hosts, func(e HostEntry) bool { return e.Host == h.id })
	if at < 0 {
		return nil, ErrNoHost
	}
	e := &w.seen.Hosts[at]
	r.Host.PID, r.Tree.At = e.PID, e.Seen
	for name, j := range w.jobs {
		j.running(h.id, func(t *clusterTask) {
			since := t.Since
			if since.IsZero() { // it ran before the window was opened
				since = e.Started
			}
			r.Tree.Sessions = append(r.Tree.Sessions, runtime.SessionTree{
				At: w.seen.at, ID: name + "." + t.ID, State: session.StateRunning, Opened: since, StateSince: since, Title: t.ID, Labels: e.Labels, Job: name, Task: t.ID,
				Backend: j.entry.Agent, Turn: t.Usage.Turns, Usage: runtime.Usage{USD: t.Usage.USD, Turns: t.Usage.Turns}, Waits: []session.Wait{}, Actors: []session.ActorInfo{},
			})
		})
	}
	slices.SortFunc(r.Tree.Sessions, func(a, b runtime.SessionTree) int { return strings.Compare(a.ID, b.ID) })
	return r, nil
}

// accounts are those of the jobs, and those that are limited or parked; mu is held.
func (w *clusterWindow) accounts() []runtime.AccountStat {
	all := map[string]*runtime.AccountStat{}
	of := func(label string) *runtime.AccountStat {
		if all[label] == nil {
			all[label] = &runtime.AccountStat{Label: label, Changes: []runtime.AccountChange{}, Work: []runtime.AccountWork{}, Starvation: []runtime.AccountStarved{}}
		}
		return all[label]
	}
	for i := range w.caps {
		c := &w.caps[i]
		a := of(c.Account)
		a.Limit, a.Paced, a.Fixed, a.Parked = c.Limit, c.Limit > 0, c.Limit > 0, c.Until
		if c.By != "" {
			a.Why = "by " + c.By
		}
	}
	for i := range w.seen.Jobs {
		if e := &w.seen.Jobs[i]; e.Account != "" && e.State == JobOpen {
			of(e.Account).Jobs++
		}
	}
	for i := range w.seen.Hosts {
		for _, j := range w.seen.Hosts[i].Jobs {
			if j.Account != "" {
				of(j.Account).Working += len(j.Running)
			}
		}
	}
	list := make([]runtime.AccountStat, 0, len(all))
	for _, a := range all {
		list = append(list, *a)
	}
	slices.SortFunc(list, func(a, b runtime.AccountStat) int { return strings.Compare(a.Label, b.Label) })
	return list
}

// Events implements [ui.Host].
func (h *clusterHost) Events(ctx context.Context, each func(inspect.Event) bool) error {
	r := &clusterReader{h.id, make(chan inspect.Event, 64)}
	h.w.mu.Lock()
	h.w.readers = append(h.w.readers, r)
	h.w.mu.Unlock()
	defer func() {
		h.w.mu.Lock()
		defer h.w.mu.Unlock()
		h.w.readers = slices.DeleteFunc(h.w.readers, func(o *clusterReader) bool { return o == r })
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-r.to:
			if !each(e) {
				return nil
			}
		}
	}
}

// History implements [ui.Host].
func (h *clusterHost) History(_ context.Context, window time.Duration) (runtime.History, error) {
	if h.id != clusterID {
		return runtime.History{}, ui.ErrUnsupported
	}
	return h.w.history(window), nil
}

// Jobs implements [ui.Host].
func (h *clusterHost) Jobs(context.Context) (all []ui.Job, err error) {
	if h.id != clusterID {
		return nil, ui.ErrUnsupported
	}
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	for i := range h.w.seen.Jobs {
		if j := h.w.jobs[h.w.seen.Jobs[i].Job]; j != nil {
			all = append(all, j)
		}
	}
	return all, nil
}

// Do implements [ui.Host].
func (h *clusterHost) Do(ctx context.Context, c ui.Command) error {
	w := h.w
	var what string
	var err error
	switch {
	case c.Op == ui.Drain && h.id != clusterID:
		what, err = "worker "+h.id+": drain", w.cluster.Drain(ctx, h.id)
	case c.Op == ui.RetuneAccount && h.id == clusterID:
		what, err = fmt.Sprintf("account %s: at most %d on all workers", c.Account, max(c.Limit, 0)), w.cluster.Limit(ctx, c.Account, max(c.Limit, 0))
	case c.Op == ui.ParkAccount && h.id == clusterID:
		park := Cap{Account: c.Account, By: cmp.Or(c.Who, ownName())}
		if park.Until = time.Now(); c.For > 0 {
			park.Until = park.Until.Add(c.For)
		}
		what, err = fmt.Sprintf("account %s: parked for %v", c.Account, c.For), w.cluster.Park(ctx, park)
	default:
		return ui.ErrUnsupported
	}
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.looked = time.Time{} // the next look asks
	w.mu.Unlock()
	w.did(h.id, c.Who, what)
	return nil
}
