// Package control lets other programs look into a running job of package fleet, and
// decide about it: pause, go on, another number of attempts, a task that is canceled or
// runs again. The command troupe ctl uses it.
//
// [Listen] opens a Unix socket that belongs to the job's directory, or a port of this
// machine with a token. Nothing is open until it is called. [Send] and [Read] are the
// other side. Where no process answers they use the journal of the job.
//
// The transport of decisions lives here. What a decision does is package fleet's, and who
// may connect is package inspect's.
package control
