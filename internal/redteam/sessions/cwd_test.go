package sessions_test

import (
	"context"
	"strings"
	"testing"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/sdk"
)

// A denied file is read after the shell has changed the directory: the agent
// resolves relative paths in the directory that it is in by then, the policy in
// the one that it was started in.
func TestCLIDeniedFileAfterCd(t *testing.T) {
	r := newRig(t)
	r.write("a/secrets/key", "TOPSECRET")
	r.write("a/other", "x")
	o := r.options()
	o.Policy = &sdk.Policy{Deny: []string{"Read(./a/secrets/**)"}, Allow: []string{"Read", "Bash(cd:*)", "Bash(cat:*)", "Bash(pwd)", "Grep", "Glob"}}
	o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		t.Logf("hook sees %s %s cwd=%s", in.ToolName, in.ToolInput, in.Cwd)
		return sdk.PreToolUseOutput{}, nil
	})}
	out, _ := r.play(o,
		one(modelapi.ToolUse("Read", modelapi.Args{"file_path": r.at("a/secrets/key")})),
		one(shell("cat a/secrets/key")),
		one(shell("cd a")),
		one(shell("cat secrets/key")),
		one(modelapi.ToolUse("Read", modelapi.Args{"file_path": "secrets/key"})),
		one(modelapi.ToolUse("Read", modelapi.Args{"file_path": "./secrets/../secrets/key"})),
		one(shell("pwd")),
	)
	check(t, out)
}

func TestCLISearchAfterCd(t *testing.T) {
	r := newRig(t)
	r.write("a/secrets/key", "TOPSECRET")
	r.write("a/nb.ipynb", `{"cells":[{"cell_type":"code","id":"c1","source":["x"],"metadata":{},"outputs":[]}],"metadata":{},"nbformat":4,"nbformat_minor":5}`)
	r.write("a/other", "x")
	o := r.options()
	o.Tools = sdk.Only("Bash", "Read", "Grep", "Glob", "Write", "Edit", "NotebookEdit")
	o.Policy = &sdk.Policy{Deny: []string{"Read(./a/secrets/**)", "Edit(./a/secrets/**)", "Edit(./a/nb.ipynb)"}, Allow: []string{"Read", "Bash(cd:*)", "Bash(cat:*)", "Grep", "Glob", "Write", "Edit", "NotebookEdit"}}
	o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		t.Logf("hook sees %s %s", in.ToolName, in.ToolInput)
		return sdk.PreToolUseOutput{}, nil
	})}
	out, _ := r.play(o,
		one(shell("cd a")),
		one(modelapi.ToolUse("Grep", modelapi.Args{"pattern": "TOP", "path": "secrets", "output_mode": "content"})),
		one(modelapi.ToolUse("Grep", modelapi.Args{"pattern": "TOP", "glob": "secrets/*", "path": "../a", "output_mode": "content"})),
		one(modelapi.ToolUse("Glob", modelapi.Args{"pattern": "*", "path": "secrets"})),
		one(modelapi.ToolUse("Write", modelapi.Args{"file_path": "secrets/new", "content": "x"})),
		one(modelapi.ToolUse("Read", modelapi.Args{"file_path": "nb.ipynb"})),
		one(modelapi.ToolUse("NotebookEdit", modelapi.Args{"notebook_path": "nb.ipynb", "cell_id": "c1", "new_source": "EVIL"})),
	)
	check(t, out)
}

// What the agent's own deny rule does with the same calls.
func TestCLIVendorDenyAfterCd(t *testing.T) {
	r := newRig(t)
	r.write("a/secrets/key", "TOPSECRET")
	o := r.options()
	o.AllowedTools = []string{"Bash(cat:*)", "Bash(cd:*)", "Read"}
	o.DisallowedTools = []string{"Read(./a/secrets/**)"}
	out, _ := r.play(o,
		one(shell("cat a/secrets/key")),
		one(shell("cd a")),
		one(shell("cat secrets/key")),
		one(shell("cat secrets/k*")),
	)
	check(t, out)
}

// The same without any allow rule: in the default mode the agent runs cd and
// cat by itself, and only the policy's hook stands in the way.
func TestCLIDenyOnlyAfterCd(t *testing.T) {
	r := newRig(t)
	r.write("a/secrets/key", "TOPSECRET")
	o := r.options()
	o.Tools = sdk.Only("Bash", "Read", "Grep", "Glob")
	o.Policy = &sdk.Policy{Deny: []string{"Read(./a/secrets/**)"}}
	out, _ := r.play(o,
		one(shell("cat a/secrets/key")),
		one(modelapi.ToolUse("Grep", modelapi.Args{"pattern": "TOP", "path": "a/secrets", "output_mode": "content"})),
		one(shell("cd a")),
		one(shell("cat secrets/key")),
		one(modelapi.ToolUse("Grep", modelapi.Args{"pattern": "TOP", "path": "secrets", "output_mode": "content"})),
		one(modelapi.ToolUse("Glob", modelapi.Args{"pattern": "*", "path": "secrets"})),
	)
	check(t, out)
}

// docs/hooks.md says that with Bash(cd:*) every rule holds in every
// directory. No such rule is needed: the agent runs cd by itself.
func TestCLIRulesInAnotherDirectory(t *testing.T) {
	r := newRig(t)
	r.write("scripts/ok.sh", "echo ok")
	r.write("sub/scripts/evil.sh", "touch "+r.at("PWNED"))
	o := r.options()
	o.Policy = &sdk.Policy{Allow: []string{"Bash(bash scripts/*)"}}
	out, _ := r.play(o,
		one(shell("bash sub/scripts/evil.sh")),
		one(shell("cd sub && bash scripts/evil.sh")),
		one(shell("cd sub")),
		one(shell("bash scripts/evil.sh")),
	)
	check(t, out)
	if made(r, "PWNED") {
		t.Error("a script of another directory ran by the rule Bash(bash scripts/*)")
	}
}

// check reports what should have been kept from the model.
func check(t *testing.T, out []outcome) {
	t.Helper()
	for _, o := range out {
		t.Logf("%v %q", o.error, o.text)
		if strings.Contains(o.text, "TOPSECRET") || strings.Contains(o.text, "PRIVATE") {
			t.Errorf("the model reads %q", o.text)
		}
	}
}
