package claude

import (
	"slices"

	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/session"
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
func mergeSandbox(s *build.Settings, box *session.Sandbox) error {
	given, err := build.TreeOf(box)
	if err != nil {
		return err
	}
	own, _ := s.Get("sandbox").(*build.Tree)
	merged := mergeObjects(own, given, "")
	if files := given.Sub("filesystem"); files != nil || deniesFiles(given) {
		// Rules for files mean that files are confined.
		_, said := files.Value("disabled")
		at := merged.Sub("filesystem")
		if at.IsTrue("disabled") && !said {
			at.Delete("disabled")
		}
	}
	network := given.Sub("network")
	if at := merged.Sub("network"); at != nil && limits(network) {
		// The ports of a proxy in the settings would lead around the domains that are allowed here.
		for _, port := range []string{"httpProxyPort", "socksProxyPort"} {
			if _, mine := network.Value(port); !mine {
				at.Delete(port)
			}
		}
	}
	if _, said := merged.Value("failIfUnavailable"); !said && box.Enabled.Or(false) {
		merged.Put("failIfUnavailable", true)
	}
	return s.Set("sandbox", merged)
}

// deniesFiles reports whether a sandbox keeps credentials in files from being read.
func deniesFiles(box *build.Tree) bool {
	list, _ := box.Sub("credentials").Value("files")
	files, _ := list.([]any)
	return slices.ContainsFunc(files, func(file any) bool {
		entry, _ := file.(*build.Tree)
		mode, _ := entry.Value("mode")
		return mode == "deny"
	})
}

// limits reports whether a network section says which domains may be reached.
func limits(network *build.Tree) bool {
	_, allowed := network.Value("allowedDomains")
	list, _ := network.Value("deniedDomains")
	denied, _ := list.([]any)
	return allowed || len(denied) > 0 || network.IsTrue("strictAllowlist")
}

func mergeObjects(own, given *build.Tree, path string) *build.Tree {
	out := own.Copy()
	for _, key := range given.Keys() {
		at := key
		if path != "" {
			at = path + "." + key
		}
		value, _ := given.Value(key)
		old, _ := out.Value(key)
		switch v := value.(type) {
		case *build.Tree:
			if old, ok := old.(*build.Tree); ok && !whole(at) {
				value = mergeObjects(old, v, at)
			}
		case []any:
			if old, ok := old.([]any); ok && joined(at) {
				value = union(old, v)
			}
		}
		out.Put(key, value)
	}
	return out
}

// union is both lists, each text once. Objects stay, be they alike: the SDK compares them by identity.
func union(a, b []any) []any {
	out, seen := []any{}, map[any]bool{}
	for _, v := range slices.Concat(a, b) {
		switch v.(type) {
		case *build.Tree, []any:
		default:
			if seen[v] {
				continue
			}
			seen[v] = true
		}
		out = append(out, v)
	}
	return out
}
