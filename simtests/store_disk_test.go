package simtests_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet/journal/journaltest"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/simtests"
	"github.com/agent-troupe/troupe/transcript/store"
)

// cellar is a store in a directory whose disk fails. It notes what the store has said to have.
type cellar struct {
	*store.Dir
	key   session.StoreKey
	taken []json.RawMessage
	fails int
}

// Append implements [session.Store]. The paths in its errors would make histories differ.
func (c *cellar) Append(ctx context.Context, key session.StoreKey, entries []json.RawMessage) error {
	err := c.Dir.Append(ctx, key, entries)
	if err != nil && ctx.Err() == nil {
		c.fails++
		return errors.New("the disk failed")
	}
	if err == nil && key.Subpath == "" {
		c.key, c.taken = key, append(c.taken, entries...)
	}
	return err
}

// weather draws when a disk fails: now and then it is full or cannot be read or synced, and from one operation on it is
// without power.
func weather(w *simtests.World, disk *journaltest.Disk) (power *bool) {
	power = new(bool)
	failures := []int{0, 4, 12}[w.Rand().IntN(3)]
	off, ops := w.Rand().IntN(80), 0
	disk.Fail = func(op journaltest.Op) error {
		switch ops++; {
		case ops > off:
			*power = true
			return syscall.EIO
		case failures == 0 || w.Rand().IntN(failures) > 0:
			return nil
		case op.Kind == journaltest.Sync || op.Kind == journaltest.SyncDir:
			return syscall.EIO
		}
		return syscall.ENOSPC
	}
	return power
}

// aStoredSession is a session whose store is on a disk that fails and then loses its power. What the store has
// acknowledged is there afterwards, each entry once, and the store takes more.
func aStoredSession(w *simtests.World) {
	dir := func() string {
		name, err := os.MkdirTemp("", "troupe-store-")
		require.NoError(w, err)
		return name
	}
	root := dir()
	defer func() { _ = os.RemoveAll(root) }()
	disk := &journaltest.Disk{}
	files, err := disk.Files(root)
	require.NoError(w, err)
	at := &cellar{Dir: store.NewDir(root)}
	at.Files = files
	power := weather(w, disk)
	gaveUp := false
	o := &sdk.Options{
		Cwd: "/work", MaxRestarts: 3, CanUseTool: allowAll, SessionStore: at, SessionStoreOptions: session.StoreOptions{Attempts: 6},
		OnEvent: func(r session.EventRecord) {
			if _, failed := r.Event.(*session.MirrorFailed); failed {
				gaveUp = true
			}
		},
	}
	if w.Rand().IntN(2) == 0 {
		o.SessionStoreOptions.Flush = session.StoreEager
	}
	w.Faults(simtests.KillActor(0.01), simtests.AgentCrash(0.01), simtests.TranscriptUnsynced(0.5, time.Second))
	c, err := w.Dial(o, &scripted.Script{Turns: reachScript().Turns[:1], Default: scripted.Steps{scripted.Text("more")}})
	if err != nil {
		return
	}
	w.Go(func() {
		for _, text := range []string{"pay", "hello", "more"} {
			turn, err := c.Send(w.Context(), sdk.UserText(text))
			if err != nil {
				break
			}
			_, _ = turn.Result(w.Context()) // without it the session is over
		}
		_ = c.Close(w.Context())
	})
	w.Run()

	left := disk.Crash(disk.Ops(), func(int) int { return w.Rand().IntN(3) })
	after := dir()
	defer func() { _ = os.RemoveAll(after) }()
	require.NoError(w, left.WriteTo(after))
	if len(at.taken) == 0 {
		return // nothing was acknowledged
	}
	found := store.NewDir(after)
	holds(w, found, at)
	more := json.RawMessage(`{"type":"user","uuid":"of-the-next-host"}`)
	require.NoError(w, found.Append(context.Background(), at.key, []json.RawMessage{more}))
	at.taken = append(at.taken, more)
	holds(w, store.NewDir(after), at)
	for name, reached := range map[string]bool{
		"the disk failed, and what followed was stored": at.fails > 0 && !gaveUp && !*power, "the power went": *power, "the session was told that entries are missing": gaveUp,
	} { //troupe:maporder each by itself
		w.Sometimes(name, reached)
	}
}

// holds is the oracle: what the store has said to have is in it, each entry once.
func holds(w *simtests.World, all *store.Dir, at *cellar) {
	there := map[string]int{}
	for e, err := range all.Load(context.Background(), at.key) {
		require.NoError(w, err)
		name, _ := store.EntryName(e)
		there[name]++
	}
	for _, e := range at.taken {
		name, ok := store.EntryName(e)
		if !ok {
			continue
		}
		if n := there[name]; n != 1 {
			w.Errorf("acknowledged: %s was stored, and is there %d times after a loss of power", name, n)
			w.FailNow()
		}
	}
}

func TestStoredOnADiskThatFails(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(150)}, aStoredSession)
}

// TestPlantedBugsOfStores is for tools/simmutate.
func TestPlantedBugsOfStores(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(20), Twice: -1, Shrink: -1, DoNotKeep: true}, aStoredSession)
}
