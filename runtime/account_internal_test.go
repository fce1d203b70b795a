package runtime

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var began = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// round ends as many attempts well as may run.
func (p *pacer) round(now time.Time) {
	for range p.limit {
		p.well(now, p.epoch, true)
	}
}

func limitsOf(all []AccountChange) (limits []int) {
	for _, c := range all {
		limits = append(limits, c.To)
	}
	return limits
}

func TestAPaceDoublesUntilTheFirstOverload(t *testing.T) {
	t.Parallel()
	p, now := newPacer(AccountPace{Ceiling: 40}), began
	for range 3 {
		p.round(now)
	}
	old := p.epoch
	for range 5 { // attempts of one overload, and their retries
		p.pressed(now, old, true, 0)
	}
	p.round(now)
	p.pressed(now.Add(episode-1), old, true, 0)
	p.pressed(now.Add(episode), old, true, 0) // a long attempt
	assert.Equal(t, []int{4, 8, 16, 8, 9, 4}, limitsOf(p.changes))
	for range 50 {
		p.round(now)
	}
	assert.Equal(t, 40, p.limit)
	for range 10 {
		p.pressed(now, p.epoch, true, 0)
	}
	assert.Equal(t, 1, p.limit)
}

func TestWhatHoldsAPace(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]func(p *pacer){
		"5xx":                           func(p *pacer) { p.pressed(began, p.epoch, false, 0) },
		"a starved machine":             func(p *pacer) { p.starved = true },
		"a start before the last cut":   func(p *pacer) { p.epoch++; p.well(began, p.epoch-1, true); p.epoch-- },
		"fewer attempts than there may": func(p *pacer) { p.well(began, p.epoch, false) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPacer(AccountPace{Start: 3})
			p.well(began, 0, true)
			p.well(began, 0, true)
			hold(p)
			if name != "a starved machine" {
				require.Equal(t, 3, p.limit)
				return
			}
			p.well(began, 0, true)
			assert.Equal(t, 3, p.limit)
			p.starved = false
			p.well(began, 0, true)
			assert.Equal(t, 6, p.limit)
		})
	}
	p := newPacer(AccountPace{Start: 3})
	p.well(began, 0, true)
	p.pressed(began, 0, false, 0)
	p.well(began, 0, true)
	p.well(began, 0, true)
	assert.Equal(t, 3, p.limit, "the round begins anew")
	p.well(began, 0, true)
	assert.Equal(t, 6, p.limit)
}

func TestAPaceByHand(t *testing.T) {
	t.Parallel()
	p := newPacer(AccountPace{Floor: 2, Start: 2, Ceiling: 8})
	p.fix(began, 12)
	assert.Equal(t, 12, p.limit)
	p.fix(began, 0)
	assert.Equal(t, 0, p.limit, "a pause")
	p.well(began, p.epoch, true)
	p.pressed(began, p.epoch, true, 0)
	assert.Equal(t, 0, p.limit, "nothing undoes it")
	p.fix(began, 12)
	p.fix(began, -1)
	p.pressed(began, p.epoch, true, 0)
	p.bound(began, 5, 6)
	assert.Equal(t, []string{
		"2 -> 12: set by hand", "12 -> 0: set by hand", "0 -> 12: set by hand", "12 -> 8: adapted again",
		"8 -> 4: the API is overloaded", "4 -> 5: other bounds",
	}, texts(p.changes))
}

func texts(all []AccountChange) (list []string) {
	for _, c := range all {
		list = append(list, c.String())
	}
	return list
}

// A pace always stays within its bounds, and its history explains its value.
func TestAPaceKeepsItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		floor := rapid.IntRange(1, 4).Draw(t, "floor")
		p, now := newPacer(AccountPace{Floor: floor, Ceiling: floor + rapid.IntRange(4, 20).Draw(t, "more")}), began
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second)
			epoch := max(p.epoch-rapid.IntRange(0, 1).Draw(t, "old"), 0)
			if rapid.IntRange(0, 4).Draw(t, "what") == 0 {
				p.pressed(now, epoch, true, 0)
			} else {
				p.well(now, epoch, true)
			}
			require.GreaterOrEqual(t, p.limit, p.Floor)
			require.LessOrEqual(t, p.limit, p.Ceiling)
		}
		at := max(floor, 2)
		for _, c := range p.changes {
			require.Equal(t, at, c.From)
			at = c.To
		}
		require.Equal(t, p.limit, at)
	})
}

// jobOf is a member that counts how often it was woken.
type jobOf struct {
	*AccountMember
	woken int
}

func join(a *Account, p *AccountPace) *jobOf {
	j := &jobOf{}
	j.AccountMember = a.Join(began, p, func() { j.woken++ })
	return j
}

func TestJobsOfAnAccountShareItsPace(t *testing.T) {
	t.Parallel()
	a := &Account{}
	x, y, z := join(a, &AccountPace{Start: 4}), join(a, &AccountPace{Ceiling: 100}), join(a, nil)
	for i := range 4 {
		require.True(t, x.Enter(began, fmt.Sprint(i)))
	}
	require.False(t, x.Enter(began, "4"), "it is full")
	require.False(t, y.Enter(began, "0"), "for all")
	require.True(t, z.Enter(began, "0"), "but for a job without a pace")
	require.Zero(t, y.woken)
	x.End(began, "0", true)
	require.Equal(t, 1, y.woken)
	require.False(t, x.Enter(began, "4"), "a job with fewer comes first")
	require.True(t, y.Enter(began, "0"))
	x.End(began, "1", true)
	x.Pressed(began, "2", true, 0)
	y.Pressed(began, "0", true, time.Minute)
	limit, ok := y.Limit()
	require.True(t, ok)
	require.Equal(t, 2, limit, "one cut for both")
	x.End(began, "2", true)
	x.End(began, "3", true)
	require.False(t, x.Enter(began, "5"), "the API has asked for a minute")
	require.Equal(t, began.Add(time.Minute), x.Next(began))
	later := began.Add(time.Minute)
	require.False(t, y.Enter(later, "1"), "x has fewer")
	require.True(t, x.Enter(later, "5"))
	x.Wants(false)
	y.End(later, "0", true)
	require.True(t, y.Enter(later, "1"))
}

// A job that wants nothing any more leaves its room to the others.
func TestAJobThatWantsNoMore(t *testing.T) {
	t.Parallel()
	for name, gives := range map[string]func(*jobOf){
		"no work": func(j *jobOf) { j.Wants(false) },
		"by hand": func(j *jobOf) { j.Unpace() },
		"over":    func(j *jobOf) { j.Leave() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &Account{}
			x, y := join(a, &AccountPace{Start: 2}), join(a, &AccountPace{})
			require.True(t, x.Enter(began, "0"))
			require.True(t, x.Enter(began, "1"))
			require.False(t, y.Enter(began, "0"))
			x.End(began, "0", false)
			require.False(t, x.Enter(began, "2"))
			woken := x.woken
			gives(y)
			require.Greater(t, x.woken, woken)
			require.True(t, x.Enter(began, "2"))
		})
	}
}

// A used-up quota that one job finds holds for all, and one piece of work of all of them
// probes.
func TestJobsOfAnAccountPark(t *testing.T) {
	t.Parallel()
	a := &Account{}
	x, y := join(a, &AccountPace{}), join(a, nil)
	require.True(t, x.Enter(began, "0"))
	require.True(t, y.Enter(began, "0"))
	reset := began.Add(time.Hour)
	x.Spent("0", reset, time.Second, "spent")
	x.End(began, "0", false)
	until, why := y.Parked()
	require.Equal(t, reset.Add(time.Second), until)
	require.Equal(t, "spent", why)
	require.NotZero(t, y.woken)
	require.False(t, x.Enter(began, "1"))
	require.False(t, y.Enter(began, "1"))
	y.Worked("0") // it was under way
	y.Spent("0", reset, time.Minute, "spent")
	require.Equal(t, until, x.Next(began), "the same wall")
	y.End(began, "0", false)
	require.True(t, y.Enter(until, "1"))
	require.False(t, x.Enter(until, "1"), "one finds out for all")
	x.Worked("0")
	require.False(t, x.Enter(until, "1"))
	y.End(until, "1", false)
	require.True(t, x.Enter(until, "1"), "the next one does")
	x.Leave()
	require.True(t, y.Enter(until, "2"))
	y.Worked("2")
	require.True(t, y.Enter(until, "3"))
	require.Zero(t, a.Stat().Parked)
}

func TestAnAccountByHand(t *testing.T) {
	t.Parallel()
	a := &Account{label: "me"}
	x, y := join(a, &AccountPace{Ceiling: 10}), join(a, nil)
	a.Retune(began, 0)
	require.False(t, x.Enter(began, "0"))
	require.True(t, y.Enter(began, "0"))
	a.Retune(began, 7)
	require.Equal(t, 2, x.woken)
	a.Retune(began, -1)
	a.Bound(began, AccountPace{Floor: 1, Ceiling: 3})
	z := join(a, &AccountPace{Ceiling: 50})
	limit, _ := z.Limit()
	require.Equal(t, 3, limit, "bounds by hand stay")
	a.Park(began.Add(time.Hour), "by hand")
	require.False(t, x.Enter(began, "0"))
	a.Park(time.Time{}, "")
	require.True(t, x.Enter(began, "0"))
	x.Wants(false)
	x.Starved(true)
	require.False(t, z.Enter(began, "0") && z.Enter(began, "1") && z.Enter(began, "2"))
	s := a.Stat()
	require.Equal(t, []string{"2 -> 0: set by hand", "0 -> 7: set by hand", "7 -> 3: other bounds"}, texts(s.Changes))
	require.Empty(t, s.Work, "an account of no runtime")
	s.Changes, s.Work, s.Starvation = nil, nil, nil
	require.Equal(t, AccountStat{Label: "me", Limit: 3, Paced: true, Working: 4, Jobs: 3, Waiting: 1, Starved: true}, s)
	x.Leave()
	require.False(t, a.Stat().Starved)
}

// The next jobs have their own bounds, and begin with the known number.
func TestAnAccountRemembers(t *testing.T) {
	t.Parallel()
	a := &Account{}
	x := join(a, &AccountPace{Start: 32})
	require.True(t, x.Enter(began, "0"))
	x.Pressed(began, "0", true, 0)
	x.End(began, "0", false)
	x.Leave()
	y := join(a, &AccountPace{Start: 2, Ceiling: 20})
	limit, _ := y.Limit()
	require.Equal(t, 16, limit)
	require.Equal(t, 20, a.pace.Ceiling)
}

// In any order of calls, no more work runs than may, nothing starts while the account is
// parked but for one probe, and no job that wants to start is left alone.
func TestAnAccountKeepsItsPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, now := &Account{}, began
		jobs := make([]*jobOf, rapid.IntRange(1, 4).Draw(t, "jobs"))
		for i := range jobs {
			jobs[i] = join(a, &AccountPace{Start: rapid.IntRange(1, 6).Draw(t, "start"), Ceiling: rapid.IntRange(6, 12).Draw(t, "ceiling")})
		}
		next := 0
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			j := rapid.SampledFrom(jobs).Draw(t, "job")
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
			var work []string
			for i := range next {
				if j.working[fmt.Sprint(i)] != nil {
					work = append(work, fmt.Sprint(i))
				}
			}
			before, parked := a.paced(), a.park
			switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
			case what < 5 || len(work) == 0:
				ok := j.Enter(now, fmt.Sprint(next))
				next++
				j.Wants(!ok)
				if !ok {
					break
				}
				require.Less(t, before, a.pace.limit)
				require.False(t, now.Before(parked.until))
				require.False(t, parked.probing && parked.by != nil, "a second probe")
			case what == 5:
				j.Pressed(now, work[0], true, 0)
			case what == 6:
				j.Spent(work[0], now.Add(time.Minute), 0, "spent")
				j.End(now, work[0], false)
			case what == 7:
				j.Worked(work[0])
			default:
				j.End(now, work[len(work)-1], true)
			}
			require.GreaterOrEqual(t, a.pace.limit, 1)
			require.LessOrEqual(t, a.pace.limit, 12)
		}
		for _, j := range jobs { // the end: all that runs ends
			for i := range next {
				j.End(now, fmt.Sprint(i), true)
			}
		}
		now = now.Add(time.Hour)
		started := false
		for _, j := range jobs {
			started = started || j.Enter(now, "last")
		}
		require.True(t, started, "all wait, and nothing runs")
	})
}

// The machine of one job is that of all.
func TestAStarvedMachineHoldsAnAccount(t *testing.T) {
	t.Parallel()
	a := &Account{}
	x, y := join(a, &AccountPace{Start: 1}), join(a, &AccountPace{})
	round := func() int {
		require.True(t, x.Enter(began, "0"))
		x.End(began, "0", true)
		limit, _ := x.Limit()
		return limit
	}
	y.Starved(true)
	require.Equal(t, 1, round())
	y.Starved(false)
	require.Equal(t, 2, round())
	y.Starved(true)
	y.Leave()
	x.Starved(false)
	require.True(t, x.Enter(began, "1"))
	require.Equal(t, 2, round())
	require.Equal(t, 4, round())
}
