package osproc

import (
	"fmt"
	"regexp"
	"strings"
)

// maskedLimit is how much of one argument an error shows, in bytes.
const maskedLimit = 200

const masked = "***"

var userInfo = regexp.MustCompile(`://[^/\s@]+@`)

// shownFlag reports whether the value of a flag may be seen. Each name here is a
// decision: the value of any other flag is hidden, since it may be a credential.
func shownFlag(flag string) bool {
	switch strings.TrimPrefix(flag, "--") {
	case "add-dir", "agent", "betas", "debug-file", "effort", "fallback-model", "input-format",
		"max-budget-usd", "max-thinking-tokens", "max-turns", "model", "output-format",
		"permission-mode", "permission-prompt-tool", "permission-prompts", "plugin-dir", "plugin-dir-no-mcp",
		"project-config-root", "resume", "resume-drops-turn", "resume-session-at", "session-id",
		"setting-sources", "task-budget", "thinking", "thinking-display":
		return true
	}
	return false
}

// flagName matches what is a flag's name and nothing else: --long-name or -x.
var flagName = regexp.MustCompile(`^(--[A-Za-z][A-Za-z0-9_.:-]{0,63}|-[A-Za-z0-9])$`)

// MaskArgs returns a copy of args fit for errors and logs. The names of flags are
// kept. The values of flags become ***, up to the next flag, except those of a few
// flags that hold no credentials, such as --model; so do all words after --. Of the
// values that are kept, and of words before the first flag, inline JSON becomes its
// length, user information in URLs is removed, and long arguments are cut.
func MaskArgs(args []string) []string {
	out := make([]string, len(args))
	hide, rest := false, false
	for i, a := range args {
		switch flag, value, has := strings.Cut(a, "="); {
		case rest:
			out[i] = masked
		case a == "--":
			out[i], rest = a, true
		case !strings.HasPrefix(a, "-"):
			out[i] = masked
			if !hide {
				out[i] = maskValue(a)
			}
		case !flagName.MatchString(flag): // such as -Htoken
			out[i], hide = masked, true
		case !has:
			out[i], hide = a, !shownFlag(a)
		case shownFlag(flag):
			out[i], hide = flag+"="+maskValue(value), true
		default:
			out[i], hide = flag+"="+masked, true
		}
	}
	return out
}

func maskValue(v string) string {
	if t := strings.TrimSpace(v); strings.HasPrefix(t, "{") && !strings.HasPrefix(t, tokenOpen) || strings.HasPrefix(t, "[") {
		return fmt.Sprintf("<json, %d bytes>", len(v))
	}
	v = userInfo.ReplaceAllString(v, "://"+masked+"@")
	if len(v) > maskedLimit {
		return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(v[:maskedLimit], ""), len(v))
	}
	return v
}
