package dialect_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// wire is everything a dialect makes of some options.
type wire struct {
	Warnings   []session.Warning
	Err        string
	Launch     dialect.Launch
	Initialize string
	After      []string
	UserLine   string
}

func wireOf(t require.TestingT, d dialect.Dialect, o *dialect.Input) wire {
	w := wire{}
	var err error
	w.Warnings, err = d.Validate(o)
	if err != nil {
		w.Err = err.Error()
	}
	launch, launchErr := d.Launch(o)
	if err != nil {
		require.EqualError(t, launchErr, w.Err, "Validate and Launch agree")
		return w
	}
	require.NoError(t, launchErr, "Validate and Launch agree")
	w.Launch = launch
	initialize, err := d.Initialize(o)
	require.NoError(t, err)
	w.Initialize = string(initialize)
	for _, r := range d.AfterInitialize(o) {
		raw, err := d.Encode(r)
		require.NoError(t, err)
		w.After = append(w.After, string(raw))
	}
	line, err := d.UserLine(o.UserDefaults(), &protocol.UserMessage{Message: protocol.UserContent{Content: protocol.TextContent("hi")}})
	require.NoError(t, err)
	w.UserLine = string(line)
	return w
}

// The launch of any options. They are drawn once for all checks: that takes longer than
// the checks.
func TestWhatAnyOptionsBecome(t *testing.T) {
	t.Parallel()
	for name, d := range dialects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				o := anyOptions(name).Draw(t, "options")
				before := fmt.Sprintf("%#v", o)
				w := wireOf(t, d, &o)
				for range 3 { // a map of three keys shows another order soon
					require.Equal(t, w, wireOf(t, d, &o), "a launch is deterministic")
				}
				noSecretIsSeen(t, w)
				filesMatch(t, w.Launch)
				initializeIsOneObject(t, w)
				_, _ = d.Resume(&o, "s", true)
				assert.Equal(t, before, fmt.Sprintf("%#v", o), "a caller may use the same options for many sessions at once")
			})
		})
	}
}

func noSecretIsSeen(t *rapid.T, w wire) {
	for _, arg := range append(w.Launch.Args, w.Launch.Interpreter...) {
		assert.NotContains(t, arg, secret, "arguments can be read by everyone")
	}
	for _, v := range w.Launch.Env {
		assert.Equal(t, strings.Contains(v.Value, secret), v.Secret && strings.Contains(v.Value, secret), v.Name)
	}
	assert.NotContains(t, w.Err, secret, "errors are logged")
	for _, warning := range w.Warnings {
		assert.NotContains(t, warning.String(), secret, "warnings are logged")
	}
}

// filesMatch: each file is referred to once.
func filesMatch(t *rapid.T, l dialect.Launch) {
	places := strings.Join(l.Args, "\n")
	for _, v := range l.Env {
		places += "\n" + v.Value
	}
	assert.Equal(t, len(l.Files), strings.Count(places, "{{file:"))
	for _, f := range l.Files {
		assert.Contains(t, places, dialect.FileRef(f.Name))
		assert.NotEmpty(t, f.Reason)
	}
}

func initializeIsOneObject(t *rapid.T, w wire) {
	if w.Err != "" {
		return
	}
	var keys map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(w.Initialize), &keys))
	assert.Equal(t, `"initialize"`, string(keys["subtype"]))
	assert.NotContains(t, w.Initialize, "\n")
	assert.Equal(t, 1, strings.Count(w.UserLine, "\n"))
}

// TestNoOptionIsForgotten: every field shows on the wire, or is refused or warned of by name.
func TestNoOptionIsForgotten(t *testing.T) {
	t.Parallel()
	silent := map[string][]string{
		// A callback that the agent is not told of.
		"OnElicitation": {"claude", "qoder"},
		// It only says which warnings would be untrue.
		"Policy": {"claude", "qoder"},
		// The agent loads them by itself.
		"LoadedSettings": {"claude", "qoder"},
		// Only the host waits; qodercli gets the option.
		"InitializeTimeout": {"claude"},
	}
	// Package sdk and the runtime alone read these.
	hostOnly := []string{"Backend", "Runtime", "Spawner", "PermissionTimeout", "Unattended", "Hooks", "SDKMCPServers", "SDKMCPServerConfigs",
		"ResolveModelTimeout", "FetchJobToken", "FetchServiceAccountToken", "OnAuthExpired", "OnEvent", "OnMessage", "Stderr", "Tracer",
		"Limits", "CloseTimeout", "Graces", "InterruptGrace", "Supervisors", "Children", "MaxLine", "MaxRestarts", "RestartWindow", "EqualDeaths", "PassivateAfter", "Isolation", "SessionStore", "SessionStoreOptions", "RestartBackoff", "Recovery", "DecideRecovery", "Discard", "OutputRepairs"}
	all := samples()
	for _, f := range slices.Concat(reflect.VisibleFields(reflect.TypeFor[session.Options]()), reflect.VisibleFields(reflect.TypeFor[dialect.Facts]())) {
		field := f.Name
		if slices.Contains(hostOnly, field) {
			assert.NotContains(t, all, field, "a dialect reads it")
			continue
		}
		sample, ok := all[field]
		require.True(t, ok, "no sample of %s", field)
		for name, d := range dialects() {
			with := start(name)
			sample(&with)
			without := with
			reflect.ValueOf(&without).Elem().FieldByName(field).SetZero()
			if field == "Auth" && name == "qoder" {
				without.Auth = &session.Auth{Type: session.AuthAccessToken, AccessToken: secret}
			}
			same := reflect.DeepEqual(wireOf(t, d, &with), wireOf(t, d, &without))
			assert.Equal(t, isSilent(silent, field, name), same, "%s on %s", field, name)
		}
	}
}

func isSilent(silent map[string][]string, field, name string) bool {
	return slices.Contains(silent[field], name)
}

// TestRefusalsNameTheirOption: an option that a backend lacks is refused under its own name.
func TestRefusalsNameTheirOption(t *testing.T) {
	t.Parallel()
	renamed := map[string]string{"ShouldGenerateMemory": "Memory", "ShouldReviewSkills": "Evolution"} // on Claude, which has neither
	for field, sample := range samples() {
		for name, d := range dialects() {
			o := start(name)
			sample(&o)
			_, err := d.Validate(&o)
			if err == nil {
				continue
			}
			want := field
			if other, ok := renamed[field]; ok {
				want = other
			}
			var named bool
			for _, e := range session.ConfigErrors(err) {
				named = named || e.Option == want
				assert.Equal(t, name, e.Backend)
				assert.NotEmpty(t, e.Problem)
			}
			assert.True(t, named, "%s on %s: %v", field, name, err)
		}
	}
}
