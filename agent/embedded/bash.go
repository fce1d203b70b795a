package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

const (
	shellTimeout    = 2 * time.Minute
	shellMaxTimeout = 10 * time.Minute
)

// bash is the tool Bash, as Claude Code 2.1.329 has it (observed).
func bash(background bool) *tool {
	t := &tool{
		name:  "Bash",
		about: "Runs a command in a new bash; the result is what it prints. Its directory is kept for the next command, if it succeeds and stays in the working directories. timeout is in milliseconds: 120000 if none is given, at most 600000.",
		params: []param{
			{name: "command", kind: "string", required: true},
			{name: "timeout", kind: "number"},
			{name: "description", kind: "string", about: "What it does, in a few words."},
			{name: "dangerouslyDisableSandbox", kind: "boolean", hidden: true},
		},
		beside: func(h *hands, in agent.Object) bool { return h.readsOnly(str(in, "command")) },
		check:  func(_ *hands, in agent.Object) string { return blockedSleep(in, background) },
		act:    (*talk).shell,
	}
	if background {
		t.about += " With run_in_background it goes on while you do other things, as it does after its timeout: its output is in a file, and you are told when it has ended."
		t.params = slices.Insert(t.params, 3, param{name: "run_in_background", kind: "boolean"})
	}
	return t
}

// run is a call of Bash.
type run struct {
	t           *talk
	l           *agent.Lane
	s           *agent.Strand
	call        string // its id
	session     string // the session's id
	task        string // the id of the task that it becomes in the background
	command     string
	description string
	limit       time.Duration // in the foreground; 0: it is to run in the background
	noSandbox   any           // the input's dangerouslyDisableSandbox, nil without
	where       string        // the file that gets the directory in which the command ends
	shown       *agent.Task
	began       time.Time
	dir         string // in which it began
}

// shell runs a command. In the foreground it returns when the shell has ended and nothing of
// it is left. A command that still runs then belongs to a background task.
func (t *talk) shell(l *agent.Lane, s *agent.Strand, call string, in agent.Object) (agent.ToolResult, error) {
	r := &run{
		t: t, l: l, s: s, call: call, session: l.SessionID(), task: l.NewTaskID(), command: str(in, "command"), description: str(in, "description"),
		limit: t.hands.timeout(), noSandbox: in["dangerouslyDisableSandbox"], began: t.seams.Clock.Now(), dir: t.hands.dir(),
	}
	if r.description == "" {
		r.description = r.command
	}
	if ms, given := number(in, "timeout"); given && ms > 0 {
		r.limit = time.Duration(min(ms, float64(shellMaxTimeout/time.Millisecond)) * float64(time.Millisecond))
	}
	if background, _ := in["run_in_background"].(bool); background {
		r.limit = 0
	}
	var result agent.ToolResult
	var running atomic.Pointer[command] // what has not ended: the strand takes it, or it stays here
	err := s.DoReporting(func(ctx context.Context, report func(func())) error {
		var c *command
		if result, c = r.do(ctx, report); c != nil && !running.CompareAndSwap(nil, c) {
			_, _ = c.end()
		}
		return nil
	})
	if err != nil {
		r.shown.Hide("stopped")
		if c := running.Swap(&command{}); c != nil { // the task finds that the call has returned
			t.seams.Exec.Go(func() { _, _ = c.end() })
		}
		return agent.ToolResult{}, err // the task may still write
	}
	if c := running.Load(); c != nil {
		return r.goOn(c), nil
	}
	status := "completed"
	if result.IsError {
		status = "failed"
	}
	r.shown.Hide(status)
	return result, nil
}

// do runs the command until it has ended, or is moved to the background: then it is
// returned. It is a task.
func (r *run) do(ctx context.Context, report func(func())) (agent.ToolResult, *command) {
	h := r.t.hands
	c, err := r.start(ctx)
	if err != nil {
		return failure("%s", err), nil
	}
	if r.limit > 0 {
		stop := r.show(report)
		limited, cancel := context.WithCancelCause(ctx)
		timer := h.seams.Clock.AfterFunc(r.limit, func() { cancel(errTimedOut) })
		err = c.wait(limited)
		timer.Stop()
		cancel(nil)
		stop()
		if timedOut := errors.Is(err, errTimedOut) && ctx.Err() == nil; !timedOut || !r.t.background {
			status, reaped := c.end()
			defer func() { _ = os.Remove(r.where) }() // it may not be there
			if err == nil {
				err = reaped
			}
			return r.result(c, status, err), nil
		}
	}
	dir, err := h.keep("tasks")
	if file := filepath.Join(dir, r.task+".output"); err == nil {
		if err = h.disk.ask(diskMake, file); err == nil {
			c.before, err = c.out.spill(file)
		}
	}
	if err != nil {
		_, _ = c.end()
		return failure("The output of the command could not be kept, so it was ended: %s", err), nil
	}
	return agent.ToolResult{}, c
}

// errTimedOut says that a command has reached its timeout.
var errTimedOut = errors.New("the command has timed out")

// script runs a command so that its errors name it as bash does, everything it prints is one
// stream, and its directory is known if it succeeds. snapshot is a script to read first, or
// "".
//
// The shell's input is a pipe that ends with this program. A process beside the shell waits
// for that, and then kills the group: the kernel kills the shell alone.
func script(snapshot string) string {
	const (
		watch = "exec 3<&0 </dev/null; ((exec >/dev/null 2>&1; read -r -u 3; kill -KILL -- -$$) &); exec 3<&-; "
		run   = `exec 2>&1; shopt -s expand_aliases; eval "$1" && pwd -P >|"$2"`
	)
	if snapshot == "" {
		return watch + run
	}
	return "source " + quote(snapshot) + " 2>/dev/null || true; " + watch + run
}

// quote is a text as one word of the shell.
func quote(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-", r)
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// start starts the shell.
func (r *run) start(ctx context.Context) (*command, error) {
	h := r.t.hands
	dir := h.dir()
	if err := h.there(dir); err != nil {
		h.move(h.base())
		return nil, fmt.Errorf("Working directory %q no longer exists, so this command was not run. Shell cwd recovered to %q: re-issue the command if it still makes sense there.", dir, h.base()) //nolint:revive,staticcheck // the model reads it as it is
	}
	var err error
	if r.where, err = h.shellsFile("cwd-" + r.task); err != nil {
		return nil, err
	}
	return h.start(ctx, session.Command{
		Path: "/bin/bash", Args: []string{"-c", script(h.snapshot(ctx)), "/bin/bash", r.command, cmp.Or(r.where, os.DevNull)}, Dir: dir,
		Env: append(slices.Clip(h.env), "CLAUDE_CODE_SESSION_ID="+r.session),
	})
}

// timeout is that of a command that says none.
func (h *hands) timeout() time.Duration {
	if ms, err := strconv.Atoi(h.getenv("BASH_DEFAULT_TIMEOUT_MS")); err == nil && ms > 0 {
		return min(time.Duration(ms)*time.Millisecond, shellMaxTimeout)
	}
	return shellTimeout
}

// getenv is a variable of the environment of commands; "": it is not set.
func (h *hands) getenv(name string) string {
	for _, kv := range h.env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// readsOnly reports whether a command only reads, so that it can run beside other calls.
func (h *hands) readsOnly(command string) bool {
	return h.reads != nil && h.reads(command) == protocol.BehaviorAllow
}

// move changes the shell's directory.
func (h *hands) move(dir string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cwd = dir
}

// moved keeps the directory in which a command has ended, if it is one of the session's.
func (h *hands) moved(dir string) (note string) {
	if h.of != nil || h.getenv("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR") == "1" { // a sub-agent's shell begins anew each time, as observed
		return ""
	}
	for _, own := range append([]string{h.real}, h.directories()...) {
		if within(dir, own) {
			if own == h.real {
				dir = h.root + strings.TrimPrefix(dir, h.real)
			}
			h.move(dir)
			return ""
		}
	}
	h.move(h.root)
	return "\nShell cwd was reset to " + h.root
}

// keptPrefix is how the names of such directories begin.
const keptPrefix = "troupe-tools-"

// keep is a directory for what tools keep: the session's, or one below it. It is made when it
// is needed.
func (h *hands) keep(below string) (string, error) {
	h = h.session()
	h.mu.Lock()
	defer h.mu.Unlock()
	err := error(nil)
	if h.own == "" {
		own := filepath.Join(h.tmp(), fmt.Sprintf("%s%016x", keptPrefix, h.seams.Rand.Uint64()))
		if err = os.Mkdir(own, 0o700); err == nil { // no other process may have made it
			h.own = own
		}
	}
	dir := filepath.Join(h.own, below)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return "", fmt.Errorf("a directory for the results of tools: %w", err)
	}
	return dir, nil
}

// kept reports whether a path leads to what tools keep.
func (h *hands) kept(path string) bool {
	all := h.session()
	all.mu.Lock()
	own := all.own
	all.mu.Unlock()
	at, err := resolve(h.path(path))
	return own != "" && err == nil && within(at, own)
}

// remove ends what still runs, and removes the session's directory for what tools keep.
func (h *hands) remove() {
	h.endCommands()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.own != "" {
		_ = os.RemoveAll(h.own) // it is in the directory for temporary files
		h.own = ""
	}
}

// tmp is the directory for temporary files, its links followed.
func (h *hands) tmp() string {
	dir := h.getenv("TMPDIR")
	if !filepath.IsAbs(dir) {
		dir = os.TempDir()
	}
	if abs, err := filepath.Abs(dir); err == nil { // commands run elsewhere
		dir = abs
	}
	if at, err := filepath.EvalSymlinks(dir); err == nil {
		return at
	}
	return dir
}

// switchedOn reports whether a variable of the environment switches something on.
func (h *hands) switchedOn(name string) bool {
	switch strings.ToLower(h.getenv(name)) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

// switchedOff reports whether a variable of the environment switches something off.
func (h *hands) switchedOff(name string) bool {
	switch strings.ToLower(h.getenv(name)) {
	case "0", "false", "no", "off":
		return true
	}
	return false
}
