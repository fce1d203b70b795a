package browsertest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/control"
	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/inspect/ui"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// TestTheRealWindow opens the window of a runtime with a session that waits for a person, and
// answers it. Its name is hostile, and so is what its agent asks.
func TestTheRealWindow(t *testing.T) {
	t.Parallel()
	in := browser(t)
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rt.Shutdown(context.Background())) })
	desk := ui.NewDesk(rt)
	w := ui.Handler(rt, ui.Config{Access: inspect.Access{Content: true, Steer: true}, Desk: desk})
	mux := http.NewServeMux()
	mux.Handle("/troupe/", w)
	server := httptest.NewServer(mux)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })

	script := &scripted.Script{Turns: []scripted.Turn{{Steps: scripted.Steps{&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": hostile}, Result: "done", Gate: "ask"}, scripted.Text("I am done.")}}}}
	opts := &sdk.Options{Runtime: rt, Title: hostile, Backend: scripted.New(scripted.WithScript(script)), CanUseTool: desk.CanUseTool}
	done := make(chan error, 1)
	go func() {
		var last error
		for _, err := range sdk.Query(t.Context(), "go", opts) {
			last = err
		}
		done <- last
	}()

	address := w.Login(server.URL+"/troupe/", "mira")
	p := tab(t, in, server.URL+"/troupe/#/overview", "nav", chromedp.Navigate(address), chromedp.WaitReady("nav"))
	for route, ready := range map[string]string{"#/overview": ".tile", "#/tree": "[role=treeitem]", "#/sessions": ".v-row", "#/jobs": ".empty", "#/accounts": ".empty"} {
		p.open(t, route)
		p.until(t, `document.querySelector("`+ready+`")`)
		p.inert(t)
	}
	p.open(t, "#/approvals")
	p.until(t, `document.querySelector(".aitem")`)
	p.inert(t)
	p.press(t, "a", kb.Enter)
	p.until(t, `document.querySelector(".aitem.was")`)
	require.NoError(t, <-done)
}

// TestTheWindowOfARealJob looks at a job that runs, pauses it, and cancels it by its name.
func TestTheWindowOfARealJob(t *testing.T) {
	t.Parallel()
	in := browser(t)
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rt.Shutdown(context.Background())) })
	yes, text := true, hostile
	opts := &sdk.Options{Runtime: rt, Backend: scripted.New(scripted.WithHistory(&scripted.MemoryHistory{}), scripted.WithScript(&scripted.Script{Transcript: true, Turns: []scripted.Turn{
		{When: "bad", Steps: scripted.Steps{&scripted.Result{IsError: &yes, Text: &text}}}, {When: "long", Steps: scripted.Steps{scripted.Delay(time.Hour)}}, {When: "go", Steps: scripted.Steps{scripted.Text(hostile), &scripted.Result{Cost: .02}}},
	}}))}
	job := fleet.Job{ID: "wrap-errors", Options: opts, Out: t.TempDir(), Concurrency: 4, Tasks: []fleet.Task{{ID: "bad", Prompt: "bad"}, {ID: "long", Prompt: "long"}}}
	for i := range 20 {
		job.Tasks = append(job.Tasks, fleet.Task{ID: fmt.Sprint("task-", i), Prompt: "go", Tags: []string{hostile}})
	}
	h, err := fleet.Start(t.Context(), job)
	require.NoError(t, err)
	t.Cleanup(h.Cancel)
	var jobs atomic.Pointer[[]ui.Job]
	jobs.Store(&[]ui.Job{control.Job(h, job.Out)})
	w := ui.Handler(rt, ui.Config{Access: inspect.Access{Content: true, Steer: true}, Jobs: func() []ui.Job { return *jobs.Load() }})
	mux := http.NewServeMux()
	mux.Handle("/", w)
	server := httptest.NewServer(mux)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	p := tab(t, in, server.URL+"/#/jobs", "nav", chromedp.Navigate(w.Login(server.URL+"/", "mira")), chromedp.WaitReady("nav"))
	p.until(t, `location.hash === "#/jobs/wrap-errors" && document.querySelector(".v-row")`) // one alone is opened at once
	p.until(t, `document.querySelector(".nums").textContent.includes("21 of 22") && document.querySelector(".tasks header").textContent.includes("22 of 22")`)
	p.until(t, `document.querySelector(".fails").textContent.includes("window.hit=1")`) // the failure says why
	assert.GreaterOrEqual(t, eval[int](t, p, `document.querySelectorAll(".charts .chart").length`), 2)
	assert.Contains(t, eval[string](t, p, `document.querySelector(".rtab").textContent`), "long")
	p.inert(t)
	p.press(t, "p")
	p.until(t, `document.querySelector(".title").textContent.includes("paused")`)
	// A key is ignored while the page waits for the answer to the one before.
	p.until(t, `(() => {
		const title = document.querySelector(".title");
		[...title.querySelectorAll(".btn")].find(b => b.textContent.startsWith("Resume"))?.click();
		return title.textContent.includes("running");
	})()`)
	eval[any](t, p, `void [...document.querySelectorAll(".title .btn")].find(b => b.textContent.startsWith("Cancel")).click()`)
	p.until(t, `document.querySelector("dialog.ask[open]")`)
	for _, c := range job.ID {
		p.press(t, string(c))
	}
	p.press(t, kb.Enter)
	p.until(t, `!document.querySelector("dialog.ask")`)
	for range h.Results(t.Context()) { //nolint:revive // until the job is over
	}
	assert.NotNil(t, h.Progress().Stop)
	jobs.Store(&[]ui.Job{}) // a program that shows it no more
	p.until(t, `document.querySelector(".acts").hidden && document.querySelector(".rtab").textContent.includes("No task runs")`)
}
