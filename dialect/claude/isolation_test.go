package claude_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/session"
)

func TestSharedLogin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in       dialect.Input
		settings string
		private  bool
	}{
		"nothing":                  {},
		"a key":                    {in: dialect.Input{Options: session.Options{Env: map[string]string{"ANTHROPIC_API_KEY": "k"}}}, private: true},
		"an empty key":             {in: dialect.Input{Options: session.Options{Env: map[string]string{"ANTHROPIC_API_KEY": ""}}}},
		"a token of the host":      {in: dialect.Input{Facts: dialect.Facts{ParentEnv: []string{"CLAUDE_CODE_OAUTH_TOKEN=t"}}}, private: true},
		"a token it does not get":  {in: dialect.Input{Options: session.Options{CleanEnv: true}, Facts: dialect.Facts{ParentEnv: []string{"ANTHROPIC_AUTH_TOKEN=t"}}}},
		"a cloud":                  {in: dialect.Input{Options: session.Options{Env: map[string]string{"CLAUDE_CODE_USE_BEDROCK": "1"}}}, private: true},
		"a cloud that is off":      {in: dialect.Input{Options: session.Options{Env: map[string]string{"CLAUDE_CODE_USE_BEDROCK": "0"}}}},
		"a helper of the user's":   {settings: `{"apiKeyHelper":"/bin/key"}`, private: true},
		"a key in the settings":    {settings: `{"env":{"ANTHROPIC_API_KEY":"k"}}`, private: true},
		"a helper of the options'": {in: dialect.Input{Options: session.Options{Settings: json.RawMessage(`{"apiKeyHelper":"/bin/key"}`)}}, private: true},
		"other settings":           {settings: `{"model":"x","env":{"A":"b"}}`},
		"settings that are none":   {settings: `[]`},
	} {
		why := claude.New().SharedLogin(&c.in, []byte(c.settings))
		assert.Equal(t, c.private, why == "", name)
	}
}

func TestPrivateSettings(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		`{"model":"x"}`: `{"model":"x"}`,
		`{"enabledPlugins":{},"extraKnownMarketplaces":{},"additionalMarketplaces":[],"a":1}`: `{"a":1}`,
		`{"env":{"CLAUDE_CONFIG_DIR":"/c","A":"b"}}`:                                          `{"env":{"A":"b"}}`,
	} {
		got, err := claude.New().PrivateSettings([]byte(given))
		require.NoError(t, err)
		assert.JSONEq(t, want, string(got))
	}
	_, err := claude.New().PrivateSettings([]byte("{"))
	require.Error(t, err)
}

func TestConfigDir(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ config, home, want string }{
		{"/c", "/h", "/c"}, {"", "/h", "/h/.claude"}, {"/c", "", "/c"}, {"", "", ""},
	} {
		in := dialect.Input{Options: session.Options{CleanEnv: true, Env: map[string]string{"CLAUDE_CONFIG_DIR": c.config, "HOME": c.home}}}
		assert.Equal(t, c.want, claude.New().ConfigDir(&in).Path)
	}
}
