package sdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

func allowsAll(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
	return sdk.PreToolUseOutput{}, nil
}

// An agent that calls no hooks is killed before it can run a tool.
func TestAnAgentThatCallsNoHooks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		set func(*sdk.Options)
		off bool
	}{
		"a hook":   {func(o *sdk.Options) { o.Hooks = []sdk.Hook{sdk.OnPreToolUse(allowsAll)} }, true},
		"a policy": {func(o *sdk.Options) { o.Policy = &sdk.Policy{Deny: []string{"Bash(rm:*)"}} }, true},
		"a hook of prompts": {func(o *sdk.Options) {
			o.Hooks = []sdk.Hook{sdk.OnUserPromptSubmit(func(context.Context, *protocol.UserPromptSubmitInput) (sdk.UserPromptSubmitOutput, error) {
				return sdk.UserPromptSubmitOutput{}, nil
			})}
		}, true},
		"a hook that watches": {func(o *sdk.Options) {
			o.Hooks = []sdk.Hook{sdk.OnPreToolUse(allowsAll, sdk.OnFailure(session.ContinueOnFailure))}
		}, false},
		"no gate": {func(*sdk.Options) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(w *world) {
				o := w.script(scripted.Script{Turns: []scripted.Turn{bash()}, Misbehave: scripted.Misbehaviour{NoHooks: true}})
				o.AllowedTools = []string{"Bash"}
				tc.set(o)
				_, err := sdk.Run(w.Context(), "hi", o)
				if !tc.off {
					require.NoError(w, err)
					return
				}
				var off *session.GatesOffError
				require.ErrorAs(w, err, &off)
				assert.Equal(w, "system/init", off.Seen)
				assert.Contains(w, err.Error(), "CLAUDE_CODE_SIMPLE")

				c := w.connect(o)
				asked, err := c.Send(w.Context(), sdk.UserText("hi"))
				require.NoError(w, err)
				_, err = asked.Result(w.Context())
				require.ErrorAs(w, err, &off)
				require.NoError(w, c.Close(w.Context()), "it was killed on purpose: more patience would change nothing")
			})
		})
	}
}

// Nor may settings on the way switch them off.
func TestSettingsThatWouldOpenGates(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		settings := json.RawMessage(`{"env":{"CLAUDE_CODE_SIMPLE":"1"}}`)
		o := w.options()
		c := w.connect(o)
		_, err := c.ApplyFlagSettings(w.Context(), settings)
		require.NoError(w, c.Close(w.Context()))
		assert.Empty(w, sdk.ConfigErrors(err), "without a gate there is nothing to protect")
		o.Policy = &sdk.Policy{}
		c = w.connect(o)
		_, err = c.ApplyFlagSettings(w.Context(), settings)
		require.NoError(w, c.Close(w.Context()))
		assert.Len(w, sdk.ConfigErrors(err), 1)
	})
}

// Nor may they by a request that is made by hand.
func TestRawSettingsThatWouldOpenGates(t *testing.T) {
	t.Parallel()
	type body = map[string]any
	minimal := json.RawMessage(`{"env":{"CLAUDE_CODE_SIMPLE":"1"}}`)
	bypass := json.RawMessage(`{"permissions":{"defaultMode":"bypassPermissions"}}`)
	for name, ask := range map[string]func(context.Context, *sdk.Client) error{
		"Control, minimal mode": func(ctx context.Context, c *sdk.Client) error {
			return c.Control(ctx, "apply_flag_settings", body{"settings": minimal}, nil)
		},
		"Control, bypass": func(ctx context.Context, c *sdk.Client) error {
			return c.Control(ctx, "apply_flag_settings", body{"settings": bypass}, nil)
		},
		"Control, another key": func(ctx context.Context, c *sdk.Client) error {
			return c.Control(ctx, "apply_flag_settings", body{"settings": body{"env": body{"CLAUDE_CODE_SIMPLE": 1}, "Env": nil}, "Settings": nil}, nil)
		},
		"Call": func(ctx context.Context, c *sdk.Client) error {
			return heard(sdk.Call[any](ctx, c, protocol.ApplyFlagSettingsRequest{Settings: bypass}))
		},
		"Call with a pointer": func(ctx context.Context, c *sdk.Client) error {
			return heard(sdk.Call[any](ctx, c, &protocol.ApplyFlagSettingsRequest{Settings: minimal}))
		},
		"Call with another name": func(ctx context.Context, c *sdk.Client) error {
			raw := json.RawMessage(`{"subtype":"apply_flag_settings","settings":` + string(minimal) + `}`)
			return heard(sdk.Call[any](ctx, c, &protocol.UnknownHostRequest{Name: "x", Raw: raw}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(w *world) {
				o := w.options()
				o.Policy = &sdk.Policy{}
				c := w.connect(o)
				err := ask(w.Context(), c)
				harmless := c.Control(w.Context(), "apply_flag_settings", body{"settings": body{"model": "opus"}}, nil)
				require.NoError(w, c.Close(w.Context()))
				assert.Len(w, sdk.ConfigErrors(err), 1, "%v", err)
				assert.Empty(w, sdk.ConfigErrors(harmless), "%v", harmless)
			})
		})
	}
}

// Nor may settings on the way have the agent skip all permissions of a session
// that was not started for that.
func TestSettingsThatSkipPermissions(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"bypassPermissions", "yolo"} {
		for _, allowed := range []bool{false, true} {
			t.Run(fmt.Sprint(mode, allowed), func(t *testing.T) {
				t.Parallel()
				in(t, func(w *world) {
					o := w.options()
					o.AllowDangerouslySkipPermissions = allowed
					c := w.connect(o)
					_, err := c.ApplyFlagSettings(w.Context(), json.RawMessage(`{"permissions":{"defaultMode":"`+mode+`"}}`))
					require.NoError(w, c.Close(w.Context()))
					refused := !allowed || mode == "yolo" // Claude Code does not know it, and would drop it
					assert.Equal(w, refused, len(sdk.ConfigErrors(err)) == 1, "%v", err)
				})
			})
		}
	}
}

// Parts of settings that the agent would drop are refused as in the options.
func TestSettingsOnTheWayThatWouldBeDropped(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		c := w.connect(w.options())
		for settings, want := range map[string][]string{
			`{"permissions":{"deny":"Bash(rm:*)"}}`:                   {"permissions.deny is a text, and has to be a list; Claude Code would drop it"},
			`{"permissions":{"deny":["Bash(rm","Read(.env)"]}}`:       {`permissions.deny[0] "Bash(rm" is not a rule`},
			`{"hooks":{"PreToolUse":[{"matcher":"Bash"}]}}`:           {"hooks.PreToolUse[0].hooks is missing"},
			`{"model":null,"permission":{"deny":[]},"PreToolUse":[]}`: {"permission is not known", "PreToolUse is not known"},
			`{"model":null,"env":null}`:                               nil, // they are taken back
			`{"permissions":{"deny":["Bash(rm:*)"]},"newKey":1}`:      nil,
		} {
			_, err := c.ApplyFlagSettings(w.Context(), json.RawMessage(settings))
			assert.Len(w, sdk.ConfigErrors(err), len(want), settings)
			for _, text := range want {
				assert.ErrorContains(w, err, "option ApplyFlagSettings (claude): ")
				assert.ErrorContains(w, err, text)
			}
		}
		require.NoError(w, c.Close(w.Context()))
	})
}

// The proof is one more hook, and only where there is a gate and no other hook of
// prompts.
func TestTheProofOfAGate(t *testing.T) {
	t.Parallel()
	prompts := sdk.OnUserPromptSubmit(func(context.Context, *protocol.UserPromptSubmitInput) (sdk.UserPromptSubmitOutput, error) {
		return sdk.UserPromptSubmitOutput{}, nil
	})
	for name, tc := range map[string]struct {
		set  func(*sdk.Options)
		want string
	}{
		"a gate":              {func(o *sdk.Options) { o.Hooks = []sdk.Hook{sdk.OnPreToolUse(allowsAll)} }, `["hook_1"]`},
		"a gate and a policy": {func(o *sdk.Options) { o.Hooks, o.Policy = []sdk.Hook{sdk.OnPreToolUse(allowsAll)}, &sdk.Policy{} }, `["hook_2"]`},
		"a hook of prompts":   {func(o *sdk.Options) { o.Hooks = []sdk.Hook{sdk.OnPreToolUse(allowsAll), prompts} }, `["hook_1"]`},
		"a hook that watches": {func(o *sdk.Options) {
			o.Hooks = []sdk.Hook{sdk.OnPreToolUse(allowsAll, sdk.OnFailure(session.ContinueOnFailure))}
		}, ``},
		"no hook": {func(*sdk.Options) {}, ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &sdk.Options{Backend: scripted.New()}
			tc.set(o)
			p, err := sdk.PreviewLaunch(o)
			require.NoError(t, err)
			var initialize struct {
				Hooks struct {
					UserPromptSubmit []struct {
						HookCallbackIDs json.RawMessage `json:"hookCallbackIds"`
					}
				}
			}
			require.NoError(t, json.Unmarshal(p.Initialize, &initialize))
			got := ""
			for _, m := range initialize.Hooks.UserPromptSubmit {
				got += string(m.HookCallbackIDs)
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

// Known switches that turn the gates off are refused, from any source.
func TestSwitchesThatOpenGates(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"env":{"CLAUDE_CODE_SIMPLE":"on"}}`), 0o600))
	extra := func(key string, value sdk.Opt[string]) func(*sdk.Options) {
		return func(o *sdk.Options) { o.ExtraArgs = map[string]sdk.Opt[string]{key: value} }
	}
	env := func(value string) func(*sdk.Options) {
		return func(o *sdk.Options) { o.Env = map[string]string{"CLAUDE_CODE_SIMPLE": value} }
	}
	gates := map[string]func(*sdk.Options){
		"hook":   func(o *sdk.Options) { o.Hooks = []sdk.Hook{sdk.OnPreToolUse(allowsAll)} },
		"policy": func(o *sdk.Options) { o.Policy = &sdk.Policy{Deny: []string{"Bash(touch:*)"}} },
		"callback": func(o *sdk.Options) {
			o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				return sdk.Allow(), nil
			}
		},
	}
	t.Setenv("CLAUDE_CODE_SIMPLE", "")
	for name, tc := range map[string]struct {
		host   string
		set    func(*sdk.Options)
		option string
	}{
		"host":                   {"1", func(*sdk.Options) {}, "UnsetEnv"},
		"host, in other words":   {" Yes ", func(*sdk.Options) {}, "UnsetEnv"},
		"host, unset":            {"1", func(o *sdk.Options) { o.UnsetEnv = []string{"CLAUDE_CODE_SIMPLE"} }, ""},
		"host, clean":            {"1", func(o *sdk.Options) { o.CleanEnv = true }, ""},
		"host, replaced":         {"1", env("0"), ""},
		"host, off":              {"0", func(*sdk.Options) {}, ""},
		"Env":                    {"", env("true"), `Env["CLAUDE_CODE_SIMPLE"]`},
		"Env, off":               {"", env("no"), ""},
		"Settings":               {"", func(o *sdk.Options) { o.Settings = json.RawMessage(`{"env":{"CLAUDE_CODE_SIMPLE":"1"}}`) }, "Settings"},
		"Settings, a number":     {"", func(o *sdk.Options) { o.Settings = json.RawMessage(`{"env":{"CLAUDE_CODE_SIMPLE":1}}`) }, "Settings"},
		"Settings, a bool":       {"", func(o *sdk.Options) { o.Settings = json.RawMessage(`{"env":{"CLAUDE_CODE_SIMPLE":true}}`) }, "Settings"},
		"Settings, another":      {"", func(o *sdk.Options) { o.Settings = json.RawMessage(`{"env":{"CLAUDE_CODE_SIMPLE_SYSTEM_PROMPT":"1"}}`) }, ""},
		"SettingsPath":           {"", func(o *sdk.Options) { o.SettingsPath = file }, "SettingsPath"},
		"ManagedSettings":        {"", func(o *sdk.Options) { o.ManagedSettings = json.RawMessage(`{"env":{"CLAUDE_CODE_SIMPLE":"1"}}`) }, "ManagedSettings"},
		"ExtraArgs":              {"", extra("bare", sdk.Opt[string]{}), `ExtraArgs["bare"]`},
		"ExtraArgs with a value": {"", extra("bare", sdk.Some("x")), `ExtraArgs["bare"]`},
		"ExecutableArgs":         {"", func(o *sdk.Options) { o.ExecutableArgs = []string{"--bare"} }, "ExecutableArgs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CLAUDE_CODE_SIMPLE", tc.host)
			plain := &sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{Path: "/bin/x"})}
			tc.set(plain)
			_, err := sdk.PreviewLaunch(plain)
			require.NoError(t, err, "without a gate there is nothing to protect")
			for gate, register := range gates {
				o := &sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{Path: "/bin/x"})}
				register(o)
				tc.set(o)
				_, err := sdk.PreviewLaunch(o)
				if tc.option == "" {
					require.NoError(t, err, gate)
					continue
				}
				all := sdk.ConfigErrors(err)
				require.Len(t, all, 1, gate)
				assert.Equal(t, tc.option, all[0].Option)
				assert.NotEmpty(t, all[0].Fix)
			}
		})
	}
}
