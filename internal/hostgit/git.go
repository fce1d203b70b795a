package hostgit

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// nowhere is a file without content, and a directory without hooks.
const nowhere = os.DevNull

// Call is a command of git to run.
type Call struct {
	Args []string
	Dir  string   // where
	Env  []string // the whole environment
}

// Git runs git for the host. Run starts it and returns its output; its error has what git has
// printed. Environ is the environment of the host, and Excludes what [Git.UserExcludes] says.
type Git struct {
	Run      func(context.Context, Call) (string, error)
	Environ  []string
	Excludes string
}

// environ is the environment of the host without what would lead git elsewhere, such as the
// GIT_DIR of a hook that has started the host.
func (g *Git) environ(more ...string) []string {
	return append(Clean(g.Environ), append([]string{"GIT_TERMINAL_PROMPT=0", "LC_ALL=C"}, more...)...)
}

// Clean returns the variables of an environment but for those that tell git which repository,
// configuration and programs to use, and without relative entries of PATH. Those that say how to reach a remote repository stay.
func Clean(env []string) []string {
	keep := make([]string, 0, len(env))
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
			"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_SSL_CAINFO", "GIT_SSL_NO_VERIFY", "GIT_EXEC_PATH":
		default:
			if strings.HasPrefix(strings.ToUpper(name), "GIT_") {
				continue
			}
		}
		if path, ok := strings.CutPrefix(kv, "PATH="); ok { // a relative entry would be in the workspace
			kv = "PATH=" + strings.Join(slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool { return !filepath.IsAbs(dir) }), string(os.PathListSeparator))
		}
		keep = append(keep, kv)
	}
	return keep
}

// plain runs git where it needs no repository.
func (g *Git) plain(ctx context.Context, dir string, args ...string) (string, error) {
	return g.Run(ctx, Call{Args: args, Dir: dir, Env: g.environ("GIT_DIR=" + nowhere)})
}

// Find finds the repository that a directory is in, with its settings. Call it before an
// agent can have written there.
func (g *Git) Find(ctx context.Context, dir string) (*Repo, error) {
	r, err := Find(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{filepath.Join(r.Common, "config"), filepath.Join(r.GitDir, "config.worktree")} {
		more, err := g.settings(ctx, name)
		if err != nil {
			return nil, err
		}
		r.Config = append(r.Config, more...)
	}
	return r, nil
}

// UserExcludes returns the file of ignored names in the user's configuration, or "".
func (g *Git) UserExcludes(ctx context.Context) string {
	out, err := g.plain(ctx, "", "config", "--global", "--includes", "--type=path", "--get", "core.excludesFile")
	if name := strings.TrimRight(out, "\r\n"); err == nil && filepath.IsAbs(name) {
		return name
	}
	return ""
}
