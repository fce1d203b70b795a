package sessions_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/agent-troupe/troupe/sdk"
)

// Variables of the environment, which is inherited by default, and flags that
// switch the gates off.
func TestCLIGatesSwitchedOff(t *testing.T) {
	type change struct {
		env   map[string]string
		flags map[string]sdk.Opt[string]
	}
	e := func(kv ...string) change { return change{env: map[string]string{kv[0]: kv[1]}} }
	f := func(k string, v ...string) change {
		o := sdk.Opt[string]{}
		if len(v) > 0 {
			o = sdk.Some(v[0])
		}
		return change{flags: map[string]sdk.Opt[string]{k: o}}
	}
	for name, c := range map[string]change{
		"nothing": {}, "SIMPLE": e("CLAUDE_CODE_SIMPLE", "1"), "SAFE_MODE": e("CLAUDE_CODE_SAFE_MODE", "1"), "HOOK_FORWARDING": e("CLAUDE_CODE_DISABLE_HOOK_FORWARDING", "1"), "PERSONAL_HOOKS_OFF": e("CLAUDE_CODE_PERSONAL_HOOKS_OFF", "1"),
		"EVEN_MORE": e("CLAUDE_CODE_EVEN_MORE_DANGEROUSLY_SKIP_PERMISSIONS", "1"), "FUNCTION_HOOKS": e("CLAUDE_CODE_ENABLE_FUNCTION_HOOKS", "0"), "SANDBOXED": e("CLAUDE_CODE_SANDBOXED", "1"), "BG_RULES": e("CLAUDE_BG_SESSION_PERMISSION_RULES", `{"allow":["Bash"]}`), "BG_TRUSTED": e("CLAUDE_BG_WORKSPACE_TRUSTED", "1"),
		"AUTO_MODE": e("CLAUDE_CODE_ENABLE_AUTO_MODE", "1"), "SIMPLE_PROMPT": e("CLAUDE_CODE_SIMPLE_SYSTEM_PROMPT", "1"), "CHROME_MODE": e("CLAUDE_CHROME_PERMISSION_MODE", "skip_all_permission_checks"), "DELEGATED": e("CLAUDE_CODE_USER_DELEGATED_SESSION", "1"), "REMOTE": e("CLAUDE_CODE_REMOTE", "1"), "ENTRYPOINT": e("CLAUDE_CODE_ENTRYPOINT", "cli"),
		"--bare": f("bare"), "--safe-mode": f("safe-mode"), "--restricted": f("restricted"), "--disable-slash-commands": f("disable-slash-commands"), "--dangerously-skip-permissions": f("dangerously-skip-permissions"), "--permission-mode bypass": f("permission-mode", "bypassPermissions"), "--allow-dangerously": f("allow-dangerously-skip-permissions"),
	} {
		t.Run(name, func(t *testing.T) {
			line := ""
			for _, gate := range []string{"hook", "callback", "policy"} {
				r := newRig(t)
				o := r.options()
				maps.Copy(o.Env, c.env)
				o.ExtraArgs = c.flags
				var mu sync.Mutex
				asked := 0
				switch gate {
				case "hook":
					o.AllowedTools = []string{"Bash"}
					o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
						mu.Lock()
						defer mu.Unlock()
						asked++
						return sdk.DenyPreToolUse("no"), nil
					})}
				case "policy":
					o.AllowedTools = []string{"Bash"}
					o.Policy = &sdk.Policy{Deny: []string{"Bash(touch:*)"}}
				default:
					o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
						mu.Lock()
						defer mu.Unlock()
						asked++
						return sdk.Deny("no"), nil
					}
				}
				cl := sdk.NewClient(o)
				if err := cl.Connect(r.ctx); err != nil {
					line += fmt.Sprintf(" %s: %.80v", gate, err)
					continue
				}
				r.turn(cl, one(shell("touch made")))
				open := ""
				if made(r, "made") {
					open = "OPEN"
					if gate != "callback" || len(cl.Warnings()) == 0 { // what hides the callback is to be a warning
						t.Errorf("%s: the %s is passed by", name, gate)
					}
				}
				line += fmt.Sprintf(" | %s asked %d %s warnings %.90v", gate, asked, open, cl.Warnings())
				_ = cl.Close(r.ctx)
			}
			t.Log(line)
		})
	}
}
