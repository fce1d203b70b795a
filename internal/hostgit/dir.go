package hostgit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// repoFile is the [Repo] in a [Dir], as JSON.
const repoFile = "repository.json"

// Dir is a git directory of the host's own for a working tree that an agent can write.
type Dir struct {
	git  *Git
	path string
	top  string // the working tree
	repo *Repo
}

// Make makes a directory for the working tree top of a repository, or opens the one that is
// there. All in it but the index is written anew from r, which is what was known before an
// agent ran. The directory must be where an agent cannot write.
func (g *Git) Make(path, top string, r *Repo) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	d := &Dir{git: g, path: path, top: top, repo: r}
	if err := d.write(g.Excludes); err != nil {
		return nil, fmt.Errorf("the directory of the host's git: %w", err)
	}
	return d, nil
}

// Open opens a directory that Make has made, also in an earlier process. Without top the working
// tree is that of the repository.
func (g *Git) Open(path, top string) (*Dir, error) {
	text, err := readSmall(filepath.Join(path, repoFile))
	if err != nil {
		return nil, err
	}
	r := &Repo{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(path, repoFile), err)
	}
	return g.Make(path, cmp.Or(top, r.Top), r)
}

// Path returns the directory.
func (d *Dir) Path() string { return d.path }

// Repo returns the repository as it was found.
func (d *Dir) Repo() *Repo { return d.repo }

// attributes override those of the working tree, which are the agent's: no filter, no text
// conversion, and no file whose change is not shown.
const attributes = "* !filter !diff\n"

// write makes all files but the index.
func (d *Dir) write(excludes string) error {
	old, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	for _, e := range old {
		if (e.Name() != "index" || !e.Type().IsRegular()) && (e.Name() != "objects" || !e.IsDir()) { // what was fetched for a partial clone stays
			if err := os.RemoveAll(filepath.Join(d.path, e.Name())); err != nil {
				return err
			}
		}
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	alternate := filepath.Join(d.repo.Common, "objects")
	if strings.ContainsAny(alternate, "\n\r") {
		return fmt.Errorf("the path %q of a repository has a line break", alternate)
	}
	kept, err := json.Marshal(d.repo)
	if err != nil {
		return err
	}
	for _, name := range []string{"info", "objects/info", "refs"} {
		if err := root.MkdirAll(name, 0o700); err != nil {
			return err
		}
	}
	files := [][2]string{
		{"HEAD", "ref: refs/heads/none\n"}, {"config", d.repo.config(excludes)}, {"objects/info/alternates", alternate + "\n"},
		{"info/exclude", d.repo.Exclude}, {repoFile, string(kept)},
	}
	if d.repo.Shallow != "" {
		files = append(files, [2]string{"shallow", d.repo.Shallow})
	}
	if d.repo.Sparse != "" {
		files = append(files, [2]string{"info/sparse-checkout", d.repo.Sparse})
	}
	for _, f := range files {
		if err := replaceFile(root, f[0], f[1]); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dir) file(name, content string) error {
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return err
	}
	return errors.Join(replaceFile(root, name, content), root.Close())
}

// environ leads git to this directory. With it git sees neither hooks nor settings of the
// repository.
func (d *Dir) environ() []string { return []string{"GIT_DIR=" + d.path, "GIT_WORK_TREE=" + d.top} }

// checkout runs git with the user's configuration, as before an agent has run.
func (d *Dir) checkout(ctx context.Context, args ...string) (string, error) {
	return d.git.Run(ctx, Call{Args: args, Dir: d.top, Env: d.git.environ(d.environ()...)})
}

// look runs git where an agent has worked: without any filter, from any configuration.
func (d *Dir) look(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	more := append(d.environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+nowhere, "GIT_ATTR_NOSYSTEM=1", "GIT_NO_LAZY_FETCH=1", "GIT_LITERAL_PATHSPECS=1")
	base := slices.DeleteFunc(d.git.environ(), func(kv string) bool { return strings.HasPrefix(kv, "GIT_CONFIG_") })
	return d.git.Run(ctx, Call{Args: args, Dir: dir, Env: slices.Concat(base, more, env)})
}

// Commit returns the commit that a revision names, such as main~2; "" is HEAD.
func (d *Dir) Commit(ctx context.Context, rev string) (string, error) {
	head, err := d.repo.Head()
	if err != nil {
		return "", err
	}
	if rev == "" || rev == "HEAD" {
		rev = "HEAD"
		if head.Hash != "" {
			return head.Hash, nil
		}
	}
	if err := d.takeRefs(d.repo, head); err != nil {
		return "", err
	}
	out, err := d.look(ctx, d.path, nil, "rev-parse", "--verify", "--end-of-options", rev+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("there is no revision %q: %w", rev, err)
	}
	return strings.TrimSpace(out), nil
}

// takeRefs copies the references of the repository as they are now: as data, because what an
// agent puts among them could be a link.
func (d *Dir) takeRefs(now *Repo, head Head) error {
	all, err := now.refs()
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("# pack-refs with: sorted \n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.WriteString(all[name] + " " + name + "\n")
	}
	text := head.Hash
	if head.Ref != "" {
		text = "ref: " + head.Ref
	}
	return errors.Join(d.file("packed-refs", b.String()), d.file("HEAD", text+"\n"))
}

// Has reports whether a commit has a directory; name is relative, with slashes.
func (d *Dir) Has(ctx context.Context, commit, name string) (bool, error) {
	out, err := d.look(ctx, d.path, nil, "ls-tree", "-d", "-z", "--name-only", "--full-tree", commit, "--", strings.TrimSuffix(name, "/"))
	return out != "", err
}

// Fill writes the files of a commit into the empty working tree, as git checkout does,
// with filters of the user's configuration, but no hooks.
func (d *Dir) Fill(ctx context.Context, commit string) error {
	_, err := d.checkout(ctx, "read-tree", "-m", "-u", "--no-recurse-submodules", commit)
	return err
}

// Seed takes over what the index of the repository knows of its files. Call it before an agent
// can have written there.
func (d *Dir) Seed(ctx context.Context) error {
	content, err := readSmall(filepath.Join(d.repo.GitDir, "index"))
	if err != nil {
		return nil //nolint:nilerr // it only saves time
	}
	if err := d.file("index", content); err != nil {
		return err
	}
	if _, err := d.look(ctx, d.path, nil, "ls-files", "--", "none"); err != nil { // a split index is in two files
		return os.Remove(filepath.Join(d.path, "index"))
	}
	return nil
}

// neutral sets aside the attributes of the working tree.
func (d *Dir) neutral() error { return d.file("info/attributes", attributes) }

// index makes an index of a commit beside the own one, which has what is known of the files
// from before an agent ran, and returns the variable that names it.
func (d *Dir) index(ctx context.Context, commit string) ([]string, error) {
	if err := d.neutral(); err != nil {
		return nil, err
	}
	const name = "index.look"
	content, err := readSmall(filepath.Join(d.path, "index"))
	if err == nil {
		err = d.file(name, content)
	} else if errors.Is(err, os.ErrNotExist) {
		if err = os.Remove(filepath.Join(d.path, name)); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(d.path, name)}
	if commit == "" {
		_, err = d.look(ctx, d.top, env, "read-tree", "--empty")
		return env, err
	}
	env = append(env, "GIT_ATTR_SOURCE="+commit)
	_, err = d.look(ctx, d.top, env, "read-tree", "--reset", "-i", "--no-recurse-submodules", commit)
	return env, err
}

// Learn makes an index of a commit for files that are there already, so that later looks need
// not read those that have not changed.
func (d *Dir) Learn(ctx context.Context, commit string) error {
	env, err := d.index(ctx, commit)
	if err != nil {
		return err
	}
	if _, err := d.look(ctx, d.top, env, "update-index", "-q", "--refresh", "--ignore-submodules", "--unmerged"); err != nil && ctx.Err() != nil {
		return err // it fails when files differ, too
	}
	return os.Rename(filepath.Join(d.path, "index.look"), filepath.Join(d.path, "index"))
}

// Changed returns the paths below dir that differ from a commit and are not ignored, relative
// to the working tree. A repository inside of it is one path, which ends with a slash: git does
// not enter it. "": there is no commit.
func (d *Dir) Changed(ctx context.Context, commit, dir string) ([]string, error) {
	env, err := d.index(ctx, commit)
	if err != nil {
		return nil, err
	}
	head := cmp.Or(commit, "ref: refs/heads/none")
	if err := d.file("HEAD", head+"\n"); err != nil {
		return nil, err
	}
	out, err := d.look(ctx, dir, env, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=all", "--", ".")
	if err != nil {
		return nil, err
	}
	var all []string
	for entry := range strings.SplitSeq(out, "\x00") {
		if len(entry) >= len("XY a") {
			all = append(all, entry[len("XY "):])
		}
	}
	return all, nil
}

// Diff returns what differs from a commit in the whole working tree, new files included.
func (d *Dir) Diff(ctx context.Context, commit string) (string, error) {
	env, err := d.index(ctx, commit)
	if err != nil {
		return "", err
	}
	others, err := d.look(ctx, d.top, env, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return "", err
	}
	var names strings.Builder
	for name := range strings.SplitSeq(others, "\x00") {
		if name != "" && !strings.HasSuffix(name, "/") { // another repository
			names.WriteString(name + "\x00")
		}
	}
	if names.Len() > 0 {
		if err := d.file("new-files", names.String()); err != nil {
			return "", err
		}
		if _, err := d.look(ctx, d.top, env, "add", "--intent-to-add", "--force", "--pathspec-file-nul", "--pathspec-from-file="+filepath.Join(d.path, "new-files")); err != nil {
			return "", err
		}
	}
	return d.look(ctx, d.top, env, "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", commit)
}

// Hand prepares the directory for a command of the user's, and returns the variables that
// lead its git here: HEAD and the references are those of the repository as it is now, the
// settings are those from before an agent ran, and there are no hooks and no filters.
func (d *Dir) Hand(ctx context.Context, now *Repo) ([]string, error) {
	head, err := now.Head()
	if err == nil {
		err = errors.Join(d.takeRefs(now, head), d.neutral())
	}
	if err != nil || head.Hash == "" {
		return d.environ(), err
	}
	_, err = d.look(ctx, d.top, nil, "read-tree", "--reset", "-i", "--no-recurse-submodules", head.Hash)
	if err == nil {
		_, _ = d.look(ctx, d.top, nil, "update-index", "-q", "--refresh", "--ignore-submodules", "--unmerged") // fails when files differ
	}
	return d.environ(), err
}
