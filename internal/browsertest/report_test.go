package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
)

// page is an open report, and what the browser said about it.
type page struct {
	ctx context.Context

	mu       sync.Mutex
	problems []string
}

// browser starts a browser. Its tabs are contexts below the one that it returns.
func browser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("TROUPE_BROWSER") == "require" {
			t.Fatal("there is no chromium: .ci/chromium-install fetches one")
		}
		t.Skip("there is no chromium on this machine; TROUPE_BROWSER=require makes that a failure")
	}
	profile, err := os.MkdirTemp("", "troupe-browser-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(profile) }) // a helper process of the browser may still write
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(profile))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(alloc, chromedp.WithErrorf(func(string, ...any) {})) // it does not know each event of a newer browser
	t.Cleanup(end)
	require.NoError(t, chromedp.Run(ctx))
	return ctx
}

// tab opens an address in a new tab, and waits for an element.
func tab(t *testing.T, in context.Context, address, ready string, before ...chromedp.Action) *page {
	t.Helper()
	ctx, end := chromedp.NewContext(in)
	t.Cleanup(end)
	p := &page{}
	bounded, cancel := context.WithTimeout(ctx, 10*time.Minute)
	t.Cleanup(cancel)
	p.ctx = bounded
	chromedp.ListenTarget(ctx, func(event any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch e := event.(type) {
		case *log.EventEntryAdded:
			p.problems = append(p.problems, e.Entry.Text+" "+e.Entry.URL)
		case *runtime.EventExceptionThrown:
			p.problems = append(p.problems, e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			said := fmt.Sprint("console.", e.Type)
			for _, a := range e.Args {
				said += " " + string(a.Value) + a.Description
			}
			p.problems = append(p.problems, said)
		}
	})
	require.NoError(t, chromedp.Run(bounded, append([]chromedp.Action{log.Enable()}, before...)...))
	err := chromedp.Run(bounded, chromedp.Navigate(address), chromedp.Poll("document.querySelector('"+ready+"') !== null", nil, chromedp.WithPollingTimeout(time.Minute)))
	require.NoError(t, err, p.said())
	return p
}

// said is what the browser has complained about so far.
func (p *page) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.problems, "\n")
}

// open opens a file in a new browser.
func open(t *testing.T, path string) *page {
	t.Helper()
	return tab(t, browser(t), "file://"+path, "#shown")
}

// eval evaluates JavaScript, and waits for a promise.
func eval[T any](t *testing.T, p *page, script string) (v T) {
	t.Helper()
	wait := func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }
	require.NoError(t, chromedp.Run(p.ctx, chromedp.Evaluate(script, &v, wait)), script)
	return v
}

// quiet requires that the browser had nothing to complain about.
func (p *page) quiet(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	assert.Empty(t, p.problems)
}

// report runs a job and returns the path of its report.
func report(t *testing.T, job fleet.Job) string {
	t.Helper()
	job.Out = t.TempDir()
	for _, err := range fleet.Run(t.Context(), job) {
		require.NoError(t, err)
	}
	return filepath.Join(job.Out, "report.html")
}

func agent(turns ...scripted.Turn) *sdk.Options {
	script := &scripted.Script{Transcript: true, Turns: turns}
	return &sdk.Options{Backend: scripted.New(scripted.WithScript(script), scripted.WithHistory(&scripted.MemoryHistory{}))}
}

// unfold opens the first row, and waits until its transcript is there.
const unfold = `new Promise(done => {
	const row = document.querySelector(".row:not([hidden])"), began = performance.now();
	row.open = true;
	(function look() {
		row.querySelector(".transcript").childElementCount > 0 ? done(performance.now() - began) : requestAnimationFrame(look);
	})();
})`

// TestWhatAModelWroteIsInert: in a browser, not only in the bytes of the page.
func TestWhatAModelWroteIsInert(t *testing.T) {
	t.Parallel()
	const evil = "</script></pre><script>window.hit=1</script><img src=x onerror=\"window.hit=2\"><a id=evil href=\"javascript:window.hit=3\">x</a><style>*{display:none}</style>{{.}}\x1b[31m\u2028"
	p := open(t, report(t, fleet.Job{
		ID: evil, Options: agent(scripted.Turn{Steps: scripted.Steps{
			&scripted.ToolUse{Name: evil, Input: map[string]any{"x": evil}, Result: evil}, scripted.Text(evil),
		}}),
		Tasks: []fleet.Task{{ID: "a", Prompt: evil, Tags: []string{evil}}},
	}))
	eval[float64](t, p, unfold)
	eval[any](t, p, `document.querySelectorAll("details").forEach(d => d.open = true)`)
	assert.Contains(t, eval[string](t, p, `document.querySelector(".transcript").textContent`), "<script>window.hit=1</script>", "it is shown as text")
	assert.True(t, eval[bool](t, p, `document.querySelector(".row").offsetHeight > 0`), "its style does not count")
	assert.Zero(t, eval[int](t, p, `document.querySelectorAll("img, #evil, body style").length`))
	assert.Zero(t, eval[int](t, p, `[...document.querySelectorAll(".transcript *")].filter(e => [...e.childNodes].some(n => n.nodeType === 3 && /[\x1b\u2028]/.test(n.data))).length`), "control characters are written out")
	assert.Equal(t, "undefined", eval[string](t, p, `typeof window.hit`))
	p.quiet(t)
}

// TestTwoThousandTasks: the report of a large job is usable.
func TestTwoThousandTasks(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs two thousand tasks")
	}
	const n = 2000
	tasks := make([]fleet.Task, n)
	for i := range tasks {
		tasks[i] = fleet.Task{ID: fmt.Sprintf("task-%04d", i), Prompt: "go", Tags: []string{fmt.Sprint("tag-", i%7)}}
	}
	path := report(t, fleet.Job{Options: agent(scripted.Turn{Steps: scripted.Steps{scripted.Text("done")}}), Tasks: tasks, Concurrency: 64})
	p := open(t, path)
	loaded := eval[float64](t, p, `new Promise(done => (function look() {
		const took = performance.getEntriesByType("navigation")[0].loadEventEnd;
		took > 0 ? done(took) : requestAnimationFrame(look);
	})())`)
	assert.Equal(t, "2000 of 2000", eval[string](t, p, `document.getElementById("shown").textContent`))
	filtered := eval[float64](t, p, `new Promise(done => {
		const find = document.getElementById("find"), began = performance.now();
		find.value = "task-0777";
		find.dispatchEvent(new Event("input"));
		requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - began)));
	})`)
	assert.Equal(t, "1 of 2000", eval[string](t, p, `document.getElementById("shown").textContent`))
	unfolded := eval[float64](t, p, unfold)
	t.Logf("loaded in %.0f ms, filtered in %.0f ms, unfolded in %.0f ms", loaded, filtered, unfolded)
	slower := 5.0 // a machine that has other work
	if full {
		slower = 1
	}
	assert.Less(t, loaded, 4000*slower)
	assert.Less(t, filtered, 300*slower)
	assert.Less(t, unfolded, 100*slower)
	p.quiet(t)
}

// TestTheChartsOfAReport: axes have different texts that do not cover each other, also of a job
// that was short and cheap, and no chart and no column is empty.
func TestTheChartsOfAReport(t *testing.T) {
	t.Parallel()
	const usd = 0.00028
	opts := agent(scripted.Turn{Steps: scripted.Steps{scripted.Delay(300 * time.Millisecond), scripted.Text("done"), &scripted.Result{Cost: usd}}})
	tasks := make([]fleet.Task, 12)
	for i := range tasks {
		tasks[i] = fleet.Task{ID: fmt.Sprint("task-", i), Prompt: "go", Tags: []string{fmt.Sprint("tag-", i%3)}}
	}
	p := open(t, report(t, fleet.Job{Options: opts, Tasks: tasks, Concurrency: 4}))
	charts := eval[map[string][]string](t, p, `Object.fromEntries([...document.querySelectorAll("#charts .panel")].map(p => [p.querySelector("h2").textContent, [...p.querySelectorAll("text")].map(t => t.textContent)]))`)
	for _, name := range []string{"Running", "Results", "Time of tasks", "Outcomes by tag"} {
		assert.GreaterOrEqual(t, len(charts[name]), 4, "%s: %v", name, charts)
	}
	assert.Empty(t, eval[[]string](t, p, `[...document.querySelectorAll("#charts .chart")].flatMap(c => {
		const all = [...c.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect(), t.getAttribute("text-anchor")]), bad = [];
		all.forEach(([a, x], i) => all.slice(i + 1).forEach(([b, y]) => { if (x.left < y.right && y.left < x.right && x.top < y.bottom - 2 && y.top < x.bottom - 2) bad.push(a + " covers " + b); }));
		for (const axis of [all.filter(([, x, end]) => end === "end" && x.right < c.getBoundingClientRect().left + 60)]) if (new Set(axis.map(a => a[0])).size < axis.length) bad.push("equal: " + axis.map(a => a[0]));
		return bad;
	})`))
	assert.Zero(t, eval[int](t, p, `[...document.querySelectorAll(".head span")].filter((_, i) => [...document.querySelectorAll(".row summary")].every(r => !r.children[i].textContent.trim())).length`), "no column is empty")
	assert.Contains(t, eval[string](t, p, `(() => { document.querySelector("#charts .astable").click(); return document.querySelector("dialog[open]").textContent; })()`), "running", "behind a chart there is a table")
	p.quiet(t)
}
