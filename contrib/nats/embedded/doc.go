// Package embedded runs a NATS server with JetStream in this process, which syncs each write to
// the disk before it acknowledges it:
//
//	server, err := embedded.Start(embedded.Config{Dir: "/var/lib/troupe/nats", Host: "127.0.0.1", Port: 4222})
//	...
//	defer server.Stop()
//	nc, err := server.Connect()
package embedded
