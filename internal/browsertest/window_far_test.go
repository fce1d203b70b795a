package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/control"
	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/inspect/ui"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// newRuntime is a runtime that ends with the test.
func newRuntime(t *testing.T) *runtime.Runtime {
	t.Helper()
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rt.Shutdown(context.Background())) })
	return rt
}

// listens serves a handler by a socket, as another program does.
func listens(t *testing.T, h http.Handler) ui.Host {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "d")
	require.NoError(t, os.Mkdir(dir, 0o700))
	l, err := net.Listen("unix", filepath.Join(dir, "77.sock"))
	require.NoError(t, err)
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	server.Start()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return ui.Socket(filepath.Join(dir, "77.sock"))
}

// looks serves a window that shows a host.
func looks(t *testing.T, access inspect.Access, host ui.Host) (w *ui.Window, base string) {
	t.Helper()
	w = ui.Handler(newRuntime(t), ui.Config{Access: access, Hosts: func(context.Context) ([]ui.Host, error) { return []ui.Host{host}, nil }})
	t.Cleanup(w.Close)
	mux := http.NewServeMux()
	mux.Handle("/", w)
	server := httptest.NewServer(mux)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return w, server.URL + "/"
}

// enters opens a page of it, as a person.
func enters(t *testing.T, w *ui.Window, base, who, route, ready string) *page {
	t.Helper()
	return tab(t, browser(t), base+route, ready, emulation.SetDeviceMetricsOverride(1280, 900, 1, false), chromedp.Navigate(w.Login(base, who)), chromedp.WaitReady("nav"))
}

// picture keeps a picture of the page, if TROUPE_LOOK is a directory.
func (p *page) picture(t *testing.T, name string) {
	t.Helper()
	if dir := os.Getenv("TROUPE_LOOK"); dir != "" {
		var shot []byte
		require.NoError(t, chromedp.Run(p.ctx, chromedp.CaptureScreenshot(&shot)))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".png"), shot, 0o600))
	}
}

// other is another program with a session whose agent has said much.
func other(t *testing.T, access inspect.Access) (host ui.Host, say func(string)) {
	t.Helper()
	rt := newRuntime(t)
	w := ui.Handler(rt, ui.Config{Access: access})
	t.Cleanup(w.Close)
	script := &scripted.Script{Transcript: true, Turns: []scripted.Turn{
		{When: "slow", Steps: scripted.Steps{&scripted.Partial{Text: strings.Repeat("I write slowly. ", 100), Chunk: 4, Pause: 200 * time.Millisecond}}},
		{When: "go", Steps: scripted.Steps{scripted.Text("An answer. " + hostile)}},
	}}
	spec := runtime.Spec{ID: "talks", Dialect: claude.New(), Program: scripted.New(scripted.WithScript(script), scripted.WithHistory(&scripted.MemoryHistory{}))}
	spec.Options.IncludePartialMessages = true
	s, err := rt.Open(t.Context(), spec)
	require.NoError(t, err)
	go func() {
		for _, err := range s.Messages(t.Context()) { // the session waits for its reader
			if err != nil {
				return
			}
		}
	}()
	say = func(text string) {
		turn, err := s.Send(t.Context(), &protocol.UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.StringContent(text)}})
		require.NoError(t, err)
		if strings.HasPrefix(text, "go") {
			_, err = turn.Result(t.Context())
			require.NoError(t, err)
		}
	}
	return listens(t, w.Shared()), say
}

// TestASessionOfAnotherProgram has its page: what was said and is being said, earlier messages, search, options, and
// the timeline.
func TestASessionOfAnotherProgram(t *testing.T) {
	t.Parallel()
	content := inspect.Access{Content: true}
	host, say := other(t, content)
	for i := range 150 {
		say(fmt.Sprintf("go %d.", i))
	}
	w, base := looks(t, content, host)
	p := enters(t, w, base, "mira", "#/sessions/talks?host=77", ".msg")
	p.until(t, `document.querySelector(".tx").textContent.includes("go 149.") && !document.querySelector(".tx").textContent.includes("go 3.")`)
	p.until(t, `document.querySelector(".opts tr") && document.querySelector("[aria-label=Timeline] svg")`)
	p.inert(t)
	eval[any](t, p, `void document.querySelector(".more-tx").click()`)
	p.until(t, `document.querySelector(".tx").textContent.includes("go 3.") && document.querySelector(".more-tx").hidden`)
	eval[any](t, p, `(() => { const f = document.querySelector(".find"); f.focus(); f.value = "go 7."; f.dispatchEvent(new Event("input")); })()`)
	p.press(t, kb.Enter)
	p.until(t, `/1 of 1|1 match|^1\b/.test(document.querySelector(".tx-bar [role=status]").textContent)`)
	p.picture(t, "far-search")
	say("slow")
	p.until(t, `document.querySelector(".streaming")?.textContent.includes("I write slowly. I write")`)
	p.until(t, `document.querySelector(".title").textContent.includes("running")`)
	eval[any](t, p, `void document.querySelector(".jump:not([hidden])")?.click()`)
	p.picture(t, "far-live")
	p.inert(t)
	p.quiet(t)
}

// TestASessionOfAnotherProgramWithoutContent says which window does not let it be read.
func TestASessionOfAnotherProgramWithoutContent(t *testing.T) {
	t.Parallel()
	content := inspect.Access{Content: true}
	for name, c := range map[string]struct {
		there, here inspect.Access
		says        string
	}{
		"there": {inspect.Access{}, content, "that program shows no transcript: its window has no Access.Content"},
		"here":  {content, inspect.Access{}, "This window was opened without Access.Content"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host, say := other(t, c.there)
			say("go 1.")
			w, base := looks(t, c.here, host)
			p := enters(t, w, base, "mira", "#/sessions/talks?host=77", ".tx .empty")
			p.until(t, fmt.Sprintf(`document.querySelector(".tx").textContent.includes(%q)`, c.says))
			p.until(t, `document.querySelector("[aria-label=Timeline] svg")`)
			assert.False(t, eval[bool](t, p, `document.body.textContent.includes("An answer.")`))
			assert.Zero(t, eval[int](t, p, `document.querySelectorAll(".opts").length`))
			p.picture(t, "far-without-content-"+name)
			p.inert(t)
		})
	}
}

// TestWhatAnotherProgramSays may be of any form: the page stays as it is.
func TestWhatAnotherProgramSays(t *testing.T) {
	t.Parallel()
	evil, err := json.Marshal(hostile)
	require.NoError(t, err)
	content := fmt.Sprintf(`[null, 7, %[1]s, {"type": "text", "text": %[1]s}, {"type": "text", "text": [7]}, {"type": "thinking", "thinking": 7}, {"type": %[1]s}, {"type": "tool_use", "id": 1, "name": {}, "input": 7},
		{"type": "tool_use", "id": "2", "name": %[1]s, "input": {"command": %[1]s}}, {"type": "tool_result", "tool_use_id": 1, "content": [null]}, {"type": "tool_result", "tool_use_id": "2", "content": 7}, {"type": "image"}]`, evil)
	content = strings.NewReplacer("\n", "", "\t", "").Replace(content)
	answers := map[string]string{
		"/api/tree":                     fmt.Sprintf(`{"host": {"program": %[1]s}, "tree": {"sessions": [{"id": "far", "state": "running", "title": %[1]s, "backend": %[1]s, "labels": {%[1]s: %[1]s}, "error": %[1]s, "dir": %[1]s, "actors": [{"name": %[1]s, "state": %[1]s}], "waits": [{"what": %[1]s, "limit_ms": 3600000, "since": %[2]q}]}]}}`, evil, time.Now().Format(time.RFC3339)),
		"/window/sessions/far/messages": `{"messages": [{"seq": 1, "type": "assistant", "message": {"content": ` + content + `}}, {"seq": 2, "type": "user", "message": 42}, {"seq": 3, "type": "x", "message": {"role": "user", "content": ` + content + `}}, {"seq": 4, "type": "result", "error": true, "result": ` + string(evil) + `}], "more": true}`,
		"/window/sessions/far/timeline": fmt.Sprintf(`{"turns": [{"from": "2020-01-01T00:00:00Z", "name": %[1]s}, {}], "marks": [{"kind": %[1]s, "why": %[1]s, "actor": %[1]s}]}`, evil),
		"/window/sessions/far/options":  fmt.Sprintf(`{%[1]s: %[1]s, "a": [null, {%[1]s: 7}], "b": null}`, evil),
	}
	follow := `{"kind": "delta", "data": {"seq": 9, "text": ` + string(evil) + `}}` + "\n" + `{"kind": "message", "data": {"seq": 10, "type": "assistant", "message": {"content": ` + content + `}}}` + "\n" + `{"kind": "message", "data": {"seq": 11, "type": "user", "message": {"content": "the end of it"}}}` + "\n"
	host := listens(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		text, ok := answers[r.URL.Path]
		switch {
		case ok:
			_, _ = io.WriteString(rw, text)
		case strings.HasSuffix(r.URL.Path, "/follow"):
			for err := error(nil); err == nil; { // a page misses what comes before it is there
				if _, err = io.WriteString(rw, follow); err == nil {
					err = http.NewResponseController(rw).Flush()
				}
				select {
				case <-r.Context().Done():
					return
				case <-time.After(200 * time.Millisecond):
				}
			}
		default:
			http.NotFound(rw, r)
		}
	}))
	w, base := looks(t, inspect.Access{Content: true, Steer: true}, host)
	p := enters(t, w, base, "mira", "#/sessions/far?host=77", ".msg")
	p.until(t, `document.querySelector(".tx").textContent.includes("the end of it")`)
	p.inert(t)
	p.picture(t, "far-hostile")
	for _, route := range []string{"#/sessions", "#/tree", "#/overview"} {
		p.open(t, route)
		p.until(t, `document.querySelector("main").textContent.includes("window.hit=1")`)
		p.inert(t)
	}
	p.quiet(t)
}

// cluster is a host that has jobs, and no session, as the servers of a cluster are one.
type cluster struct{ jobs []ui.Job }

func (cluster) ID() string { return "servers" }
func (cluster) Report(context.Context) (*inspect.Report, error) {
	return &inspect.Report{Host: inspect.Host{Program: "servers"}}, nil
}
func (cluster) Events(context.Context, func(inspect.Event) bool) error { return ui.ErrUnsupported }
func (cluster) History(context.Context, time.Duration) (h runtime.History, err error) {
	return h, ui.ErrUnsupported
}
func (c cluster) Jobs(context.Context) ([]ui.Job, error) { return c.jobs, nil }
func (cluster) Do(context.Context, ui.Command) error     { return ui.ErrUnsupported }

// TestTwoPeopleAtAJobOfACluster: one allows a call with another input and cancels the job; the other one learns it.
func TestTwoPeopleAtAJobOfACluster(t *testing.T) {
	t.Parallel()
	opts := &sdk.Options{Backend: scripted.New(scripted.WithHistory(&scripted.MemoryHistory{}), scripted.WithScript(&scripted.Script{Transcript: true, Turns: []scripted.Turn{
		{When: "ask", Steps: scripted.Steps{&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "deploy"}, Result: "ran ${input}"}, scripted.Text("end")}},
		{When: "long", Steps: scripted.Steps{scripted.Delay(time.Hour)}},
	}}))}
	job := fleet.Job{ID: "shared", Options: opts, Out: t.TempDir(), Concurrency: 3, Approvals: &fleet.Approvals{Hold: time.Hour}, Tasks: []fleet.Task{{ID: "asks", Prompt: "ask"}, {ID: "long", Prompt: "long"}, {ID: "later", Prompt: "long"}}}
	h, err := fleet.Start(t.Context(), job)
	require.NoError(t, err)
	t.Cleanup(h.Cancel)
	w, base := looks(t, inspect.Access{Content: true, Steer: true}, cluster{[]ui.Job{control.Job(h, job.Out)}})
	mira, ben := enters(t, w, base, "mira", "#/approvals", ".aitem"), enters(t, w, base, "ben", "#/approvals", ".aitem")
	mira.press(t, "e")
	mira.until(t, `document.querySelector("textarea.mono:not([hidden])")`)
	eval[any](t, mira, `void (document.querySelector("textarea.mono").value = '{"command": "deploy --dry"}')`)
	mira.picture(t, "cluster-allow")
	eval[any](t, mira, `void [...document.querySelectorAll(".answer .btn")].find(b => b.textContent.startsWith("Allow once")).click()`)
	mira.until(t, `document.querySelector(".aitem.was")?.textContent.includes("allowed by you")`)
	ben.until(t, `document.querySelector(".adetail").textContent.includes("mira has allowed this call")`)
	ben.picture(t, "cluster-second")

	for _, p := range []*page{mira, ben} {
		p.open(t, "#/jobs/shared?host=servers")
		p.until(t, `document.querySelector(".nums").textContent.includes("1 of 3")`)
		eval[any](t, p, `void [...document.querySelectorAll(".title .btn")].find(b => b.textContent.startsWith("Cancel")).click()`)
		p.until(t, `document.querySelector("dialog.ask[open]")`)
	}
	var keys sync.WaitGroup
	for _, p := range []*page{mira, ben} {
		keys.Go(func() {
			for _, c := range job.ID {
				p.press(t, string(c))
			}
			p.press(t, kb.Enter)
		})
	}
	mira.picture(t, "cluster-cancel")
	keys.Wait()
	for r := range h.Results(t.Context()) { //nolint:errcheck // an iterator
		if r.ID == "asks" {
			raw, err := os.ReadFile(filepath.Join(job.Out, r.Transcript))
			require.NoError(t, err)
			assert.Contains(t, string(raw), "deploy --dry")
		}
	}
	assert.Equal(t, fleet.StopCanceled, h.Progress().Stop.Reason)
	for _, p := range []*page{mira, ben} { // asked for twice: it is canceled, or over
		p.until(t, `!document.querySelector("dialog.ask") || document.querySelector("dialog.ask .fail").textContent.includes("over")`)
		p.until(t, `document.querySelector(".nums").textContent.includes("0 of 3") && document.querySelector(".title").textContent.includes("stopped: canceled")`)
	}
	mira.picture(t, "cluster-canceled")
}
