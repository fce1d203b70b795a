//go:build conformance

package conformance_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// asker is a CanUseTool that allows everything, with updates for the next call
// if there are any, and counts.
type asker struct {
	mu    sync.Mutex
	next  []protocol.PermissionUpdate
	asked []*sdk.ToolPermissionRequest
}

func (a *asker) decide(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, r)
	result := sdk.Allow()
	result.UpdatedPermissions, a.next = a.next, nil
	return result, nil
}

// with gives the next answer its updates.
func (a *asker) with(updates ...protocol.PermissionUpdate) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next = updates
}

// since is how many questions there were since the last time.
func (a *asker) since() []*sdk.ToolPermissionRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := a.asked
	a.asked = nil
	return asked
}

func rules(behavior protocol.PermissionBehavior, kind protocol.PermissionUpdateType, contents ...string) protocol.PermissionUpdate {
	u := protocol.PermissionUpdate{Type: kind, Behavior: behavior} // a session's, without a destination
	for _, content := range contents {
		u.Rules = append(u.Rules, protocol.PermissionRule{ToolName: "Bash", RuleContent: content})
	}
	return u
}

// run scripts a turn with one shell command and returns the prompt.
func (r *rig) run(command string) string {
	r.model.Script("run", modelapi.Say(shell(command)), modelapi.Say(modelapi.Text("Run done.")))
	return "run something [[scn:run]]"
}

// write scripts a turn that writes a file anywhere.
func (r *rig) write(path string) string {
	r.model.Script("writeto", modelapi.Say(modelapi.ToolUse("Write", modelapi.Args{"file_path": path, "content": "x"})), modelapi.Say(modelapi.Text("Write done.")))
	return "write something [[scn:writeto]]"
}

func TestPermissionRulesChangeWithAnAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := &asker{}
	o := r.options()
	o.CanUseTool = a.decide
	c := r.connect(o)

	a.with(rules(protocol.BehaviorAllow, protocol.AddRules, "touch *"))
	r.ask(c, r.run("touch one"))
	assert.Len(t, a.since(), 1, "the first is asked about")
	r.ask(c, r.run("touch two"))
	assert.Empty(t, a.since(), "the rule allows the second")
	assert.FileExists(t, r.at("two"))

	a.with(rules(protocol.BehaviorAllow, protocol.ReplaceRules, "mkdir *"))
	r.ask(c, r.run("chmod 600 one"))
	assert.Len(t, a.since(), 1)
	r.ask(c, r.run("mkdir dir"))
	assert.Empty(t, a.since(), "the rule that came in place")
	r.ask(c, r.run("touch three"))
	assert.Len(t, a.since(), 1, "the rule that is gone")

	a.with(rules(protocol.BehaviorAllow, protocol.RemoveRules, "mkdir *"))
	r.ask(c, r.run("touch four"))
	assert.Len(t, a.since(), 1)
	r.ask(c, r.run("mkdir again"))
	assert.Len(t, a.since(), 1, "no rule is left")

	a.with(rules(protocol.BehaviorDeny, protocol.AddRules, "touch *"))
	r.ask(c, r.run("touch five"))
	assert.Len(t, a.since(), 1)
	_, result := r.ask(c, r.run("touch six"))
	assert.Empty(t, a.since(), "a deny rule does not ask")
	assert.NoFileExists(t, r.at("six"))
	assert.Len(t, result.PermissionDenials, 1)
	r.close(c)
}

func TestPermissionForDirectories(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	outside := filepath.Join(r.root, "outside")
	require.NoError(t, os.Mkdir(outside, 0o700))
	a := &asker{}
	o := r.options()
	o.CanUseTool, o.PermissionMode = a.decide, sdk.ModeAcceptEdits
	c := r.connect(o)
	directories := func(kind protocol.PermissionUpdateType) protocol.PermissionUpdate {
		return protocol.PermissionUpdate{Type: kind, Directories: []string{outside}, Destination: protocol.ToSession}
	}

	a.with(directories(protocol.AddDirectories))
	r.ask(c, r.write(filepath.Join(outside, "one")))
	asked := a.since()
	require.Len(t, asked, 1, "edits outside of the directories are asked about")
	assert.Equal(t, "workingDir", asked[0].DecisionReasonType)
	r.ask(c, r.write(filepath.Join(outside, "two")))
	assert.Empty(t, a.since())
	assert.FileExists(t, filepath.Join(outside, "two"))

	a.with(directories(protocol.RemoveDirectories))
	r.ask(c, r.run("sh -c true"))
	assert.Len(t, a.since(), 1)
	r.ask(c, r.write(filepath.Join(outside, "three")))
	assert.Len(t, a.since(), 1, "no longer a working directory")
	r.close(c)
}

// Suggestions can be taken as they are; the ones for good go to a file.
func TestPermissionSuggestions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.CanUseTool = func(_ context.Context, ask *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		assert.Equal(t, "Bash", ask.DisplayName)
		assert.Equal(t, "run", ask.Description)
		assert.Equal(t, r.at("one"), ask.BlockedPath)
		assert.Equal(t, []protocol.PermissionUpdate{
			{Type: protocol.AddRules, Rules: []protocol.PermissionRule{{ToolName: "Bash", RuleContent: "touch one *"}}, Behavior: protocol.BehaviorAllow, Destination: protocol.ToLocalSettings},
			{Type: protocol.AddDirectories, Directories: []string{r.dir}, Destination: protocol.ToSession},
			{Type: protocol.SetMode, Mode: sdk.ModeAcceptEdits, Destination: protocol.ToSession},
		}, ask.Suggestions())
		return sdk.AllowAlways(ask), nil
	}
	c := r.connect(o)
	r.ask(c, r.run("touch one"))
	r.close(c)
	raw, err := os.ReadFile(r.at(".claude/settings.local.json"))
	require.NoError(t, err)
	var settings struct {
		Permissions struct{ Allow []string }
	}
	require.NoError(t, json.Unmarshal(raw, &settings))
	assert.Equal(t, []string{"Bash(touch one *)"}, settings.Permissions.Allow)
}

// An answer says where its rules are kept.
func TestPermissionRulesAreKept(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := &asker{}
	o := r.options()
	o.CanUseTool = a.decide
	c := r.connect(o)
	for where, file := range map[protocol.PermissionDestination]string{
		protocol.ToUserSettings:    filepath.Join(r.home, ".claude", "settings.json"),
		protocol.ToProjectSettings: r.at(".claude/settings.json"),
	} {
		name := "made-" + string(where)
		update := rules(protocol.BehaviorAllow, protocol.AddRules, "touch "+name)
		update.Destination = where
		a.with(update)
		r.ask(c, r.run("touch "+name))
		assert.Len(t, a.since(), 1)
		kept, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Contains(t, string(kept), "Bash(touch "+name+")")
	}
	r.close(c)
}
