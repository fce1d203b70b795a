package transcript

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/session"
)

// ImportOptions are the options of [Sessions.Import]. The zero value imports the whole
// session.
type ImportOptions struct {
	// Project is the project in the store. "": that of Dir; without Dir that of the folder
	// which the session is in, so that it is found for its own directory.
	Project       string
	SkipSubagents bool
	// Missing imports only what the store lacks, such as what an agent stored and could not
	// report before it was killed, or what a [session.MirrorFailed] named. It loads the
	// session from the store, and may be repeated. No agent may run the session.
	Missing bool
	// Batch is the most entries of one append; an append also ends when it has 1 MiB.
	// Default, also for negative values: 500.
	Batch int
}

// Imported says what [Sessions.Import] did.
type Imported struct {
	Key     session.StoreKey // of the session
	Entries int              // that were appended, subagents included
	// Damaged counts the lines that are not JSON objects, such as a torn last line. They
	// are left out.
	Damaged int
	// Foreign counts, with Missing, the messages that the store has and the file lacks:
	// another machine has continued the session. Nothing is imported to such a
	// transcript.
	Foreign int
}

// importBytes ends an append.
const importBytes = 1 << 20

// Import copies a session of this machine into a store: all lines of its transcript, then
// for each subagent its lines and its description. A title or an archive mark in a file
// beside the transcript is left out, and so are tool results in files. Of several copies of
// the session it takes the newest. It holds one append in memory.
//
// Import it once, or with Missing: lines with a uuid that the store has are left out there, others, such as
// titles, come twice. After an error the store has a part of the session. The error is a
// *NotFoundError, an *IDError, a *[session.StoreError], or the file's.
func (s *Sessions) Import(ctx context.Context, id string, store session.Store, o ImportOptions) (Imported, error) {
	if s.Store != nil {
		return Imported{}, errors.New("transcript: Import copies sessions of a machine; Sessions.Store must be nil")
	}
	all, err := s.find(ctx, id, false)
	if err != nil {
		return Imported{}, err
	}
	f := &all[0]
	project := o.Project
	switch {
	case project != "":
	case s.Dir != "":
		project, _ = s.project()
	default:
		project = path.Base(f.folder)
	}
	if o.Batch <= 0 {
		o.Batch = defaultBatch
	}
	i := &importer{s: s, ctx: ctx, store: store, batch: o.Batch, only: o.Missing}
	i.open = func(name string) (io.ReadCloser, error) { return s.fsys().Open(name) }
	i.Key = session.StoreKey{Project: project, Session: id}
	if err := i.file(f.name, i.Key); err != nil {
		return i.Imported, err
	}
	if o.SkipSubagents {
		return i.Imported, nil
	}
	return i.Imported, i.subagents(f.side())
}

// Complete appends to one transcript of a store the lines that it lacks, as [Sessions.Import]
// does with Missing, for a transcript that is not a file of a [Sessions]. open opens it; it
// is called twice. The error is that of open, of a read, or a *[session.StoreError].
func Complete(ctx context.Context, store session.Store, key session.StoreKey, open func() (io.ReadCloser, error)) (Imported, error) {
	i := &importer{ctx: ctx, store: store, batch: defaultBatch, only: true}
	i.Key = key
	i.open = func(string) (io.ReadCloser, error) { return open() }
	err := i.file(key.String(), key)
	return i.Imported, err
}

// defaultBatch is how many entries one append has.
const defaultBatch = 500

type importer struct {
	Imported

	s     *Sessions       // nil for a single transcript
	ctx   context.Context //nolint:containedctx // of one call of Import
	open  func(name string) (io.ReadCloser, error)
	store session.Store
	batch int
	only  bool // what the store lacks
}

// file appends the lines of a file.
func (i *importer) file(name string, key session.StoreKey) error {
	var missing map[int]bool
	if i.only {
		var err error
		if missing, err = i.missing(name, key); err != nil {
			return err
		}
	}
	f, err := i.open(name)
	if err != nil {
		return fmt.Errorf("transcript: %w", err)
	}
	defer closeQuietly(f)
	d := NewDecoder(f)
	var entries []json.RawMessage
	size := 0
	for {
		l, err := d.Next()
		if err == io.EOF { //nolint:errorlint // the decoder's own
			return i.append(key, entries)
		}
		if err != nil {
			return fmt.Errorf("transcript: %s cannot be read: %w", name, err)
		}
		switch l.Damage {
		case "":
		case DamageBlank:
			continue
		default:
			i.Damaged++
			continue
		}
		if i.only && !missing[l.Number] {
			continue
		}
		entries = append(entries, slices.Clone(l.Raw))
		if size += len(l.Raw); len(entries) >= i.batch || size >= importBytes {
			if err := i.append(key, entries); err != nil {
				return err
			}
			entries, size = nil, 0
		}
	}
}

func (i *importer) append(key session.StoreKey, entries []json.RawMessage) error {
	if len(entries) == 0 {
		return i.ctx.Err()
	}
	if err := i.store.Append(i.ctx, key, entries); err != nil {
		return storeError("append to", key, err)
	}
	i.Entries += len(entries)
	return nil
}

// subagents appends the transcripts below a session's own folder, and their descriptions.
func (i *importer) subagents(folder string) error {
	var names []string
	err := fs.WalkDir(i.s.fsys(), path.Join(folder, "subagents"), func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case e.Type().IsRegular() && strings.HasSuffix(name, ".jsonl"):
			names = append(names, strings.TrimSuffix(name, ".jsonl"))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("transcript: the subagents in %s cannot be listed: %w", folder, err)
	}
	for _, name := range names {
		key := i.Key
		key.Subpath = strings.TrimPrefix(name, folder+"/")
		if err := i.file(name+".jsonl", key); err != nil {
			return err
		}
		raw, err := fs.ReadFile(i.s.fsys(), name+".meta.json")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("transcript: %w", err)
		}
		m := metadataEntry(raw)
		if m != nil && i.only {
			has, err := i.hasLast(key, m)
			if err != nil {
				return err
			}
			if has {
				continue
			}
		}
		if m == nil {
			i.Damaged++
		} else if err := i.append(key, []json.RawMessage{m}); err != nil {
			return err
		}
	}
	return nil
}

// metadataEntry is the entry for a subagent's description; nil if that is not an
// object.
func metadataEntry(raw []byte) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil || all == nil {
		return nil
	}
	if all["type"] == nil {
		all["type"] = quote(typeAgentMetadata)
	}
	out, err := json.Marshal(all)
	if err != nil {
		return nil
	}
	return out
}
