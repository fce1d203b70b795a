package embedded_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/sdk"
)

// web is an MCP server at a URL, which may want a login.
type web struct {
	*httptest.Server
	url string // of localhost, which is what OAuth takes without TLS

	mu      sync.Mutex
	handler http.Handler
	auth    bool
	token   string   // that it takes
	seen    []string // Authorization headers, and X-Key

	refreshed int // tokens
}

func newWeb(t *testing.T, sse, auth bool) *web {
	t.Helper()
	w := &web{auth: auth, token: "first-token"}
	w.restart(t, sse)
	mux := http.NewServeMux()
	w.Server = httptest.NewServer(mux)
	t.Cleanup(w.CloseClientConnections)
	at, err := url.Parse(w.URL)
	require.NoError(t, err)
	w.url = "http://localhost:" + at.Port()
	mux.HandleFunc("/mcp", w.serve)
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", answerJSON(map[string]any{
		"resource": w.url + "/mcp", "authorization_servers": []string{w.url},
	}))
	mux.HandleFunc("/.well-known/oauth-authorization-server", answerJSON(map[string]any{
		"issuer": w.url, "authorization_endpoint": w.url + "/authorize", "token_endpoint": w.url + "/token",
		"registration_endpoint": w.url + "/register", "response_types_supported": []string{"code"},
		"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"},
	}))
	mux.HandleFunc("/register", func(rw http.ResponseWriter, r *http.Request) {
		var in map[string]any
		_ = json.NewDecoder(r.Body).Decode(&in) // the client's
		in["client_id"] = "client-1"
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(rw).Encode(in)
	})
	mux.HandleFunc("/token", func(rw http.ResponseWriter, r *http.Request) {
		again := r.FormValue("grant_type") == "refresh_token" && r.FormValue("refresh_token") == "refresh-1"
		if !again && (r.FormValue("code") != "code-1" || r.FormValue("code_verifier") == "") {
			http.Error(rw, `{"error":"invalid_grant"}`, http.StatusBadRequest)
			return
		}
		w.mu.Lock()
		token := w.token
		if again {
			w.refreshed++
		}
		w.mu.Unlock()
		// A token of five seconds counts as expired at once: each request gets another one.
		answerJSON(map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 5, "refresh_token": "refresh-1"})(rw, r)
	})
	return w
}

// restart forgets the sessions, as a server does that starts again.
func (w *web) restart(t *testing.T, sse bool) {
	t.Helper()
	s := mcpTestServer(t.TempDir())
	w.mu.Lock()
	defer w.mu.Unlock()
	if sse {
		w.handler = mcpsdk.NewSSEHandler(func(*http.Request) *mcpsdk.Server { return s }, nil)
		return
	}
	w.handler = mcpsdk.NewStreamableHTTPHandler(func(*http.Request) *mcpsdk.Server { return s }, nil)
}

func (w *web) serve(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.seen = append(w.seen, r.Header.Get("Authorization")+r.Header.Get("X-Key"))
	handler, refused := w.handler, w.auth && r.Header.Get("Authorization") != "Bearer "+w.token
	w.mu.Unlock()
	if refused {
		rw.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+w.url+`/.well-known/oauth-protected-resource/mcp"`)
		rw.WriteHeader(http.StatusUnauthorized)
		return
	}
	handler.ServeHTTP(rw, r)
}

func answerJSON(v any) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(v)
	}
}

// Both transports work, and headers go with each request.
func TestServersAtAURL(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"http", "sse"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWeb(t, kind == "sse", false)
			o, seen := logged(t, use("pid"), use("ask"), use("roots"), say("done"), use("pid"), use("pid"), say("again"))
			o.Env = map[string]string{"KEY": "secret"}
			o.MCPServers = map[string]sdk.MCPServerConfig{"db": {Type: kind, URL: w.url + "/mcp", Headers: map[string]string{"X-Key": "${KEY}"}}}
			c := open(t, o)
			ask(t, c, mine)
			all := strings.Join(seen.messages(), "")
			assert.Contains(t, all, "pid ")
			assert.Contains(t, all, "decline")
			assert.Contains(t, all, "file://"+o.Cwd)
			st := status(t, c)
			assert.Equal(t, "connected", st.Status)
			assert.Equal(t, kind, st.Transport)
			w.mu.Lock()
			assert.NotEmpty(t, w.seen)
			for _, key := range w.seen {
				assert.Equal(t, "secret", key)
			}
			w.mu.Unlock()

			w.restart(t, kind == "sse")
			w.CloseClientConnections()
			ask(t, c, more)
			assert.Contains(t, seen.last(), "pid ", "it is connected again")
			for _, list := range seen.tools(t) {
				assert.Equal(t, seen.tools(t)[0], list)
			}
		})
	}
}

// A server that is not there is failed at once, and one that never answers after MCP_TIMEOUT.
func TestServersThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(hangs.CloseClientConnections)
	for name, at := range map[string]string{"refused": "http://127.0.0.1:1/mcp", "hangs": hangs.URL} {
		for _, kind := range []string{"http", "sse"} {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				o, _ := logged(t, say("without it"))
				o.Env = map[string]string{"MCP_TIMEOUT": "300"}
				o.MCPServers = map[string]sdk.MCPServerConfig{"db": {Type: kind, URL: at + "?token=secret"}}
				c := open(t, o)
				assert.Equal(t, "without it", ask(t, c, mine).Result)
				st := status(t, c)
				assert.Equal(t, "failed", st.Status)
				assert.NotEmpty(t, st.Error)
				assert.NotContains(t, st.Error, "secret")
			})
		}
	}
}

// login does what a person and a browser do.
func login(t *testing.T, c *sdk.Client, w *web, code string) error {
	t.Helper()
	a, err := c.AuthenticateMCPServer(limited(t), "db", "http://localhost:9/callback")
	require.NoError(t, err)
	require.True(t, a.RequiresUserAction)
	at, err := url.Parse(a.AuthURL)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(a.AuthURL, w.url+"/authorize"), a.AuthURL)
	assert.Equal(t, "S256", at.Query().Get("code_challenge_method"))
	assert.Equal(t, w.url+"/mcp", at.Query().Get("resource"))
	return c.FinishMCPLogin(limited(t), "db", "http://localhost:9/callback?code="+code+"&state="+url.QueryEscape(at.Query().Get("state")))
}

// A server that wants a login is used after it, by all sessions of the backend.
func TestALoginToAServer(t *testing.T) {
	t.Parallel()
	w := newWeb(t, false, true)
	o, seen := logged(t, say("not yet"), use("pid"), say("done"), say("mine, too"), use("pid"), say("still"))
	o.MCPServers = map[string]sdk.MCPServerConfig{"db": {Type: "http", URL: w.url + "/mcp"}}
	c := open(t, o)
	ask(t, c, mine)
	assert.Equal(t, "needs-auth", status(t, c).Status)
	require.ErrorContains(t, c.FinishMCPLogin(limited(t), "db", "http://localhost:9/callback?code=x"), "no login")
	require.Error(t, login(t, c, w, "wrong"))
	assert.Equal(t, "needs-auth", status(t, c).Status)
	require.NoError(t, login(t, c, w, "code-1"))
	assert.Equal(t, "connected", status(t, c).Status)
	ask(t, c, more)
	assert.Contains(t, seen.last(), "pid ")

	w.mu.Lock()
	assert.Positive(t, w.refreshed, "the token was renewed")
	w.mu.Unlock()

	next := *o
	other := open(t, &next)
	require.Eventually(t, func() bool { return status(t, other).Status == "connected" }, time.Minute, time.Millisecond, "one login is enough")
	a, err := other.AuthenticateMCPServer(limited(t), "db", "http://localhost:9/callback")
	require.NoError(t, err)
	assert.True(t, a.RequiresUserAction)
	ask(t, c, more)
	ask(t, c, more)
	assert.Contains(t, seen.last(), "pid ", "the login in use stays until the next one has succeeded")

	w.mu.Lock()
	w.token = "another-token" // the first has expired
	w.mu.Unlock()
	require.NoError(t, c.ClearMCPLogin(limited(t), "db"))
	assert.Equal(t, "needs-auth", status(t, c).Status)
	assert.NotContains(t, strings.Join(seen.messages(), ""), "first-token")
	require.Error(t, c.ClearMCPLogin(limited(t), "none"))
}
