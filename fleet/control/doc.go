// Package control lets other programs look into a running job of package fleet, and
// decide about it: pause, resume, another number of attempts, a task that is canceled or
// runs again. The command troupe ctl uses it.
//
// [Listen] opens a Unix socket that belongs to the job's directory, or a port of this
// machine with a token. Nothing is open until it is called. [Send] and [Read] are the
// other side. Where no process answers they use the journal of the job.
//
// It transports decisions. Package fleet carries them out, and package inspect decides
// who may connect.
package control
