package runtime

import (
	"encoding/json"
	"math"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// History is what a runtime has measured over time, since [Runtime.KeepHistory].
type History struct {
	At     time.Time     `json:"at"`      // the end of the last interval, by the runtime's clock
	StepMS int64         `json:"step_ms"` // the length of each interval
	Series HistorySeries `json:"series"`  // the values of the intervals
}

// HistorySeries are values of the same intervals, oldest first. NaN, which is null in JSON, stands
// for an interval in which nothing was measured. Running, Gates and RSS are the highest of an
// interval.
type HistorySeries struct {
	Running  HistoryValues `json:"running"`  // sessions that work on a turn
	Gates    HistoryValues `json:"gates"`    // sessions that wait for a person
	RSS      HistoryValues `json:"rss"`      // bytes that agents have in memory; NaN elsewhere than on Linux
	Turns    HistoryValues `json:"turns"`    // that ended, a minute
	Tokens   HistoryValues `json:"tokens"`   // of all classes, a minute
	USD      HistoryValues `json:"usd"`      // an hour
	Restarts HistoryValues `json:"restarts"` // of agents that died, in the interval
	Refused  HistoryValues `json:"refused"`  // starts that a breaker refused or that gave up waiting, in the interval
}

// HistoryValues are numbers; NaN is null in JSON.
type HistoryValues []float64

// MarshalJSON implements [json.Marshaler].
func (v HistoryValues) MarshalJSON() ([]byte, error) {
	all := make([]*float64, len(v))
	for i := range v {
		if !math.IsNaN(v[i]) {
			all[i] = &v[i]
		}
	}
	return json.Marshal(all)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (v *HistoryValues) UnmarshalJSON(raw []byte) error {
	var all []*float64
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	*v = make(HistoryValues, len(all))
	for i, n := range all {
		if (*v)[i] = math.NaN(); n != nil {
			(*v)[i] = *n
		}
	}
	return nil
}

// sampleEvery is how often a runtime measures itself.
const sampleEvery = 10 * time.Second

// The values of a sample: the first ones are the highest of an interval, the others are sums.
const (
	ofRunning = iota
	ofGates
	ofRSS
	ofTurns
	ofTokens
	ofMicroUSD
	ofRestarts
	ofRefused
	kinds
	gauges = ofTurns
)

type sample [kinds]float64

// slot is an interval of a ring.
type slot struct {
	sample
	n int // samples; 0: nothing was measured
}

// ring has the last intervals of one length.
type ring struct {
	step time.Duration
	all  []slot
	last int64 // number of the newest interval since 1970; 0: none yet
}

func newRing(step, window time.Duration) ring {
	return ring{step: step, all: make([]slot, window/step)}
}

func newRings() [3]ring {
	return [3]ring{newRing(sampleEvery, 15*time.Minute), newRing(time.Minute, 3*time.Hour), newRing(10*time.Minute, 24*time.Hour)}
}

// add takes a sample of the time that ends now.
func (r *ring) add(now time.Time, s *sample) {
	number := r.number(now)
	if number < r.last {
		return // the clock was set back
	}
	r.forget(number)
	at := &r.all[number%int64(len(r.all))]
	for k := range s {
		switch {
		case k >= gauges:
			at.sample[k] += s[k]
		case at.n == 0:
			at.sample[k] = s[k]
		default:
			at.sample[k] = max(at.sample[k], s[k])
		}
	}
	at.n++
}

func (r *ring) number(now time.Time) int64 { return (now.UnixNano() - 1) / int64(r.step) }

// forget clears the intervals from the newest one on up to number.
func (r *ring) forget(number int64) {
	for i := max(r.last+1, number-int64(len(r.all))+1); i <= number; i++ {
		r.all[i%int64(len(r.all))] = slot{}
	}
	r.last = max(r.last, number)
}

// read returns the intervals up to now.
func (r *ring) read(now time.Time) History {
	r.forget(r.number(now))
	h := History{At: time.Unix(0, (r.last+1)*int64(r.step)).In(now.Location()), StepMS: r.step.Milliseconds()}
	s := &h.Series
	for _, of := range []struct {
		to   *HistoryValues
		kind int
		per  time.Duration // of a rate; 0: the value itself
		by   float64
	}{
		{&s.Running, ofRunning, 0, 1}, {&s.Gates, ofGates, 0, 1}, {&s.RSS, ofRSS, 0, 1},
		{&s.Turns, ofTurns, time.Minute, 1}, {&s.Tokens, ofTokens, time.Minute, 1}, {&s.USD, ofMicroUSD, time.Hour, 1e-6},
		{&s.Restarts, ofRestarts, 0, 1}, {&s.Refused, ofRefused, 0, 1},
	} {
		values := make(HistoryValues, 0, len(r.all))
		for i := r.last - int64(len(r.all)) + 1; i <= r.last; i++ {
			at, v := &r.all[((i%int64(len(r.all)))+int64(len(r.all)))%int64(len(r.all))], math.NaN()
			if at.n > 0 {
				if v = at.sample[of.kind] * of.by; of.per > 0 {
					v *= float64(of.per) / float64(time.Duration(at.n)*sampleEvery)
				}
			}
			values = append(values, v)
		}
		*of.to = values
	}
	return h
}

// past is the history of a runtime.
type past struct {
	mu     sync.Mutex
	kept   bool
	over   bool
	timer  kernel.Timer
	rings  [3]ring // finest first
	before sample  // the sums at the last sample
}

// KeepHistory begins to measure the runtime, every 10 s until Shutdown, for [Runtime.History]. It
// may be called again. The history takes 40 KB: 15 minutes by 10 s, 3 hours by the
// minute, and a day by 10 minutes.
func (rt *Runtime) KeepHistory() {
	p := &rt.history
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept || p.over {
		return
	}
	p.kept = true
	p.rings = newRings()
	p.before = rt.sums()
	rt.sampleLater()
}

// sampleLater measures again in a while; the lock is held.
func (rt *Runtime) sampleLater() {
	rt.history.timer = rt.sys.Clock().AfterFunc(sampleEvery, func() { rt.sys.Executor().Go(rt.sample) })
}

// sums are the sums since the runtime was made.
func (rt *Runtime) sums() (s sample) {
	c := &rt.counts
	s[ofTurns], s[ofTokens], s[ofMicroUSD] = float64(c.turns.Load()), float64(c.tokens.Load()), float64(c.microUSD.Load())
	s[ofRestarts], s[ofRefused] = float64(c.restarts.Load()), float64(c.refused.Load()+rt.AdmissionStat().GaveUp)
	return s
}

// sample measures the runtime once.
func (rt *Runtime) sample() {
	now := rt.sys.Clock().Now()
	s := rt.sums()
	var local []*Session
	rt.mu.Lock()
	for _, one := range rt.sessions { //troupe:maporder sums
		switch one.State() {
		case session.StateRunning:
			s[ofRunning]++
		case session.StateAwaitingHost:
			s[ofGates]++
		}
		if one.local {
			local = append(local, one)
		}
	}
	rt.mu.Unlock()
	s[ofRSS] = math.NaN()
	if canMeasure {
		s[ofRSS] = 0
		for _, bytes := range memoryOf(local...) { //troupe:maporder a sum of whole numbers
			s[ofRSS] += float64(bytes)
		}
	}
	p := &rt.history
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	delta := s
	for k := gauges; k < kinds; k++ {
		delta[k] -= p.before[k]
	}
	p.before = s
	for i := range p.rings {
		p.rings[i].add(now, &delta)
	}
	rt.sampleLater()
}

// endHistory stops measuring.
func (rt *Runtime) endHistory() {
	p := &rt.history
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over = true; p.timer != nil {
		p.timer.Stop()
	}
}

// History returns what was measured in the last 15 minutes by 10 s, in the last 3 hours by the
// minute, or in the last day by 10 minutes: the shortest of these that has the window.
func (rt *Runtime) History(window time.Duration) History {
	p := &rt.history
	p.mu.Lock()
	defer p.mu.Unlock()
	rings := &p.rings
	if !p.kept { // nothing was measured
		fresh := newRings()
		rings = &fresh
	}
	r := &rings[len(rings)-1]
	for i := range rings {
		if time.Duration(len(rings[i].all))*rings[i].step >= window {
			r = &rings[i]
			break
		}
	}
	return r.read(rt.sys.Clock().Now())
}
