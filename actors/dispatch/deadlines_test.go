package dispatch_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/dispatch"
	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/actors/message"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// TestATaskLooksWhileItsDeadlineIsOver: the alarm finds a callback late whose
// task has just learnt of its deadline, too. (It is the race detector that judges.)
func TestATaskLooksWhileItsDeadlineIsOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil, 0)
	begin, looked, end := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var first, second sync.Once
	prepare := func(q *ledger.Request) (dispatch.Job, error) {
		return dispatch.Job{
			Name: "Bash", Limit: time.Hour,
			Begin: func(context.Context) error {
				if q.ID == "b" {
					<-begin
				}
				return nil
			},
			Deadline: func() dispatch.Deadline {
				select {
				case <-begin:
					second.Do(func() { close(looked) })
				default:
				}
				return dispatch.Deadline{Limit: 1}
			},
			Run: func(context.Context) (json.RawMessage, error) { <-end; return nil, nil },
		}, nil
	}
	var at kernel.Address[message.ToCallback]
	err := kernel.SpawnRoot(r.sys, "permission", &at, &dispatch.Actor{
		Kind: session.KindPermission, AsksPeople: true, Ledger: r.Ledger, Prepare: prepare,
		Changed: func(*kernel.Worker) { // a is late; b, too, and its task is let go
			first.Do(func() { close(begin); <-looked })
		},
	})
	require.NoError(t, err)
	require.NoError(t, kernel.StopAndWait(t.Context(), r.ref))
	r.ref = &at
	r.read(ask("a"), ask("b"))
	require.Eventually(t, func() bool { return len(r.answers()) == 2 }, 10*time.Second, time.Millisecond)
	close(end)
}
