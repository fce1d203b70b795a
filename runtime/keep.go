package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/internal/durable"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript"
)

// keeper removes the transcripts of the runtime's own sessions after Config.KeepSessions.
// It knows them by records in the state directory, one file for each session.
type keeper struct {
	dir    string        // of the records
	keep   time.Duration // since the last change of the transcript
	clock  kernel.Clock
	exec   kernel.Executor
	leases session.Leases
	files  session.Files
	warn   func(problem string)
	open   func(sessionID string) bool // a session of this runtime is in it, perhaps without a process

	swept atomic.Int64 // when it looked last, in Unix nanoseconds
}

// keptSession is a record.
type keptSession struct {
	Session string            `json:"session"` // the agent's id
	Vendor  transcript.Vendor `json:"vendor"`
	Root    string            `json:"root"` // the agent's configuration directory
}

// betweenSweeps is how long the end of a session does not look at the records again.
const betweenSweeps = time.Hour

func (cfg Config) checkKeep() error {
	switch {
	case cfg.KeepSessions < 0:
		return &session.ConfigError{Option: "KeepSessions", Problem: "is negative", Fix: "use 0 to keep sessions for ever, or a positive duration"}
	case cfg.KeepSessions > 0 && cfg.StateDir == "":
		return &session.ConfigError{Option: "KeepSessions", Problem: "needs the records of StateDir, which is empty", Fix: "set StateDir"}
	}
	return nil
}

// newKeeper returns nil if sessions are kept without a limit.
func newKeeper(cfg Config, sys *kernel.System, warn func(string), open func(string) bool) *keeper {
	if cfg.KeepSessions == 0 {
		return nil
	}
	k := &keeper{dir: filepath.Join(cfg.StateDir, "sessions"), keep: cfg.KeepSessions, clock: sys.Clock(), exec: sys.Executor(), leases: cfg.Leases, files: durable.Files(cfg.Files), warn: warn, open: open}
	if k.leases == nil {
		k.leases = LocalLeases{Now: sys.Clock().Now}
	}
	return k
}

// note records a session, so that it is removed when its time has come.
func (k *keeper) note(s keptSession) {
	if !transcript.IsID(s.Session) || s.Root == "" {
		return
	}
	content, err := json.Marshal(s)
	if err == nil {
		err = k.files.Mkdir(k.dir, 0o700)
	}
	if err == nil {
		err = durable.WriteFile(k.files, filepath.Join(k.dir, strings.ToLower(s.Session)+".json"), durable.Bytes(content))
	}
	if err != nil {
		k.warn(fmt.Sprintf("KeepSessions: session %s is kept for ever, since it cannot be recorded: %v", s.Session, err))
	}
}

// sweepSoon looks at the records on a separate task, unless that was done a short time
// ago.
func (k *keeper) sweepSoon() {
	now, last := k.clock.Now().UnixNano(), k.swept.Load()
	if last != 0 && now-last < int64(betweenSweeps) || !k.swept.CompareAndSwap(last, now) {
		return
	}
	k.exec.Go(k.sweep)
}

// sweep removes what was not changed for longer than it is kept.
func (k *keeper) sweep() {
	records, err := os.ReadDir(k.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.warn("KeepSessions: " + err.Error())
	}
	for _, r := range records {
		name := filepath.Join(k.dir, r.Name())
		if err := k.review(name); err != nil {
			k.warn(fmt.Sprintf("KeepSessions: %s: %v", name, err))
		}
	}
}

// review removes the session of a record if its time has come, and then the record.
func (k *keeper) review(name string) error {
	content, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another program was faster
	}
	if err != nil {
		return err
	}
	if strings.HasSuffix(name, durable.PartSuffix) {
		return k.abandoned(name)
	}
	var s keptSession
	if err := json.Unmarshal(content, &s); err != nil {
		return k.discard(name, err)
	}
	if !transcript.IsID(s.Session) || s.Root == "" || filepath.Base(name) != strings.ToLower(s.Session)+".json" {
		return k.discard(name, errors.New("it names another session, or none"))
	}
	newest, err := s.changed()
	switch {
	case err != nil:
		return err
	case newest.IsZero():
		return k.remove(name) // another program has removed it
	case k.clock.Now().Sub(newest) < k.keep, k.open(s.Session):
		return nil
	}
	release, err := k.leases.Acquire(context.Background(), s.Session)
	if err != nil {
		if _, busy := errors.AsType[*session.LeaseError](err); busy {
			return nil // it runs
		}
		return err
	}
	defer release()
	if newest, err = s.changed(); err != nil || k.clock.Now().Sub(newest) < k.keep {
		return err // it ran meanwhile
	}
	at := transcript.Sessions{Vendor: s.Vendor, Root: s.Root, Files: k.files}
	for { // one file at a time, should two directories have it
		if err := at.Delete(context.Background(), s.Session); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return err
		}
	}
	history := filepath.Join(s.Root, "file-history")
	if err := os.RemoveAll(filepath.Join(history, s.Session)); err != nil {
		return err
	}
	if err := k.files.SyncDir(history); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return k.remove(name)
}

// remove removes a record. Another program may have been faster.
func (k *keeper) remove(name string) error {
	if err := durable.Remove(k.files, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// discard removes a record that cannot be read, such as one of a release that a loss of
// power has torn: nothing would ever make it whole.
func (k *keeper) discard(name string, why error) error {
	if err := k.remove(name); err != nil {
		return err
	}
	return fmt.Errorf("is no record of a session (%w), and was removed; that session is kept for ever, remove its transcript yourself", why)
}

// abandoned removes what a program has left that died while it wrote a record.
func (k *keeper) abandoned(name string) error {
	info, err := os.Stat(name)
	if err != nil || k.clock.Now().Sub(info.ModTime()) < betweenSweeps {
		return nil //nolint:nilerr // it was renamed, or is being written
	}
	return k.remove(name)
}

// changed is when the transcript was written last; zero without a transcript.
func (s keptSession) changed() (newest time.Time, err error) {
	found, err := filepath.Glob(filepath.Join(escapeGlob(s.Root), "projects", "*", s.Session+".jsonl"))
	for _, name := range found {
		info, err := os.Stat(name)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			return newest, err
		}
		if info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	return newest, err
}

// escapeGlob quotes what package filepath takes for a pattern.
func escapeGlob(path string) string {
	return strings.NewReplacer(`*`, `[*]`, `?`, `[?]`, `[`, `[[]`).Replace(path)
}

// keeps records the session, whose agent has named it, for Config.KeepSessions.
func (s *Session) keeps() {
	k, id := s.rt.keeper, s.AgentSessionID()
	if k == nil || id == "" || s.root == "" || s.homeless {
		return
	}
	if before := s.kept.Swap(&id); before != nil && *before == id {
		return
	}
	k.note(keptSession{Session: id, Vendor: s.rootOf, Root: s.root})
}

// inSession reports whether a session of the runtime is in the agent's session id.
func (rt *Runtime) inSession(id string) bool {
	for _, s := range rt.Sessions() {
		if strings.EqualFold(s.AgentSessionID(), id) {
			return true
		}
	}
	return false
}
