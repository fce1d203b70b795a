package main

import "fmt"

// limits are what figures may be at most, or at least. 0: the figure is only reported.
type limits struct {
	idleKB, streamKB        float64 // resident set of a session
	turnMS, storedMS        float64 // processor time of a turn without and with a transcript
	sooner, smaller         float64 // than Claude Code, at least
	codec, user             float64 // events per second of processor time, as a multiple of the loop with json.Unmarshal
	idleGoroutines          float64 // of a session
	leftGoroutines, leftFDs float64 // in all
	leftKB                  float64 // of heap, of each session that is closed
}

var (
	// whole are the limits for 10,000 sessions. The rest of the heap belongs to the Go runtime, which
	// keeps the descriptor of every goroutine there ever was.
	whole = limits{
		idleKB: 45, streamKB: 105, turnMS: 1.5, storedMS: 2.2, sooner: 100, smaller: 1000, codec: 4, user: 0.45,
		idleGoroutines: zero, leftGoroutines: zero, leftFDs: zero, leftKB: 4,
	}
	// tenth are those for a machine that has other work, and a tenth of the sessions.
	tenth = limits{
		idleKB: 45, streamKB: 110, turnMS: 2, sooner: 100, smaller: 1000,
		idleGoroutines: zero, leftGoroutines: zero, leftFDs: zero, leftKB: 8,
	}
)

// zero is the limit of what has to be 0.
const zero = 1e-9

// most prints a figure, and counts it if it is above its limit.
func (b *bench) most(limit float64, name string, got float64, unit string) {
	b.figure(name, got, unit, limit, "at most", got <= limit)
}

// least prints a figure, and counts it if it is below its limit.
func (b *bench) least(limit float64, name string, got float64) {
	b.figure(name, got, "", limit, "at least", got >= limit)
}

// tell prints a figure without a limit.
func (b *bench) tell(name string, got float64, unit string) { b.figure(name, got, unit, 0, "", true) }

func (b *bench) figure(name string, got float64, unit string, limit float64, which string, held bool) {
	note := ""
	if limit != 0 {
		if limit == zero {
			limit = 0
		}
		note = fmt.Sprintf("  %s %g", which, limit)
		if !held {
			note += "  MISSED"
			b.missed++
		}
	}
	fmt.Printf("%-54s %9.2f %-6s%s\n", name, got, unit, note)
}
