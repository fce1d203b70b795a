package sdk_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/sdk"
)

// settingsHome makes the files whose merged settings the vendor's resolveSettings returns
// as vendorSettings.
func settingsHome(t *testing.T) (home, project string) {
	t.Helper()
	home, project = t.TempDir(), t.TempDir()
	for file, content := range map[string]string{
		filepath.Join(home, ".claude/settings.json"):          `{"model":"user-model","env":{"A":"u","B":"u"},"permissions":{"allow":["Read","Bash(ls)"],"deny":["X"],"defaultMode":"plan"},"cleanupPeriodDays":7,"unknownKey":{"x":[1]},"includeCoAuthoredBy":false}`,
		filepath.Join(project, ".claude/settings.json"):       `{"env":{"B":"p","C":"p"},"permissions":{"allow":["Bash(ls)","Edit"],"additionalDirectories":["/a"]},"model":"proj-model","outputStyle":"x","unknownKey":{"x":[2],"y":1}}`,
		filepath.Join(project, ".claude/settings.local.json"): `{"permissions":{"allow":["Write"]},"env":{"C":"l"}}`,
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	}
	return home, project
}

// vendorSettings was returned by resolveSettings of Claude Agent SDK 0.3.329 for the same
// files, with managedSettings {"model":"m","permissions":{"deny":["M"],"allow":["Z"]},
// "allowManagedHooksOnly":true}.
const vendorSettings = `{"cleanupPeriodDays":7,"env":{"A":"u","B":"p","C":"l"},"includeCoAuthoredBy":false,
"permissions":{"allow":["Read","Bash(ls)","Edit","Write","Z"],"deny":["X","M"],"defaultMode":"plan","additionalDirectories":["/a"]},
"model":"proj-model","unknownKey":{"x":[1,2],"y":1},"outputStyle":"x","allowManagedHooksOnly":true}`

func settingsOptions(home, project string) *sdk.Options {
	return &sdk.Options{
		Backend: sdk.Claude(sdk.ClaudeConfig{}), Cwd: project,
		Env: map[string]string{"HOME": home}, UnsetEnv: []string{"CLAUDE_CONFIG_DIR"},
	}
}

func TestResolveSettings(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/function/resolveSettings")
	home, project := settingsHome(t)
	o := settingsOptions(home, project)
	o.ManagedSettings = []byte(`{"model":"m","permissions":{"deny":["M"],"allow":["Z"]},"allowManagedHooksOnly":true}`)
	r, err := sdk.ResolveSettings(o)
	require.NoError(t, err)
	assert.JSONEq(t, vendorSettings, string(r.Effective))
	assert.Equal(t, map[string]string{
		"cleanupPeriodDays": "user", "env": "local", "includeCoAuthoredBy": "user", "permissions": "managed", "model": "project",
		"unknownKey": "project", "outputStyle": "project", "allowManagedHooksOnly": "managed",
	}, r.From)
	var names []string
	for _, s := range r.Sources {
		names = append(names, s.Name)
	}
	assert.Equal(t, []string{"user", "project", "local", "managed"}, names)
	assert.Empty(t, r.Problems)
}

func TestResolveSettingsOfSomeSources(t *testing.T) {
	t.Parallel()
	home, project := settingsHome(t)
	for name, c := range map[string]struct {
		set   func(*sdk.Options)
		model string
	}{
		"all":                {func(*sdk.Options) {}, `"proj-model"`},
		"none":               {func(o *sdk.Options) { o.SettingSources = sdk.None() }, ""},
		"the user's":         {func(o *sdk.Options) { o.SettingSources = sdk.Only("user") }, `"user-model"`},
		"settings come last": {func(o *sdk.Options) { o.Settings = []byte(`{"model":"mine"}`) }, `"mine"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := settingsOptions(home, project)
			c.set(o)
			r, err := sdk.ResolveSettings(o)
			require.NoError(t, err)
			if c.model == "" {
				assert.JSONEq(t, `{}`, string(r.Effective))
			} else {
				assert.Contains(t, string(r.Effective), `"model":`+c.model)
			}
		})
	}
}

func TestResolveSettingsReportsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	home, project := settingsHome(t)
	file := filepath.Join(project, ".claude/settings.local.json")
	require.NoError(t, os.WriteFile(file, []byte(`{bad`), 0o600))
	r, err := sdk.ResolveSettings(settingsOptions(home, project))
	require.NoError(t, err)
	require.Len(t, r.Problems, 1)
	assert.ErrorContains(t, r.Problems[0], file)
	assert.Len(t, r.Sources, 2)

	var config *sdk.ConfigError
	o := settingsOptions(home, project)
	o.Settings = []byte(`[]`)
	_, err = sdk.ResolveSettings(o)
	require.ErrorAs(t, err, &config)
	assert.Equal(t, "Settings", config.Option)
	_, err = sdk.ResolveSettings(&sdk.Options{Backend: sdk.Qoder(sdk.QoderConfig{}), Env: map[string]string{"HOME": home}})
	require.ErrorAs(t, err, &config)
	assert.ErrorContains(t, err, "Client.Settings")
}
