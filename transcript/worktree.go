package transcript

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// worktrees returns the directories of all worktrees of the git repository that dir is in,
// the main one first; nil if dir is in none. It reads git's files and starts no program.
func worktrees(dir string) []string {
	top, gitDir := gitDirOf(dir)
	if top == "" {
		return nil
	}
	common := gitDir
	if raw, err := os.ReadFile(filepath.Join(gitDir, "commondir")); err == nil { // of a linked worktree
		common = strings.TrimSpace(string(raw))
		if !filepath.IsAbs(common) {
			common = filepath.Join(gitDir, common)
		}
		if filepath.Base(common) == ".git" {
			top = filepath.Dir(common)
		}
	}
	out := []string{top}
	entries, err := os.ReadDir(filepath.Join(common, "worktrees"))
	if err != nil {
		return out
	}
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(common, "worktrees", e.Name(), "gitdir"))
		if err != nil {
			continue
		}
		file := strings.TrimSpace(string(raw)) // the .git file of the worktree
		if !filepath.IsAbs(file) {
			file = filepath.Join(common, "worktrees", e.Name(), file)
		}
		if tree := filepath.Dir(file); !slices.Contains(out, tree) {
			out = append(out, tree)
		}
	}
	return out
}

// gitDirOf returns the worktree that dir is in, and its git directory, or "".
func gitDirOf(dir string) (top, gitDir string) {
	for {
		file := filepath.Join(dir, ".git")
		if info, err := os.Stat(file); err == nil {
			if info.IsDir() {
				return dir, file
			}
			if raw, err := os.ReadFile(file); err == nil {
				if target, ok := strings.CutPrefix(strings.TrimSpace(string(raw)), "gitdir:"); ok {
					target = strings.TrimSpace(target)
					if !filepath.IsAbs(target) {
						target = filepath.Join(dir, target)
					}
					return dir, target
				}
			}
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", ""
		}
		dir = up
	}
}
