package fleet

import "github.com/agent-troupe/troupe/runtime"

// Pace adapts how many attempts run at the same time to what the model's API takes. It
// begins with Start, doubles with each round of attempts that went well until the API is
// overloaded for the first time (429, 529), and from then on adds one for each round. Each
// overload halves it once, however many attempts and retries see it. Other failures of the
// API (5xx, connections) hold it for a round, and so does a starved machine, whose
// time-outs say nothing about the API. Zero fields take their defaults.
//
// Jobs of one runtime with the same [Job.Account] share the number: together they run as
// many attempts, those with fewer first. A job begins with what earlier ones have found.
type Pace struct {
	Start   int // default: 2
	Floor   int // default: 1
	Ceiling int // default: 64
	// Starved reports whether the machine has too little processor time for what runs. It is
	// called once a second, and must return quickly. nil: a timer was late by 250 ms, or Linux
	// says that a task waits for a processor 90 % of the time, or that the container was
	// throttled for a quarter of it.
	Starved func() bool
}

// bounds are those that the account of the job goes by; nil without a pace.
func (p *Pace) bounds() *runtime.AccountPace {
	if p == nil {
		return nil
	}
	return &runtime.AccountPace{Start: p.Start, Floor: p.Floor, Ceiling: p.Ceiling}
}

// maxChanges bounds what is kept of the history of a pace.
const maxChanges = 1000

// trouble is what an attempt has seen of the API.
type trouble int8

const (
	overloaded trouble = iota + 1 // 429, 529, or an overload without a status
	failing                       // 5xx, connections
)

// troubleOf classes a failed call of the API by its HTTP status, 0 for none, and by the word
// for the failure. An overload in a stream that began well may have no status, or that of the
// stream (not observed).
func troubleOf(status int, word string) trouble {
	switch {
	case status == 429, status == 529, status < 300 && meansOverload(word):
		return overloaded
	case status == 0, status >= 500:
		return failing
	}
	return 0
}

// meansOverload knows the words of Claude Code, the first two (observed on 2.1.329), and those
// of the API.
func meansOverload(word string) bool {
	switch word {
	case "overloaded", "rate_limit", "overloaded_error", "rate_limit_error":
		return true
	}
	return false
}
