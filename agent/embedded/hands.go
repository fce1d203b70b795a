package embedded

import (
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
)

// hands are what the tools of a session share. Tools run as tasks, several at once, so mu
// guards what changes.
type hands struct {
	root    string                     // the session's working directory
	real    string                     // the same, its links followed
	options []string                   // further directories, of the options
	env     []string                   // of commands, without the keys of providers
	private func(variable string) bool // says of which variables commands know nothing
	seams   backend.Seams
	disk    disk
	model   model.Model
	of      *hands // those of the session, if these are a sub-agent's

	startups *startups // of the backend; nil: this session reads ~/.bashrc for itself

	textOnly func(name string) bool // says which models read text alone; nil: none

	mu        sync.Mutex
	added     []string          // further directories, also those that answers have added; replaced as a whole
	cwd       string            // of the shell
	tree      *tree             // where it begins; nil means root
	name      string            // of the model
	countless bool              // its endpoint counts no tokens
	strict    bool              // the model may not write what it has not read
	read      map[string]*known // files that the model has read, by path
	book      bool              // a notebook is among them
	fresh     []string          // of them, those that the log does not know like that
	logs      []string          // transcripts that the conversation names
	own       string            // the directory for what tools keep; "": it is not made
	snapped   bool              // a snapshot was taken, or none is needed
	snap      string            // its path

	plan string // the file with the plan; "" if no path is known yet. It is set before a tool runs

	deny  func(path string) bool // whether a deny rule hides a file; nil if there is no such rule
	rules *policy.Policy         // with the deny rules of the session, or nil

	written map[string]uint64 // hashes of what was written last, by path; nil if there are no checkpoints

	commands commands

	// reads decides about a command by the rules for reading. It is nil until they are compiled.
	reads func(command string) protocol.PermissionBehavior
}

// dir is the shell's working directory.
func (h *hands) dir() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cwd
}

// base is where the shell begins.
func (h *hands) base() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tree != nil {
		return h.tree.path
	}
	return h.root
}

// directories are those besides the working directory.
func (h *hands) directories() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.added
}

// goBack has the shell begin where it was in an earlier life; "": where it is. It reports whether that
// is still there.
func (h *hands) goBack(dir string) bool {
	if dir == "" {
		return true
	}
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	h.move(dir)
	return true
}

// add sets which directories answers have added to the options'.
func (h *hands) add(dirs []string) {
	all := append(slices.Clip(h.options), followed(dirs)...)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.added = all
}

// olderModels are those that may not write what they have not read.
var olderModels = regexp.MustCompile(`claude-(\d|[a-z]+-[1-4](\D|$))`)

// serve notes for which model tools run.
func (h *hands) serve(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.strict, h.name = olderModels.MatchString(name), name
}

// unreadIsError reports whether a file may not be written since the model has not read it.
func (h *hands) unreadIsError(path string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, read := h.read[path]
	return h.strict && !read
}

// hide sets which files searches leave out, by rules.
func (h *hands) hide(deny func(path string) bool, rules *policy.Policy) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deny, h.rules = deny, rules
}

// hidden reports whether a deny rule hides a file from searches.
func (h *hands) hidden(path string) bool {
	h.mu.Lock()
	deny := h.deny
	h.mu.Unlock()
	return deny != nil && deny(path)
}

func (h *hands) home() string {
	if dir := h.getenv("HOME"); filepath.IsAbs(dir) {
		return dir
	}
	return ""
}

// path is the absolute path that a tool's input means.
func (h *hands) path(name string) string {
	name = strings.TrimSpace(name) // as observed
	switch home := h.home(); {
	case name == "~" && home != "":
		return home
	case strings.HasPrefix(name, "~/") && home != "":
		return filepath.Join(home, name[2:])
	case filepath.IsAbs(name):
		return filepath.Clean(name)
	}
	return filepath.Join(h.dir(), name)
}

// leads says whether a path leads out of the session's directories, and to where a link on
// it leads; "": no link does.
func (h *hands) leads(name string) (outside bool, target string) {
	var err error
	path := h.path(name)
	inside := func(p string, roots ...string) bool {
		return slices.ContainsFunc(append(roots, h.directories()...), func(dir string) bool { return within(p, dir) })
	}
	target, err = resolve(path)
	switch {
	case err != nil:
		return true, ""
	case inside(target, h.real):
		return false, ""
	case inside(path, h.root, h.real):
		return true, target
	}
	return true, ""
}

func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

func hash(content []byte) uint64 {
	f := fnv.New64a()
	_, _ = f.Write(content) // it never fails
	return f.Sum64()
}

// known is what the model knows of a file.
type known struct {
	hash        uint64 // of its content
	first, last int    // the lines that it has seen, from 1; 0, 0: all
	own         bool   // it comes from the model, or its command has shown it
}

// saw notes that the model knows this content of a file.
func (h *hands) saw(path string, content []byte) { h.sawLines(path, content, 0, 0) }

// wrote notes that the model knows this content of a file, since it has written it.
func (h *hands) wrote(path string, content []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.know(path, known{hash: hash(content), own: true})
}

// sawLines notes that the model knows these lines of a file.
func (h *hands) sawLines(path string, content []byte, first, last int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.know(path, known{hash: hash(content), first: first, last: last})
}

// carry notes that the file has this content now, of which the model knows what it knew.
func (h *hands) carry(path string, content []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k, read := h.read[path]; read {
		h.know(path, known{hash(content), k.first, k.last, k.own})
	}
}

// know sets what the model knows of a file; the caller has the lock.
func (h *hands) know(path string, k known) {
	h.book = h.book || isNotebook(path)
	if h.read[path] = &k; !slices.Contains(h.fresh, path) {
		h.fresh = append(h.fresh, path)
	}
}

// remember sets what the model knew of a file, as the log says.
func (h *hands) remember(path string, k known) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.book = h.book || isNotebook(path)
	h.read[path] = &k
}

// put notes what a tool or a rewind has written.
func (h *hands) put(at string, content []byte) {
	h = h.session()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.written != nil {
		h.written[at] = hash(content)
	}
}

// isOwn reports whether the content of a file is what the session has written, or the model has
// seen.
func (h *hands) isOwn(at string, content []byte) bool {
	_, same := h.knows(at, content)
	h.mu.Lock()
	defer h.mu.Unlock()
	return same || h.written[at] == hash(content)
}

// openLog lets the model read a transcript that the conversation names.
func (h *hands) openLog(transcript string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Contains(h.logs, transcript) {
		h.logs = append(h.logs, transcript)
	}
}

// opened reports whether the path is such a transcript.
func (h *hands) opened(path string) bool {
	path = h.path(path)
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.logs, path)
}

// touched are the files that the model has written, or only read, in the order of their names.
func (h *hands) touched(written bool) (paths []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for path, k := range h.read {
		if k.own == written {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

func isNotebook(path string) bool { return strings.EqualFold(filepath.Ext(path), ".ipynb") }

// hasNotebook reports whether the model has read a notebook.
func (h *hands) hasNotebook() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.book
}

// noted is what the log says of a file that the model knows.
type noted struct {
	Path  string `json:"path"`
	Hash  uint64 `json:"hash,string"`
	First int    `json:"first,omitempty"`
	Last  int    `json:"last,omitempty"`
	Own   bool   `json:"own,omitempty"`
}

// noted are the files that the log does not know like that; from now on it does.
func (h *hands) noted() (files []noted) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, path := range h.fresh {
		k := h.read[path]
		files = append(files, noted{path, k.hash, k.first, k.last, k.own})
	}
	h.fresh = nil
	return files
}

// whole reports whether the model has read the whole file, or nothing of it. A part does not count
// for an edit, also not for one in that part (observed on Claude Code 2.1.329).
func (h *hands) whole(path string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.read[path]
	return k == nil || k.last == 0
}

// knows says whether the model has read the file, and whether it is as it was then.
func (h *hands) knows(path string, content []byte) (read, same bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before, read := h.read[path]
	return read, read && before.hash == hash(content)
}

// missing is what the model reads of a file that does not exist.
func (h *hands) missing(path string) string {
	text := "File does not exist. Note: your current working directory is " + h.dir() + "."
	dir, base := filepath.Split(path)
	stem := strings.TrimSuffix(base, filepath.Ext(base))
	entries, _ := os.ReadDir(dir) // no suggestion
	for _, e := range entries {
		name := e.Name()
		if name != base && strings.TrimSuffix(name, filepath.Ext(name)) == stem && e.Type().IsRegular() {
			return text + " Did you mean " + name + "?"
		}
	}
	return text
}
