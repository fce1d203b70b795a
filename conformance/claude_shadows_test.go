//go:build conformance

package conformance_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// A project that starts programs before any gate is asked does so with the default
// SettingSources, and not with None. The first half keeps the second honest.
func TestProjectThatStartsPrograms(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sources session.Set
		want    []string
	}{
		"by default": {session.Set{}, []string{"HELPED", "HOOKED", "SERVED", "STARTED"}},
		"none":       {sdk.None(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			write := func(path string, content any) {
				raw, err := json.Marshal(content)
				require.NoError(t, err)
				require.NoError(t, os.MkdirAll(filepath.Dir(r.at(path)), 0o755))
				require.NoError(t, os.WriteFile(r.at(path), raw, 0o600))
			}
			hook := func(file string) any {
				return []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": "touch " + r.at(file)}}}}
			}
			write(".claude/settings.json", map[string]any{
				"hooks":        map[string]any{"SessionStart": hook("STARTED"), "UserPromptSubmit": hook("HOOKED")},
				"apiKeyHelper": "touch " + r.at("HELPED") + "; echo x",
			})
			write(".mcp.json", map[string]any{"mcpServers": map[string]any{"x": map[string]any{"command": "touch", "args": []string{r.at("SERVED")}}}})
			o := r.options()
			o.SettingSources = tc.sources
			var asked atomic.Int32
			o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				asked.Add(1)
				for _, file := range tc.want { // a server is not waited for
					assert.Eventually(t, func() bool { _, err := os.Stat(r.at(file)); return err == nil }, turnLimit, 10*time.Millisecond, file)
				}
				return sdk.Deny("no"), nil
			}
			_, err := sdk.Run(r.ctx, r.touch("made"), o)
			require.NoError(t, err)
			var ran []string
			for _, file := range []string{"HELPED", "HOOKED", "SERVED", "STARTED", "made"} {
				if _, err := os.Stat(r.at(file)); err == nil {
					ran = append(ran, file)
				}
			}
			assert.Equal(t, tc.want, ran)
			assert.EqualValues(t, 1, asked.Load())
		})
	}
}

// What hides the callback from the agent's questions is warned of: each of these
// runs the call, and nobody is asked.
func TestShadows(t *testing.T) {
	t.Parallel()
	settings := func(text string) func(*sdk.Options) {
		return func(o *sdk.Options) { o.Settings = json.RawMessage(text) }
	}
	extra := func(key, value string) func(*sdk.Options) {
		return func(o *sdk.Options) { o.ExtraArgs = map[string]sdk.Opt[string]{key: sdk.Some(value)} }
	}
	cases := map[string]func(*sdk.Options){
		"settings' acceptEdits": settings(`{"permissions":{"defaultMode":"acceptEdits"}}`),
		"settings' hook":        settings(`{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"echo '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"allow\"}}'"}]}]}}`),
		"managed rule":          func(o *sdk.Options) { o.ManagedSettings = json.RawMessage(`{"permissions":{"allow":["Bash"]}}`) },
		"flag's rule":           extra("allowedTools", "Bash"),
		"flag's acceptEdits":    extra("permission-mode", "acceptEdits"),
		"settings' bypass":      settings(`{"permissions":{"defaultMode":"bypassPermissions"}}`),
		"flag's bypass":         extra("permission-mode", "bypassPermissions"),
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			o := r.options()
			var asked atomic.Int32
			o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				asked.Add(1)
				return sdk.Deny("no"), nil
			}
			cases[name](o)
			if _, err := sdk.PreviewLaunch(o); err != nil {
				require.Len(t, sdk.ConfigErrors(err), 1)
				assert.Contains(t, err.Error(), "AllowDangerouslySkipPermissions")
				o.AllowDangerouslySkipPermissions = true
			}
			c := r.connect(o)
			r.ask(c, r.touch("made"))
			assert.FileExists(t, r.at("made"))
			assert.Zero(t, asked.Load())
			assert.NotEmpty(t, c.Warnings())
			r.close(c)
		})
	}
}
