package sessions_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// Every option that can hold a secret holds one that names it; then all ways
// that Go programs show a value.
func secretOptions(b sdk.Backend) *sdk.Options {
	return &sdk.Options{
		Backend:             b,
		Env:                 map[string]string{"MY_TOKEN": "SECRET-env"},
		Proxy:               "http://u:SECRET-proxy@h:1",
		VPCEndpoint:         "https://u:SECRET-vpc@h",
		Settings:            json.RawMessage(`{"apiKeyHelper":"echo SECRET-settings","env":{"X":"SECRET-settingsenv"}}`),
		ManagedSettings:     json.RawMessage(`{"env":{"X":"SECRET-managed"}}`),
		ModelRequestPatches: json.RawMessage(`{"headers":{"X":"SECRET-patch"}}`),
		ExtraArgs:           map[string]sdk.Opt[string]{"api-key": sdk.Some("SECRET-extra")},
		MCPServers: map[string]sdk.MCPServerConfig{
			"stdio": {Type: "stdio", Command: "x", Args: []string{"--token", "SECRET-mcparg"}, Env: map[string]string{"T": "SECRET-mcpenv"}},
			"http":  {Type: "http", URL: "https://u:SECRET-mcpuser@h/x?k=SECRET-mcpquery", Headers: map[string]string{"Authorization": "Bearer SECRET-mcpheader"}, HeadersHelper: "echo SECRET-helper", OAuth: json.RawMessage(`{"clientSecret":"SECRET-oauth"}`)},
		},
		Auth: &session.Auth{Type: "accessToken", AccessToken: "SECRET-auth", ServiceAccountKey: "SECRET-sak"},
	}
}

func leaks(s string) []string {
	m := map[string]bool{}
	var out []string
	for _, x := range regexp.MustCompile(`SECRET-[a-z]+`).FindAllString(s, -1) {
		if !m[x] {
			m[x] = true
			out = append(out, x)
		}
	}
	return out
}

func TestSecretsShown(t *testing.T) {
	o := secretOptions(nil)
	show := map[string]string{
		"%v":                    fmt.Sprintf("%v", o),
		"%+v":                   fmt.Sprintf("%+v", o),
		"%#v":                   fmt.Sprintf("%#v", o),
		"%+v of the value":      fmt.Sprintf("%+v", *o),
		"%v of Auth":            fmt.Sprintf("%v %+v %#v", *o.Auth, o.Auth, o.Auth),
		"%v of MCPServerConfig": fmt.Sprintf("%v %+v %#v", o.MCPServers["stdio"], o.MCPServers["http"], o.MCPServers),
	}
	j, err := json.Marshal(o)
	show["json"] = fmt.Sprint(string(j), err)
	var b bytes.Buffer
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "o", o, "auth", o.Auth, "mcp", o.MCPServers["http"])
	show["slog text"] = b.String()
	b.Reset()
	slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "o", o, "auth", o.Auth, "mcp", o.MCPServers["http"])
	show["slog json"] = b.String()
	for how, s := range show {
		t.Logf("%-22s %v", how, leaks(s))
	}
	for name, b := range map[string]sdk.Backend{"claude": sdk.Claude(sdk.ClaudeConfig{Path: "/bin/x"}), "qoder": sdk.Qoder(sdk.QoderConfig{Path: "/bin/x"})} {
		o := secretOptions(b)
		o.Settings, o.ManagedSettings = nil, nil
		if name == "claude" {
			o.Auth, o.ModelRequestPatches, o.Proxy, o.VPCEndpoint = nil, nil, "", ""
		} else {
			o.Auth.ServiceAccountKey = ""
		}
		p, err := sdk.PreviewLaunch(o)
		if err != nil {
			t.Logf("%s plan: %v; leaks %v", name, err, leaks(err.Error()))
			continue
		}
		j, _ := json.Marshal(p)
		t.Logf("%s plan leaks: %v %v", name, leaks(string(j)), leaks(fmt.Sprintf("%+v", p)))
		t.Log(string(j))
	}
	// Errors.
	for name, set := range map[string]func(*sdk.Options){
		"contradictions":  func(o *sdk.Options) { o.PermissionPromptToolName, o.Policy = "x", &sdk.Policy{} },
		"broken settings": func(o *sdk.Options) { o.Settings = json.RawMessage(`{"x":"SECRET-broken"`) },
		"nul in env":      func(o *sdk.Options) { o.Env["X"] = "SECRET-nul\x00" },
		"nul in mcp env": func(o *sdk.Options) {
			o.MCPServers["z"] = sdk.MCPServerConfig{Command: "x", Env: map[string]string{"A": "SECRET-mcpnul\x00"}}
		},
		"bad env name": func(o *sdk.Options) { o.Env["A=SECRET-name"] = "x" },
		"bad mcp url": func(o *sdk.Options) {
			o.MCPServers["z"] = sdk.MCPServerConfig{Type: "http", URL: "ht tp://u:SECRET-badurl@h"}
		},
		"mcp without command": func(o *sdk.Options) { o.MCPServers["z"] = sdk.MCPServerConfig{Args: []string{"SECRET-nocommand"}} },
		"bad oauth": func(o *sdk.Options) {
			o.MCPServers["z"] = sdk.MCPServerConfig{Type: "http", URL: "https://h", OAuth: json.RawMessage(`"SECRET-badoauth`)}
		},
		"extra args protocol": func(o *sdk.Options) { o.ExtraArgs["mcp-config"] = sdk.Some("SECRET-extramcp") },
		"bad proxy":           func(o *sdk.Options) { o.Proxy = "http://u:SECRET-badproxy@ h" },
		"bad vpc":             func(o *sdk.Options) { o.VPCEndpoint = "::SECRET-badvpc" },
		"bad header": func(o *sdk.Options) {
			o.MCPServers["z"] = sdk.MCPServerConfig{Type: "http", URL: "https://h", Headers: map[string]string{"A": "SECRET-hdr\nX: y"}}
		},
		"extra arg dash": func(o *sdk.Options) { o.ExtraArgs["api-key"] = sdk.Some("-SECRET-dash\x00") },
	} {
		for _, b := range []sdk.Backend{sdk.Claude(sdk.ClaudeConfig{Path: "/bin/x"}), sdk.Qoder(sdk.QoderConfig{Path: "/bin/x"})} {
			o := secretOptions(b)
			set(o)
			_, err := sdk.PreviewLaunch(o)
			if l := leaks(fmt.Sprintf("%v %+v %#v", err, err, err)); len(l) > 0 {
				var c *sdk.ConfigError
				errors.As(err, &c)
				t.Logf("LEAK in error of %q: %v\n   %v", name, l, err)
			}
		}
	}
}

// The program cannot be started: what does the error show?
func TestStartErrorShowsNoSecrets(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "notexec")
	_ = os.WriteFile(bad, []byte("\x7fELFxx"), 0o755)
	for _, path := range []string{"/nonexistent/claude", bad, dir} {
		o := secretOptions(sdk.Claude(sdk.ClaudeConfig{Path: path}))
		o.Auth, o.ModelRequestPatches, o.Proxy, o.VPCEndpoint = nil, nil, "", ""
		o.Model = "https://u:SECRET-model@h"
		o.ExtraArgs["weird"] = sdk.Some("SECRET-weird")
		_, err := sdk.Run(t.Context(), "x", o)
		s := fmt.Sprintf("%v %+v %#v", err, err, err)
		var se *sdk.StartError
		if errors.As(err, &se) {
			s += fmt.Sprintf("%+v %#v", *se, se)
		}
		t.Logf("%s: %v\n  leaks %v", path, err, leaks(s))
		if strings.Contains(s, "SECRET") {
			t.Log(s)
		}
	}
}
