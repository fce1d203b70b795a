package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Syncer is a [History] that keeps its file open while the agent works. Append returns when
// the machine has the line, so that the death of the program does not lose it; after Sync it
// survives a loss of power, too. An agent with a real model calls Sync before tools that
// change something, and before it reports a result. If Append or Sync fails, no tool runs
// and the turn ends with an error; the history keeps the line and stores it with a later one.
type Syncer interface {
	History
	// Sync makes durable what was appended. It is called as a task, beside Append.
	Sync() error
	// Rest is called when a turn has ended and no other follows at once.
	Rest()
}

// StoreError is why a turn of an agent with a real model has ended: its session could not be
// stored, so nothing more was done in it.
type StoreError struct{ Err error }

// Error says so, with the cause.
func (x *StoreError) Error() string {
	return fmt.Sprintf("the session cannot be stored, so the turn was ended: %v", x.Err)
}

// Unwrap returns the cause.
func (x *StoreError) Unwrap() error { return x.Err }

func (e *engine) appendLine(line []byte) {
	if e.exit != nil {
		return
	}
	e.mem.unsynced = append(e.mem.unsynced, unsynced{e.now() + e.mem.lag, line})
	e.sync(false)
}

// unsynced is a line that is not stored yet.
type unsynced struct {
	due  time.Duration
	line []byte
}

// sync stores the lines that are due, or all.
func (e *engine) sync(all bool) {
	now := e.now()
	var stored []json.RawMessage
	for len(e.mem.unsynced) > 0 && (all || e.mem.unsynced[0].due <= now) {
		line := e.mem.unsynced[0].line
		e.mem.unsynced[0].line = nil // the slice would keep it
		e.mem.unsynced = e.mem.unsynced[1:]
		err := e.cfg.History.Append(e.sessionFile(e.session.id), line)
		kept := json.RawMessage(bytes.TrimSuffix(line, []byte{'\n'}))
		switch {
		case err != nil && e.cfg.Live != nil:
			e.unstored(err, kept)
			continue
		case err != nil:
			e.mem.unsynced = nil
			e.fatal("agent: session cannot be kept: %v", err)
		case e.mem.failed != nil: // it has stored the earlier lines, too
			e.mem.failed = nil
			stored, e.mem.lost = append(stored, e.mem.lost...), nil
		}
		stored = append(stored, kept)
	}
	if len(stored) > 0 && e.flags.has("session-mirror") {
		e.send(Object{"type": "transcript_mirror", "filePath": e.configDir() + "/" + e.sessionFile(e.session.id), "entries": stored})
	}
}

// unstored notes that a line could not be stored. The first of them is reported.
func (e *engine) unstored(err error, line json.RawMessage) {
	if e.mem.failed == nil {
		e.stderr("agent: session cannot be kept: " + err.Error())
	}
	e.mem.failed = err
	if e.flags.has("session-mirror") {
		e.mem.lost = append(e.mem.lost, line)
	}
}

// stored returns an error if something of the session is not stored: an agent with a real
// model then does nothing more. durable asks for what survives a loss of power.
func (l *Lane) stored(durable bool) error { return l.s.stored(durable, l.own) }

// stored is that of the session, and of a sub-agent's conversation, if own is not nil.
func (s *Strand) stored(durable bool, own *sidechain) error {
	e := s.e
	if e.cfg.Live == nil || !e.keeps() {
		return nil
	}
	e.sync(true)
	if e.mem.failed != nil {
		return &StoreError{e.mem.failed}
	}
	if own != nil && own.failed != nil {
		return &StoreError{own.failed}
	}
	h, ok := e.cfg.History.(Syncer)
	if !ok || !durable || e.outside == nil {
		return nil
	}
	for r := e.syncing; r != nil && !r.late && !r.done.Load(); r = e.syncing { // that of another conversation
		if waited := s.park(nil, syncLimit, r.done.Load); waited != nil {
			return slowDisk(waited)
		}
	}
	run := &syncRun{}
	e.syncing = run
	var err error // read only when done says so
	syncs := h.Sync
	if own != nil {
		syncs = func() error { return cmp.Or(h.Sync(), own.sync()) }
	}
	e.outside.start(syncs, func(failed error) {
		err = failed
		run.done.Store(true)
	})
	// It is waited for although the turn may have been aborted: its result says that all is stored.
	if waited := s.park(nil, syncLimit, run.done.Load); waited != nil {
		run.late = true
		return slowDisk(waited)
	}
	if err != nil {
		return &StoreError{err}
	}
	return nil
}

// Note adds a line to the session's file that is about the session: it is not part of the
// conversation. It survives a loss of power when Note returns. An error says that it is not stored;
// it is a [StoreError].
func (s *Strand) Note(o Object) error {
	if s.e.cfg.Live == nil || !s.e.keeps() {
		return nil
	}
	line, err := encode(o)
	if err != nil {
		return err
	}
	s.e.appendLine(append(line, '\n'))
	return s.stored(true, nil)
}

// syncRun is a sync of the session's file. There is one at a time.
type syncRun struct {
	done atomic.Bool
	late bool // no strand waits for it any more
}

// slowDisk is what it means that a sync was not waited for to its end.
func slowDisk(err error) error {
	if errors.Is(err, errOver) {
		return err
	}
	return &StoreError{errSlowDisk}
}

// syncLimit is how long a turn waits for the disk.
const syncLimit = time.Minute

var errSlowDisk = errors.New("the disk has not taken it within a minute")

// unstoredCalls answers calls that are not made because the session cannot be stored.
func (l *Lane) unstoredCalls(calls []*call, err error) {
	for _, c := range calls {
		c.content = "<tool_use_error>The call was not made: " + err.Error() + "</tool_use_error>"
		l.resultFrame(c, c.content, true, "Error: The call was not made: "+err.Error(), nil)
	}
	l.openTools = nil
}

// keepPrompt ends a turn with the line that says what it was about: lists of sessions show
// it, and it names the branch that is continued.
func (t *Turn) keepPrompt() {
	e := t.e
	if e.cfg.Live == nil || !e.keeps() || e.mem.leaf == "" || len(e.mem.prompts) == 0 {
		return
	}
	const most = 200
	text := []rune(e.mem.prompts[len(e.mem.prompts)-1])
	line, err := encode(Object{
		"type": "last-prompt", "lastPrompt": string(text[:min(len(text), most)]), "leafUuid": e.mem.leaf, "sessionId": e.session.id,
	})
	if err == nil { // of strings
		e.appendLine(append(line, '\n'))
	}
}

// rest lets go of what the history needs only while the agent works.
func (e *engine) rest() {
	if h, ok := e.cfg.History.(Syncer); ok {
		h.Rest()
	}
}
