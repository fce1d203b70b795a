package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/examples/internal/choice"
	"github.com/agent-troupe/troupe/runtime"
)

// serve starts the server. At the end of the test, when every page is gone, no
// session may be left.
func serve(t *testing.T) string {
	t.Helper()
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	opts, err := (&choice.Agent{Dir: t.TempDir()}).Options()
	require.NoError(t, err)
	opts.Runtime = rt
	server := httptest.NewServer(newSessions(*opts).routes())
	t.Cleanup(func() {
		server.Close() // waits for the requests
		assert.Empty(t, rt.Sessions())
		assert.NoError(t, rt.Shutdown(context.Background()))
	})
	return server.URL
}

func TestManyPagesAtOnce(t *testing.T) {
	t.Parallel()
	address := serve(t)
	var pages sync.WaitGroup
	for range 5 {
		pages.Go(func() {
			var kinds []string
			err := visit(t.Context(), address, "What is in this directory?", func(_, kind, _ string) {
				if kind != "state" && (len(kinds) == 0 || kinds[len(kinds)-1] != kind) {
					kinds = append(kinds, kind)
				}
			})
			assert.NoError(t, err)
			assert.Equal(t, []string{"text", "call", "output", "text", "done"}, kinds)
		})
	}
	pages.Wait()
}

func TestStop(t *testing.T) {
	t.Parallel()
	var stop sync.Once
	var last string
	err := visit(t.Context(), serve(t), "Sleep 20 seconds.", func(session, kind, data string) {
		if last = data; kind == "call" {
			stop.Do(func() { assert.NoError(t, post(t.Context(), session+"/interrupt", nil)) })
		}
	})
	require.NoError(t, err)
	assert.JSONEq(t, `{"ok":false,"why":"stopped"}`, last)
}

func TestOtherSitesAreKeptOut(t *testing.T) {
	t.Parallel()
	address := serve(t)
	for name, change := range map[string]func(*http.Request){
		"another name":   func(r *http.Request) { r.Host = "rebound.example" },
		"another origin": func(r *http.Request) { r.Header.Set("Origin", "https://elsewhere.example") },
		"a guessed id":   func(*http.Request) {},
	} {
		body := strings.NewReader(url.Values{"text": {"Hello."}}.Encode())
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/sessions/X/prompt", body)
		require.NoError(t, err)
		change(r)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		assert.GreaterOrEqual(t, answer.StatusCode, 400, name)
	}
}
