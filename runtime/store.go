package runtime

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/actors/mirror"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript"
)

// stored is what Options.SessionStore needs of a session.
type stored struct {
	mirror     *mirror.Mirror // nil without a store
	leases     *storeLeases   // nil if the store has no leases
	completion *completion    // nil: the store gets only what the agent reports
	dir        string         // the configuration directory of a session that was loaded; "": it was not
}

// restore loads the session that is to be resumed, if the store has it, into a private
// configuration directory of the agent, and changes the input so that it is resumed from
// there. It comes before the launch is made.
func (s *Session) restore(ctx context.Context, spec *Spec, in *dialect.Input) error {
	store := spec.Options.SessionStore
	if store == nil || in.Resume == "" && !in.Continue {
		return nil
	}
	d, ok := s.dialect.(dialect.Isolator)
	if !ok {
		return &session.ConfigError{Option: "SessionStore", Backend: s.dialect.Name(),
			Problem: "has sessions for agents with a configuration directory, which this one has not", Fix: "leave it out"}
	}
	if spec.Options.Spawner != nil {
		return &session.ConfigError{Option: "SessionStore", Problem: "cannot be resumed from with a Spawner, which may start the agent where a directory of this machine does not exist",
			Fix: "bring the session's files to the agent, for example with transcript/store.Dir, and leave SessionStore out"}
	}
	limit := &session.TimeoutError{What: "load of the session from the store", Limit: in.SessionStoreOptions.WithDefaults().Load, SetBy: "SessionStoreOptions.Load"}
	ctx, cancel := kernel.WithTimeout(ctx, s.rt.sys.Clock(), limit)
	defer cancel()
	id, err := s.load(ctx, d, store, in)
	switch {
	case err != nil && ctx.Err() != nil:
		s.forsake()
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	case err != nil:
		s.forsake()
		return err
	case id != "":
		in.Resume, in.Continue = id, false
	}
	return nil
}

// load returns the id of the session that it has loaded; "" if the store has no such
// session.
func (s *Session) load(ctx context.Context, d dialect.Isolator, store session.Store, in *dialect.Input) (id string, err error) {
	vendor := s.vendor(in)
	project := s.project(vendor, in)
	if id = in.Resume; id == "" {
		if id, err = newest(ctx, store, project); err != nil || id == "" {
			in.Continue = false // what this machine has is not the store's newest
			return "", err
		}
	}
	key := session.StoreKey{Project: project, Session: id}
	if valid := key.Valid() == nil; !valid || !transcript.IsID(id) {
		return "", nil // on Claude it may be a title
	}
	if s.stored.leases != nil && !in.ForkSession { // a fork only reads
		if _, err := s.stored.leases.take(ctx, id, nil); err != nil { // before another host can continue the session that is loaded
			return "", err
		}
	}
	shared := d.ConfigDir(in)
	dir, err := s.rt.private.add()
	if err != nil {
		return "", restoreFailed(cmp.Or(s.rt.private.state, s.rt.cfg.TempDir, os.TempDir()), err)
	}
	s.made, s.homeless = dir, true
	folder := filepath.Join(dir, "projects", project)
	n, err := write(ctx, store, key, filepath.Join(folder, id+".jsonl"))
	if err != nil {
		return "", err
	}
	if n == 0 {
		s.forsake()
		s.made, s.homeless = "", false
		return "", nil
	}
	subpaths, err := store.Subpaths(ctx, project, id)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return "", &session.StoreError{Doing: "list the subpaths of", Key: key, Err: err}
	}
	for _, sub := range subpaths {
		key := session.StoreKey{Project: project, Session: id, Subpath: sub}
		if sub == "" || key.Valid() != nil {
			continue // it would lead out of the directory
		}
		if _, err := write(ctx, store, key, filepath.Join(folder, id, filepath.FromSlash(sub)+".jsonl")); err != nil {
			return "", err
		}
	}
	if err := s.furnish(d, in, shared, dir); err != nil {
		return "", restoreFailed(shared.Path, err)
	}
	in.SetEnv(shared.Variable, dir)
	s.stored.dir = dir
	return id, nil
}

func restoreFailed(at string, err error) error {
	return &session.ConfigError{Option: "SessionStore", Problem: fmt.Sprintf("has the session, and %s cannot be used for it: %v", at, err),
		Fix: "make the files readable, and the directory writable"}
}

// furnish copies the user's configuration, and the login, into a private directory.
func (s *Session) furnish(d dialect.Isolator, in *dialect.Input, shared dialect.ConfigDir, dir string) error {
	settings, err := userSettings(in, shared)
	if err != nil {
		return err
	}
	if _, err := fill(dir, d, in, shared, settings); err != nil || shared.Path == "" {
		return err
	}
	for _, name := range shared.Login {
		content, err := os.ReadFile(filepath.Join(shared.Path, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			content, err = d.PrivateLogin(name, content)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), content, 0o600)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// newest is the id of the session of a project that was appended to last; "" for an empty
// project.
func newest(ctx context.Context, store session.Store, project string) (string, error) {
	rows, err := store.Sessions(ctx, project)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return "", &session.ConfigError{Option: "Continue", Problem: "needs a SessionStore that can list its sessions", Fix: "set Resume, or use another store"}
	case err != nil:
		return "", &session.StoreError{Doing: "list the sessions of", Key: session.StoreKey{Project: project}, Err: err}
	case len(rows) == 0:
		return "", nil
	}
	return slices.MaxFunc(rows, func(a, b session.StoredSession) int {
		return cmp.Or(a.Modified.Compare(b.Modified), strings.Compare(a.ID, b.ID))
	}).ID, nil
}

// agentMetadata is the type of the entries that hold the .meta.json file of a subagent.
const agentMetadata = "agent_metadata"

// write writes a transcript to a file, and returns how many entries it has; without any,
// there is no file.
func write(ctx context.Context, store session.Store, key session.StoreKey, name string) (n int, err error) {
	var file *os.File
	var out *bufio.Writer
	var meta json.RawMessage
	failed := func(err error) (int, error) {
		if file != nil {
			_ = file.Close() // the error before says more
		}
		return 0, &session.StoreError{Doing: "load", Key: key, Err: err}
	}
	for e, err := range store.Load(ctx, key) {
		if err != nil {
			return failed(err)
		}
		if key.Subpath != "" && typeOf(e) == agentMetadata {
			meta = e
			continue
		}
		if file == nil {
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				return failed(err)
			}
			if file, err = os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err != nil {
				return failed(err)
			}
			out = bufio.NewWriter(file)
		}
		if err := writeLine(out, e); err != nil {
			return failed(fmt.Errorf("entry %d: %w", n, err))
		}
		n++
	}
	if err := ctx.Err(); err != nil { // the loop may just have ended
		return failed(context.Cause(ctx))
	}
	if file != nil {
		if err := errors.Join(out.Flush(), file.Close()); err != nil {
			return failed(err)
		}
	}
	if meta == nil {
		return n, nil
	}
	if err := writeMeta(strings.TrimSuffix(name, ".jsonl")+".meta.json", meta); err != nil {
		return failed(err)
	}
	return n, nil
}

func typeOf(entry []byte) string {
	var head struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(entry, &head) // no object has no type
	return head.Type
}

// writeMeta writes what Claude Code keeps beside the transcript of a subagent.
func writeMeta(name string, entry json.RawMessage) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(entry, &all); err != nil {
		return err
	}
	delete(all, "type")
	content, err := json.Marshal(all)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(name), 0o700)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o600)
}

// mirrors makes the mirror of the session. in has the environment that the agent gets.
func (s *Session) mirrors(spec *Spec, in *dialect.Input) {
	store := spec.Options.SessionStore
	if store == nil {
		return
	}
	cfg := mirror.Config{
		Store: store, Options: in.SessionStoreOptions.WithDefaults(),
		Clock: s.rt.sys.Clock(), Exec: s.rt.sys.Executor(),
	}
	if spec.Options.Spawner == nil {
		cfg.Root = s.configRoot(in)
	}
	if s.stored.leases != nil {
		cfg.Store = s.stored.leases
	}
	c := s.completes(spec, in, cfg.Store)
	s.stored.completion = c
	cfg.Emit = func(e session.Event) {
		c.note(e)
		s.emit(e)
	}
	cfg.Over = func() {
		c.ends()
		s.unlease()
	}
	s.stored.mirror = mirror.New(cfg)
	in.Children = append(slices.Clone(in.Children), s.stored.mirror.Child())
	if s.stored.leases == nil && s.rt.private.warnsOfStore() {
		s.warnings = append(s.warnings, session.Warning{Option: "SessionStore", Problem: "has no leases, so two hosts could run one session at once and mix its histories; let it implement session.LeaseStore, or see to it that each session runs on one host"})
	}
}

// storeLeases are the leases of the session's store; nil if it has no leases.
func (s *Session) storeLeases(spec *Spec) *storeLeases {
	if spec.Options.SessionStore == nil {
		return nil
	}
	return newStoreLeases(spec.Options.SessionStore, spec.Options.SessionStoreOptions.WithDefaults().Lease, s.rt, func(problem string) {
		s.emit(&session.WarningIssued{Problem: problem})
	})
}

// unlease gives back the leases of the store, once no process of the session is left.
func (s *Session) unlease() {
	if s.stored.leases != nil {
		s.stored.leases.leave()
	}
}

func (s *Session) vendor(in *dialect.Input) transcript.Vendor {
	if d, ok := s.dialect.(dialect.Isolator); ok && d.ConfigDir(in).Variable == "QODER_CONFIG_DIR" {
		return transcript.Qoder
	}
	return transcript.Claude
}

func (s *Session) configRoot(in *dialect.Input) string {
	root, _ := s.rootAndProject(in)
	return root
}

// rootAndProject also knows agents with another directory than the vendors'.
func (s *Session) rootAndProject(in *dialect.Input) (root, project string) {
	if d, ok := s.dialect.(dialect.Isolator); ok {
		if own := d.ConfigDir(in); own.Variable != "CLAUDE_CONFIG_DIR" && own.Variable != "QODER_CONFIG_DIR" {
			return own.Path, ""
		}
	}
	return transcript.Root(s.vendor(in), func(name string) string {
		value, _ := in.LookupEnv(name)
		return value
	})
}

// project is the name of the folder of the session's directory.
func (s *Session) project(v transcript.Vendor, in *dialect.Input) string {
	if _, name := s.rootAndProject(in); name != "" {
		return name
	}
	dir := in.Cwd
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if target, err := filepath.EvalSymlinks(dir); err == nil {
		dir = target
	}
	return transcript.FolderName(v, dir)
}

// Mirrored waits until what the agent has stored so far is in Options.SessionStore, or is
// lost, which a session.MirrorFailed event says. Without a store it returns at once. The
// error is that of ctx, or session.ErrChildFull.
func (s *Session) Mirrored(ctx context.Context) error {
	if s.stored.mirror == nil {
		return nil
	}
	return s.stored.mirror.Wait(ctx)
}

// writeLine writes an entry as one line, whatever space it has.
func writeLine(out *bufio.Writer, entry json.RawMessage) error {
	var line bytes.Buffer
	if err := json.Compact(&line, entry); err != nil {
		return err
	}
	line.WriteByte('\n')
	_, err := out.Write(line.Bytes())
	return err
}
