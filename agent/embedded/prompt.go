package embedded

import (
	_ "embed" // the prompt
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/agent-troupe/troupe/agent"
)

//go:embed prompt.md
var ownPrompt string

// systemPrompt is what a session tells the model once: the host's own prompt or this agent's,
// with the surroundings. It stays the same for the whole session, so that a provider's cache
// holds.
func systemPrompt(l *agent.Lane, t *talk) []string {
	parts, addition := l.SystemPrompt()
	if strings.Join(parts, "") == "" { // an empty one is the zero value of the options
		parts = []string{strings.TrimSpace(ownPrompt), surroundings(l, t)}
	}
	if addition != "" {
		parts = append(parts, addition)
	}
	kept := []string{} // not nil, so that it is made once
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return kept
}

// surroundings are facts of the session that a model cannot know.
func surroundings(l *agent.Lane, t *talk) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Working directory: %s\n", l.Dir())
	for _, dir := range t.hands.added {
		fmt.Fprintf(&b, "Further directory: %s\n", dir)
	}
	git := "no"
	if _, err := os.Stat(filepath.Join(l.Dir(), ".git")); err == nil {
		git = "yes"
	}
	fmt.Fprintf(&b, "Git repository: %s\nOperating system: %s\nDate: %s\n", git, runtime.GOOS, t.seams.Clock.Now().Format("2006-01-02"))
	return strings.TrimSpace(b.String())
}
