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

// secretFlag matches flags whose value may hold credentials: configuration
// that can carry MCP headers and environments, and flags that say so by name.
func secretFlag(flag string) bool {
	name := strings.ToLower(strings.TrimLeft(flag, "-"))
	if name == "settings" || name == "mcp-config" {
		return true
	}
	for _, word := range []string{"token", "secret", "password", "passwd", "api-key", "apikey", "auth", "credential", "header", "cookie"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// MaskArgs returns a copy of args fit for errors and logs: values of flags that
// may hold credentials (--settings, --mcp-config, and names such as --token),
// up to the next flag, become ***; inline JSON becomes its length; user
// information in URLs is removed; long arguments are cut.
func MaskArgs(args []string) []string {
	out := make([]string, len(args))
	hide := false
	for i, a := range args {
		switch flag, value, has := strings.Cut(a, "="); {
		case strings.HasPrefix(a, "-") && has:
			hide = false
			if secretFlag(flag) {
				out[i] = flag + "=" + masked
			} else {
				out[i] = flag + "=" + maskValue(value)
			}
		case strings.HasPrefix(a, "-"):
			hide = secretFlag(a)
			out[i] = maskValue(a)
		case hide:
			out[i] = masked
		default:
			out[i] = maskValue(a)
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
