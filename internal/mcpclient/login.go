package mcpclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// ErrNeedsLogin says that a server wants a login, and has no valid one.
var ErrNeedsLogin = errors.New("the MCP server wants a login")

// errNoLogin says that a login ends that has not begun.
var errNoLogin = errors.New("no login to this MCP server has begun, or it is over; begin one")

// DefaultRedirect is where the browser goes after a login, if the caller names no address. Nothing listens there:
// the address that the browser shows is what ends the login.
const DefaultRedirect = "http://localhost:3118/callback"

// Login is the login to a server with OAuth 2.1, as MCP has it: discovery, registration of the
// client unless ClientID is set, authorization code with PKCE, refresh. Tokens are kept in
// memory. It is safe for concurrent use, and implements [auth.OAuthHandler].
type Login struct {
	Exec session.Executor
	// ClientID and ClientSecret are those of a client that is registered; "": it registers itself.
	ClientID, ClientSecret string

	mu      sync.Mutex
	handler *auth.AuthorizationCodeHandler // of the login in use; nil before the first one
	flow    *flow                          // the login that is under way; nil: none
	refused bool                           // a request was refused for want of a login
}

// flow is a login under way.
type flow struct {
	handler *auth.AuthorizationCodeHandler
	url     *kernel.Promise[string]                    // what a person has to open; "": nothing
	result  *kernel.Promise[*auth.AuthorizationResult] // what the browser came back with
	over    *kernel.Promise[struct{}]
	cancel  context.CancelCauseFunc
}

var _ auth.OAuthHandler = (*Login)(nil)

// TokenSource implements [auth.OAuthHandler].
func (l *Login) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	l.mu.Lock()
	handler := l.handler
	if f := l.flowOf(ctx); f != nil {
		handler = f.handler
	}
	l.mu.Unlock()
	if handler == nil {
		return nil, nil //nolint:nilnil // there is none, as the interface has it
	}
	return handler.TokenSource(ctx)
}

// flowKey marks the requests of a login: only they may ask a person.
type flowKey struct{}

// flowOf is the login under way if the request is one of it, or nil; the lock is held.
func (l *Login) flowOf(ctx context.Context) *flow {
	if f, _ := ctx.Value(flowKey{}).(*flow); f != nil && f == l.flow {
		return f
	}
	return nil
}

// Authorize implements [auth.OAuthHandler].
func (l *Login) Authorize(ctx context.Context, q *http.Request, a *http.Response) error {
	l.mu.Lock()
	f := l.flowOf(ctx)
	if f == nil {
		l.refused = true
		l.mu.Unlock()
		_ = a.Body.Close()
		return ErrNeedsLogin
	}
	l.mu.Unlock()
	return f.handler.Authorize(ctx, q, a)
}

// wanted reports whether a request was refused for want of a login, and forgets it.
func (l *Login) wanted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.refused
	l.refused = false
	return was
}

// Begin begins a login, in place of one that is under way, and returns what a person has to
// open; "": the server wants no login. The person has until ctx of the whole login ends, which is
// live. Until it has succeeded, requests use the login that there was before.
func (l *Login) Begin(ctx, live context.Context, r *Remote, redirect string) (string, error) {
	redirect = cmp.Or(redirect, DefaultRedirect)
	f := &flow{
		url: kernel.NewPromise[string](), result: kernel.NewPromise[*auth.AuthorizationResult](), over: kernel.NewPromise[struct{}](),
	}
	live, f.cancel = context.WithCancelCause(context.WithValue(live, flowKey{}, f))
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: redirect, RequestRefreshToken: true, Client: &http.Client{Transport: r.Transport},
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			f.url.Resolve(args.URL)
			return f.result.Wait(ctx, l.Exec)
		},
	}
	if l.ClientID != "" {
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: l.ClientID}
		if l.ClientSecret != "" {
			c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: l.ClientSecret}
		}
	} else {
		c.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "Troupe", RedirectURIs: []string{redirect}, ResponseTypes: []string{"code"},
			GrantTypes: []string{"authorization_code", "refresh_token"}, TokenEndpointAuthMethod: "none",
		}}
	}
	var err error
	if f.handler, err = auth.NewAuthorizationCodeHandler(c); err != nil {
		f.cancel(err)
		return "", err
	}
	l.mu.Lock()
	if l.flow != nil {
		l.flow.cancel(errors.New("another login to the MCP server has begun"))
	}
	l.flow = f
	l.mu.Unlock()
	l.Exec.Go(func() {
		conn, err := r.dial(live, l)
		if err == nil {
			_ = conn.End(true)
		}
		l.mu.Lock()
		if l.flow == f {
			if l.flow = nil; err == nil {
				l.handler = f.handler
			}
		}
		l.mu.Unlock()
		f.cancel(nil)
		if err != nil {
			f.url.Fail(err)
			f.over.Fail(err)
			return
		}
		f.url.Resolve("")
		f.over.Resolve(struct{}{})
	})
	return f.url.Wait(ctx, l.Exec)
}

// Finish ends a login with the URL to which the browser was sent.
func (l *Login) Finish(ctx context.Context, callback string) error {
	l.mu.Lock()
	f := l.flow
	l.mu.Unlock()
	if f == nil {
		return errNoLogin
	}
	at, err := url.Parse(callback)
	if err != nil {
		return errors.New("the callback of a login is no URL") // the error would repeat it
	}
	q := at.Query()
	if code := q.Get("error"); code != "" {
		err := fmt.Errorf("the login was refused: %s %s", code, q.Get("error_description"))
		f.result.Fail(err)
		return err
	}
	if q.Get("code") == "" {
		return errors.New("the callback of a login has no code")
	}
	f.result.Resolve(&auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")})
	_, err = f.over.Wait(ctx, l.Exec)
	return err
}

// Forget forgets the login, and ends one that is under way.
func (l *Login) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flow != nil {
		l.flow.cancel(errors.New("the login was taken back"))
	}
	l.handler, l.flow = nil, nil
}
