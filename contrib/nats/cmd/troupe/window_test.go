package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// browser is a client of a window.
type browser struct {
	*http.Client
	base, csrf string
}

// ask makes a request, and decodes the answer.
func (b *browser) ask(t *testing.T, method, path, body string, to any) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, b.base+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("X-Troupe-Csrf", b.csrf)
	resp, err := b.Do(r)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	if to != nil {
		require.NoError(t, json.Unmarshal(raw, to), "%s: %s", path, raw)
	}
	return resp.StatusCode
}

// The window of a cluster shows workers, jobs and accounts, and steers them.
func TestTheWindowOfACluster(t *testing.T) {
	t.Parallel()
	_, url := first(t, "-j", "2")
	second := start(t, "worker", "--nats", url, "--dir", t.TempDir(), "--name", "second", "-j", "1")
	second.await(t, "worker second in")
	window := start(t, "top", "--cluster", "--nats", url, "--ui", "--ui-steer", "--ui-content")
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	b := &browser{Client: &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}}
	login := window.await(t, `(http://127\.0\.0\.1:\d+/login\?code=\w+)`)
	b.base, _, _ = strings.Cut(login, "login?")
	require.Equal(t, http.StatusOK, b.ask(t, http.MethodGet, strings.TrimPrefix(login, b.base), "", nil))
	var hello struct{ CSRF string }
	b.ask(t, http.MethodGet, "api/hello", "", &hello)
	b.csrf = hello.CSRF

	file, agent := tasks(t, 24, 500*time.Millisecond)
	run(t, "batch", file, "--nats", url, "--agent", agent, "--id", "w", "--account", "shared", "--detach")
	var hosts []struct {
		ID    string
		Drain bool
	}
	b.ask(t, http.MethodGet, "api/hosts", "", &hosts)
	require.Len(t, hosts, 3)
	ids := map[string]bool{}
	for _, h := range hosts {
		ids[h.ID] = h.Drain
	}
	assert.Equal(t, map[string]bool{"servers": false, "first": true, "second": true}, ids)

	type job struct {
		Job    string
		HostID string `json:"host_id"`
		Paused bool
		Total  int
		States map[string]int
	}
	var jobs struct{ Jobs []job }
	seen := func(ok func(j *job) bool) {
		t.Helper()
		require.Eventually(t, func() bool {
			b.ask(t, http.MethodGet, "api/jobs", "", &jobs)
			return len(jobs.Jobs) == 1 && ok(&jobs.Jobs[0])
		}, time.Minute, 100*time.Millisecond, "%v", &jobs)
	}
	seen(func(j *job) bool { return j.States["over"] > 0 && j.States["running"] > 0 && j.HostID == "servers" })
	var table struct {
		Sessions []struct{ Host, Job, Task string }
	}
	require.Eventually(t, func() bool {
		b.ask(t, http.MethodGet, "api/sessions", "", &table)
		return len(table.Sessions) > 0 && table.Sessions[0].Job == "w"
	}, time.Minute, 100*time.Millisecond, "what a worker runs")

	for path, body := range map[string]string{"jobs/w/pause": "", "accounts/shared/retune": `{"limit": 5}`, "accounts/shared/park": `{"for_ms": 1}`} {
		assert.Equal(t, http.StatusAccepted, b.ask(t, http.MethodPost, "api/"+path+"?host=servers", body, nil), path)
	}
	seen(func(j *job) bool { return j.Paused })
	assert.Contains(t, run(t, "ctl", "--nats", url, "w"), "w: open, paused")
	var tree struct {
		Tree struct {
			Accounts []struct {
				Label string
				Limit int
			}
		}
	}
	require.Eventually(t, func() bool {
		b.ask(t, http.MethodGet, "api/tree", "", &tree)
		return len(tree.Tree.Accounts) == 1 && tree.Tree.Accounts[0].Limit == 5
	}, time.Minute, 100*time.Millisecond)
	assert.Equal(t, http.StatusNotFound, b.ask(t, http.MethodPost, "api/jobs/w/tasks/none/cancel?host=servers", "", nil))
	assert.Equal(t, http.StatusUnprocessableEntity, b.ask(t, http.MethodPost, "api/host/drain?host=servers", "", nil))
	assert.Equal(t, http.StatusAccepted, b.ask(t, http.MethodPost, "api/host/drain?host=second", "", nil))
	assert.Zero(t, second.exit(t))
	assert.Equal(t, http.StatusAccepted, b.ask(t, http.MethodPost, "api/jobs/w/resume?host=servers", "", nil))
	seen(func(j *job) bool { return j.States["over"] == j.Total })
	var said struct {
		Lines []struct{ Type string }
	}
	require.Equal(t, http.StatusOK, b.ask(t, http.MethodGet, "api/jobs/w/tasks/t0/transcript?host=servers", "", &said))
	assert.NotEmpty(t, said.Lines)
	assert.Equal(t, http.StatusNotFound, b.ask(t, http.MethodGet, "api/jobs/w/tasks/none/transcript?host=servers", "", nil))
}
