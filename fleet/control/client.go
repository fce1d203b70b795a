package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/inspect"
)

// ErrNotRunning says that no process that could be asked runs the job.
var ErrNotRunning = errors.New("no process runs the job, or it does not listen; troupe batch --resume goes on with it")

// maxSocket is the longest path that a socket may have on every system.
const maxSocket = 103

// SocketOf returns the path of the socket of the job in a directory: control/ctl.sock in
// it or, where that is longer than the path of a socket may be, one in
// [inspect.DefaultDir] whose name is made of the directory's.
func SocketOf(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if target, err := filepath.EvalSymlinks(dir); err == nil { // one job, one name
		dir = target
	}
	if path := filepath.Join(dir, "control", "ctl.sock"); len(path) <= maxSocket {
		return path, nil
	}
	home, err := inspect.DefaultDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(home, "jobs", hex.EncodeToString(sum[:8])+".sock"), nil
}

// Op is what a [Command] does.
type Op string

// Operations.
const (
	Pause   Op = "pause"
	Resume  Op = "resume"
	Retune  Op = "retune"
	Cancel  Op = "cancel"
	Requeue Op = "requeue"
	Allow   Op = "allow"
	Deny    Op = "deny"
	// OnAccept runs Job.OnAccept once more for an accepted task.
	OnAccept Op = "on-accept"
)

// Command is a decision about a job.
type Command struct {
	Op   Op
	Task string // of Cancel, Requeue and OnAccept
	N    int    // of Retune: attempts at the same time, from 1
	// Approval is the id of Allow and Deny, and Reason what the model reads of a denial.
	Approval, Reason string
}

// Send sends a command to the process that runs the job in a directory. Without such a process, Cancel,
// Requeue, OnAccept, Allow and Deny are written into the journal, where a resume finds them; offline is
// then true. Other commands fail with [ErrNotRunning]. The errors of a task match [fleet.ErrNoTask],
// [fleet.ErrTaskOver], [fleet.ErrNotAccepted], [fleet.ErrOnAcceptRuns] and [fleet.ErrJobOver], those of
// an approval [fleet.ErrNoApproval].
func Send(ctx context.Context, dir string, c Command) (offline bool, err error) {
	path := "/api/job/" + string(c.Op)
	switch c.Op {
	case Retune:
		path += "/" + strconv.Itoa(c.N)
	case Cancel, Requeue, OnAccept:
		path = "/api/task/" + url.PathEscape(c.Task) + "/" + string(c.Op)
	case Allow, Deny:
		path = "/api/approval/" + url.PathEscape(c.Approval) + "/" + string(c.Op)
		if c.Op == Deny && c.Reason != "" {
			path += "?reason=" + url.QueryEscape(c.Reason)
		}
	case Pause, Resume:
	default:
		return false, fmt.Errorf("control: there is no operation %q", c.Op)
	}
	err = ask(ctx, dir, http.MethodPost, path, nil)
	if !errors.Is(err, inspect.ErrDead) {
		return false, err
	}
	var a fleet.Amendment
	switch c.Op {
	case Cancel:
		a.Cancel = []string{c.Task}
	case Requeue:
		a.Requeue = []string{c.Task}
	case OnAccept:
		a.OnAccept = []string{c.Task}
	case Allow, Deny:
		a.Answers = []fleet.Answer{{ID: c.Approval, Allow: c.Op == Allow, Reason: c.Reason}}
	default:
		return false, ErrNotRunning
	}
	if err = fleet.Amend(ctx, dir, a); errors.Is(err, journal.ErrLocked) {
		return false, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	return err == nil, err
}

// Read returns the job in a directory as the process that runs it sees it or, without
// one, as its journal does.
func Read(ctx context.Context, dir string) (fleet.Snapshot, error) {
	var s fleet.Snapshot
	err := ask(ctx, dir, http.MethodGet, "/api/job", &s)
	if errors.Is(err, inspect.ErrDead) {
		return fleet.ReadJob(dir)
	}
	return s, err
}

func ask(ctx context.Context, dir, method, path string, to any) error {
	socket, err := SocketOf(dir)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(socket); errors.Is(err, fs.ErrNotExist) {
		return inspect.ErrDead // also on systems without sockets
	}
	raw, err := inspect.Request(ctx, socket, method, path)
	var refused *inspect.StatusError
	if errors.As(err, &refused) {
		for code, is := range map[int]error{
			http.StatusNotFound: fleet.ErrNoTask, http.StatusConflict: fleet.ErrTaskOver, http.StatusGone: fleet.ErrJobOver,
			http.StatusUnprocessableEntity: fleet.ErrNoApproval, http.StatusPreconditionFailed: fleet.ErrNotAccepted, http.StatusTooEarly: fleet.ErrOnAcceptRuns,
		} {
			if refused.Code == code {
				return &taskError{refused.Reason, is}
			}
		}
	}
	if err != nil || to == nil {
		return err
	}
	if err := json.Unmarshal(raw, to); err != nil {
		return fmt.Errorf("control: the answer is not that of a job: %w", err)
	}
	return nil
}

// taskError is an error of the job on the other side.
type taskError struct {
	text string
	is   error
}

func (e *taskError) Error() string { return e.text }
func (e *taskError) Unwrap() error { return e.is }
