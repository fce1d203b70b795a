package claude

import (
	"maps"
	"slices"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
)

// joined are the lists of which both halves hold when a sandbox is merged: what either of them denies is denied.
func joined(path string) bool {
	return slices.Contains([]string{"filesystem.denyRead", "filesystem.denyWrite", "network.deniedDomains",
		"credentials.files", "credentials.envVars"}, path)
}

// whole are the objects that are replaced, not merged.
func whole(path string) bool {
	return path == "ripgrep" || path == "network.tlsTerminate"
}

// mergeSandbox merges the sandbox of the options into that of the settings, as the SDK does. A sandbox that is asked
// for and cannot be had must not be left out in silence.
func mergeSandbox(s *build.Settings, box *dialect.Sandbox) error {
	given, err := build.Tree(box)
	if err != nil {
		return err
	}
	own, _ := s.Get("sandbox").(map[string]any)
	merged := mergeObjects(own, given, "")
	if files, ok := given["filesystem"].(map[string]any); ok && files["disabled"] == nil {
		// Rules for files mean that files are confined.
		at, _ := merged["filesystem"].(map[string]any)
		if off, _ := at["disabled"].(bool); off {
			delete(at, "disabled")
		}
	}
	network, _ := given["network"].(map[string]any)
	if at, ok := merged["network"].(map[string]any); ok && limits(network) {
		// The ports of a proxy in the settings would lead around the domains that are allowed here.
		for _, port := range []string{"httpProxyPort", "socksProxyPort"} {
			if _, mine := network[port]; !mine {
				delete(at, port)
			}
		}
	}
	if _, said := merged["failIfUnavailable"]; !said && box.Enabled.Or(false) {
		merged["failIfUnavailable"] = true
	}
	return s.Set("sandbox", merged)
}

// limits reports whether a network section says which domains may be reached.
func limits(network map[string]any) bool {
	denied, _ := network["deniedDomains"].([]any)
	strict, _ := network["strictAllowlist"].(bool)
	return network["allowedDomains"] != nil || len(denied) > 0 || strict
}

func mergeObjects(own, given map[string]any, path string) map[string]any {
	out := make(map[string]any, len(own)+len(given))
	maps.Copy(out, own)
	for _, key := range slices.Sorted(maps.Keys(given)) {
		at := key
		if path != "" {
			at = path + "." + key
		}
		switch v := given[key].(type) {
		case map[string]any:
			if old, ok := out[key].(map[string]any); ok && !whole(at) {
				out[key] = mergeObjects(old, v, at)
				continue
			}
		case []any:
			if old, ok := out[key].([]any); ok && joined(at) {
				out[key] = union(old, v)
				continue
			}
		}
		out[key] = given[key]
	}
	return out
}

// union is both lists, each value once. Values are compared by their JSON.
func union(a, b []any) []any {
	out, seen := []any{}, map[string]bool{}
	for _, v := range slices.Concat(a, b) {
		key := string(build.MustJSON(v))
		if !seen[key] {
			seen[key] = true
			out = append(out, v)
		}
	}
	return out
}
