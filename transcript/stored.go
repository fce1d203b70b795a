package transcript

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/session"
)

// typeAgentMetadata is the type of the entries in a store that describe a subagent, as
// files that end in .meta.json do on a machine.
const typeAgentMetadata = "agent_metadata"

// project returns the store's name for Dir, and Dir resolved.
func (s *Sessions) project() (name, dir string) {
	dir = resolveDir(s.Dir)
	return cmp.Or(s.ProjectName, FolderName(s.Vendor, dir)), dir
}

func (s *Sessions) storeKey(id, subpath string) session.StoreKey {
	name, _ := s.project()
	return session.StoreKey{Project: name, Session: id, Subpath: subpath}
}

func storeError(doing string, key session.StoreKey, err error) error {
	var known *session.StoreError
	if err == nil || errors.As(err, &known) {
		return err
	}
	return &session.StoreError{Doing: doing, Key: key, Err: err}
}

// copied is what was loaded of one transcript.
type copied struct {
	spool
	last     []byte // the last entry, or nil
	metadata []byte // the last description of a subagent, or nil
}

// load copies a transcript out of the store. The caller closes the copy.
func (s *Sessions) load(ctx context.Context, key session.StoreKey) (_ *copied, err error) {
	c := &copied{}
	defer func() {
		if err != nil {
			closeQuietly(c)
			err = storeError("load", key, err)
		}
	}()
	var line bytes.Buffer
	for entry, err := range s.Store.Load(ctx, key) {
		if err != nil {
			return nil, err
		}
		line.Reset()
		if err := json.Compact(&line, entry); err != nil { // a line has no newline in it
			return nil, err
		}
		c.last = append(c.last[:0], line.Bytes()...)
		if bytes.Contains(c.last, []byte(typeAgentMetadata)) && parseLine(c.last).Type() == typeAgentMetadata {
			c.metadata = bytes.Clone(c.last)
		}
		line.WriteByte('\n')
		if _, err := c.Write(line.Bytes()); err != nil {
			return nil, err
		}
	}
	return c, c.flush()
}

// readStored returns a transcript of the store for reads at any place. Of a store of files it
// is the file itself: then last and metadata are nil. The caller closes it.
func (s *Sessions) readStored(ctx context.Context, key session.StoreKey) (*copied, error) {
	files, ok := s.Store.(session.StoreFiles)
	if !ok || key.Subpath != "" { // descriptions of subagents are among the entries
		return s.load(ctx, key)
	}
	f, err := files.File(ctx, key)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return s.load(ctx, key)
	case errors.Is(err, fs.ErrNotExist):
		return &copied{}, nil
	case err != nil:
		return nil, storeError("load", key, err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, storeError("load", key, errors.Join(err, f.Close()))
	}
	return &copied{spool: spool{file: f, size: info.Size(), lent: true}}, nil
}

// openStored opens a transcript of the store.
func (s *Sessions) openStored(ctx context.Context, id, subpath string) (*File, *copied, error) {
	if err := s.checkID(id); err != nil {
		return nil, nil, err
	}
	c, err := s.readStored(ctx, s.storeKey(id, subpath))
	if err != nil {
		return nil, nil, err
	}
	if c.size == 0 {
		closeQuietly(c)
		return nil, nil, &NotFoundError{ID: path.Join(id, subpath), Dir: s.Dir, Store: true}
	}
	t, err := Index(c, c.size, s.Vendor)
	if err != nil {
		closeQuietly(c)
		return nil, nil, err
	}
	return &File{Transcript: t, s: s, f: c}, c, nil
}

// describeStored returns nil if there is nothing to show.
func (s *Sessions) describeStored(sc *scanner, c *copied, id string) (*Info, error) {
	if c.size == 0 {
		return nil, nil //nolint:nilnil // there is no such session
	}
	f, _, _, err := s.facts(sc, c, c.size)
	if err != nil {
		return nil, err
	}
	info := &Info{SessionID: id, FileSize: c.size}
	if f.sidechain || !info.fill(f, f.title) {
		return nil, nil //nolint:nilnil // no session that a list has
	}
	return info, nil
}

func (s *Sessions) infoStored(ctx context.Context, id string) (*Info, error) {
	if err := s.checkID(id); err != nil {
		return nil, err
	}
	c, err := s.load(ctx, s.storeKey(id, ""))
	if err != nil {
		return nil, err
	}
	defer closeQuietly(c)
	info, err := s.describeStored(&scanner{}, c, id)
	if err != nil {
		return nil, err
	}
	if info == nil {
		return nil, &NotFoundError{ID: id, Dir: s.Dir, Store: true}
	}
	if info.LastModified = parseLine(c.last).Time(); info.LastModified.IsZero() {
		info.LastModified = s.now()
	}
	info.LastModified = millis(info.LastModified)
	return info, nil
}

// millis is a time as the vendors' rows have it.
func millis(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()).UTC() }

// slot is a session of a list.
type slot struct {
	id       string
	modified time.Time
	info     *Info // nil until it is loaded
}

func (s *Sessions) listStored(ctx context.Context, o ListOptions) ([]Info, error) {
	slots, err := s.slots(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(slots, func(a, b slot) int { return b.modified.Compare(a.modified) })
	slots = slots[min(max(o.Offset, 0), len(slots)):]
	if o.Limit > 0 {
		slots = slots[:min(o.Limit, len(slots))]
	}
	_, dir := s.project()
	var out []Info
	var sc scanner
	for _, row := range slots {
		if row.info == nil {
			if row.info, err = s.loadRow(ctx, &sc, row, dir); err != nil {
				return nil, err
			}
		}
		if row.info != nil {
			out = append(out, *row.info)
		}
	}
	return out, nil
}

// slots lists the sessions of the store, with what their summaries say.
func (s *Sessions) slots(ctx context.Context) ([]slot, error) {
	name, dir := s.project()
	key := session.StoreKey{Project: name}
	var summaries []session.StoredSummary
	var err error
	summaried := false
	if keeps, ok := s.Store.(session.StoreSummaries); ok {
		summaries, err = keeps.Summaries(ctx, name)
		if summaried = !errors.Is(err, errors.ErrUnsupported); err != nil && summaried {
			return nil, storeError("list the summaries of", key, err)
		}
	}
	listed, err := s.Store.Sessions(ctx, name)
	unlisted := errors.Is(err, errors.ErrUnsupported)
	if err != nil && (!unlisted || !summaried) {
		return nil, storeError("list the sessions of", key, err)
	}
	at := make(map[string]time.Time, len(listed))
	for _, row := range listed {
		at[row.ID] = millis(row.Modified)
	}
	var out []slot
	fresh := make(map[string]bool, len(summaries))
	for _, sum := range summaries {
		modified := millis(sum.Modified)
		if now, there := at[sum.ID]; !unlisted && (!there || modified.Before(now)) {
			continue // deleted, or appended to since
		}
		fresh[sum.ID] = true
		if info := summaryInfo(sum.ID, modified, sum.Data, dir); info != nil {
			out = append(out, slot{sum.ID, modified, info})
		}
	}
	for _, row := range listed {
		if !fresh[row.ID] {
			out = append(out, slot{id: row.ID, modified: at[row.ID]})
		}
	}
	return out, nil
}

// loadRow returns nil if row is not a session, and a row without a summary for one that
// the store does not load.
func (s *Sessions) loadRow(ctx context.Context, sc *scanner, row slot, dir string) (*Info, error) {
	name, _ := s.project()
	c, err := s.readStored(ctx, session.StoreKey{Project: name, Session: row.id})
	if err != nil {
		return &Info{SessionID: row.id, LastModified: row.modified}, ctx.Err()
	}
	defer closeQuietly(c)
	info, err := s.describeStored(sc, c, row.id)
	if err != nil || info == nil {
		return nil, err
	}
	info.LastModified, info.Cwd = row.modified, cmp.Or(info.Cwd, dir)
	return info, nil
}

func (s *Sessions) subagentsStored(ctx context.Context, id string) ([]Subagent, error) {
	subpaths, err := s.agentPaths(ctx, id)
	if err != nil {
		return nil, err
	}
	var out []Subagent
	for _, sub := range subpaths {
		out = append(out, Subagent{ID: agentOfPath(sub)})
	}
	return out, nil
}

// agentPaths returns the subpaths of a session's subagents.
func (s *Sessions) agentPaths(ctx context.Context, id string) ([]string, error) {
	if err := s.checkID(id); err != nil {
		return nil, err
	}
	key := s.storeKey(id, "")
	all, err := s.Store.Subpaths(ctx, key.Project, id)
	if err != nil {
		return nil, storeError("list the subagents of", key, err)
	}
	return slices.DeleteFunc(slices.Clone(all), func(sub string) bool {
		return !strings.HasPrefix(sub, "subagents/") || !strings.HasPrefix(path.Base(sub), "agent-")
	}), nil
}

func agentOfPath(subpath string) string { return strings.TrimPrefix(path.Base(subpath), "agent-") }

func (s *Sessions) openSubagentStored(ctx context.Context, id, agentID string) (*File, Subagent, error) {
	unknown := &NotFoundError{ID: path.Join(id, "subagents", agentID), Dir: s.Dir, Store: true}
	if !isFileName(agentID) {
		return nil, Subagent{}, unknown
	}
	subpath := "subagents/agent-" + agentID
	switch all, err := s.agentPaths(ctx, id); {
	case errors.Is(err, errors.ErrUnsupported): // it is not nested
	case err != nil:
		return nil, Subagent{}, err
	default:
		i := slices.IndexFunc(all, func(sub string) bool { return agentOfPath(sub) == agentID })
		if i < 0 {
			return nil, Subagent{}, unknown
		}
		subpath = all[i]
	}
	f, c, err := s.openStored(ctx, id, subpath)
	if err != nil {
		return nil, Subagent{}, err
	}
	a := Subagent{}
	if c.metadata != nil && json.Unmarshal(c.metadata, &a) != nil {
		a = Subagent{}
	}
	a.ID, a.Metadata = agentID, c.metadata
	return f, a, nil
}

// appendStored appends a line of bookkeeping to a session that is in the store.
func (s *Sessions) appendStored(ctx context.Context, id, typ, member, value string) error {
	if !isUUID(id) {
		return &IDError{ID: id, Vendor: s.Vendor}
	}
	key := s.storeKey(id, "")
	if err := s.isStored(ctx, key); err != nil {
		return err
	}
	entry := object("type", typ, member, value, "sessionId", id, "uuid", s.newID(), "timestamp", stamp(s.now()))
	return storeError("append to", key, s.Store.Append(ctx, key, []json.RawMessage{entry}))
}

// isStored returns a *NotFoundError if the store does not have the session.
func (s *Sessions) isStored(ctx context.Context, key session.StoreKey) error {
	for _, err := range s.Store.Load(ctx, key) {
		return storeError("load", key, err) // or nil if it has an entry
	}
	if err := ctx.Err(); err != nil {
		return storeError("load", key, err)
	}
	return &NotFoundError{ID: key.Session, Dir: s.Dir, Store: true}
}

func (s *Sessions) deleteStored(ctx context.Context, id string) error {
	if !isUUID(id) {
		return &IDError{ID: id, Vendor: s.Vendor}
	}
	key := s.storeKey(id, "")
	return storeError("delete", key, s.Store.Delete(ctx, key))
}

func (s *Sessions) forkStored(ctx context.Context, id string, o ForkOptions) (string, error) {
	if !isUUID(id) {
		return "", &IDError{ID: id, Vendor: s.Vendor}
	}
	f, c, err := s.openStored(ctx, id, "")
	if err != nil {
		return "", err
	}
	defer closeQuietly(f)
	k, err := s.newFork(f.Transcript, id, o)
	if err != nil {
		return "", err
	}
	if k.title == "" {
		info, err := s.describeStored(&scanner{}, c, id)
		if err != nil {
			return "", err
		}
		k.title = info.forkTitle()
	}
	var out bytes.Buffer
	w := bufio.NewWriter(&out)
	if err := errors.Join(k.write(ctx, w), w.Flush()); err != nil {
		return "", err
	}
	var entries []json.RawMessage
	for line := range bytes.Lines(out.Bytes()) {
		entries = append(entries, bytes.TrimSuffix(line, []byte("\n")))
	}
	key := s.storeKey(k.to, "")
	if err := s.Store.Append(ctx, key, entries); err != nil {
		return "", storeError("append to", key, err)
	}
	return k.to, nil
}
