package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/osproc"
	"github.com/agent-troupe/troupe/session"
)

// privateDirs are the configuration directories of sessions with a private one. They
// stay until the runtime is shut down, since any of the sessions may be resumed; with a
// state directory they stay after that, too.
type privateDirs struct {
	state string // directory that outlives the program; empty: none does
	host  *osproc.HostDir
	rand  kernel.Rand

	mu   sync.Mutex
	dirs []string
	told bool // that sessions with IsolationAuto share a directory
	warn bool // that a session store has no leases
}

// tells returns true once, so that a single event says that sessions with IsolationAuto
// share a directory.
func (p *privateDirs) tells() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.told
	p.told = true
	return first
}

// warnsOfStore reports, once, that a session store has no leases.
func (p *privateDirs) warnsOfStore() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.warn
	p.warn = true
	return first
}

func newPrivateDirs(cfg Config, rand kernel.Rand) *privateDirs {
	p := &privateDirs{host: osproc.NewHostDir(cmp.Or(cfg.TempDir, os.TempDir()), rand), rand: rand}
	if cfg.StateDir != "" {
		p.state = filepath.Join(cfg.StateDir, "config")
	}
	return p
}

// add makes an empty directory.
func (p *privateDirs) add() (dir string, err error) {
	name := "config-" + kernel.NewID(p.rand)
	if p.state == "" {
		dir, err = p.host.Add(name)
	} else if err = os.MkdirAll(p.state, 0o700); err == nil {
		dir = filepath.Join(p.state, name)
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dirs = append(p.dirs, dir)
	return dir, nil
}

// remove removes a directory that no session can use any more.
func (p *privateDirs) remove(dir string) error {
	p.mu.Lock()
	i := slices.Index(p.dirs, dir)
	if i >= 0 {
		p.dirs = slices.Delete(p.dirs, i, i+1)
	}
	p.mu.Unlock()
	switch {
	case i < 0:
		return nil
	case p.state == "":
		return p.host.Remove(dir, false)
	}
	return os.RemoveAll(dir)
}

// removeAll ends what does not outlive the runtime.
func (p *privateDirs) removeAll() error {
	if p.state != "" {
		return nil
	}
	p.mu.Lock()
	dirs := p.dirs
	p.dirs = nil
	p.mu.Unlock()
	problems := make([]error, len(dirs))
	for i, dir := range dirs {
		problems[i] = p.host.Remove(dir, false)
	}
	return errors.Join(problems...)
}

// of returns the directory that has the transcript of the agent's session id; empty if
// none has. Earlier programs may have made those of a state directory.
func (p *privateDirs) of(id string) string {
	if id == "" || strings.ContainsAny(id, `/\*?[`) {
		return ""
	}
	p.mu.Lock()
	dirs := slices.Clone(p.dirs)
	p.mu.Unlock()
	if p.state != "" {
		dirs, _ = filepath.Glob(filepath.Join(p.state, "config-*"))
	}
	for _, dir := range dirs {
		if found, _ := filepath.Glob(filepath.Join(dir, "projects", "*", id+".jsonl")); len(found) > 0 {
			return dir
		}
	}
	return ""
}

// isolate gives the agent the configuration directory that Options.Isolation asks for:
// this command, and, by the input, those of all later processes of the session.
func (s *Session) isolate(spec *Spec, in *dialect.Input, command *session.Command) error {
	o := &spec.Options
	d, ok := s.dialect.(dialect.Isolator)
	auto := o.Isolation == session.IsolationAuto
	switch {
	case s.stored.dir != "", o.Isolation != session.IsolationPrivate && !auto, auto && (!ok || o.Spawner != nil || spec.Program != nil):
		return nil
	case !ok:
		return &session.ConfigError{Option: "Isolation", Backend: s.dialect.Name(),
			Problem: "is private, and this agent has no configuration directory that could be", Fix: "leave it out"}
	}
	shared := d.ConfigDir(in)
	if auto && o.Env[shared.Variable] != "" {
		return nil // the user has chosen
	}
	settings, err := userSettings(in, shared)
	if err != nil {
		return isolationFailed(shared.Path, err)
	}
	e := &session.Isolated{Dir: shared.Path}
	switch known := s.rt.private.of(o.Resume); {
	case known != "":
		e.Dir = known
	case o.Resume != "" || o.Continue:
		e.Shared = "the session that it resumes is there"
	default:
		e.Shared = d.SharedLogin(in, settings)
	}
	if e.Shared != "" {
		if !auto || s.rt.private.tells() {
			s.isolated = e
		}
		return nil
	}
	s.isolated = e
	if e.Dir == shared.Path {
		if e.Dir, err = s.rt.private.add(); err != nil {
			return isolationFailed(cmp.Or(s.rt.private.state, s.rt.cfg.TempDir, os.TempDir()), err)
		}
		s.made, s.homeless = e.Dir, !o.PersistSession.Or(true)
		if e.Copied, err = fill(e.Dir, d, in, shared, settings); err != nil {
			s.forsake()
			return isolationFailed(shared.Path, err)
		}
	}
	in.SetEnv(shared.Variable, e.Dir)
	command.Env = withVariable(command.Env, shared.Variable, e.Dir)
	return nil
}

func isolationFailed(at string, err error) error {
	return &session.ConfigError{Option: "Isolation", Problem: fmt.Sprintf("is private, and %s cannot be used for it: %v", at, err),
		Fix: "make the files readable, or leave it out"}
}

// forsake removes the private directory of a session that never started, or that cannot
// be resumed.
func (s *Session) forsake() {
	if s.made != "" {
		_ = s.rt.private.remove(s.made) // a failure leaves files that are removed with the runtime's directory
	}
}

// userSettings are the settings that the agent would read; nil: none.
func userSettings(in *dialect.Input, shared dialect.ConfigDir) ([]byte, error) {
	if shared.Path == "" || shared.UserFile == "" || !readsUser(in) {
		return nil, nil
	}
	content, err := os.ReadFile(filepath.Join(shared.Path, shared.UserFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// readsUser reports whether the agent reads the user's settings.
func readsUser(in *dialect.Input) bool {
	return in.SettingSources.IsDefault() || in.SettingSources.Has("user")
}

// fill copies into dir what the agent only reads.
func fill(dir string, d dialect.Isolator, in *dialect.Input, shared dialect.ConfigDir, settings []byte) (copied []string, err error) {
	if shared.Path == "" || !readsUser(in) {
		return nil, nil
	}
	if settings != nil {
		private, err := d.PrivateSettings(settings)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", shared.UserFile, err)
		}
		if err := os.WriteFile(filepath.Join(dir, shared.UserFile), private, 0o600); err != nil {
			return nil, err
		}
		copied = append(copied, shared.UserFile)
	}
	c := copier{files: maxCopiedFiles, bytes: maxCopiedBytes}
	for _, name := range shared.Copies {
		switch err := c.copy(filepath.Join(dir, name), filepath.Join(shared.Path, name), 0); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		default:
			copied = append(copied, name)
		}
	}
	return copied, nil
}

// Bounds of a copy: more files than that are not a configuration, or are a cycle of
// links.
const (
	maxCopiedFiles = 10_000
	maxCopiedBytes = 64 << 20
	maxCopiedDepth = 16
)

type copier struct{ files, bytes int64 }

// copy copies a file or a directory. Links are followed: many users keep their
// configuration in a repository, and link to it.
func (c *copier) copy(to, from string, depth int) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if c.files--; c.files < 0 || depth > maxCopiedDepth {
		return fmt.Errorf("%s has more than %d files, or links in a cycle", from, maxCopiedFiles)
	}
	switch {
	case info.IsDir():
		entries, err := os.ReadDir(from)
		if err != nil {
			return err
		}
		if err := os.Mkdir(to, 0o700); err != nil {
			return err
		}
		for _, e := range entries {
			err := c.copy(filepath.Join(to, e.Name()), filepath.Join(from, e.Name()), depth+1)
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // a link to nothing
				return err
			}
		}
		return nil
	case !info.Mode().IsRegular():
		return nil
	}
	if c.bytes -= info.Size(); c.bytes < 0 {
		return fmt.Errorf("%s: more than %d MiB to copy", from, maxCopiedBytes>>20)
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode().Perm()&0o100|0o600) // skills have scripts
}

// withVariable returns a copy of a sorted environment with one more variable.
func withVariable(env []string, name, value string) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return nameOf(kv) == name })
	i, _ := slices.BinarySearchFunc(out, name, func(kv, name string) int { return strings.Compare(nameOf(kv), name) })
	return slices.Insert(out, i, name+"="+value)
}
