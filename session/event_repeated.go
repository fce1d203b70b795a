package session

import (
	"fmt"
	"log/slog"
)

// RepeatedCall says that the model makes the same call of a tool with the same result again and again. The agent in this
// process has told the model so, or has ended the turn.
type RepeatedCall struct {
	Tool  string // its name
	Times int    // how often, as far as that was counted
	Ended bool   // the turn was ended, because the model had got that message before
}

func (*RepeatedCall) isEvent() {}

// Level implements [Event].
func (*RepeatedCall) Level() slog.Level { return slog.LevelWarn }

func (e *RepeatedCall) String() string {
	what := "the model was told"
	if e.Ended {
		what = "the turn was ended"
	}
	return fmt.Sprintf("the model made the same call of %s with the same result %d times; %s", e.Tool, e.Times, what)
}

// LogValue implements [slog.LogValuer].
func (e *RepeatedCall) LogValue() slog.Value { return slog.StringValue(e.String()) }
