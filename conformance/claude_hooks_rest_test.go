//go:build conformance

package conformance_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// place makes a file in the agent's working directory.
func (r *rig) place(name, content string) {
	r.t.Helper()
	require.NoError(r.t, os.MkdirAll(filepath.Dir(r.at(name)), 0o700))
	require.NoError(r.t, os.WriteFile(r.at(name), []byte(content), 0o600))
}

func (r *rig) git(args ...string) error {
	cmd := exec.CommandContext(r.ctx, "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	cmd.Dir, cmd.Env = r.dir, append(os.Environ(), "HOME="+r.home)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Logf("git %v: %s", args, out)
	}
	return err
}

func TestPromptExpansionHook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.place(".claude/commands/greet.md", "Say hello to $ARGUMENTS [[scn:text]]\n")
	var says sdk.UserPromptExpansionOutput // changes between turns alone
	o := r.hooked(sdk.OnUserPromptExpansion(func(_ context.Context, in *protocol.UserPromptExpansionInput) (sdk.UserPromptExpansionOutput, error) {
		assert.Equal(t, "greet", in.CommandName)
		assert.Equal(t, "everybody", in.CommandArgs)
		return says, nil
	}))
	o.SettingSources = sdk.Only("project")
	c := r.connect(o)
	for _, suppress := range []bool{false, true} {
		says = sdk.UserPromptExpansionOutput{Decision: protocol.DecisionBlock, Reason: "no greetings", SuppressOriginalPrompt: suppress}
		_, result := r.ask(c, "/greet everybody")
		assert.Contains(t, result.Result, "no greetings")
		assert.NotEqual(t, suppress, strings.Contains(result.Result, "/greet everybody"), "the user is shown the prompt unless it is suppressed")
		assert.Zero(t, r.asked(), "the model was not asked")
	}
	says = sdk.UserPromptExpansionOutput{AdditionalContext: "they are tired"}
	r.ask(c, "/greet everybody")
	r.close(c)
	seen := texts(r.modelSaw("text"))
	assert.Contains(t, seen, "Say hello to everybody")
	assert.Contains(t, seen, "they are tired")
}

func TestConfigChangeHook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.place(".claude/settings.json", `{}`)
	changed := make(chan string, 8)
	o := r.hooked(sdk.OnConfigChange(func(_ context.Context, in *protocol.ConfigChangeInput) (sdk.BlockOutput, error) {
		assert.Equal(t, "project_settings", in.Source)
		changed <- in.FilePath
		return sdk.BlockOutput{Decision: protocol.DecisionBlock, Reason: "not while we work"}, nil
	}))
	o.SettingSources, o.AllowedTools = sdk.Only("project"), nil
	o.CanUseTool = r.denyAll("asked all the same")
	c := r.connect(o)
	r.ask(c, "hello [[scn:text]]")
	rules := `{"permissions":{"allow":["Bash"]}}`
	assert.Equal(t, r.at(".claude/settings.json"), provoke(r, "the hook", changed, func() { // as of other files
		rules += "\n"
		r.place(".claude/settings.json", rules)
	}))
	all, _ := r.ask(c, r.touch("denied"))
	assert.Equal(t, "asked all the same", r.toolResult(all).Content.Text(), "the new rule did not take effect")
	r.close(c)
}

func TestInstructionsHook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.place("CLAUDE.md", "Be brief.\n")
	r.place("below/CLAUDE.md", "Be very brief.\n")
	r.place("below/file.txt", "x\n")
	loaded := make(chan *protocol.InstructionsLoadedInput, 8)
	o := r.hooked(sdk.OnInstructionsLoaded(func(_ context.Context, in *protocol.InstructionsLoadedInput) (sdk.HookOutput, error) {
		loaded <- in
		return sdk.HookOutput{}, nil
	}))
	o.SettingSources = sdk.Only("project")
	c := r.connect(o)
	r.ask(c, r.calls(modelapi.ToolUse("Read", modelapi.Args{"file_path": r.at("below/file.txt")})))
	in := await(r, "the hook", loaded)
	assert.Equal(t, "CLAUDE.md", filepath.Base(in.FilePath))
	assert.NotEmpty(t, in.LoadReason)
	r.close(c)
}

func TestElicitationHooks(t *testing.T) {
	t.Parallel()
	type elicit = func(context.Context, *protocol.ElicitationInput) (sdk.ElicitationOutput, error)
	for name, tc := range map[string]struct {
		hook   elicit
		result func(context.Context, *protocol.ElicitationResultInput) (sdk.ElicitationOutput, error)
		told   string
		failed int
	}{
		"turns it down": {
			hook: func(_ context.Context, in *protocol.ElicitationInput) (sdk.ElicitationOutput, error) {
				assert.Equal(t, "asking", in.MCPServerName)
				return sdk.ElicitationOutput{Action: "decline"}, nil
			},
			told: `{"action":"decline"}`,
		},
		"cancels it": {
			hook: func(context.Context, *protocol.ElicitationInput) (sdk.ElicitationOutput, error) {
				return sdk.ElicitationOutput{Action: "cancel"}, nil
			},
			told: `{"action":"decline"}`, // all that a callback can say
		},
		"turns the answer down": {
			result: func(_ context.Context, in *protocol.ElicitationResultInput) (sdk.ElicitationOutput, error) {
				assert.Equal(t, "accept", in.Action)
				return sdk.ElicitationOutput{Action: "decline"}, nil
			},
			told: `{"action":"decline"}`,
		},
		"fails after the answer": {
			result: func(context.Context, *protocol.ElicitationResultInput) (sdk.ElicitationOutput, error) {
				panic("secret trouble")
			},
			told: `{"action":"decline"}`, failed: 1,
		},
		"fails": {
			hook: func(context.Context, *protocol.ElicitationInput) (sdk.ElicitationOutput, error) {
				return sdk.ElicitationOutput{Action: "accept"}, errors.New("secret trouble")
			},
			told: `{"action":"decline"}`, failed: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			o := r.asks()
			o.OnElicitation = func(context.Context, *protocol.ElicitationRequest) (protocol.ElicitationResult, error) {
				assert.Nil(t, tc.hook, "the person was asked")
				return sdk.AcceptElicitation(map[string]string{"name": "Zed"})
			}
			if tc.hook != nil {
				o.Hooks = append(o.Hooks, sdk.OnElicitationHook(tc.hook))
			}
			if tc.result != nil {
				o.Hooks = append(o.Hooks, sdk.OnElicitationResult(tc.result))
			}
			all, _ := r.once(o, "ask me [[scn:elicit]]")
			assert.JSONEq(t, tc.told, r.toolResult(all).Content.Text())
			assert.Len(t, r.failed(), tc.failed)
		})
	}
}
