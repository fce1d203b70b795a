package runtime_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// spanNames are the names of intervals, with a + for those that last.
func spanNames(all []runtime.Span) []string {
	names := []string{}
	for _, s := range all {
		if s.To.IsZero() {
			s.Name += "+"
		}
		names = append(names, s.Name)
	}
	return names
}

// TestTheTimeline has a turn with a call that a person allows, and a second one in which the
// agent dies.
func TestTheTimeline(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	calls := &scripted.Message{Fields: map[string]any{"type": "assistant", "message": map[string]any{
		"role": "assistant", "content": []any{map[string]any{"type": "tool_use", "id": "g", "name": "Grep", "input": map[string]any{}}},
	}}}
	script := turns(
		scripted.Steps{gate(), scripted.Text("done")},
		scripted.Steps{scripted.Text("hm"), calls, scripted.Delay(10 * time.Second), &scripted.Exit{Code: 9}},
	)
	script.Resumed = []scripted.Turn{{Steps: scripted.Steps{scripted.Delay(time.Minute), scripted.Text("after all")}}}
	spec := w.spec(script)
	spec.Options.MaxRestarts = 1
	spec.Options.PermissionTimeout = time.Hour
	answer := make(chan struct{})
	spec.Options.CanUseTool = func(ctx context.Context, r *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
		if err := w.Executor().Await(ctx, answer); err != nil {
			return protocol.PermissionResult{}, err
		}
		return allow(ctx, r)
	}
	s := w.open(spec)
	opened := s.Timeline(t.Context())
	assert.Equal(t, []string{"process 1+"}, spanNames(opened.Processes))
	assert.Empty(t, opened.Turns)

	first := w.send(s, "1")
	w.Pass(time.Minute)
	got := s.Timeline(t.Context())
	assert.Equal(t, []string{"1+"}, spanNames(got.Turns))
	assert.Equal(t, first.UUID(), got.Turns[0].ID)
	assert.Equal(t, []string{"Bash+"}, spanNames(got.Tools))
	assert.Equal(t, []string{"permission request Bash+"}, spanNames(got.Waits))
	tree := s.Tree(t.Context())
	assert.Equal(t, 1, tree.Turn)
	assert.Equal(t, got.Turns[0].From, tree.TurnSince)
	assert.Equal(t, got.Waits[0].From, tree.Waits[0].Since)
	assert.Equal(t, tree.Waits[0].Age, tree.At.Sub(tree.Waits[0].Since))

	close(answer)
	_, err := first.Result(t.Context())
	require.NoError(t, err)
	got = s.Timeline(t.Context())
	assert.Equal(t, []string{"1"}, spanNames(got.Turns))
	assert.Equal(t, []string{"Bash"}, spanNames(got.Tools))
	assert.Equal(t, []string{"permission request Bash"}, spanNames(got.Waits))
	assert.InDelta(t, time.Minute, got.Waits[0].To.Sub(got.Waits[0].From), float64(time.Second))
	assert.Zero(t, s.Tree(t.Context()).TurnSince)

	second := w.send(s, "2")
	w.Pass(time.Second)
	assert.Equal(t, []string{"Bash", "Grep+"}, spanNames(s.Timeline(t.Context()).Tools))
	_, err = second.Result(t.Context())
	require.NoError(t, err)
	got = s.Timeline(t.Context())
	assert.Equal(t, []string{"process 1", "process 2+"}, spanNames(got.Processes))
	assert.False(t, got.Processes[1].From.Before(got.Processes[0].To), "one after the other")
	assert.Equal(t, []string{"Bash", "Grep"}, spanNames(got.Tools), "the death has ended the call")
	assert.Equal(t, got.Processes[0].To, got.Tools[1].To)
	assert.Equal(t, []string{"1", "2", "2"}, spanNames(got.Turns), "the turn continued in the next process")
	assert.Equal(t, 2, s.Tree(t.Context()).Turn)
	require.Len(t, got.Marks, 1)
	assert.Equal(t, "death", got.Marks[0].Kind)
	assert.NotEmpty(t, got.Marks[0].Why)
}

// TestTheTimelineMarksCrashes kills an actor.
func TestTheTimelineMarksCrashes(t *testing.T) {
	t.Parallel()
	strike := false
	w := inSim(t, 1, func(c *kernel.Config) {
		c.Chaos = func(actor string, _ any, _ kernel.Moment) bool {
			now := strike && strings.HasPrefix(actor, "router#")
			strike = strike && !now
			return now
		}
	})
	spec := w.spec(turns(scripted.Steps{scripted.Text("hi")}))
	spec.ID = "s"
	s := w.open(spec)
	began := s.Tree(t.Context()).Actors[2].Started
	w.Pass(time.Second)
	strike = true
	_, err := w.send(s, "go").Result(t.Context())
	require.NoError(t, err)
	require.False(t, strike)
	got := s.Timeline(t.Context())
	require.Len(t, got.Marks, 1)
	assert.Equal(t, []string{"crash", "fleet/s#1/router#1"}, []string{got.Marks[0].Kind, got.Marks[0].Actor})
	assert.Equal(t, []string{"1"}, spanNames(got.Turns), "the past outlives the actor")
	tree := s.Tree(t.Context())
	router := tree.Actors[2]
	assert.Equal(t, "router#2", router.Name)
	assert.Equal(t, "s#1", router.Parent)
	assert.True(t, router.Started.After(began), "a new life")
	assert.Equal(t, got.Marks[0].At, router.FailedAt)
	assert.Equal(t, 1, router.WindowFailures)
	assert.Positive(t, router.WindowLimit)
	w.Pass(time.Duration(router.WindowMS+1000) * time.Millisecond)
	assert.Zero(t, s.Tree(t.Context()).Actors[2].WindowFailures, "it is long ago")
}

// TestTheTreeShowsUsageAndWhatEnded adds up the results of a session, and finds it again when it has
// failed.
func TestTheTreeShowsUsageAndWhatEnded(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	spec := w.spec(turns(
		scripted.Steps{scripted.Text("a"), &scripted.Result{Cost: 0.5}}, scripted.Steps{scripted.Text("b")}, scripted.Steps{&scripted.Exit{Code: 3}},
	))
	spec.ID, spec.Options.Title = "s", "the title"
	ctx := runtime.WithAdmission(t.Context(), runtime.AdmissionRequest{Labels: map[string]string{"team": "red"}, Job: "j", Task: "t", Attempt: 2})
	s, err := w.Open(ctx, spec)
	require.NoError(t, err)
	assert.Zero(t, s.Tree(t.Context()).Usage)
	var result *protocol.ResultMessage
	for range 2 {
		result, err = w.send(s, "go").Result(t.Context())
		require.NoError(t, err)
	}
	got := s.Tree(t.Context())
	require.Greater(t, result.TotalCostUSD, 0.5)
	assert.InDelta(t, result.TotalCostUSD, got.Usage.USD, 1e-9, "the agent reports sums")
	assert.Positive(t, got.Usage.Tokens.Input)
	assert.Positive(t, got.Usage.Turns)
	assert.Equal(t, []any{"the title", map[string]string{"team": "red"}, "j", "t", 2}, []any{got.Title, got.Labels, got.Job, got.Task, got.Attempt})
	assert.Empty(t, w.Tree(t.Context()).Ended)

	_, err = w.send(s, "die").Result(t.Context())
	require.Error(t, err)
	w.Pass(time.Minute)
	tree := w.Tree(t.Context())
	assert.Empty(t, tree.Sessions)
	require.Len(t, tree.Ended, 1)
	last := tree.Ended[0]
	assert.Equal(t, "s", last.ID)
	assert.Equal(t, session.StateFailed, last.State)
	assert.Contains(t, last.Error, "3")
	assert.Equal(t, got.Usage, last.Usage)
	assert.Equal(t, got.AgentSessionID, last.AgentSessionID)
	assert.Equal(t, got.Title, last.Title)

	// Of many the last ones are kept.
	for range 300 {
		closed := w.spec(turns())
		c := w.open(closed)
		require.NoError(t, c.Close(t.Context()))
	}
	tree = w.Tree(t.Context())
	assert.Len(t, tree.Ended, 256)
	assert.Equal(t, session.StateClosed, tree.Ended[0].State)
	assert.Empty(t, tree.Ended[0].Error)
	raw, err := json.Marshal(s.Timeline(t.Context()))
	require.NoError(t, err)
	assert.Contains(t, string(raw), `"partial":true`, "one that has ended has no past but marks")
}
