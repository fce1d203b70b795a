package ui_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/inspect/ui"
	"github.com/agent-troupe/troupe/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "0123456789abcdef-token"

// newRuntime is a runtime that ends with the test.
func newRuntime(t *testing.T) *runtime.Runtime {
	t.Helper()
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rt.Shutdown(context.Background())) })
	return rt
}

// page is a browser that looks at a window.
type page struct {
	t    *testing.T
	w    *ui.Window
	http *http.Client
	base string // with a slash at its end
	csrf string
}

// serve mounts a window below /troupe/ of a server that ends with the test.
func serve(t *testing.T, w *ui.Window) *page {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/troupe/", w)
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		w.Close() // what it runs is over before the test is
	})
	return &page{t: t, w: w, http: browser(t), base: server.URL + "/troupe/"}
}

// browser is a client with cookies.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Jar: jar, Transport: transport}
}

// enter logs in by an address of the window, and reads hello.
func (p *page) enter(who string) *page {
	p.t.Helper()
	status, _, _ := p.get(strings.TrimPrefix(p.w.Login(p.base, who), p.base))
	require.Equal(p.t, http.StatusOK, status)
	var hello struct{ CSRF string }
	p.read("api/hello", &hello)
	p.csrf = hello.CSRF
	return p
}

// do makes a request as the page does; change may make another one of it.
func (p *page) do(method, path, body string, change func(*http.Request)) (status int, text string, header http.Header) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.base+path, strings.NewReader(body))
	require.NoError(p.t, err)
	if method == http.MethodPost {
		r.Header.Set("X-Troupe-Csrf", p.csrf)
		r.Header.Set("Origin", strings.TrimSuffix(p.base, "/troupe/"))
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	if change != nil {
		change(r)
	}
	resp, err := p.http.Do(r)
	require.NoError(p.t, err)
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(p.t, err)
	return resp.StatusCode, string(raw), resp.Header
}

func (p *page) get(path string) (status int, text string, header http.Header) {
	p.t.Helper()
	return p.do(http.MethodGet, path, "", nil)
}

// read reads JSON.
func (p *page) read(path string, to any) {
	p.t.Helper()
	status, text, _ := p.get(path)
	require.Equal(p.t, http.StatusOK, status, text)
	require.NoError(p.t, json.Unmarshal([]byte(text), to), text)
}

// open is what a window of a command gives.
func open() ui.Config { return ui.Config{Access: inspect.Access{Content: true, Steer: true}} }
