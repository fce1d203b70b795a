package embedded

import (
	"context"
	_ "embed" // the prompt
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/agent-troupe/troupe/agent"
)

//go:embed prompt.md
var ownPrompt string

// systemPrompt is what a session tells the model once: the host's own prompt or this agent's,
// with the surroundings. It stays the same for the whole session, also when it is resumed on
// another day, so that a provider's cache holds: the log has the surroundings.
func (t *talk) systemPrompt(l *agent.Lane) ([]string, error) {
	parts, addition := l.SystemPrompt()
	prompt := ownPrompt
	if t.up != nil {
		parts, addition, prompt = nil, "", t.kind.prompt
	}
	if strings.Join(parts, "") == "" { // an empty one is the zero value of the options
		if t.log.surroundings == "" {
			if err := t.lookAround(l); err != nil {
				return nil, err
			}
		}
		parts = []string{strings.TrimSpace(prompt), t.log.surroundings}
	}
	if addition != "" {
		parts = append(parts, addition)
	}
	return slices.DeleteFunc(parts, func(p string) bool { return p == "" }), nil
}

// lookAround notes the surroundings in the log.
func (t *talk) lookAround(l *agent.Lane) error {
	var git, rules string
	dir := l.Dir()
	if t.up != nil {
		dir = t.hands.base()
	}
	err := l.Strand().Do(func(context.Context) error {
		repository, state := gitState(dir)
		git = state
		if t.cfg.Instructions {
			rules = t.instructions(repository, dir)
		}
		if len(t.cfg.Skills) > 0 {
			rules += skillList(t.hands.skills(t.cfg.Skills))
		}
		return nil
	})
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Working directory: %s\n", dir)
	for _, dir := range t.hands.options {
		fmt.Fprintf(&b, "Further directory: %s\n", dir)
	}
	fmt.Fprintf(&b, "Git repository: %s\nOperating system: %s\nTools: %s\nDate: %s\n", git, runtime.GOOS, strings.Join(t.offered(l), ", "), t.today())
	if t.up != nil { // it is not resumed, and readers of its file follow messages only
		t.log.surroundings = b.String() + rules
		return nil
	}
	l.Attach(surroundings, agent.Object{"text": b.String() + rules, "date": t.today()})
	return nil
}

func (t *talk) today() string { return t.seams.Clock.Now().Format("2006-01-02") }

// remindOfDate tells the model that a day has passed since the surroundings were noted.
func (t *talk) remindOfDate(l *agent.Lane) {
	if today := t.today(); t.log.date != "" && t.log.date != today {
		l.Attach(newDate, agent.Object{"content": []string{"The date is now " + today + "."}, "date": today})
	}
}

// gitState finds the repository that the directory is in, and says what is checked out. It
// reads files: git itself would run what the repository names.
func gitState(dir string) (repository, state string) {
	for at := dir; ; at = filepath.Dir(at) {
		head, err := gitHead(filepath.Join(at, ".git"))
		switch {
		case err == nil:
			if branch, ok := strings.CutPrefix(head, "ref: refs/heads/"); ok {
				return at, "yes, on branch " + branch
			}
			return at, "yes, at commit " + head
		case at == filepath.Dir(at):
			return "", "no"
		}
	}
}

// gitRef is what HEAD of a repository has: a branch, whose name has no white space and no
// control characters, or a commit. A count of such a class in the expression would cost each
// program 8 MB and 10 ms at its start.
var gitRef = regexp.MustCompile(`^(ref: refs/heads/[^\s\p{Z}\p{C}]+|[0-9a-f]{40,64})$`)

const maxRef = 216 // characters of it

// gitHead reads HEAD of a repository, or of a work tree, whose .git is a file.
func gitHead(git string) (string, error) {
	info, err := os.Stat(git)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		file, err := readStart(openFile, git, 4<<10)
		dir, ok := strings.CutPrefix(strings.TrimSpace(file), "gitdir: ")
		if err != nil || !ok {
			return "", os.ErrNotExist
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(filepath.Dir(git), dir)
		}
		git = dir
	}
	head, err := readStart(openFile, filepath.Join(git, "HEAD"), 1<<10)
	if head = strings.TrimSpace(head); err == nil && (utf8.RuneCountInString(head) > maxRef || !gitRef.MatchString(head)) {
		err = os.ErrInvalid // the text would be part of the prompt
	}
	return head, err
}

// openFile opens a file. It does not wait for the other end of a pipe.
func openFile(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// readStart reads the start of a file, if it is one.
func readStart(open func(string) (*os.File, error), name string, most int64) (string, error) {
	f, err := open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", &fs.PathError{Op: "read", Path: name, Err: errNoFile}
	}
	b, err := io.ReadAll(io.LimitReader(f, most))
	return string(b), err
}

// Limits of a project's instructions.
const (
	maxInstructions    = 32 << 10 // bytes of a file
	maxAllInstructions = 64 << 10 // of all
)

// instructionFiles are the names of files with instructions for agents.
func instructionFiles() []string { return []string{"AGENTS.md", "CLAUDE.md"} }

// instructions are the project's: the files of the repository's top directory, and of those
// below it down to the session's. Without a repository only the session's directory counts.
// Links that lead out of the repository are not followed.
func (t *talk) instructions(repository, dir string) string {
	if repository == "" {
		repository = dir
	}
	root, err := os.OpenRoot(repository)
	if err != nil {
		return ""
	}
	defer func() { _ = root.Close() }() // it was only read
	rel, err := filepath.Rel(repository, dir)
	if err != nil {
		return ""
	}
	var b strings.Builder
	var known []string
	at := "."
	for _, part := range append([]string{"."}, strings.Split(filepath.ToSlash(rel), "/")...) {
		if part == "." && at != "." {
			continue
		}
		at = path.Join(at, part)
		for _, name := range instructionFiles() {
			name = path.Join(at, name)
			info, err := root.Stat(name)
			if err != nil || !info.Mode().IsRegular() || t.seams.Disk != nil && t.seams.Disk(diskRead, filepath.Join(repository, name)) != nil {
				continue
			}
			text, err := readStart(func(name string) (*os.File, error) { return root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) }, name, maxInstructions)
			text = strings.ToValidUTF8(strings.TrimSpace(text), "")
			if err != nil || text == "" || slices.Contains(known, text) || b.Len()+len(text) > maxAllInstructions {
				continue
			}
			known = append(known, text) // one of both names is often a link to the other
			fmt.Fprintf(&b, "\nInstructions of the project, from %s:\n\n%s\n", filepath.Join(repository, name), text)
			if info.Size() > maxInstructions {
				fmt.Fprintf(&b, "[The rest of %d bytes is left out.]\n", info.Size())
			}
		}
	}
	return b.String()
}
