package sdk_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// said is the text of all messages.
func said(messages []sdk.Message) []string {
	var all []string
	for _, m := range messages {
		if text := sdk.TextOf(m); text != "" {
			all = append(all, text)
		}
	}
	return all
}

func TestATurnHasItsOwnMessagesOnly(t *testing.T) {
	t.Parallel()
	for _, like := range []agent.Dialect{agent.Claude, agent.Qoder} {
		t.Run(string(like), func(t *testing.T) {
			t.Parallel()
			in(t, func(w *world) {
				c := w.connect(w.like(like, script(
					turn(scripted.Text("one"), scripted.Text("more of one")),
					turn(scripted.Text("two")), turn(scripted.Text("three")), turn(scripted.Text("four")),
				)))
				defer w.close(c)
				send := func(text string) *sdk.Turn {
					t, err := c.Send(w.Context(), sdk.UserText(text))
					require.NoError(w, err)
					return t
				}
				for m, err := range send("1").Messages(w.Context()) {
					require.NoError(w, err)
					if sdk.TextOf(m) != "" {
						break
					}
				}
				all, err := sdk.Collect(send("2").Messages(w.Context()))
				require.NoError(w, err)
				assert.Equal(w, []string{"two", "two"}, said(all), "the message and the result")

				send("3") // nobody reads it
				all, err = sdk.Collect(send("4").Messages(w.Context()))
				require.NoError(w, err)
				assert.Equal(w, []string{"four", "four"}, said(all))
			})
		})
	}
}

func TestATurnHasNothingOfBackgroundWork(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		c := w.connect(w.options(
			turn(&scripted.SubAgent{Description: "look", Background: true,
				Steps: scripted.Steps{scripted.Text("found")}, Then: scripted.Steps{scripted.Text("it has ended")}}, scripted.Text("one")),
			turn(scripted.Text("two")), turn(scripted.Text("three")),
		))
		defer w.close(c)
		first, err := c.Send(w.Context(), sdk.UserText("1"))
		require.NoError(w, err)
		_, err = first.Result(w.Context())
		require.NoError(w, err)
		require.NoError(w, c.AwaitIdle(w.Context())) // the agent has had a turn of its own
		second, err := c.Send(w.Context(), sdk.UserText("2"))
		require.NoError(w, err)
		all, err := sdk.Collect(second.Messages(w.Context()))
		require.NoError(w, err)
		for _, m := range all {
			assert.Empty(w, m.Meta().ParentToolUseID)
			_, notified := m.(*protocol.TaskNotificationMessage)
			assert.False(w, notified)
		}
		assert.Len(w, said(all), 2)
	})
}

// TestCloseKeepsWhatNobodyHasRead begins to read after the session was closed.
func TestCloseKeepsWhatNobodyHasRead(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		c := w.connect(w.options(turn(scripted.Text("one")), turn(scripted.Text("two"))))
		first, err := c.Send(w.Context(), sdk.UserText("1"))
		require.NoError(w, err)
		for m, err := range first.Messages(w.Context()) {
			require.NoError(w, err)
			if sdk.TextOf(m) == "one" {
				break
			}
		}
		second, err := c.Send(w.Context(), sdk.UserText("2"))
		require.NoError(w, err)
		require.NoError(w, c.AwaitIdle(w.Context()))
		w.close(c)
		all, err := sdk.Collect(c.Messages(w.Context()))
		require.NoError(w, err)
		assert.Equal(w, []string{"one", "two", "two"}, said(all), "the result of one, and all of two")
		r, err := second.Result(w.Context())
		require.NoError(w, err)
		assert.Equal(w, "two", r.Result)
	})
}

func TestSessionIDBeforeTheFirstTurn(t *testing.T) {
	t.Parallel()
	const id = "11111111-2222-4333-8444-555555555555"
	in(t, func(w *world) {
		o := w.options(turn(scripted.Text("one")))
		o.SessionID = id
		assert.Equal(w, id, sdk.NewClient(o).SessionID())
		c := w.connect(o)
		defer w.close(c)
		assert.Equal(w, id, c.SessionID())
		first, err := c.Send(w.Context(), sdk.UserText("1"))
		require.NoError(w, err)
		_, err = first.Result(w.Context())
		require.NoError(w, err)
		assert.Equal(w, id, c.SessionID())
	})
}
