package fleet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/sdk"
)

// checkOut finds out whether a job may use its directory. A new job begins in one that does not
// exist or is empty, but for what a job leaves that dies before its first record: a project may
// come with a directory of that name. prepared: the job's runtime may have written its state.
func (j *Job) checkOut(prepared bool) error {
	if j.Out == "" || j.FS != nil {
		return nil
	}
	all, err := os.ReadDir(j.Out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &sdk.ConfigError{Option: "Out", Problem: err.Error(), Fix: "give another directory"}
	}
	refuse := func(problem, name string) error {
		return &sdk.ConfigError{Option: "Out", Problem: fmt.Sprintf(problem, j.Out, name), Fix: "give another directory, or remove it"}
	}
	for _, e := range all {
		if slices.Contains([]string{transcriptsDir, attemptsDir, workspacesDir, gitDir, stateName, "control"}, e.Name()) && !e.IsDir() {
			return refuse("%s has %s, which is not a directory, perhaps a link", e.Name())
		}
	}
	journaled := slices.ContainsFunc(all, func(e fs.DirEntry) bool { return e.Name() == journal.Name })
	if j.Resume || journaled { // whether there must be a journal is checked when it is opened
		return nil
	}
	for _, e := range all {
		if !j.leftover(e, prepared) {
			return refuse("%s is not empty, and has no journal of a job: it has %s", e.Name())
		}
	}
	return nil
}

// leftover reports whether something may be there when a new job begins.
func (j *Job) leftover(e fs.DirEntry, prepared bool) bool {
	switch e.Name() {
	case journal.LockName, journal.NewName:
		return e.Type().IsRegular()
	case stateName:
		if prepared {
			return true
		}
	case transcriptsDir, attemptsDir:
	default:
		return false
	}
	inside, err := os.ReadDir(filepath.Join(j.Out, e.Name()))
	return err == nil && len(inside) == 0
}
