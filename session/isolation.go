package session

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

// Isolation says whether an agent shares its configuration directory: the directory of
// its settings, login, transcripts and state.
type Isolation string

// Values of [Isolation]. The zero value is IsolationShared.
const (
	IsolationShared  Isolation = "shared"  // the directory that the agent's environment names
	IsolationPrivate Isolation = "private" // a separate directory for each session; see Options.Isolation
	// IsolationAuto is IsolationPrivate where that is possible, and else IsolationShared.
	IsolationAuto Isolation = "auto"
)

// Isolated says in which configuration directory the agent of a session with
// [IsolationPrivate] works. It is emitted once, before the agent starts. For sessions with
// [IsolationAuto] that share one, only the first of a runtime emits it.
type Isolated struct {
	Dir    string   // the agent's configuration directory; empty: the default one, which is not known
	Copied []string // names of the files and directories that were copied into it
	// Shared says why the directory is shared after all; empty: it is private.
	Shared string
}

func (*Isolated) isEvent() {}

// Level implements [Event].
func (e *Isolated) Level() slog.Level {
	if e.Shared != "" {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

func (e *Isolated) String() string {
	switch {
	case e.Shared != "":
		return fmt.Sprintf("the configuration directory %s is shared: %s", e.Dir, e.Shared)
	case len(e.Copied) == 0:
		return fmt.Sprintf("configuration directory %s, private and empty", e.Dir)
	}
	return fmt.Sprintf("configuration directory %s, private, with copies of %s", e.Dir, strings.Join(e.Copied, ", "))
}

// LogValue implements [slog.LogValuer].
func (e *Isolated) LogValue() slog.Value { return slog.StringValue(e.String()) }

// CheckOptions returns a *[ConfigError] for each mistake in the options that no agent has a
// part in: Isolation, SessionStore and Children.
func CheckOptions(o *Options) []error {
	return slices.Concat(checkIsolation(o), checkStore(o), checkChildren(o.Children))
}

func checkIsolation(o *Options) (problems []error) {
	switch o.Isolation {
	case "", IsolationShared, IsolationAuto:
	case IsolationPrivate:
		if o.Spawner != nil {
			problems = append(problems, &ConfigError{Option: "Isolation", Problem: "is private, and Spawner may start the agent where a directory of this machine does not exist",
				Fix: "set the agent's configuration directory in Env, such as CLAUDE_CONFIG_DIR, to one that exists there"})
		}
	default:
		problems = append(problems, &ConfigError{Option: "Isolation", Problem: fmt.Sprintf("is %q, which is no isolation", string(o.Isolation)),
			Fix: "give shared, private or auto"})
	}
	return problems
}
