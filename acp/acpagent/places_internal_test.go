package acpagent

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/sdk"
	sessions "github.com/agent-troupe/troupe/session"
)

// A call is shown in the directory of the agent's shell, which moves by cd, and not in that
// in which the session began.
func TestDirectoryOfACall(t *testing.T) {
	t.Parallel()
	s := &session{cwd: "/start"}
	hook := s.places.hook()
	run := func(id, dir string) {
		_, err := hook.Func(t.Context(), &sessions.HookCall{Event: hook.Event, ToolUseID: id, Input: json.RawMessage(fmt.Sprintf(`{"cwd":%q,"tool_name":"Bash","tool_input":{},"tool_use_id":%q}`, dir, id))})
		require.NoError(t, err)
	}
	run("a", "/one")
	run("b", "/two")
	run("a", "/three") // an agent may use an id again
	for id, want := range map[string]string{"a": "/three", "b": "/two", "c": "/start", "": "/start"} {
		assert.Equal(t, want, s.directory(&sdk.ToolPermissionRequest{ToolUseID: id}), id)
	}
	assert.Equal(t, "/policy", s.directory(&sdk.ToolPermissionRequest{ToolUseID: "a", Cwd: "/policy"}))
	for i := range len(s.places.calls) {
		run(fmt.Sprint(i), "/other")
	}
	assert.Equal(t, "/start", s.directory(&sdk.ToolPermissionRequest{ToolUseID: "a"}), "what is kept is bounded")
}
