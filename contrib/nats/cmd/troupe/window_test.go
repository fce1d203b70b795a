package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
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

// openWindow opens the window of a cluster, and logs in.
func openWindow(t *testing.T, url string, access ...string) *browser {
	t.Helper()
	window := start(t, append([]string{"top", "--cluster", "--nats", url, "--ui"}, access...)...)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	b := &browser{Client: &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}}
	login := window.await(t, `(http://127\.0\.0\.1:\d+/\w+/login\?code=\w+)`)
	b.base, _, _ = strings.Cut(login, "login?")
	require.Equal(t, http.StatusOK, b.ask(t, http.MethodGet, strings.TrimPrefix(login, b.base), "", nil))
	var hello struct{ CSRF string }
	b.ask(t, http.MethodGet, "api/hello", "", &hello)
	b.csrf = hello.CSRF
	return b
}

// The window of a cluster shows workers, jobs and accounts, and steers them.
func TestTheWindowOfACluster(t *testing.T) {
	t.Parallel()
	_, url := first(t, "-j", "2")
	second := start(t, "worker", "--nats", url, "--dir", t.TempDir(), "--name", "second", "-j", "1")
	second.await(t, "worker second in")
	b := openWindow(t, url, "--ui-steer", "--ui-content")
	file, agent := tasks(t, 60, time.Second) // some of them still run when the job is paused
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

	for path, body := range map[string]string{"jobs/w/pause": "", "accounts/shared/retune": `{"limit": 50}`, "accounts/shared/park": `{"for_ms": 1}`} {
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
		return len(tree.Tree.Accounts) == 1 && tree.Tree.Accounts[0].Limit == 50
	}, time.Minute, 100*time.Millisecond)
	assert.Equal(t, http.StatusNotFound, b.ask(t, http.MethodPost, "api/jobs/w/tasks/none/cancel?host=servers", "", nil))
	assert.Equal(t, http.StatusUnprocessableEntity, b.ask(t, http.MethodPost, "api/host/drain?host=servers", "", nil))
	assert.Equal(t, http.StatusAccepted, b.ask(t, http.MethodPost, "api/host/drain?host=second", "", nil))
	assert.Zero(t, second.exit(t))
	start(t, "worker", "--nats", url, "--dir", t.TempDir(), "--name", "third", "-j", "50").await(t, "worker third in")
	assert.Equal(t, http.StatusAccepted, b.ask(t, http.MethodPost, "api/jobs/w/resume?host=servers", "", nil))
	seen(func(j *job) bool { return j.States["over"] == j.Total })
	var said struct {
		Lines []struct{ Type string }
	}
	require.Equal(t, http.StatusOK, b.ask(t, http.MethodGet, "api/jobs/w/tasks/t0/transcript?host=servers", "", &said))
	assert.NotEmpty(t, said.Lines)
	assert.Equal(t, http.StatusNotFound, b.ask(t, http.MethodGet, "api/jobs/w/tasks/none/transcript?host=servers", "", nil))
}

// A call is allowed with another input, and the whole job canceled, in the window of a cluster: with Access.Steer, the
// token of the page, and an event with who did it.
func TestTheWindowDecidesAboutAJob(t *testing.T) {
	t.Parallel()
	_, url := first(t, "-j", "8")
	reader, b := openWindow(t, url, "--ui-content"), openWindow(t, url, "--ui-steer", "--ui-content")
	dir := t.TempDir()
	file, script := filepath.Join(dir, "tasks.jsonl"), filepath.Join(dir, "script.yaml")
	lines := `{"id":"asks","prompt":"one"}` + "\n"
	for i := range 6 {
		lines += fmt.Sprintf(`{"id":"t%d","prompt":"two"}`, i) + "\n"
	}
	require.NoError(t, os.WriteFile(file, []byte(lines), 0o600))
	require.NoError(t, os.WriteFile(script, []byte(`turns:
  - {match: one, steps: [{tool_use: {name: Bash, input: {command: make x}, result: "ran ${input}"}}, {text: ended}]}
  - {match: two, steps: [{delay: 2m}, {text: ended}]}
`), 0o600))
	run(t, "batch", file, "--nats", url, "--agent", "scripted:"+script, "--id", "w", "--approvals", "--detach")
	var waits struct {
		Approvals []struct {
			ID, Task string
			Answer   bool
		}
	}
	look := func() int {
		b.ask(t, http.MethodGet, "api/approvals", "", &waits)
		return len(waits.Approvals)
	}
	require.Eventually(t, func() bool { return look() == 1 }, time.Minute, 100*time.Millisecond)
	assert.Equal(t, "asks", waits.Approvals[0].Task)
	answer := "api/approvals/" + waits.Approvals[0].ID + "?host=servers"
	const changed = `{"allow": true, "input": {"command": "make y"}}`
	assert.Equal(t, http.StatusForbidden, reader.ask(t, http.MethodPost, answer, changed, nil), "no Access.Steer")
	assert.Equal(t, http.StatusForbidden, reader.ask(t, http.MethodPost, "api/jobs/w/cancel?host=servers", `{"confirm": "w"}`, nil))
	stranger := &browser{Client: b.Client, base: b.base}
	assert.Equal(t, http.StatusForbidden, stranger.ask(t, http.MethodPost, answer, changed, nil), "without the token of the page")
	events := b.events(t)
	require.Equal(t, http.StatusOK, b.ask(t, http.MethodPost, answer, changed, nil))
	assert.Equal(t, http.StatusConflict, b.ask(t, http.MethodPost, answer, `{"allow": false}`, nil), "one answer counts")
	assert.Zero(t, look())
	var said struct{ Lines []json.RawMessage }
	require.Eventually(t, func() bool {
		return b.ask(t, http.MethodGet, "api/jobs/w/tasks/asks/transcript?host=servers", "", nil) == http.StatusOK &&
			b.ask(t, http.MethodGet, "api/jobs/w/tasks/asks/transcript?host=servers", "", &said) == http.StatusOK &&
			strings.Contains(fmt.Sprintf("%s", said.Lines), "make y")
	}, time.Minute, 200*time.Millisecond)

	assert.Equal(t, http.StatusBadRequest, b.ask(t, http.MethodPost, "api/jobs/w/cancel?host=servers", `{"confirm": "x"}`, nil))
	require.Equal(t, http.StatusAccepted, b.ask(t, http.MethodPost, "api/jobs/w/cancel?host=servers", `{"confirm": "w"}`, nil))
	out := filepath.Join(dir, "out")
	assert.Equal(t, 1, start(t, "batch", "--attach", "w", "--nats", url, "--out", out).exit(t), "not accepted")
	got := results(t, out)
	require.Len(t, got, 7)
	for id, r := range got {
		if id != "asks" {
			assert.Equal(t, fleet.Canceled, r.Status, id)
		}
	}
	require.Eventually(t, func() bool {
		return b.ask(t, http.MethodPost, "api/jobs/w/cancel?host=servers", `{"confirm": "w"}`, nil) == http.StatusConflict
	}, time.Minute, 200*time.Millisecond, "it is over")
	for _, want := range []string{"job w: allow ", "with changed input", "job w: canceled"} {
		events(want)
	}
}

// events reads the stream of events. The function waits until an event has been there with a text, and a name.
func (b *browser) events(t *testing.T) func(text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.base+"events", http.NoBody)
	require.NoError(t, err)
	resp, err := b.Do(r)
	require.NoError(t, err)
	var mu sync.Mutex
	var all []string
	var over sync.WaitGroup
	over.Go(func() {
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if text := lines.Text(); strings.Contains(text, `"type":"Steered"`) && strings.Contains(text, `"who":"`) {
				mu.Lock()
				all = append(all, text)
				mu.Unlock()
			}
		}
	})
	t.Cleanup(func() {
		_ = resp.Body.Close()
		over.Wait()
	})
	return func(text string) {
		t.Helper()
		require.Eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.ContainsFunc(all, func(e string) bool { return strings.Contains(e, text) })
		}, time.Minute, 50*time.Millisecond, "%s", text)
	}
}
