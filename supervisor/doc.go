// Package supervisor is OTP's supervision as a pure state machine: the
// strategies one_for_one, one_for_all, rest_for_one and simple_one_for_one or a
// [Strategy] of your own, the child classes permanent, transient and temporary,
// significant children, deadlines, restart intensity, backoff, ordered shutdown and
// escalation.
//
// A [Supervisor] has no goroutine, no clock and no actor. Its owner, usually an actor,
// reports what happened (Start, ChildDown, Timer, …) and carries out the [Action] values
// that are returned, in order. Each decision is also an [Event]. So any actor can be a
// supervisor, and a test can try any schedule.
//
// A restart stops the affected children one by one in reverse order, each with a
// deadline. It waits for the backoff. Then it starts them in order, each as its next
// incarnation. A child never has two running incarnations: if a child does not end even
// after a kill, the supervisor gives up.
//
// A kill ends a child at once where that is possible, as for a process. Go cannot end
// code that runs, so the kill of an actor differs from its stop in this alone: its own
// code gets no more time. An actor that is handling a message ends after that message;
// if it does not come back from it within Child.Kill, it is stuck like any other child,
// and the supervisor gives up rather than start a second incarnation beside it.
//
// Differences from OTP: the class is asked first and the strategy then; a stop always has a deadline (there is no infinity); restarts
// wait for a backoff; a child that fails at its first start is treated like any other
// failure; and a child that fails during a restart joins that restart and counts for the
// intensity.
//
// The mechanics of supervision live here, on the standard library alone. I/O, actors, goroutines, and decisions about
// particular failures must not.
package supervisor
