//go:build conformance

package conformance_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// asks are options with a server that asks the person, who answers.
func (r *rig) asks(hooks ...sdk.Hook) *sdk.Options {
	r.model.Script("elicit", modelapi.Say(modelapi.ToolUse("mcp__asking__form", modelapi.Args{})), modelapi.Say(modelapi.Text("Asked.")))
	o := r.options()
	o.MCPServers = map[string]sdk.MCPServerConfig{"asking": {
		Command: os.Args[0], Args: []string{"-test.run=^TestAskingServer$"}, Env: map[string]string{askingServer: "nested"}, AlwaysLoad: sdk.Some(true),
	}}
	o.AllowedTools = []string{"mcp__asking"}
	o.OnElicitation = func(context.Context, *protocol.ElicitationRequest) (protocol.ElicitationResult, error) {
		return sdk.AcceptElicitation(map[string]string{"name": "Zed"})
	}
	o.Hooks = hooks
	return o
}

func TestNotificationHook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	noted := make(chan *protocol.NotificationInput, 8)
	c := r.connect(r.asks(
		sdk.OnNotification(func(_ context.Context, in *protocol.NotificationInput) (sdk.ContextOutput, error) {
			noted <- in
			return sdk.ContextOutput{}, nil
		}, sdk.Match("elicitation_response")),
		sdk.OnNotification(func(_ context.Context, in *protocol.NotificationInput) (sdk.ContextOutput, error) {
			t.Errorf("called for %s", in.NotificationType)
			return sdk.ContextOutput{}, nil
		}, sdk.Match("elicitation_complete")),
	))
	r.ask(c, "ask me [[scn:elicit]]")
	in := await(r, "the hook", noted)
	assert.Equal(t, "elicitation_response", in.NotificationType)
	assert.Equal(t, `Elicitation response for server "asking": accept`, in.Message)
	r.close(c)
}

// In auto mode the endpoint checks each call; what it flags is denied without
// anybody being asked, and a hook may let the model try again.
func TestPermissionDeniedHook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.place("made.sh", "touch made\n")
	call := func(check modelapi.Check) modelapi.Step {
		return modelapi.Always(modelapi.Reply{Blocks: []modelapi.Block{shell("sh ./made.sh")}, Check: &check})
	}
	r.model.Script("auto", call(modelapi.Check{Flagged: true, Explanation: "nobody has read the script"}), modelapi.Say(modelapi.Text("Denied.")))
	r.model.Script("again", call(modelapi.Check{}), modelapi.Say(modelapi.Text("Done.")))
	retry := false // changes between turns alone
	denied := make(chan *protocol.PermissionDeniedInput, 8)
	o := r.options()
	o.CanUseTool, o.PermissionMode = r.noAsk(), sdk.ModeAuto
	o.Env["CLAUDE_CODE_AUTO_MODE_SERVER"] = "1" // or it asks no other endpoint than the vendor's
	o.Hooks = []sdk.Hook{sdk.OnPermissionDenied(func(_ context.Context, in *protocol.PermissionDeniedInput) (sdk.PermissionDeniedOutput, error) {
		denied <- in
		return sdk.PermissionDeniedOutput{Retry: retry}, nil
	}, sdk.Match("Bash"))}
	c := r.connect(o)
	for _, retry = range []bool{false, true} {
		all, result := r.ask(c, "go [[scn:auto]]")
		in := await(r, "the hook", denied)
		assert.Equal(t, "sh ./made.sh", command(t, in.ToolInput))
		assert.Equal(t, "nobody has read the script", in.Reason)
		assert.Equal(t, r.toolResult(all).ToolUseID, in.ToolUseID)
		assert.Contains(t, r.toolResult(all).Content.Text(), "nobody has read the script")
		assert.NoFileExists(t, r.at("made"))
		assert.Len(t, result.PermissionDenials, 1)
		assert.Equal(t, retry, strings.Contains(texts(r.modelSaw("auto")), "you may retry this tool call"))
	}
	_, result := r.ask(c, "go on [[scn:again]]")
	assert.Empty(t, result.PermissionDenials)
	assert.FileExists(t, r.at("made"), "what is not flagged runs")
	r.close(c)
}

// An agent with hooks of its own for the event calls the host's as well.
func settingsHook(event, matcher string) json.RawMessage {
	return json.RawMessage(`{"hooks":{"` + event + `":[{"matcher":"` + matcher + `","hooks":[{"type":"command","command":"true"}]}]}}`)
}

func TestCwdChangedHook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.NoError(t, os.Mkdir(r.at("below"), 0o700))
	moved := make(chan *protocol.CwdChangedInput, 8)
	o := r.hooked(sdk.OnCwdChanged(func(_ context.Context, in *protocol.CwdChangedInput) (sdk.WatchPathsOutput, error) {
		moved <- in
		return sdk.WatchPathsOutput{}, nil
	}))
	o.Settings = settingsHook("CwdChanged", "")
	c := r.connect(o)
	assert.Empty(t, c.Warnings())
	r.ask(c, r.run("cd below"))
	in := await(r, "the hook", moved)
	assert.Equal(t, r.dir, in.OldCwd)
	assert.Equal(t, r.at("below"), in.NewCwd)
	r.close(c)
}

func TestFileChangedHook(t *testing.T) {
	t.Parallel()
	for name, compacted := range map[string]bool{"named in the settings": false, "named by a hook": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			changed := make(chan *protocol.FileChangedInput, 8)
			o := r.hooked(sdk.OnFileChanged(func(_ context.Context, in *protocol.FileChangedInput) (sdk.WatchPathsOutput, error) {
				changed <- in
				return sdk.WatchPathsOutput{}, nil
			}, sdk.Match("watched.txt")))
			if compacted {
				o.Hooks = append(o.Hooks, sdk.OnSessionStart(func(context.Context, *protocol.SessionStartInput) (sdk.SessionStartOutput, error) {
					return sdk.SessionStartOutput{WatchPaths: []string{r.at("watched.txt")}}, nil
				}, sdk.Match("compact")))
			} else {
				o.Settings = settingsHook("FileChanged", "watched.txt")
			}
			c := r.connect(o)
			assert.Empty(t, c.Warnings())
			r.ask(c, "hello [[scn:text]]")
			if compacted {
				r.ask(c, "/compact")
			}
			// What happens before the agent's watch is set up is missed, and
			// nothing says when it is.
			in := provoke(r, "the hook", changed, func() { r.place("watched.txt", time.Now().String()) })
			assert.Equal(t, r.at("watched.txt"), in.FilePath)
			assert.Contains(t, []string{"add", "change"}, in.Change)
			r.close(c)
		})
	}
}

// provoke does something again and again until a callback tells of it.
func provoke[T any](r *rig, what string, c <-chan T, do func()) T {
	r.t.Helper()
	again := time.NewTicker(1500 * time.Millisecond) // an agent waits for a file to settle
	defer again.Stop()
	for {
		do()
		select {
		case v := <-c:
			return v
		case <-again.C:
		case <-r.ctx.Done():
			require.Fail(r.t, "gave up waiting", "for %s: %v", what, context.Cause(r.ctx))
		}
	}
}

func TestDirectoryAddedHook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.NoError(t, os.Mkdir(r.at("below"), 0o700))
	added := make(chan *protocol.DirectoryAddedInput, 8)
	c := r.connect(r.hooked(sdk.OnDirectoryAdded(func(_ context.Context, in *protocol.DirectoryAddedInput) (sdk.HookOutput, error) {
		added <- in
		return sdk.HookOutput{}, nil
	}, sdk.Match("register_repo_root"))))
	registered, err := sdk.Call[protocol.RegisterRepoRootResponse](r.ctx, c, protocol.RegisterRepoRootRequest{Directory: r.at("below")})
	require.NoError(t, err)
	assert.Equal(t, r.at("below"), registered.Directory)
	in := await(r, "the hook", added)
	assert.Equal(t, r.at("below"), in.Directory)
	assert.Equal(t, "register_repo_root", in.Source)
	var refused *sdk.ControlError
	require.ErrorAs(t, heard(sdk.Call[any](r.ctx, c, protocol.RegisterRepoRootRequest{Directory: r.home})), &refused)
	r.close(c)
	assert.Empty(t, added)
}

// Claude Code shows the tools of its task list to some models only.
const taskTools = "CLAUDE_CODE_ENABLE_TODO_TOOLS"

func TestTaskHooks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	task := func(subject string) modelapi.Step {
		return modelapi.Say(modelapi.ToolUse("TaskCreate", modelapi.Args{"subject": subject, "description": "do " + subject}))
	}
	done := func(id string) modelapi.Step {
		return modelapi.Say(modelapi.ToolUse("TaskUpdate", modelapi.Args{"taskId": id, "status": "completed"}))
	}
	r.model.Script("tasks", modelapi.Say(modelapi.ToolUse("ToolSearch", modelapi.Args{"query": "select:TaskCreate,TaskUpdate,TaskList"})),
		task("nonsense"), task("tests"), task("docs"), done("2"), done("3"),
		modelapi.Say(modelapi.ToolUse("TaskList", modelapi.Args{})), modelapi.Say(modelapi.Text("Listed.")))
	var created, completed []string
	o := r.hooked(
		sdk.OnTaskCreated(func(_ context.Context, in *protocol.TaskCreatedInput) (sdk.BlockOutput, error) {
			created = append(created, in.TaskID+" "+in.TaskSubject+": "+in.TaskDescription)
			if in.TaskSubject == "nonsense" {
				return sdk.BlockOutput{Decision: protocol.DecisionBlock, Reason: "no nonsense"}, nil
			}
			return sdk.BlockOutput{}, nil
		}),
		sdk.OnTaskCompleted(func(_ context.Context, in *protocol.TaskCompletedInput) (sdk.BlockOutput, error) {
			completed = append(completed, in.TaskID+" "+in.TaskSubject)
			if in.TaskSubject == "tests" {
				return sdk.BlockOutput{Decision: protocol.DecisionBlock, Reason: "they fail"}, nil
			}
			return sdk.BlockOutput{}, nil
		}))
	o.Env[taskTools] = "1"
	r.once(o, "plan it [[scn:tasks]]")
	assert.Equal(t, []string{"1 nonsense: do nonsense", "2 tests: do tests", "3 docs: do docs"}, created)
	assert.Equal(t, []string{"2 tests", "3 docs"}, completed)
	told := r.modelSaw("tasks").ToolResults()
	require.Len(t, told, 7)
	assert.Contains(t, told[1].Text, "no nonsense")
	assert.Contains(t, told[4].Text, "they fail")
	assert.Equal(t, "#2 [pending] tests\n#3 [completed] docs", told[6].Text)
}

// A session becomes a member of a team by flags of its start. Members that the
// model starts exist in interactive sessions only.
func TestTeammateIdleHook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	idle := 0
	o := r.hooked(sdk.OnTeammateIdle(func(_ context.Context, in *protocol.TeammateIdleInput) (sdk.BlockOutput, error) {
		idle++
		assert.Equal(t, "mate", in.TeammateName)
		assert.Equal(t, "crew", in.TeamName)
		if idle == 1 {
			return sdk.BlockOutput{Decision: protocol.DecisionBlock, Reason: "there is more to do"}, nil
		}
		return sdk.BlockOutput{HookCommon: sdk.HookCommon{Continue: sdk.Some(false), StopReason: "enough for today"}}, nil
	}))
	o.Env["CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS"] = "1"
	o.ExtraArgs = map[string]sdk.Opt[string]{"agent-id": sdk.Some("mate@crew"), "agent-name": sdk.Some("mate"), "team-name": sdk.Some("crew")}
	_, result := r.once(o, "hello [[scn:text]]")
	assert.Equal(t, 2, idle)
	assert.Contains(t, texts(r.modelSaw("text")), "there is more to do", "it was sent back to work")
	assert.Equal(t, "stop_hook_prevented", result.TerminalReason)
}

func TestPostModelSwitchHookAddsContext(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.hooked(sdk.OnPostModelSwitch(func(_ context.Context, in *protocol.PostModelSwitchInput) (sdk.ContextOutput, error) {
		assert.Equal(t, "another", in.ToModel)
		assert.NotEmpty(t, in.FromModel)
		assert.Equal(t, "sdk", in.Source)
		return sdk.ContextOutput{AdditionalContext: "you are another"}, nil
	}))
	c := r.connect(o)
	r.ask(c, "hello [[scn:text]]")
	require.NoError(t, c.SetModel(r.ctx, "another"))
	r.ask(c, "go on [[scn:text]]")
	r.close(c)
	assert.Contains(t, texts(r.modelSaw("text")), "you are another")
}

func TestHooksThatWatch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	failed, compacted := make(chan *protocol.StopFailureInput, 8), make(chan *protocol.PostCompactInput, 8)
	c := r.connect(r.hooked(
		sdk.OnStopFailure(func(_ context.Context, in *protocol.StopFailureInput) (sdk.HookOutput, error) {
			failed <- in
			return sdk.HookOutput{}, nil
		}, sdk.Match("unknown")),
		sdk.OnPostCompact(func(_ context.Context, in *protocol.PostCompactInput) (sdk.HookOutput, error) {
			compacted <- in
			return sdk.HookOutput{}, nil
		}, sdk.Match("manual"))))
	r.ask(c, "hello [[scn:text]]")
	r.ask(c, "/compact")
	in := await(r, "the hook after the compaction", compacted)
	assert.Equal(t, "manual", in.Trigger)
	assert.NotEmpty(t, in.CompactSummary)
	r.ask(c, "no [[scn:err400]]")
	failure := await(r, "the hook after the failure", failed)
	assert.Equal(t, "unknown", failure.Error)
	assert.Contains(t, failure.LastAssistantMessage, "scripted 400")
	r.close(c)
}

// The setting that turns hooks off is about those of the settings. What the
// agent says of screens comes as a message like any other.
func TestHooksTurnedOffInTheSettings(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.hooked(pre(sdk.DenyPreToolUse("the host says no")))
	o.Settings = json.RawMessage(`{"disableAllHooks":true}`)
	all, result := r.once(o, r.touch("denied"))
	assert.NoFileExists(t, r.at("denied"))
	assert.Len(t, result.PermissionDenials, 1)
	screens := only[*protocol.UIInvalidateMessage](all)
	require.NotEmpty(t, screens)
	assert.Equal(t, "ui.render", screens[0].Event)
}

func TestWorktreeHooks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.place("file.txt", "x\n")
	require.NoError(t, r.git("init", "-q"))
	require.NoError(t, r.git("add", "."))
	require.NoError(t, r.git("commit", "-q", "-m", "x"))
	tree := filepath.Join(r.root, "tree")
	removed := make(chan string, 1)
	o := r.hooked(
		sdk.OnWorktreeCreate(func(_ context.Context, in *protocol.WorktreeCreateInput) (sdk.WorktreeCreateOutput, error) {
			assert.Equal(t, "w", in.Name)
			return sdk.WorktreeCreateOutput{WorktreePath: tree}, r.git("worktree", "add", "-q", tree)
		}),
		sdk.OnWorktreeRemove(func(_ context.Context, in *protocol.WorktreeRemoveInput) (sdk.HookOutput, error) {
			removed <- in.WorktreePath
			return sdk.HookOutput{}, r.git("worktree", "remove", tree)
		}))
	o.AllowedTools = append(o.AllowedTools, "EnterWorktree", "ExitWorktree")
	r.model.Script("tree",
		modelapi.Say(modelapi.ToolUse("ToolSearch", modelapi.Args{"query": "select:EnterWorktree,ExitWorktree"})),
		modelapi.Say(modelapi.ToolUse("EnterWorktree", modelapi.Args{"name": "w"})),
		modelapi.Say(shell("pwd")),
		modelapi.Say(modelapi.ToolUse("ExitWorktree", modelapi.Args{"action": "remove", "discard_changes": true})),
		modelapi.Say(shell("pwd")), modelapi.Say(modelapi.Text("Back.")))
	r.once(o, "go there [[scn:tree]]")
	told := r.modelSaw("tree").ToolResults()
	require.Len(t, told, 5)
	assert.Equal(t, tree, told[2].Text)
	assert.Equal(t, tree, await(r, "the hook", removed))
	assert.Equal(t, r.dir, told[4].Text)
	assert.NoDirExists(t, tree)
}
