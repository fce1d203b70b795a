package sdk_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// Of two tasks in the background one is stopped; the other ends as it would
// have, and begins its turn.
func TestStopTaskStopsNothingElse(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		shell := func(command string, takes time.Duration) scripted.Step {
			return &scripted.Shell{Command: command, Description: command, Takes: takes, Then: scripted.Steps{scripted.Text("after " + command)}}
		}
		o := w.options(turn(shell("one", time.Hour), shell("two", 50*time.Millisecond), scripted.Text("started")))
		o.AllowedTools = []string{"Bash"}
		c := w.connect(o)
		defer w.close(c)
		_, err := c.Send(w.Context(), sdk.UserText("hi"))
		require.NoError(w, err)
		tasks, ended, said := map[string]string{}, map[string]string{}, []string{}
		for m, err := range c.Messages(w.Context()) {
			require.NoError(w, err)
			switch m := m.(type) {
			case *protocol.TaskStartedMessage:
				tasks[m.TaskID] = m.Description
				if m.Description == "one" {
					require.NoError(w, c.StopTask(w.Context(), m.TaskID))
				}
			case *protocol.TaskNotificationMessage:
				ended[tasks[m.TaskID]] = m.Status
			case *sdk.ResultMessage:
				said = append(said, m.Result)
			}
			if len(said) == 2 && len(ended) == 2 { // on a slow machine two is over before one is stopped
				break
			}
		}
		require.NoError(w, c.AwaitIdle(w.Context()))
		assert.Equal(w, map[string]string{"one": "stopped", "two": "completed"}, ended)
		assert.Equal(w, []string{"started", "after two"}, said)
	})
}
