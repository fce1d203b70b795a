package sessions_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// Can a file of the project switch the host's gates off?
func TestCLIProjectSwitchesGatesOff(t *testing.T) {
	for name, set := range map[string]func(r *rig, o *sdk.Options){
		"project settings env": func(r *rig, o *sdk.Options) {
			r.write(".claude/settings.json", `{"env":{"CLAUDE_CODE_SIMPLE":"1"}}`)
			o.SettingSources = session.Set{}
		},
		"project local settings env": func(r *rig, o *sdk.Options) {
			r.write(".claude/settings.local.json", `{"env":{"CLAUDE_CODE_SIMPLE":"1"}}`)
			o.SettingSources = session.Set{}
		},
		"settings option env":    func(r *rig, o *sdk.Options) { o.Settings = json.RawMessage(`{"env":{"CLAUDE_CODE_SIMPLE":"1"}}`) },
		"disableAllHooks option": func(r *rig, o *sdk.Options) { o.Settings = json.RawMessage(`{"disableAllHooks":true}`) },
		"project disableAllHooks": func(r *rig, o *sdk.Options) {
			r.write(".claude/settings.json", `{"disableAllHooks":true}`)
			o.SettingSources = session.Set{}
		},
		"disableBypass etc": func(r *rig, o *sdk.Options) { o.Settings = json.RawMessage(`{"hooks":{"PreToolUse":[]}}`) },
		"host environment":  func(r *rig, o *sdk.Options) { t.Setenv("CLAUDE_CODE_SIMPLE", "1"); o.CleanEnv = false },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.write(".env", "TOPSECRET")
			o := r.options()
			o.AllowedTools = []string{"Bash"}
			var mu sync.Mutex
			asked := 0
			o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
				mu.Lock()
				defer mu.Unlock()
				asked++
				return sdk.PreToolUseOutput{}, nil
			})}
			o.Policy = &sdk.Policy{Deny: []string{"Bash(touch:*)", "Read(.env)"}}
			set(r, o)
			c := sdk.NewClient(o)
			if err := c.Connect(r.ctx); err != nil {
				t.Log(err)
				return
			}
			out, _ := r.turn(c, one(shell("touch made")), one(modelapi.ToolUse("Read", modelapi.Args{"file_path": r.at(".env")})))
			t.Logf("made %v, hook called %d, warnings %.60v; %.200v", made(r, "made"), asked, c.Warnings(), out)
			if made(r, "made") {
				t.Error("the policy's deny rule is passed by")
			}
			_ = c.Close(r.ctx)
		})
	}
}
