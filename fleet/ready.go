package fleet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript"
)

// ready finds, before anything starts, what would fail in each task alike.
func (j *Job) ready() error {
	var wrong []error
	if !filepath.IsAbs(j.Options.Cwd) {
		if _, err := os.Getwd(); err != nil {
			wrong = append(wrong, &sdk.ConfigError{
				Option: "Options.Cwd", Problem: fmt.Sprintf("is relative to the working directory, which cannot be used: %v", err),
				Fix: "change to a directory that exists, or give an absolute path",
			})
		}
	}
	if dir := sharedConfig(j.Options); dir != "" {
		if err := writableDir(dir); err != nil {
			wrong = append(wrong, &sdk.ConfigError{
				Option: "Options.Env", Problem: fmt.Sprintf("leads to %s, where the agents keep their sessions, and it cannot be written: %v", dir, err),
				Fix: "make it writable, or set HOME, CLAUDE_CONFIG_DIR or QODER_CONFIG_DIR to another directory",
			})
		}
	}
	return errors.Join(wrong...)
}

// sharedConfig is the user's directory in which the agents of a job store their sessions; "": it
// is not known, or they do not.
func sharedConfig(o *sdk.Options) string {
	var vendor transcript.Vendor
	switch name := backendName(o); {
	case inMemory(o), o.Spawner != nil, o.Isolation == session.IsolationPrivate, !o.PersistSession.Or(true):
		return ""
	case name == claude.Name:
		vendor = transcript.Claude
	case name == qoder.Name && o.ExperimentalCloudAgent == nil:
		vendor = transcript.Qoder
	default:
		return ""
	}
	getenv := variables(o)
	for _, key := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"} {
		if vendor == transcript.Claude && o.Isolation != session.IsolationShared && getenv(key) != "" && o.Env["CLAUDE_CONFIG_DIR"] == "" {
			return "" // each session has a separate directory
		}
	}
	root, _ := transcript.Root(vendor, getenv)
	return root
}

// variables returns what the environment of an agent has.
func variables(o *sdk.Options) func(string) string {
	return func(name string) string {
		if value, ok := o.Env[name]; ok || o.CleanEnv {
			return value
		}
		return os.Getenv(name)
	}
}

// writableDir reports why no file can be made in a directory or, if it does not exist, in the
// nearest one above it.
func writableDir(dir string) error {
	for {
		st, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
			dir = filepath.Dir(dir)
			continue
		}
		if err == nil && !st.IsDir() {
			err = fmt.Errorf("%s is not a directory", dir)
		}
		if err != nil {
			return err
		}
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf(".troupe-%d", os.Getpid())), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) { // another job of this process looks, too
			return nil
		}
		if err != nil {
			return err
		}
		return errors.Join(f.Close(), os.Remove(f.Name()))
	}
}

// Descriptors that a job and each of its tasks need (measured on Linux: 14 and 6, and more for
// the moment of a start).
const (
	jobFiles  = 30
	taskFiles = 6
)

// tight warns of a limit of open files that is too low for what the job runs at the same time.
func (j *Job) tight(limit uint64) string {
	tasks, most := j.Concurrency, ""
	if j.Pace != nil {
		tasks, most = j.Pace.bounds().WithDefaults().Ceiling, "up to "
	}
	if len(j.Tasks) > 0 { // a stream has no list
		tasks = min(tasks, len(j.Tasks))
	}
	need := uint64(jobFiles + taskFiles*max(tasks, 0))
	if limit == 0 || limit >= need || inMemory(j.Options) {
		return ""
	}
	fit := max(0, int64(limit)-jobFiles) / taskFiles
	return fmt.Sprintf("the limit of open files is %d, and %s%d tasks at a time need about %d: raise it (ulimit -n %d), or run at most %d at a time",
		limit, most, tasks, need, need, max(fit, 1))
}
