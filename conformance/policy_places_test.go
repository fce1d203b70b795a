//go:build conformance

package conformance_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// play runs a turn in which the model makes one call after the other, and
// returns what it was told of each.
func (r *rig) play(o *sdk.Options, calls ...modelapi.Block) []string {
	r.t.Helper()
	var steps []modelapi.Step
	for _, call := range calls {
		steps = append(steps, modelapi.Say(call))
	}
	r.model.Script("calls", append(steps, modelapi.Say(modelapi.Text("done")))...)
	all, _ := r.once(o, "go [[scn:calls]]")
	var told []string
	for _, m := range all {
		for _, result := range sdk.ToolResults(m) {
			told = append(told, result.Content.Text())
		}
	}
	require.Len(r.t, told, len(calls))
	return told
}

func (r *rig) file(name, text string) {
	r.t.Helper()
	require.NoError(r.t, os.MkdirAll(filepath.Dir(r.at(name)), 0o700))
	require.NoError(r.t, os.WriteFile(r.at(name), []byte(text), 0o600))
}

const secret = "TOPSECRET"

// The agent runs cd without asking, and later calls count from where it is then.
// A deny rule about a path holds there as well.
func TestPolicyFollowsTheDirectory(t *testing.T) {
	t.Parallel()
	searches := []modelapi.Block{
		modelapi.ToolUse("Grep", modelapi.Args{"pattern": "TOP", "path": "secrets", "output_mode": "content"}),
		modelapi.ToolUse("Grep", modelapi.Args{"pattern": "TOP", "glob": "secrets/*", "path": "../a", "output_mode": "content"}),
		modelapi.ToolUse("Glob", modelapi.Args{"pattern": "*", "path": "secrets"}),
		modelapi.ToolUse("Read", modelapi.Args{"file_path": "secrets/key"}),
		modelapi.ToolUse("Read", modelapi.Args{"file_path": "./secrets/../secrets/key"}),
	}
	for name, allow := range map[string][]string{
		"no allow rule":        nil,
		"all that reads":       {"Read", "Grep", "Glob", "Bash(cd:*)", "Bash(cat:*)"},
		"every command at all": {"Bash"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.file("a/secrets/key", secret)
			r.file("a/other", "x")
			o := r.options()
			o.Tools = sdk.Only("Bash", "Read", "Grep", "Glob")
			o.Policy = &sdk.Policy{Default: policy.Agent, Allow: allow, Deny: []string{"Read(./a/secrets/**)"}}
			calls := append([]modelapi.Block{shell("cat a/secrets/key"), shell("cd a"), shell("cat secrets/key"), shell("cat secrets/k*"), shell("cat other")}, searches...)
			told := r.play(o, calls...)
			for i, text := range told {
				assert.NotContains(t, text, secret, "call %d", i)
			}
			assert.Contains(t, told[0], "denies this call by the rule Read(./a/secrets/**)")
			assert.Contains(t, told[2], "denies this call by the rule Read(./a/secrets/**)")
			if allow != nil {
				assert.Contains(t, told[4], "x", "another file is read there")
			}
		})
	}
}

// An allow rule with a path in it holds in its own directory only.
func TestPolicyDoesNotRunAnotherDirectorysScript(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.file("scripts/ok.sh", "echo ok")
	r.file("sub/scripts/evil.sh", "touch "+r.at("ran"))
	r.file("sub/Makefile", "all:\n\ttouch "+r.at("made"))
	o := r.options()
	o.Policy = &sdk.Policy{Default: policy.Agent, Allow: []string{"Bash(bash scripts/*)", "Bash(make:*)"}}
	told := r.play(o, shell("bash scripts/ok.sh"), shell("bash sub/scripts/evil.sh"), shell("cd sub && bash scripts/evil.sh"), shell("cd sub"), shell("bash scripts/evil.sh"), shell("make"))
	assert.Contains(t, told[0], "ok")
	assert.NoFileExists(t, r.at("ran"))
	assert.NoFileExists(t, r.at("made"))
}

// The directory that the host sets is the one that the calls count from.
func TestPolicyAfterSetCwd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.file("a/secrets/key", secret)
	o := r.options()
	o.Policy = &sdk.Policy{Allow: []string{"Bash"}, Deny: []string{"Read(./a/secrets/**)"}}
	c := r.connect(o)
	_, err := sdk.Call[protocol.SetCwdResponse](r.ctx, c, protocol.SetCwdRequest{Path: r.at("a")})
	if err != nil {
		t.Logf("this agent does not change its directory on request: %v", err)
	}
	all, _ := r.ask(c, r.run("cat secrets/key; cat a/secrets/key"))
	assert.NotContains(t, r.toolResult(all).Content.Text(), secret)
	r.close(c)
}

// A symbolic link is no way around a deny rule, and an allow rule does not read
// or write through one that leads out of the project.
func TestPolicyFollowsLinks(t *testing.T) {
	t.Parallel()
	for name, allow := range map[string][]string{
		"deny only":       nil,
		"and allow rules": {"Read(./src/**)", "Edit(./src/**)", "Read(./s/**)", "Bash(cat:*)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.file("secrets/key", secret)
			r.file("src/a", "x")
			outside := filepath.Join(r.root, "outside")
			require.NoError(t, os.Mkdir(outside, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(outside, "private"), []byte(secret), 0o600))
			for link, to := range map[string]string{"src/link": outside, "s": "secrets", "k": "secrets/key", "src/new": filepath.Join(outside, "made")} {
				require.NoError(t, os.Symlink(to, r.at(link)))
			}
			o := r.options()
			o.Spawner = nil // links are followed on this machine
			o.Policy = &sdk.Policy{Default: policy.Agent, Allow: allow, Deny: []string{"Read(./secrets/**)"}}
			told := r.play(o,
				modelapi.ToolUse("Read", modelapi.Args{"file_path": r.at("src/link/private")}),
				modelapi.ToolUse("Write", modelapi.Args{"file_path": r.at("src/link/new"), "content": "x"}),
				modelapi.ToolUse("Write", modelapi.Args{"file_path": r.at("src/new"), "content": "x"}),
				modelapi.ToolUse("Read", modelapi.Args{"file_path": r.at("s/key")}),
				modelapi.ToolUse("Read", modelapi.Args{"file_path": r.at("k")}),
				modelapi.ToolUse("Write", modelapi.Args{"file_path": r.at("s/new"), "content": "x"}),
				shell("cat s/key"),
				shell("cat k"),
				shell(`cat "$PWD/secrets/key"`),
			)
			for i, text := range told {
				assert.NotContains(t, text, secret, "call %d", i)
			}
			for _, text := range told[3:] {
				assert.Contains(t, text, "denies this call by the rule Read(./secrets/**)")
			}
			assert.NoFileExists(t, filepath.Join(outside, "new"))
			assert.NoFileExists(t, filepath.Join(outside, "made"))
			assert.NoFileExists(t, r.at("secrets/new"))
		})
	}
}

// In a worktree, the session's or a subagent's, the paths of a deny rule are denied
// as well: they count from the rules' directory and from the call's.
func TestPolicyInWorktrees(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.file("secrets/key", secret)
	r.file("open", "x")
	require.NoError(t, r.git("init", "-q"))
	require.NoError(t, r.git("add", "."))
	require.NoError(t, r.git("commit", "-q", "-m", "x"))
	o := r.options()
	o.Policy = &sdk.Policy{Allow: []string{"Bash", "EnterWorktree", "Agent"}, Deny: []string{"Read(./secrets/**)"}}
	reads := []modelapi.Step{modelapi.Say(shell("pwd")), modelapi.Say(shell("cat open")), modelapi.Say(shell("cat secrets/key"))}
	r.model.Script("inner", append(reads, modelapi.Say(modelapi.Text("done")))...)
	agent := modelapi.ToolUse("Agent", modelapi.Args{"description": "x", "prompt": "Do [[scn:inner]]", "subagent_type": "general-purpose", "isolation": "worktree", "run_in_background": false})
	search := modelapi.ToolUse("ToolSearch", modelapi.Args{"query": "select:EnterWorktree"})
	steps := append([]modelapi.Step{modelapi.Say(agent), modelapi.Say(search), modelapi.Say(modelapi.ToolUse("EnterWorktree", modelapi.Args{"name": "w"}))}, reads...)
	r.model.Script("outer", append(steps, modelapi.Say(modelapi.Text("done")))...)
	r.once(o, "go [[scn:outer]]")
	for name, from := range map[string]int{"inner": 0, "outer": 3} {
		told := r.modelSaw(name).ToolResults()
		require.Len(t, told, from+3)
		assert.Contains(t, told[from].Text, "worktrees/", name)
		assert.Equal(t, "x", told[from+1].Text, name)
		assert.Contains(t, told[from+2].Text, "denies this call by the rule Read(./secrets/**)", name)
	}
}
