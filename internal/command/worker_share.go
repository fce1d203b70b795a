package command

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// Cap is what the servers know of an account that jobs of many machines use.
type Cap struct {
	Account string    `json:"account"`
	Limit   int       `json:"limit,omitempty"` // tasks at the same time, on all hosts; 0: none
	Until   time.Time `json:"until,omitzero"`  // nothing starts before; a window of the account is spent
	By      string    `json:"by,omitempty"`    // the host that has found that out
}

// around is what a worker knows of the others.
type around struct {
	at    time.Time // when the servers were asked
	hosts []HostEntry
	caps  []Cap
}

// cap is that of an account. known: the servers have been asked.
func (a *around) cap(account string) (c Cap, known bool) {
	if a == nil {
		return c, false
	}
	if i := slices.IndexFunc(a.caps, func(c Cap) bool { return c.Account == account }); i >= 0 {
		c = a.caps[i]
	}
	return c, true
}

// partOf is a host's part of the limit of an account: by its places among those of the hosts that have jobs
// of the account. The parts of all hosts add up to the limit.
func partOf(limit int, hosts []HostEntry, host, account string) int {
	type part struct{ at, places, n, rest int }
	var parts []part
	all := 0
	for i := range hosts {
		h := &hosts[i]
		if h.Draining || !slices.ContainsFunc(h.Jobs, func(j HostJob) bool { return j.Account == account && j.Why == "" }) {
			continue
		}
		places := cmp.Or(h.Places, 4)
		all += places
		parts = append(parts, part{at: i, places: places})
	}
	left := limit
	for i := range parts {
		p := &parts[i]
		p.n, p.rest = limit*p.places/all, limit*p.places%all
		left -= p.n
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Or(b.rest-a.rest, cmp.Compare(hosts[a.at].Host, hosts[b.at].Host)) })
	for i := range parts {
		if i < left {
			parts[i].n++
		}
		if hosts[parts[i].at].Host == host {
			return parts[i].n
		}
	}
	return 0
}

// share gives the places to the jobs, the oldest one first: a job gets what those before it do not use, and
// at most what its account leaves to this host. news: the servers have to be asked about an account.
func (w *worker) share(ctx context.Context) (news bool) {
	if w.stage > 0 {
		return false
	}
	now, others := time.Now(), w.around.Load()
	free, left := w.places, map[string]int{}
	for _, name := range w.order {
		j := w.jobs[name]
		h := j.handle.Load()
		if h == nil {
			continue
		}
		at, account := h.Progress(), j.entry.Account
		running := len(at.Running)
		if account != "" && at.Parked.After(now) {
			w.park(ctx, account, at.Parked)
		}
		if w.places == 0 && account == "" {
			continue // the pace decides
		}
		if j.limit > 0 && at.Limit != j.limit { // by troupe ctl retune
			j.most = at.Limit
		}
		limit := max(free, running)
		if w.places == 0 {
			limit = unpaced
		}
		if j.most > 0 {
			limit = min(limit, j.most)
		}
		if account != "" {
			if j.since.IsZero() {
				j.since, news = now, true
			}
			limit = min(limit, w.leftOf(left, others, account, now))
			c, known := others.cap(account)
			if known = known && others.at.After(j.since); !known || c.Limit > 0 && now.Sub(j.since) < settleAfter {
				limit = 0
			}
			left[account] -= running
		}
		if limit != j.limit {
			j.limit = limit
			h.Retune(limit)
		}
		free = max(free-running, 0)
	}
	return news
}

// settleAfter is how long a job of an account with a limit waits on a host, until the other hosts know that
// they have to share with it.
const settleAfter = beatEvery + 2*time.Second

// unpaced is how many tasks of a job with an account a host with -j auto runs at most.
const unpaced = 16

// leftOf is how many tasks of an account this host may run.
func (w *worker) leftOf(left map[string]int, others *around, account string, now time.Time) int {
	if n, counted := left[account]; counted {
		return max(n, 0)
	}
	c, known := others.cap(account)
	switch {
	case !known:
		left[account] = 0 // until the servers were asked
	case c.Until.After(now) && c.By != w.name: // who has found it out asks again
		left[account] = 0
	case c.Limit == 0:
		left[account] = 1 << 20
	default:
		left[account] = partOf(c.Limit, others.hosts, w.name, account)
	}
	return left[account]
}

// park announces to the other hosts that a window of an account is spent, once.
func (w *worker) park(ctx context.Context, account string, until time.Time) {
	if w.parked[account].Equal(until) {
		return
	}
	w.parked[account] = until
	w.note("the account %s is spent until %s: the other workers wait, too", account, until.Local().Format("Jan 2 15:04"))
	go func() {
		within, cancel := context.WithTimeout(ctx, shutdownLimit)
		defer cancel()
		if err := w.cluster.Park(within, Cap{Account: account, Until: until, By: w.name}); err != nil {
			w.note("the other workers do not know that the account %s is spent: %v", account, err)
		}
	}()
}
