package sessions_test

import (
	"context"
	"testing"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/sdk"
)

func TestCLIToolAliases(t *testing.T) {
	for _, aliases := range []map[string]string{{"Foo": "Bash"}, {"Read": "Bash"}, {"Bash": "Read"}, {"mcp__x__y": "Bash"}, {"bash": "Bash"}} {
		r := newRig(t)
		r.write("a", "x")
		o := r.options()
		o.ToolAliases = aliases
		o.Policy = &sdk.Policy{Allow: []string{"Foo", "Read", "mcp__x", "bash"}, Deny: []string{"Bash(touch:*)"}}
		o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			t.Logf("hook sees %s %s", in.ToolName, in.ToolInput)
			return sdk.PreToolUseOutput{}, nil
		})}
		var from string
		for from = range aliases {
		}
		out, _ := r.play(o, one(modelapi.ToolUse(from, modelapi.Args{"command": "touch made", "description": "x"})), one(modelapi.ToolUse(from, modelapi.Args{"file_path": r.at("a")})))
		t.Logf("%v made=%v %v", aliases, made(r, "made"), out)
	}
}

// Names and keys that are nearly the right ones: what does the agent run?
func TestCLINearlyTheName(t *testing.T) {
	r := newRig(t)
	o := r.options()
	o.AllowedTools = []string{"Bash", "Read"}
	o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		t.Logf("hook sees %q %s", in.ToolName, in.ToolInput)
		return sdk.PreToolUseOutput{}, nil
	})}
	out, _ := r.play(o,
		one(modelapi.ToolUse("bash", modelapi.Args{"command": "touch m1", "description": "x"})),
		one(modelapi.ToolUse("Bash ", modelapi.Args{"command": "touch m2", "description": "x"})),
		one(modelapi.ToolUse("Bash\u200b", modelapi.Args{"command": "touch m3", "description": "x"})),
		one(modelapi.ToolUse("Bash", modelapi.Args{"command": "touch m4", "Command": "ls", "description": "x"})),
		one(modelapi.ToolUse("Bash", modelapi.Args{"command": "touch m5", "extra": "ls", "description": "x"})),
		one(modelapi.ToolUse("Bash", modelapi.Args{"Command": "touch m6", "description": "x"})),
		one(modelapi.ToolUse("Bash", modelapi.Args{"command": []string{"touch m7"}, "description": "x"})),
		one(modelapi.ToolUse("Bash", modelapi.Args{"cmd": "touch m8"})),
		one(modelapi.ToolUse("Bash", modelapi.Args{"command": "touch m9\x00; touch m10", "description": "x"})),
		one(modelapi.ToolUse("Bash", modelapi.Args{"command": "touch m11", "run_in_background": "true", "timeout": "5000", "description": "x"})),
		one(modelapi.ToolUse("Read", modelapi.Args{"path": r.at("x"), "file_path": r.at("m4")})),
		one(modelapi.ToolUse("Bash", modelapi.Args{"command": "  touch m12  ", "description": "x"})),
		one(modelapi.ToolUse("Bash", modelapi.Args{"command": "cd " + r.dir + " && touch m13", "description": "x"})),
		one(modelapi.ToolUse("Bash", modelapi.Args{"command": "touch m14", "dangerouslyDisableSandbox": true, "description": "x"})),
	)
	for _, o := range out {
		t.Logf("%v %.150q", o.error, o.text)
	}
	for _, m := range []string{"m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9", "m10", "m11", "m12", "m13", "m14"} {
		if made(r, m) {
			t.Log("made", m)
		}
	}
}
