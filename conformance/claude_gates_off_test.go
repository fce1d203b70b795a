//go:build conformance

package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// settingsFile writes a settings file for the agent, and has it load them all.
func (r *rig) settingsFile(o *sdk.Options, path, text string) {
	r.t.Helper()
	require.NoError(r.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(r.t, os.WriteFile(path, []byte(text), 0o600))
	o.SettingSources = session.Set{}
}

// switches are what was ever found or thought to switch off gates of Claude Code.
func switches() map[string]func(*rig, *sdk.Options) {
	all := map[string]func(*rig, *sdk.Options){"nothing": func(*rig, *sdk.Options) {}}
	env := func(name, value string) {
		all[name+"="+value] = func(_ *rig, o *sdk.Options) { o.Env[name] = value }
	}
	for _, value := range []string{"1", "true", "yes", "on", " 1 ", "TRUE", "0"} {
		env("CLAUDE_CODE_SIMPLE", value)
	}
	for _, name := range strings.Fields(`CLAUDE_CODE_SAFE_MODE CLAUDE_CODE_RESTRICTED CLAUDE_CODE_RESTRICT_PERSONAL_CONFIG
		CLAUDE_CODE_PERSONAL_HOOKS_OFF CLAUDE_CODE_DISABLE_HOOK_FORWARDING CLAUDE_CODE_SIMPLE_SYSTEM_PROMPT CLAUDE_CODE_FLEETVIEW_SIMPLE
		CLAUDE_CODE_USER_DELEGATED_SESSION CLAUDE_CODE_SANDBOXED CLAUDE_BG_WORKSPACE_TRUSTED
		CLAUDE_CODE_EVEN_MORE_DANGEROUSLY_SKIP_PERMISSIONS CLAUDE_CODE_IGNORE_PERSISTED_TRUST CLAUDE_CODE_ENABLE_AUTO_MODE
		CLAUDE_CODE_HOOKS_SAME_THREAD CLAUDE_CODE_EVAL_CONFINED CLAUDE_CODE_SUPERVISED CLAUDE_CODE_COORDINATOR_MODE CLAUDE_CODE_REPL
		CLAUDE_CODE_DISABLE_STARTUP_WORK_GATE CLAUDE_CODE_DISABLE_HOOKS claude_code_simple`) {
		env(name, "1")
	}
	all["CLAUDE_CODE_REMOTE=1"] = func(r *rig, o *sdk.Options) { o.Env["CLAUDE_CODE_REMOTE"], r.hosted = "1", true }
	env("CLAUDE_CODE_ENTRYPOINT", "cli")
	env("CLAUDE_CODE_ENABLE_FUNCTION_HOOKS", "0")
	env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "0")
	env("BUN_OPTIONS", "--bare")
	for _, flag := range []string{"bare", "safe-mode", "restricted", "disable-slash-commands", "brief", "ignore-persisted-trust", "maintenance", "init"} {
		all["--"+flag] = func(_ *rig, o *sdk.Options) { o.ExtraArgs = map[string]sdk.Opt[string]{flag: {}} }
	}
	all["--name --bare"] = func(_ *rig, o *sdk.Options) { o.ExtraArgs = map[string]sdk.Opt[string]{"name": sdk.Some("--bare")} }
	all["ExecutableArgs"] = func(_ *rig, o *sdk.Options) { o.ExecutableArgs = []string{"--bare"} }
	for _, settings := range []string{
		`{"env":{"CLAUDE_CODE_SIMPLE":"1"}}`, `{"env":{"CLAUDE_CODE_SIMPLE":1}}`, `{"env":{"CLAUDE_CODE_SIMPLE":true}}`, `{"env":{"CLAUDE_CODE_SAFE_MODE":"1"}}`,
		`{"disableAllHooks":true}`, `{"allowManagedHooksOnly":true}`, `{"strictPluginOnlyCustomization":true}`, `{"hooks":{"PreToolUse":[]}}`,
	} {
		all["Settings "+settings] = func(_ *rig, o *sdk.Options) { o.Settings = json.RawMessage(settings) }
		all["ManagedSettings "+settings] = func(_ *rig, o *sdk.Options) { o.ManagedSettings = json.RawMessage(settings) }
		all["user "+settings] = func(r *rig, o *sdk.Options) {
			r.settingsFile(o, filepath.Join(r.home, ".claude", "settings.json"), settings)
		}
		all["project "+settings] = func(r *rig, o *sdk.Options) { r.settingsFile(o, r.at(".claude/settings.json"), settings) }
		all["local "+settings] = func(r *rig, o *sdk.Options) { r.settingsFile(o, r.at(".claude/settings.local.json"), settings) }
	}
	return all
}

// opensGates are the switches that open gates of an agent that is started with
// them. The user's settings are out of sight, so that the session has to notice.
var opensGates = regexp.MustCompile(`^nothing$|^CLAUDE_CODE_SIMPLE=|^--bare$|^ExecutableArgs$|^(Settings|ManagedSettings|user) .*CLAUDE_CODE_SIMPLE`)

// chosenSwitches are those that open gates and every tenth of the others: a
// session with each takes minutes. With TROUPE_FULL=1 it is all of them.
func chosenSwitches(all []string) []string {
	if os.Getenv("TROUPE_FULL") == "1" {
		return all
	}
	var chosen []string
	others := 0
	for _, name := range all {
		if opensGates.MatchString(name) {
			chosen = append(chosen, name)
			continue
		}
		if others%10 == 0 {
			chosen = append(chosen, name)
		}
		others++
	}
	return chosen
}

// checkSwitches holds known switches against a gate that denies: the options are
// refused, the agent does not start, the session fails, or the gate holds.
func checkSwitches(t *testing.T, rel release) {
	cases := switches()
	for _, name := range chosenSwitches(slices.Sorted(maps.Keys(cases))) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rel.rig(t)
			var asked atomic.Int32
			o := r.guarded(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
				asked.Add(1)
				return sdk.DenyPreToolUse("no"), nil
			})
			cases[name](r, o)
			_, err := sdk.Run(r.ctx, r.touch("made"), o)
			assert.NoFileExists(t, r.at("made"), "the gate is open")
			var off *session.GatesOffError
			switch {
			case errors.As(err, &off):
				assert.Equal(t, "system/init", off.Seen)
				t.Log("the session failed")
			case err != nil:
				t.Log(err)
			default:
				t.Logf("the gate was asked %d times", asked.Load())
			}
			if name == "nothing" {
				require.NoError(t, err)
				assert.EqualValues(t, 1, asked.Load())
			}
		})
	}
}

// checkGatesThatGoOff: what only the agent knows of, such as the user's settings
// file, ends the session before a tool runs; so does a change on the way.
func checkGatesThatGoOff(t *testing.T, rel release) {
	gate := func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.DenyPreToolUse("no"), nil
	}
	t.Run("from the start", func(t *testing.T) {
		t.Parallel()
		r := rel.rig(t)
		o := r.guarded(gate)
		r.settingsFile(o, filepath.Join(r.home, ".claude", "settings.json"), `{"env":{"CLAUDE_CODE_SIMPLE":"1"}}`)
		c := r.connect(o)
		var off *session.GatesOffError
		_, err := r.send(c, r.touch("made")).Result(r.ctx)
		require.ErrorAs(t, err, &off)
		assert.NoFileExists(t, r.at("made"))
		_ = c.Close(r.ctx)
	})
	t.Run("on the way", func(t *testing.T) {
		t.Parallel()
		r := rel.rig(t)
		o := r.guarded(gate)
		file := filepath.Join(r.home, ".claude", "settings.json")
		r.settingsFile(o, file, `{}`)
		c := r.connect(o)
		_, result := r.ask(c, r.touch("made"))
		assert.Len(t, result.PermissionDenials, 1)
		env := map[string]any{"env": map[string]any{"CLAUDE_CODE_SIMPLE": "1"}}
		var refused *sdk.ConfigError
		require.ErrorAs(t, c.Control(r.ctx, "apply_flag_settings", map[string]any{"settings": env}, nil), &refused)
		require.NoError(t, os.WriteFile(file, []byte(`{"env":{"CLAUDE_CODE_SIMPLE":"1"}}`), 0o600))
		if _, err := r.send(c, r.touch("made")).Result(r.ctx); err != nil { // else the agent has not taken it up
			var off *session.GatesOffError
			require.ErrorAs(t, err, &off)
		}
		assert.NoFileExists(t, r.at("made"))
		_ = c.Close(r.ctx)
	})
}

// checkHonestAgent: turns of all kinds, none of which may look as if the gates
// were off.
func checkHonestAgent(t *testing.T, rel release) {
	r := rel.rig(t)
	require.NoError(t, os.MkdirAll(r.at(".claude/commands"), 0o755))
	require.NoError(t, os.WriteFile(r.at(".claude/commands/mine.md"), []byte("do it [[scn:bash]]"), 0o600))
	o := r.guarded(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.PreToolUseOutput{}, nil
	})
	o.AllowedTools = []string{"Bash", "Agent", "Task", "Monitor"}
	o.SettingSources, o.Discard = sdk.Only("project"), true
	c := r.connect(o)
	silent := false
	history := sdk.UserText("for the history")
	history.ShouldQuery = &silent
	for _, m := range []sdk.UserMessage{
		sdk.UserText("hi [[scn:text]]"), sdk.UserText("/context"), sdk.UserText("/mine"), sdk.UserText("/nosuchcommand"), sdk.UserText("/cost"),
		history, sdk.UserText("run [[scn:bash]]"), sdk.UserText("/compact"), sdk.UserText("fail [[scn:err400]]"), sdk.UserText(""),
		sdk.UserText("delegate [[scn:agentfg]]"), sdk.UserText("later [[scn:bgbash]]"), sdk.UserText("later [[scn:agentbg]]"), sdk.UserText("hi [[scn:text]]"),
	} {
		ctx, cancel := context.WithTimeout(r.ctx, time.Minute)
		turn, err := c.Send(ctx, m)
		require.NoError(t, err)
		_, err = turn.Result(ctx)
		require.NoError(t, err, "%v", m.Message.Content)
		cancel()
	}
	require.NoError(t, c.AwaitIdle(r.ctx))
	r.close(c)

	o.Resume = c.SessionID()
	c = r.connect(o)
	_, err := r.send(c, "/compact").Result(r.ctx)
	require.NoError(t, err)
	_, err = r.send(c, "hi [[scn:text]]").Result(r.ctx)
	require.NoError(t, err)
	r.close(c)

	o.Resume = ""
	o.Agents = map[string]session.AgentDefinition{"worker": {Description: "d", Prompt: "p", InitialPrompt: "start [[scn:bash]]"}}
	o.Agent = "worker"
	c = r.connect(o)
	_, err = r.model.Wait(r.ctx, func(q modelapi.Request) bool { return strings.Contains(texts(q), "start [[scn:bash]]") })
	require.NoError(t, err)
	_, err = r.send(c, "hi [[scn:text]]").Result(r.ctx)
	require.NoError(t, err)
	r.close(c)
}
