package embedded_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// parked is a request that waits for a batch until its caller leaves.
func parked(ctx context.Context, emit func(*model.Event) bool) error {
	emit(&model.Event{Kind: model.Waits, Batch: "b1", Within: time.Minute})
	<-ctx.Done()
	return context.Cause(ctx)
}

// A session that waited for a batch when its program ended, and that is resumed for that, makes the same
// request, to the byte, on another day, too. Its shell is where it was. Without that it reads the prompt.
func TestARequestIsMadeAgain(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"again": true, "with a prompt": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, o := plays(t, messagesAPI(), calling("c1", "Bash", `{"command":"cd sub"}`), parked, calling("c2", "Bash", `{"command":"pwd"}`), saying("done"), saying("more"))
			require.NoError(t, os.Mkdir(filepath.Join(o.Cwd, "sub"), 0o700))
			var by atomic.Int64
			o.Backend = &changed{o.Backend.(backend.Backend), func(s *backend.Seams) { s.Clock = later{s.Clock, &by} }}
			c := open(t, o)
			turn, err := c.Send(t.Context(), sdk.UserText("go"))
			require.NoError(t, err)
			for m, err := range turn.Messages(t.Context()) {
				require.NoError(t, err)
				if u, is := m.(*protocol.UnknownMessage); is && u.Subtype == "request_deferred" {
					assert.Contains(t, string(u.Raw()), `"batch":"b1"`)
					assert.Contains(t, string(u.Raw()), `"within_ms":60000`)
					break
				}
			}
			require.NoError(t, c.Close(t.Context())) // it interrupts the turn, and the log says so
			by.Store(int64(24 * time.Hour))
			next := *o
			next.Resume = c.SessionID()
			if again {
				next.Env = map[string]string{"TROUPE_EMBEDDED_CONTINUES": "1"}
			}
			d := open(t, &next)
			assert.Equal(t, "done", ask(t, d, "the note").Result)
			all := p.seen()
			require.Len(t, all, 4)
			if !again {
				assert.NotEqual(t, all[1], all[2])
				assert.Contains(t, all[2], "the note")
				return
			}
			assert.Equal(t, all[1], all[2])
			assert.Contains(t, all[3], "/sub")
			assert.NotContains(t, all[3], "the note")
			ask(t, d, "the next prompt")
			all = p.seen()
			assert.Contains(t, all[4], "the next prompt")
			assert.Contains(t, all[4], "The date is now")
			assert.NotContains(t, all[4], "interrupted")
		})
	}
}

// A session in which the model has answered, or a call is open, gets the prompt in any case.
func TestAFinishedTurnIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	p, o := plays(t, messagesAPI(), saying("one"), saying("two"))
	c := open(t, o)
	ask(t, c, "first")
	require.NoError(t, c.Close(t.Context()))
	next := *o
	next.Resume, next.Env = c.SessionID(), map[string]string{"TROUPE_EMBEDDED_CONTINUES": "1"}
	assert.Equal(t, "two", ask(t, open(t, &next), "second").Result)
	assert.Contains(t, p.seen()[1], "second")
}
