package transcript

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// ListOptions are the options of [Sessions.List]. The zero value lists all sessions.
type ListOptions struct {
	Limit  int // the most sessions; 0 and less: all
	Offset int // sessions that are left out from the start; 0 and less: none
	// SkipProgrammatic leaves out, for Claude, the sessions of programs: those of SDKs, of
	// this library, and of daemons. It does not count for sessions in a Store.
	SkipProgrammatic bool
}

// List returns the sessions, the last modified first. It reads at most 128 KiB of each
// Claude file: a title in the middle of a larger file is not seen, like in Claude's own
// list. Files that are not sessions are left out: those without a prompt or title, of
// subagents, and symbolic links. Of several copies of a session the newest counts.
//
// With a Store, the limits count before sessions without a prompt or title are left out of
// those that must be loaded, as in Claude's SDK, so a page can be short. A session that
// cannot be loaded has a row without a Summary.
func (s *Sessions) List(ctx context.Context, o ListOptions) ([]Info, error) {
	if s.Store != nil {
		return s.listStored(ctx, o)
	}
	places, err := s.places()
	if err != nil {
		return nil, err
	}
	var files []found
	for _, p := range places {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if files, err = s.filesIn(p, files); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(files, func(a, b found) int {
		if d := b.info.ModTime().UnixMilli() - a.info.ModTime().UnixMilli(); d != 0 {
			return int(max(-1, min(1, d)))
		}
		return strings.Compare(path.Base(b.name), path.Base(a.name))
	})
	var out []Info
	var sc scanner
	seen := make(map[string]bool, len(files))
	skip := max(o.Offset, 0)
	for i := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		id := sessionOf(files[i].name)
		if seen[id] {
			continue
		}
		info, err := s.describe(&sc, &files[i], o.SkipProgrammatic)
		if err != nil {
			return nil, err
		}
		if info == nil {
			continue
		}
		seen[id] = true
		if skip > 0 {
			skip--
			continue
		}
		out = append(out, *info)
		if o.Limit > 0 && len(out) == o.Limit {
			break
		}
	}
	return out, nil
}

// sessionOf returns the session whose transcript has that name.
func sessionOf(name string) string { return strings.TrimSuffix(path.Base(name), ".jsonl") }

// filesIn adds the session files of a folder.
func (s *Sessions) filesIn(p place, files []found) ([]found, error) {
	entries, err := fs.ReadDir(s.fsys(), p.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return files, nil
	}
	if err != nil {
		return nil, err
	}
	folders := map[string]bool{}
	for _, e := range entries {
		if e.IsDir() {
			folders[e.Name()] = true
		}
	}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if !ok || !e.Type().IsRegular() || s.checkID(id) != nil {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // it was removed meanwhile
		}
		files = append(files, found{place: p, name: path.Join(p.folder, e.Name()), info: info, bare: !folders[id]})
	}
	return files, nil
}

// Info describes one session. A *NotFoundError also says that a file is not a session: it
// has neither a prompt nor a title, is a subagent's, or is a symbolic link.
func (s *Sessions) Info(ctx context.Context, id string) (*Info, error) {
	if s.Store != nil {
		return s.infoStored(ctx, id)
	}
	all, err := s.find(ctx, id, false)
	if err != nil {
		return nil, err
	}
	var sc scanner
	for i := range all {
		if link, err := fs.Lstat(s.fsys(), all[i].name); err != nil || !link.Mode().IsRegular() {
			continue
		}
		info, err := s.describe(&sc, &all[i], false)
		if err != nil {
			return nil, err
		}
		if info != nil {
			return info, nil
		}
	}
	return nil, &NotFoundError{ID: id, Dir: s.Dir}
}

// describe returns nil if the file is not a session of a list.
func (s *Sessions) describe(sc *scanner, file *found, skipProgrammatic bool) (*Info, error) {
	size := file.info.Size()
	if size == 0 {
		return nil, nil //nolint:nilnil // no session
	}
	r, f, err := s.openAt(file.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // it was removed meanwhile
	}
	if err != nil {
		return nil, err
	}
	defer closeQuietly(f)
	info := &Info{
		SessionID: sessionOf(file.name), LastModified: time.UnixMilli(file.info.ModTime().UnixMilli()).UTC(),
		FileSize: size, Path: file.name,
	}
	facts, head, tail, err := s.facts(sc, r, size)
	if err != nil {
		return nil, err
	}
	if facts.sidechain || skipProgrammatic && facts.programmatic() || file.isTwins(facts) {
		return nil, nil //nolint:nilnil // no session of this list
	}
	title := facts.title
	if s.Vendor == Claude {
		if !facts.titled && !file.bare {
			title = s.sidecarTitle(file)
		}
		if !file.bare {
			info.Archived = s.archived(file, head, tail)
		}
	}
	if !info.fill(facts, title) {
		return nil, nil //nolint:nilnil // nothing to show
	}
	if info.Cwd == "" && s.Vendor == Claude {
		info.Cwd = file.dir
	}
	return info, nil
}

// facts reads what a transcript says about its session, and for Claude the two ends of it.
func (s *Sessions) facts(sc *scanner, r io.ReaderAt, size int64) (f *facts, head, tail []byte, err error) {
	if s.Vendor == Qoder {
		f, err = whole(io.NewSectionReader(r, 0, size))
	} else if head, tail, err = sc.ends(r, size); err == nil {
		f = windows(head, tail)
	}
	return f, head, tail, err
}

// fill sets what the facts say. It reports whether there is something to show.
func (info *Info) fill(f *facts, title string) bool {
	info.CustomTitle = cmp.Or(title, f.headTitle, f.aiTitle, f.headAI)
	info.FirstPrompt = cmp.Or(f.firstPrompt, f.commandPrompt)
	info.Summary = cmp.Or(info.CustomTitle, f.lastPrompt, f.summary, info.FirstPrompt, f.picture)
	info.GitBranch, info.Tag = f.branch, f.tag
	info.CreatedAt = parseTime(f.timestamp)
	info.Cwd = cmp.Or(f.relocated, f.cwd)
	return info.Summary != ""
}

// programmatic reports whether a program, not a person, made the session.
func (f *facts) programmatic() bool {
	switch f.entrypoint {
	case "sdk-cli", "sdk-ts", "sdk-py":
		return true
	}
	return f.kind == "daemon" || f.kind == "daemon-worker"
}

// isTwins reports whether the session belongs to another directory, whose folder has the
// same name. It can only tell if both directories exist.
func (f *found) isTwins(facts *facts) bool {
	cwd := cmp.Or(facts.relocated, facts.cwd)
	if cwd == "" || f.dir == "" || cwd == f.dir || FolderName(Claude, cwd) != FolderName(Claude, f.dir) {
		return false
	}
	for _, tree := range f.own {
		if cwd == tree || strings.HasPrefix(cwd, tree+"/") {
			return false
		}
	}
	if _, err := os.Stat(f.dir); err != nil {
		return false
	}
	if _, err := os.Stat(cwd); err != nil {
		return false
	}
	return resolveDir(cwd) != f.dir
}

// sidecarTitle returns the title that the agent's program itself has set.
func (s *Sessions) sidecarTitle(f *found) string {
	raw, err := fs.ReadFile(s.fsys(), f.side("custom-title.json"))
	if err != nil {
		return ""
	}
	var title struct {
		CustomTitle string `json:"customTitle"`
	}
	if json.Unmarshal(raw, &title) != nil {
		return ""
	}
	return title.CustomTitle
}

// archiveMark is the content of archived.json.
type archiveMark struct {
	Archived bool   `json:"archived"`
	At       string `json:"at"`
	By       string `json:"by"`
}

// archived returns whether the session is in the archive; nil if it never was. A later
// prompt takes it out.
func (s *Sessions) archived(f *found, head, tail []byte) *bool {
	raw, err := fs.ReadFile(s.fsys(), f.side("archived.json"))
	if err != nil {
		return nil
	}
	var mark archiveMark
	at := time.Time{}
	if json.Unmarshal(raw, &mark) == nil {
		at = parseTime(mark.At)
	}
	if at.IsZero() {
		return nil
	}
	archived := mark.Archived && !lastPromptTime(head, tail).After(at)
	return &archived
}
