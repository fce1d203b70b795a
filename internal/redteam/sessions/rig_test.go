package sessions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance"
	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// rig is a real Claude Code, offline, with a scripted model.
type rig struct {
	t               *testing.T
	ctx             context.Context
	root, home, dir string
	model           *modelapi.Server
	rt              *runtime.Runtime
	mu              sync.Mutex
	events          []string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	cli := os.Getenv("TROUPE_CLAUDE_CLI")
	if cli == "" {
		t.Skip("TROUPE_CLAUDE_CLI is not set")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	r := &rig{t: t, root: root, home: filepath.Join(root, "home"), dir: filepath.Join(root, "work")}
	require.NoError(t, os.Mkdir(r.home, 0o700))
	require.NoError(t, os.Mkdir(r.dir, 0o700))
	r.model, err = modelapi.Start(modelapi.Config{WorkDir: r.dir})
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.model.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	r.ctx = ctx
	r.rt, err = runtime.New(runtime.Config{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = r.rt.Shutdown(ctx)
	})
	return r
}

func (r *rig) at(name string) string { return filepath.Join(r.dir, name) }

func (r *rig) write(name, text string) {
	r.t.Helper()
	require.NoError(r.t, os.MkdirAll(filepath.Dir(r.at(name)), 0o755))
	require.NoError(r.t, os.WriteFile(r.at(name), []byte(text), 0o644))
}

func (r *rig) options() *sdk.Options {
	env := map[string]string{}
	for _, kv := range conformance.OfflineEnv(r.model.URL(), r.home) {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	return &sdk.Options{
		Backend: sdk.Claude(sdk.ClaudeConfig{Path: os.Getenv("TROUPE_CLAUDE_CLI")}),
		Runtime: r.rt, Cwd: r.dir, CleanEnv: true, Env: env, SettingSources: sdk.None(), SystemPrompt: sdk.PromptText(""),
		OnEvent: func(e sdk.EventRecord) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.events = append(r.events, fmt.Sprint(e.Event))
		},
	}
}

// outcome is what became of one tool call.
type outcome struct {
	id    string
	text  string
	error bool
}

// play runs one turn in which the model makes the calls, a step for each, and
// returns what it was told of each.
func (r *rig) play(o *sdk.Options, steps ...[]modelapi.Block) ([]outcome, *sdk.ResultMessage) {
	r.t.Helper()
	c := sdk.NewClient(o)
	require.NoError(r.t, c.Connect(r.ctx))
	out, res := r.turn(c, steps...)
	require.NoError(r.t, c.Close(r.ctx))
	return out, res
}

var turns int

func (r *rig) turn(c *sdk.Client, steps ...[]modelapi.Block) ([]outcome, *sdk.ResultMessage) {
	r.t.Helper()
	r.mu.Lock()
	turns++
	name := fmt.Sprintf("rt%d", turns)
	r.mu.Unlock()
	var script []modelapi.Step
	for _, blocks := range steps {
		script = append(script, modelapi.Say(blocks...))
	}
	script = append(script, modelapi.Say(modelapi.Text("done")))
	r.model.Script(name, script...)
	turn, err := c.Send(r.ctx, sdk.UserText("go [[scn:"+name+"]]"))
	require.NoError(r.t, err)
	all, err := sdk.Collect(turn.Messages(r.ctx))
	require.NoError(r.t, err)
	var out []outcome
	for _, m := range all {
		for _, t := range sdk.ToolResults(m) {
			out = append(out, outcome{t.ToolUseID, t.Content.Text(), t.IsError})
		}
	}
	res, _ := all[len(all)-1].(*sdk.ResultMessage)
	return out, res
}

func one(b ...modelapi.Block) []modelapi.Block { return b }

func shell(command string) modelapi.Block {
	return modelapi.ToolUse("Bash", modelapi.Args{"command": command, "description": "run"})
}

func bashCall(command string) policy.Call {
	input, _ := json.Marshal(map[string]string{"command": command})
	return policy.Call{Tool: "Bash", Input: input}
}

func compile(t testing.TB, r policy.Rules) *policy.Policy {
	t.Helper()
	if r.Cwd == "" {
		r.Cwd = "/repo"
	}
	if r.Home == "" {
		r.Home = "/home/u"
	}
	p, err := policy.Compile(r)
	require.NoError(t, err)
	return p
}
