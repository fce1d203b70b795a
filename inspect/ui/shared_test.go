package ui_test

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/inspect/ui"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// far is another program that shares its window by a socket.
type far struct {
	rt   *runtime.Runtime
	job  *fakeJob
	desk *ui.Desk
	host ui.Host
}

func newFar(t *testing.T, access inspect.Access) *far {
	t.Helper()
	f := &far{rt: newRuntime(t), job: newJob()}
	f.desk = ui.NewDesk(f.rt)
	openSession(t, f.rt, "far", nil, nil)
	f.rt.Account("main").Join(f.rt.Clock().Now(), &runtime.AccountPace{}, nil)
	f.job.set(fakeTask{ID: "t", State: "over", Error: "no luck"}, "rejected")
	f.job.waits()
	w := ui.Handler(f.rt, ui.Config{Access: access, Jobs: func() []ui.Job { return []ui.Job{f.job} }, Desk: f.desk})
	t.Cleanup(w.Close)
	socket := filepath.Join(t.TempDir(), "d", "77.sock") // a directory that is made is for this user alone
	server, err := inspect.ListenWith(w.Shared(), inspect.Config{Socket: socket})
	if err != nil {
		t.Skip("no socket here: ", err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve() }()
	t.Cleanup(func() { assert.NoError(t, server.Close()); assert.NoError(t, <-served) })
	f.host = ui.Socket(socket)
	return f
}

// looksAt is a page of another window, which shows the host.
func looksAt(t *testing.T, access inspect.Access, host ui.Host) *page {
	t.Helper()
	w := ui.Handler(newRuntime(t), ui.Config{Access: access, Hosts: func(context.Context) ([]ui.Host, error) { return []ui.Host{host}, nil }})
	return serve(t, w).enter("mira")
}

// TestAHostThatSharesItsWindow has events, charts, jobs and calls, and obeys.
func TestAHostThatSharesItsWindow(t *testing.T) {
	t.Parallel()
	all := inspect.Access{Content: true, Steer: true}
	f := newFar(t, all)
	asked := make(chan error, 1)
	go func() {
		r, err := f.desk.CanUseTool(t.Context(), &sdk.ToolPermissionRequest{ToolName: "Edit", Input: []byte(`{}`)})
		assert.Equal(t, sdk.Allow(), r)
		asked <- err
	}()
	p := looksAt(t, all, f.host)
	var jobs struct {
		Jobs []struct {
			Job    string
			HostID string `json:"host_id"`
			Total  int
		}
	}
	p.read("api/jobs", &jobs)
	require.Len(t, jobs.Jobs, 1)
	assert.Equal(t, "77", jobs.Jobs[0].HostID)
	assert.Equal(t, 1, jobs.Jobs[0].Total)
	var tasks struct{ Tasks []fakeTask }
	p.read("api/jobs/job/tasks?host=77", &tasks)
	assert.Equal(t, []fakeTask{{ID: "t", State: "over", Error: "no luck"}}, tasks.Tasks)
	_, text, _ := p.get("api/jobs/job/tasks/t/transcript?at=29&host=77")
	assert.JSONEq(t, `{"lines": [{"seq": 29, "type": "user", "message": {}}, {"seq": 58, "type": "user", "message": {}}], "next": null}`, text)
	var past struct{ Series runtime.HistorySeries }
	p.read("api/history?host=77&window=3h", &past)
	assert.Len(t, past.Series.Running, 180)
	p.read("api/history", &past)
	assert.Len(t, past.Series.Running, 90)
	for path, status := range map[string]int{"api/jobs/job?host=78": 404, "api/jobs/job": 404, "api/jobs/none?host=77": 404, "api/history?host=78": 404, "api/jobs/job/tasks/none/transcript?host=77": 404} {
		is, text, _ := p.get(path)
		assert.Equal(t, status, is, "%s: %s", path, text)
	}
	require.Eventually(t, func() bool {
		var calls struct{ Approvals []ui.Approval }
		p.read("api/approvals", &calls)
		return len(calls.Approvals) == 2 && calls.Approvals[0].Host == "77" && calls.Approvals[0].Answer && string(calls.Approvals[0].Input) != ""
	}, 20*time.Second, 10*time.Millisecond)
	p.awaitEvents(f.rt)
	at := map[int]string{}
	p.follow("", func(fr frame) bool {
		if fr.kind == "hello" {
			for path, body := range map[string]string{
				"api/jobs/job/pause": "", "api/jobs/job/tasks/t/requeue": "", "api/jobs/job/retune": `{"limit": 3}`, "api/jobs/job/cancel": `{"confirm": "job"}`,
				"api/accounts/main/park": `{"for_ms": 60000}`, "api/accounts/main/retune": `{"limit": 2}`, "api/sessions/far/interrupt": "",
			} {
				status, text, _ := p.do(http.MethodPost, path+"?host=77", body, nil)
				assert.Equal(t, http.StatusAccepted, status, "%s: %s", path, text)
			}
			for path, answer := range map[string]string{"api/approvals/job:c": `{"allow": true, "input": {"command": "ls"}}`, "api/approvals/desk:1": `{"allow": true}`} {
				status, text, _ := p.do(http.MethodPost, path+"?host=77", answer, nil)
				assert.Equal(t, http.StatusOK, status, "%s: %s", path, text)
			}
		}
		if fr.kind == "event" && fr.data["type"] == "Steered" && fr.data["who"] != "the test" {
			assert.Equal(t, "77", fr.data["host"])
			assert.Equal(t, "mira", fr.data["who"])
			at[len(at)] = fr.data["text"].(string)
		}
		return len(at) == 9
	})
	require.NoError(t, <-asked)
	f.job.mu.Lock()
	defer f.job.mu.Unlock()
	require.Len(t, f.job.commands, 5)
	for _, c := range f.job.commands {
		assert.Equal(t, "mira", c.Who)
		if c.Op == ui.Decide {
			assert.JSONEq(t, `{"command": "ls"}`, string(c.Verdict.Input))
		}
	}
}

// TestAHostRefuses what it does not have, and what has been decided.
func TestAHostRefuses(t *testing.T) {
	t.Parallel()
	all := inspect.Access{Content: true, Steer: true}
	f := newFar(t, all)
	p := looksAt(t, all, f.host)
	f.job.err = &ui.DecidedError{Verdict: ui.Verdict{Allow: true, Who: "noa"}}
	for path, want := range map[string]int{
		"api/sessions/none/close": 404, "api/accounts/none/park": 404, "api/host/drain": 422, "api/jobs/none/pause": 404, "api/approvals/job:c": 409, "api/approvals/desk:9": 410,
	} {
		status, text, _ := p.do(http.MethodPost, path+"?host=77", "", nil)
		assert.Equal(t, want, status, "%s: %s", path, text)
		if want == 409 {
			assert.Contains(t, text, "noa")
		}
	}
	f.job.err = ui.ErrNoTask
	status, _, _ := p.do(http.MethodPost, "api/jobs/job/tasks/t/cancel?host=77", "", nil)
	assert.Equal(t, 404, status)
	f.job.err = ui.ErrOver
	status, _, _ = p.do(http.MethodPost, "api/jobs/job/tasks/t/cancel?host=77", "", nil)
	assert.Equal(t, 409, status)
}

// TestBothSidesDecide: what is shown and changed needs the access of both windows.
func TestBothSidesDecide(t *testing.T) {
	t.Parallel()
	all := inspect.Access{Content: true, Steer: true}
	for name, c := range map[string]struct {
		there, here           inspect.Access
		steer, content, input int
	}{
		"neither there": {inspect.Access{}, all, 403, 403, 0},
		"neither here":  {all, inspect.Access{}, 403, 403, 0},
		"both":          {all, all, 202, 200, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFar(t, c.there)
			p := looksAt(t, c.here, f.host)
			status, text, _ := p.do(http.MethodPost, "api/jobs/job/pause?host=77", "", nil)
			assert.Equal(t, c.steer, status, text)
			status, text, _ = p.get("api/jobs/job/tasks/t/transcript?host=77")
			assert.Equal(t, c.content, status, text)
			var calls struct{ Approvals []ui.Approval }
			p.read("api/approvals", &calls)
			require.Len(t, calls.Approvals, 1)
			assert.Equal(t, c.input == 1, calls.Approvals[0].Input != nil)
			f.job.mu.Lock()
			defer f.job.mu.Unlock()
			assert.Len(t, f.job.commands, c.input)
		})
	}
}
