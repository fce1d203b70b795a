package ui

import (
	"context"
	"io"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/runtime"
)

// askingJob is a job with a call that waits.
type askingJob struct{ calls []Approval }

func (j *askingJob) ID() string { return "job" }
func (j *askingJob) State(context.Context) (JobState, error) {
	return JobState{Summary: struct{}{}, Approvals: j.calls}, nil
}

func (j *askingJob) Transcript(context.Context, string, int64) (io.ReadCloser, error) {
	return nil, fs.ErrNotExist
}
func (j *askingJob) Do(context.Context, Command) error { return nil }

// TestACallThatIsBeingAnswered is not said to be answered elsewhere: its job has no call any more before the answer is kept here.
func TestACallThatIsBeingAnswered(t *testing.T) {
	t.Parallel()
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rt.Shutdown(context.Background())) })
	job := &askingJob{calls: []Approval{{ID: "c", Tool: "Bash"}}}
	w := &Window{clock: rt.Clock(), exec: rt.Executor(), cfg: Config{Jobs: func() []Job { return []Job{job} }}}
	w.hub = newHub(rt.Clock(), rt.Executor(), func(context.Context) {})
	t.Cleanup(w.hub.close)
	me := &reader{}
	_, ok := w.hub.join(me, 0)
	require.True(t, ok)
	defer w.hub.leave(me)
	var seen jobsSeen
	kinds := func() (all []string) {
		seen.look(t.Context(), w)
		w.hub.publish("end", "", struct{}{}) // take waits for a frame
		frames, _, _, ok := me.take(t.Context(), rt.Executor())
		require.True(t, ok)
		for _, f := range frames {
			if f.kind != "job" {
				all = append(all, f.kind)
			}
		}
		return all
	}
	assert.Equal(t, []string{"end"}, kinds())
	const key = "/job:c"
	_, err = w.answers.begin(t.Context(), w, key)
	require.NoError(t, err)
	job.calls = nil
	assert.Equal(t, []string{"end"}, kinds(), "the answer is on its way")
	w.answers.end(key, nil) // it came too late
	assert.Equal(t, []string{"decided", "end"}, kinds())
	assert.Equal(t, []string{"end"}, kinds())
}
