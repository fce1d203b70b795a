package kernel

import "github.com/benbjohnson/clock"

// AsClock returns the seams as the clock that a user may give a runtime: a simulation
// replaces all of them, and production only the clock. Only [SeamsOf] may use it.
func (c Config) AsClock() clock.Clock { return carrier{seams: c} }

// SeamsOf returns the seams behind a clock: those that [Config.AsClock] was called on,
// or production's with this clock. nil means the wall clock.
func SeamsOf(c clock.Clock) Config {
	if carried, ok := c.(carrier); ok {
		return carried.seams
	}
	return Config{Clock: NewClock(c)}
}

type carrier struct {
	clock.Clock // nil
	seams       Config
}
