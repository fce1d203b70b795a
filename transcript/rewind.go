package transcript

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/internal/durable"
	"github.com/agent-troupe/troupe/session"
)

// RewindOptions are the options of [Sessions.Rewind].
type RewindOptions struct {
	DryRun bool // changes nothing
	// Dir is the directory that relative paths begin in. "": the session's.
	Dir string
	// Dirs are further directories, absolute paths, whose files are changed.
	Dirs []string
	// Outside also changes files outside of Dir and Dirs. Off, they are skipped: a transcript is a
	// file that programs of the agent can write.
	Outside bool
	// Apply, if it is set, changes the files in Rewind's place. It gets each file that is to
	// change, by its absolute path: what it has, nil if it does not exist, and what it is to
	// have, nil if it is to go. It is called with DryRun, too. Its error ends the rewind.
	Apply func(file string, before, after []byte) error
}

// ErrNoCheckpoint is the error of Rewind for a message without a checkpoint: the session
// ran without Options.EnableFileCheckpointing, or the UUID is not that of a prompt.
var ErrNoCheckpoint = errors.New("transcript: no file checkpoint found for this message")

// RewindAction is what becomes of a file.
type RewindAction string

// The actions of a rewind.
const (
	RewindWrite  RewindAction = "write"  // it gets the content of the backup
	RewindRemove RewindAction = "remove" // it did not exist at the checkpoint
	RewindKeep   RewindAction = "keep"   // it is as it was
	RewindSkip   RewindAction = "skip"   // it cannot be restored: see Why
)

// RewoundFile is a tracked file.
type RewoundFile struct {
	Path   string // absolute
	Action RewindAction
	Why    string // of RewindSkip
	Link   bool   // it is skipped since it is a link or no regular file now
}

// Rewound is the result of a rewind.
type Rewound struct {
	Files []RewoundFile // all tracked files, by path
	// Commands are the shell commands that the agent began after the message, oldest first,
	// at most 100. Their changes are not tracked and not restored.
	Commands []string
}

// Rewind restores the files that the tools Write and Edit changed to their state at a user
// message, as Client.RewindFiles does in a live session, without an agent. It works in
// both directions. The conversation does not change: resume with ResumeSessionAt for that.
// End the session before; an agent that runs does not notice the change. A file that
// cannot be written ends the rewind with an error; those before it, in the order of their
// paths, are restored. Other errors are ErrNoCheckpoint and those of Open.
func (s *Sessions) Rewind(ctx context.Context, id, messageUUID string, o RewindOptions) (*Rewound, error) {
	f, err := s.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	defer closeQuietly(f)
	if o.Dir == "" {
		info, err := s.Info(ctx, id)
		if err != nil {
			return nil, err
		}
		o.Dir = info.Cwd
	}
	if !filepath.IsAbs(o.Dir) {
		return nil, fmt.Errorf("transcript: session %s has no directory that its paths begin in; set RewindOptions.Dir to an absolute path", id)
	}
	states, err := f.statesAt(messageUUID)
	if err != nil {
		return nil, fmt.Errorf("session %s, message %s: %w", id, messageUUID, err)
	}
	r := &Rewound{}
	if r.Commands, err = f.commandsAfter(messageUUID); err != nil {
		return nil, err
	}
	var plans []rewindPlan
	for name, backup := range states { //troupe:maporder sorted below
		plans = append(plans, s.planRewind(id, name, backup, &o))
	}
	slices.SortFunc(plans, func(a, b rewindPlan) int { return strings.Compare(a.file.Path, b.file.Path) })
	for i := range plans {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		if err := plans[i].apply(s.files(), &o); err != nil {
			return r, fmt.Errorf("transcript: rewind: %w", err)
		}
		r.Files = append(r.Files, plans[i].file)
	}
	return r, nil
}

// statesAt returns the backup of each tracked file at a message. A file that was tracked
// later was until then as its first backup has it.
func (t *Transcript) statesAt(messageUUID string) (map[string]Backup, error) {
	points, err := t.Checkpoints()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(points, func(c Checkpoint) bool { return c.MessageUUID == messageUUID })
	if at < 0 {
		return nil, ErrNoCheckpoint
	}
	states := points[at].Files
	for _, later := range points[at+1:] {
		for _, name := range later.Paths() {
			if _, known := states[name]; !known {
				states[name] = later.Files[name]
			}
		}
	}
	return states, nil
}

// maxCommands is how many commands a rewind lists.
const maxCommands = 100

// commandsAfter returns the commands of the tool Bash after a message.
func (t *Transcript) commandsAfter(messageUUID string) ([]string, error) {
	var out []string
	at, ok := t.byID[idOf(messageUUID)]
	if !ok {
		return nil, nil
	}
	for i := int(t.nodes[at].place); i < len(t.nodes) && len(out) < maxCommands; i++ {
		if !t.nodes[i].flags.has(isCall) {
			continue
		}
		l, err := t.lineOf(int32(i))
		if err != nil {
			return nil, err
		}
		content := get(l.head.message, "content")
		if !isArray(content) {
			continue
		}
		blocks := elementsOf(content)
		for blocks.next() {
			if isObject(blocks.value) && string(get(blocks.value, "name")) == `"Bash"` {
				if input := get(blocks.value, "input"); isObject(input) {
					out = append(out, text(get(input, "command")))
				}
			}
		}
	}
	return out, nil
}

// rewindPlan is what a rewind does to one file.
type rewindPlan struct {
	file    RewoundFile
	before  []byte // nil: there is no file
	content []byte
	mode    fs.FileMode
}

func (s *Sessions) planRewind(id, name string, b Backup, o *RewindOptions) rewindPlan {
	file := filepath.FromSlash(name)
	if !filepath.IsAbs(file) {
		file = filepath.Join(o.Dir, file)
	}
	p := rewindPlan{file: RewoundFile{Path: filepath.Clean(file), Action: RewindSkip}, mode: 0o644}
	dirs := append([]string{o.Dir}, o.Dirs...)
	at := slices.IndexFunc(dirs, func(dir string) bool { return isWithin(dir, p.file.Path) })
	if at < 0 && !o.Outside {
		p.file.Why = "it is outside of the session's directory"
		return p
	}
	if !o.Outside && leavesThroughLink(dirs[at], filepath.Dir(p.file.Path)) {
		p.file.Why = "its directory is a link to another place"
		return p
	}
	info, err := os.Lstat(p.file.Path)
	exists := err == nil
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		p.file.Why = err.Error()
		return p
	case exists && !info.Mode().IsRegular():
		p.file.Why, p.file.Link = "it is a link or no regular file", true
		return p
	case b.Missing != "":
		p.file.Why = "it has no backup: " + b.Missing
		return p
	case b.FileName == nil && !exists:
		p.file.Action = RewindKeep
		return p
	case b.FileName == nil:
		p.file.Action = RewindRemove
		if o.Apply != nil {
			p.before, err = os.ReadFile(p.file.Path)
			p.skipFor(err)
		}
		return p
	case !isFileName(*b.FileName):
		p.file.Why = "the name of its backup is not valid"
		return p
	}
	if p.content, err = fs.ReadFile(s.fsys(), path.Join("file-history", id, *b.FileName)); err != nil {
		p.file.Why = "its backup cannot be read: " + err.Error()
		return p
	}
	p.file.Action = RewindWrite
	if exists {
		p.mode = info.Mode().Perm()
		if p.before, err = os.ReadFile(p.file.Path); err == nil && bytes.Equal(p.before, p.content) {
			p.file.Action = RewindKeep
		}
		if o.Apply != nil {
			p.skipFor(err)
		}
	}
	return p
}

// skipFor skips a file that cannot be read, which only Apply needs to be.
func (p *rewindPlan) skipFor(err error) {
	if err != nil {
		p.file.Action, p.file.Why = RewindSkip, "it cannot be read: "+err.Error()
	}
}

// isWithin reports whether the path is in the directory, by their names.
func isWithin(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// leavesThroughLink reports whether the existing part of a path in dir is elsewhere.
func leavesThroughLink(dir, path string) bool {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false // nothing of it exists
	}
	for {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			return !isWithin(root, target)
		}
		up := filepath.Dir(path)
		if up == path {
			return false
		}
		path = up
	}
}

// apply does what the plan says, or has Apply do it.
func (p *rewindPlan) apply(files session.Files, o *RewindOptions) error {
	switch changes := p.file.Action == RewindWrite || p.file.Action == RewindRemove; {
	case changes && o.Apply != nil:
		return o.Apply(p.file.Path, p.before, p.content)
	case o.DryRun:
		return nil
	}
	return p.run(files)
}

// run does what the plan says.
func (p *rewindPlan) run(files session.Files) error {
	switch p.file.Action {
	case RewindRemove:
		return durable.Remove(files, p.file.Path)
	case RewindWrite:
		if err := files.Mkdir(filepath.Dir(p.file.Path), 0o755); err != nil { // a directory of the user's project
			return err
		}
		if err := durable.WriteFile(files, p.file.Path, durable.Bytes(p.content)); err != nil {
			return err
		}
		return os.Chmod(p.file.Path, p.mode)
	}
	return nil
}
