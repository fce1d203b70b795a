package osproc

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// markerPrefix starts the name of every launch marker. The whole name is
// TROUPE_LAUNCH_<host pid>_<id>, its value is 1.
const markerPrefix = "TROUPE_LAUNCH_"

const (
	tokenOpen  = "{{file:"
	tokenClose = "}}"
)

// Command describes one launch.
type Command struct {
	// Path is the program: a file when it holds a separator (a relative one is
	// taken from Dir), else a name that is looked up in the PATH of Env.
	Path string
	// Names are the alternatives to look up, in order, when Path is empty.
	Names []string
	// Args are the arguments after the program's own name.
	Args []string
	// Dir is the working directory; empty means the host's.
	Dir string
	// Env is the child's whole environment, as "NAME=value"; nil is an empty
	// one. The launch marker is added, and so are the markers of the launches
	// that this host itself runs under.
	Env []string
	// Files are written for the child and removed when it is reaped: mode 0600, in a
	// separate directory with mode 0700, which a later host removes if this one dies.
	// The token {{file:NAME}} in Args and in Env's values is replaced by the file's
	// path; tokens of unknown names stay as they are.
	Files []File
	// Interpreter, when set, runs Path as a script: its first element is looked
	// up like Path, the others precede the script in the arguments. The script
	// need not be executable.
	Interpreter []string
	// HostDeath is the signal that the leader gets when this program dies,
	// however it does. Linux only. Default: SIGKILL.
	HostDeath Signal
}

// File is a temporary file of one launch. Name is a plain file name.
type File struct {
	Name string
	Data []byte
}

// launch is a command on its way to a process: resolved, with its temporary
// files written and its pipes open.
type launch struct {
	path  string
	argv  []string
	env   []string
	dir   string
	child [3]*os.File
	death Signal // see Command.HostDeath
	proc  *Process
}

// prepare does all that needs no fork. On error it leaves nothing behind.
func (l *Launcher) prepare(c Command) (_ *launch, err error) {
	e := &StartError{Path: c.Path, Dir: c.Dir}
	if c.Path == "" {
		e.Path = strings.Join(c.Names, "|")
	}
	var argv []string
	fail := func(op string, err error) (*launch, error) {
		e.Op, e.Err = op, err
		e.Argv = MaskArgs(slices.Concat(argv, c.Args))
		return nil, e
	}
	if err := checkDir(c.Dir); err != nil {
		return fail("chdir", err)
	}
	path, argv, err := c.resolve(e)
	if err != nil {
		return fail("lookup", err)
	}
	e.Path = path
	if err := checkStrings(c); err != nil {
		return fail("argv", err)
	}

	n := &launch{path: path, dir: c.Dir, death: cmp.Or(c.HostDeath, syscall.SIGKILL)}
	n.proc = &Process{launcher: l, marker: l.newMarker(), exited: make(chan struct{})}
	defer func() {
		if err != nil {
			n.release()
		}
	}()
	tokens, err := n.proc.writeFiles(l, c.Files)
	if err != nil {
		return fail("files", err)
	}
	n.argv = argv
	for _, a := range c.Args {
		n.argv = append(n.argv, tokens.Replace(a))
	}
	n.env = withMarkers(c.Env, l.markers, n.proc.marker)
	for i, kv := range n.env {
		if name, value, ok := strings.Cut(kv, "="); ok && strings.Contains(value, tokenOpen) {
			n.env[i] = name + "=" + tokens.Replace(value)
		}
	}
	for _, marker := range hostMarkers(n.env) {
		name, _, _ := strings.Cut(marker, "=")
		n.proc.carries = append(n.proc.carries, name)
	}
	if err := n.openPipes(); err != nil {
		return fail("pipe", err)
	}
	return n, nil
}

// openPipes makes the child's standard streams. The parent's ends are
// nonblocking and in the runtime's poller.
func (n *launch) openPipes() (err error) {
	if n.child[0], n.proc.stdin, err = os.Pipe(); err != nil {
		return err
	}
	if n.proc.stdout.File, n.child[1], err = os.Pipe(); err != nil {
		return err
	}
	n.proc.stderr.File, n.child[2], err = os.Pipe()
	return err
}

// closeChild closes the parent's copies of the child's ends.
func (n *launch) closeChild() {
	for i, f := range n.child {
		if f != nil {
			_ = f.Close()
			n.child[i] = nil
		}
	}
}

// release gives back everything of a launch that became no process.
func (n *launch) release() {
	n.closeChild()
	_ = n.proc.release()
}

// newMarker draws the name of a launch marker. The host's pid keeps two hosts
// apart that draw from the same seed.
func (l *Launcher) newMarker() string {
	return fmt.Sprintf("%s%d_%s", markerPrefix, os.Getpid(), kernel.NewID(l.cfg.Rand))
}

// withMarkers adds the launch marker to env, and the markers that the host itself
// carries, so that the program that launched the host can still find the child when env
// was built from nothing.
func withMarkers(env, host []string, marker string) []string {
	out := slices.Concat(env, []string{marker + "=1"})
	for _, kv := range host {
		if !slices.Contains(env, kv) {
			out = append(out, kv)
		}
	}
	return out
}

// hostMarkers returns the markers in an environment, as NAME=1.
func hostMarkers(environ []string) (markers []string) {
	for _, kv := range environ {
		if strings.HasPrefix(kv, markerPrefix) {
			markers = append(markers, kv)
		}
	}
	return markers
}

// checkDir finds a bad working directory before anything is made: the error of
// exec itself does not tell it from a missing program.
func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	st, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return &os.PathError{Op: "chdir", Path: dir, Err: syscall.ENOTDIR}
	}
	if err := canExecute(dir); err != nil {
		return &os.PathError{Op: "chdir", Path: dir, Err: err}
	}
	return nil
}

// checkStrings names the argument or the variable that exec would refuse with
// a bare EINVAL. Values are not shown.
func checkStrings(c Command) error {
	for i, a := range c.Args {
		if strings.IndexByte(a, 0) >= 0 {
			return fmt.Errorf("argument %d holds a NUL byte: %w", i+1, syscall.EINVAL)
		}
	}
	for i, kv := range c.Env {
		name, value, ok := strings.Cut(kv, "=")
		if !ok {
			return fmt.Errorf("environment entry %d is not NAME=value: %w", i+1, syscall.EINVAL)
		}
		if strings.IndexByte(name, 0) >= 0 || strings.IndexByte(value, 0) >= 0 {
			return fmt.Errorf("environment variable %q holds a NUL byte: %w", name, syscall.EINVAL)
		}
	}
	return nil
}

// addEntry makes the launch's own entry, named by its marker, in a directory of the host.
func (p *Process) addEntry(h *HostDir, record bool) (string, error) {
	if h == p.launcher.state {
		if err := os.MkdirAll(h.base, 0o700); err != nil {
			return "", err
		}
	}
	add := h.Add
	if record {
		add = h.Record
	}
	path, err := add(p.marker)
	if err == nil {
		p.entries = append(p.entries, entry{h, path, record})
	}
	return path, err
}

// writeFiles records the launch, writes its temporary files and returns what replaces
// the tokens. Without files it makes no directory for them.
func (p *Process) writeFiles(l *Launcher, files []File) (*strings.Replacer, error) {
	if l.state != nil && (l.state != l.temp || len(files) == 0) {
		if _, err := p.addEntry(l.state, true); err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return strings.NewReplacer(), nil
	}
	dir, err := p.addEntry(l.temp, false)
	if err != nil {
		return nil, err
	}
	var pairs []string
	for _, f := range files {
		if f.Name != filepath.Base(f.Name) || !filepath.IsLocal(f.Name) || f.Name == "." {
			return nil, fmt.Errorf("file name %q is not a plain name", f.Name)
		}
		path := filepath.Join(dir, f.Name)
		if err := writeNew(path, f.Data); err != nil {
			return nil, err
		}
		pairs = append(pairs, tokenOpen+f.Name+tokenClose, path)
	}
	return strings.NewReplacer(pairs...), nil
}

func writeNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
