package sdk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
)

// awaitClaim is the flag that parks Claude Code (observed on 2.1.329).
const awaitClaim = "await-claim"

// Claim is what is known of a session only when it begins. Anything else is in
// the options that the spare was started with. The zero value of a field changes
// nothing.
type Claim struct {
	// Cwd is the session's directory. Required; a relative one counts from this
	// process's.
	Cwd string
	// Env holds what the session brings with it. Claude Code takes
	// CLAUDE_CODE_OAUTH_TOKEN, CLAUDE_CODE_SESSION_ACCESS_TOKEN and
	// CLAUDE_CODE_HOST_SESSION_ID, and refuses what it has read at its start.
	Env map[string]string
	// AdditionalDirectories are as in [Options].
	AdditionalDirectories []string
	// PermissionMode is taken with the claim, or the claim is refused.
	PermissionMode PermissionMode
	// AppendSystemPrompt goes behind the system prompt.
	AppendSystemPrompt string
	// Agents are as in [Options].
	Agents map[string]AgentDefinition
	// Title names the session.
	Title string
	// WorkspaceTrust says that the user trusts the directory.
	WorkspaceTrust *protocol.WorkspaceTrust
	// Settings, an object, are laid over the agent's, as by
	// [Client.ApplyFlagSettings], before the claim: when they are refused nothing
	// is claimed.
	Settings json.RawMessage
}

// Prewarm starts a Claude Code that has no session yet, a spare: everything that
// does not depend on the session's directory is done, the handshakes of in-process
// servers included. [Client.Claim] makes a session of it later, in a fraction of
// the time that a start takes. A message that is sent before fails, with a result
// that begins with not_claimed. [Client.Close] gives up a spare that is not wanted
// any more. Claude Code 2.1.329 can be a spare; 2.1.197 ends at once, with an
// *[ExitError] (observed). Options that name a session to go on with, and rules that
// do not say which directory they are about, are a *[ConfigError].
//
// Options.Cwd is where the spare is parked, not the session's directory; empty
// means a private directory below the agent's own (CLAUDE_CONFIG_DIR, or .claude in
// HOME), which is removed when the spare has ended. With a Spawner it must be set.
func Prewarm(ctx context.Context, opts *Options) (*Client, error) {
	c := NewClient(opts)
	home, err := homeOf(c.opts)
	if err != nil {
		return nil, err
	}
	remove, err := park(c.opts, home)
	if err != nil {
		return nil, err
	}
	if err := c.Connect(ctx); err != nil {
		if remove != nil {
			err = errors.Join(err, remove())
		}
		return nil, err
	}
	if remove == nil {
		return c, nil
	}
	c.unpark = remove // nothing is left when Close returns, nor without a Close
	if d, err := c.connected(); err == nil {
		home.Executor().Go(func() {
			_ = home.Executor().Await(context.Background(), d.session.Done())
			_ = remove() // what is left is an empty directory that nobody looks for
		})
	}
	return c, nil
}

// park makes the options those of a spare, and makes the directory where it is
// parked, if it has none; remove is nil if it has one.
func park(o *Options, home *runtime.Runtime) (remove func() error, err error) {
	spec, err := specOf(o)
	problems := []error{err}
	bad := func(wrong bool, option, problem, fix string) {
		if wrong {
			problems = append(problems, &ConfigError{Option: option, Problem: problem, Fix: fix})
		}
	}
	bad(o.Resume != "", "Resume", "names a session, and a spare has none", "use NewClient")
	bad(o.Continue, "Continue", "means a session, and a spare has none", "use NewClient")
	bad(o.ForkSession, "ForkSession", "means a session, and a spare has none", "use NewClient")
	bad(err == nil && spec.Dialect.Name() != claude.Name, "Backend", "knows no spares", "use sdk.Claude")
	bad(o.Spawner != nil && o.Cwd == "", "Cwd", "is empty, and a directory of this machine may not exist where Spawner starts the agent",
		"name a directory that exists there")
	bad(o.Policy != nil && o.Policy.Cwd == "", "Policy.Cwd", "is empty, and the session's directory is not known yet", "name the directory that the rules are about")
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	o.ExtraArgs = maps.Clone(o.ExtraArgs)
	if o.ExtraArgs == nil {
		o.ExtraArgs = make(map[string]Opt[string])
	}
	o.ExtraArgs[awaitClaim] = Opt[string]{}
	if o.Cwd != "" || spec.Program != nil {
		return nil, nil
	}
	if o.Cwd, err = parking(o, home); err != nil {
		return nil, &StartError{Err: fmt.Errorf("create a directory for the prewarmed agent: %w; set Cwd", err)}
	}
	dir := o.Cwd
	return func() error { return os.RemoveAll(dir) }, nil
}

// parking makes a private directory where no project's settings hold.
func parking(o *Options, home *runtime.Runtime) (string, error) {
	get := os.Getenv
	if o.CleanEnv {
		get = func(string) string { return "" }
	}
	config := cmp.Or(o.Env["CLAUDE_CONFIG_DIR"], get("CLAUDE_CONFIG_DIR"))
	if config == "" {
		user := cmp.Or(o.Env["HOME"], get("HOME"))
		if user == "" {
			var err error
			if user, err = os.UserHomeDir(); err != nil {
				return "", err
			}
		}
		config = filepath.Join(user, ".claude")
	}
	spares, err := filepath.Abs(filepath.Join(config, "spares"))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(spares, 0o700); err != nil {
		return "", err
	}
	dir := filepath.Join(spares, fmt.Sprintf("spare-%016x", home.Rand().Uint64()))
	return dir, os.Mkdir(dir, 0o700)
}

// Claim makes a session of a spare that [Prewarm] started. A refusal is a
// *[ControlError] whose text begins with the reason, such as cwd_not_found,
// permission_mode_not_claimable or, of what is no spare or no longer one,
// not_a_spare. The spare stays parked then, except after claim_failed: claim
// something else, or close it and start the session with [NewClient]. What the session's directory decides, such as its commands, is in the
// answer's Initialize; [Client.Initialized] still describes the spare. When ctx or
// Limits.Control ends first the error matches [ErrClaimUnsure]: the claim may have
// been taken. A second Claim finds out: it succeeds, or matches [ErrClaimTaken].
func (c *Client) Claim(ctx context.Context, claim Claim) (*protocol.ClaimSessionResponse, error) {
	if claim.Cwd == "" {
		return nil, &ConfigError{Option: "Claim.Cwd", Problem: "is empty", Fix: "name the session's directory"}
	}
	cwd := claim.Cwd
	if !strings.HasPrefix(cwd, "~") {
		var err error
		if cwd, err = filepath.Abs(cwd); err != nil {
			return nil, &ConfigError{Option: "Claim.Cwd", Problem: err.Error(), Fix: "give an absolute path"}
		}
	}
	req := protocol.ClaimSessionRequest{
		Cwd: cwd, Env: claim.Env, AdditionalDirectories: claim.AdditionalDirectories, PermissionMode: claim.PermissionMode,
		AppendSystemPrompt: claim.AppendSystemPrompt, Title: claim.Title, WorkspaceTrust: claim.WorkspaceTrust,
		IncludeInitialize: true,
	}
	if len(claim.Agents) > 0 {
		var err error
		if req.Agents, err = protocol.Marshal(claim.Agents); err != nil {
			return nil, &ConfigError{Option: "Claim.Agents", Problem: err.Error(), Fix: "give values that JSON can hold"}
		}
	}
	if len(claim.Settings) > 0 {
		if _, err := c.ApplyFlagSettings(ctx, claim.Settings); err != nil {
			return nil, fmt.Errorf("settings before the claim: %w", err)
		}
	}
	claimed, err := ask[protocol.ClaimSessionResponse](ctx, c, req)
	return claimed, c.claimError(err)
}

// claimError says what is known of a claim that failed.
func (c *Client) claimError(err error) error {
	var refused *ControlError
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		c.unsure = true
		return fmt.Errorf("%w: %w", ErrClaimUnsure, err)
	case c.unsure && errors.As(err, &refused) && strings.HasPrefix(refused.Message, "not_a_spare"):
		return fmt.Errorf("%w: %w", ErrClaimTaken, err)
	}
	return err
}
