package dispatch_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/actors/callback"
)

// TestADeadlineThatIsLearntLate: a callback's time may be over when its task learns
// how long it had. It is answered for then, once, and others keep theirs.
func TestADeadlineThatIsLearntLate(t *testing.T) {
	t.Parallel()
	r := inSim(t, nil, 0)
	began, limit := r.sched.Now(), time.Hour
	r.prepare = func(q *callback.Request) (callback.Job, error) {
		return callback.Job{
			Name: "Bash", Limit: time.Hour,
			Begin: func(ctx context.Context) error {
				if q.ID() == "b" {
					r.after(time.Minute)
					limit = time.Second
				}
				return nil
			},
			Deadline: func() callback.Deadline {
				if q.ID() == "a" {
					return callback.Deadline{Limit: time.Hour, Since: began}
				}
				return callback.Deadline{Limit: limit, Since: began}
			},
			Run: func(ctx context.Context) (json.RawMessage, error) {
				return nil, r.sched.Await(ctx, make(chan struct{}))
			},
		}, nil
	}
	r.read(ask("a"), ask("b"))
	r.pass(time.Minute - 1)
	assert.Empty(t, r.answers())
	r.pass(1)
	r.pass(0)
	assert.Equal(t, []string{"b " + deny("no decision was made in time")}, r.answers())
	r.pass(time.Hour)
	assert.Len(t, r.answers(), 2)
}

// after waits on a task.
func (r *rig) after(d time.Duration) {
	over := make(chan struct{})
	r.sched.AfterFunc(d, func() { close(over) })
	_ = r.sched.Await(context.Background(), over)
}
