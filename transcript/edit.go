package transcript

import (
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/agent-troupe/troupe/internal/durable"
	"github.com/agent-troupe/troupe/session"
)

// Errors of the edits.
var (
	ErrNoTitle = errors.New("transcript: the title is empty")
	ErrNoTag   = errors.New("transcript: the tag is empty; Untag removes a tag")
	// ErrNoArchive: Qoder's sessions have no archive, and a store holds only lines of
	// transcripts, and the mark is not one.
	ErrNoArchive = errors.New("transcript: there is no archive of these sessions; only Claude's on a machine have one, and not those in a store")
)

// Rename sets the title of a session. Spaces around it are removed. It appends a line to
// the transcript, first ending an unterminated last line, so no line is lost. A title that
// a running agent sets later counts instead. The error is ErrNoTitle, a *NotFoundError, an
// *IDError, or the file's.
func (s *Sessions) Rename(ctx context.Context, id, title string) error {
	if !isUUID(id) {
		return &IDError{ID: id, Vendor: s.Vendor}
	}
	title = strings.TrimSpace(title)
	if title == "" {
		return ErrNoTitle
	}
	return s.appendLine(ctx, id, typeCustomTitle, "customTitle", title)
}

// Tag sets the session's tag, as Rename sets the title. Characters that are not visible
// are removed.
func (s *Sessions) Tag(ctx context.Context, id, tag string) error {
	if !isUUID(id) {
		return &IDError{ID: id, Vendor: s.Vendor}
	}
	tag = strings.TrimSpace(strings.Map(visible, tag))
	if tag == "" {
		return ErrNoTag
	}
	return s.appendLine(ctx, id, typeTag, "tag", tag)
}

// Untag removes the session's tag.
func (s *Sessions) Untag(ctx context.Context, id string) error {
	return s.appendLine(ctx, id, typeTag, "tag", "")
}

// visible removes characters that could hide or change the text around a tag.
func visible(r rune) rune {
	if unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r) || unicode.Is(unicode.Cs, r) {
		return -1
	}
	return r
}

// appendLine appends a line of bookkeeping to the newest copy of the session.
func (s *Sessions) appendLine(ctx context.Context, id, typ, member, value string) error {
	if s.Store != nil {
		return s.appendStored(ctx, id, typ, member, value)
	}
	all, err := s.editable(ctx, id)
	if err != nil {
		return err
	}
	var line []byte
	if s.Vendor == Qoder {
		line = object("type", typ, "sessionId", id, member, value, "timestamp", stamp(s.now()))
	} else {
		line = object("type", typ, member, value, "sessionId", id)
	}
	return appendTo(s.files(), filepath.Join(s.Root, filepath.FromSlash(all[0].name)), line)
}

// appendTo appends a line to a file, in one write. If the last line has no newline, one is
// written first.
func appendTo(files session.Files, file string, line []byte) error {
	torn, err := unterminated(file)
	if err != nil {
		return fmt.Errorf("transcript: %w", err)
	}
	if torn {
		line = append([]byte{'\n'}, line...)
	}
	f, err := files.Append(file)
	if err == nil {
		_, err = f.Write(append(line, '\n'))
		if err == nil {
			err = f.Sync()
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("transcript: %s cannot be appended to: %w", file, err)
	}
	return nil
}

// unterminated reports whether the last line of a file has no newline.
func unterminated(file string) (bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer closeQuietly(f)
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false, err
	}
	last := make([]byte, 1)
	_, err = f.ReadAt(last, info.Size()-1)
	return last[0] != '\n', err
}

// Archive marks a session as archived; a later prompt takes it out of the archive. Without
// Dir, every copy of the session is marked. Only Claude's sessions have an archive.
func (s *Sessions) Archive(ctx context.Context, id string) error { return s.setArchived(ctx, id, true) }

// Unarchive takes a session out of the archive.
func (s *Sessions) Unarchive(ctx context.Context, id string) error {
	return s.setArchived(ctx, id, false)
}

func (s *Sessions) setArchived(ctx context.Context, id string, archived bool) error {
	if s.Vendor != Claude || s.Store != nil {
		return ErrNoArchive
	}
	all, err := s.find(ctx, id, false)
	if err != nil {
		return err
	}
	mark, err := json.Marshal(archiveMark{Archived: archived, At: stamp(s.now()), By: "sdk"})
	if err != nil {
		return err
	}
	for i := range all {
		file := filepath.Join(s.Root, filepath.FromSlash(all[i].side("archived.json")))
		if err := s.files().Mkdir(filepath.Dir(file), 0o700); err != nil {
			return fmt.Errorf("transcript: session %s cannot be archived: %w", id, err)
		}
		if err := durable.WriteFile(s.files(), file, durable.Bytes(mark)); err != nil {
			return fmt.Errorf("transcript: session %s cannot be archived: %w", id, err)
		}
	}
	return nil
}

// files is what changes files.
func (s *Sessions) files() session.Files { return durable.Files(s.Files) }

// Delete removes a session: its transcript, subagents, tool results and marks. Backups of
// files stay. Of several copies it removes the newest. A symbolic link is removed, not
// what it points to. End the session before: a running agent recreates the file with only
// its later lines.
//
// With a Store it removes the session with its subagents there; an unknown id is not an
// error.
func (s *Sessions) Delete(ctx context.Context, id string) error {
	if s.Store != nil {
		return s.deleteStored(ctx, id)
	}
	all, err := s.editable(ctx, id)
	if err != nil {
		return err
	}
	file := filepath.Join(s.Root, filepath.FromSlash(all[0].name))
	if err := s.files().Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("transcript: session %s cannot be deleted: %w", id, err)
	}
	if err := os.RemoveAll(strings.TrimSuffix(file, ".jsonl")); err != nil {
		return fmt.Errorf("transcript: session %s is deleted, its other files are not: %w", id, err)
	}
	if err := s.files().SyncDir(filepath.Dir(file)); err != nil {
		return fmt.Errorf("transcript: session %s is deleted, and may be back after a loss of power: %w", id, err)
	}
	return nil
}

func (s *Sessions) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now() //troupe:seam the default for programs without a runtime; simulations set Sessions.Now
}

func (s *Sessions) newID() string {
	if s.NewID != nil {
		return s.NewID()
	}
	var b [16]byte
	_, _ = crand.Read(b[:]) //troupe:seam the default for programs without a runtime; simulations set Sessions.NewID
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// stamp writes a time as the agents do.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
