package sdk

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
)

// loadedSettings are the settings files that Claude Code loads by itself: the user's, and those of the project in its
// directory. Of a checkout it also loads the local file at the root, and with the source project the .mcp.json of the
// directory and of every directory above it, also above the checkout (observed on 2.1.329). A file that cannot be read is
// left out: the agent reads it with other rights, or as another user.
func loadedSettings(d *dialect.Input, a *backend.Agent) []dialect.SettingsFile {
	if a.Dialect == nil || a.Dialect.Name() != claude.Name || !a.Local() || d.Spawner != nil {
		return nil
	}
	selected := func(source string) bool {
		return d.SettingSources.IsZero() || d.SettingSources.IsAll() || slices.Contains(d.SettingSources.Names(), source)
	}
	project := cmp.Or(d.ProjectConfigRoot, d.Cwd, ".")
	files := []dialect.SettingsFile{
		{Source: "project", Path: filepath.Join(project, ".claude", "settings.json")},
		{Source: "local", Path: filepath.Join(project, ".claude", "settings.local.json")},
	}
	if d.ProjectConfigRoot == "" {
		if root := checkoutOf(project); root != "" {
			files = append(files, dialect.SettingsFile{Source: "local", Path: filepath.Join(root, ".claude", "settings.local.json")})
		}
	}
	if dir := (claude.Dialect{}).ConfigDir(d).Path; dir != "" {
		files = append(files, dialect.SettingsFile{Source: "user", Path: filepath.Join(dir, "settings.json")})
	}
	for _, dir := range above(project) {
		files = append(files, dialect.SettingsFile{Source: "project", Servers: true, Path: filepath.Join(dir, ".mcp.json")})
	}
	var loaded []dialect.SettingsFile
	for _, f := range files {
		if !selected(f.Source) {
			continue
		}
		if info, err := os.Stat(f.Path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if content, err := os.ReadFile(f.Path); err == nil {
			f.Content = content
			loaded = append(loaded, f)
		}
	}
	return loaded
}

// checkoutOf is the directory above dir that has a .git; "": none, or dir itself.
func checkoutOf(dir string) string {
	for i, at := range above(dir) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			if i == 0 {
				return ""
			}
			return at
		}
	}
	return ""
}

// above is a directory and those above it, up to the root.
func above(dir string) []string {
	at, err := filepath.Abs(dir)
	if err != nil {
		return nil
	}
	dirs := []string{at}
	for up := filepath.Dir(at); up != at; at, up = up, filepath.Dir(up) {
		dirs = append(dirs, up)
	}
	return dirs
}
