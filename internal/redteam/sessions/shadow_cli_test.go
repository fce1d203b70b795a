package sessions_test

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"testing"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// What hides the callback on the real agent, and what Troupe says of it.
func TestCLIShadows(t *testing.T) {
	for name, set := range map[string]func(r *rig, o *sdk.Options){
		"nothing": func(*rig, *sdk.Options) {},
		"settings defaultMode bypass": func(_ *rig, o *sdk.Options) {
			o.Settings = json.RawMessage(`{"permissions":{"defaultMode":"bypassPermissions"}}`)
		},
		"settings acceptEdits": func(_ *rig, o *sdk.Options) {
			o.Settings = json.RawMessage(`{"permissions":{"defaultMode":"acceptEdits"}}`)
		},
		"managed settings allow": func(_ *rig, o *sdk.Options) {
			o.ManagedSettings = json.RawMessage(`{"permissions":{"allow":["Bash"]}}`)
		},
		"extra allowedTools": func(_ *rig, o *sdk.Options) {
			o.ExtraArgs = map[string]sdk.Opt[string]{"allowedTools": sdk.Some("Bash")}
		},
		"extra mode bypass": func(_ *rig, o *sdk.Options) {
			o.ExtraArgs = map[string]sdk.Opt[string]{"permission-mode": sdk.Some("bypassPermissions")}
		},
		"extra mode acceptEdits": func(_ *rig, o *sdk.Options) {
			o.ExtraArgs = map[string]sdk.Opt[string]{"permission-mode": sdk.Some("acceptEdits")}
		},
		"settings hook allows": func(_ *rig, o *sdk.Options) {
			o.Settings = json.RawMessage(`{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"echo '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"allow\"}}'"}]}]}}`)
		},
		"project settings, by default": func(r *rig, o *sdk.Options) {
			r.write(".claude/settings.json", `{"permissions":{"allow":["Bash"]}}`)
			o.SettingSources = session.Set{}
		},
		"project mode, by default": func(r *rig, o *sdk.Options) {
			r.write(".claude/settings.json", `{"permissions":{"defaultMode":"bypassPermissions"}}`)
			o.SettingSources = session.Set{}
		},
		"project hook, by default": func(r *rig, o *sdk.Options) {
			r.write(".claude/settings.json", `{"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command","command":"touch `+r.at("HOOKED")+`"}]}]}}`)
			o.SettingSources = session.Set{}
		},
		"project mcp, by default": func(r *rig, o *sdk.Options) {
			r.write(".mcp.json", `{"mcpServers":{"x":{"command":"touch","args":["`+r.at("MCPED")+`"]}}}`)
			o.SettingSources = session.Set{}
		},
		"project mcp, enabled": func(r *rig, o *sdk.Options) {
			r.write(".mcp.json", `{"mcpServers":{"x":{"command":"touch","args":["`+r.at("MCPED")+`"]}}}`)
			r.write(".claude/settings.json", `{"enableAllProjectMcpServers":true}`)
			o.SettingSources = session.Set{}
		},
		"project mcp, sources none": func(r *rig, o *sdk.Options) {
			r.write(".mcp.json", `{"mcpServers":{"x":{"command":"touch","args":["`+r.at("MCPED")+`"]}}}`)
		},
		"project helper, by default": func(r *rig, o *sdk.Options) {
			r.write(".claude/settings.json", `{"apiKeyHelper":"touch `+r.at("HELPED")+`; echo x"}`)
			o.SettingSources = session.Set{}
		},
		"project env, by default": func(r *rig, o *sdk.Options) {
			r.write(".claude/settings.json", `{"env":{"GIT_PAGER":"x"}}`)
			o.SettingSources = session.Set{}
		},
		"policy deny + project allow": func(r *rig, o *sdk.Options) {
			r.write(".claude/settings.json", `{"permissions":{"allow":["Bash"]}}`)
			o.SettingSources = session.Set{}
			o.Policy = &sdk.Policy{Deny: []string{"Bash(touch:*)"}}
		},
		"project disableAllHooks": func(r *rig, o *sdk.Options) {
			r.write(".claude/settings.json", `{"disableAllHooks":true,"permissions":{"allow":["Bash"]}}`)
			o.SettingSources = session.Set{}
			o.Policy = &sdk.Policy{Deny: []string{"Bash(touch:*)"}}
		},
		"settings allowManagedHooksOnly": func(r *rig, o *sdk.Options) {
			o.Settings = json.RawMessage(`{"allowManagedHooksOnly":true,"permissions":{"allow":["Bash"]}}`)
			o.Policy = &sdk.Policy{Deny: []string{"Bash(touch:*)"}}
		},
		"managed allowManagedHooksOnly": func(r *rig, o *sdk.Options) {
			o.ManagedSettings = json.RawMessage(`{"allowManagedHooksOnly":true,"permissions":{"allow":["Bash"]}}`)
			o.Policy = &sdk.Policy{Deny: []string{"Bash(touch:*)"}}
		},
		"extra bare": func(r *rig, o *sdk.Options) {
			o.ExtraArgs = map[string]sdk.Opt[string]{"bare": {}}
			o.AllowedTools = []string{"Bash"}
			o.Policy = &sdk.Policy{Deny: []string{"Bash(touch:*)"}}
		},
		"extra p": func(r *rig, o *sdk.Options) { o.ExtraArgs = map[string]sdk.Opt[string]{"print": {}} },
		"env simple": func(r *rig, o *sdk.Options) {
			o.Env["CLAUDE_CODE_SIMPLE"] = "1"
			o.AllowedTools = []string{"Bash"}
			o.Policy = &sdk.Policy{Deny: []string{"Bash(touch:*)"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			o := r.options()
			var mu sync.Mutex
			asked := 0
			o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				mu.Lock()
				defer mu.Unlock()
				asked++
				return sdk.Deny("no"), nil
			}
			set(r, o)
			c := sdk.NewClient(o)
			if err := c.Connect(r.ctx); err != nil {
				t.Logf("connect: %.300v", err)
				return
			}
			out, _ := r.turn(c, one(shell("touch made")))
			w := c.Warnings()
			_ = c.Close(r.ctx)
			var made []string
			for _, f := range []string{"made", "HOOKED", "MCPED", "HELPED"} {
				if _, err := os.Stat(r.at(f)); err == nil {
					made = append(made, f)
				}
			}
			t.Logf("RAN %v asked %d; warnings %.200v; %.120v", made, asked, w, out)
			if len(made) > 0 && len(w) == 0 {
				t.Errorf("%v ran, nobody was asked, and no warning says so", made)
			}
		})
	}
}

// A subagent with a mode of its own.
func TestCLIAgentWithAMode(t *testing.T) {
	for _, mode := range []string{"", "bypassPermissions", "acceptEdits", "dontAsk"} {
		r := newRig(t)
		o := r.options()
		var mu sync.Mutex
		asked := 0
		o.CanUseTool = func(_ context.Context, q *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			mu.Lock()
			defer mu.Unlock()
			if q.ToolName == "Bash" {
				asked++
				return sdk.Deny("no"), nil
			}
			return sdk.Allow(), nil
		}
		o.Agents = map[string]session.AgentDefinition{"worker": {Description: "d", Prompt: "p", PermissionMode: sdk.PermissionMode(mode)}}
		c := sdk.NewClient(o)
		if err := c.Connect(r.ctx); err != nil {
			t.Logf("%q connect: %v", mode, err)
			continue
		}
		r.model.Script("inner", modelapi.Say(shell("touch made")), modelapi.Say(modelapi.Text("done")))
		r.turn(c, one(modelapi.ToolUse("Agent", modelapi.Args{"description": "d", "prompt": "p [[scn:inner]]", "subagent_type": "worker", "run_in_background": false})))
		t.Logf("%q RAN %v asked %d warnings %v", mode, made(r, "made"), asked, c.Warnings())
		_ = c.Close(r.ctx)
	}
}
