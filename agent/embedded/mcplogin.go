package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/base/wire"
	"github.com/agent-troupe/troupe/internal/mcpclient"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// logins are those to MCP servers, in memory. The sessions of a backend share them: one login is
// enough for all.
type logins struct {
	mu  sync.Mutex
	all map[loginKey]*mcpclient.Login
}

type loginKey struct{ url, client, secret string }

// client is MCPServerConfig.OAuth: a client that is registered, and the port of [mcpclient.DefaultRedirect].
type client struct {
	ID     string `json:"clientId"`
	Secret string `json:"clientSecret"`
	Port   int    `json:"callbackPort"`

	Extra map[string]json.RawMessage `json:"-"`
}

// UnmarshalJSON decodes a client. Keys that are not known go to Extra.
func (c *client) UnmarshalJSON(b []byte) error {
	type plain client
	return wire.UnmarshalWith(protocol.Unmarshal, b, (*plain)(c), &c.Extra)
}

func (l *logins) of(exec session.Executor, url string, config json.RawMessage) *mcpclient.Login {
	var c client
	_ = protocol.Unmarshal(config, &c) // it was checked
	key := loginKey{url, c.ID, c.Secret}
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.all[key]; known != nil {
		return known
	}
	if l.all == nil || len(l.all) == maxShared {
		l.all = map[loginKey]*mcpclient.Login{}
	}
	made := &mcpclient.Login{Exec: exec, ClientID: c.ID, ClientSecret: c.Secret}
	l.all[key] = made
	return made
}

// errNoLogins says that a server has no login of this kind.
var errNoLogins = errors.New("logins are for MCP servers of type http without an Authorization header")

// loginError is what the model reads of a call without a login.
type loginError struct{ server string }

func (e *loginError) Error() string {
	return "MCP server " + e.server + " wants a login, which the user has to make"
}

// Unwrap returns agent.ErrNeedsLogin.
func (*loginError) Unwrap() error { return agent.ErrNeedsLogin }

// Login implements [agent.MCPServer].
func (m *server) Login(ctx context.Context, redirect string) (string, error) {
	if m.remote == nil || m.remote.Login == nil {
		return "", fmt.Errorf("MCP server %s: %w", m.name, errNoLogins)
	}
	live, cancel := context.WithCancelCause(context.Background())
	timer := m.of.seams.Clock.AfterFunc(loginLimit, func() { cancel(errTimedOut) })
	m.mu.Lock()
	before := m.endLogin
	m.endLogin = func() {
		timer.Stop()
		cancel(errServersOver)
	}
	m.mu.Unlock()
	if before != nil {
		before()
	}
	return m.remote.Login.Begin(ctx, live, m.remote, m.redirect(redirect))
}

// redirect is where the browser goes after a login: where the host says, or to the port of the configuration.
func (m *server) redirect(asked string) string {
	var c client
	if asked != "" || len(m.config.OAuth) == 0 || protocol.Unmarshal(m.config.OAuth, &c) != nil || c.Port == 0 {
		return asked
	}
	return fmt.Sprintf("http://localhost:%d/callback", c.Port)
}

// FinishLogin implements [agent.MCPServer].
func (m *server) FinishLogin(ctx context.Context, callback string) error {
	if m.remote == nil || m.remote.Login == nil {
		return fmt.Errorf("MCP server %s: %w", m.name, errNoLogins)
	}
	return m.remote.Login.Finish(ctx, callback)
}

// Logout implements [agent.MCPServer].
func (m *server) Logout(context.Context) error {
	if m.remote == nil || m.remote.Login == nil {
		return fmt.Errorf("MCP server %s: %w", m.name, errNoLogins)
	}
	m.remote.Login.Forget()
	return m.client.Disconnect()
}
