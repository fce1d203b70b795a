package hostgit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Bundle writes the commits of a working tree since base into the file, as a bundle of git, and returns
// where the working tree is. If HEAD has no commit that base lacks, it does not create the file.
func (d *Dir) Bundle(ctx context.Context, now *Repo, base, file string) (Head, error) {
	head, err := now.Head()
	if err != nil {
		return head, err
	}
	if head.Hash == "" {
		return head, errors.New("HEAD is at no commit any more")
	}
	if head.Hash == base {
		return head, nil
	}
	if err := d.file("HEAD", head.Hash+"\n"); err != nil {
		return head, err
	}
	_, err = d.look(ctx, d.path, nil, "bundle", "create", "--quiet", file, "HEAD", "^"+base)
	if err != nil && strings.Contains(err.Error(), "empty bundle") { // it went back to an older commit
		return head, nil
	}
	return head, err
}

// Move brings a working tree that is at its first commit to where another one was: its commits come from the file
// that [Dir.Bundle] has written; "": there are no new ones. All files are as in that commit, and
// nothing of it runs, such as hooks or filters. alone says that the repository has no other working tree: then a branch is set as it
// was there. In a shared one, a branch with this name is another task's, and HEAD is detached.
func (d *Dir) Move(ctx context.Context, now *Repo, head Head, file string, alone bool) error {
	if !hash.MatchString(head.Hash) || head.Ref != "" && (!goodRef(head.Ref) || !strings.HasPrefix(head.Ref, heads)) {
		return fmt.Errorf("%q at %q is not a HEAD of git", head.Ref, head.Hash)
	}
	if err := d.neutral(); err != nil {
		return err
	}
	if file != "" {
		if err := isBundle(file); err != nil {
			return err
		}
		into := []string{"GIT_OBJECT_DIRECTORY=" + filepath.Join(now.Common, "objects")}
		if _, err := d.look(ctx, d.path, into, "-c", "transfer.fsckObjects=true", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", file, "HEAD"); err != nil {
			return err
		}
	}
	if _, err := d.look(ctx, d.top, nil, "read-tree", "--reset", "-u", "--no-recurse-submodules", head.Hash); err != nil {
		return err
	}
	index, err := readSmall(filepath.Join(d.path, "index"))
	if err != nil {
		return err
	}
	own, err := os.OpenRoot(now.GitDir)
	if err != nil {
		return err
	}
	defer func() { _ = own.Close() }()
	at := head.Hash
	if head.Ref != "" {
		set, err := now.branch(head, alone)
		if err != nil {
			return err
		}
		if set {
			at = "ref: " + head.Ref
		}
	}
	return errors.Join(replaceFile(own, "index", index), replaceFile(own, "HEAD", at+"\n"))
}

// isBundle checks the begin of a file. From another one, git would fetch from the repository that it names.
func isBundle(file string) (err error) {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	begin := make([]byte, len("# v2 git bundle\n"))
	if _, err := io.ReadFull(f, begin); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if s := string(begin); s != "# v2 git bundle\n" && s != "# v3 git bundle\n" {
		return errors.New("the commits are not a bundle of git")
	}
	return nil
}

// branch sets a branch, unless the repository has other working trees and a branch with the name.
func (r *Repo) branch(head Head, alone bool) (set bool, err error) {
	at, err := r.ref(head.Ref)
	if at == head.Hash && alone {
		return true, nil
	}
	if err != nil || at != "" && !alone {
		return false, nil // a part of the name is a branch
	}
	root, err := os.OpenRoot(r.Common)
	if err != nil {
		return false, err
	}
	defer func() { _ = root.Close() }()
	if root.MkdirAll(path.Dir(head.Ref), 0o777) != nil { // there is a branch with a part of the name
		return false, nil
	}
	if err := replaceFile(root, head.Ref, head.Hash+"\n"); errors.Is(err, fs.ErrExist) { // another task was quicker
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("the branch %s: %w", head.Ref, err)
	}
	return true, nil
}
