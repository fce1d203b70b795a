// Package breaker decides, as a value, what may be attempted when attempts fail: a
// circuit breaker with one probe at a time, and a limit on the starts of one second.
//
// A step takes an input and returns effects, and both are plain data. There is no lock,
// clock or goroutine in here: whoever owns a [Breaker] calls Step one at a time, says what
// time it is, and carries out the effects in their order. What is attempted, and what
// counts as a failure, must not be known here.
package breaker
