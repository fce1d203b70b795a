// Package supervisor is OTP's supervision as a pure state machine: the
// strategies one_for_one, one_for_all and rest_for_one, the child classes
// permanent, transient and temporary, restart intensity, backoff, ordered
// shutdown and escalation.
//
// A [Supervisor] has no goroutine, no clock and no actor. Whoever owns it (an
// actor, as a rule) reports what happened (Start, ChildDown, Timer, …) and
// carries out the [Action] values that come back, in order; each decision is
// told as an [Event]. So any actor can be a supervisor, and any schedule can
// be tried in a test.
//
// A restart stops the children it affects in reverse order, one by one, each
// awaited and each with a deadline; waits out the backoff; and starts them in
// order, each under its next incarnation. One child never has two live
// incarnations: a child that does not end even when it was killed makes the
// supervisor give up.
//
// Where it differs from OTP: a stop has always a deadline (there is no
// infinity); restarts wait for a backoff; a child that fails to start for the
// first time is treated like any other failure; and a child that fails by
// itself while a restart is under way joins that restart and counts for the
// intensity.
//
// What lives here: the mechanics. What must not: I/O, actors, goroutines, and
// any policy of what to do about a particular failure.
package supervisor
