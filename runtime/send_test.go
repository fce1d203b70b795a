package runtime_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
)

// TestManySendersAtOnce: the bound of messages that wait is one of the queue, and
// not of each sender.
func TestManySendersAtOnce(t *testing.T) {
	t.Parallel()
	const room, senders = 256, 5000
	w := inProduction(t)
	s := w.open(w.spec(turns(scripted.Steps{scripted.Delay(time.Hour)})))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var begun, sent, refused atomic.Int64
	start, full := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var all sync.WaitGroup
	step := func() { // the queue is full, and every sender is there
		if sent.Load() >= room && begun.Load() == senders {
			once.Do(func() { close(full) })
		}
	}
	for range senders {
		all.Go(func() {
			<-start
			begun.Add(1)
			step()
			if _, err := s.Send(ctx, text("hi")); err != nil {
				assert.ErrorIs(t, err, context.Canceled)
				refused.Add(1)
				return
			}
			sent.Add(1)
			step()
		})
	}
	close(start)
	<-full
	assert.Len(t, wholeTree(t, w.world).Sessions[0].Waits, room+1, "one for each message in the queue, and the progress of the first")
	cancel()
	all.Wait()
	assert.Equal(t, int64(room), sent.Load())
	assert.Equal(t, int64(senders-room), refused.Load())
	require.NoError(t, s.Close(t.Context()))
}
