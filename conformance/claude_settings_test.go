//go:build conformance

package conformance_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/internal/textfile"
	"github.com/agent-troupe/troupe/session"
)

// effective asks the agent which settings it has of a file. ok is false if it did not start.
func effective(t *testing.T, doc []byte) (settings map[string]any, ok bool) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "settings.json")
	require.NoError(t, os.WriteFile(file, doc, 0o600))
	cmd := exec.Command(conformance.Claude.CLI(t), "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose",
		"--setting-sources=", "--settings", file)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=x", "ANTHROPIC_BASE_URL=http://127.0.0.1:9", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() { _ = in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	for i, subtype := range []string{"initialize", "get_settings"} {
		_, _ = fmt.Fprintf(in, `{"type":"control_request","request_id":"%d","request":{"subtype":%q}}`+"\n", i, subtype)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var m struct {
			Response struct {
				RequestID string `json:"request_id"`
				Response  struct{ Effective map[string]any }
			}
		}
		if json.Unmarshal(lines.Bytes(), &m) == nil && m.Response.RequestID == "1" {
			return m.Response.Response.Effective, true
		}
	}
	return nil, false
}

// TestSettingsThatTheAgentDrops: the documents of dialect/claude/testdata are taken or dropped as it is written there.
// Every eighth is tried, each with a process of the agent; all with TROUPE_FULL=1.
func TestSettingsThatTheAgentDrops(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../dialect/claude/testdata/settings.jsonl")
	require.NoError(t, err)
	n := 0
	for line := range bytes.Lines(raw) {
		if n++; n%8 != 0 && os.Getenv("TROUPE_FULL") == "" {
			continue
		}
		var c struct {
			Agent, Doc string
			Base64     []byte
		}
		require.NoError(t, json.Unmarshal(line, &c))
		doc := []byte(c.Doc)
		if c.Base64 != nil {
			doc = c.Base64
		}
		got := "exit"
		if settings, ok := effective(t, doc); ok {
			got = "dropped"
			var want map[string]any
			text, err := textfile.Decode(doc)
			require.NoError(t, err)
			if len(bytes.TrimSpace(text)) == 0 || json.Unmarshal(text, &want) == nil && want != nil {
				if fmt.Sprint(want) == fmt.Sprint(settings) {
					got = "taken"
				}
			}
		}
		if c.Agent == "exit" && os.Getuid() != 0 {
			continue // it refuses some modes to root alone
		}
		assert.Equal(t, c.Agent, got, "%s", line)
	}
}

// TestTypesOfSettings: of every key, and each kind of value, Troupe takes what the agent takes.
// A third of the values are tried; all with TROUPE_FULL=1.
func TestTypesOfSettings(t *testing.T) {
	t.Parallel()
	var schema struct{ Properties map[string]any }
	raw, err := os.ReadFile("../dialect/claude/settings.schema.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &schema))
	for _, key := range []string{ // the agent does not start with some values of these
		"sandbox", "forceRemoteSettingsRefresh", "requiredMinimumVersion", "requiredMaximumVersion", "forceLoginMethod", "forceLoginGatewayUrl",
		"forceLoginOrgUUID", "allowedProviders", "minimumVersion", "processWrapper",
		// Two names of one key.
		"additionalMarketplaces", "allowedMarketplaces",
		// The agent takes what it cannot use, or changes it to what it can.
		"xaaIdp", "sshHostCommands", "gatewayInternalNetworks", "desktopMcpServersListScope", "theme", "autoCompactOfferAnswer",
		"policyHelper", "policyHelpers", "modelPricing", "modelSettings", "remoteControl", "timeFormat",
	} {
		delete(schema.Properties, key)
	}
	for i, value := range []string{`true`, `5`, `-1`, `0.5`, `"x"`, `[]`, `[1]`, `["x"]`, `[{}]`, `{}`, `null`} {
		if i%3 != 1 && os.Getenv("TROUPE_FULL") == "" {
			continue
		}
		refused := map[string]json.RawMessage{}
		taken := map[string]json.RawMessage{}
		for key := range schema.Properties {
			doc := fmt.Appendf(nil, `{%q:%s}`, key, value)
			_, err := claude.New().Validate(&dialect.Input{Options: session.Options{SettingsPath: "s"}, Facts: dialect.Facts{SettingsContent: doc}})
			if err != nil {
				refused[key] = json.RawMessage(value)
			} else {
				taken[key] = json.RawMessage(value)
			}
		}
		got := askSettings(t, taken)
		for key := range taken {
			if v, ok := got[key]; value != "null" && (!ok || fmt.Sprint(v) != valueOf(t, value)) && !normalized(key, value) {
				assert.Fail(t, "the agent drops what Troupe takes", "%s: %s (agent: %v)", key, value, v)
			}
		}
		// Each alone would take minutes. A key that the agent takes shows once the others are gone.
		left := maps.Clone(refused)
		for key, v := range askSettings(t, left) {
			if fmt.Sprint(v) == valueOf(t, value) {
				assert.Fail(t, "the agent takes what Troupe refuses", "%s: %s", key, value)
			}
		}
	}
}

// normalized are values that the agent takes and writes otherwise.
func normalized(key, value string) bool {
	return key == "attribution" && value == "true" || strings.HasPrefix(key, "enabledMcpjson") || strings.HasPrefix(key, "disabledMcpjson")
}

func valueOf(t *testing.T, doc string) string {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal([]byte(doc), &v))
	return fmt.Sprint(v)
}

func askSettings(t *testing.T, doc map[string]json.RawMessage) map[string]any {
	t.Helper()
	raw, err := json.Marshal(doc)
	require.NoError(t, err)
	settings, ok := effective(t, raw)
	require.True(t, ok, "%s", raw)
	return settings
}
