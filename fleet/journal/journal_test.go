package journal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/journal/journaltest"
	"github.com/agent-troupe/troupe/runtime"
)

func config(t testing.TB, d journal.FS) journal.Config {
	t.Helper()
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	return journal.Config{FS: d, Clock: rt.Clock(), Executor: rt.Executor()}
}

func place(t *testing.T, d journal.FS) journaltest.Place {
	c := config(t, d)
	return journaltest.Place{
		Create: func(h journal.Header) (journal.Journal, error) { return journal.Create(c, h) },
		Open:   func() (journal.Journal, error) { return journal.Open(c, journal.Header{}) },
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	t.Run("directory", func(t *testing.T) {
		t.Parallel()
		journaltest.Run(t, func(t *testing.T) journaltest.Place {
			return place(t, journal.Dir(filepath.Join(t.TempDir(), "deep", "job")))
		})
	})
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		journaltest.Run(t, func(t *testing.T) journaltest.Place { return place(t, &journaltest.Disk{}) })
	})
}

func result(n int) journal.Record {
	return journal.Record{Kind: "result", Task: fmt.Sprint("task", n), Data: json.RawMessage(`"` + strings.Repeat("x", 40) + `"`)}
}

// written makes a journal of some batches and returns how many records were
// acknowledged after each operation of the disk.
func written(t *testing.T, d *journaltest.Disk, batches ...int) (created int, acked map[int]int) {
	t.Helper()
	l, err := journal.Create(config(t, d), journal.Header{Job: "j"})
	require.NoError(t, err)
	created, acked = d.Ops(), map[int]int{}
	n := 0
	for _, size := range batches {
		var all []journal.Record
		for range size {
			n++
			all = append(all, result(n))
		}
		require.NoError(t, l.Append(t.Context(), all...))
		acked[d.Ops()] = n
	}
	require.NoError(t, l.Close())
	return created, acked
}

// Whatever a crash loses of what was not synced: the journal opens, has all that was
// acknowledged, and nothing but a beginning of what was written. The same while the journal
// is compacted: it is the old one or the new one, whole.
func TestEveryCrashLeavesALegalJournal(t *testing.T) {
	t.Parallel()
	d := &journaltest.Disk{}
	created, acked := written(t, d, 1, 3, 2, 1)
	c, compacting, dropped := config(t, d), d.Ops(), 4
	c.CompactAbove, c.Compact = 1, func(all []journal.Record) []journal.Record { return all[dropped:] }
	l, err := journal.Open(c, journal.Header{})
	require.NoError(t, err)
	compacted := d.Ops()
	for n := 8; n <= 9; n++ {
		require.NoError(t, l.Append(t.Context(), result(n)))
		acked[d.Ops()] = n
	}
	require.NoError(t, l.Close())
	least, states, old, renewed := 0, 0, 0, 0
	for n := 0; n <= d.Ops(); n++ {
		if a, ok := acked[n]; ok {
			least = a
		}
		loose := d.Loose(n)
		combinations := 1
		for range loose {
			combinations *= 3
		}
		for c := range combinations {
			states++
			after := d.Crash(n, func(i int) int {
				how := c
				for range i {
					how /= 3
				}
				return how % 3
			})
			when := fmt.Sprintf("after operation %d, loss %d", n, c)
			switch gone := goesOnAfter(t, after, n >= created, least, when); {
			case gone == dropped && n > compacting:
				renewed++
			default:
				require.Zero(t, gone, when)
				require.Less(t, n, compacted, when)
				if n > compacting {
					old++
				}
			}
		}
	}
	assert.Greater(t, states, 50)
	assert.Positive(t, old, "crashes that left the journal as it was before the compaction")
	assert.Positive(t, renewed)
}

// goesOnAfter returns how many records are gone from the beginning.
func goesOnAfter(t *testing.T, d *journaltest.Disk, mustExist bool, least int, when string) (gone int) {
	t.Helper()
	l, err := journal.Open(config(t, d), journal.Header{})
	if !mustExist && errors.Is(err, journal.ErrMissing) {
		return 0
	}
	require.NoError(t, err, when)
	got := l.Records()
	if len(got) > 0 {
		_, err := fmt.Sscanf(got[0].Task, "task%d", &gone)
		require.NoError(t, err, when)
		gone--
	}
	require.GreaterOrEqual(t, gone+len(got), least, when)
	for i, r := range got {
		require.Equal(t, fmt.Sprint("task", gone+i+1), r.Task, when)
	}
	require.NoError(t, l.Append(t.Context(), result(gone+len(got)+1)), when)
	require.NoError(t, l.Close())
	l, err = journal.Open(config(t, d), journal.Header{})
	require.NoError(t, err, when)
	require.Len(t, l.Records(), len(got)+1, when)
	require.NoError(t, l.Close())
	return gone
}

// Blocks of one write reach the disk in any order, so a hole may have whole lines after
// it. These were never acknowledged.
func TestAHoleInTheLastBatchIsCut(t *testing.T) {
	t.Parallel()
	path, lines := onDisk(t, 1, 5)
	hole := bytes.Repeat([]byte{0}, len(lines[4]))
	text := bytes.Join(append(append(lines[:4:4], hole), lines[5:]...), []byte("\n"))
	require.NoError(t, os.WriteFile(path, text, 0o600))
	l, err := journal.Open(config(t, journal.Dir(filepath.Dir(path))), journal.Header{})
	require.NoError(t, err)
	assert.Len(t, l.Records(), 3)
	require.NoError(t, l.Close())
}

// onDisk returns the lines of a journal in a file.
func onDisk(t *testing.T, batches ...int) (path string, lines [][]byte) {
	t.Helper()
	dir := t.TempDir()
	l, err := journal.Create(config(t, journal.Dir(dir)), journal.Header{Job: "j"})
	require.NoError(t, err)
	n := 0
	for _, size := range batches {
		var all []journal.Record
		for range size {
			n++
			all = append(all, result(n))
		}
		require.NoError(t, l.Append(t.Context(), all...))
	}
	require.NoError(t, l.Close())
	path = filepath.Join(dir, journal.Name)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return path, bytes.Split(text, []byte("\n"))
}

func TestDamage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage func(lines [][]byte) [][]byte
		line   int // of the error; 0: none
		left   int // records
	}{
		"a torn last line":       {func(l [][]byte) [][]byte { l[6] = l[6][:10]; return l[:7] }, 0, 5},
		"a last line of rubbish": {func(l [][]byte) [][]byte { l[6] = []byte("rubbish"); return l }, 0, 5},
		"no last newline":        {func(l [][]byte) [][]byte { return l[:7] }, 0, 5},
		"a byte in the middle":   {func(l [][]byte) [][]byte { l[3][20] ^= 1; return l }, 4, 0},
		"a line that is gone":    {func(l [][]byte) [][]byte { return append(l[:3:3], l[4:]...) }, 4, 0},
		"a line twice":           {func(l [][]byte) [][]byte { return append(l[:4:4], l[3:]...) }, 5, 0},
		"another header":         {func(l [][]byte) [][]byte { l[0] = []byte("{}"); return l }, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, lines := onDisk(t, 1, 1, 1, 1, 1, 1)
			before := bytes.Join(c.damage(lines), []byte("\n"))
			require.NoError(t, os.WriteFile(path, before, 0o600))
			l, err := journal.Open(config(t, journal.Dir(filepath.Dir(path))), journal.Header{})
			if c.line > 0 {
				var damaged *journal.CorruptError
				require.ErrorAs(t, err, &damaged)
				assert.Equal(t, c.line, damaged.Line)
				after, err := os.ReadFile(path)
				require.NoError(t, err)
				assert.Equal(t, before, after, "a damaged journal is left as it is")
				return
			}
			require.NoError(t, err)
			assert.Len(t, l.Records(), c.left)
			require.NoError(t, l.Append(t.Context(), result(9)))
			require.NoError(t, l.Close())
			l, err = journal.Open(config(t, journal.Dir(filepath.Dir(path))), journal.Header{})
			require.NoError(t, err)
			assert.Len(t, l.Records(), c.left+1)
			require.NoError(t, l.Close())
		})
	}
}

// After a failed sync the system may have dropped what it could not write. A second one
// that succeeds would prove nothing.
func TestAFailureIsFinal(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]journaltest.Kind{"write": journaltest.Write, "sync": journaltest.Sync} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, broken := &journaltest.Disk{}, false
			l, err := journal.Create(config(t, d), journal.Header{Job: "j"})
			require.NoError(t, err)
			require.NoError(t, l.Append(t.Context(), result(1)))
			d.Fail = func(op journaltest.Op) error {
				if op.Kind == kind && !broken {
					broken = true
					return syscall.ENOSPC
				}
				return nil
			}
			var failed *journal.FailedError
			require.ErrorAs(t, l.Append(t.Context(), result(2)), &failed)
			assert.Equal(t, name, failed.Op)
			require.ErrorIs(t, failed, syscall.ENOSPC)
			ops := d.Ops()
			require.ErrorIs(t, l.Append(t.Context(), result(3)), failed)
			assert.Equal(t, ops, d.Ops(), "nothing is written any more")
			require.NoError(t, l.Close())
			d.Fail = nil
			l, err = journal.Open(config(t, d), journal.Header{})
			require.NoError(t, err)
			assert.NotEmpty(t, l.Records())
			require.NoError(t, l.Close())
		})
	}
}

func TestNoDirectory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := journal.Create(config(t, journal.Dir(filepath.Join(file, "job"))), journal.Header{})
	require.ErrorIs(t, err, syscall.ENOTDIR)
	d := journal.Dir(t.TempDir())
	_, err = d.Create("../outside")
	require.Error(t, err)
	require.Error(t, d.SyncDir("../outside"))
	require.ErrorIs(t, d.SyncDir("missing"), fs.ErrNotExist)
	require.NoError(t, d.SyncDir("."))
}

func TestCompaction(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := config(t, journal.Dir(dir))
	l, err := journal.Create(c, journal.Header{Job: "j"})
	require.NoError(t, err)
	for n := range 10 {
		require.NoError(t, l.Append(t.Context(), result(n)))
	}
	require.NoError(t, l.Close())
	c.Compact = func([]journal.Record) []journal.Record { return nil }
	l, err = journal.Open(c, journal.Header{})
	require.NoError(t, err)
	require.Len(t, l.Records(), 10, "a journal below the default of CompactAbove stays as it is")
	require.NoError(t, l.Close())
	c.CompactAbove = 100
	c.Compact = func(all []journal.Record) []journal.Record { return all[7:] }
	for range 2 {
		l, err = journal.Open(c, journal.Header{})
		require.NoError(t, err)
		require.Len(t, l.Records(), 3)
		assert.Equal(t, "task7", l.Records()[0].Task)
		assert.Equal(t, "j", l.Header().Job)
		require.NoError(t, l.Append(t.Context(), result(10)))
		require.NoError(t, l.Close())
		c.Compact = func(all []journal.Record) []journal.Record {
			assert.Len(t, all, 4)
			return all[:3]
		}
	}
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	d := journal.Dir(t.TempDir())
	require.NoError(t, d.Mkdir("a/b"))
	require.NoError(t, journal.WriteFile(d, "a/b/c.txt", func(w io.Writer) error {
		_, err := w.Write([]byte("hello"))
		return err
	}))
	_, err := d.Read("a/b/c.txt.part")
	require.ErrorIs(t, err, fs.ErrNotExist)
	r, err := d.Read("a/b/c.txt")
	require.NoError(t, err)
	require.NoError(t, r.Close())
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, journal.Name), text, 0o600))
		l, err := journal.Open(config(t, journal.Dir(dir)), journal.Header{})
		if err == nil {
			require.NoError(t, l.Close())
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			l, err := journal.Create(config(b, journal.Dir(b.TempDir())), journal.Header{})
			require.NoError(b, err)
			r := result(1)
			r.Data = json.RawMessage(`"` + strings.Repeat("x", 1000) + `"`)
			b.SetParallelism(writers)
			b.ResetTimer()
			if writers == 1 {
				for b.Loop() {
					_ = l.Append(b.Context(), r)
				}
			} else {
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						_ = l.Append(b.Context(), r)
					}
				})
			}
			require.NoError(b, l.Close())
		})
	}
}
