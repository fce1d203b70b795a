package callback_test

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

// TestADeadlineThatIsLearntAfterTheAlarm: the alarm was set when a callback came, has rung
// for another one, and was set anew without the limit that the callback learns of then.
func TestADeadlineThatIsLearntAfterTheAlarm(t *testing.T) {
	t.Parallel()
	r := inSim(t, nil, 0)
	began, limit := r.sched.Now(), time.Hour
	r.prepare = func(q *callback.Request) (callback.Job, error) {
		job := callback.Job{
			Name: "Bash", Limit: 10 * time.Second,
			Run: func(ctx context.Context) (json.RawMessage, error) {
				return nil, r.sched.Await(ctx, make(chan struct{}))
			},
		}
		if q.ID() == "b" {
			job.Limit = time.Hour
			job.Begin = func(context.Context) error {
				r.after(11 * time.Second)
				limit = 30 * time.Second
				return nil
			}
			job.Deadline = func() callback.Deadline { return callback.Deadline{Limit: limit, Since: began} }
		}
		return job, nil
	}
	r.read(ask("a"), ask("b"))
	r.pass(10 * time.Second)
	r.pass(time.Second)
	assert.Len(t, r.answers(), 1)
	r.pass(19 * time.Second)
	r.pass(0)
	assert.Len(t, r.answers(), 2)
}

// after waits on a task.
func (r *rig) after(d time.Duration) {
	over := make(chan struct{})
	r.sched.AfterFunc(d, func() { close(over) })
	_ = r.sched.Await(context.Background(), over)
}
