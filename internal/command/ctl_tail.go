package command

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"time"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/control"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// tailEvery is how often a transcript is looked at that grows.
const tailEvery = 200 * time.Millisecond

// ctlTail prints what the last attempt of a task has said, and says until it ends.
func ctlTail(ctx context.Context, c *console, dir, id string) int {
	t, err := taskOf(ctx, dir, id)
	switch {
	case err != nil:
		return ctlFailed(c, dir, err)
	case t == nil:
		c.note("the job has no task %q; troupe ctl %s lists them", printable(id), printable(dir))
		return exitResult
	case t.Transcript == "":
		c.note("%s has not begun", printable(id))
		return exitResult
	}
	l := &lines{ctx: ctx, goes: func() bool {
		now, err := taskOf(ctx, dir, id)
		return err == nil && now != nil && now.State == fleet.TaskRunning && now.Transcript == t.Transcript
	}}
	if l.file, err = l.open(journal.Dir(dir), t.Transcript); err != nil {
		return ctlFailed(c, dir, err)
	}
	defer func() { _ = l.file.Close() }()
	p := &textPrinter{console: c}
	if err := errors.Join(p.play(l.messages), p.endTurn(nil)); err != nil && ctx.Err() == nil {
		return c.outputLost(err)
	}
	return exitOK
}

func taskOf(ctx context.Context, dir, id string) (*fleet.TaskInfo, error) {
	j, err := control.Read(ctx, dir)
	for i := range j.Tasks {
		if j.Tasks[i].ID == id {
			return &j.Tasks[i], err
		}
	}
	return nil, err
}

// lines are the messages in a file that may grow.
type lines struct {
	ctx  context.Context //nolint:containedctx // of one loop
	file io.Closer
	in   *bufio.Reader
	goes func() bool // whether it may grow
}

// open waits for a file that an attempt is about to make. The journal names it, and may come
// from another user: only a file inside the job's directory is opened.
func (l *lines) open(dir journal.FS, name string) (io.Closer, error) {
	for {
		f, err := dir.Read(name)
		if err == nil {
			l.in = bufio.NewReader(f)
		}
		if !errors.Is(err, fs.ErrNotExist) || !l.goes() || !l.wait() {
			return f, err
		}
	}
}

// wait lets a moment go by. false: ctx has ended.
func (l *lines) wait() bool {
	select {
	case <-l.ctx.Done():
		return false
	case <-time.After(tailEvery):
		return true
	}
}

// messages are those of the lines that are messages.
func (l *lines) messages(yield func(sdk.Message, error) bool) {
	for line, err := range l.each {
		if err != nil {
			yield(nil, err)
			return
		}
		if f, err := protocol.ParseFrame(line); err == nil && !yield(protocol.DecodeMessage(f), nil) {
			return
		}
	}
}

// each yields whole lines.
func (l *lines) each(yield func([]byte, error) bool) {
	var line []byte
	for last := false; ; {
		part, err := l.in.ReadBytes('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			if !yield(line, nil) {
				return
			}
			line = nil
		case !errors.Is(err, io.EOF):
			yield(nil, err)
			return
		case last || l.ctx.Err() != nil:
			return
		default:
			if !l.goes() {
				last = true // what it said between the two looks is there now
			} else if !l.wait() {
				return
			}
		}
	}
}
