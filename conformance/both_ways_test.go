//go:build conformance

package conformance_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/transcript"
	"github.com/agent-troupe/troupe/transcript/store"
)

// embedded are options of the embedded agent, with the model of the rig.
func (r *rig) embedded() *sdk.Options {
	return &sdk.Options{
		Backend: embedded.New(embedded.Config{
			Model: model.NewAnthropic(model.AnthropicConfig{Config: model.Config{URL: r.model.URL() + "/v1"}}),
			Name:  "claude-sonnet-4-5", Dir: filepath.Join(r.root, "own"),
		}),
		Runtime: r.rt, Cwd: r.dir, OnEvent: r.record,
	}
}

// lived leaves a session behind that has a call, a compaction, a sub-agent and a last answer.
func (r *rig) lived(o *sdk.Options) (id string) {
	r.t.Helper()
	o.AllowedTools = []string{"Bash", "Agent"}
	// The summary is a step of the same scenario.
	noted := modelapi.Say(modelapi.Text("A number was noted."))
	r.model.Script("number", modelapi.Say(shell("echo 4711 > number")), noted, noted)
	c := r.connect(o)
	for _, prompt := range []string{"my number is 4711 [[scn:number]]", "/compact", "delegate [[scn:agentfg]]", "my colour is red [[scn:echo red]]"} {
		_, result := r.ask(c, prompt)
		require.False(r.t, result.Failed(), "%s: %s", prompt, result.Result)
		id = result.SessionID
	}
	r.close(c)
	require.FileExists(r.t, r.at("number"))
	return id
}

// goesOn asks a fork of the session for more.
func (r *rig) goesOn(o *sdk.Options, kept *store.Dir, id string) {
	r.t.Helper()
	o.SessionStore, o.Resume, o.ForkSession = kept, id, true
	o.AllowedTools = []string{"Bash"}
	r.model.Script("more", modelapi.Say(shell("cat number")), modelapi.Say(modelapi.Text("It was 4711.")))
	_, result := r.once(o, "what was it? [[scn:more]]")
	assert.Equal(r.t, "It was 4711.", result.Result)
	assert.NotEqual(r.t, id, result.SessionID)
	request := r.modelSaw("more")
	history := texts(request)
	for _, part := range []string{"A number was noted.", "delegate", "my colour is red", "assistant: red", "what was it?"} {
		assert.Contains(r.t, history, part)
	}
	assert.NotContains(r.t, string(request.Body), "echo 4711", "the summary stands in its place")
	answered := map[string]bool{}
	for _, m := range request.Messages {
		for _, b := range m.Content {
			if b.Type == "tool_result" {
				answered[b.ToolUseID] = true
			}
		}
	}
	for _, m := range request.Messages {
		for _, b := range m.Content {
			assert.True(r.t, b.Type != "tool_use" || answered[b.ToolUseID], "each call has a result")
		}
	}
	assert.Empty(r.t, r.lost())
}

// The other agent continues a session, as a fork, with its calls, its sub-agents and its
// compaction. The files of the first agent stay as they are.
func TestASessionGoesOnInTheOtherAgent(t *testing.T) {
	t.Parallel()
	t.Run("Claude Code's", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		id := r.lived(r.options())
		file := filepath.Join(r.home, ".claude", "projects", transcript.FolderName(transcript.Claude, r.dir), id+".jsonl")
		before, err := os.ReadFile(file)
		require.NoError(t, err)
		local := &transcript.Sessions{Vendor: transcript.Claude, Root: filepath.Join(r.home, ".claude"), Dir: r.dir}
		kept := store.NewDir(filepath.Join(r.root, "kept"))
		done, err := local.Import(r.ctx, id, kept, transcript.ImportOptions{})
		require.NoError(t, err)
		assert.Zero(t, done.Damaged)
		r.goesOn(r.embedded(), kept, id)
		after, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, string(before), string(after))
	})
	t.Run("the embedded agent's", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		kept := store.NewDir(filepath.Join(r.root, "kept"))
		o := r.embedded()
		o.SessionStore = kept
		id := r.lived(o)
		assert.Empty(t, r.lost())
		o = r.options()
		o.Spawner = nil // the agent needs the private directory, on this machine
		o.Env["HOME"] = filepath.Join(r.root, "empty")
		require.NoError(t, os.Mkdir(o.Env["HOME"], 0o700))
		delete(o.Env, "CLAUDE_CONFIG_DIR")
		r.goesOn(o, kept, id)
	})
}
