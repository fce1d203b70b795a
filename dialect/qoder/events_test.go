package qoder_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// TestEveryHookEvent registers a hook for each event of the vendor, and decodes
// its input and what can be said about it in the documents' form.
func TestEveryHookEvent(t *testing.T) {
	t.Parallel()
	for event, c := range map[protocol.HookEvent]struct {
		want     protocol.HookInput
		fields   string
		specific string // of the output
	}{
		protocol.HookPreToolUse:         {&protocol.PreToolUseInput{}, `"permission_mode":"plan","tool_name":"Bash","tool_input":{"command":"c"}`, `"permissionDecision":"defer","permissionDecisionReason":"r","updatedInput":{"command":"d"},"additionalContext":"c"`},
		protocol.HookPostToolUse:        {&protocol.PostToolUseInput{}, `"tool_name":"Bash","tool_input":{"command":"c"},"tool_response":{"stdout":"o"}`, `"additionalContext":"c","updatedToolOutput":"o"`},
		protocol.HookPostToolUseFailure: {&protocol.PostToolUseFailureInput{}, `"tool_name":"Bash","tool_input":{"command":"c"},"error":"e","is_interrupt":true`, ``},
		protocol.HookUserPromptSubmit:   {&protocol.UserPromptSubmitInput{}, `"prompt":"p"`, `"additionalContext":"c"`},
		protocol.HookSessionStart:       {&protocol.SessionStartInput{}, `"source":"startup"`, `"additionalContext":"c"`},
		protocol.HookSessionEnd:         {&protocol.SessionEndInput{}, `"reason":"prompt_input_exit"`, ``},
		protocol.HookStop:               {&protocol.StopInput{}, `"stop_hook_active":true`, ``},
		protocol.HookSubagentStart:      {&protocol.SubagentStartInput{}, `"agent_id":"a","agent_type":"t"`, ``},
		protocol.HookSubagentStop:       {&protocol.SubagentStopInput{}, `"stop_hook_active":true`, ``},
		protocol.HookPreCompact:         {&protocol.PreCompactInput{}, `"trigger":"manual","custom_instructions":"i"`, ``},
		protocol.HookPostCompact:        {&protocol.PostCompactInput{}, `"trigger":"auto","compact_summary":"s"`, ``},
		protocol.HookCwdChanged:         {&protocol.CwdChangedInput{}, `"old_cwd":"/a","new_cwd":"/b"`, ``},
		protocol.HookInstructionsLoaded: {&protocol.InstructionsLoadedInput{}, `"load_reason":"path_glob_match"`, ``},
		protocol.HookFileChanged:        {&protocol.FileChangedInput{}, `"file_path":"/f","event":"unlink"`, ``},
		protocol.HookPermissionRequest: {&protocol.PermissionRequestInput{}, `"tool_name":"Bash","tool_input":{"command":"c"},"permission_suggestions":[{"type":"setMode","mode":"plan","destination":"session"}]`,
			`"decision":{"behavior":"allow","updatedInput":{"command":"d"},"updatedPermissions":[{"type":"setMode","mode":"plan","destination":"session"}]}`},
		protocol.HookPermissionDenied: {&protocol.PermissionDeniedInput{}, `"tool_name":"Bash","tool_input":{"command":"c"},"tool_use_id":"t","reason":"r"`, ``},
		protocol.HookWorktreeCreate:   {&protocol.WorktreeCreateInput{}, `"name":"w"`, ``},
		protocol.HookWorktreeRemove:   {&protocol.WorktreeRemoveInput{}, `"worktree_path":"/w"`, ``},
	} {
		t.Run(string(event), func(t *testing.T) {
			t.Parallel()
			parity.Covers(t, "qoder/hook/"+string(event))
			o := dialect.Input{Options: session.Options{Auth: &session.Auth{Type: session.AuthQoderCLI}}, Facts: dialect.Facts{Registrations: []dialect.HookRegistration{{Event: event, CallbackIDs: []string{"hook_0"}}}}}
			warnings, err := qoder.New().Validate(&o)
			require.NoError(t, err)
			assert.Empty(t, warnings)
			assert.JSONEq(t, `{"`+string(event)+`":[{"hookCallbackIds":["hook_0"]}]}`, string(initialize(t, o)["hooks"]))

			raw := `{"hook_event_name":"` + string(event) + `","session_id":"s","transcript_path":"/t","cwd":"/c",` + c.fields + `}`
			in, err := protocol.DecodeHookInput(json.RawMessage(raw))
			require.NoError(t, err)
			require.IsType(t, c.want, in)
			again, err := json.Marshal(in)
			require.NoError(t, err)
			var before, after map[string]json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(raw), &before))
			require.NoError(t, json.Unmarshal(again, &after))
			for key, value := range before {
				assert.JSONEq(t, string(value), string(after[key]), key)
			}

			if c.specific == "" {
				return
			}
			said := `{"hookSpecificOutput":{"hookEventName":"` + string(event) + `",` + c.specific + `}}`
			var out protocol.HookJSONOutput
			require.NoError(t, json.Unmarshal([]byte(said), &out))
			assert.Equal(t, event, out.Specific.Event())
			again, err = json.Marshal(out)
			require.NoError(t, err)
			assert.JSONEq(t, said, string(again))
		})
	}
}
