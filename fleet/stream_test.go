package fleet_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
)

// A source that has no task for an hour does not keep a job from what it has: results come, and
// a person is heard.
func TestASourceThatBlocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ended := false
		source := func(yield func(fleet.Task, error) bool) {
			defer func() { ended = true }()
			if !yield(tasks(1)[0], nil) {
				return
			}
			time.Sleep(time.Hour)
			yield(fleet.Task{ID: "late", Prompt: "do"}, nil)
		}
		var got []string
		for r, err := range fleet.Stream(t.Context(), fast(fleet.Job{Options: private(t, backend()), Concurrency: 2}), source) {
			require.NoError(t, err)
			got = append(got, r.ID)
			if r.ID == "t0" {
				assert.Less(t, time.Since(began), time.Minute)
			}
		}
		assert.Equal(t, []string{"t0", "late"}, got)
		assert.True(t, ended)
	})
}

// A job that is given up does not wait for a source that blocks. The source is ended when it has
// something to say.
func TestASourceThatBlocksAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, ended := time.Now(), make(chan struct{})
		source := func(yield func(fleet.Task, error) bool) {
			defer close(ended)
			if yield(tasks(1)[0], nil) {
				time.Sleep(time.Hour)
				yield(fleet.Task{ID: "late", Prompt: "do"}, nil)
			}
		}
		for r, err := range fleet.Stream(t.Context(), fast(fleet.Job{Options: private(t, backend()), Concurrency: 2}), source) {
			require.NoError(t, err)
			require.Equal(t, "t0", r.ID)
			break
		}
		assert.Less(t, time.Since(began), time.Minute)
		<-ended
	})
}
