package control_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/control"
)

func TestWebhook(t *testing.T) {
	t.Parallel()
	const secret = "0123456789abcdef"
	at := time.Unix(1_700_000_000, 0)
	var header http.Header
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header
		body, _ = io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/", http.StatusTemporaryRedirect)
		case "/broken":
			http.Error(w, "no", http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	hook := control.Webhook{URL: server.URL, Secret: secret}
	a := fleet.Approval{ID: "x", Task: "t", Tool: "Bash", Input: []byte(`{"command":"ls"}`), At: at}
	for path, says := range map[string]string{"/moved": "307", "/broken": "500"} {
		require.ErrorContains(t, (&control.Webhook{URL: server.URL + path, Secret: secret}).Notify(t.Context(), a), says)
	}
	require.ErrorContains(t, (&control.Webhook{URL: server.URL, Secret: "short"}).Notify(t.Context(), a), "guessed")
	before := time.Now().Truncate(time.Second)
	require.NoError(t, hook.Notify(t.Context(), a))
	seconds, err := strconv.ParseInt(header.Get(control.TimestampHeader), 10, 64)
	require.NoError(t, err)
	sent := time.Unix(seconds, 0)
	assert.False(t, sent.Before(before), "a call that has waited since last night is signed when it is sent")
	assert.JSONEq(t, `{"id":"x","task":"t","attempt":0,"tool":"Bash","input":{"command":"ls"},"at":"`+at.Format(time.RFC3339)+`"}`, string(body))
	require.NoError(t, control.Verify(secret, header, body, sent.Add(time.Minute), 5*time.Minute))
	for name, c := range map[string]struct {
		secret string
		change func(http.Header) []byte
		now    time.Time
	}{
		"another secret": {"0123456789abcdeX", func(http.Header) []byte { return body }, sent},
		"no secret":      {"", func(http.Header) []byte { return body }, sent},
		"another body":   {secret, func(http.Header) []byte { return append([]byte(" "), body...) }, sent},
		"another time":   {secret, func(h http.Header) []byte { h.Set(control.TimestampHeader, "1700000001"); return body }, sent},
		"no time":        {secret, func(h http.Header) []byte { h.Del(control.TimestampHeader); return body }, sent},
		"another version": {secret, func(h http.Header) []byte {
			h.Set(control.SignatureHeader, "v2="+h.Get(control.SignatureHeader)[3:])
			return body
		}, sent},
		"no signature":      {secret, func(h http.Header) []byte { h.Del(control.SignatureHeader); return body }, sent},
		"an old one":        {secret, func(http.Header) []byte { return body }, sent.Add(5*time.Minute + time.Second)},
		"one of the future": {secret, func(http.Header) []byte { return body }, sent.Add(-5*time.Minute - time.Second)},
	} {
		h := header.Clone()
		text := c.change(h)
		require.ErrorIs(t, control.Verify(c.secret, h, text, c.now, 5*time.Minute), control.ErrSignature, name)
	}
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		assert.NotContains(t, fmt.Sprintf(verb, hook), secret)
	}
}

// The URL is a secret for many services.
func TestWebhookErrorsHideTheURL(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(server.Close)
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, url := range map[string]string{
		"refuses":      server.URL + "/hidden?token=hidden",
		"is gone":      gone.URL + "/hidden?token=hidden",
		"has a login":  "http://hidden:hidden@" + gone.Listener.Addr().String(),
		"an escape":    "http://127.0.0.1/%hidden",
		"a port":       "http://127.0.0.1:hidden/x",
		"a character":  "http://127.0.0.1\x7f/hidden",
		"a scheme":     "hidden://127.0.0.1/hidden",
		"no host":      "http:///hidden",
		"a bad scheme": "hid den://x",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := (&control.Webhook{URL: url, Secret: "0123456789abcdef"}).Notify(t.Context(), fleet.Approval{ID: "x"})
			require.ErrorContains(t, err, "webhook")
			if name != "a scheme" { // which is none
				assert.NotContains(t, err.Error(), "hidden")
			}
		})
	}
}
