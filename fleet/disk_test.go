package fleet_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/journal/journaltest"
)

// failing makes the nth operation of that kind on the journal fail. The file keeps the name
// under which it was made.
func failing(kind journaltest.Kind, nth int, with error) func(journaltest.Op) error {
	n := 0
	return func(op journaltest.Op) error {
		if op.Kind == kind && strings.HasPrefix(op.Name, "journal.") {
			if n++; n == nth {
				return with
			}
		}
		return nil
	}
}

// A disk that fails to write or sync the journal stops the job, and what it has after a loss
// of power is enough to go on. The first and the second operation are those of the start.
func TestADiskThatFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind journaltest.Kind
		with error
	}{{journaltest.Sync, syscall.EIO}, {journaltest.Write, syscall.EROFS}} {
		for nth := 1; nth <= 10; nth++ {
			t.Run(fmt.Sprintf("%s %d", c.kind, nth), func(t *testing.T) {
				t.Parallel()
				disk := &journaltest.Disk{Fail: failing(c.kind, nth, c.with)}
				var started atomic.Int64
				job := fast(fleet.Job{Tasks: tasks(6), Options: backend(), Concurrency: 2, Out: t.TempDir(), FS: disk})
				job.OnEvent = func(e fleet.Event) {
					if e.Kind == fleet.EventStarted {
						started.Add(1)
					}
				}
				first, err := collect(t, job)
				require.ErrorIs(t, err, c.with)
				if nth > 1 { // the first one makes the journal
					var failed *journal.FailedError
					require.ErrorAs(t, err, &failed)
					assert.Equal(t, string(c.kind), failed.Op)
					job.Resume = true
				}
				var stopped *fleet.StoppedError
				if nth <= 3 {
					assert.Zero(t, started.Load(), "nothing starts before its record is durable")
				} else {
					require.ErrorAs(t, err, &stopped)
					assert.Equal(t, fleet.StopJournal, stopped.Reason)
					assert.Equal(t, len(job.Tasks)-len(first), stopped.Left)
				}
				started.Store(0)
				after := disk.Crash(disk.Ops(), func(int) int { return 0 })
				job.FS = after
				all, err := collect(t, job)
				require.NoError(t, err)
				require.Len(t, all, len(job.Tasks))
				for id, r := range all {
					assert.Equal(t, fleet.Accepted, r.Status, "%s: %s", id, r.Error)
					if _, over := first[id]; over {
						assert.True(t, r.Earlier, "%s has run again", id)
					}
				}
				_, records, err := journal.Read(after)
				require.NoError(t, err)
				results := 0
				for _, rec := range records {
					if rec.Kind == "result" {
						results++
					}
				}
				assert.Equal(t, len(job.Tasks), results)
			})
		}
	}
}

// So does one that fails to write or sync a transcript: no result names one that has not all
// lines. The first task has more than five of them.
func TestATranscriptThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind journaltest.Kind
		nth  int
	}{{journaltest.Write, 1}, {journaltest.Write, 2}, {journaltest.Write, 3}, {journaltest.Write, 4}, {journaltest.Write, 5}, {journaltest.Sync, 1}, {journaltest.Sync, 2}} {
		t.Run(fmt.Sprint(c.kind, c.nth), func(t *testing.T) {
			t.Parallel()
			n := 0
			disk := &journaltest.Disk{Fail: func(op journaltest.Op) error {
				if op.Kind == c.kind && strings.HasPrefix(op.Name, "transcripts/") {
					if n++; n == c.nth {
						return syscall.EIO
					}
				}
				return nil
			}}
			job := fast(fleet.Job{Tasks: tasks(4), Options: backend(), Concurrency: 1, Out: t.TempDir(), FS: disk})
			first, err := collect(t, job)
			require.ErrorIs(t, err, syscall.EIO)
			require.ErrorContains(t, err, "transcripts/t")
			var stopped *fleet.StoppedError
			require.ErrorAs(t, err, &stopped)
			assert.Equal(t, fleet.StopJournal, stopped.Reason)
			assert.Equal(t, 4-len(first), stopped.Left)
			if c.kind == journaltest.Write || c.nth == 1 {
				assert.Empty(t, first, "the result would name it")
			}
			job.FS, job.Resume = disk.Crash(disk.Ops(), func(int) int { return 0 }), true
			all, err := collect(t, job)
			require.NoError(t, err)
			require.Len(t, all, 4)
			for id, r := range all {
				assert.Equal(t, fleet.Accepted, r.Status, "%s: %s", id, r.Error)
			}
		})
	}
}
