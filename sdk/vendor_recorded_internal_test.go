package sdk

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// launched is what a vendor's SDK (0.3.329, 1.0.39) did with options: one line of testdata/vendor. What it always sends
// is left out. The options were made by chance; those on which this library deviates, for the reasons in the
// documentation of the dialects, are not among them.
type launched struct {
	Options json.RawMessage `json:"options"` // as a configuration
	Facts   struct {        // what is no data
		CanUseTool, Elicitation, UserDialog, ResolveModel, Artifacts, ShouldGenerate, ShouldReview, FetchJobToken, FetchSAT bool
		Hooks                                                                                                               map[protocol.HookEvent][]struct {
			Matcher string
			Timeout float64
		}
		SDKServers map[string]struct {
			Timeout float64
			Tools   []session.MCPToolPolicy
		}
	} `json:"facts"`
	Command    []string                   `json:"command"` // before the fixed arguments
	Argv       []string                   `json:"argv"`    // after the five that are fixed
	Env        map[string]string          `json:"env"`
	Initialize map[string]json.RawMessage `json:"initialize"`
	Requests   []json.RawMessage          `json:"requests"`
	Auth       string                     `json:"auth"` // the file of the login
}

// always is what a vendor's SDK sends with every launch.
type always struct {
	backend    Backend
	command    string
	env        map[string]string
	initialize map[string]json.RawMessage
}

func vendors() map[string]always {
	yes := json.RawMessage("true")
	return map[string]always{
		"claude": {Claude(ClaudeConfig{}), "/opt/claude",
			map[string]string{"CLAUDE_CODE_ENTRYPOINT": "sdk-ts", "CLAUDE_AGENT_SDK_VERSION": "0.3.329", "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1",
				"CLAUDE_AGENT_SDK_CLIENT_APP": "troupe"}, // ours beside the vendor's
			map[string]json.RawMessage{"subtype": json.RawMessage(`"initialize"`)}},
		"qoder": {Qoder(QoderConfig{}), "/opt/qodercli",
			map[string]string{"QODER_AGENT_SDK_ENTRYPOINT": "sdk-ts", "QODER_AGENT_SDK_VERSION": "1.0.39", "QODER_SDK_AUTH_PAYLOAD_FILE": "{{file:payload.json}}"},
			map[string]json.RawMessage{"subtype": json.RawMessage(`"initialize"`), "type": json.RawMessage(`"initialize"`), "modelPolicyProvider": json.RawMessage("false"),
				"supportsCatalogReadyInitialize": yes, "supportsAvailableModelsUpdate": yes, "supportsCommandsChanged": yes, "initializeTimeoutMs": json.RawMessage("120000")}},
	}
}

const defaultQoderTools = "Agent,AskUserQuestion,Bash,Edit,Glob,Grep,ImageGen,ImageSearch,NotebookEdit,Read,Skill,TaskCreate,TaskGet,TaskUpdate,TaskList,UpdateGoal,WebFetch,WebSearch,Write"

func TestLaunchesAsTheVendorsSDKs(t *testing.T) {
	t.Parallel()
	for name, vendor := range vendors() {
		raw, err := os.ReadFile(filepath.Join("testdata", "vendor", name+".ndjson"))
		require.NoError(t, err)
		lines := bufio.NewScanner(bytes.NewReader(raw))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var want launched
			require.NoError(t, json.Unmarshal(lines.Bytes(), &want))
			compareLaunch(t, vendor, &want)
		}
		require.NoError(t, lines.Err())
	}
}

func compareLaunch(t *testing.T, vendor always, want *launched) {
	t.Helper()
	at := string(want.Options)
	o, err := LoadOptions(strings.NewReader(at))
	require.NoError(t, err, at)
	o.Backend = vendor.backend
	if o.PathToExecutable == "" {
		o.PathToExecutable = vendor.command
	}
	want.callbacks(t, o)
	spec, err := specOf(o)
	require.NoError(t, err, at)
	spec.ParentEnv = []string{"HOME=/home/u"}
	p, err := spec.Preview()
	if skipsPermissions(want.Options) { // the vendor's SDK launches it
		require.ErrorContains(t, err, "set AllowDangerouslySkipPermissions, too", at)
		return
	}
	if bytes.Contains(want.Options, []byte(`"defaultMode":"weird"`)) && vendor.command == "/opt/claude" { // the vendor's SDK launches it, and the agent drops the settings
		require.ErrorContains(t, err, "permissions.defaultMode is not known", at)
		return
	}
	require.NoError(t, err, at)

	files := map[string]string{}
	for _, f := range p.Launch.Files {
		files[f.Name] = string(f.Content)
	}
	split := slices.IndexFunc(p.Launch.Args, func(a string) bool { return a == "--print" || a == "--output-format" })
	command := slices.Concat(p.Launch.Interpreter, []string{p.Launch.Path}, p.Launch.Args[:split])
	if want.Command == nil {
		want.Command = []string{vendor.command}
	}
	assert.Equal(t, want.Command, command, at)
	argv := slices.Clone(p.Launch.Args[split+5:])
	ref := regexp.MustCompile(`^\{\{file:(.*)\}\}$`)
	for i, arg := range argv {
		if m := ref.FindStringSubmatch(arg); m != nil {
			argv[i] = files[m[1]] // the vendor's SDK has it in the argument
		} else if arg == defaultQoderTools {
			argv[i] = "DEFAULT"
		}
	}
	assert.Equal(t, want.Argv, argv, at)

	env := maps.Clone(vendor.env)
	maps.Copy(env, want.Env)
	got := map[string]string{}
	for _, v := range p.Launch.Env {
		got[v.Name] = v.Value
	}
	assert.Equal(t, env, got, at)
	if _, login := files["payload.json"]; login && want.Auth == "" {
		want.Auth = `{"type":"qodercli"}`
	}
	assert.Equal(t, want.Auth, files["payload.json"], at)

	compareInitialize(t, vendor, want, p)
}

// skipsPermissions reports whether the settings of a launch skip every permission
// check although the option that allows it is not set.
func skipsPermissions(options json.RawMessage) bool {
	var o struct {
		Allowed  bool `json:"allowDangerouslySkipPermissions"`
		Settings struct {
			Permissions struct {
				DefaultMode string `json:"defaultMode"`
			} `json:"permissions"`
		} `json:"settings"`
	}
	_ = json.Unmarshal(options, &o) // settings in another form have no mode here
	return !o.Allowed && o.Settings.Permissions.DefaultMode == "bypassPermissions"
}

func compareInitialize(t *testing.T, vendor always, want *launched, p *runtime.Preview) {
	t.Helper()
	initialize := maps.Clone(vendor.initialize)
	maps.Copy(initialize, want.Initialize)
	doc, err := json.Marshal(initialize)
	require.NoError(t, err)
	own := regexp.MustCompile(`,?"onFailure":"block"`).ReplaceAll(p.Initialize, nil) // our gates have a second lock
	var got map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(own, &got))
	withoutProof(t, want, got)
	if servers := got["sdkMcpServerManifests"]; servers != nil { // schemas of tools are another matter
		var names map[string]struct{}
		require.NoError(t, json.Unmarshal(servers, &names))
		got["sdkMcpServerManifests"], err = json.Marshal(names)
		require.NoError(t, err)
	}
	own, err = json.Marshal(got)
	require.NoError(t, err)
	assert.JSONEq(t, string(doc), string(own), string(want.Options))
	require.Len(t, p.Requests, len(want.Requests), string(want.Options))
	for i := range p.Requests {
		assert.JSONEq(t, string(want.Requests[i]), string(p.Requests[i]), string(want.Options))
	}
}

// withoutProof takes out the one hook that the vendors' SDKs do not have: with a
// gate, a UserPromptSubmit hook proves that the agent calls hooks at all.
func withoutProof(t *testing.T, want *launched, got map[string]json.RawMessage) {
	t.Helper()
	var hooks map[protocol.HookEvent]json.RawMessage
	if got["hooks"] == nil || want.Facts.Hooks[protocol.HookUserPromptSubmit] != nil {
		return
	}
	require.NoError(t, json.Unmarshal(got["hooks"], &hooks))
	delete(hooks, protocol.HookUserPromptSubmit)
	var err error
	got["hooks"], err = json.Marshal(hooks)
	require.NoError(t, err)
}

// callbacks gives the options the functions that the vendor's SDK was given.
func (want *launched) callbacks(t *testing.T, o *Options) {
	t.Helper()
	f := &want.Facts
	if f.CanUseTool {
		o.CanUseTool = func(context.Context, *ToolPermissionRequest) (PermissionResult, error) {
			return PermissionResult{}, nil
		}
	}
	if f.Elicitation {
		o.OnElicitation = func(context.Context, *protocol.ElicitationRequest) (protocol.ElicitationResult, error) {
			return protocol.ElicitationResult{}, nil
		}
	}
	if f.UserDialog {
		o.OnUserDialog = func(context.Context, *protocol.UserDialogRequest) (protocol.UserDialogResult, error) {
			return protocol.UserDialogResult{}, nil
		}
	}
	if f.ResolveModel {
		o.ResolveModel = func(context.Context, *protocol.ModelPolicyRequest) (protocol.ModelPolicyReply, error) {
			return protocol.ModelPolicyReply{}, nil
		}
	}
	if f.Artifacts {
		o.ResolveSessionArtifacts = func(context.Context, *protocol.ResolveSessionArtifactsRequest) (json.RawMessage, error) {
			return nil, nil
		}
	}
	if f.FetchJobToken {
		o.FetchJobToken = func(context.Context, *protocol.FetchJobTokenRequest) (session.Token, error) {
			return session.Token{}, nil
		}
	}
	if f.FetchSAT {
		o.FetchServiceAccountToken = func(context.Context, *protocol.FetchServiceAccountTokenRequest) (session.Token, error) {
			return session.Token{}, nil
		}
	}
	gate := func(context.Context, *protocol.TurnInfo) (protocol.ShouldRunReply, error) {
		return protocol.ShouldRunReply{}, nil
	}
	if f.ShouldGenerate {
		o.ShouldGenerateMemory = gate
	}
	if f.ShouldReview {
		o.ShouldReviewSkills = gate
	}
	for event, matchers := range f.Hooks { //troupe:maporder there is one
		for _, m := range matchers {
			o.Hooks = append(o.Hooks, OnHookEvent(string(event), func(context.Context, *session.HookCall) (json.RawMessage, error) { return nil, nil },
				Match(m.Matcher), Timeout(time.Duration(m.Timeout*float64(time.Second)))))
		}
	}
	for name, s := range f.SDKServers { //troupe:maporder there is one
		echo := NewTool("echo", "d", func(context.Context, struct{}) (*ToolResult, error) { return nil, nil })
		server, err := NewMCPServer(name, "1.0.0", echo)
		require.NoError(t, err)
		o.SDKMCPServers = append(o.SDKMCPServers, server)
		o.SDKMCPServerConfigs = map[string]session.SDKMCPServerConfig{name: {Timeout: time.Duration(s.Timeout * float64(time.Millisecond)), Tools: s.Tools}}
	}
}
