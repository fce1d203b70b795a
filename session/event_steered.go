package session

import (
	"fmt"
	"log/slog"
)

// Steered says that a person has done something from outside of the program, such as to interrupt
// a turn in a browser (package inspect/ui) or with a command. It is an event of the session, or of
// the runtime if it is about no session.
type Steered struct {
	By     string // who, as the surroundings know them
	Action string // what, such as "interrupt", "close" or "pause job migrate"
}

func (*Steered) isEvent() {}

// Level implements [Event].
func (*Steered) Level() slog.Level { return slog.LevelInfo }

func (e *Steered) String() string { return fmt.Sprintf("%s by %s", e.Action, e.By) }

// LogValue implements [slog.LogValuer].
func (e *Steered) LogValue() slog.Value { return slog.StringValue(e.String()) }
