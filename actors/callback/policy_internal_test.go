package callback

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

func TestResolveLinks(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(root, "real", "deep"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "real", "file"), nil, 0o600))
	for link, to := range map[string]string{
		"dir": "real", "abs": filepath.Join(root, "real"), "file": "real/file", "chain": "dir/deep", "nowhere": "real/new/x", "up": "real/deep/../file", "loop": "loop2", "loop2": "loop", "out": "../elsewhere",
	} {
		require.NoError(t, os.Symlink(to, filepath.Join(root, link)))
	}
	for path, want := range map[string]string{
		"real/file": "real/file", "dir/file": "real/file", "abs/file": "real/file", "file": "real/file", "chain": "real/deep", "chain/new/x": "real/deep/new/x",
		"dir/new": "real/new", "new": "new", "new/x/y": "new/x/y", "nowhere": "real/new/x", "nowhere/y": "real/new/x/y", "up": "real/file",
		"real/file/x": "real/file/x", "out": "../elsewhere", "dir/" + strings.Repeat("n", 300): "real/" + strings.Repeat("n", 300),
	} {
		got, err := resolveLinks(filepath.ToSlash(filepath.Join(root, path)))
		require.NoError(t, err, path)
		assert.Equal(t, slashed(filepath.Join(root, want)), got, path)
	}
	for _, path := range []string{"loop", "loop/x", "real/\x00"} {
		_, err := resolveLinks(filepath.ToSlash(filepath.Join(root, path)))
		assert.Error(t, err, path)
	}
	got, err := resolveLinks("/")
	require.NoError(t, err)
	assert.Equal(t, "/", got)
}

// keeper is what a session with the policy decides by.
func keeper(t *testing.T, o session.Options) *gatekeeper {
	t.Helper()
	compiled, problems := compilePolicy(&o)
	require.Empty(t, problems)
	return &gatekeeper{policy: compiled, ask: o.CanUseTool}
}

func allowed() protocol.PermissionResult {
	return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}
}

func bashInput(command string) json.RawMessage {
	raw, _ := json.Marshal(map[string]string{"command": command})
	return raw
}

// The callback's side judges a call in the directory that the hook saw for it.
func TestPolicyKnowsWhereACallRuns(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	asked := 0
	g := keeper(t, session.Options{Cwd: dir, Policy: &policy.Rules{Allow: []string{"Bash(make:*)", "Bash(cat:*)"}, Deny: []string{"Read(./a/secrets/**)"}}, CanUseTool: func(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
		asked++
		return allowed(), nil
	}})
	sees := func(id, cwd, command string) ruling {
		out, err := g.verdict(t.Context(), &protocol.PreToolUseInput{HookBase: protocol.HookBase{Cwd: cwd, PermissionMode: protocol.ModeDefault}, ToolName: "Bash", ToolInput: bashInput(command), ToolUseID: id})
		require.NoError(t, err)
		return out
	}
	decides := func(id, command string) (protocol.PermissionResult, int) {
		before := asked
		result, err := g.decide(t.Context(), &protocol.CanUseToolRequest{ToolName: "Bash", Input: bashInput(command), ToolUseID: id})
		require.NoError(t, err)
		return result, asked - before
	}

	assert.Equal(t, protocol.HookDeny, sees("1", filepath.Join(dir, "a"), "cat secrets/key").PermissionDecision)
	result, n := decides("1", "cat secrets/key")
	assert.False(t, result.Allowed())
	assert.Zero(t, n)

	assert.Empty(t, sees("2", dir, "make all").PermissionDecision)
	result, n = decides("2", "make all")
	assert.True(t, result.Allowed())
	assert.Zero(t, n, "the rule allows it in its own directory")

	assert.Equal(t, protocol.HookAsk, sees("3", filepath.Join(dir, "a"), "make all").PermissionDecision)
	_, n = decides("3", "make all")
	assert.Equal(t, 1, n, "elsewhere it asks")

	_, n = decides("never seen", "cat secrets/key")
	assert.Equal(t, 1, n, "without a directory it could be the denied file")
	_, n = decides("", "make all")
	assert.Equal(t, 1, n)

	for i := range 100 {
		sees("x"+strconv.Itoa(i), dir, "make all")
	}
	_, n = decides("2", "make all")
	assert.Equal(t, 1, n, "the directory of an old call is not known any more")
	_, n = decides("x99", "make all")
	assert.Zero(t, n)
}

// A call that is too much work is denied by the hook and by the callback's side,
// and the callback is not asked.
func TestPolicyDeniesWhatTakesTooMuchWork(t *testing.T) {
	t.Parallel()
	rules := &policy.Rules{Allow: []string{"Bash"}}
	for i := range 400 {
		rules.Deny = append(rules.Deny, "Read(**/*.x"+strconv.Itoa(i)+")", "Edit(//etc/**/y"+strconv.Itoa(i)+")")
	}
	g := keeper(t, session.Options{Cwd: t.TempDir(), Policy: rules, CanUseTool: func(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
		t.Error("the callback was asked")
		return allowed(), nil
	}})
	var command strings.Builder
	command.WriteString("cat ")
	for i := range 2000 {
		command.WriteString("f" + strconv.Itoa(i) + " ")
	}
	in := bashInput(command.String())
	out, err := g.verdict(t.Context(), &protocol.PreToolUseInput{HookBase: protocol.HookBase{Cwd: "/"}, ToolName: "Bash", ToolInput: in, ToolUseID: "1"})
	require.NoError(t, err)
	assert.Equal(t, protocol.HookDeny, out.PermissionDecision)
	assert.Contains(t, out.PermissionDecisionReason, "within the work that a decision may take")
	result, err := g.decide(t.Context(), &protocol.CanUseToolRequest{ToolName: "Bash", Input: in, ToolUseID: "1"})
	require.NoError(t, err)
	assert.False(t, result.Allowed())
	assert.Contains(t, result.Message, "within the work that a decision may take")
}

// A link out of the project is denied by what it stands for, and a question that
// the agent asks because of one is not answered by a rule about the project.
func TestPolicyAndLinks(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	dir := filepath.Join(root, "work")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "secrets"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "src"), 0o700))
	require.NoError(t, os.Symlink("secrets", filepath.Join(dir, "s")))
	require.NoError(t, os.Symlink(root, filepath.Join(dir, "src", "out")))
	require.NoError(t, os.Symlink(dir, filepath.Join(root, "link")))
	require.NoError(t, os.Symlink("../../gone", filepath.Join(dir, "src", "dangling")))
	for _, cwd := range []string{dir, filepath.Join(root, "link")} {
		g := keeper(t, session.Options{Cwd: cwd, Policy: &policy.Rules{Allow: []string{"Read(./src/**)", "Edit(./src/**)", "Read(~/x/**)", "Bash"}, Deny: []string{"Read(./secrets/**)"}, Home: "/home/u"}})
		for _, c := range []struct {
			tool, key, value, reason string
			want                     protocol.PermissionBehavior
		}{
			{"Read", "file_path", dir + "/src/a", "", protocol.BehaviorAllow},
			{"Write", "file_path", dir + "/src/new/a", "", protocol.BehaviorAllow},
			{"Read", "file_path", dir + "/s/key", "", protocol.BehaviorDeny},
			{"Write", "file_path", dir + "/s/new", "", protocol.BehaviorDeny},
			{"Bash", "command", "cat s/key", "", protocol.BehaviorDeny},
			{"Bash", "command", `cat "$PWD/secrets/key"`, "", protocol.BehaviorDeny},
			{"Bash", "command", "cat src/a", "", protocol.BehaviorAllow},
			{"Read", "file_path", dir + "/src/out/private", "", protocol.BehaviorDeny}, // nobody to ask
			{"Write", "file_path", dir + "/src/dangling", "", protocol.BehaviorDeny},
			{"Read", "file_path", dir + "/src/a", "workingDir", protocol.BehaviorDeny},
			{"Read", "file_path", "/home/u/x/a", "workingDir", protocol.BehaviorAllow},
			{"Bash", "command", "cat /etc/x", "workingDir", protocol.BehaviorAllow},
		} {
			in, _ := json.Marshal(map[string]string{c.key: c.value})
			g.calls.note("id", slashed(dir)) // the agent's own name for it
			result, err := g.decide(t.Context(), &protocol.CanUseToolRequest{ToolName: c.tool, Input: in, ToolUseID: "id", DecisionReasonType: c.reason})
			require.NoError(t, err)
			assert.Equal(t, c.want == protocol.BehaviorAllow, result.Allowed(), "%s %s %s in %s: %s", c.tool, c.value, c.reason, cwd, result.Message)
		}
	}
}

// A path that the agent asks about outside of its directories is not allowed by
// a rule about the command, one in an additional directory is.
func TestPolicyHearsOfBlockedPaths(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	more, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	asked := 0
	g := keeper(t, session.Options{Cwd: dir, AdditionalDirectories: []string{more, "../sibling"}, Policy: &policy.Rules{Allow: []string{"Bash(touch:*)", "Bash(say:*)"}}, CanUseTool: func(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
		asked++
		return denied("no"), nil
	}})
	for _, c := range []struct {
		command, blocked string
		allowed          bool
	}{
		{"say x", filepath.Join(dir, "x"), true},
		{"say x", filepath.Join(more, "x"), true},
		{"say x", filepath.Join(filepath.Dir(dir), "sibling", "x"), true},
		{"say x", filepath.Join(filepath.Dir(dir), "x"), false},
		{"say x", "/etc/hostname", false},
		{"touch /etc/x", "", false},
		{"touch " + filepath.ToSlash(filepath.Join(more, "x")), "", true},
		{"touch ../x", filepath.Join(filepath.Dir(dir), "x"), false},
	} {
		before := asked
		g.calls.note("1", dir)
		result, err := g.decide(t.Context(), &protocol.CanUseToolRequest{ToolName: "Bash", Input: bashInput(c.command), ToolUseID: "1", BlockedPath: c.blocked})
		require.NoError(t, err)
		assert.Equal(t, c.allowed, result.Allowed(), "%+v", c)
		assert.Equal(t, c.allowed, asked == before, "%+v", c)
	}
	// In the modes that ask nobody the hook knows as well.
	out, err := g.verdict(t.Context(), &protocol.PreToolUseInput{HookBase: protocol.HookBase{Cwd: dir, PermissionMode: protocol.ModeBypassPermissions}, ToolName: "Bash", ToolInput: bashInput("touch /etc/x")})
	require.NoError(t, err)
	assert.Equal(t, protocol.HookDeny, out.PermissionDecision)
	assert.Equal(t, "no", out.PermissionDecisionReason)
}

// Where the agent wants a person, a rule that allows is not enough.
func TestPolicyDoesNotStandInForAPerson(t *testing.T) {
	t.Parallel()
	manual := false
	for name, tc := range map[string]struct {
		ask    protocol.CanUseToolRequest
		allows bool
	}{
		"no reason":            {protocol.CanUseToolRequest{}, true},
		"outside":              {protocol.CanUseToolRequest{DecisionReasonType: "workingDir"}, true},
		"a question":           {protocol.CanUseToolRequest{RequiresUserInteraction: true}, false},
		"an ask rule":          {protocol.CanUseToolRequest{DecisionReasonType: "rule"}, false},
		"a policy for a tool":  {protocol.CanUseToolRequest{DecisionReasonType: "rule", ServerPolicyAskOnly: true}, true},
		"an ask rule besides":  {protocol.CanUseToolRequest{MatchedAskRule: &protocol.MatchedAskRule{}}, false},
		"a hook":               {protocol.CanUseToolRequest{DecisionReasonType: "hook"}, false},
		"a mode":               {protocol.CanUseToolRequest{DecisionReasonType: "mode"}, false},
		"a safety check":       {protocol.CanUseToolRequest{DecisionReasonType: "safetyCheck"}, false},
		"a safety check below": {protocol.CanUseToolRequest{DecisionReasonType: "subcommandResults", ClassifierApprovable: &manual}, false},
		"what comes next":      {protocol.CanUseToolRequest{DecisionReasonType: "moonPhase"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.ask.ToolName, tc.ask.Input = "Read", json.RawMessage(`{}`)
			for _, behind := range []session.CanUseTool{nil, func(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
				return denied("a person says no"), nil
			}} {
				decide := keeper(t, session.Options{Policy: &policy.Rules{Allow: []string{"Read"}}, CanUseTool: behind}).decide
				result, err := decide(t.Context(), &tc.ask)
				require.NoError(t, err)
				assert.Equal(t, tc.allows, result.Allowed())
			}
		})
	}
}

// The agent says no more of an ask rule about a part of a command.
func TestAskRulesAboutPartsWantAPerson(t *testing.T) {
	t.Parallel()
	r := &protocol.CanUseToolRequest{DecisionReasonType: "subcommandResults"}
	assert.True(t, wantsPerson(r))
	r.PermissionSuggestions = []protocol.PermissionUpdate{{Type: protocol.AddRules}}
	assert.False(t, wantsPerson(r))
}

// An allow with an input that is not a JSON object denies, also when a user hook
// has changed the call.
func TestPolicyRefusesAnInputThatIsNoObject(t *testing.T) {
	t.Parallel()
	for _, given := range []string{"", "[]", "null", "{"} {
		o := session.Options{
			Policy: &policy.Rules{}, CanUseTool: func(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
				return protocol.PermissionResult{Behavior: protocol.BehaviorAllow, UpdatedInput: json.RawMessage(given)}, nil
			},
			Hooks: []session.Hook{{Event: protocol.HookPreToolUse, Func: func(context.Context, *session.HookCall) (json.RawMessage, error) {
				return json.RawMessage(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"make"}}}`), nil
			}}},
		}
		_, err := EnforcePolicy(&o, nil)
		require.NoError(t, err)
		require.Len(t, o.Hooks, 2)
		for _, h := range o.Hooks {
			_, err := h.Func(t.Context(), &session.HookCall{Input: json.RawMessage(`{"tool_name":"Bash","tool_input":{"command":"date"},"permission_mode":"plan"}`)})
			assert.ErrorContains(t, err, "UpdatedInput is not a JSON object", given)
		}
	}
}
