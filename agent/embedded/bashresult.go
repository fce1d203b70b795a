package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
	maxPath        = 8 << 10
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
			return failure("%s", cut(join(fmt.Sprintf("Exit code %d", code), h.capped(text), h.confinedNote(text))))
		}
	}
	note := ""
	if now, err := readStart(openFile, r.where, maxPath); err == nil { // the command may have put anything there
		note = h.moved(strings.TrimRight(now, "\n"))
	}
	shown := h.capped(text)
	structured := agent.Object{"stdout": shown, "stderr": note, "interrupted": false, "isImage": false, "noOutputExpected": silent(command)}
	if r.noSandbox != nil {
		structured["dangerouslyDisableSandbox"] = r.noSandbox
	}
	if meaning != "" {
		structured["returnCodeInterpretation"] = meaning
	}
	if m := imageURL.FindStringSubmatch(text); m != nil {
		if image := (inlined{Media: m[1], Data: m[2]}).block(); image["type"] == "image" {
			structured["stdout"], structured["isImage"] = text, true
			return agent.ToolResult{Structured: structured, Content: []any{image}}
		}
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
	if meaning == "" {
		h.refresh(command, r.began)
	}
	if shown == "" && note == "" {
		shown = "(Bash completed with no output)"
	}
	return agent.ToolResult{Content: shown + note, Structured: structured}
}

// imageURL is an output that is an image.
var imageURL = regexp.MustCompile(`^data:(image/(?:png|jpeg|gif|webp));base64,([A-Za-z0-9+/=\s]+)$`)

// readable is an output as the model reads it.
func readable(out []byte) string {
	return strings.TrimRight(trimLeadingBlank(toUTF8(out)), " \t\r\n\v\f")
}

func exitCode(s session.ExitStatus) int {
	switch s.Signal { // by which its own command has killed the shell: as observed
	case "":
		return s.Code
	case "SIGTERM":
		return 144
	}
	return 1
}

// noError says what an exit code of 1 means if it does not mean failure; "" if it does. The
// last command counts.
func noError(command string, code int) string {
	if code != 1 {
		return ""
	}
	parts := strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune("|;&\n", r) })
	if len(parts) == 0 {
		return ""
	}
	last := strings.Fields(parts[len(parts)-1])
	if len(last) == 0 {
		return ""
	}
	switch filepath.Base(last[0]) {
	case "grep", "rg", "egrep", "fgrep":
		return "No matches found"
	case "diff":
		return "Files differ"
	case "git":
		switch {
		case len(last) > 1 && last[1] == "diff":
			return "Files differ"
		case len(last) > 1 && last[1] == "grep":
			return "No matches found"
		}
	case "find":
		return "Some directories were inaccessible"
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

// silent reports whether the programs of a command print nothing when they succeed.
func silent(command string) bool {
	parts := strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune("|;&\n", r) })
	return strings.TrimSpace(command) != "" && !slices.ContainsFunc(parts, func(part string) bool {
		words := strings.Fields(part)
		return len(words) > 0 && !slices.Contains([]string{
			"mv", "cp", "rm", "mkdir", "rmdir", "touch", "chmod", "chown", "chgrp", "ln", "cd", "export", "unset", "wait",
		}, words[0])
	})
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
