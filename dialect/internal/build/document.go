package build

import (
	"encoding/json"
	"net/url"
	"slices"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/session"
)

// Reasons why a document goes by file where the vendor's SDK puts it in argv.
const (
	ReasonCredential = "it can hold a credential, and arguments can be read by everyone on the machine"
	ReasonSize       = "it is longer than the system lets an argument be"
)

// Document places a JSON document: in argv if it is short and cannot hold a credential, else in a file that argv
// refers to. It returns the argument and adds the file to l.
func Document(l *dialect.Launch, name string, doc json.RawMessage, credential bool) string {
	var reason string
	switch {
	case credential:
		reason = ReasonCredential
	case len(doc) > MaxArg:
		reason = ReasonSize
	default:
		return string(doc)
	}
	l.Files = append(l.Files, dialect.File{Name: name, Content: doc, Reason: reason})
	return dialect.FileRef(name)
}

// plainSettings are the settings keys that cannot hold a credential.
func plainSettings() []string { return []string{"model", "outputStyle", "permissions"} }

// SettingsCredential reports whether a settings object of the user's has a key that can hold a credential.
func SettingsCredential(s *Settings) bool {
	return slices.ContainsFunc(s.Keys(), func(k string) bool { return !slices.Contains(plainSettings(), k) })
}

// MCPCredential reports whether a server's configuration has a field that can hold a credential.
func MCPCredential(s session.MCPServerConfig) bool {
	return len(s.Args) > 0 || len(s.Env) > 0 || len(s.Headers) > 0 || s.HeadersHelper != "" || len(s.OAuth) > 0 ||
		len(s.Extra) > 0 || URLCredential(s.URL)
}

// URLCredential reports whether a URL has a part that can hold a credential: a user, a query or a
// fragment. A URL that does not parse counts as one.
func URLCredential(raw string) bool {
	u, err := url.Parse(raw)
	return err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != ""
}
