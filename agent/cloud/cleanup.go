package cloud

import (
	"context"
	"net/http"
	"net/url"
	"os"

	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// Cleanup archives and deletes agents and sessions of the cloud. The paths are those that the
// service documents. It is safe for concurrent use.
//
// A request that surely had no effect, because there was no connection or the service is too
// busy (429), is made up to 5 times. Any other failure is a *[session.CloudError]: of an id that
// does not exist its Status is 404. Each attempt ends after 30 s, all of them with ctx.
type Cleanup struct {
	cfg  target
	host backend.Seams
}

// NewCleanup returns what cleans up after sessions with these options. Of the options it
// uses Backend, which must be one of [Backend], Auth, Env, UnsetEnv and CleanEnv. It needs
// no session, and none may use what it removes. Options of another backend, or without an
// access token, are a *[session.ConfigError].
func NewCleanup(o *session.Options) (*Cleanup, error) {
	b, ok := o.Backend.(*service)
	if !ok {
		return nil, &session.ConfigError{Option: "Backend", Problem: "does not run in the cloud", Fix: "use cloud.Backend"}
	}
	in := dialect.Input{Options: *o, Facts: dialect.Facts{ParentEnv: os.Environ()}}
	t, err := b.target(&in)
	if err != nil {
		return nil, err
	}
	if _, err := qoder.AccessToken(&in); err != nil {
		return nil, &session.ConfigError{Option: "Auth", Backend: qoder.Name, Problem: err.Error(), Fix: "use session.AccessToken or session.AccessTokenFromEnv"}
	}
	return &Cleanup{t, backend.Seams{Clock: kernel.NewClock(nil), Exec: kernel.GoExecutor{}, Rand: kernel.NewRand(nil)}}, nil
}

// Archive archives what the event says was created: the session, then the agent. Lists of the
// service no longer show them, their data stays, and nothing is posted to them any more. It
// stops at the first failure.
func (c *Cleanup) Archive(ctx context.Context, made *session.CloudOpened) error {
	return created(ctx, made, c.ArchiveSession, c.ArchiveAgent)
}

// Delete deletes what the event says was created, for good: the session with its events, then
// the agent. It stops at the first failure.
func (c *Cleanup) Delete(ctx context.Context, made *session.CloudOpened) error {
	return created(ctx, made, c.DeleteSession, c.DeleteAgent)
}

func created(ctx context.Context, made *session.CloudOpened, ofSession, ofAgent func(context.Context, string) error) error {
	if made.SessionCreated {
		if err := ofSession(ctx, made.SessionID); err != nil {
			return err
		}
	}
	if made.AgentCreated {
		return ofAgent(ctx, made.AgentID)
	}
	return nil
}

// ArchiveSession archives a session of the cloud. The service cannot restore it.
func (c *Cleanup) ArchiveSession(ctx context.Context, id string) error {
	return c.do(ctx, "archive session", http.MethodPost, "/sessions/"+url.PathEscape(id)+"/archive")
}

// ArchiveAgent archives an agent of the cloud, which can still be found by its id.
func (c *Cleanup) ArchiveAgent(ctx context.Context, id string) error {
	return c.do(ctx, "archive agent", http.MethodPost, "/agents/"+url.PathEscape(id)+"/archive")
}

// DeleteSession deletes a session of the cloud with all its events, for good.
func (c *Cleanup) DeleteSession(ctx context.Context, id string) error {
	return c.do(ctx, "delete session", http.MethodDelete, "/sessions/"+url.PathEscape(id))
}

// DeleteAgent deletes an agent of the cloud for good. The service may want the rights of an
// administrator for it (status 403).
func (c *Cleanup) DeleteAgent(ctx context.Context, id string) error {
	return c.do(ctx, "delete agent", http.MethodDelete, "/agents/"+url.PathEscape(id))
}

func (c *Cleanup) do(ctx context.Context, op, method, path string) error {
	rt, done := c.cfg.transport()
	defer done()
	requests := client{base: c.cfg.BaseURL, token: c.cfg.token, http: rt, clock: c.host.Clock}
	for try := 1; ; try++ {
		err := requests.bare(ctx, op, method, path)
		if err == nil {
			return nil
		}
		after, again := hadNoEffect(err)
		if !again || try >= maxTries || !sleep(ctx, c.host, max(after, backoff(c.host.Rand, try))) {
			return err
		}
	}
}
