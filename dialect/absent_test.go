package dialect_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// An agent that distinguishes false or zero from absent gets the given value.
func TestFalseIsNotAbsent(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]struct{ argv, initialize string }{
		`{"mcpServers":{"s":{"command":"c","alwaysLoad":false}}}`: {argv: `{"mcpServers":{"s":{"command":"c","alwaysLoad":false}}}`},
		`{"mcpServers":{"s":{"type":"http","url":"https://h","alwaysLoad":true,"timeout":5000,
			"tools":[{"name":"t","org_max_permission":"ask"}]}}}`: {argv: `{"mcpServers":{"s":{"type":"http","url":"https://h","alwaysLoad":true,"timeout":5000,"tools":[{"name":"t","org_max_permission":"ask"}]}}}`},
		`{"mcpServersDelivery":"initialize","mcpServers":{"s":{"command":"c","alwaysLoad":false}}}`: {initialize: `"mcpServers":{"s":{"command":"c","alwaysLoad":false}}`},
		`{"agents":{"a":{"description":"d","prompt":"p","effort":7,"omitClaudeMd":false,"autoCompactWindow":9,"observer":"o",
			"observerMessage":"m","criticalSystemReminder_EXPERIMENTAL":"c"}}}`: {
			initialize: `{"a":{"description":"d","prompt":"p","effort":7,"omitClaudeMd":false,"autoCompactWindow":9,"observer":"o","observerMessage":"m","criticalSystemReminder_EXPERIMENTAL":"c"}}`},
		`{"agents":{"a":{"description":"d","prompt":"p","effort":"max","background":false}}}`: {initialize: `{"a":{"description":"d","prompt":"p","effort":"max","background":false}}`},
		`{"systemPrompt":{"type":"preset","preset":"claude_code","snapshot":false}}`:          {initialize: `"systemPromptSnapshot":false`},
		`{"maxThinkingTokens":0}`: {argv: "--thinking=disabled"},
	} {
		var o dialect.Input
		require.NoError(t, json.Unmarshal([]byte(doc), &o.Options), doc)
		warnings, err := claude.New().Validate(&o)
		require.NoError(t, err, doc)
		assert.Empty(t, warnings, doc)
		l, err := claude.New().Launch(&o)
		require.NoError(t, err, doc)
		assert.Contains(t, strings.Join(l.Args, " "), want.argv)
		init, err := claude.New().Initialize(&o)
		require.NoError(t, err, doc)
		assert.Contains(t, string(init), want.initialize)
	}
	servers, err := json.Marshal(protocol.MCPSetServersRequest{Servers: map[string]protocol.MCPServerConfig{"s": {Command: "c", AlwaysLoad: new(bool)}}})
	require.NoError(t, err)
	assert.JSONEq(t, `{"servers":{"s":{"command":"c","alwaysLoad":false}}}`, string(servers))

	o := start("qoder")
	o.EnableFileCheckpointing = session.Some(false)
	init, err := qoder.New().Initialize(&o)
	require.NoError(t, err)
	assert.Contains(t, string(init), `"enableFileCheckpointing":false`)
}

// alike are the fields that are written as false only by leaving them out. Each agent, or the vendor's SDK before it, does
// the same for false as for nothing: it asks whether the value is true (found in Claude Code 2.1.329 and its SDK 0.3.329, and
// in qodercli 1.1.52 and its SDK 1.0.39).
func alike() []string {
	return []string{
		// Switches of the command line, or of the host alone.
		"Options.AllowDangerouslySkipPermissions", "Options.CleanEnv", "Options.Continue", "Options.Debug", "Options.Discard",
		"Options.ForkSession", "Options.IncludeHookEvents", "Options.IncludePartialMessages", "Options.StrictMCPConfig", "Options.Unattended",
		"Plugin.SkipMCPDiscovery", "PluginConfig.SkipMCPDiscovery",
		// Initialize.
		"InitializeRequest.AgentProgressSummaries", "InitializeRequest.ExcludeDynamicSections", "InitializeRequest.ForwardSubagentText",
		"InitializeRequest.PerTaskStopAffordance", "InitializeRequest.PromptSuggestions", "MCPToolPolicy.AlwaysLoad", "Options.AgentProgressSummaries",
		"Options.ForwardSubagentText", "Options.PerTaskStopAffordance", "Options.PromptSuggestions", "InitializeRequest.SupportsAvailableModelsUpdate",
		"InitializeRequest.SupportsCatalogReadyInitialize", "InitializeRequest.SupportsCommandsChanged",
		// User lines.
		"Options.VerbatimPrompts", "UserMessage.ClientComposed", "UserMessage.Historical", "UserMessage.IsCompactSummary", "UserMessage.IsMeta",
		"UserMessage.IsReplay", "UserMessage.IsSynthetic",
		// Answers of hooks.
		"HookJSONOutput.Async", "HookJSONOutput.SuppressOutput", "PermissionDeniedOutput.Retry", "SessionStartOutput.ReloadSkills",
		"UserPromptExpansionOutput.SuppressOriginalPrompt", "UserPromptSubmitOutput.SuppressOriginalPrompt",
	}
}

// Every plain bool that goes to an agent and is left out when it is false is one of alike: a new one is looked up first.
func TestEveryBoolThatIsLeftOut(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	seen := map[reflect.Type]bool{}
	var look func(reflect.Type)
	look = func(at reflect.Type) {
		for at.Kind() == reflect.Pointer || at.Kind() == reflect.Slice || at.Kind() == reflect.Map {
			at = at.Elem()
		}
		if at.Kind() != reflect.Struct || seen[at] || !strings.HasPrefix(at.PkgPath(), "github.com/agent-troupe/") {
			return
		}
		seen[at] = true
		for i := range at.NumField() {
			f := at.Field(i)
			_, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Type.Kind() == reflect.Bool && strings.Contains(options, "omitempty") {
				found[at.Name()+"."+f.Name] = true
			}
			look(f.Type)
		}
	}
	for _, v := range []any{session.Options{}, protocol.InitializeRequest{}, protocol.UserMessage{}, protocol.HookJSONOutput{},
		protocol.PermissionResult{}, protocol.PreToolUseOutput{}, protocol.PostToolUseOutput{}, protocol.PermissionRequestOutput{},
		protocol.PermissionDeniedOutput{}, protocol.UserPromptSubmitOutput{}, protocol.UserPromptExpansionOutput{}, protocol.SessionStartOutput{},
		protocol.PreModelSwitchOutput{}, protocol.MCPSetServersRequest{}} {
		look(reflect.TypeOf(v))
	}
	assert.ElementsMatch(t, alike(), slices.Collect(maps.Keys(found)))
}
