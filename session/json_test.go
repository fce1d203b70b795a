package session_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// roundTrip decodes a vendor's document into v and compares what v encodes to.
func roundTrip[T any](t *testing.T, doc string) T {
	t.Helper()
	return roundTripTo[T](t, doc, doc)
}

func roundTripTo[T any](t *testing.T, doc, want string) T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal([]byte(doc), &v))
	got, err := json.Marshal(v)
	require.NoError(t, err)
	assert.JSONEq(t, want, string(got))
	return v
}

func TestMCPServerReadsWhatVendorsWrite(t *testing.T) {
	t.Parallel()
	s := roundTrip[session.MCPServerConfig](t, `{"type":"http","url":"https://h/mcp","headers":{"A":"b<>"},"timeout":1500,
		"tools":[{"name":"t","permission_policy":"always_ask"}],"oauth":{"clientId":"c"},"role":"x","displayName":"D"}`)
	assert.Equal(t, 1500*time.Millisecond, s.Timeout)
	assert.Equal(t, []session.MCPToolPolicy{{Name: "t", PermissionPolicy: session.AlwaysAsk}}, s.Tools)
	assert.Len(t, s.Extra, 2)

	s = roundTrip[session.MCPServerConfig](t, `{"command":"node","args":["x"],"env":{"K":"v"},"alwaysLoad":true}`)
	assert.Nil(t, s.Extra)
	assert.Error(t, json.Unmarshal([]byte(`{"timeout":-1}`), &s))
	assert.Error(t, json.Unmarshal([]byte(`{"timeout":1e300}`), &s))
	assert.Error(t, json.Unmarshal([]byte(`[]`), &s))
}

func TestExtraNeverReplacesAKnownKey(t *testing.T) {
	t.Parallel()
	extra := map[string]json.RawMessage{"command": json.RawMessage(`"evil"`), "timeout": json.RawMessage(`1`),
		"tools": json.RawMessage(`[]`), "z": json.RawMessage(`1`), "a": json.RawMessage(`2`)}
	got, err := json.Marshal(session.MCPServerConfig{Command: "good", Extra: extra})
	require.NoError(t, err)
	assert.JSONEq(t, `{"command":"good","a":2,"z":1}`, string(got))
	assert.Less(t, bytes.Index(got, []byte(`"a"`)), bytes.Index(got, []byte(`"z"`)), "keys are sorted")
	got, err = json.Marshal(session.MCPServerConfig{Extra: extra})
	require.NoError(t, err)
	assert.JSONEq(t, `{"a":2,"z":1}`, string(got))
	_, err = json.Marshal(session.MCPServerConfig{Extra: map[string]json.RawMessage{"x": json.RawMessage(`{`)}})
	assert.Error(t, err)
}

func TestAgentDefinitionReadsWhatVendorsWrite(t *testing.T) {
	t.Parallel()
	a := roundTrip[session.AgentDefinition](t, `{"description":"d","prompt":"p","tools":[],"disallowedTools":["Bash"],
		"model":"inherit","mcpServers":["x",{"y":{"command":"c"}}],"skills":["s"],"initialPrompt":"i","maxTurns":3,
		"effort":"high","permissionMode":"plan","background":false,"memory":"user","isolation":"worktree",
		"observer":"o","omitClaudeMd":true,"autoCompactWindow":5,"newer":"n"}`)
	assert.Equal(t, session.AgentDefinition{Effort: "12"}, roundTrip[session.AgentDefinition](t, `{"description":"","prompt":"","effort":12}`))
	assert.True(t, a.Tools.IsNone())
	assert.Equal(t, protocol.ModePlan, a.PermissionMode)
	assert.Equal(t, session.Some(false), a.Background)
	assert.Len(t, a.Extra, 1)

	all, err := json.Marshal(session.AgentDefinition{Tools: session.All()})
	require.NoError(t, err)
	assert.NotContains(t, string(all), "tools")
	several := roundTripTo[session.AgentDefinition](t, `{"description":"d","prompt":"p","mcpServers":[{"b":{"command":"c"},"a":{"command":"c"}}]}`,
		`{"description":"d","prompt":"p","mcpServers":[{"a":{"command":"c"}},{"b":{"command":"c"}}]}`)
	assert.Len(t, several.MCPServers, 2)
	for _, doc := range []string{`{"description":"d","prompt":"p","mcpServers":[],"skills":[],"disallowedTools":[]}`, `{"description":"d","prompt":"p"}`} {
		roundTrip[session.AgentDefinition](t, doc)
	}
	for _, bad := range []string{`{"mcpServers":[{}]}`, `{"mcpServers":[3]}`, `{"mcpServers":{}}`, `[]`} {
		assert.Error(t, json.Unmarshal([]byte(bad), &a), bad)
	}
}

func TestSandboxReadsWhatVendorsWrite(t *testing.T) {
	t.Parallel()
	s := roundTrip[session.Sandbox](t, `{"enabled":true,"failIfUnavailable":false,"autoAllowBashIfSandboxed":true,
		"network":{"httpProxyPort":0,"allowLocalBinding":true},"filesystem":{"denyRead":["/etc"]},
		"ignoreViolations":{"*":["/tmp"]},"credentials":{"files":[]},"newer":1}`)
	assert.Equal(t, session.Some(0), s.Network.HTTPProxyPort)
	assert.Len(t, s.Extra, 1)
	// What is said explicitly stays, and nothing else is said.
	for _, doc := range []string{`{}`, `{"enabled":false,"excludedCommands":[],"network":{"allowLocalBinding":false,"allowUnixSockets":[]},
		"filesystem":{"denyRead":[],"allowManagedReadPathsOnly":false},"ignoreViolations":{},"enableWeakerNestedSandbox":false}`} {
		roundTrip[session.Sandbox](t, doc)
	}
}

// What has a field Extra keeps keys there that it does not know, also those that
// differ from its own by case.
func TestUnknownKeysGoToExtra(t *testing.T) {
	t.Parallel()
	var o session.Options
	require.NoError(t, json.Unmarshal([]byte(`{"memory":{"mode":"custom","Mode":"x"},"evolution":{"skill":{"mode":"custom","new":"<1>"}},
		"agents":{"a":{"prompt":"p","Prompt":"q"}},"tools":{"type":"preset"}}`), &o))
	assert.Equal(t, &session.Memory{Mode: "custom", Extra: map[string]json.RawMessage{"Mode": json.RawMessage(`"x"`)}}, o.Memory)
	assert.Equal(t, &session.SkillEvolution{Mode: "custom", Extra: map[string]json.RawMessage{"new": json.RawMessage(`"<1>"`)}}, o.Evolution.Skill)
	assert.Equal(t, session.AgentDefinition{Prompt: "p", Extra: map[string]json.RawMessage{"Prompt": json.RawMessage(`"q"`)}}, o.Agents["a"])
	assert.True(t, o.Tools.IsAll())
}

func TestSystemPromptReadsWhatVendorsWrite(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]session.SystemPrompt{
		`null`:      {},
		`""`:        {Blocks: []string{""}},
		`"a"`:       {Blocks: []string{"a"}},
		`["a","b"]`: {Blocks: []string{"a", "b"}},
		`{"type":"preset","append":"x","excludeDynamicSections":true,"snapshot":false}`: {Preset: true, Append: "x",
			ExcludeDynamicSections: true, Snapshot: session.Some(false)},
		`{"type":"file","path":"p.md"}`:                    {File: "p.md"},
		`{"type":"custom","prompt":["a"],"snapshot":true}`: {Blocks: []string{"a"}, Snapshot: session.Some(true)},
	} {
		assert.Equal(t, want, roundTrip[session.SystemPrompt](t, doc), doc)
	}
	var p session.SystemPrompt
	require.NoError(t, json.Unmarshal([]byte(`{"type":"preset","preset":"claude_code"}`), &p))
	assert.Equal(t, session.SystemPrompt{Preset: true, Append: ""}, p)
	for _, bad := range []string{`3`, `{"type":"other"}`, `[1]`} {
		assert.Error(t, json.Unmarshal([]byte(bad), &p), bad)
	}
}

func TestOptionsReadConfigurationFiles(t *testing.T) {
	t.Parallel()
	var o session.Options
	require.NoError(t, json.Unmarshal([]byte(`{"model":"m","maxTurns":0,"tools":["Read"],"skills":"all",
		"settingSources":[],"systemPrompt":{"type":"preset","append":"x"},"permissionMode":"plan",
		"mcpServers":{"db":{"command":"db"}},"persistSession":false,"extraArgs":{"k":null,"v":"1"}}`), &o))
	assert.Equal(t, session.Some(0), o.MaxTurns)
	assert.Equal(t, session.Only("Read"), o.Tools)
	assert.True(t, o.Skills.IsAll())
	assert.True(t, o.SettingSources.IsNone())
	assert.Equal(t, session.SystemPrompt{Preset: true, Append: "x"}, o.SystemPrompt)
	assert.Equal(t, "db", o.MCPServers["db"].Command)
	assert.Equal(t, map[string]session.Opt[string]{"k": {}, "v": session.Some("1")}, o.ExtraArgs)

	empty, err := json.Marshal(session.Options{})
	require.NoError(t, err)
	assert.Equal(t, `{}`, string(empty))
}

func TestAuthHidesItsSecrets(t *testing.T) {
	t.Parallel()
	for _, a := range []*session.Auth{{Type: session.AuthAccessToken, AccessToken: "s3cr3t"}, {Type: session.AuthServiceAccount, ServiceAccountKey: "s3cr3t"}, nil,
		{Type: session.AuthAccessToken, EnvVar: session.DefaultTokenEnv}, {Type: session.AuthQoderCLI}, {Type: session.AuthJobToken}, {Type: session.AuthServiceAccount}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			text := fmt.Sprintf(verb, a)
			assert.NotContains(t, text, "s3cr3t", verb)
			assert.NotEmpty(t, text)
		}
	}
	assert.Equal(t, "accessToken from $QODER_PERSONAL_ACCESS_TOKEN", (&session.Auth{Type: session.AuthAccessToken, EnvVar: session.DefaultTokenEnv}).String())
}

func TestAuthReadsWhatVendorsWrite(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]*session.Auth{
		`{"type":"accessToken","accessToken":"T"}`:                     {Type: session.AuthAccessToken, AccessToken: "T"},
		`{"type":"accessToken","accessToken":{"envVar":"MY_PAT"}}`:     {Type: session.AuthAccessToken, EnvVar: "MY_PAT"},
		`{"type":"accessToken","accessToken":{"envVar":""}}`:           {Type: session.AuthAccessToken, EnvVar: session.DefaultTokenEnv},
		`{"type":"accessToken","envVar":"MY_PAT"}`:                     {Type: session.AuthAccessToken, EnvVar: "MY_PAT"},
		`{"type":"qodercli"}`:                                          {Type: session.AuthQoderCLI},
		`{"type":"serviceAccount","serviceAccountKey":"K"}`:            {Type: session.AuthServiceAccount, ServiceAccountKey: "K"},
		`{"type":"serviceAccount","serviceAccountKey":{"envVar":"K"}}`: {Type: session.AuthServiceAccount, EnvVar: "K"},
		`{"type":"serviceAccount"}`:                                    {Type: session.AuthServiceAccount},
		`{"type":"jobToken"}`:                                          {Type: session.AuthJobToken},
	} {
		var got session.Auth
		require.NoError(t, json.Unmarshal([]byte(doc), &got), doc)
		assert.Equal(t, *want, got, doc)
	}
	for _, bad := range []string{`[]`, `{"accessToken":{}}`, `{"accessToken":3}`} {
		assert.Error(t, json.Unmarshal([]byte(bad), new(session.Auth)), bad)
	}
}

func FuzzDecodeOptions(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","tools":["Read"],"systemPrompt":["a"],"mcpServers":{"a":{"command":"c","timeout":1,"x":{}}}}`,
		`{"agents":{"a":{"description":"d","prompt":"p","mcpServers":["x",{"y":{"url":"http://h"}}],"zz":1}}}`,
		`{"sandbox":{"enabled":true,"q":[]},"skills":"all","maxTurns":null,"systemPrompt":{"type":"custom","prompt":"a","snapshot":false}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var o session.Options
		if json.Unmarshal(raw, &o) != nil {
			return
		}
		once, err := json.Marshal(o)
		require.NoError(t, err)
		var again session.Options
		require.NoError(t, json.Unmarshal(once, &again), string(once))
		twice, err := json.Marshal(again)
		require.NoError(t, err)
		assert.Equal(t, string(once), string(twice))
	})
}
