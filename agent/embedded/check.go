package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/session"
)

// Check is what the agent has to pass before a turn ends. It runs when the model wants to end a
// turn, and calls have run that may have changed something since the last check. The output of a failed
// check goes back to the model. One of Command and Func is required.
type Check struct {
	// Command is run by bash in the session's directory, with the environment of the model's
	// commands; the exit code 0 passes. A person is not asked about it, but a rule that denies it
	// ends the turn with an error.
	Command string
	// Func passes if it returns ""; the text says what is wrong. dir is the session's directory. An
	// error ends the turn with an error. ctx ends with an interrupt and with the session. Func may
	// be called for several sessions at once.
	Func func(ctx context.Context, dir string) (wrong string, err error)
	// Rounds is how often in a turn a failed check goes back to the model; 0: 3, at most 100. If the
	// check fails once more, the turn ends: the result has the terminal_reason check_failed and in
	// the member check_output the end of what the check has said.
	Rounds int
	// Timeout limits one check, which fails then; 0: 10 minutes.
	Timeout time.Duration
}

const (
	checkRounds    = 3
	maxCheckRounds = 100
	checkTimeout   = 10 * time.Minute
	maxChecked     = 10_000 // bytes of what a check has said, from its end
)

// wrong is the mistake in a check, or nil.
func (c *Check) wrong() error {
	switch {
	case c == nil:
		return nil
	case c.Command == "" && c.Func == nil:
		return problem("Backend", "has a Config.Check with neither Command nor Func", "set one of them, or leave Check out")
	case c.Command != "" && c.Func != nil:
		return problem("Backend", "has a Config.Check with Command and Func", "set one of them")
	case c.Rounds < 0 || c.Rounds > maxCheckRounds:
		return problem("Backend", fmt.Sprintf("has a Config.Check with %d Rounds", c.Rounds), fmt.Sprintf("set 0 to %d", maxCheckRounds))
	case c.Timeout < 0:
		return problem("Backend", fmt.Sprintf("has a Config.Check with the Timeout %v", c.Timeout), "set 0 or more")
	}
	return nil
}

func (c *Check) rounds() int {
	if c.Rounds == 0 {
		return checkRounds
	}
	return c.Rounds
}

func (c *Check) timeout() time.Duration {
	if c.Timeout == 0 {
		return checkTimeout
	}
	return c.Timeout
}

// checking is how far the checks of a session are.
type checking struct {
	changed bool   // a call may have changed something since the last check
	failed  string // what the last one of the turn has said; "": it has passed
	rounds  int    // of the turn
	over    bool   // the turn ends although its check fails
}

// mayChange notes the end of a call that may have changed something: of a server's tool, of a tool that
// writes files, of a command that does not only read. Those of sub-agents count for the agent.
func (t *talk) mayChange() { t.session().checking.changed = true }

// checked is a text for the model if the turn may not end yet; "": it may.
func (t *talk) checked(l *agent.Lane) (string, error) {
	c, at := t.cfg.Check, &t.checking
	if c == nil || t.up != nil || t.turnOf == nil || !at.changed && at.failed == "" || l.Permissions().Mode == "plan" {
		return "", nil
	}
	if at.changed {
		at.changed = false // a sub-agent in the background may change something while the check runs
		said, err := t.check(l, c)
		if err != nil {
			at.changed = true
			return "", err
		}
		at.failed = said
	}
	at.over = at.failed != "" && at.rounds >= c.rounds()
	if at.failed == "" || at.over {
		return "", nil
	}
	at.rounds++
	return "The check before the end of your turn has failed. " + at.failed +
		"\nCorrect what it says. If you cannot, say why.", nil
}

// check runs the check, and returns what it says if it fails.
func (t *talk) check(l *agent.Lane, c *Check) (string, error) {
	if c.Command != "" {
		own := t.box[slices.IndexFunc(t.box, func(o *tool) bool { return o.name == "Bash" })]
		if v := t.judge(own)(l.Permissions(), agent.Object{"command": c.Command}); v.Deny != "" {
			return "", fmt.Errorf("the check before the end of the turn was not run: %s", v.Deny)
		}
	}
	var said string
	err := l.Strand().Do(func(ctx context.Context) (err error) {
		limited, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer t.seams.Clock.AfterFunc(c.timeout(), func() { cancel(errTimedOut) }).Stop()
		if c.Func != nil {
			said, err = c.Func(limited, t.hands.root)
		} else {
			said, err = t.hands.checks(limited, c.Command)
		}
		if errors.Is(context.Cause(limited), errTimedOut) && ctx.Err() == nil {
			said, err = fmt.Sprintf("It has not ended after %v.\n%s", c.timeout(), said), nil
		}
		return err
	})
	switch {
	case l.Strand().Err() != nil:
		return "", l.Strand().Err()
	case err != nil:
		return "", fmt.Errorf("the check before the end of the turn: %w", err)
	}
	return shown.Tail(said, maxChecked), nil
}

// checks runs a command of a check, and returns what is wrong.
func (h *hands) checks(ctx context.Context, command string) (string, error) {
	c, err := h.start(ctx, session.Command{
		Path: "/bin/bash", Args: []string{"-c", script(h.snapshot(ctx)), "/bin/bash", command, os.DevNull}, Dir: h.root, Env: h.env,
	})
	if err != nil {
		return "", err
	}
	waited := c.wait(ctx)
	status, err := c.end()
	out := shown.Tail(string(c.out.bytes()), maxChecked)
	switch {
	case waited != nil:
		return out, nil //nolint:nilerr // the caller knows its limits
	case err != nil:
		return "", err
	case status.Code == 0 && status.Signal == "":
		return "", nil
	case status.Signal != "":
		return fmt.Sprintf("`%s` was ended by %s.\n%s", command, status.Signal, out), nil
	}
	return fmt.Sprintf("`%s` has ended with exit code %d.\n%s", command, status.Code, out), nil
}
