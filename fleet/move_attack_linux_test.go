package fleet_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
)

// piece is an entry of a parcel.
type piece struct {
	tar.Header
	content string
}

// pieces rewrites a parcel.
func pieces(change func([]piece) []piece) func([]byte) ([]byte, error) {
	return func(b []byte) ([]byte, error) {
		var all []piece
		for r := tar.NewReader(bytes.NewReader(b)); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			content, err := io.ReadAll(r)
			if err != nil {
				return nil, err
			}
			all = append(all, piece{*h, string(content)})
		}
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		for _, p := range change(all) {
			if p.Size >= 0 && p.Typeflag == tar.TypeReg && p.Size < 1<<28 {
				p.Size = int64(len(p.content))
			}
			if err := w.WriteHeader(&p.Header); err != nil {
				return nil, err
			}
			if p.Size >= 1<<28 { // it says so
				break
			}
			if _, err := io.WriteString(w, p.content); err != nil {
				return nil, err
			}
		}
		return out.Bytes(), nil
	}
}

// with puts an entry before the last one.
func with(p piece) func([]byte) ([]byte, error) {
	return pieces(func(all []piece) []piece { return slices.Insert(all, len(all)-1, p) })
}

func file(name, content string) piece {
	return piece{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755}, content}
}

// replaced changes the content of the entries whose name begins with prefix.
func replaced(prefix string, change func(string) string) func([]byte) ([]byte, error) {
	return pieces(func(all []piece) []piece {
		for i := range all {
			if strings.HasPrefix(all[i].Name, prefix) {
				all[i].content = change(all[i].content)
			}
		}
		return all
	})
}

// headed changes what the first entry says.
func headed(t *testing.T, change func(head map[string]any)) func([]byte) ([]byte, error) {
	t.Helper()
	return replaced("task.json", func(text string) string {
		head := map[string]any{}
		assert.NoError(t, json.Unmarshal([]byte(text), &head))
		change(head)
		b, err := json.Marshal(head)
		assert.NoError(t, err)
		return string(b)
	})
}

// space is what the first entry says of the workspace.
func spaceOf(head map[string]any) map[string]any {
	s, _ := head["space"].(map[string]any)
	return s
}

// A worker can write anything into a parcel. The next one begins the task anew and says why, and nothing is written
// outside of the workspace.
func TestHostileParcels(t *testing.T) {
	t.Parallel()
	elsewhere := filepath.Join(repository(t), ".git")
	always := func(text string) func(string) string { return func(string) string { return text } }
	cases := map[string]struct {
		change func([]byte) ([]byte, error)
		why    string
	}{
		"above":                   {with(file("files/../../x", "evil")), "no name of a file"},
		"settings of git":         {with(file("files/.git/config", "evil")), "no name of a file"},
		"a link out":              {with(piece{tar.Header{Typeflag: tar.TypeSymlink, Name: "files/l", Linkname: "/etc"}, ""}), "which is outside"},
		"a hard link":             {with(piece{tar.Header{Typeflag: tar.TypeLink, Name: "files/l", Linkname: "files/a.txt"}, ""}), "neither a file"},
		"a huge file":             {with(piece{tar.Header{Typeflag: tar.TypeReg, Name: "files/l", Size: 1 << 30}, ""}), "larger than 256 MB"},
		"of a later version":      {with(file("more/x", "")), "does not know"},
		"a transcript elsewhere":  {with(file("session/sub/../../x.jsonl", "{}")), "no name of a file"},
		"a transcript of git":     {with(file("session/sub/.git/x.jsonl", "{}")), "no name of a file"},
		"another transcript":      {with(file("session/other.jsonl", "{}")), "a transcript named"},
		"a transcript of no JSON": {replaced("session/main", always("{\n")), "session store"},
		"no session": {pieces(func(all []piece) []piece {
			return slices.DeleteFunc(all, func(p piece) bool { return strings.HasPrefix(p.Name, "session") })
		}), "no session"},
		"another first entry": {pieces(func(all []piece) []piece { return all[1:] }), "it begins with"},
		"another task":        {headed(t, func(h map[string]any) { h["task"] = "t1" }), "another task"},
		"a session by a path": {headed(t, func(h map[string]any) { h["session"] = "../x" }), "another task"},
		"turns that are not":  {headed(t, func(h map[string]any) { h["turns"] = 5 }), "another task"},
		"another agent":       {headed(t, func(h map[string]any) { h["agent"] = "x" }), "of the agent x"},
		"no head":             {headed(t, func(h map[string]any) { spaceOf(h)["head"] = map[string]any{"Hash": "--all"} }), "not a HEAD of git"},
		"a head by a path": {headed(t, func(h map[string]any) {
			head, _ := spaceOf(h)["head"].(map[string]any)
			head["Ref"] = "refs/heads/../../config"
		}), "not a HEAD of git"},
		"no commits": {pieces(func(all []piece) []piece {
			return slices.DeleteFunc(all, func(p piece) bool { return p.Name == "commits.bundle" })
		}), "read-tree"},
		"other commits":      {replaced("commits.bundle", always("gitdir: "+elsewhere)), "not a bundle of git"},
		"broken commits":     {replaced("commits.bundle", func(s string) string { return s[:len(s)-8] + "evilevil" }), "pack is corrupted"},
		"nothing of a space": {headed(t, func(h map[string]any) { h["space"] = map[string]any{} }), "another state of its source"},
		"all files":          {headed(t, func(h map[string]any) { spaceOf(h)["kind"] = "files" }), "another state of its source"},
		"it removes outside": {replaced("end.json", always(`{"gone":["../../journal.jsonl"]}`)), "no name of a file"},
		"it removes git":     {replaced("end.json", always(`{"gone":[".git"]}`)), "no name of a file"},
		"no end":             {replaced("end.json", always("{")), "unexpected EOF"},
	}
	for i, name := range slices.Sorted(maps.Keys(cases)) {
		if sim.Raced() && i%4 != 0 { // each starts dozens of processes; without the detector all are played
			continue
		}
		c := cases[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo, q, kept := repository(t), memory(), files(t)
			one, two := mover{stays: true}, mover{}
			one.start(t, "one", repo, q, kept)
			<-one.second
			one.Cancel()
			<-one.Done()
			two.start(t, "two", repo, q, brokenFiles{kept, c.change})
			<-two.second
			r := two.result(t)
			a := r.Attempts[0]
			assert.Contains(t, a.Note, "begins anew: what worker one has kept cannot be continued: ")
			assert.Contains(t, a.Note, c.why)
			assert.Equal(t, fleet.Mode("fresh"), a.Mode)
			assert.EqualValues(t, 1, two.ran.Load(), "both turns are made")
			assert.Equal(t, "done after first is done", r.Text)
			assert.Equal(t, "two\nthree", strings.TrimSpace(read(t, r.Workspace, "a.txt")))
			at := filepath.Dir(two.out)
			assert.Equal(t, "out\nrepo\nsessions\n", output(t, at, "ls -A"))
			assert.NotContains(t, output(t, at, "ls -AR out repo; cat repo/.git/config"), "evil")
			assert.Empty(t, output(t, at+"/repo", "git status --porcelain; git fsck --no-dangling 2>&1 | grep -v ^notice: || true"))
		})
	}
}

// Programs that come at once: one of them continues the task, and there is one result.
func TestProgramsContinueAtOnce(t *testing.T) {
	t.Parallel()
	repo, q, kept := repository(t), memory(), files(t)
	one := mover{stays: true}
	one.start(t, "one", repo, q, kept)
	<-one.second
	one.Cancel()
	<-one.Done()
	var others [3]mover
	for i := range others {
		others[i].start(t, string(rune('b'+i)), repo, q, kept)
	}
	for i := range others {
		r := others[i].result(t)
		assert.Equal(t, "done after first is done", r.Text)
		assert.Zero(t, others[i].ran.Load())
		require.Len(t, r.Attempts, 1)
		assert.Equal(t, fleet.Mode("moved"), r.Attempts[0].Mode)
	}
	asked := 0
	for i := range others {
		asked += len(others[i].second)
	}
	assert.Equal(t, 1, asked, "one of them has made the second turn")
}

// A program that has lost its lease works on. Its parcels do not count any more.
func TestALatecomerKeepsNothing(t *testing.T) {
	t.Parallel()
	repo, kept := repository(t), files(t)
	clock := &leaping{now: time.Now()}
	q := queue.NewMemory(queue.MemoryConfig{TTL: time.Minute, Clock: clock})
	lost := &mortal{Queue: q, ttl: 12 * time.Second} // a third of it is the time to the next extension
	one, two := mover{stays: true}, mover{stays: true}
	ended := make(chan struct{}, 10)
	one.start(t, "one", repo, lost, kept, func(j *fleet.Job) {
		j.OnEvent = func(e fleet.Event) {
			if e.Kind == fleet.EventEnded {
				ended <- struct{}{}
			}
		}
	})
	<-one.second
	lost.dead.Store(true)
	<-ended
	clock.leap(time.Minute)
	two.start(t, "two", repo, q, kept)
	<-two.second
	require.NoError(t, os.WriteFile(filepath.Join(one.out, "workspaces", "t0", "1", "late.txt"), nil, 0o600))
	one.Cancel()
	<-one.Done()
	two.Cancel()
	<-two.Done()
	three := mover{}
	three.start(t, "three", repo, q, kept)
	<-three.second
	r := three.result(t)
	assert.Equal(t, "continues the session of worker two after 1 of its turns", r.Attempts[0].Note)
	assert.NoFileExists(t, filepath.Join(r.Workspace, "late.txt"))
	assert.Zero(t, two.ran.Load()+three.ran.Load())
}

// A directory of temporary files that is full has the last turn not kept, and says why. A workspace that does not
// fit has the task wait for space, or for another program, and then continue.
func TestAMoveOnAFullDisk(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	repo, q, kept := repository(t), memory(), files(t)
	one, two := mover{stays: true}, mover{}
	one.start(t, "one", repo, q, kept)
	<-one.second
	at := filepath.Join(one.out, "workspaces", "t0", "1")
	require.NoError(t, os.WriteFile(filepath.Join(at, "big"), bytes.Repeat([]byte("x"), 3<<20), 0o600))
	one.Cancel()
	<-one.Done()
	problems := make(chan string, 1000)
	two.start(t, "two", repo, q, kept, func(j *fleet.Job) {
		var once sync.Once
		j.Before = func(context.Context, *fleet.Task) (fleet.Decision, error) {
			once.Do(func() { smallDisk(t, filepath.Join(j.Out, "workspaces"), 1024) })
			return fleet.Decision{}, nil
		}
		j.OnEvent = func(e fleet.Event) {
			if strings.Contains(e.Detail, syscall.ENOSPC.Error()) {
				problems <- e.Detail
			}
		}
	})
	assert.Contains(t, <-problems, "continue what worker one has kept")
	assert.NoDirExists(t, filepath.Join(two.out, "workspaces", "t0", "1"), "the next start makes another one")
	remount(t, filepath.Join(two.out, "workspaces"), 0, "size=64m")
	<-two.second
	r := two.result(t)
	assert.Equal(t, "done after first is done", r.Text)
	assert.Zero(t, two.ran.Load())
	assert.Len(t, read(t, r.Workspace, "big"), 3<<20)
	two.Kill()
	<-two.Done()
	assert.Equal(t, filepath.Base(r.Workspace)+"\n", output(t, two.out, "ls workspaces/t0"))
	assert.Len(t, lines(output(t, filepath.Join(filepath.Dir(two.out), "repo"), "git worktree list")), 2)
}

// stuckFiles are files of which a program reads what is kept for a move only until its workspace is made.
type stuckFiles struct {
	queue.Files
	at    string // the workspace
	waits chan struct{}
}

type stuckReader struct {
	io.ReadCloser
	stuckFiles
	ctx context.Context
}

func (f stuckFiles) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	r, err := f.Files.Get(ctx, name)
	return stuckReader{r, f, ctx}, err
}

func (r stuckReader) Read(b []byte) (int, error) {
	if _, err := os.Stat(r.at); err == nil {
		close(r.waits)
		<-r.ctx.Done()
		return 0, r.ctx.Err()
	}
	return r.ReadCloser.Read(b[:min(len(b), 512)])
}

// A program that is ended while it fills a workspace leaves nothing of it.
func TestAMoveThatIsInterrupted(t *testing.T) {
	t.Parallel()
	repo, q, kept := repository(t), memory(), files(t)
	one, two := mover{stays: true}, mover{out: filepath.Join(t.TempDir(), "out")}
	one.start(t, "one", repo, q, kept)
	<-one.second
	one.Cancel()
	<-one.Done()
	stuck := stuckFiles{kept, filepath.Join(two.out, "workspaces", "t0", "1"), make(chan struct{})}
	two.start(t, "two", repo, q, stuck)
	<-stuck.waits
	two.Cancel()
	<-two.Done()
	assert.Empty(t, output(t, two.out, "ls workspaces/t0"))
}
