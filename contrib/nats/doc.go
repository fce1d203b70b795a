// Package troupenats lets programs on many machines run one job of package fleet: [Queue] is
// a queue.Queue and [Files] are a queue.Files, both in NATS JetStream.
//
//	nc, err := troupenats.Connect("nats://first-machine:4222")
//	...
//	q, err := troupenats.Open(ctx, nc, troupenats.Config{Job: "nightly"})
//	...
//	defer q.Close()
//	files, err := troupenats.OpenFiles(ctx, nc, troupenats.Config{Job: "nightly"})
//	...
//	for result, err := range fleet.Run(ctx, fleet.Job{Queue: q, Files: files, ...})
//
// A job has one stream. Each task has one subject in it, whose last message says where the
// task stands, and every change is a compare-and-swap on the sequence of that message. So a
// result is taken from the holder of the lease alone, and once. A lease is a message with a
// time to live: the server that leads the stream ends it, by its own clock, and the sequence
// of the message that granted it is its fence.
//
// [Transcripts] is a session store there, for session.Options.SessionStore: a session continues
// on any host that has its lease.
//
// The servers must be 2.11 or later and must sync each write to the disk
// (jetstream { sync_interval: always }), or a loss of power takes results that they have
// acknowledged. Package embedded runs such a server in this process.
//
// It is a separate module, so that the main module does not depend on NATS.
package troupenats
