package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

const (
	shellTimeout    = 2 * time.Minute
	shellMaxTimeout = 10 * time.Minute
	maxShown        = 30000    // characters of an output that the model reads
	maxShownFailed  = 10000    // of one of a command that failed
	maxKept         = 16 << 20 // bytes of an output that are kept
	sweepLimit      = 5 * time.Second
)

// bash is the tool Bash, as Claude Code 2.1.329 has it (observed), but for background tasks:
// at its timeout a command ends, and no process that it started lives on.
func bash() *tool {
	return &tool{
		name:  "Bash",
		about: "Runs a command in a new bash. The result is what it prints. The directory to which it changes is kept for the next command, if it succeeds and stays in the working directories. timeout is in milliseconds: 120000 if none is given, at most 600000.",
		params: []param{
			{name: "command", kind: "string", about: "The command.", required: true},
			{name: "timeout", kind: "number", about: "In milliseconds."},
			{name: "description", kind: "string", about: "What it does, in a few words."},
			{name: "run_in_background", kind: "boolean", about: "Not supported yet."},
			{name: "dangerouslyDisableSandbox", kind: "boolean", about: "Not used."},
		},
		beside: func(h *hands, in agent.Object) bool { return h.readsOnly(str(in, "command")) },
		check: func(_ *hands, in agent.Object) string {
			if background, _ := in["run_in_background"].(bool); background {
				return "Background commands are not supported by this agent yet. Run the command in the foreground."
			}
			return ""
		},
		run: func(ctx context.Context, h *hands, in agent.Object) agent.ToolResult { return h.shell(ctx, in) },
	}
}

// script runs a command so that its errors name it as bash does, everything it prints is one
// stream, and its directory is known if it succeeds.
const script = `exec 2>&1; eval "$1" && pwd -P >|"$2"`

// shell runs a command, and returns when the shell has ended and nothing of it is left.
func (h *hands) shell(ctx context.Context, in agent.Object) agent.ToolResult {
	command, dir := str(in, "command"), h.dir()
	if _, err := os.Stat(dir); err != nil {
		h.move(h.root)
		return failure("Working directory %q no longer exists, so this command was not run. Shell cwd recovered to %q: re-issue the command if it still makes sense there.", dir, h.root)
	}
	scratch, err := h.scratch()
	if err != nil {
		return failure("%s", err)
	}
	where := filepath.Join(scratch, fmt.Sprintf("cwd-%016x", h.seams.Rand.Uint64()))
	defer func() { _ = os.Remove(where) }() // it may not be there
	limit := h.timeout()
	if ms, given := number(in, "timeout"); given && ms > 0 {
		limit = time.Duration(min(ms, float64(shellMaxTimeout/time.Millisecond)) * float64(time.Millisecond))
	}
	out, status, err := h.execute(ctx, limit, session.Command{
		Path: "/bin/bash", Args: []string{"-c", script, "/bin/bash", command, where}, Dir: dir, Env: h.env,
	})
	timedOut := errors.Is(err, errTimedOut)
	if err != nil && !timedOut {
		return failure("%s", err)
	}
	code := exitCode(status)
	text := strings.TrimRight(trimLeadingBlank(toUTF8(out)), " \t\r\n\v\f")
	meaning := ""
	switch {
	case timedOut:
		return failure("%s", cut(join("Exit code 143", fmt.Sprintf("Command timed out after %ds", int((limit+time.Second-1)/time.Second)), capped(text))))
	case code != 0:
		if meaning = noError(command, code); meaning == "" {
			return failure("%s", cut(join(fmt.Sprintf("Exit code %d", code), capped(text))))
		}
	}
	note := ""
	if now, err := os.ReadFile(where); err == nil {
		note = h.moved(strings.TrimRight(string(now), "\n"))
	}
	structured := agent.Object{"stdout": text, "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": silent(command)}
	if off, given := in["dangerouslyDisableSandbox"]; given {
		structured["dangerouslyDisableSandbox"] = off
	}
	if meaning != "" {
		structured["returnCodeInterpretation"] = meaning
	}
	if note != "" {
		structured["stderr"] = note
	}
	shown := text
	if n := len([]rune(text)); n > maxShown {
		var failed *agent.ToolResult
		if shown, failed = h.persist(scratch, text); failed != nil {
			return *failed
		}
		structured["stdout"] = string([]rune(text)[:maxShown])
	}
	if shown == "" && note == "" {
		shown = "(Bash completed with no output)"
	}
	return agent.ToolResult{Content: shown + note, Structured: structured}
}

// errTimedOut says that a command has reached its timeout.
var errTimedOut = errors.New("the command has timed out")

// execute runs a process to its end and returns what it wrote to stdout. When ctx ends or the
// limit is reached, the process is killed. In any case nothing that it started is left.
func (h *hands) execute(ctx context.Context, limit time.Duration, c session.Command) ([]byte, session.ExitStatus, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := h.seams.Clock.AfterFunc(limit, func() { cancel(errTimedOut) })
	defer timer.Stop()
	p, err := h.seams.Spawner.Spawn(ctx, c)
	if err != nil {
		return nil, session.ExitStatus{}, fmt.Errorf("start %s: %w", c.Path, err)
	}
	_ = p.Stdin().Close() // the command reads nothing
	var out limitedBuffer
	read := make(chan struct{})
	h.seams.Exec.Go(func() {
		defer close(read)
		_, _ = io.Copy(&out, p.Stdout()) // it ends with the process
	})
	if stderr := p.Stderr(); stderr != nil {
		h.seams.Exec.Go(func() { _, _ = io.Copy(io.Discard, stderr) })
	}
	failed := h.seams.Exec.Await(ctx, p.Exited())
	if failed != nil {
		_ = p.Kill() // it may have ended
		_ = h.seams.Exec.Await(context.Background(), p.Exited())
	}
	h.clear(p, read)
	status, err := p.Reap()
	if failed != nil {
		err = failed
	}
	return out.bytes(), status, err
}

// clear kills what the command has left behind, and waits until its output is read. With the
// last process that has the pipe, the output ends.
func (h *hands) clear(p session.Process, read <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	timer := h.seams.Clock.AfterFunc(sweepLimit, cancel)
	defer timer.Stop()
	_, _ = p.Sweep(ctx) // what cannot be killed is reported by the runtime's own sweep
	if h.seams.Exec.Await(ctx, read) != nil {
		p.CloseOutput()
		_ = h.seams.Exec.Await(context.Background(), read)
	}
}

// limitedBuffer keeps the first maxKept bytes.
type limitedBuffer struct {
	mu sync.Mutex
	b  []byte
}

func (l *limitedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = append(l.b, p[:min(len(p), maxKept-len(l.b))]...)
	return len(p), nil
}

func (l *limitedBuffer) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b
}

func exitCode(s session.ExitStatus) int {
	if s.Signal != "" {
		return 1 // the shell was killed by its own command, as observed
	}
	return s.Code
}

// noError says what an exit code of 1 means if it does not mean failure; "" if it does.
func noError(command string, code int) string {
	if code != 1 {
		return ""
	}
	words := strings.Fields(command)
	if len(words) == 0 || strings.ContainsAny(command, "\n;&") {
		return ""
	}
	last := strings.Fields(command[strings.LastIndexByte(command, '|')+1:])
	if len(last) == 0 {
		return ""
	}
	switch filepath.Base(last[0]) {
	case "grep", "rg":
		return "No matches found"
	case "diff":
		return "Files differ"
	case "test", "[":
		return "Condition is false"
	}
	return ""
}

func trimLeadingBlank(s string) string {
	for {
		i := strings.IndexByte(s, '\n')
		if i < 0 || strings.TrimSpace(s[:i]) != "" {
			return s
		}
		s = s[i+1:]
	}
}

func join(parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, "\n")
}

// silent reports whether the command's first program prints nothing when it succeeds.
func silent(command string) bool {
	words := strings.Fields(command)
	return len(words) > 0 && slices.Contains([]string{"mv", "cp", "rm", "mkdir", "rmdir", "touch", "chmod", "chown", "ln"}, words[0])
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

// capped is what the model may read of an output at most.
func capped(text string) string {
	if r := []rune(text); len(r) > maxShown {
		return string(r[:maxShown])
	}
	return text
}

// cut shortens the output of a command that failed: its head and its tail.
func cut(text string) string {
	r := []rune(text)
	if len(r) <= maxShownFailed {
		return text
	}
	half := maxShownFailed / 2
	return fmt.Sprintf("%s\n\n... [%d characters truncated] ...\n\n%s", string(r[:half]), len(r)-maxShownFailed, string(r[len(r)-half:]))
}

// persist writes a long output to a file, and returns what the model reads of it.
func (h *hands) persist(scratch, text string) (string, *agent.ToolResult) {
	path := filepath.Join(scratch, fmt.Sprintf("output-%016x.txt", h.seams.Rand.Uint64()))
	err := h.disk.ask(diskWrite, path)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		f := failure("the output of %s could not be saved: %s", sizeOf(len(text)), err)
		return "", &f
	}
	preview := text[:min(len(text), 2000)]
	if i := strings.LastIndexByte(preview, '\n'); i > 0 {
		preview = preview[:i]
	}
	return fmt.Sprintf("<persisted-output>\nOutput too large (%s). Full output saved to: %s\n\nPreview (first 2KB):\n%s\n...\n</persisted-output>", sizeOf(len(text)), path, preview), nil
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
	if h.getenv("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR") == "1" {
		return ""
	}
	for _, own := range append([]string{h.real}, h.added...) {
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

// scratch is the session's directory for what tools keep. It is made when it is needed.
func (h *hands) scratch() (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.own == "" {
		dir := filepath.Join(h.tmp(), fmt.Sprintf("troupe-tools-%016x", h.seams.Rand.Uint64()))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return "", fmt.Errorf("a directory for the results of tools: %w", err)
		}
		h.own = dir
	}
	return h.own, nil
}

// remove removes the session's directory for what tools keep.
func (h *hands) remove() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.own != "" {
		_ = os.RemoveAll(h.own) // it is in the directory for temporary files
		h.own = ""
	}
}

func (h *hands) tmp() string {
	if dir := h.getenv("TMPDIR"); filepath.IsAbs(dir) {
		return dir
	}
	return os.TempDir()
}
