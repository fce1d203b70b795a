package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/transcript"
)

// Codes of requests to rewind that are refused.
const (
	rewindOff    = "rewind_off"
	turnRunning  = "turn_running"
	noCheckpoint = "no_checkpoint"
	rewindFailed = "rewind_failed"
)

// rewinds begins a rewind of files, or says why it does not.
func (t *talk) rewinds(r *agent.Request) {
	var in protocol.RewindFilesRequest
	p := t.points
	switch {
	case p == nil:
		r.Fail("File rewinding is not enabled. Set Options.EnableFileCheckpointing when the session begins, and each time it is resumed.", rewindOff)
	case p.working || p.over != nil || t.crew.running() > 0:
		r.Fail("The session works, and its tools may change files: wait for the result of the turn, or interrupt it, and rewind then.", turnRunning)
	case protocol.Unmarshal(r.Body, &in) != nil || in.UserMessageID == "":
		r.Fail("The request names no user_message_id.", noCheckpoint)
	default:
		over := make(chan struct{})
		p.over = over
		r.Later(func(s *agent.Strand) {
			defer func() {
				p.over = nil
				close(over)
			}()
			t.rewind(s, r, &in)
		})
	}
}

// rewind answers a request to rewind.
func (t *talk) rewind(s *agent.Strand, r *agent.Request, in *protocol.RewindFilesRequest) {
	w := rewinding{h: t.hands, dry: in.DryRun, folder: t.points.folder(r.SessionID()), answer: protocol.RewindFilesResponse{CanRewind: true}}
	err := t.log.file.complete()
	if err == nil {
		err = s.Do(func(ctx context.Context) error {
			return w.run(ctx, &transcript.Sessions{Vendor: transcript.Claude, Root: t.points.dir}, r.SessionID(), in.UserMessageID)
		})
	}
	var unknown *transcript.NotFoundError
	switch {
	case errors.Is(err, transcript.ErrNoCheckpoint) || errors.As(err, &unknown):
		r.Fail("No file checkpoint found for this message. Its uuid must be that of a prompt of this session (Turn.UUID), which was sent with Options.EnableFileCheckpointing.", noCheckpoint)
	case err != nil:
		done := "Nothing was changed"
		if n := len(w.answer.FilesChanged); n > 0 && !in.DryRun {
			done = "These files were rewound: " + strings.Join(w.answer.FilesChanged, ", ") + ". The others were not"
		}
		r.Fail(fmt.Sprintf("%s: %v. Remove the cause, and rewind again.", done, err), rewindFailed)
	default:
		r.Succeed(&w.answer)
	}
}

// rewinding is one rewind. Its task alone uses it.
type rewinding struct {
	h      *hands
	dry    bool
	folder string // of the copies
	answer protocol.RewindFilesResponse
}

func (w *rewinding) run(ctx context.Context, all *transcript.Sessions, session, message string) error {
	done, err := all.Rewind(ctx, session, message, transcript.RewindOptions{DryRun: w.dry, Dir: w.h.real, Dirs: w.h.directories(), Apply: w.apply})
	if err != nil {
		return err
	}
	for _, f := range done.Files {
		switch {
		case f.Action != transcript.RewindSkip:
		case f.Link:
			w.answer.SkippedLinks++
			fallthrough
		default:
			if w.answer.SkippedFiles == nil {
				w.answer.SkippedFiles = map[string]string{}
			}
			w.answer.SkippedFiles[f.Path] = f.Why
		}
	}
	return nil
}

// apply changes a file, or says what would change. It keeps the content that others have
// written since the agent has.
func (w *rewinding) apply(at string, before, after []byte) error {
	plus, minus := changedLines(string(before), string(after))
	if !w.dry {
		if err := w.change(at, before, after); err != nil {
			return err
		}
	}
	w.answer.FilesChanged = append(w.answer.FilesChanged, at)
	w.answer.Insertions += plus
	w.answer.Deletions += minus
	return nil
}

func (w *rewinding) change(at string, before, after []byte) error {
	u := &spot{path: at, real: at} // no link is followed
	content, info, err := w.h.load(u, at)
	var now *document
	switch {
	case err == nil:
		now = &document{content: content, mode: info.Mode().Perm(), info: info}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if (now == nil) != (before == nil) || now != nil && !bytes.Equal(content, before) {
		return &fs.PathError{Op: "rewind", Path: at, Err: errMoved}
	}
	if now != nil && !w.h.isOwn(at, content) {
		name, _, err := w.h.keepCopy(w.folder, at, 0, content)
		if err != nil {
			return err
		}
		if w.answer.KeptFiles == nil {
			w.answer.KeptFiles = map[string]string{}
		}
		w.answer.KeptFiles[at] = filepath.Join(w.folder, name)
	}
	if after == nil {
		return w.h.removeFile(at, now)
	}
	return w.h.replace(u, at, now, after)
}

// changedLines counts the lines that come and go.
func changedLines(before, after string) (plus, minus int64) {
	u, err := udiff.ToUnifiedDiff("", "", before, udiff.Lines(before, after), 0)
	if err != nil {
		return 0, 0 // the edits are its own
	}
	for _, h := range u.Hunks {
		for _, l := range h.Lines {
			switch l.Kind {
			case udiff.Insert:
				plus++
			case udiff.Delete:
				minus++
			case udiff.Equal:
			}
		}
	}
	return plus, minus
}

// removeFile removes a file that is still the document. No link is followed.
func (h *hands) removeFile(at string, before *document) error {
	dir, err := h.enterDir(filepath.Dir(at), false)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // it was only used
	now, err := dir.Lstat(filepath.Base(at))
	if err != nil {
		return err
	}
	if !unchanged(before.info, now) {
		return &fs.PathError{Op: "remove", Path: at, Err: errMoved}
	}
	if err := h.disk.ask(diskRename, at); err != nil {
		return err
	}
	if err := dir.Remove(filepath.Base(at)); err != nil {
		return err
	}
	return h.disk.syncDir(filepath.Dir(at))
}
