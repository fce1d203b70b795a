package journal_test

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/journal/journaltest"
	"github.com/agent-troupe/troupe/runtime"
)

// TestKeeper: a file is durable, and then each name that leads to it, from the file up.
func TestKeeper(t *testing.T) {
	t.Parallel()
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	broken := errors.New("broken")
	keep := func(k *journal.Keeper, d *journaltest.Disk) error {
		f, err := d.Create("all/a/1/transcript")
		require.NoError(t, err)
		return k.Keep(f, "all/a/1/transcript", "all")
	}
	write := func(name string) func(*journal.Keeper, *journaltest.Disk) error {
		return func(k *journal.Keeper, _ *journaltest.Disk) error {
			return k.WriteFile(name, "all", func(w io.Writer) error { _, err := io.WriteString(w, "text"); return err })
		}
	}
	for name, c := range map[string]struct {
		run  func(*journal.Keeper, *journaltest.Disk) error
		fail string
		want string
	}{
		"keep":                 {run: keep, want: "create all/a/1/transcript, sync all/a/1/transcript, syncdir all/a/1, syncdir all/a, syncdir all"},
		"keep fails":           {run: keep, fail: "sync all/a/1/transcript", want: "create all/a/1/transcript, sync all/a/1/transcript"},
		"a name fails":         {run: keep, fail: "syncdir all/a", want: "create all/a/1/transcript, sync all/a/1/transcript, syncdir all/a/1, syncdir all/a"},
		"write":                {run: write("all/a/x"), want: "create all/a/x.part, write all/a/x.part, sync all/a/x.part, rename all/a/x.part, syncdir all/a, syncdir all"},
		"write into top":       {run: write("all/x"), want: "create all/x.part, write all/x.part, sync all/x.part, rename all/x.part, syncdir all"},
		"write fails":          {run: write("all/a/x"), fail: "rename all/a/x.part", want: "create all/a/x.part, write all/a/x.part, sync all/a/x.part, rename all/a/x.part, remove all/a/x.part"},
		"a name above a write": {run: write("all/a/x"), fail: "syncdir all", want: "create all/a/x.part, write all/a/x.part, sync all/a/x.part, rename all/a/x.part, syncdir all/a, syncdir all"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var done []string
			d := &journaltest.Disk{Fail: func(op journaltest.Op) error {
				done = append(done, string(op.Kind)+" "+op.Name)
				if c.fail != "" && done[len(done)-1] == c.fail {
					return broken
				}
				return nil
			}}
			err := c.run(journal.NewKeeper(d, rt.Executor()), d)
			assert.Equal(t, c.fail != "", errors.Is(err, broken), "%v", err)
			assert.Equal(t, c.want, strings.Join(done, ", "))
		})
	}
}

// TestKeeperTakesTurns: a few files at a time, whatever comes at once, and one that fails
// leaves its place, too.
func TestKeeperTakesTurns(t *testing.T) {
	t.Parallel()
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	const files, atOnce = 40, 8
	k := journal.NewKeeper(&journaltest.Disk{}, rt.Executor())
	var all sync.WaitGroup
	entered, leave := make(chan int), make(chan struct{})
	for n := range files {
		all.Go(func() {
			err := k.Keep(&heldFile{entered, leave, n}, "a", ".")
			assert.Equal(t, n%2 == 1, err != nil)
		})
	}
	for range atOnce {
		<-entered
	}
	for range files - atOnce {
		select {
		case <-entered:
			t.Fatal("more at once")
		case leave <- struct{}{}:
		}
		<-entered
	}
	for range atOnce {
		leave <- struct{}{}
	}
	all.Wait()
}

// heldFile says that it is synced, and waits. Every other one fails.
type heldFile struct {
	entered chan<- int
	leave   <-chan struct{}
	number  int
}

func (*heldFile) Write(p []byte) (int, error) { return len(p), nil }
func (*heldFile) Close() error                { return nil }

func (f *heldFile) Sync() error {
	f.entered <- f.number
	<-f.leave
	if f.number%2 == 1 {
		return errors.New("broken")
	}
	return nil
}
