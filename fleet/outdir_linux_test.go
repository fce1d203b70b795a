package fleet_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
)

// A new job begins in a directory that is empty, but for what a job leaves that died before
// its first record. No name in it leads elsewhere.
func TestTheDirectoryOfANewJob(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, err string }{
		"nothing":               {"rmdir .", ""},
		"empty":                 {"true", ""},
		"a job that died":       {"mkdir transcripts attempts state; touch journal.lock journal.new", ""},
		"a file":                {"touch notes.txt", "it has notes.txt"},
		"a report":              {"ln -s ../victim report.html.part", "it has report.html.part"},
		"an earlier transcript": {"mkdir transcripts; touch transcripts/a", "it has transcripts"},
		"workspaces":            {"mkdir workspaces", "it has workspaces"},
		"a lock":                {"ln -s ../victim journal.lock", "it has journal.lock"},
		"a pipe":                {"mkfifo journal.new", "it has journal.new"},
		"transcripts":           {"ln -s .. transcripts", "has transcripts, which is not a directory"},
		"git":                   {"ln -s .. git", "has git, which is not a directory"},
		"the state":             {"ln -s .. state", "has state, which is not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			out, victim := filepath.Join(home, "out"), filepath.Join(home, "victim")
			require.NoError(t, os.Mkdir(out, 0o700))
			require.NoError(t, os.WriteFile(victim, []byte("precious\n"), 0o600))
			shell(t, out, "rmdir ../out 2>/dev/null || true; mkdir -p ../out; cd ../out; "+c.before+" || true")
			job := fleet.Job{Tasks: tasks(1), Options: backend(), Out: out}
			checked := job.Validate()
			_, err := collect(t, job)
			if c.err == "" {
				assert.NoError(t, checked)
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, checked, c.err)
			require.ErrorContains(t, err, c.err)
			assert.Equal(t, "precious\n", read(t, home, "victim"))
			left, err := os.ReadDir(home)
			require.NoError(t, err)
			assert.Len(t, left, 2, "nothing was written elsewhere")
		})
	}
}

// Neither does a job that goes on write through a link.
func TestAResumeWithLinks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, err string }{
		"the lock":           {"rm journal.lock; ln -s ../victim journal.lock", "journal.lock: it is not a regular file"},
		"the journal":        {"mv journal.jsonl ..; ln -s ../journal.jsonl .", "journal.jsonl: it is not a regular file"},
		"a pipe":             {"rm journal.jsonl; mkfifo journal.jsonl", "journal.jsonl: it is not a regular file"},
		"transcripts":        {"mv transcripts ..; ln -s ../transcripts .", "has transcripts, which is not a directory"},
		"a part":             {"ln -s ../victim report.html.part; ln -s ../victim results.jsonl.part", ""},
		"a new transcript":   {"for n in 0 1; do test -e transcripts/t$n.1.jsonl || ln -s ../victim transcripts/t$n.1.jsonl; done", ""},
		"the place of diffs": {"for n in 0 1; do ln -s .. attempts/t$n; done", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			out := filepath.Join(home, "out")
			require.NoError(t, os.WriteFile(filepath.Join(home, "victim"), []byte("precious\n"), 0o600))
			job := fleet.Job{Tasks: tasks(2), Options: backend(), Out: out, Sample: 1}
			_, err := collect(t, job)
			require.ErrorContains(t, err, "sample")
			shell(t, out, c.before)
			job.Sample, job.Resume = 0, true
			_, err = collect(t, job)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
			} else {
				require.NoError(t, err)
			}
			assert.Equal(t, "precious\n", read(t, home, "victim"))
			assert.NoDirExists(t, filepath.Join(home, "1"))
		})
	}
}
