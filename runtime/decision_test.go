package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// deafAfterAsking asks for permission and reads nothing any more.
type deafAfterAsking struct{ stop chan struct{} }

func (*deafAfterAsking) AgentName() string { return "deaf" }

func (d *deafAfterAsking) Serve(_ agent.Launch, port agent.Port) agent.Exit {
	line, err := port.Next(-1)
	if err != nil {
		return agent.Exit{Code: 1}
	}
	f, err := protocol.ParseFrame(line)
	if err != nil {
		return agent.Exit{Code: 2}
	}
	_ = port.Write(fmt.Appendf(nil, `{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{}}}`+"\n", f.RequestID))
	_ = port.Write([]byte(`{"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{}}}` + "\n"))
	<-d.stop
	return agent.Exit{}
}

// A user interface that shows a question has to see the decision of the person, also if
// the agent does not read it.
func TestADecisionThatTheAgentDoesNotRead(t *testing.T) {
	t.Parallel()
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	d := &deafAfterAsking{make(chan struct{})}
	waits, decided := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s, err := rt.Open(t.Context(), runtime.Spec{
		Dialect: claude.New(), Program: d,
		Options: session.Options{
			CanUseTool: func(ctx context.Context, _ *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
				<-waits
				input, err := json.Marshal(map[string]string{"command": strings.Repeat("x", 200<<10)})
				return protocol.PermissionResult{Behavior: protocol.BehaviorAllow, UpdatedInput: input}, err
			},
			OnEvent: func(r session.EventRecord) {
				e, ok := r.Event.(*session.StateChanged)
				switch {
				case ok && e.To == session.StateAwaitingHost.String():
					close(waits)
				case ok && e.From == session.StateAwaitingHost.String():
					once.Do(func() { close(decided) })
				}
			},
		},
	})
	require.NoError(t, err)
	assert.NoError(t, rt.Executor().Await(t.Context(), decided))
	close(d.stop)
	_ = s.Close(context.Background())
	require.NoError(t, rt.Shutdown(context.Background()))
}
