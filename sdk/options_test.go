package sdk_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// refused are the options that Connect complains of, in order.
func refused(t *testing.T, o *sdk.Options) []string {
	t.Helper()
	c := sdk.NewClient(o)
	err := c.Connect(t.Context())
	require.Error(t, err)
	require.NoError(t, c.Close(context.Background()))
	var names []string
	for _, e := range sdk.ConfigErrors(err) {
		names = append(names, e.Option)
		assert.NotEmpty(t, e.Problem, e.Option)
	}
	require.NotEmpty(t, names, "not a ConfigError: %v", err)
	return names
}

func TestAllMistakesAreToldAtOnce(t *testing.T) {
	t.Parallel()
	assert.ElementsMatch(t,
		[]string{
			"Hooks[0].Match", "Hooks[1]", "Hooks[2]", "PermissionTimeout", "MaxLine", "Graces", "Limits",
			"SDKMCPServers[0]", "SDKMCPServers[1]", "SettingsPath", "TaskBudget", "Goals", "PermissionMode",
		},
		append(refused(t, &sdk.Options{
			Backend: scripted.New(),
			Hooks: []sdk.Hook{
				sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
					return sdk.PreToolUseOutput{}, nil
				}, sdk.Match("Bash(")),
				sdk.OnStop(nil),
				{},
			},
			PermissionTimeout: -1, MaxLine: -1, Graces: session.Graces{EOF: -1}, Limits: session.Limits{Bytes: -1},
			SDKMCPServers:  []*sdk.MCPServer{nil, {}},
			SettingsPath:   filepath.Join(t.TempDir(), "none.json"),
			TaskBudget:     sdk.Some(0),
			PermissionMode: "wild",
		}), "Goals")) // the one that is there in every list, so that an empty one is seen
}

// A rule that names a tool as its server does has no effect on its calls.
func TestRulesAboutNoTool(t *testing.T) {
	t.Parallel()
	o := sdk.Options{Backend: scripted.New(), DisallowedTools: []string{"mcp__my.srv__drop", "mcp__my_srv__*", "mcp__srv"}}
	p, err := sdk.PreviewLaunch(&o)
	require.NoError(t, err)
	require.Len(t, p.Warnings, 1)
	assert.Equal(t, "DisallowedTools", p.Warnings[0].Option)
	assert.Contains(t, p.Warnings[0].String(), "write mcp__my_srv__drop")
}

// A policy's rule that matches nothing, or leaves a tool open, is a warning of the options.
func TestWarningsOfPolicies(t *testing.T) {
	t.Parallel()
	o := sdk.Options{Backend: scripted.New(), Policy: &sdk.Policy{Allow: []string{"Read", "Read(*.{a,b})"}, Deny: []string{"Write(docs/**)"}, Cwd: "/work"}}
	p, err := sdk.PreviewLaunch(&o)
	require.NoError(t, err)
	require.Len(t, p.Warnings, 2)
	assert.Equal(t, "option Policy.Allow[1] (rule Read(*.{a,b})): at byte 7 has braces, which are part of the names here; write a rule for each of the patterns", p.Warnings[0].String())
	assert.Equal(t, "Policy.Deny[0]", p.Warnings[1].Option)
	assert.Contains(t, p.Warnings[1].String(), "write Edit(docs/**)")
	o.Policy = &sdk.Policy{Deny: []string{"Bash(git push:* --force)"}, Cwd: "/work"}
	assert.Equal(t, []string{"Policy.Deny[0]"}, refused(t, &o))
}

func TestPatternsThatCanBeCompared(t *testing.T) {
	t.Parallel()
	hook := func(pattern string) []sdk.Hook {
		return []sdk.Hook{sdk.OnNotification(func(context.Context, *protocol.NotificationInput) (sdk.ContextOutput, error) {
			return sdk.ContextOutput{}, nil
		}, sdk.Match(pattern))}
	}
	for _, pattern := range []string{"", "*", "Bash|Write", "mcp__.*", "(?i)bash", `\ABash\z`} {
		_, err := sdk.Run(t.Context(), "hi", &sdk.Options{Backend: scripted.New(), Hooks: hook(pattern)})
		require.NoError(t, err, pattern)
	}
	for _, pattern := range []string{"(", "[a", "a)", "+", "a**", "(?!Bash).*", `(a)\1`, "(?<!x)y"} {
		assert.Equal(t, []string{"Hooks[0].Match"}, refused(t, &sdk.Options{Backend: scripted.New(), Hooks: hook(pattern)}), pattern)
	}
}

type nobody struct{}

func (nobody) AgentName() string { return "nobody" }

type spawner struct{ session.Spawner }

func TestBackendsThatCannotWork(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]*sdk.Options{
		"unknown":                      {Backend: nobody{}},
		"no program":                   {Backend: sdk.InMemory(nil, agent.Claude)},
		"unknown dialect":              {Backend: sdk.InMemory(scripted.New(), "klingon")},
		"spawner without a backend":    {Spawner: spawner{}},
		"executable without a backend": {PathToExecutable: "/bin/agent"},
	} {
		assert.Equal(t, []string{"Backend"}, refused(t, o), name)
	}
	assert.Equal(t, []string{"Spawner"}, refused(t, &sdk.Options{Backend: scripted.New(), Spawner: spawner{}}))
	assert.Equal(t, []string{"PathToExecutable"}, refused(t, &sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{Path: "/a"}), PathToExecutable: "/b"}))
	assert.Equal(t, []string{"Auth"}, refused(t, &sdk.Options{Backend: sdk.Qoder(sdk.QoderConfig{})}), "Qoder needs a login")
}

// writeProgram writes a program that is started soon. Nothing is started meanwhile: another program
// would have the file open until it runs itself, and the system refuses to start such a file.
func writeProgram(t *testing.T, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o700))
}

// install puts programs that end at once with code 3 into a directory.
func install(t *testing.T, names ...string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("it runs a POSIX shell")
	}
	dir := t.TempDir()
	for _, name := range names {
		writeProgram(t, filepath.Join(dir, name), "#!/bin/sh\nexit 3\n")
	}
	return dir
}

func TestTheOneCLIThatIsInstalled(t *testing.T) {
	t.Parallel()
	clean := func(path string, more ...string) map[string]string {
		env := map[string]string{"PATH": path, "CLAUDE_CODE_EXECUTABLE": "", "QODERCLI_PATH": ""}
		for i := 0; i < len(more); i += 2 {
			env[more[i]] = more[i+1]
		}
		return env
	}
	connect := func(env map[string]string) error {
		return sdk.NewClient(&sdk.Options{Env: env}).Connect(t.Context())
	}
	var config *sdk.ConfigError
	var exit *sdk.ExitError

	empty := install(t)
	err := connect(clean(empty))
	require.ErrorAs(t, err, &config)
	for _, want := range []string{"claude", "qodercli", empty, "sdk.Claude"} {
		require.ErrorContains(t, err, want)
	}
	err = connect(clean("relative:" + install(t, "claude", "qodercli")))
	require.ErrorAs(t, err, &config)
	for _, want := range []string{"more than one", "claude (", "qoder (", "sdk.Qoder"} {
		require.ErrorContains(t, err, want)
	}
	require.ErrorAs(t, connect(clean(empty+":"+install(t, "claude"))), &exit)
	assert.Equal(t, 3, exit.Status.Code)

	named := filepath.Join(install(t, "my-claude"), "my-claude")
	exit = nil
	require.ErrorAs(t, connect(clean(empty, "CLAUDE_CODE_EXECUTABLE", named)), &exit)

	err = connect(clean(install(t, "qodercli")))
	require.ErrorAs(t, err, &config)
	assert.Equal(t, "Auth", config.Option, "qodercli was found, and needs a login")
}

func TestNilOptions(t *testing.T) { // changes the environment: not parallel
	t.Setenv("PATH", install(t))
	t.Setenv("CLAUDE_CODE_EXECUTABLE", "")
	t.Setenv("QODERCLI_PATH", "")
	var config *sdk.ConfigError
	_, err := sdk.Collect(sdk.Query(t.Context(), "hi", nil))
	require.ErrorAs(t, err, &config)
	_, err = sdk.Run(t.Context(), "hi", nil)
	require.ErrorAs(t, err, &config)
	_, _, err = sdk.RunAs[weather](t.Context(), "hi", nil)
	require.ErrorAs(t, err, &config)
	require.ErrorAs(t, sdk.NewClient(nil).Connect(t.Context()), &config)
	assert.Equal(t, "Backend", config.Option)
}

func TestStartErrorSaysWhatAndWhere(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/error/ReferenceError")
	missing := filepath.Join(t.TempDir(), "claude")
	err := sdk.NewClient(&sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{Path: missing})}).Connect(t.Context())
	var start *sdk.StartError
	require.ErrorAs(t, err, &start)
	require.ErrorContains(t, err, missing)
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.False(t, sdk.Retryable(err))
}

// TestProcess runs an agent in a separate process, found on its PATH, in the shared
// runtime.
func TestProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, "claude"), "github.com/agent-troupe/troupe/agent/scripted/scriptedagent")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	script := filepath.Join(dir, "script.yaml")
	require.NoError(t, os.WriteFile(script, []byte("turns:\n- steps:\n  - text: hello from a process\n  - stderr: look out\n"), 0o600))
	seen := make(chan string, 1)
	r, err := sdk.Run(t.Context(), "hi", &sdk.Options{
		Env:    map[string]string{"PATH": dir, "TROUPE_SCRIPT": script, "QODERCLI_PATH": "", "CLAUDE_CODE_EXECUTABLE": ""},
		Stderr: func(line string) { seen <- line },
	})
	require.NoError(t, err)
	assert.Equal(t, "hello from a process", r.Result)
	assert.Equal(t, "look out", <-seen)
}

func TestInitializeTimeout(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.script(scripted.Script{Misbehave: scripted.Misbehaviour{Initialize: scripted.InitializeFault{Mode: "never"}}})
		o.InitializeTimeout = 20 * time.Millisecond
		_, err := sdk.Collect(sdk.Query(w.Context(), "hi", o))
		var late *sdk.TimeoutError
		require.ErrorAs(w, err, &late)
		require.ErrorIs(w, err, context.DeadlineExceeded)
		assert.Equal(w, 20*time.Millisecond, late.Limit)
		assert.Empty(w, open(w.rt))
	})
}

func TestSettingsFileIsReadWhereTheAgentReadsIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "s.json"), []byte(`{"model":"opus"}`), 0o600))
	o := &sdk.Options{
		Backend: scripted.New(), Cwd: dir, SettingsPath: "s.json",
		Sandbox: &session.Sandbox{Enabled: sdk.Some(true)}, // has to be merged into the file's settings
	}
	_, err := sdk.Run(t.Context(), "hi", o)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "s.json"), []byte("no json"), 0o600))
	assert.Equal(t, []string{"SettingsPath"}, refused(t, o))
}

func TestOptionsAsJSON(t *testing.T) {
	t.Parallel()
	var o sdk.Options
	d := json.NewDecoder(strings.NewReader(`{"cwd":"/src","tools":["Read"],"maxTurns":0,"permissionMode":"plan","closeTimeout":5000000000}`))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&o))
	assert.Equal(t, sdk.Options{
		Cwd: "/src", Tools: sdk.Only("Read"), MaxTurns: sdk.Some(0), PermissionMode: sdk.ModePlan, CloseTimeout: 5 * time.Second,
	}, o)
}

// Claude Code with tools and without a system prompt is a warning, unless that is meant.
func TestClaudeWithoutASystemPrompt(t *testing.T) {
	t.Parallel()
	claude := sdk.Claude(sdk.ClaudeConfig{Path: "/x/claude"})
	for name, c := range map[string]struct {
		opts   sdk.Options
		warned bool
	}{
		"nothing given":      {sdk.Options{Backend: claude}, true},
		"the agent's own":    {sdk.Options{Backend: claude, SystemPrompt: sdk.PresetPrompt("")}, false},
		"a text":             {sdk.Options{Backend: claude, SystemPrompt: sdk.PromptText("Be brief.")}, false},
		"empty on purpose":   {sdk.Options{Backend: claude, SystemPrompt: sdk.PromptText("")}, false},
		"no tools":           {sdk.Options{Backend: claude, Tools: sdk.None()}, false},
		"an agent of a test": {sdk.Options{Backend: scripted.New()}, false},
	} {
		p, err := sdk.PreviewLaunch(&c.opts)
		require.NoError(t, err, name)
		warned := slices.ContainsFunc(p.Warnings, func(w session.Warning) bool {
			return w.Option == "SystemPrompt" && strings.Contains(w.Fix, "PresetPrompt")
		})
		assert.Equal(t, c.warned, warned, name)
	}
}
