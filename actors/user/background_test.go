package user_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

const (
	shellLives = `{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"k","task_type":"local_bash","description":"npm run dev"}]}`
	agentLives = `{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"k","task_type":"local_bash"},{"task_id":"l","task_type":"local_agent"}]}`
	noneLives  = `{"type":"system","subtype":"background_tasks_changed","tasks":[]}`
)

// TestBackgroundTasksAreWaitedForWithALimit counts from the last result.
func TestBackgroundTasksAreWaitedForWithALimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		given time.Duration
		lives string
		want  time.Duration // 0: it waits on
		left  int
	}{
		"a shell command":       {0, shellLives, 30 * time.Second, 1},
		"a subagent among them": {0, agentLives, 10 * time.Minute, 2},
		"a limit of the user's": {time.Minute, agentLives, time.Minute, 2},
		"no limit":              {-1, shellLives, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, limits(session.Limits{Background: c.given}), repeatsInit)
			turn := r.turn("a")
			began := r.sched.Now()
			var left []protocol.BackgroundTask
			var took time.Duration
			r.sched.Go(func() {
				var err error
				left, err = r.AwaitDone(context.Background())
				assert.NoError(t, err)
				took = r.sched.Now().Sub(began)
			})
			r.sched.AfterFunc(time.Hour, func() { r.read(noneLives) })
			r.sched.AfterFunc(5*time.Second, func() { r.read(c.lives, resultOf("a"), running) })
			require.NoError(t, r.sched.Run(1000))
			result, err := turn.Result()
			require.NoError(t, err)
			assert.NotEmpty(t, result.BackgroundTasks, "they lived when the result came")
			assert.Len(t, left, c.left)
			if c.want > 0 {
				assert.Equal(t, 5*time.Second+c.want, took)
			} else {
				assert.Zero(t, took, "the agent has not said that it is idle")
				r.read(idle)
				require.NoError(t, r.sched.Run(1000))
				assert.GreaterOrEqual(t, took, time.Hour)
			}
		})
	}
}

// TestATurnOfTheAgentsOwnIsNoBackgroundTask is not cut off.
func TestATurnOfTheAgentsOwnIsNoBackgroundTask(t *testing.T) {
	t.Parallel()
	r := newRig(t, repeatsInit)
	r.turn("a")
	r.read(shellLives, resultOf("a"), agentsInit)
	done := false
	r.sched.Go(func() {
		_, err := r.AwaitDone(context.Background())
		assert.NoError(t, err)
		done = true
	})
	pass(t, r.sched, time.Hour)
	require.False(t, done)
	r.read(agentsResult)
	pass(t, r.sched, time.Minute)
	assert.True(t, done)
}

func TestLostWritesAreReported(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.NoError(t, r.WritesLost())
	r.read(`{"type":"system","subtype":"session_writes_lost","error_code":"ENOSPC","lost":["transcript"],"Lost":[]}`)
	var lost *session.WritesLostError
	require.ErrorAs(t, r.WritesLost(), &lost)
	assert.Equal(t, "ENOSPC", lost.Code)
	assert.Equal(t, []string{"transcript"}, lost.Lost)
	assert.Len(t, eventsOf[*session.WarningIssued](r), 1)
}
