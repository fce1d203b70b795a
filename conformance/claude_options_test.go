//go:build conformance

package conformance_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/sdk"
)

// TestTheCLITakesTheOptions has the CLI start with as many options as go
// together, and run a turn.
func TestTheCLITakesTheOptions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.Thinking = &sdk.Thinking{Type: sdk.ThinkingEnabled, BudgetTokens: sdk.Some(4096), Display: "summarized"}
	o.FallbackModel, o.Effort, o.Betas = "sonnet", "high", []string{"context-1m-2025-08-07"}
	o.MaxTurns, o.MaxBudgetUSD, o.TaskBudget = sdk.Some(5), sdk.Some(1.5), sdk.Some(50_000)
	o.DebugFile, o.PermissionPrompts, o.PermissionMode = r.at("debug.log"), "host", sdk.ModePlan
	o.SystemPrompt = sdk.PresetPrompt("Be brief.")
	o.AllowedTools, o.DisallowedTools = []string{"Read", "Bash(git *)"}, []string{"Write"}
	o.Tools, o.Skills = sdk.Only("Read", "Bash", "Skill"), sdk.Only("my skill")
	o.Sandbox = &sdk.Sandbox{Enabled: sdk.Some(false), Network: &sdk.SandboxNetwork{AllowedDomains: []string{"example.com"}}}
	o.Settings = json.RawMessage(`{"permissions":{"allow":["Grep"]}}`)
	o.ManagedSettings = json.RawMessage(`{"permissions":{"deny":["WebFetch"]}}`)
	o.ProjectConfigRoot, o.StrictMCPConfig, o.PersistSession = r.dir, true, sdk.Some(false)
	o.MCPServers = map[string]sdk.MCPServerConfig{"nowhere": {Type: "http", URL: "http://127.0.0.1:9/mcp",
		Tools: []sdk.MCPToolPolicy{{Name: "t", PermissionPolicy: sdk.AlwaysDeny}}}}
	o.IncludePartialMessages, o.IncludeHookEvents, o.ForwardSubagentText = true, true, true
	o.EnableFileCheckpointing, o.AgentProgressSummaries, o.PerTaskStopAffordance = sdk.Some(true), true, true
	o.PlanModeInstructions, o.Title, o.VerbatimPrompts = "Plan.", "A title", true
	o.ToolConfig = &sdk.ToolConfig{AskUserQuestion: sdk.AskUserQuestionConfig{PreviewFormat: "html"}}
	o.Agents = map[string]sdk.AgentDefinition{"reviewer": {Description: "Reviews.", Prompt: "Review.", Tools: sdk.Only("Read")}}
	o.Tools = sdk.Only("Read", "Bash", "Skill", "Agent")
	o.ExtraArgs = map[string]sdk.Opt[string]{"replay-user-messages": {}}
	_, result := r.once(o, "hi [[scn:text]]")
	assert.False(t, result.Failed(), "%+v", result.Errors)
}
