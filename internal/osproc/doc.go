// Package osproc owns one agent process and its whole tree: launch, exit,
// signals to the group, sweep, and collection.
//
// In this package: everything that talks to the operating system about processes. Not in
// this package: any knowledge of agents, frames, dialects or actors. The package stands
// on internal/kernel's seams alone.
//
// # Life of a process
//
//	Start → (Stdin, Stdout, Stderr) … Exited → Kill → Sweep → Reap
//
// Each step may be left out or repeated, except the last: every started
// Process must be reaped, for Reap is what gives back its descriptors, its
// temporary files and its share of the launching thread. The order matters:
// until the leader is reaped the kernel keeps its number, so the group can be
// signalled without ever meeting a recycled one.
//
// # Guarantees on Linux
//
// When Kill, Sweep and Reap have returned without error, no process that the leader
// started, directly or not, is left: neither members of its group, nor processes that
// made their own session, nor orphans adopted by init, nor processes that these have
// forked meanwhile. They are known by the launch marker, an environment variable whose
// name carries the launch id and which every child inherits (observed on Claude Code
// 2.1.329: each shell command gets its own session and outlives a SIGKILL of the CLI,
// with the variable in place).
//
// Limits. A process outside the group is not found when it runs on an emptied
// environment (env -i), has overwritten the memory of its environment, belongs to
// another user, or may not be inspected (set-user-ID, file capabilities, PR_SET_DUMPABLE
// 0). Without /proc only the group is reached. If the host dies without having closed,
// the kernel sends the leader Command.HostDeath (Pdeathsig). Processes that the leader
// does not end then stay until a later host with the same Config.StateDir starts, or
// until a call of [Launcher.SweepMarker]. Temporary files stay until the next host with
// the same Config.TempDir starts.
//
// A scan lists all processes of the host, and reads each only once: a process is known
// by its pid and the inode of its directory in /proc. Processes that were started before
// the leader are not of the launch; those that lived before the launcher's first launch
// are not read at all. A sweep begins with a new list, and makes another when a process
// was born since, as ns_last_pid shows. Only a process that chooses its own pid, which
// takes a capability, can be born without that.
//
// # Threads, goroutines, memory
//
// All spawns run on one goroutine that is locked to its thread while any
// process lives, because Pdeathsig fires when the launching thread ends, not
// the program. Exit is seen through pidfds in one epoll set, which itself sits
// in Go's poller: one goroutine for all processes and no thread. Without pidfd
// (Linux before 5.3, some sandboxes) exits are polled on the clock instead. A
// live process costs three pipes, a pidfd and a few hundred bytes.
//
// # Other systems
//
// The Darwin, Windows and other-Unix files compile and follow the same
// contract as far as those systems allow, but are untested, and outside the
// claim above: Darwin walks the process tree by parent and group, so an orphan
// in a session of its own escapes; Windows ends the job object; other Unixes
// reach the group only. None of them has a Pdeathsig (Windows has the job's
// kill-on-close).
package osproc
