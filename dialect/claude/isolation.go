package claude

import (
	"encoding/json"
	"path/filepath"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/protocol"
)

var (
	_ dialect.Isolator    = Dialect{}
	_ dialect.Transcriber = Dialect{}
)

// ConfigDir implements dialect.Isolator. Plugins are not copied: their files have absolute paths.
func (Dialect) ConfigDir(o *dialect.Input) dialect.ConfigDir {
	return dialect.ConfigDir{
		Variable: "CLAUDE_CONFIG_DIR", Path: o.ConfigPath("CLAUDE_CONFIG_DIR", ".claude"), UserFile: "settings.json",
		Copies: []string{"CLAUDE.md", "agents", "commands", "output-styles", "rules", "skills"},
		Login:  []string{".credentials.json", ".claude.json", ".config.json", "cowork_settings.json"},
	}
}

// Transcripts implements dialect.Transcriber.
func (Dialect) Transcripts(o *dialect.Input) dialect.Transcripts {
	dir := o.ConfigPath("CLAUDE_CONFIG_DIR", ".claude")
	if dir == "" {
		return dialect.Transcripts{}
	}
	return dialect.Transcripts{Dir: filepath.Join(dir, "projects"), Live: filepath.Join(dir, "sessions")}
}

// keys are the variables with which Claude Code needs no separate login, or that name a cloud whose
// login it uses.
func keys() []string {
	return []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"}
}

func clouds() []string {
	return []string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"}
}

// SharedLogin implements dialect.Isolator.
func (Dialect) SharedLogin(o *dialect.Input, settings []byte) string {
	has := func(lookup func(string) string) bool {
		for _, name := range keys() {
			if lookup(name) != "" {
				return true
			}
		}
		for _, name := range clouds() {
			if build.Truthy(lookup(name)) {
				return true
			}
		}
		return false
	}
	if has(func(name string) string { v, _ := o.LookupEnv(name); return v }) {
		return ""
	}
	for _, text := range [][]byte{o.Settings, o.SettingsContent, o.ManagedSettings, settings} {
		var s struct {
			APIKeyHelper string            `json:"apiKeyHelper"`
			Env          map[string]string `json:"env"`
		}
		if protocol.Unmarshal(text, &s) == nil && (s.APIKeyHelper != "" || has(func(name string) string { return s.Env[name] })) {
			return ""
		}
	}
	return "there is no API key or token (ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN, CLAUDE_CODE_OAUTH_TOKEN, apiKeyHelper), " +
		"and a login in two directories would end when one of them renews it"
}

// PrivateSettings implements dialect.Isolator. As in the vendor's SDK, when it gives a resumed session a directory, names
// of plugins and another CLAUDE_CONFIG_DIR are left out (observed on 0.3.329).
func (Dialect) PrivateSettings(settings []byte) ([]byte, error) {
	var all map[string]json.RawMessage
	if err := protocol.Unmarshal(settings, &all); err != nil {
		return nil, err
	}
	for _, key := range []string{"enabledPlugins", "extraKnownMarketplaces", "additionalMarketplaces"} {
		delete(all, key)
	}
	var env map[string]json.RawMessage
	if protocol.Unmarshal(all["env"], &env) == nil && env["CLAUDE_CONFIG_DIR"] != nil {
		delete(env, "CLAUDE_CONFIG_DIR")
		changed, err := json.Marshal(env)
		if err != nil {
			return nil, err
		}
		all["env"] = changed
	}
	return json.Marshal(all)
}

// PrivateLogin implements dialect.Isolator. The refresh token is left out: two directories cannot both renew one login. So
// does the vendor's SDK (observed on 0.3.329).
func (Dialect) PrivateLogin(name string, content []byte) ([]byte, error) {
	if name != ".credentials.json" {
		return content, nil
	}
	var all map[string]json.RawMessage
	if err := protocol.Unmarshal(content, &all); err != nil {
		return nil, err
	}
	var login map[string]json.RawMessage
	if len(all["claudeAiOauth"]) == 0 {
		return content, nil
	}
	if err := protocol.Unmarshal(all["claudeAiOauth"], &login); err != nil {
		return nil, err
	}
	delete(login, "refreshToken")
	changed, err := json.Marshal(login)
	if err != nil {
		return nil, err
	}
	all["claudeAiOauth"] = changed
	return json.Marshal(all)
}
