//go:build conformance

package conformance_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// What the model is given of the options.
func TestOptionsThatTheModelSees(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.Model, o.Effort, o.Betas = "a-model-of-my-own", "low", []string{"context-1m-2025-08-07"}
	o.SystemPrompt = sdk.PromptText("You are a test rig.")
	o.Tools, o.DisallowedTools = sdk.Only("Bash", "Read", "Agent"), []string{"Read"}
	o.Agents = map[string]session.AgentDefinition{"rev": {Description: "Reviews things.", Prompt: "You are a reviewer.", Tools: sdk.Only("Bash")}}
	o.AllowedTools = []string{"Bash"}
	c := r.connect(o)
	all, _ := r.ask(c, "hi [[scn:text]]")
	seen := r.modelSaw("text")
	assert.Equal(t, "a-model-of-my-own", seen.Model)
	assert.Contains(t, strings.Join(seen.System, "\n"), "You are a test rig.")
	assert.Contains(t, strings.Join(seen.Header["Anthropic-Beta"], ","), "context-1m-2025-08-07")
	assert.Contains(t, seen.Tools, "Bash")
	assert.NotContains(t, seen.Tools, "Read", "disallowed")
	assert.NotContains(t, seen.Tools, "Write", "not in the set")
	init := only[*sdk.InitMessage](all)[0]
	assert.Equal(t, r.dir, init.Cwd)
	assert.Contains(t, init.Agents, "rev")

	all, _ = r.ask(c, "delegate [[scn:agentcustom]]")
	started := only[*protocol.TaskStartedMessage](all)
	require.Len(t, started, 1)
	assert.Equal(t, "rev", started[0].SubagentType)
	rd := r.read(c)
	rd.until("the subagent's result", isA[*sdk.ResultMessage])
	nested := r.modelSaw("bash")
	assert.Contains(t, strings.Join(nested.System, "\n"), "You are a reviewer.")
	assert.Equal(t, []string{"Bash"}, nested.Tools)
	r.close(c)
}

// The preset is the agent's own prompt; not given, the prompt is empty.
func TestSystemPrompts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	system := func(p session.SystemPrompt) string {
		o := r.options()
		o.SystemPrompt = p
		r.once(o, "hi [[scn:text]]")
		return strings.Join(r.modelSaw("text").System, "\n")
	}
	none, preset := system(session.SystemPrompt{}), system(sdk.PresetPrompt("And be brief."))
	assert.Greater(t, len(preset), len(none)+1000)
	assert.Contains(t, preset, "And be brief.")
	assert.NotContains(t, none, "And be brief.")
}

func TestPlanModeInstructions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.PermissionMode, o.CanUseTool = sdk.ModePlan, r.denyAll("no")
	o.PlanModeInstructions = "Plan like a gardener."
	r.once(o, "hi [[scn:text]]")
	seen := r.modelSaw("text")
	assert.Contains(t, texts(seen)+strings.Join(seen.System, "\n"), "Plan like a gardener.")
}

// What is left on the disk.
func TestSessionsOnTheDisk(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	transcripts := func() []string {
		files, err := filepath.Glob(filepath.Join(r.home, ".claude", "projects", "*", "*.jsonl"))
		require.NoError(t, err)
		return files
	}
	o := r.options()
	o.PersistSession, o.DebugFile = sdk.Some(false), r.at("debug.log")
	r.once(o, "hi [[scn:text]]")
	assert.Empty(t, transcripts())
	debug, err := os.ReadFile(r.at("debug.log"))
	require.NoError(t, err)
	assert.NotEmpty(t, debug)
	assert.NotContains(t, string(debug), "sk-test-offline")

	_, result := r.once(r.options(), "hi [[scn:text]]")
	files := transcripts()
	require.Len(t, files, 1)
	assert.Equal(t, result.SessionID+".jsonl", filepath.Base(files[0]))
}

// A file of settings, and those that a flag lays over it.
func TestSettings(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.Settings = json.RawMessage(`{"permissions":{"deny":["Bash(touch:*)"]},"env":{"OF_THE_SETTINGS":"1"}}`)
	o.AllowedTools = []string{"Bash"}
	c := r.connect(o)
	_, result := r.ask(c, r.touch("denied"))
	assert.NoFileExists(t, r.at("denied"))
	assert.Len(t, result.PermissionDenials, 1)
	all, _ := r.ask(c, r.run(`echo "of the settings: $OF_THE_SETTINGS" > told`))
	require.NotEmpty(t, all)
	told, err := os.ReadFile(r.at("told"))
	require.NoError(t, err)
	assert.Equal(t, "of the settings: 1\n", string(told))
	r.close(c)
}

func TestClear(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.connect(r.options())
	_, before := r.ask(c, "my number is 4711 [[scn:text]]")
	all, cleared := r.ask(c, "/clear")
	assert.False(t, cleared.Failed())
	assert.Zero(t, cleared.NumTurns)
	reset := only[*protocol.ConversationResetMessage](all)
	require.Len(t, reset, 1)
	assert.Equal(t, "clear", reset[0].Trigger)

	_, after := r.ask(c, "what was it? [[scn:echo gone]]")
	assert.NotEqual(t, before.SessionID, after.SessionID)
	assert.NotEmpty(t, reset[0].NewConversationID) // which is not the id of the session
	assert.Equal(t, after.SessionID, c.SessionID())
	assert.NotContains(t, texts(r.modelSaw("echo")), "4711")
	r.close(c)
}

// A command of the agent's own is answered without the model.
func TestLocalCommand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	all, result := r.once(r.options(), "/context")
	assert.False(t, result.Failed())
	assert.Zero(t, result.NumTurns)
	said := only[*sdk.AssistantMessage](all)
	require.Len(t, said, 1)
	assert.Equal(t, "<synthetic>", said[0].Message.Model)
	assert.Contains(t, sdk.TextOf(said[0]), "Context Usage")
	for _, q := range r.model.Requests() {
		assert.NotEqual(t, "messages", string(q.Endpoint))
	}
}
