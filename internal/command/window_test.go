package command

import (
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTopWindowBeyondThisMachine needs a token.
func TestTopWindowBeyondThisMachine(t *testing.T) {
	t.Parallel()
	for args, says := range map[string]string{
		"--ui=0.0.0.0:0":         "by which name",
		"--ui=[::]:0":            "by which name",
		"--ui=:0":                "by which name",
		"--ui=10.1.2.3:0":        envWindowToken,
		"--ui=example.invalid:0": envWindowToken,
		"--ui=8080":              "HOST:PORT",
	} {
		w := newWorld()
		assert.Equal(t, exitUsage, w.run("top", args), args)
		assert.Contains(t, w.err.String(), says, args)
	}
}

// TestTheWindowIsBelowASecretPath: a login stays with the window. A browser sends a cookie to all ports of a host, and so to
// the server of an agent's program.
func TestTheWindowIsBelowASecretPath(t *testing.T) {
	t.Parallel()
	w := newWorld()
	over := w.start("top", "--ui")
	w.err.await(t, "login?code=")
	address := regexp.MustCompile(`http://\S+`).FindString(w.err.String())
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	client := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(address string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
		require.NoError(t, err)
		resp, err := client.Do(r)
		require.NoError(t, err)
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	cookie := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { cookie <- r.Header.Get("Cookie") }))
	t.Cleanup(other.Close)
	base, _, _ := strings.Cut(address, "login?")
	assert.Equal(t, http.StatusUnauthorized, get(base+"api/hello"))
	assert.Equal(t, http.StatusOK, get(address))
	assert.Equal(t, http.StatusOK, get(base+"api/hello"))
	for _, path := range []string{"/", "/api/hello", "/login"} {
		get(other.URL + path)
		assert.Empty(t, <-cookie, path)
	}
	root, err := url.Parse(base)
	require.NoError(t, err)
	root.Path = "/"
	assert.Equal(t, http.StatusNotFound, get(root.String()))
	w.signal <- os.Interrupt
	assert.Equal(t, exitOK, <-over)
}

// TestThePathOfAWindow is another one for each window, but with a token, so that people find it again.
func TestThePathOfAWindow(t *testing.T) {
	t.Parallel()
	path := func(token string) string {
		_, path := below(http.NotFoundHandler(), token)
		return path
	}
	const token = "0123456789abcdef"
	first, again := path(""), path("")
	assert.NotEqual(t, first, again)
	first, again = path(token), path(token)
	assert.Equal(t, first, again)
	assert.NotEqual(t, first, path(token+"0"))
	assert.NotContains(t, first, token)
}
