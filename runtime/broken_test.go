package runtime_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// odd is a dialect with a bug.
type odd struct {
	dialect.Dialect
	initialize bool // it is in Initialize, else in the denial of a permission
}

func (d odd) Initialize(o *dialect.Input) (json.RawMessage, error) {
	if d.initialize {
		panic("a bug")
	}
	return d.Dialect.Initialize(o)
}

func (odd) PermissionFailure(*protocol.CanUseToolRequest, string) json.RawMessage { panic("a bug") }

// TestADialectThatPanics ends the session: the agent is gone, no tool has run, and all
// waiters get the reason.
func TestADialectThatPanics(t *testing.T) {
	t.Parallel()
	for name, initialize := range map[string]bool{"initialize": true, "denial": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBoth(t, func(t *testing.T, w *rig) {
				spec := w.spec(turns(scripted.Steps{gate()}))
				spec.Dialect = odd{spec.Dialect, initialize}
				spec.Options.CanUseTool = func(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
					return protocol.PermissionResult{}, context.Canceled // it fails, so the host denies
				}
				s, err := w.Open(context.Background(), spec)
				if err != nil { // it was over before it had begun
					var bug *session.PanicError
					require.ErrorAs(t, err, &bug)
					return
				}
				var bug *session.PanicError
				if turn, err := s.Send(context.Background(), text("go")); err == nil {
					_, err = turn.Result(context.Background())
					require.ErrorAs(t, err, &bug)
				}
				require.NoError(t, w.Executor().Await(context.Background(), s.Done()))
				require.ErrorAs(t, s.Err(), &bug)
				assert.Equal(t, "a bug", bug.Value)
				assert.Equal(t, session.StateFailed, s.State())
				living, _ := w.Agents()
				assert.Zero(t, living)
				assert.Empty(t, w.Effects())
			})
		})
	}
}
