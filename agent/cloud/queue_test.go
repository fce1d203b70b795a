package cloud

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// TestQueueIsBounded: the reader of the stream waits while the host is slow, until there is room, the
// stream is over or the connection is.
func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	for name, release := range map[string]func(q *queue, cancel context.CancelFunc){
		"room":       func(q *queue, _ context.CancelFunc) { q.take() },
		"stream":     func(_ *queue, cancel context.CancelFunc) { cancel() },
		"connection": func(q *queue, _ context.CancelFunc) { q.close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				wakes := 0
				q := &queue{exec: kernel.GoExecutor{}, wake: func() { wakes++ }}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				for range maxQueue {
					q.pushWhenFree(ctx, func() {})
				}
				assert.Equal(t, 1, wakes)
				over := false
				go func() {
					q.pushWhenFree(ctx, func() {})
					over = true
				}()
				synctest.Wait()
				assert.False(t, over, "the queue is full")
				q.push(func() {}) // never waits
				release(q, cancel)
				synctest.Wait()
				assert.True(t, over)
			})
		})
	}
}
