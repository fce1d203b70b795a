//go:build linux

package jobs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
)

// The directory of a job has a name that a project can guess: tasks.out beside tasks.jsonl.
// A project that comes with such a directory must not be able to make the job write
// through links, into files of the user's.
func TestJobDirectoryWithLinks(t *testing.T) {
	for _, name := range []string{"journal.lock", "report.html.part"} {
		t.Run(name, func(t *testing.T) {
			out, home := filepath.Join(t.TempDir(), "tasks.out"), t.TempDir()
			victim := filepath.Join(home, ".bashrc")
			write(t, victim, "precious\n")
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(out, name)), 0o700))
			require.NoError(t, os.Symlink(victim, filepath.Join(out, name)))
			o := saying("x'; touch pwned #")
			for _, err := range fleet.Run(t.Context(), fleet.Job{Tasks: []fleet.Task{{ID: "t", Prompt: "x"}}, Options: o, Out: out, Attempts: 1}) {
				t.Log(err)
			}
			if got := readAll(t, victim); got != "precious\n" {
				t.Errorf("the job has written through %s into a file outside of its directory: %.120q", name, got)
			}
		})
	}
	for _, name := range []string{"transcripts", "control"} {
		t.Run("directory "+name, func(t *testing.T) {
			out, home := filepath.Join(t.TempDir(), "tasks.out"), t.TempDir()
			require.NoError(t, os.MkdirAll(out, 0o700))
			require.NoError(t, os.Symlink(home, filepath.Join(out, name)))
			from := t.TempDir()
			write(t, filepath.Join(from, "package-lock.json"), "{}")
			for _, err := range fleet.Run(t.Context(), fleet.Job{Tasks: []fleet.Task{{ID: "t", Prompt: "x"}}, Options: saying(strings.Repeat("long ", 20_000)), Out: out, Attempts: 1,
				Workspace: &fleet.Workspace{Kind: fleet.WorkspaceCopy, From: from, Setup: "true"}}) {
				t.Log(err)
			}
			left, err := os.ReadDir(home)
			require.NoError(t, err)
			if len(left) > 0 {
				t.Errorf("the job has written through the link %s into another directory: %v", name, left)
			}
		})
	}
}

// Lockfiles had a cache that read whatever the project's link led to, a pipe or a device. They
// are an error now, and nothing of the project is read.
func TestLockfileThatIsALink(t *testing.T) {
	repo, out := repository(t), t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(repo, "package-lock.json"), 0o600))
	done := make(chan error, 1)
	go func() {
		var failed error
		for _, err := range fleet.Run(t.Context(), fleet.Job{Tasks: []fleet.Task{{ID: "t", Prompt: "x", Timeout: fleet.Duration(time.Minute)}}, Options: saying("x"), Out: out, Attempts: 1,
			Workspace: &fleet.Workspace{From: repo, Setup: "true", Lockfiles: []string{"package-lock.json"}}}) {
			failed = err
		}
		done <- failed
	}()
	select {
	case err := <-done:
		require.ErrorContains(t, err, "Lockfiles: was removed")
	case <-time.After(2 * time.Minute):
		t.Error("the job hangs on a lockfile that is a pipe")
	}
}

// forge makes the journal of a job, with checksums that fit: they protect against a broken
// disk, and not against a person.
func forge(t *testing.T, dir string, records ...[3]string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	var b bytes.Buffer
	line := func(seq, synced int, kind, task, data string) {
		body, err := json.Marshal(struct {
			Seq     int             `json:"seq"`
			Synced  int             `json:"synced"`
			At      time.Time       `json:"at"`
			Kind    string          `json:"kind"`
			Task    string          `json:"task,omitempty"`
			Attempt int             `json:"attempt,omitempty"`
			Data    json.RawMessage `json:"data,omitempty"`
		}{seq, synced, time.Unix(1_700_000_000, 0).UTC(), kind, task, min(seq, 1), json.RawMessage(data)})
		require.NoError(t, err)
		sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
		fmt.Fprintf(&b, "%s,\"crc\":\"%08x\"}\n", body[:len(body)-1], sum)
	}
	line(0, -1, "header", "", `{"format":1,"job":"job\u001b]0;title\u0007","tasks":"","host":"h","pid":1}`)
	for i, r := range records {
		line(i+1, 0, r[0], r[1], r[2])
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, journal.Name), b.Bytes(), 0o600))
}

// Looking into the directory of a job that somebody else has made must not steer the
// terminal, nor show other files.
func TestCtlOfAForeignJob(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	secret := filepath.Join(filepath.Dir(dir), "secret.jsonl")
	write(t, secret, `{"type":"assistant","session_id":"s","uuid":"u","message":{"role":"assistant","content":[{"type":"text","text":"TOPSECRET"}]}}`+"\n")
	const evil = `\u001b]52;c;ZXZpbA==\u0007\u001b[2J\u009b31m\u202e`
	forge(t, dir,
		[3]string{"host", "", `{"host":"h` + evil + `","pid":1,"marker":"m"}`},
		[3]string{"admitted", "a", `{"hash":"h"}`},
		[3]string{"admitted", "b", `{"hash":"h"}`},
		[3]string{"result", "a", `{"id":"a","status":"acc` + evil + `","family":"f` + evil + `","text":"x","error":"` + evil + `","tags":["` + evil + `"],"class":"` + evil + `","transcript":"../secret.jsonl","attempts":[{"n":1,"status":"s` + evil + `"}]}`},
		[3]string{"asked", "b", `{"id":"i` + evil + `","task":"b` + evil + `","attempt":1,"tool":"T` + evil + `","input":{"command":"` + evil + `"},"at":"2026-01-01T00:00:00Z"}`},
	)
	bin := troupe(t)
	for _, args := range [][]string{
		{"ctl", dir}, {"ctl", dir, "results"}, {"ctl", "--json", dir}, {"approvals", dir}, {"approvals", "--json", dir}, {"ctl", dir, "tail", "a"}, {"ctl", dir, "tail", "b"},
		{"ctl", dir, "cancel", "a" + "\x1b[2J"},
	} {
		out, err := exec.Command(bin, args...).CombinedOutput()
		t.Logf("%v: %v %.300q", args[:1], err, out)
		if s := steers(string(out)); s != "" {
			t.Errorf("troupe %v steers the terminal: %s", strings.Join(append(args[:1:1], args[2:]...), " "), s)
		}
		if strings.Contains(string(out), "TOPSECRET") {
			t.Errorf("troupe ctl tail shows a file outside of the job's directory")
		}
	}
}
