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

	"github.com/agent-troupe/troupe/actors/callback"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// awaitClaim is the flag that parks Claude Code (observed on 2.1.329).
const awaitClaim = "await-claim"

// Claim has the options of a prewarmed session that are known only when the session
// begins; all others are those of [Prewarm]. The zero value of a field changes nothing.
type Claim struct {
	// Cwd is the session's directory. Required. A relative path is relative to the
	// directory of this process.
	Cwd string
	// Env are environment variables of the session. Claude Code accepts
	// CLAUDE_CODE_OAUTH_TOKEN, CLAUDE_CODE_SESSION_ACCESS_TOKEN and
	// CLAUDE_CODE_HOST_SESSION_ID, and refuses variables that it has read at its start.
	Env map[string]string
	// AdditionalDirectories are directories that the agent may work in, as in
	// [Options].
	AdditionalDirectories []string
	// PermissionMode is the session's permission mode. If the agent cannot change to it,
	// the claim is refused.
	PermissionMode PermissionMode
	// AppendSystemPrompt is appended to the system prompt.
	AppendSystemPrompt string
	// Agents are the subagents by name, as in [Options].
	Agents map[string]session.AgentDefinition
	// Title is the session's title.
	Title string
	// WorkspaceTrust says that the user trusts the directory.
	WorkspaceTrust *protocol.WorkspaceTrust
	// Settings, a JSON object, are merged over the agent's settings before the claim, as
	// by [Client.ApplyFlagSettings]. If they are refused, nothing is claimed.
	Settings json.RawMessage
}

// Prewarm starts a spare: a Claude Code process that has no session yet. The spare does
// all work of a start that does not depend on the session's directory, including the
// handshakes of in-process MCP servers. [Client.Claim] later turns it into a session, in
// a fraction of the time of a start. Before the claim, each message fails with a result
// that begins with not_claimed. [Client.Close] ends a spare that is no longer needed.
//
// Claude Code 2.1.329 can be a spare; 2.1.197 ends at once with an *[ExitError]
// (observed). Options that name a session to resume, and policy rules that do not say
// to which directory they apply, are a *[ConfigError].
//
// Options.Cwd is the directory in which the spare waits, not the session's directory. If
// it is empty, Troupe creates a private directory in the agent's configuration directory
// (CLAUDE_CONFIG_DIR, or .claude in HOME), and removes it when the spare has ended. With
// a Spawner it must be set.
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
			_ = remove() // a failure leaves an unused empty directory
		})
	}
	return c, nil
}

// park makes the options those of a spare. If they have no Cwd it
// makes one, which remove removes; otherwise remove is nil.
func park(o *Options, home *runtime.Runtime) (remove func() error, err error) {
	spec, err := specOf(o)
	problems := []error{err}
	if err == nil {
		_, wrong := callback.EnforcePolicy(&spec.Options, nil)
		problems = append(problems, wrong)
	}
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

// Claim turns a spare that [Prewarm] started into a session. The answer's Initialize has
// the properties that depend on the session's directory, such as its commands;
// [Client.Initialized] still describes the spare.
//
// If the agent refuses the claim, the error is a *[ControlError] whose text begins with
// the reason, such as cwd_not_found, permission_mode_not_claimable, or not_a_spare (the
// client was not prewarmed, or was claimed before). After a refusal, except
// claim_failed, the spare can still be claimed with other values. Otherwise close the
// client and start the session with [NewClient].
//
// If ctx or Limits.Control ends first, the error matches [ErrClaimUnsure]: the claim may
// have succeeded. Claim again to find out: the second Claim succeeds, or its error
// matches [ErrClaimTaken].
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
	claimed, err := Call[protocol.ClaimSessionResponse](ctx, c, req)
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
