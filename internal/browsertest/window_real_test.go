package browsertest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
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
