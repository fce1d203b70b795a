package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/session"
)

const (
	maxShown       = 30000  // characters of an output that the model reads
	mostShown      = 150000 // at most, if the environment asks for more
	maxShownFailed = 10000  // of one of a command that failed
	previewed      = 2000   // of one that is saved
)

// result is what the model reads of a command that has ended. err is why it was ended, or
// nil.
func (r *run) result(c *command, status session.ExitStatus, err error) agent.ToolResult {
	h, command := r.t.hands, r.command
	if err != nil && !errors.Is(err, errTimedOut) {
		return failure("%s", err)
	}
	code := exitCode(status)
	out := c.out.bytes()
	text := readable(out)
	meaning := ""
	switch {
	case err != nil:
		return failure("%s", cut(join("Exit code 143", "Command timed out after "+longDuration(r.limit), h.capped(text))))
	case code != 0:
		if meaning = noError(command, code); meaning == "" {
			return failure("%s", cut(join(fmt.Sprintf("Exit code %d", code), h.capped(text))))
		}
	}
	note := ""
	if now, err := os.ReadFile(r.where); err == nil {
		note = h.moved(strings.TrimRight(string(now), "\n"))
	}
	shown := h.capped(text)
	structured := agent.Object{"stdout": shown, "stderr": note, "interrupted": false, "isImage": false, "noOutputExpected": silent(command)}
	if r.noSandbox != nil {
		structured["dangerouslyDisableSandbox"] = r.noSandbox
	}
	if meaning != "" {
		structured["returnCodeInterpretation"] = meaning
	}
	if len(shown) < len(text) {
		path, err := h.persist(out)
		if err != nil {
			return failure("The output of %s could not be saved: %s", sizeOf(len(out)), err)
		}
		structured["persistedOutputPath"], structured["persistedOutputSize"] = path, len(out)
		shown = persisted(path, len(out), shown)
	}
	if hint := h.noticed(command, r.began); hint != "" {
		structured["staleReadFileStateHint"] = hint
		shown = join(shown, hint)
	}
	if len(h.capped(text)) == len(text) {
		h.sawBy(command, r.dir)
	}
	if shown == "" && note == "" {
		shown = "(Bash completed with no output)"
	}
	return agent.ToolResult{Content: shown + note, Structured: structured}
}

// readable is an output as the model reads it.
func readable(out []byte) string {
	return strings.TrimRight(trimLeadingBlank(toUTF8(out)), " \t\r\n\v\f")
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

// capped is what the model may read of an output at most.
func (h *hands) capped(text string) string {
	most := maxShown
	if n, err := strconv.Atoi(h.getenv("BASH_MAX_OUTPUT_LENGTH")); err == nil && n > 0 {
		most = min(n, mostShown)
	}
	if len(text) <= most {
		return text
	}
	if r := []rune(text); len(r) > most {
		return string(r[:most])
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

// persist writes a long output to a file.
func (h *hands) persist(out []byte) (path string, err error) {
	dir, err := h.keep("tool-results")
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, fmt.Sprintf("b%08x.txt", uint32(h.seams.Rand.Uint64())))
	if err := h.disk.ask(diskWrite, path); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, out, 0o600)
}

// persisted is what the model reads of a long output.
func persisted(path string, size int, text string) string {
	preview, more := text, ""
	if len(text) > previewed {
		preview, more = strings.ToValidUTF8(text[:previewed], ""), "\n..."
		if i := strings.LastIndexByte(preview, '\n'); i > 0 {
			preview = preview[:i]
		}
	}
	return fmt.Sprintf("<persisted-output>\nOutput too large (%s). Full output saved to: %s\n\nPreview (first 2KB):\n%s%s\n</persisted-output>", sizeOf(size), path, preview, more)
}
