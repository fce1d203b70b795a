package ui_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/inspect/ui"
)

// TestAddressOfOneLogin is what a program prints.
func TestAddressOfOneLogin(t *testing.T) {
	t.Parallel()
	w := ui.Handler(newRuntime(t), open())
	p := serve(t, w)
	status, _, _ := p.get("api/hello")
	require.Equal(t, http.StatusUnauthorized, status)
	address := w.Login(p.base, "mira")
	path := strings.TrimPrefix(address, p.base)

	status, _, _ = p.do(http.MethodHead, path, "", nil)
	assert.Equal(t, http.StatusForbidden, status, "a look ahead does not use the code")
	status, _, _ = p.do(http.MethodGet, path, "", func(r *http.Request) { r.Header.Set("Sec-Purpose", "prefetch;prerender") })
	assert.Equal(t, http.StatusForbidden, status)

	status, text, header := p.get(path)
	require.Equal(t, http.StatusOK, status)
	assert.Contains(t, text, `content="0;url=./"`)
	cookie := header.Get("Set-Cookie")
	assert.Contains(t, cookie, "HttpOnly")
	assert.Contains(t, cookie, "SameSite=Strict")
	var hello struct {
		Who, CSRF      string
		Steer, Content bool
	}
	p.read("api/hello", &hello)
	assert.Equal(t, "mira", hello.Who)
	assert.True(t, hello.Steer)
	assert.True(t, hello.Content)
	assert.NotEmpty(t, hello.CSRF)

	other := &page{t: t, w: w, http: browser(t), base: p.base}
	status, text, header = other.get(path)
	assert.Equal(t, http.StatusUnauthorized, status, "a code works once")
	assert.Empty(t, header.Get("Set-Cookie"))
	assert.NotContains(t, text, "refresh")
	status, _, _ = other.get("api/sessions")
	assert.Equal(t, http.StatusUnauthorized, status)
	status, _, _ = p.get(path)
	assert.Equal(t, http.StatusOK, status, "the same browser goes on")

	p.csrf = hello.CSRF
	status, _, _ = p.do(http.MethodPost, "logout", "", nil)
	assert.Equal(t, http.StatusNoContent, status)
	status, _, _ = p.get("api/sessions")
	assert.Equal(t, http.StatusUnauthorized, status)
}

// TestLoginForm is the page of who has the token.
func TestLoginForm(t *testing.T) {
	t.Parallel()
	cfg := open()
	cfg.Access.Token = token
	p := serve(t, ui.Handler(newRuntime(t), cfg))
	for body, want := range map[string]int{
		`{"code": "` + token + `x"}`:                  http.StatusUnauthorized,
		`{"code": ""}`:                                http.StatusUnauthorized,
		`code=` + token:                               http.StatusBadRequest,
		`{"code": " ` + token + ` ", "name": "mira"}`: http.StatusNoContent,
	} {
		other := &page{t: t, http: browser(t), base: p.base}
		status, text, _ := other.do(http.MethodPost, "login", body, nil)
		assert.Equal(t, want, status, body)
		assert.NotContains(t, text, token)
		status, _, _ = other.get("api/hello")
		assert.Equal(t, want == http.StatusNoContent, status == http.StatusOK, body)
	}
	status, _, _ := p.do(http.MethodPost, "login", `{"code": "`+token+`"}`, func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") })
	assert.Equal(t, http.StatusForbidden, status)
}

// TestGate is every endpoint against every way in that is closed.
func TestGate(t *testing.T) {
	t.Parallel()
	cfg := open()
	cfg.Access.Token = token
	p := serve(t, ui.Handler(newRuntime(t), cfg)).enter("mira")
	anybody := &page{t: t, http: browser(t), base: p.base, csrf: p.csrf}
	bearer := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	reads := []string{"api/hello", "api/hosts", "api/tree", "api/sessions", "api/jobs", "api/approvals"}
	for _, path := range reads {
		for name, c := range map[string]struct {
			as     *page
			change func(*http.Request)
			want   int
		}{
			"login":       {p, nil, 200},
			"token":       {anybody, bearer, 200},
			"nobody":      {anybody, nil, 401},
			"other token": {anybody, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token+"x") }, 401},
			"other host":  {p, func(r *http.Request) { r.Host = "evil.example" }, 403},
			"other site":  {p, func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
			"no site":     {p, func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
			"other cookie": {anybody, func(r *http.Request) {
				r.AddCookie(&http.Cookie{Name: "troupe", Value: strings.Repeat("A", 26)})
			}, 401},
		} {
			status, text, header := c.as.do(http.MethodGet, path, "", c.change)
			assert.Equal(t, c.want, status, "%s, %s: %s", path, name, text)
			policy := header.Get("Content-Security-Policy")
			assert.Contains(t, policy, "default-src 'none'; script-src 'self'")
			assert.NotContains(t, policy, "unsafe")
			assert.Equal(t, "no-store", header.Get("Cache-Control"))
		}
		status, _, _ := p.do(http.MethodPost, path, "", nil)
		assert.Contains(t, []int{404, 405}, status, path)
	}
}

// TestChangesNeedTheirToken is a page of another site that uses the cookie of this one.
func TestChangesNeedTheirToken(t *testing.T) {
	t.Parallel()
	p := serve(t, ui.Handler(newRuntime(t), open())).enter("")
	for name, change := range map[string]func(*http.Request){
		"without the header": func(r *http.Request) { r.Header.Del("X-Troupe-Csrf") },
		"another token":      func(r *http.Request) { r.Header.Set("X-Troupe-Csrf", "x") },
		"another origin":     func(r *http.Request) { r.Header.Set("Origin", "http://localhost:1") },
		"another site":       func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"another port":       func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"another host":       func(r *http.Request) { r.Host = "evil.example" },
	} {
		status, text, _ := p.do(http.MethodPost, "logout", "", change)
		assert.Equal(t, http.StatusForbidden, status, name)
		assert.NotEmpty(t, text, name)
	}
	status, _, _ := p.get("api/hello")
	assert.Equal(t, http.StatusOK, status, "nothing has changed")
}

// ask asks a handler with the token.
func ask(t *testing.T, h http.Handler, path string) (status int, text string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, http.NoBody)
	r.Header.Set("Authorization", "Bearer "+token)
	rw := httptest.NewRecorder()
	h.ServeHTTP(rw, r)
	return rw.Code, rw.Body.String()
}

// TestWhereItIsMounted is the same window behind different muxes.
func TestWhereItIsMounted(t *testing.T) {
	t.Parallel()
	w := ui.Handler(newRuntime(t), ui.Config{Access: inspect.Access{Token: token}})
	for path, mount := range map[string]func(*http.ServeMux){
		"/api/hosts":         func(m *http.ServeMux) { m.Handle("/", w) },
		"/a/b/api/hosts":     func(m *http.ServeMux) { m.Handle("/a/b/", w) },
		"/x/7/ui/api/hosts":  func(m *http.ServeMux) { m.Handle("/x/{tenant}/ui/", w) },
		"/r/api/hosts":       func(m *http.ServeMux) { m.Handle("GET /r/{rest...}", w) },
		"/s/api/hosts":       func(m *http.ServeMux) { m.Handle("/s/", http.StripPrefix("/s", w)) },
		"/api/api/api/hosts": func(m *http.ServeMux) { m.Handle("/api/api/", w) },
	} {
		mux := http.NewServeMux()
		mount(mux)
		status, text := ask(t, mux, path)
		assert.Equal(t, http.StatusOK, status, "%s: %s", path, text)
		status, text = ask(t, mux, strings.TrimSuffix(path, "api/hosts"))
		assert.Equal(t, http.StatusOK, status, "%s: the index", path)
		assert.Contains(t, text, "<title>Troupe</title>")
	}
}
