package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/internal/kernel"
)

const (
	defaultSetups = 2
	cacheDir      = "cache" // in Job.Out
)

// setups limits how many Setup and Teardown commands run at the same time. The job's mu
// guards it.
type setups struct {
	running int
	queue   []*kernel.Promise[struct{}]
}

// enterSetup waits until one more command may run, and returns what ends its turn.
func (r *run) enterSetup(ctx context.Context) (leave func(), err error) {
	r.mu.Lock()
	if r.setups.running < r.job.Setups {
		r.setups.running++
		r.mu.Unlock()
		return r.leaveSetup, nil
	}
	turn := kernel.NewPromise[struct{}]()
	r.setups.queue = append(r.setups.queue, turn)
	r.mu.Unlock()
	if _, err := turn.Wait(ctx, r.exec); err != nil {
		r.mu.Lock()
		at := slices.Index(r.setups.queue, turn)
		if at >= 0 {
			r.setups.queue = slices.Delete(r.setups.queue, at, at+1)
		}
		r.mu.Unlock()
		if at < 0 { // its turn came with the end of ctx
			r.leaveSetup()
		}
		return nil, err
	}
	return r.leaveSetup, nil
}

// leaveSetup gives the turn to the command that waits longest.
func (r *run) leaveSetup() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.setups.queue) == 0 {
		r.setups.running--
		return
	}
	r.setups.queue[0].Resolve(struct{}{})
	r.setups.queue = slices.Delete(r.setups.queue, 0, 1)
}

// setup runs the Setup of a new workspace. The first one with a key fills the cache alone;
// the others wait for it, without a turn of Job.Setups.
func (r *run) setup(ctx context.Context, a *attempt, dir string) error {
	if a.workspace.Setup == "" {
		return nil
	}
	key, err := cacheKey(dir, a.workspace.Lockfiles)
	if err != nil {
		return &badWorkspace{dir: dir, err: err}
	}
	if key == "" {
		return r.runSetup(ctx, a, dir)
	}
	cache := filepath.Join(r.root, cacheDir, key)
	leave, err := r.rt.Exclusive(ctx, "cache "+cache)
	if err != nil {
		return &badWorkspace{dir, fmt.Errorf("setup: waiting for the cache %s: %w", cache, err), true}
	}
	defer leave()
	if cacheComplete(cache) {
		leave() // others may go on now
		return r.runSetup(ctx, a, dir, "TROUPE_CACHE="+cache)
	}
	if err := emptyCache(cache); err != nil {
		return &badWorkspace{dir, fmt.Errorf("setup: what is in the cache %s is not complete and cannot be removed: %w: remove it", cache, err), true}
	}
	if err := r.runSetup(ctx, a, dir, "TROUPE_CACHE="+cache); err != nil {
		return err
	}
	if err := completeCache(r.root, key); err != nil {
		return &badWorkspace{dir, fmt.Errorf("setup: the cache %s: %w", cache, err), true}
	}
	return nil
}

func (r *run) runSetup(ctx context.Context, a *attempt, dir string, env ...string) error {
	leave, err := r.enterSetup(ctx)
	if err != nil {
		return &badWorkspace{dir, fmt.Errorf("setup: waiting for another one: %w", err), true}
	}
	defer leave()
	out, err := r.shell(ctx, a, dir, a.workspace.Setup, env...)
	if err != nil {
		return &badWorkspace{dir, fmt.Errorf("setup: %w%s", err, quoted(out)), true}
	}
	return nil
}

func (r *run) runTeardown(ctx context.Context, a *attempt, dir string) error {
	leave, err := r.enterSetup(ctx)
	if err != nil {
		return fmt.Errorf("teardown: waiting for another one: %w", err)
	}
	defer leave()
	out, err := r.shell(ctx, a, dir, a.workspace.Teardown)
	if err != nil {
		return fmt.Errorf("teardown: %w%s", err, quoted(out))
	}
	return nil
}

// cacheKey is the name of the cache for a workspace: a hash of its lockfiles; "": it has none.
func cacheKey(dir string, lockfiles []string) (string, error) {
	if len(lockfiles) == 0 {
		return "", nil
	}
	sum := sha256.New()
	for _, name := range slices.Compact(slices.Sorted(slices.Values(lockfiles))) {
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return "", fmt.Errorf("the lockfile %s cannot be read: %w: put it into the workspace, or take it out of lockfiles", name, err)
		}
		_, _ = fmt.Fprintf(sum, "%q %d\n%s", name, len(content), content) // it never fails
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}

// A cache is complete if the file <key>.done is next to it.
const doneSuffix = ".done"

func cacheComplete(cache string) bool {
	_, gone := os.Stat(cache)
	_, open := os.Stat(cache + doneSuffix)
	return gone == nil && open == nil
}

// emptyCache makes an empty directory in place of what a Setup that failed, or whose host
// died, has left.
func emptyCache(cache string) error {
	if err := os.RemoveAll(cache + doneSuffix); err != nil {
		return err
	}
	if err := os.RemoveAll(cache); err != nil {
		// Some caches, such as that of Go modules, have directories that cannot be written.
		_ = filepath.WalkDir(cache, func(name string, d fs.DirEntry, _ error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(name, 0o700) //nolint:gosec // a directory
			}
			return nil
		})
		if err := os.RemoveAll(cache); err != nil {
			return err
		}
	}
	return os.MkdirAll(cache, 0o700)
}

// completeCache says durably that a cache is complete. Its files are durable before that.
func completeCache(root, key string) error {
	if err := syncFiles(filepath.Join(root, cacheDir, key)); err != nil {
		return err
	}
	return journal.WriteFile(journal.Dir(root), path.Join(cacheDir, key+doneSuffix), func(io.Writer) error { return nil })
}
