package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/transcript"
)

// ResolvedSettings are the settings that a session begins with, as far as files and
// options say them.
type ResolvedSettings struct {
	Effective json.RawMessage   // all sources merged: an object
	From      map[string]string // by key of Effective: the Name of the last source that has it
	Sources   []SettingsSource  // those that exist, lowest precedence first
	// Problems are files that exist and have no effect, because they cannot be read or
	// are not JSON objects. The agent ignores them silently.
	Problems []error
}

// SettingsSource is one source of [ResolvedSettings].
type SettingsSource struct {
	// Name is user, project, local, flag (Options.Settings and SettingsPath) or managed.
	Name     string
	Path     string          // of the file; "": the options have it
	Settings json.RawMessage // an object
}

// ResolveSettings returns the settings that Claude Code would begin a session with the
// options o with, without starting it: those of the user, of the project in o.Cwd (the
// process's directory if it is ""), of the options and of the machine's managed files, as
// o.SettingSources selects. Objects are merged, lists are joined without repetitions, and
// of other values the last counts (compared with resolveSettings of Claude Agent SDK
// 0.3.329). Troupe does not check the values; Claude Code ignores a file that has a value
// of a wrong type. Not included are managed settings that a server, a profile of macOS or
// the registry of Windows serves. Of o.ManagedSettings only permissions, sandbox and the
// keys that begin with allowManaged count, as for the agent.
//
// The error is a *[ConfigError]: the options are for another agent, or Settings,
// ManagedSettings or SettingsPath cannot be read. [Client.Settings] returns the settings
// of an open session.
func ResolveSettings(o *Options) (*ResolvedSettings, error) {
	sessions, err := Sessions(o)
	if err != nil {
		return nil, err
	}
	if o == nil {
		o = &Options{}
	}
	if sessions.Vendor != transcript.Claude {
		return nil, &ConfigError{Option: "Backend", Backend: vendorName(sessions.Vendor), Problem: "has settings whose rules are not known",
			Fix: "open a session and call Client.Settings"}
	}
	r := &ResolvedSettings{From: map[string]string{}}
	merged := map[string]any{}
	selected := o.SettingSources.Names()
	all := o.SettingSources.IsZero() || o.SettingSources.IsAll()
	for _, file := range []SettingsSource{
		{Name: "user", Path: filepath.Join(sessions.Root, "settings.json")},
		{Name: "project", Path: filepath.Join(o.Cwd, ".claude", "settings.json")},
		{Name: "local", Path: filepath.Join(o.Cwd, ".claude", "settings.local.json")},
	} {
		if all || slices.Contains(selected, file.Name) {
			r.addFile(merged, file)
		}
	}
	data := dialect.Input{Options: *o}
	if err := readSettings(&data); err != nil {
		return nil, err
	}
	for _, given := range []struct {
		option, path string
		settings     []byte
	}{{"SettingsPath", o.SettingsPath, data.SettingsContent}, {"Settings", "", o.Settings}} {
		if err := r.addOption(merged, SettingsSource{Name: "flag", Path: given.path}, given.option, given.settings, nil); err != nil {
			return nil, err
		}
	}
	if err := r.addOption(merged, SettingsSource{Name: "managed"}, "ManagedSettings", o.ManagedSettings, restrictive); err != nil {
		return nil, err
	}
	for _, path := range managedFiles() {
		r.addFile(merged, SettingsSource{Name: "managed", Path: path})
	}
	r.Effective, err = json.Marshal(merged)
	return r, err
}

// restrictive reports whether Claude Code takes a key of managed settings from a host.
func restrictive(key string) bool {
	return key == "permissions" || key == "sandbox" || strings.HasPrefix(key, "allowManaged")
}

// addFile adds a file, if it exists.
func (r *ResolvedSettings) addFile(merged map[string]any, s SettingsSource) {
	raw, err := os.ReadFile(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		var settings map[string]any
		if settings, err = settingsObject(raw); err == nil {
			r.add(merged, s, settings)
			return
		}
		err = fmt.Errorf("%s: %w", s.Path, err)
	}
	r.Problems = append(r.Problems, err)
}

// addOption adds what an option has; keep selects keys, nil: all.
func (r *ResolvedSettings) addOption(merged map[string]any, s SettingsSource, option string, raw []byte, keep func(string) bool) error {
	if len(raw) == 0 {
		return nil
	}
	settings, err := settingsObject(raw)
	if err != nil {
		return &ConfigError{Option: option, Problem: fmt.Sprintf("is no JSON object: %v", err), Fix: "give an object such as {\"model\": \"…\"}"}
	}
	if keep != nil {
		maps.DeleteFunc(settings, func(key string, _ any) bool { return !keep(key) })
	}
	if len(settings) > 0 {
		r.add(merged, s, settings)
	}
	return nil
}

func (r *ResolvedSettings) add(merged map[string]any, s SettingsSource, settings map[string]any) {
	s.Settings, _ = json.Marshal(settings) // it was decoded from JSON
	r.Sources = append(r.Sources, s)
	mergeSettings(merged, settings)
	for key := range settings {
		r.From[key] = s.Name
	}
}

func settingsObject(raw []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(raw, []byte("\ufeff"))))
	d.UseNumber() // numbers keep their digits
	var settings map[string]any
	if err := d.Decode(&settings); err != nil {
		return nil, err
	}
	if settings == nil {
		return nil, errors.New("it is null")
	}
	if d.More() {
		return nil, errors.New("something follows the object")
	}
	return settings, nil
}

// mergeSettings merges from into to.
func mergeSettings(to, from map[string]any) {
	for key, value := range from { //troupe:maporder each key is merged alone
		switch value := value.(type) {
		case map[string]any:
			inner := map[string]any{}
			if old, ok := to[key].(map[string]any); ok {
				mergeSettings(inner, old)
			}
			mergeSettings(inner, value)
			to[key] = inner
		case []any:
			old, _ := to[key].([]any)
			to[key] = joined(old, value)
		default:
			to[key] = value
		}
	}
}

// joined returns the elements of both lists, each once.
func joined(a, b []any) []any {
	out := []any{}
	for _, v := range slices.Concat(a, b) {
		if !slices.ContainsFunc(out, func(w any) bool { return reflect.DeepEqual(v, w) }) {
			out = append(out, v)
		}
	}
	return out
}

// managedFiles are the files of the machine's administrator, lowest precedence first.
func managedFiles() []string {
	dir := "/etc/claude-code"
	switch runtime.GOOS {
	case "darwin":
		dir = "/Library/Application Support/ClaudeCode"
	case "windows":
		dir = `C:\Program Files\ClaudeCode`
	}
	files := []string{filepath.Join(dir, "managed-settings.json")}
	more, _ := filepath.Glob(filepath.Join(dir, "managed-settings.d", "*.json")) // sorted; the pattern is valid
	return append(files, more...)
}
