package sdk_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// TestMistakesInChildrenAreConfigErrors, reported with the other mistakes in the options.
func TestMistakesInChildrenAreConfigErrors(t *testing.T) {
	t.Parallel()
	child, _ := session.NewChild(supervisor.Child{Name: "hooks"}, func() session.Behavior[int] { return session.Behavior[int]{} })
	_, err := sdk.PreviewLaunch(&sdk.Options{
		Backend: sdk.Claude(sdk.ClaudeConfig{}), MaxRestarts: -1, Children: []*session.Child{nil, child},
	})
	for _, want := range []string{"MaxRestarts", "Children[0]", "Children[1]"} {
		require.ErrorContains(t, err, want)
	}
	var mistake *sdk.ConfigError
	require.ErrorAs(t, err, &mistake)
}

// TestAChildUsesTheClient from its context, as soon as it runs: before the agent is ready,
// while a turn runs, and to end the session, whichever function began it.
func TestAChildUsesTheClient(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.options(turn(scripted.Text("one"), hour), turn(scripted.Text("two")))
		var first *sdk.ResultMessage
		had := make(chan struct{})
		var ref *session.Ref[string]
		var child *session.Child
		child, ref = session.NewChild(supervisor.Child{Name: "boss"}, func() session.Behavior[string] {
			return session.Behavior[string]{
				Start: func(ctx context.Context) error {
					turn, err := sdk.ClientOf(ctx).Send(ctx, sdk.UserText("first"))
					if err != nil {
						return err
					}
					w.rt.Executor().Go(func() {
						defer close(had)
						for m, err := range turn.Messages(ctx) {
							assert.NoError(w, err)
							switch m := m.(type) {
							case *sdk.AssistantMessage:
								assert.NoError(w, ref.Send("interrupt"))
							case *sdk.ResultMessage:
								first = m
							}
						}
					})
					return nil
				},
				Handle: func(ctx context.Context, m string) error {
					if m == "close" {
						return sdk.ClientOf(ctx).Close(ctx)
					}
					_, err := sdk.ClientOf(ctx).Interrupt(ctx)
					return err
				},
			}
		})
		o.Children = []*session.Child{child}
		events := record(o)
		c := w.connect(o)
		w.await(had)
		second, err := c.Send(w.Context(), sdk.UserText("second"))
		require.NoError(w, err)
		w.await(second.Done())
		require.NoError(w, ref.Send("close"))
		w.await(c.Done())
		require.NoError(w, c.Err())
		w.close(c)
		assert.True(w, first.Failed(), "it was interrupted")
		for _, e := range w.events(events) {
			_, failed := e.(*session.ActorFailed)
			assert.False(w, failed, e)
		}
		assert.Nil(w, sdk.ClientOf(w.Context()))
	})
}

// TestAChildOfAQuery has a client, too.
func TestAChildOfAQuery(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.options(bash())
		asked, answered := make(chan error, 1), make(chan struct{})
		o.CanUseTool = func(ctx context.Context, _ *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.Allow(), w.rt.Executor().Await(ctx, answered) // the child may begin late
		}
		child, ref := session.NewChild(supervisor.Child{Name: "asker"}, func() session.Behavior[int] {
			return session.Behavior[int]{Start: func(ctx context.Context) error {
				defer close(answered)
				asked <- heard(sdk.Call[any](ctx, sdk.ClientOf(ctx), &protocol.MCPStatusRequest{}))
				return nil
			}}
		})
		o.Children = []*session.Child{child}
		for _, err := range sdk.Query(w.Context(), "hi", o) {
			require.NoError(w, err)
		}
		require.NoError(w, <-asked, "the agent was not ready yet")
		require.ErrorIs(w, ref.Send(1), session.ErrNoChild)
	})
}
