package qoder_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// recording is one entry of testdata/argv-options.json: what the vendor's SDK did with an option.
type recording struct {
	Argv       []string          `json:"argv"`
	EnvAdded   map[string]string `json:"env_added"`
	EnvRemoved json.RawMessage   `json:"env_removed"` // a list, or a remark
	ExecArgv   []string          `json:"exec_argv"`
	Stdin      []json.RawMessage `json:"stdin"`
	Auth       struct {
		Content json.RawMessage `json:"content"`
	} `json:"auth_payload"`
	SettingsFile struct {
		Path    string          `json:"path"`
		Content json.RawMessage `json:"content"`
	} `json:"settings_file"`
}

// deviation is where we do otherwise than the vendor's SDK, and why.
type deviation struct {
	reason   string
	refused  string   // the option of the ConfigError, instead of a launch
	argvTail []string // instead of the arguments after --disable-builtin-skills
	requests []string // control requests that come after the recorded ones
	keepsEnv bool     // the parent's environment stays
}

func deviations() map[string]deviation {
	const noWire = "the SDK documents or takes the option and sends nothing, so it would only look as if it held"
	const refusedByCLI = "the CLI exits with 42 when there is no session to resume"
	return map[string]deviation{
		"fallbackModel":            {reason: noWire, refused: "FallbackModel"},
		"outputFormat":             {reason: noWire, refused: "OutputFormat"},
		"planModeInstructions":     {reason: noWire, refused: "PlanModeInstructions"},
		"sandbox":                  {reason: noWire, refused: "Sandbox"},
		"thinking":                 {reason: noWire, refused: "Thinking"},
		"fork-noresume":            {reason: refusedByCLI, refused: "ForkSession"},
		"resumeSessionAt-noresume": {reason: refusedByCLI, refused: "ResumeSessionAt"},
		"permissionMode-bypassPermissions": {
			reason: "the vendor's documents require allowDangerouslySkipPermissions", refused: "PermissionMode"},
		"extraArgs": {
			reason:   "a Go map has no order, so the keys are sorted",
			argvTail: []string{"--flag", "--foo", "bar", "--x-y", ""}},
		"goalMaxTurns": {
			reason:   "the SDK only checks the capability; the request that sets the limit exists",
			requests: []string{`{"subtype":"set_goal_max_turns","max_turns":7}`}},
		"env-merge": {
			reason: "the SDK replaces the environment, and so loses PATH", keepsEnv: true},
	}
}

const (
	uuid1 = "11111111-2222-4333-8444-555555555555"
	uuid2 = "22222222-2222-4333-8444-555555555555"
	uuid3 = "33333333-2222-4333-8444-555555555555"
	uuid4 = "44444444-2222-4333-8444-555555555555"
)

// cases says with which options each recorded case was made, but for Auth, which is the token PAT-TEST where it is
// not given.
func cases() map[string]dialect.Input {
	type o = dialect.Input
	mode := func(m protocol.PermissionMode) o { return o{Options: session.Options{PermissionMode: m}} }
	script := func(args ...string) o {
		return o{Options: session.Options{PathToExecutable: "/opt/cli.mjs", ExecutableArgs: args}}
	}
	policies := func(tools ...session.MCPToolPolicy) o {
		return o{Options: session.Options{MCPServers: map[string]session.MCPServerConfig{"a": {Command: "c", Tools: tools}}}}
	}
	some := session.Some[bool]
	return map[string]dialect.Input{
		"NODE_OPTIONS":          {Facts: dialect.Facts{ParentEnv: []string{"NODE_OPTIONS=--inspect"}}},
		"QODERCLI_PATH":         {Facts: dialect.Facts{ParentEnv: []string{"QODERCLI_PATH=/opt/qodercli"}}},
		"additionalDirectories": {Options: session.Options{AdditionalDirectories: []string{"<WORK>/raw", "rel"}}},
		"additionalDirectories+settings": {Options: session.Options{AdditionalDirectories: []string{"/a"},
			Settings: json.RawMessage(`{"permissions":{"allow":["Read"]}}`)}},
		"agents": {Options: session.Options{Agents: map[string]session.AgentDefinition{"rev": {
			Description: "d", Prompt: "p", Tools: session.Only("Read"), DisallowedTools: []string{"Bash"}, Model: "inherit",
			MCPServers: []session.AgentMCPServer{{Name: "x"}, {Name: "y", Config: &session.MCPServerConfig{Command: "c"}}},
			Skills:     []string{"s"}, InitialPrompt: "ip", MaxTurns: session.Some(3), Effort: "high",
			PermissionMode: protocol.ModePlan, Background: some(true), Memory: "user", Isolation: "worktree"}}}},
		"auth-env":                  {Options: session.Options{Auth: &session.Auth{Type: session.AuthAccessToken, EnvVar: "MY_PAT"}}, Facts: dialect.Facts{ParentEnv: []string{"MY_PAT=ENVTOK"}}},
		"auth-notunlinked":          {},
		"auth-qodercli":             {Options: session.Options{Auth: &session.Auth{Type: session.AuthQoderCLI}}},
		"auth-sa-fetch":             {Options: session.Options{Auth: &session.Auth{Type: session.AuthServiceAccount}}},
		"auth-sa-key":               {Options: session.Options{Auth: &session.Auth{Type: session.AuthServiceAccount, ServiceAccountKey: "SAKEY"}}},
		"base":                      {},
		"canUseTool":                {Options: session.Options{CanUseTool: canUseTool}},
		"continue":                  {Options: session.Options{Continue: true}},
		"continue+resume":           {Options: session.Options{Continue: true, Resume: uuid1}},
		"ctlTimeout-neg":            {},
		"customContext":             {Options: session.Options{CustomContext: json.RawMessage(`{"k":"v"}`)}},
		"cwd-rel":                   {Options: session.Options{Cwd: "rel"}},
		"debug":                     {Options: session.Options{Debug: true}},
		"enableFileCheckpointing":   {Options: session.Options{EnableFileCheckpointing: some(true)}},
		"env":                       {Options: session.Options{Env: map[string]string{"FOO": "bar"}}},
		"env-QODER_FEATURE_TASKS-0": {Options: session.Options{Env: map[string]string{"QODER_FEATURE_TASKS": "0"}}},
		"env-merge":                 {Options: session.Options{Env: map[string]string{"FOO": "bar"}}},
		"evolution":                 {Options: session.Options{Evolution: &session.Evolution{}}},
		"executable-node": {Options: session.Options{PathToExecutable: "/opt/cli.mjs", Executable: "node",
			ExecutableArgs: []string{"--no-warnings"}}},
		"executableArgs-only": script("--no-warnings"),
		"extensions":          {Options: session.Options{Extensions: []string{"e1", "e2"}}},
		"extraArgs": {Options: session.Options{ExtraArgs: map[string]session.Opt[string]{
			"foo": session.Some("bar"), "flag": {}, "x-y": session.Some("")}}},
		"fallbackModel":      {Options: session.Options{FallbackModel: "lite"}},
		"fork-noresume":      {Options: session.Options{ForkSession: true}},
		"goalMaxTurns":       {Options: session.Options{GoalMaxTurns: session.Some(7)}},
		"goalMaxTurns-nocap": {Options: session.Options{GoalMaxTurns: session.Some(7)}},
		"hooks": {Facts: dialect.Facts{Registrations: []dialect.HookRegistration{
			{Event: protocol.HookPreToolUse, Matcher: "Bash|Write", CallbackIDs: []string{"hook_0", "hook_1"}, Timeout: 7 * time.Second},
			{Event: protocol.HookPreToolUse, CallbackIDs: []string{"hook_2"}},
			{Event: protocol.HookStop, CallbackIDs: []string{"hook_3"}},
			{Event: protocol.HookSessionEnd, CallbackIDs: []string{"hook_4"}, Timeout: 500 * time.Millisecond}}}},
		"hooks-emptylist":        {Facts: dialect.Facts{Registrations: []dialect.HookRegistration{}}},
		"includePartialMessages": {Options: session.Options{IncludePartialMessages: true}},
		"maxTurns":               {Options: session.Options{MaxTurns: session.Some(5)}},
		"maxTurns-0":             {Options: session.Options{MaxTurns: session.Some(0)}},
		"mcp-policies": policies(
			session.MCPToolPolicy{Name: "t1", PermissionPolicy: session.AlwaysAllow},
			session.MCPToolPolicy{Name: "t2", PermissionPolicy: session.AlwaysAsk},
			session.MCPToolPolicy{Name: "t3", PermissionPolicy: session.AlwaysDeny, ExposedName: "tt3", AlwaysLoad: true}),
		"mcp-policies-ask":                 policies(session.MCPToolPolicy{Name: "t 1", PermissionPolicy: session.AlwaysAllow}),
		"memory-empty":                     {Options: session.Options{Memory: &session.Memory{}}},
		"memory-native":                    {Options: session.Options{Memory: &session.Memory{Mode: "native", ProjectScope: some(false)}}},
		"model":                            {Options: session.Options{Model: "performance"}},
		"modelRequestPatches":              {Options: session.Options{ModelRequestPatches: json.RawMessage(`{"gpt":{"systemPrompt":"x"}}`)}},
		"native-path":                      {Options: session.Options{PathToExecutable: "/opt/qodercli"}},
		"onElicitation":                    {Options: session.Options{OnElicitation: onElicitation}},
		"outputFormat":                     {Options: session.Options{OutputFormat: &session.OutputFormat{Type: "json_schema", Schema: json.RawMessage(`{"type":"object"}`)}}},
		"permissionMode-acceptEdits":       mode(protocol.ModeAcceptEdits),
		"permissionMode-bypassPermissions": mode(protocol.ModeBypassPermissions),
		"permissionMode-default":           mode(protocol.ModeDefault),
		"permissionMode-dontAsk":           mode(protocol.ModeDontAsk),
		"permissionMode-plan":              mode(protocol.ModePlan),
		"permissionPromptToolName":         {Options: session.Options{PermissionPromptToolName: "mcp__a__b"}},
		"persistSession-true":              {Options: session.Options{PersistSession: some(true)}},
		"planMode-nocap":                   {Options: session.Options{PlanMode: some(true)}},
		"planMode-true":                    {Options: session.Options{PlanMode: some(true)}},
		"planModeInstructions":             {Options: session.Options{PlanModeInstructions: "x"}},
		"plugins":                          {Options: session.Options{Plugins: []session.Plugin{{Path: "/srv/p1"}, {Path: "rel/p2"}}}},
		"promptSuggestions":                {Options: session.Options{PromptSuggestions: true}},
		"resolveModel":                     {Options: session.Options{ResolveModel: resolveModel}},
		"resolveModel+model":               {Options: session.Options{ResolveModel: resolveModel, Model: "lite"}},
		"resume+fork+sessionId":            {Options: session.Options{Resume: uuid1, ForkSession: true, SessionID: uuid2}},
		"resume+sessionId":                 {Options: session.Options{Resume: uuid1, SessionID: uuid2}},
		"resume-nonuuid":                   {Options: session.Options{Resume: "abc"}},
		"resumeDropsTurn":                  {Options: session.Options{Resume: uuid1, ResumeSessionAt: uuid3, ResumeDropsTurn: uuid4}},
		"resumeSessionAt":                  {Options: session.Options{Resume: uuid1, ResumeSessionAt: uuid3}},
		"resumeSessionAt-noresume":         {Options: session.Options{ResumeSessionAt: uuid3}},
		"sandbox":                          {Options: session.Options{Sandbox: &session.Sandbox{Enabled: session.Some(true)}}},
		"securityScan":                     {Options: session.Options{SecurityScan: &session.SecurityScan{L1StaticCheck: true}}},
		"sessionId":                        {Options: session.Options{SessionID: uuid2}},
		"sessionId-nonuuid":                {Options: session.Options{SessionID: "abc"}},
		"sessionStore":                     {Facts: dialect.Facts{HasSessionStore: true}},
		"sessionStore-eager":               {Facts: dialect.Facts{HasSessionStore: true}},
		"settingSources":                   {Options: session.Options{SettingSources: session.All()}},
		"settingSources-empty":             {Options: session.Options{SettingSources: session.None()}},
		"settings-jsonstring":              {Options: session.Options{Settings: json.RawMessage(`{"model":"m"}`)}},
		"settings-object": {Options: session.Options{Settings: json.RawMessage(
			`{"permissions":{"allow":["Read"],"defaultMode":"acceptEdits"},"model":"m"}`)}},
		"settings-path": {Options: session.Options{SettingsPath: "<WORK>/st.json"}},
		"settings-path+addDirs": {Options: session.Options{SettingsPath: "<WORK>/st.json",
			AdditionalDirectories: []string{"/a"}, EnableFileCheckpointing: some(true)}, Facts: dialect.Facts{SettingsContent: []byte(`{"permissions":{"deny":["Bash"]}}`)}},
		"skills-all":          {Options: session.Options{Skills: session.All()}},
		"skills-all+tools":    {Options: session.Options{Skills: session.All(), Tools: session.Only("Read")}},
		"skills-empty":        {Options: session.Options{Skills: session.None()}},
		"spawn-custom":        {},
		"stderr-cb":           {},
		"strictMcpConfig":     {Options: session.Options{StrictMCPConfig: true}},
		"systemPrompt-empty":  {Options: session.Options{SystemPrompt: session.SystemPrompt{Blocks: []string{""}}}},
		"systemPrompt-preset": {Options: session.Options{SystemPrompt: session.SystemPrompt{Preset: true, Append: ""}}},
		"systemPrompt-string": {Options: session.Options{SystemPrompt: session.SystemPrompt{Blocks: []string{"SP"}}}},
		"thinking":            {Options: session.Options{Thinking: &session.Thinking{Type: "adaptive"}}},
		"toolConfig":          {Options: session.Options{ToolConfig: &session.ToolConfig{AskUserQuestion: session.AskUserQuestionConfig{PreviewFormat: "html"}}}},
		"toolConfig-md":       {Options: session.Options{ToolConfig: &session.ToolConfig{AskUserQuestion: session.AskUserQuestionConfig{PreviewFormat: "markdown"}}}},
		"tools-empty":         {Options: session.Options{Tools: session.None()}},
		"tools-list":          {Options: session.Options{Tools: session.Only("Read", "Bash")}},
		"tools-preset":        {Options: session.Options{Tools: session.All()}},
		"vpcEndpoint":         {Options: session.Options{VPCEndpoint: "acme"}},
		"yolo+allow":          {Options: session.Options{PermissionMode: protocol.ModeYolo, AllowDangerouslySkipPermissions: true}},
	}
}

func recordings(t *testing.T) map[string]recording {
	t.Helper()
	raw, err := os.ReadFile("testdata/argv-options.json")
	require.NoError(t, err)
	var out map[string]recording
	require.NoError(t, json.Unmarshal(raw, &out))
	require.NotEmpty(t, out)
	return out
}

func TestSameWireAsTheVendor(t *testing.T) {
	t.Parallel()
	recorded, given := recordings(t), cases()
	for name := range given {
		require.Contains(t, recorded, name, "a case that was not recorded")
	}
	for name := range deviations() {
		require.Contains(t, recorded, name, "a deviation from nothing")
	}
	for name, r := range recorded {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, ok := given[name]
			require.True(t, ok, "a recorded case without options")
			if o.Auth == nil {
				o.Auth = &session.Auth{Type: session.AuthAccessToken, AccessToken: "PAT-TEST"}
			}
			dev := deviations()[name]
			if dev.refused != "" {
				_, err := qoder.New().Launch(&o)
				var options []string
				for _, e := range session.ConfigErrors(err) {
					options = append(options, e.Option)
				}
				assert.Equal(t, []string{dev.refused}, options)
				return
			}
			checkLaunch(t, &o, r, dev)
			checkStdin(t, &o, r, dev)
		})
	}
}

func checkLaunch(t *testing.T, o *dialect.Input, r recording, dev deviation) {
	t.Helper()
	l, err := qoder.New().Launch(o)
	require.NoError(t, err)
	want := slices.Clone(r.Argv)
	if dev.argvTail != nil {
		i := slices.Index(want, "--disable-builtin-skills")
		want = append(want[:i+1], dev.argvTail...)
	}
	assert.Equal(t, canonical(want), canonical(l.Args))
	if len(r.ExecArgv) > 0 {
		assert.Equal(t, append([]string{"node"}, r.ExecArgv...), l.Interpreter)
	}

	env := map[string]string{}
	for _, v := range l.Env {
		env[v.Name] = v.Value
	}
	for name, value := range r.EnvAdded {
		r.EnvAdded[name] = fileRefs().Replace(value)
	}
	assert.Equal(t, r.EnvAdded, env)
	var removed []string
	if json.Unmarshal(r.EnvRemoved, &removed) != nil {
		assert.True(t, dev.keepsEnv)
	}
	assert.False(t, l.CleanEnv)
	for _, name := range removed {
		assert.Contains(t, l.Unset, name)
	}
	// The recorder had no more of these in its environment than it says.
	assert.Subset(t, []string{"NODE_OPTIONS", "QODER_SERVICE_ACCOUNT_KEY"}, l.Unset)
	assert.Equal(t, o.Cwd, l.Dir)

	files := map[string]string{}
	for _, f := range l.Files {
		files[f.Name] = string(f.Content)
	}
	assert.NotContains(t, files, "mcp.json", "no recorded server holds a credential")
	assert.JSONEq(t, string(r.Auth.Content), files["payload.json"])
	if strings.Contains(r.SettingsFile.Path, "<TMPDIR>") {
		assert.JSONEq(t, string(r.SettingsFile.Content), files["settings.json"])
	} else {
		assert.NotContains(t, files, "settings.json")
	}
}

// checkStdin compares everything that is written up to the first user line.
func checkStdin(t *testing.T, o *dialect.Input, r recording, dev deviation) {
	t.Helper()
	d := qoder.New()
	var requests []json.RawMessage
	var user json.RawMessage
	for _, line := range r.Stdin {
		var l struct {
			Type    string          `json:"type"`
			Request json.RawMessage `json:"request"`
		}
		require.NoError(t, json.Unmarshal(line, &l))
		if l.Type == "user" {
			user = line
		} else {
			requests = append(requests, l.Request)
		}
	}
	for _, more := range dev.requests {
		requests = append(requests, json.RawMessage(more))
	}

	init, err := d.Initialize(o)
	require.NoError(t, err)
	assert.JSONEq(t, string(requests[0]), string(init))
	assert.True(t, strings.HasSuffix(string(init), `"subtype":"initialize"}`))

	if user == nil { // the recorder announced no capability, and the SDK gave up
		var missing *session.UnsupportedCapabilityError
		require.ErrorAs(t, d.CheckInitialize(o, json.RawMessage(`{}`)), &missing)
		assert.NotEmpty(t, missing.Capability)
		return
	}
	capable := json.RawMessage(`{"capabilities":["plan_mode_v1","goal_max_turns_v1"]}`)
	require.NoError(t, d.CheckInitialize(o, capable))
	after := d.AfterInitialize(o)
	require.Len(t, after, len(requests)-1)
	for i, req := range after {
		got, err := d.Encode(req)
		require.NoError(t, err)
		assert.JSONEq(t, string(requests[i+1]), string(got))
	}

	var recorded struct {
		UUID string `json:"uuid"`
	}
	require.NoError(t, json.Unmarshal(user, &recorded))
	line, err := d.UserLine(o.UserDefaults(), &protocol.UserMessage{Common: protocol.Common{UUID: recorded.UUID},
		Message: protocol.UserContent{Content: protocol.TextContent("hello")}})
	require.NoError(t, err)
	assert.JSONEq(t, string(user), string(line))
}

func fileRefs() *strings.Replacer {
	return strings.NewReplacer(
		"<TMPDIR>/qoder-sdk-auth-XXXXXX/payload.json", dialect.FileRef("payload.json"),
		"<TMPDIR>/qoder-agent-sdk-settings-XXXXXX/settings.json", dialect.FileRef("settings.json"))
}

// canonical puts JSON arguments into one form, since the order of keys means nothing.
func canonical(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = fileRefs().Replace(a)
		var v map[string]any
		if json.Unmarshal([]byte(a), &v) == nil {
			doc, _ := json.Marshal(v)
			out[i] = string(doc)
		}
	}
	return out
}

func TestEveryRecordedDeviationHasAReason(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Sorted(maps.Keys(deviations())) {
		assert.NotEmpty(t, deviations()[name].reason, name)
	}
}
