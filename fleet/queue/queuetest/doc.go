// Package queuetest tests implementations of queue.Queue and queue.Files:
//
//	func TestQueue(t *testing.T) {
//		queuetest.RunQueue(t, func(t *testing.T) queuetest.Queue {
//			q := New(server, t.Name())
//			return queuetest.Queue{Queue: q, Expire: func() { server.Pass(time.Hour) }}
//		})
//	}
//
//	func TestStore(t *testing.T) {
//		queuetest.RunFiles(t, func(t *testing.T) queue.Files { return queue.DirFiles(t.TempDir()) })
//	}
//
// Queues and stores themselves must not live here.
package queuetest
