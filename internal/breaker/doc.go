// Package breaker decides, as a value, what may be attempted when attempts fail: a
// circuit breaker with one probe at a time, and a limit on the starts of one second.
//
// A step takes an input and returns effects, and both are plain data. There is no lock,
// clock or goroutine in here: the owner of a [Breaker] calls Step one at a time, passes
// the time, and carries out the effects in their order. The package knows neither what is
// attempted nor what counts as a failure.
package breaker
