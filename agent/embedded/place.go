package embedded

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/internal/search"
)

// spot is the file of a call, as it was when the gate and the check looked. The call then
// works on that file: links that someone puts in its way are not followed, and a file that
// has changed is not written. It goes with the context of the call's task.
type spot struct {
	path, real string // as the input means it, and with its links followed; "" if it was not looked up
	checked    bool   // there and hash are known
	there      bool
	hash       uint64 // of its content
}

type spotKey struct{}

// spotOf is the spot of the call whose task has the context; nil without one.
func spotOf(ctx context.Context) *spot {
	u, _ := ctx.Value(spotKey{}).(*spot)
	return u
}

// judged is the gate of a tool. It notes where the path leads, and lets a call run only if
// that very place may be used: a link could lead elsewhere a moment later.
func (t *talk) judged(own *tool, u *spot) func(agent.Permissions, agent.Object) agent.Verdict {
	judge := t.judge(own)
	if own.path == "" {
		return judge
	}
	return func(p agent.Permissions, in agent.Object) agent.Verdict {
		if at := t.hands.path(own.place(t.hands, in)); at != u.path {
			*u = spot{path: at} // a hook may have changed it after the check
		}
		u.real = u.path
		if at, err := resolve(u.path); err == nil {
			u.real = at
		}
		if why := t.hands.refusal(own, in); why != "" {
			return agent.Verdict{Deny: why}
		}
		v := judge(p, in)
		if !v.Allow || p.Mode == "bypassPermissions" || u.real == u.path {
			return v
		}
		again := maps.Clone(in)
		again[own.path] = u.real
		if own.tree {
			again["pattern"] = "*"
		}
		if w := judge(p, again); !w.Allow {
			return w
		}
		return v
	}
}

// look notes what the file is when the call has been checked.
func (u *spot) look(h *hands, path string) {
	content, _, err := h.load(nil, path)
	u.path, u.checked, u.there = path, err == nil || errors.Is(err, fs.ErrNotExist), err == nil
	u.hash = hash(content)
}

// changed reports whether the file is another one than when the call was checked.
func (u *spot) changed(path string, d *document) bool {
	if u == nil || !u.checked || u.path != path {
		return false
	}
	return u.there != (d != nil) || d != nil && u.hash != hash(d.content)
}

// leadsTo is where a path leads: for the call's own, where it led when the gate looked.
func (u *spot) leadsTo(path string) string {
	if u != nil && u.path == path && u.real != "" {
		return u.real
	}
	if at, err := resolve(path); err == nil {
		return at
	}
	return path
}

// errMoved is a file that is not the one any more that the call was checked for.
var errMoved = errors.New("the file has changed since the call was checked")

const movedText = "File content has changed since it was last read. This commonly happens when a linter or formatter run via Bash rewrites the file. Call Read on this file to refresh, then retry the edit."

// enterDir opens a directory whose links have been followed. In the session's directories no
// link is followed again, also if one is put there meanwhile. create makes what is missing.
func (h *hands) enterDir(at string, create bool) (*os.Root, error) {
	base := at
	for _, dir := range append([]string{h.real}, h.directories()...) {
		if within(at, dir) {
			base = dir
			break
		}
	}
	if base == at && create {
		if err := os.MkdirAll(at, 0o777); err != nil { //nolint:gosec // as every program makes them
			return nil, err
		}
	}
	root, err := os.OpenRoot(base)
	if err != nil || base == at {
		return root, err
	}
	for _, step := range strings.Split(strings.TrimPrefix(strings.TrimPrefix(at, base), "/"), "/") {
		next, err := below(root, step, create)
		_ = root.Close() // it was only used
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: at, Err: err}
		}
		root = next
	}
	return root, nil
}

// below opens a directory of another one, if it is one and no link.
func below(root *os.Root, name string, create bool) (*os.Root, error) {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) && create {
		if err = root.Mkdir(name, 0o777); err == nil || errors.Is(err, fs.ErrExist) {
			info, err = root.Lstat(name)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, errMoved
	case !info.IsDir():
		return nil, syscall.ENOTDIR
	}
	next, err := root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if now, err := next.Stat("."); err != nil || !os.SameFile(info, now) {
		_ = next.Close() // another one
		return nil, errMoved
	}
	return next, nil
}

// load reads the file to which a path leads. A pipe or a device, which could block the task,
// is refused.
func (h *hands) load(u *spot, path string) ([]byte, fs.FileInfo, error) {
	at := u.leadsTo(path)
	if err := h.disk.ask(diskRead, path); err != nil {
		return nil, nil, err
	}
	if device.MatchString(at) { // a link leads there
		return nil, nil, &fs.PathError{Op: "read", Path: path, Err: errNoFile}
	}
	if at == h.real || at == "/" {
		return nil, nil, &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	}
	dir, err := h.enterDir(filepath.Dir(at), false)
	if err != nil {
		return nil, nil, moved(path, err)
	}
	defer func() { _ = dir.Close() }() // it was only used
	name := filepath.Base(at)
	info, err := dir.Lstat(name)
	switch {
	case err != nil:
		return nil, nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, nil, moved(path, errMoved)
	case info.IsDir():
		return nil, nil, &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	case !info.Mode().IsRegular():
		return nil, nil, &fs.PathError{Op: "read", Path: path, Err: errNoFile}
	}
	f, err := search.Open(dir, name, info)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }() // it was read
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = &fs.PathError{Op: "read", Path: path, Err: syscall.EFBIG}
	}
	return content, info, err
}

// moved says that a path does not lead where it did; or nowhere, if that is so.
func moved(path string, err error) error {
	if !errors.Is(err, errMoved) {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		return err
	}
	return &fs.PathError{Op: "open", Path: path, Err: errMoved}
}
