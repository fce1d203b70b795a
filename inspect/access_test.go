package inspect_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/inspect"
)

const token = "0123456789abcdef-token"

func TestRefusals(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t)
	socket := filepath.Join(privateDir(t), "s.sock")
	listening(t, rt, inspect.Config{Socket: socket})
	port := listening(t, rt, inspect.Config{Address: "127.0.0.1:0", Token: token}).Addr()
	for name, c := range map[string]struct {
		network, address string
		host             string // default: the address, or localhost
		header           http.Header
		method           string
		path             string
		status           int
		says             string
	}{
		"the socket":                    {network: "unix", status: 200},
		"the socket by a loopback name": {network: "unix", host: "127.0.0.1:80", status: 200},
		"the socket by another name":    {network: "unix", host: "evil.example", status: 403, says: "Host"},
		"the socket from another site":  {network: "unix", header: http.Header{"Origin": {"http://evil.example"}}, status: 403, says: "Origin"},
		"the port with the token":       {header: bearer(token), status: 200},
		"the port as localhost":         {host: "LOCALHOST:7", header: bearer(token), status: 200},
		"the port as [::1]":             {host: "[::1]:7", header: bearer(token), status: 200},
		"the port without a token":      {status: 401, says: "Bearer"},
		"the port with another token":   {header: bearer(token + "x"), status: 401, says: "Bearer"},
		"the port with half a token":    {header: bearer(token[:8]), status: 401, says: "Bearer"},
		"the port with another scheme":  {header: http.Header{"Authorization": {"Basic " + token}}, status: 401, says: "Bearer"},
		"the port with the token alone": {header: http.Header{"Authorization": {token}}, status: 401, says: "Bearer"},
		"the port by another name":      {host: "evil.example", header: bearer(token), status: 403, says: "Host"},
		"the port by a local one":       {host: "localhost.evil.example:80", header: bearer(token), status: 403, says: "Host"},
		"the port by another address":   {host: "10.0.0.1", header: bearer(token), status: 403, says: "Host"},
		"the port from another site":    {header: with(bearer(token), "Origin", "http://localhost:3000"), status: 403, says: "Origin"},
		"the port from no site":         {header: with(bearer(token), "Origin", "null"), status: 403, says: "Origin"},
		"the port from its own page":    {host: "localhost:7", header: with(bearer(token), "Origin", "http://localhost:7"), status: 200},
		"a write":                       {network: "unix", method: http.MethodPost, status: 405},
		"a deletion":                    {network: "unix", method: http.MethodDelete, path: "/api/session/s", status: 405},
		"another path":                  {network: "unix", path: "/etc/passwd", status: 404},
		"a session that is not there":   {network: "unix", path: "/api/session/none", status: 404, says: "no session"},
		"its events":                    {network: "unix", path: "/api/events?session=none", status: 404, says: "no session"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := by(t, "tcp", port)
			if c.network == "unix" {
				client = by(t, "unix", socket)
			}
			if c.method == "" {
				c.method = http.MethodGet
			}
			if c.path == "" {
				c.path = "/api/tree"
			}
			req, err := http.NewRequestWithContext(t.Context(), c.method, "http://localhost"+c.path, http.NoBody)
			require.NoError(t, err)
			req.Host = c.host
			if c.header != nil {
				req.Header = c.header
			}
			resp, err := client.Do(req)
			require.NoError(t, err)
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			assert.Equal(t, c.status, resp.StatusCode, "%s", body)
			assert.Contains(t, string(body), c.says)
			assert.NotContains(t, string(body), token)
			assert.Equal(t, "no-store", resp.Header.Get("Cache-Control"))
			assert.Empty(t, resp.Header.Get("Access-Control-Allow-Origin"))
			assert.Equal(t, c.status == 401, resp.Header.Get("WWW-Authenticate") != "")
		})
	}
}

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

func with(h http.Header, key, value string) http.Header {
	h.Set(key, value)
	return h
}

// TestAHandlerOfOnesOwn is in a server of the user's: without a token nobody gets in.
func TestAHandlerOfOnesOwn(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t)
	ask := func(access inspect.Access, host, token string) int {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		server := &http.Server{Handler: inspect.Handler(rt, access)}
		over := make(chan error, 1)
		go func() { over <- server.Serve(l) }()
		defer func() { _, _ = server.Close(), <-over }()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/", http.NoBody)
		require.NoError(t, err)
		req.Host, req.Header = host, bearer(token)
		resp, err := by(t, "tcp", l.Addr().String()).Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		return resp.StatusCode
	}
	assert.Equal(t, 403, ask(inspect.Access{}, "localhost", ""))
	assert.Equal(t, 403, ask(inspect.Access{}, "localhost", token))
	assert.Equal(t, 200, ask(inspect.Access{Token: token}, "localhost", token))
	assert.Equal(t, 403, ask(inspect.Access{Token: token}, "build.example:443", token))
	assert.Equal(t, 200, ask(inspect.Access{Token: token, Hosts: []string{"build.example"}}, "Build.example:443", token))
}

// TestTheTokenIsNotPrinted prints what holds it.
func TestTheTokenIsNotPrinted(t *testing.T) {
	t.Parallel()
	for _, v := range []any{inspect.Access{Token: token}, &inspect.Config{Address: "127.0.0.1:0", Token: token}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			text := fmt.Sprintf(verb, v)
			assert.NotContains(t, text, token)
			assert.Contains(t, text, "Token:(hidden)")
		}
	}
}
