package embedded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// connect opens a session.
func connect(t *testing.T, o *sdk.Options) (*sdk.Client, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := sdk.NewClient(o)
	return c, c.Connect(ctx)
}

func TestOptionsThatWouldDoNothing(t *testing.T) {
	t.Parallel()
	for option, set := range map[string]func(*sdk.Options){
		"Settings":       func(o *sdk.Options) { o.Settings = json.RawMessage(`{}`) },
		"Plugins":        func(o *sdk.Options) { o.Plugins = []session.Plugin{{Path: "/p"}} },
		"Sandbox":        func(o *sdk.Options) { o.Sandbox = &session.Sandbox{} },
		"Tools":          func(o *sdk.Options) { o.Tools = sdk.Only("Read", "Teleport") },
		"Betas":          func(o *sdk.Options) { o.Betas = []string{"x"} },
		"SettingSources": func(o *sdk.Options) { o.SettingSources = sdk.Only("project") },
	} {
		_, o := started(t)
		set(o)
		_, err := connect(t, o)
		var e *sdk.ConfigError
		require.ErrorAs(t, err, &e, option)
		assert.Contains(t, err.Error(), option)
	}
	_, err := connect(t, &sdk.Options{Backend: embedded.New(embedded.Config{Name: "m"})})
	require.ErrorContains(t, err, "has no model")
	_, err = connect(t, &sdk.Options{Backend: embedded.New(embedded.Config{Model: model.NewOpenAI(model.OpenAIConfig{})})})
	require.ErrorContains(t, err, "Model")
}

func TestRequestsThatFail(t *testing.T) {
	t.Parallel()
	flaky := func(f *modelapi.Fault, cut *modelapi.Cut) modelapi.Step {
		return modelapi.Always(modelapi.Reply{Blocks: []modelapi.Block{modelapi.ToolUse("Bash", map[string]any{"command": "echo ran >> log"})}, Fault: f, Cut: cut})
	}
	for name, step := range map[string]modelapi.Step{
		"overloaded": flaky(&modelapi.Fault{Status: 529, Type: "overloaded_error", Times: 1}, nil),
		"cut":        flaky(nil, &modelapi.Cut{After: 0, Times: 1}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, o := started(t, step, modelapi.Say(modelapi.Text("done")))
			o.PermissionMode, o.AllowDangerouslySkipPermissions = sdk.ModeBypassPermissions, true
			var mu sync.Mutex
			retries := 0
			o.OnMessage = func(m sdk.Message) {
				mu.Lock()
				defer mu.Unlock()
				if strings.Contains(string(m.Raw()), `"api_retry"`) {
					retries++
				}
			}
			assert.Equal(t, "done", run(t, o).Result)
			log, err := os.ReadFile(filepath.Join(o.Cwd, "log"))
			require.NoError(t, err)
			assert.Equal(t, "ran\n", string(log), "no tool runs twice")
			assert.Equal(t, 1, retries)
		})
	}
}

func TestARequestThatIsRefused(t *testing.T) {
	t.Parallel()
	_, o := started(t, modelapi.Always(modelapi.Reply{Fault: &modelapi.Fault{Status: 400, Type: "invalid_request_error", Times: 9}}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := sdk.Run(ctx, mine, o)
	require.Error(t, err)
	assert.True(t, r == nil || r.IsError)
	assert.Contains(t, err.Error(), "scripted 400")
}

func TestGates(t *testing.T) {
	t.Parallel()
	touch := modelapi.Say(modelapi.ToolUse("Bash", map[string]any{"command": "touch made"}))
	deny := func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		return sdk.Deny("no"), nil
	}
	for name, c := range map[string]struct {
		set  func(*sdk.Options)
		made bool
	}{
		"nobody to ask": {func(*sdk.Options) {}, false},
		"asked, denied": {func(o *sdk.Options) { o.CanUseTool = deny }, false},
		"a rule allows": {func(o *sdk.Options) { o.AllowedTools = []string{"Bash(touch:*)"} }, true},
		"a rule denies": {func(o *sdk.Options) {
			o.DisallowedTools, o.PermissionMode, o.AllowDangerouslySkipPermissions = []string{"Bash(touch:*)"}, sdk.ModeBypassPermissions, true
		}, false},
		"policy allows": {func(o *sdk.Options) { o.Policy = &sdk.Policy{Allow: []string{"Bash(touch:*)"}} }, true},
		"policy denies": {func(o *sdk.Options) { o.Policy = &sdk.Policy{Deny: []string{"Bash(touch:*)"}, Allow: []string{"Bash"}} }, false},
		"policy, bypass": {func(o *sdk.Options) {
			o.Policy, o.PermissionMode, o.AllowDangerouslySkipPermissions = &sdk.Policy{Deny: []string{"Bash(touch:*)"}, Default: "agent"}, sdk.ModeBypassPermissions, true
		}, false},
		"plan mode":    {func(o *sdk.Options) { o.PermissionMode = sdk.ModePlan }, false},
		"don't ask":    {func(o *sdk.Options) { o.PermissionMode = sdk.ModeDontAsk }, false},
		"accept edits": {func(o *sdk.Options) { o.PermissionMode = sdk.ModeAcceptEdits }, true},
		"bypass": {func(o *sdk.Options) {
			o.PermissionMode, o.AllowDangerouslySkipPermissions = sdk.ModeBypassPermissions, true
		}, true},
		"a hook denies": {func(o *sdk.Options) {
			o.PermissionMode, o.AllowDangerouslySkipPermissions = sdk.ModeBypassPermissions, true
			o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
				return sdk.DenyPreToolUse("no"), nil
			}, sdk.Match("Bash"))}
		}, false},
		"a hook fails": {func(o *sdk.Options) {
			o.PermissionMode, o.AllowDangerouslySkipPermissions = sdk.ModeBypassPermissions, true
			o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
				return sdk.PreToolUseOutput{}, fmt.Errorf("it %s", "fails")
			}, sdk.Match("Bash"))}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, o := started(t, touch, modelapi.Say(modelapi.Text("done")))
			c.set(o)
			r := run(t, o)
			_, err := os.Stat(filepath.Join(o.Cwd, "made"))
			assert.Equal(t, c.made, err == nil)
			if !c.made && name != "a rule denies" {
				assert.NotEmpty(t, r.PermissionDenials)
			}
		})
	}
}

func TestToolsOfTheHost(t *testing.T) {
	t.Parallel()
	type in struct {
		N int `json:"n" jsonschema:"a number"`
	}
	server, err := sdk.NewMCPServer("calc", "1", sdk.NewTool("double", "doubles a number", func(_ context.Context, in in) (*sdk.ToolResult, error) {
		return sdk.Text(strconv.Itoa(2 * in.N)), nil
	}))
	require.NoError(t, err)
	api, o := started(t, modelapi.Say(modelapi.ToolUse("mcp__calc__double", map[string]any{"n": 21})), modelapi.Say(modelapi.Text("done")))
	o.SDKMCPServers, o.AllowedTools = []*sdk.MCPServer{server}, []string{"mcp__calc"}
	run(t, o)
	requests := api.Requests()
	assert.Contains(t, requests[0].Tools, "mcp__calc__double")
	results := requests[1].ToolResults()
	require.Len(t, results, 1)
	assert.Equal(t, "42", results[0].Text)
}

func TestLimitOfTurns(t *testing.T) {
	t.Parallel()
	again := modelapi.Say(modelapi.ToolUse("Bash", map[string]any{"command": "true"}))
	_, o := started(t, again, again, again, again)
	o.MaxTurns = sdk.Some(2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := sdk.Run(ctx, mine, o)
	require.ErrorContains(t, err, "maximum number of turns (2)")
}

// A rule that denies a file holds for commands that name it, also for those that only read
// and in every mode.
func TestCommandsAndDeniedFiles(t *testing.T) {
	t.Parallel()
	for _, mode := range []sdk.PermissionMode{sdk.ModeDefault, sdk.ModeAcceptEdits, sdk.ModeBypassPermissions} {
		api, o := started(t, modelapi.Say(modelapi.ToolUse("Bash", map[string]any{"command": "cat .env"}), modelapi.ToolUse("Read", map[string]any{"file_path": ".env"})), modelapi.Say(modelapi.Text("done")))
		require.NoError(t, os.WriteFile(filepath.Join(o.Cwd, ".env"), []byte("PASSWORD=1\n"), 0o600))
		o.DisallowedTools, o.PermissionMode, o.AllowDangerouslySkipPermissions = []string{"Read(.env)"}, mode, mode == sdk.ModeBypassPermissions
		run(t, o)
		for _, r := range api.Requests()[1].ToolResults() {
			assert.True(t, r.IsError, "%s: %s", mode, r.Text)
			assert.NotContains(t, r.Text, "PASSWORD")
		}
	}
}

// Keys of providers are in no command's environment.
func TestCommandsDoNotSeeKeys(t *testing.T) {
	t.Parallel()
	api, o := started(t, modelapi.Say(modelapi.ToolUse("Bash", map[string]any{"command": "env"})), modelapi.Say(modelapi.Text("done")))
	o.PermissionMode, o.AllowDangerouslySkipPermissions = sdk.ModeBypassPermissions, true
	o.Env = map[string]string{"ANTHROPIC_API_KEY": "sk-1", "OPENAI_API_KEY": "sk-2", "OPENROUTER_API_KEY": "sk-3", "OTHER": "seen"}
	run(t, o)
	env := api.Requests()[1].ToolResults()[0].Text
	assert.Contains(t, env, "OTHER=seen")
	assert.NotContains(t, env, "sk-")
}

// With partial messages the events of the model's stream come as they are.
func TestPartialMessages(t *testing.T) {
	t.Parallel()
	_, o := started(t, modelapi.Say(modelapi.Text("hello")))
	o.IncludePartialMessages = true
	var mu sync.Mutex
	var kinds []string
	o.OnMessage = func(m sdk.Message) {
		var e struct {
			Type  string
			Event struct{ Type string }
		}
		mu.Lock()
		defer mu.Unlock()
		if json.Unmarshal(m.Raw(), &e) == nil && e.Type == "stream_event" && e.Event.Type != "ping" {
			kinds = append(kinds, e.Event.Type)
		}
	}
	run(t, o)
	assert.Equal(t, "message_start", kinds[0])
	assert.Equal(t, "message_stop", kinds[len(kinds)-1])
	assert.Contains(t, kinds, "content_block_delta")
}

// A budget ends the turn at the request that has spent it. One that could never be spent is an
// error.
func TestBudgets(t *testing.T) {
	t.Parallel()
	more := modelapi.Say(modelapi.ToolUse("Bash", map[string]any{"command": "true"}))
	api, o := started(t, more, more, more, more, modelapi.Say(modelapi.Text("done")))
	o.MaxBudgetUSD = sdk.Some(1.5 * (10*3 + 5*15) / 1e6)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := sdk.Run(ctx, mine, o)
	require.ErrorContains(t, err, "Reached maximum budget")
	assert.Equal(t, "error_max_budget_usd", r.Subtype)
	assert.Len(t, api.Requests(), 2)

	c, err := connect(t, o)
	require.NoError(t, err)
	require.NoError(t, c.SetModel(ctx, "no-such"))
	turn, err := c.Send(ctx, sdk.UserText(mine))
	require.NoError(t, err)
	r, err = turn.Result(ctx)
	require.NoError(t, err)
	assert.Contains(t, r.Errors, "the price of no-such is not known, and MaxBudgetUSD limits the cost: change the model, or add the price to the profiles")
	require.NoError(t, c.Close(ctx))
	assert.Len(t, api.Requests(), 2)

	o.Model = "no-such"
	_, err = connect(t, o)
	var e *sdk.ConfigError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, "MaxBudgetUSD", e.Option)
}
