package qoder

import (
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/session"
)

var _ dialect.Isolator = Dialect{}

// ConfigDir implements dialect.Isolator.
func (Dialect) ConfigDir(o *dialect.Input) dialect.ConfigDir {
	return dialect.ConfigDir{
		Variable: "QODER_CONFIG_DIR", Path: o.ConfigPath("QODER_CONFIG_DIR", ".qoder"), UserFile: "settings.json",
		Copies: []string{"AGENTS.md", "agents", "commands", "skills"},
		Login:  []string{".auth", "oauth_creds.json"},
	}
}

// SharedLogin implements dialect.Isolator. All kinds of Options.Auth but the CLI's own login come with each start.
func (Dialect) SharedLogin(o *dialect.Input, _ []byte) string {
	if o.Auth == nil || o.Auth.Type == session.AuthQoderCLI {
		return "Auth is the login of qodercli, and a login in two directories would end when one of them renews it"
	}
	return ""
}

// PrivateSettings implements dialect.Isolator.
func (Dialect) PrivateSettings(settings []byte) ([]byte, error) { return settings, nil }

// PrivateLogin implements dialect.Isolator: the files are copied as they are, as in the vendor's SDK (observed on 1.0.39).
func (Dialect) PrivateLogin(_ string, content []byte) ([]byte, error) { return content, nil }
