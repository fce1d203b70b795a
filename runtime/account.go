package runtime

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Account is the state shared by all jobs of a runtime that use one provider account: the
// concurrency limit, and when an exhausted quota resets. Package fleet asks it before each
// attempt; a scheduler of your own can do so, too. Methods take the current time, so that
// tests are deterministic. The zero value is a separate account. Safe for concurrent use.
type Account struct {
	label string

	mu      sync.Mutex
	pace    *pacer // nil before the first job with a pace
	bounded bool   // by hand
	park    parking
	members []*AccountMember // in the order in which they joined
	past    accountPast
}

// parking is the wait for the reset of an exhausted quota. Nothing starts until then;
// after the reset one piece of work is the probe for all jobs.
type parking struct {
	until   time.Time // zero: the account is not parked
	why     string
	by      *AccountMember // whose work is the probe; nil before there is one
	probe   string
	probing bool // the wait is over, and nothing has worked since
}

// AccountMember is one job that uses an account.
type AccountMember struct {
	of   *Account
	wake func()

	paced   bool
	floor   int                 // its own
	ceiling int                 // its own
	working map[string]*working // by name
	wants   bool                // it has work that could start
	starved bool                // it says so of the machine
}

// working is a running piece of work.
type working struct {
	epoch   int
	pressed bool // it has seen the provider in trouble
}

// AccountStat describes an account in a [Tree]. Times that do not apply are zero.
type AccountStat struct {
	Label   string    `json:"label"`        // the name of the account, as given to Runtime.Account
	Limit   int       `json:"limit"`        // how many may run at the same time; 0 and not Paced: no limit
	Paced   bool      `json:"paced"`        // Limit adapts to what the provider takes
	Fixed   bool      `json:"fixed"`        // Limit was set by hand
	Working int       `json:"working"`      // pieces of work that run, of all jobs
	Jobs    int       `json:"jobs"`         // that use the account now
	Waiting int       `json:"waiting"`      // of these, jobs with work that may not start yet
	Starved bool      `json:"starved"`      // a job says that the machine has too little processor time
	Parked  time.Time `json:"parked_until"` // nothing starts before; in the past: one piece of work finds out for all
	Why     string    `json:"parked_why"`   // what the provider said
	// Changes is the history of Limit: at most the last 100 changes, with their reasons.
	Changes []AccountChange `json:"changes"`
	// Work is how Working has changed, at most 720 entries, oldest first. Of changes within 5 s it
	// has the highest number and the last one. Starvation has at most the last 100 intervals.
	Work       []AccountWork    `json:"work"`
	Starvation []AccountStarved `json:"starvation"` // when a job said that the machine is starved
}

// Account returns the account with the label, which all callers of this runtime share.
// It is made with the first call, and stays until the runtime is shut down, so that the
// next job begins with what the last one has found out.
func (rt *Runtime) Account(label string) *Account {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	a := rt.accounts[label]
	if a == nil {
		a = &Account{label: label, past: accountPast{clock: rt.sys.Clock().Now}}
		rt.accounts[label] = a
	}
	return a
}

// Accounts describes the accounts that were used, by label.
func (rt *Runtime) Accounts() []AccountStat {
	rt.mu.Lock()
	all := slices.Collect(maps.Values(rt.accounts))
	rt.mu.Unlock()
	slices.SortFunc(all, func(x, y *Account) int { return strings.Compare(x.label, y.label) })
	stats := make([]AccountStat, 0, len(all))
	for _, a := range all {
		stats = append(stats, a.Stat())
	}
	return stats
}

// Stat describes the account.
func (a *Account) Stat() AccountStat {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := AccountStat{Label: a.label, Jobs: len(a.members), Parked: a.park.until, Why: a.park.why, Changes: []AccountChange{}}
	s.Work, s.Starvation = append([]AccountWork{}, a.past.work...), append([]AccountStarved{}, a.past.starved...)
	for _, m := range a.members {
		s.Working += len(m.working)
		s.Starved = s.Starved || m.starved
		if m.wants {
			s.Waiting++
		}
	}
	if a.pace != nil {
		s.Limit, s.Paced, s.Fixed, s.Changes = a.pace.limit, true, a.pace.fixed, slices.Clone(a.pace.changes)
	}
	return s
}

// Retune fixes the number of pieces of work that may run at the same time, for all jobs
// with a pace. 0 pauses; a negative value returns to adaptive mode, from the present
// number on.
func (a *Account) Retune(now time.Time, limit int) {
	a.change(nil, func() { a.paces(AccountPace{}).fix(now, limit) })
}

// Bound changes the bounds of a pace that is in use. AccountPace.Start no longer has an
// effect then.
func (a *Account) Bound(now time.Time, p AccountPace) {
	p = p.WithDefaults()
	a.change(nil, func() {
		a.bounded = true
		a.paces(p).bound(now, p.Floor, p.Ceiling)
	})
}

// Park blocks starts until the time. The zero time removes the block.
func (a *Account) Park(until time.Time, why string) {
	a.change(nil, func() { a.park = parking{until: until, why: why} })
}

// change changes the account and notifies all members but one, which checks by itself.
func (a *Account) change(but *AccountMember, f func()) {
	a.mu.Lock()
	f()
	var wake []func()
	for _, m := range a.members {
		if m != but && m.wake != nil {
			wake = append(wake, m.wake)
		}
	}
	a.mu.Unlock()
	for _, w := range wake {
		w()
	}
}

// paces returns the pace, and creates it with these bounds the first time; mu is held.
func (a *Account) paces(p AccountPace) *pacer {
	if a.pace == nil {
		a.pace = newPacer(p)
	}
	return a.pace
}

// Join adds a job. pace is its wish for a pace, nil for none: it then waits only while
// the account is parked. Jobs with different bounds share the widest, and each keeps to
// its own Ceiling. wake is called, without a lock, when another job or a person has
// changed the account, so that waiting work may start; it must return quickly.
func (a *Account) Join(now time.Time, pace *AccountPace, wake func()) *AccountMember {
	m := &AccountMember{of: a, wake: wake, working: map[string]*working{}}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.members = append(a.members, m)
	if pace != nil {
		p := pace.WithDefaults()
		m.paced, m.floor, m.ceiling = true, p.Floor, p.Ceiling
		known := a.paces(p)
		if !a.bounded {
			for _, o := range a.members {
				if o.paced {
					p.Floor, p.Ceiling = min(p.Floor, o.floor), max(p.Ceiling, o.ceiling)
				}
			}
			known.bound(now, p.Floor, p.Ceiling)
		}
	}
	return m
}

// Leave ends the membership of a job, whose work is over.
func (m *AccountMember) Leave() {
	a := m.of
	a.change(m, func() {
		a.members = slices.DeleteFunc(a.members, func(o *AccountMember) bool { return o == m })
		if len(m.working) > 0 {
			a.past.worked(a.working())
		}
		m.wants = false
		a.starve()
		if a.park.by == m {
			a.park.by, a.park.probe = nil, ""
		}
	})
}

// Unpace takes a job out of the pace of its account, as its number was set by hand.
func (m *AccountMember) Unpace() { m.of.change(m, func() { m.paced = false }) }

// Limit is how many pieces of the job's work may run at the same time if no other job has
// any; ok is false for a job without a pace.
func (m *AccountMember) Limit() (limit int, ok bool) {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	if !m.paced {
		return 0, false
	}
	return min(m.of.pace.limit, m.ceiling), true
}

// Last is the last change of the pace and the number of changes so far.
func (m *AccountMember) Last() (AccountChange, int) {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	if p := m.of.pace; p != nil && len(p.changes) > 0 {
		return p.changes[len(p.changes)-1], p.made
	}
	return AccountChange{}, 0
}

// Parked returns the end of the block and its reason; the zero time: not parked. If the
// end has passed, one probe is running.
func (m *AccountMember) Parked() (until time.Time, why string) {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	return m.of.park.until, m.of.park.why
}

// Enter reports whether the work may start now, and counts it if so. Otherwise wake is
// called when it may have become possible. Next returns when the time alone makes it
// possible.
func (m *AccountMember) Enter(now time.Time, work string) bool {
	a := m.of
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.room(m, now) {
		m.wants = true
		return false
	}
	w := &working{}
	if a.pace != nil {
		w.epoch = a.pace.epoch
	}
	m.working[work] = w
	a.past.worked(a.working())
	if a.park.probing {
		a.park.by, a.park.probe = m, work
	}
	return true
}

// room reports whether a job may start a piece of work; mu is held.
func (a *Account) room(m *AccountMember, now time.Time) bool {
	if k := &a.park; !k.until.IsZero() {
		if now.Before(k.until) {
			return false
		}
		k.probing = true
		if k.by != nil {
			return false
		}
	}
	if !m.paced {
		return true
	}
	if now.Before(a.pace.until) || a.paced() >= a.pace.limit {
		return false
	}
	for _, o := range a.members { // a job with fewer comes first
		if o != m && o.paced && o.wants && len(o.working) < len(m.working) && len(o.working) < o.ceiling {
			return false
		}
	}
	return true
}

// working counts the work of all jobs; mu is held.
func (a *Account) working() (n int) {
	for _, m := range a.members {
		n += len(m.working)
	}
	return n
}

// paced counts the work of jobs with a pace; mu is held.
func (a *Account) paced() (n int) {
	for _, m := range a.members {
		if m.paced {
			n += len(m.working)
		}
	}
	return n
}

// Wants reports whether the job has work waiting for capacity. While a job with fewer
// running pieces of work waits, the others leave room for it.
func (m *AccountMember) Wants(wants bool) {
	m.of.mu.Lock()
	was := m.wants
	m.wants = wants
	m.of.mu.Unlock()
	if was && !wants {
		m.of.change(m, func() {})
	}
}

// End records that work finished; well reports success at the provider.
func (m *AccountMember) End(now time.Time, work string, well bool) {
	a := m.of
	a.change(m, func() {
		w := m.working[work]
		if w == nil {
			return
		}
		if m.paced && well && !w.pressed {
			a.pace.well(now, w.epoch, a.paced() >= a.pace.limit)
		}
		delete(m.working, work)
		a.past.worked(a.working())
		if a.park.by == m && a.park.probe == work {
			a.park.by, a.park.probe = nil, ""
		}
	})
}

// Pressed records that the provider was overloaded (429, 529) or failed otherwise for work.
// wait is the delay that the provider asked for, 10 minutes at most.
func (m *AccountMember) Pressed(now time.Time, work string, overloaded bool, wait time.Duration) {
	a := m.of
	a.change(m, func() {
		w := m.working[work]
		if w == nil {
			return
		}
		w.pressed = true
		if a.pace != nil {
			a.pace.pressed(now, w.epoch, overloaded, wait)
		}
	})
}

// Spent records that work found the account's quota used up until reset. jitter delays the
// end of the block beyond the reset, because other programs wait for it, too. A second
// report while the account is parked does not prolong the block.
func (m *AccountMember) Spent(work string, reset time.Time, jitter time.Duration, why string) {
	a := m.of
	a.change(m, func() {
		k := &a.park
		if k.by == m && k.probe == work {
			k.by, k.probe = nil, ""
		}
		if !k.until.IsZero() && !k.probing && !reset.After(k.until) {
			return
		}
		a.park = parking{until: reset.Add(jitter), why: why, by: k.by, probe: k.probe}
	})
}

// Worked records that the provider has answered work. It clears the block if work was
// the probe, or if no probe is running.
func (m *AccountMember) Worked(work string) {
	a := m.of
	a.mu.Lock()
	news := a.park.probing && (a.park.by == nil || a.park.by == m && a.park.probe == work)
	a.mu.Unlock()
	if news {
		a.change(m, func() { a.park = parking{} })
	}
}

// Starved records whether the machine has too little processor time for the job's work:
// the pace then does not grow.
func (m *AccountMember) Starved(on bool) {
	a := m.of
	a.change(m, func() {
		m.starved = on
		a.starve()
	})
}

// starve holds the pace while a job says that the machine is starved; mu is held.
func (a *Account) starve() {
	starved := slices.ContainsFunc(a.members, func(m *AccountMember) bool { return m.starved })
	a.past.starves(starved)
	if a.pace != nil {
		a.pace.starved = starved
	}
}

// Next returns when time alone lets waiting work start; zero: not known.
func (m *AccountMember) Next(now time.Time) (at time.Time) {
	a := m.of
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.park.until.After(now) {
		at = a.park.until
	}
	if m.paced && a.pace.until.After(now) && (at.IsZero() || a.pace.until.Before(at)) {
		at = a.pace.until
	}
	return at
}
