package embedded

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/internal/durable"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/transcript"
)

// checkpointing is the variable with which the dialect asks for checkpoints.
const checkpointing = "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"

// The lines of checkpoints, and where the copies of files are, as Claude Code 2.1.329 has them
// (observed): a snapshot at each prompt names the copy of each file that the session has changed,
// and a delta adds a file before it is changed for the first time.
const (
	snapshotLine = "file-history-snapshot"
	deltaLine    = "file-history-delta"
	copies       = "file-history"
)

// points are the checkpoints of a session. They belong to the engine's coroutines: tasks get what
// they need, and return what they found.
type points struct {
	dir     string // of the files of sessions
	root    string // of the session, its links followed: paths in it are relative
	message string // uuid of the prompt of the last checkpoint
	files   map[string]transcript.Backup
	copied  map[string]fs.FileInfo // files as they were when their last copies were made, by path in files
	working bool                   // a turn runs
	over    chan struct{}          // is closed when the rewind that runs is over; nil if no rewind runs
	keeping chan struct{}          // is closed when the call that keeps a file has done so; nil if no call does
}

// fold takes in a line of the session's file.
func (p *points) fold(kind string, line []byte) {
	if p == nil {
		return
	}
	var e struct {
		Message  string `json:"messageId"`
		Snapshot struct {
			Files map[string]transcript.Backup `json:"trackedFileBackups"`
		} `json:"snapshot"`
		Path   string            `json:"trackingPath"`
		Backup transcript.Backup `json:"backup"`
	}
	if kind != snapshotLine && kind != deltaLine || protocol.Unmarshal(line, &e) != nil {
		return
	}
	if p.files == nil {
		p.files = map[string]transcript.Backup{}
	}
	if kind == deltaLine {
		if _, there := p.files[e.Path]; !there {
			p.files[e.Path] = e.Backup
		}
		return
	}
	p.message = e.Message
	maps.Copy(p.files, e.Snapshot.Files)
}

// name is a path as lines have it.
func (p *points) name(at string) string {
	if rel, is := strings.CutPrefix(at, strings.TrimSuffix(p.root, "/")+"/"); is {
		return filepath.ToSlash(rel)
	}
	return at
}

func (p *points) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.root, filepath.FromSlash(name))
}

// folder is where the copies of a session are.
func (p *points) folder(session string) string { return filepath.Join(p.dir, copies, session) }

// forked gives a fork the copies of its parent, from and to being the paths of their files.
// A copy that fails is missing in a rewind, whose answer has the reason.
func (p *points) forked(from, to string) {
	if p == nil || from == to || path.Dir(from) != path.Dir(to) {
		return
	}
	id := func(file string) string { return strings.TrimSuffix(path.Base(file), ".jsonl") }
	parent, own := p.folder(id(from)), p.folder(id(to))
	entries, _ := os.ReadDir(parent) // without a directory there are no copies
	if len(entries) == 0 || durable.Mkdir(own, 0o700) != nil {
		return
	}
	for _, e := range entries {
		was, is := filepath.Join(parent, e.Name()), filepath.Join(own, e.Name())
		if !e.Type().IsRegular() || os.Link(was, is) == nil { // a copy never changes
			continue
		}
		if content, err := os.ReadFile(was); err == nil {
			_ = durable.WriteFile(durable.Files(nil), is, durable.Bytes(content)) // see above
		}
	}
}

// works waits until no rewind runs: from now on a turn does.
func (t *talk) works(turn *agent.Turn) error {
	p := t.points
	if p == nil {
		return nil
	}
	p.working = true
	if p.over != nil {
		return t.until(turn.Strand(), p.over)
	}
	return nil
}

// checkpoint makes one at the prompt of a turn: of each file that the session has changed so
// far, as it is now.
func (t *talk) checkpoint(turn *agent.Turn) error {
	p, uuid := t.points, turn.MessageUUID()
	if err := t.works(turn); err != nil {
		return err
	}
	if p == nil || uuid == "" || uuid == p.message || turn.Task() != nil { // one that is run again has its checkpoint
		return nil
	}
	names := slices.Sorted(maps.Keys(p.files))
	found := make([]kept, len(names))
	folder, now := p.folder(turn.SessionID()), stamp(t.seams.Clock.Now())
	err := turn.Strand().Do(func(context.Context) error {
		for i, name := range names {
			found[i] = t.hands.keepAgain(folder, p.path(name), p.files[name], p.copied[name], now)
		}
		return nil
	})
	if err != nil {
		return err
	}
	all := map[string]transcript.Backup{}
	for i, k := range found {
		if all[names[i]] = k.backup; k.backup.Missing != "" && p.files[names[i]].Missing == "" {
			turn.System("informational", agent.Object{
				"content": "No copy of " + p.path(names[i]) + " was kept, so it cannot be rewound to this message: " + k.backup.Missing, "level": "warning",
			})
		}
		p.copied[names[i]] = k.info
	}
	return turn.Strand().Note(agent.Object{
		"type": snapshotLine, "messageId": uuid, "isSnapshotUpdate": false,
		"snapshot": agent.Object{"messageId": uuid, "trackedFileBackups": all, "timestamp": now},
	})
}

// track keeps the file of a call, if it is the first that changes it. refused is what the model
// reads if that cannot be done: the call is not made then.
func (t *talk) track(s *agent.Strand, session string, u *spot, file string) (refused string, err error) {
	p := t.points
	if p == nil {
		return "", nil
	}
	at := u.leadsTo(file)
	name := p.name(at)
	for p.keeping != nil { // another agent of the session keeps a file, which may be this one
		if err := t.until(s, p.keeping); err != nil {
			return "", err
		}
	}
	if _, there := p.files[name]; there {
		return "", nil
	}
	over := make(chan struct{})
	p.keeping = over
	defer func() {
		p.keeping = nil
		close(over)
	}()
	var k kept
	folder, now := p.folder(session), stamp(t.seams.Clock.Now())
	err = s.Do(func(context.Context) (err error) {
		k, err = t.hands.keepFirst(u, folder, file, at, now)
		return err
	})
	switch {
	case s.Err() != nil:
		return "", s.Err()
	case err != nil: // the tool may be able to read it a moment later
		return "Nothing was written: the present content of the file could not be kept for a rewind: " + err.Error(), nil
	}
	err = s.Note(agent.Object{
		"type": deltaLine, "messageId": p.message, "snapshotMessageId": p.message, "trackingPath": name, "backup": k.backup, "timestamp": now,
	})
	if err != nil {
		delete(p.files, name) // the line may not survive, so no call relies on it
		return "", err
	}
	p.copied[name] = k.info
	return "", nil
}

// until waits for the end of something that another strand does.
func (t *talk) until(s *agent.Strand, over <-chan struct{}) error {
	return s.Do(func(ctx context.Context) error { return t.seams.Exec.Await(ctx, over) })
}

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// kept is what became of a file at a checkpoint.
type kept struct {
	backup transcript.Backup
	info   fs.FileInfo // of the file, when it was copied; nil if it did not exist
}

// keepFirst keeps a file that the session has not changed so far.
func (h *hands) keepFirst(u *spot, folder, file, at, now string) (kept, error) {
	k := kept{backup: transcript.Backup{Version: 1, BackupTime: now, ParentDir: filepath.Dir(at)}}
	content, info, err := h.load(u, file)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return k, err
	}
	name, version, err := h.keepCopy(folder, at, 0, content)
	if err != nil {
		return k, err
	}
	k.backup.FileName, k.backup.Version, k.info = &name, version, info
	return k, nil
}

// keepAgain keeps a file once more, if it has changed since the copy b, which was made when it
// was as in copied says.
func (h *hands) keepAgain(folder, at string, b transcript.Backup, copied fs.FileInfo, now string) kept {
	hasCopy := b.FileName != nil && b.Missing == ""
	if info, err := os.Lstat(at); hasCopy && err == nil && unchanged(copied, info) {
		return kept{b, info}
	}
	content, info, err := h.load(&spot{path: at, real: at}, at)
	gone := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	switch {
	case gone && b.FileName == nil && b.Missing == "":
		return kept{backup: b}
	case err == nil && hasCopy && h.hasCopy(folder, *b.FileName, content):
		return kept{b, info}
	}
	k := kept{backup: transcript.Backup{Version: b.Version + 1, BackupTime: now, ParentDir: filepath.Dir(at)}}
	if gone {
		return k
	}
	name := copyName(at, k.backup.Version)
	if err == nil {
		if name, k.backup.Version, err = h.keepCopy(folder, at, b.Version, content); err == nil {
			k.info = info
		}
	}
	k.backup.FileName = &name // without one the file would not have existed
	switch {
	case errors.Is(err, syscall.EFBIG):
		k.backup.Missing = fmt.Sprintf("it is larger than %d MB", maxFile>>20)
	case err != nil:
		k.backup.Missing = err.Error()
	}
	return k
}

// unchanged reports whether a file is the one that was copied.
func unchanged(copied, info fs.FileInfo) bool {
	return copied != nil && os.SameFile(copied, info) && copied.Size() == info.Size() && copied.ModTime().Equal(info.ModTime())
}

// hasCopy reports whether a copy has the content.
func (h *hands) hasCopy(folder, name string, content []byte) bool {
	file := filepath.Join(folder, filepath.Base(name))
	if h.disk.ask(diskRead, file) != nil {
		return false
	}
	was, err := os.ReadFile(file)
	return err == nil && bytes.Equal(was, content)
}

func copyName(at string, version int) string {
	sum := sha256.Sum256([]byte(at))
	return fmt.Sprintf("%x@v%d", sum[:8], version)
}

// keepCopy writes a copy of a file, under the first version behind after that is free.
func (h *hands) keepCopy(folder, at string, after int, content []byte) (name string, version int, err error) {
	if err := durable.Mkdir(folder, 0o700); err != nil {
		return "", 0, err
	}
	for version = after + 1; ; version++ {
		name = copyName(at, version)
		file := filepath.Join(folder, name)
		if err := h.disk.ask(diskMake, file); err != nil {
			return name, version, err
		}
		f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue // of a death, or of a rewind
		}
		if err != nil {
			return name, version, err
		}
		err = h.disk.write(f, file, content)
		if err == nil {
			err = h.disk.sync(f, file)
		}
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err == nil {
			err = h.disk.syncDir(folder)
		}
		if err != nil {
			_ = os.Remove(file) // it is half a copy
		}
		return name, version, err
	}
}
