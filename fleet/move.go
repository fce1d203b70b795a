package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/parcel"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/transcript"
)

// maxMove is how large a session and a workspace may be together that other programs can continue.
const maxMove = 256 << 20

// maxDir is how much of the name of the directory on the other machine an agent gets to read.
const maxDir = 500

// Entries of a parcel, in their order.
const (
	moveHead    = "task.json"
	moveSession = "session" // a directory of transcripts
	moveCommits = "commits.bundle"
	moveFiles   = "files" // a directory
	moveEnd     = "end.json"
)

// moved is the first entry of a parcel: where a task stands.
type moved struct {
	Task       string          `json:"task"`
	Agent      string          `json:"agent"`
	Session    string          `json:"session"`
	Turns      int             `json:"turns"` // that are done
	Text       string          `json:"text,omitempty"`
	Structured json.RawMessage `json:"structured,omitempty"`
	ToolCalls  int             `json:"toolCalls,omitempty"`
	Dir        string          `json:"dir"` // where the task worked
	Space      movedSpace      `json:"space"`
}

// movedEnd is the last entry: a parcel without it is not whole.
type movedEnd struct {
	Gone []string `json:"gone,omitempty"` // files of the commit that the task has deleted
	Left []string `json:"left,omitempty"` // what the parcel does not have, with the reason
}

// unmovable says why the session of an agent cannot continue in another program; "": it can.
func unmovable(o *sdk.Options) string {
	switch {
	case overACP(o):
		return "an agent of the Agent Client Protocol keeps its sessions itself"
	case o.Spawner != nil:
		return "Options.Spawner starts the agent where its files are not known"
	case o.SessionStore != nil:
		return "Options.SessionStore is set, and keeps its sessions by their directories"
	case !o.PersistSession.Or(true):
		return "Options.PersistSession is off"
	case o.ExperimentalCloudAgent != nil:
		return "the agent runs in the cloud"
	case o.EnableFileCheckpointing.Or(false) && backendName(o) == claude.Name:
		return "Options.EnableFileCheckpointing cannot be combined with the copy of the session that this needs"
	}
	return ""
}

// fenceOf is the fence of the lease under which a file of Job.Files was put.
func fenceOf(name string) uint64 {
	first, _, _ := strings.Cut(name, "/")
	fence, err := strconv.ParseUint(first, 10, 64)
	if err != nil {
		return 0
	}
	return fence
}

// keep has the queue know what an attempt has come to. With Job.Move the session and the workspace are in
// Job.Files before that. If they cannot be, those of an earlier turn stay the ones that count.
func (r *runner) keep(ctx context.Context, a *attempt, turns int) {
	if r.shared == nil {
		return
	}
	if r.job.Move {
		name, err := r.pack(ctx, a, turns)
		if err == nil {
			a.kept, a.unmoved = name, ""
		} else if a.unmoved != err.Error() && ctx.Err() == nil {
			a.unmoved = err.Error()
			a.warnings = append(a.warnings, "other programs could not continue this: "+a.unmoved)
		}
	}
	_ = r.jot(ctx, a, turns, false, r.job.Move) // the next parcel may have the name of the last but one
}

// keepLast keeps what an attempt has left that was interrupted. Its processes are gone.
func (r *runner) keepLast(a *attempt) {
	if r.job.Move && r.shared != nil && a.client != nil && a.space.Dir != "" && a.hard.Err() == nil {
		r.keep(r.calls, a, a.turns)
	}
}

// pack puts the session and the workspace into Job.Files.
func (r *runner) pack(ctx context.Context, a *attempt, turns int) (name string, err error) {
	if a.stays != "" {
		return "", errors.New(a.stays)
	}
	if err := a.client.Mirrored(ctx); err != nil {
		return "", err
	}
	dir, remove, err := r.scratch()
	if err != nil {
		return "", err
	}
	defer remove()
	f, err := os.Create(filepath.Join(dir, "parcel"))
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	m := moved{
		Task: a.task.ID, Agent: backendName(a.opts), Session: cmp.Or(a.client.SessionID(), a.session), Turns: turns,
		Text: a.Text, Structured: a.Structured, ToolCalls: a.ToolCalls, Dir: a.space.work(),
	}
	if err := r.fillParcel(ctx, a, &m, parcel.NewPacker(f, maxMove), filepath.Join(dir, moveCommits)); err != nil {
		return "", err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	a.parcels++
	name = lent(a.fence, path.Join("moves", a.task.ID, fmt.Sprintf("%d-%d", a.number, a.parcels%2)))
	return name, r.job.Files.Put(ctx, name, f)
}

func (r *runner) fillParcel(ctx context.Context, a *attempt, m *moved, p *parcel.Packer, commits string) error {
	tree, err := r.spaces.openMoved(ctx, a, a.space)
	if err != nil {
		return err
	}
	if err := tree.bundle(ctx, commits); err != nil {
		return err
	}
	m.Space = tree.movedSpace
	head, err := json.Marshal(m)
	if err == nil {
		err = p.Bytes(moveHead, head)
	}
	if err == nil {
		err = r.sessions.pack(ctx, p, m.Session)
	}
	if err != nil {
		return err
	}
	var end movedEnd
	if end.Gone, err = tree.pack(ctx, p, commits); err != nil {
		return err
	}
	end.Left = p.Left
	last, err := json.Marshal(end)
	if err == nil {
		err = p.Bytes(moveEnd, last)
	}
	return errors.Join(err, p.Close())
}

// arrive continues with the session and the workspace that another program had for the task. Where they
// cannot be had, the task begins anew, and the attempt says why.
func (r *runner) arrive(ctx context.Context, a *attempt) error {
	if a.mode != modeMoved {
		return nil
	}
	from := a.from
	m, s, left, err := r.unpack(ctx, a, from)
	var place *badWorkspace
	switch {
	case err != nil && (ctx.Err() != nil || errors.As(err, &place)):
		a.mode = modeFresh
		return err
	case shortage(err) != "": // of this machine; what is kept stays for later, or for another one
		a.mode = modeFresh
		return &badWorkspace{dir: s.Dir, err: fmt.Errorf("continue what worker %s has kept: %w", from.Worker, err)}
	case err != nil:
		a.mode, a.session, a.turns = modeFresh, "", 0
		a.Text, a.Structured, a.ToolCalls = "", nil, 0
		a.note = fmt.Sprintf("begins anew: what worker %s has kept cannot be continued: %v", from.Worker, err)
		a.warnings = append(a.warnings, a.note)
		return nil
	}
	a.mode, a.arrived, a.session, a.turns, a.kept = modeResume, true, m.Session, m.Turns, from.Kept
	a.Text, a.Structured, a.ToolCalls = m.Text, m.Structured, m.ToolCalls
	with := *a.with
	with.space, with.orphan = s, false
	with.told += m.message(s, left)
	a.with = &with
	a.note = fmt.Sprintf("continues the session of worker %s after %d of its turns", from.Worker, m.Turns)
	if len(left) > 0 {
		a.warnings = append(a.warnings, "not moved from worker "+from.Worker+": "+strings.Join(left, "; "))
	}
	return nil
}

// message has the facts of the move for the agent.
func (m *moved) message(s space, left []string) string {
	text := fmt.Sprintf("\nYou are on another machine now, and what ran in the background has ended. You work in %s; it was %s.", s.work(), shown.Head(m.Dir, maxDir))
	switch {
	case m.Space.Kind == "":
		return text + " Files that you wrote may not be here."
	case m.Space.Head.Hash != "":
		text += fmt.Sprintf(" HEAD is at commit %.12s, and your other changes are not staged. Files that git ignores are not here.", m.Space.Head.Hash)
	}
	if len(left) > 0 {
		text += " Not here: " + short(strings.Join(left, "; ")) + "."
	}
	return text
}

// unpack makes the workspace, and fills it and the session with what is in Job.Files.
func (r *runner) unpack(ctx context.Context, a *attempt, from *TaskNote) (m moved, s space, left []string, err error) {
	if a.stays != "" {
		return m, s, nil, errors.New(a.stays)
	}
	f, err := r.job.Files.Get(ctx, from.Kept)
	if err != nil {
		return m, s, nil, err
	}
	defer func() { _ = f.Close() }()
	in := parcel.NewReader(f, maxMove)
	if err := readEntry(in, moveHead, &m); err != nil {
		return m, s, nil, err
	}
	switch {
	case m.Task != a.task.ID || !transcript.IsID(m.Session) || m.Turns < 0 || m.Turns > len(a.task.prompts()):
		return m, s, nil, errors.New("it is of another task")
	case m.Agent != backendName(a.opts):
		return m, s, nil, fmt.Errorf("its session is of the agent %s, and this one is %s", m.Agent, backendName(a.opts))
	}
	if s, err = r.spaces.makeSpace(ctx, a); err != nil {
		if shortage(err) != "" {
			err = errors.Join(err, r.spaces.discard(ctx, a, s))
		}
		return m, s, nil, err
	}
	defer func() { // after another error the attempt makes it anew, under the same name
		if err != nil && (ctx.Err() != nil || shortage(err) != "") {
			err = errors.Join(err, r.spaces.discard(ctx, a, s))
		}
	}()
	if a.task.ExpectChange {
		if s.State, err = r.spaces.stateOf(ctx, a, s); err != nil {
			return m, s, nil, err
		}
	}
	tree, err := r.spaces.openMoved(ctx, a, s)
	if err == nil {
		err = tree.accepts(&m.Space)
	}
	if err == nil {
		left, err = r.unpackRest(ctx, in, &m, tree)
	}
	return m, s, left, err
}

// unpackRest reads what follows the first entry of a parcel.
func (r *runner) unpackRest(ctx context.Context, in *parcel.Reader, m *moved, to *movedTree) (left []string, err error) {
	defer func() { err = errors.Join(err, to.close()) }()
	dir, remove, err := r.scratch()
	if err != nil {
		return nil, err
	}
	defer remove()
	if err := r.sessions.forget(ctx, m.Session); err != nil {
		return nil, err
	}
	commits, ready, session := "", false, false
	for {
		name, err := in.Next()
		if errors.Is(err, io.EOF) {
			err = errors.New("its end is missing")
		}
		if err != nil {
			return nil, err
		}
		kind, rest, _ := strings.Cut(name, "/")
		if kind == moveSession {
			if err := r.sessions.take(ctx, m.Session, rest, in); err != nil {
				return nil, err
			}
			session = session || rest == ownTranscript+entryExt
			continue
		}
		if kind == moveCommits {
			commits = filepath.Join(dir, moveCommits)
			if err := writeFile(commits, in); err != nil {
				return nil, err
			}
			continue
		}
		if !session {
			return nil, errors.New("it has no session")
		}
		if !ready {
			if err := to.begin(ctx, &m.Space, commits); err != nil {
				return nil, err
			}
			ready = true
		}
		switch kind {
		case moveFiles:
			err = to.take(in, rest)
		case moveEnd:
			var end movedEnd
			if err := json.NewDecoder(in).Decode(&end); err != nil {
				return nil, err
			}
			return end.Left, to.end(end.Gone)
		default: // of a later version
			err = fmt.Errorf("it has %s, which this release does not know", name)
		}
		if err != nil {
			return nil, err
		}
	}
}

// scratch makes a temporary directory.
func (r *runner) scratch() (dir string, remove func(), err error) {
	dir = filepath.Join(os.TempDir(), "troupe-move-"+kernel.NewID(r.rt.Rand()))
	return dir, func() { _ = os.RemoveAll(dir) }, os.Mkdir(dir, 0o700)
}

func readEntry(in *parcel.Reader, want string, to any) error {
	name, err := in.Next()
	if err == nil && name != want {
		err = fmt.Errorf("it begins with %s in place of %s", name, want)
	}
	if err != nil {
		return err
	}
	return json.NewDecoder(in).Decode(to)
}

func writeFile(name string, content io.Reader) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

// begins is how the attempt begins, for the result.
func (a *attempt) begins() Mode {
	if a.arrived {
		return modeMoved
	}
	return a.mode
}
