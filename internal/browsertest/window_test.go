package browsertest

import (
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// watched notes what moves and what the policy refuses, from before the first line of a page.
const watched = `
	window.shifted = 0; window.refused = [];
	new PerformanceObserver(l => { for (const e of l.getEntries()) if (!e.hadRecentInput) { window.shifted += e.value; (window.shifts ||= []).push([e.value, Math.round(e.startTime), ...e.sources.map(s => (s.node?.className?.baseVal ?? s.node?.className ?? s.node?.nodeName) + ' ' + JSON.stringify(s.previousRect) + JSON.stringify(s.currentRect))].join(' | ')); } }).observe({ type: 'layout-shift', buffered: true });
	document.addEventListener('securitypolicyviolation', e => window.refused.push(e.violatedDirective + ' ' + e.blockedURI));`

// window opens a page of the window: 1280 by 900 pixels, or as said.
func window(t *testing.T, in context.Context, s *stub, route, ready string, size ...int64) *page {
	t.Helper()
	if size == nil {
		size = []int64{1280, 900}
	}
	return tab(t, in, s.URL+"/w/"+route, ready,
		emulation.SetDeviceMetricsOverride(size[0], size[1], 1, false),
		chromedp.ActionFunc(func(ctx context.Context) error {
			_, err := cdppage.AddScriptToEvaluateOnNewDocument(watched).Do(ctx)
			return err
		}))
}

// until waits for a condition in the page.
func (p *page) until(t *testing.T, condition string) {
	t.Helper()
	ok := eval[bool](t, p, `new Promise(done => { const end = performance.now() + 60000; (function look() { let ok = false; try { ok = !!(`+condition+`); } catch {} ok || performance.now() > end ? done(ok) : setTimeout(look, 20); })(); })`)
	if !ok {
		text := eval[string](t, p, `document.querySelector("#app").innerText.slice(0, 600)`)
		p.mu.Lock()
		defer p.mu.Unlock()
		require.Fail(t, "it did not happen: "+condition, "%v\n%s", p.problems, text)
	}
}

// pause lets so many milliseconds of the page go by.
func (p *page) pause(t *testing.T, ms int) {
	t.Helper()
	eval[any](t, p, fmt.Sprintf(`new Promise(done => setTimeout(done, %d))`, ms))
}

// press sends keys to what has the focus.
func (p *page) press(t *testing.T, keys ...string) {
	t.Helper()
	for _, k := range keys {
		key := kb.Keys[[]rune(k)[0]]
		down := input.DispatchKeyEvent(input.KeyDown).WithKey(key.Key).WithCode(key.Code).WithText(key.Text).WithWindowsVirtualKeyCode(key.Windows)
		require.NoError(t, chromedp.Run(p.ctx, down, input.DispatchKeyEvent(input.KeyUp).WithKey(key.Key).WithCode(key.Code)))
	}
}

// sound requires that there was no complaint, that nothing has moved, and that no script ran.
func (p *page) sound(t *testing.T) {
	t.Helper()
	p.quiet(t)
	assert.Empty(t, eval[[]string](t, p, `window.refused`))
	assert.Equal(t, "undefined", eval[string](t, p, `typeof window.hit`))
	assert.LessOrEqual(t, eval[float64](t, p, `window.shifted`), .01, "%v", eval[[]string](t, p, `window.shifts || []`))
	assert.LessOrEqual(t, eval[int](t, p, `document.documentElement.scrollWidth - innerWidth`), 0, "the page is not wider than the screen")
}

// pages are all pages, with an element that is there when the page is.
var pages = []struct{ route, ready, shows string }{
	{"#/overview", ".tile .line", "Nearest to their limit"},
	{"#/tree?s=6y7evp9o8sye0", "[role=treeitem]", "callbacks"},
	{"#/sessions", ".v-row", "ledger-core"},
	{"#/sessions/6y7evp9o8sye0", ".msg", "I continue with"},
	{"#/sessions/x55hostile0ne", ".msg", "window.hit=1"},
	{"#/jobs/errors-1.24", ".v-row", "errors-1.24"},
	{"#/approvals", ".aitem", "auth-middleware"},
	{"#/accounts", ".acc .band", "claude team-b"},
}

// TestWindow looks at the pages of the window in a browser.
func TestWindow(t *testing.T) {
	t.Parallel()
	in := browser(t)
	small := serve(t, 400, 600)

	t.Run("each page", func(t *testing.T) {
		for _, page := range pages {
			t.Run(page.route, func(t *testing.T) {
				p := window(t, in, small, page.route, page.ready)
				p.until(t, fmt.Sprintf(`document.body.textContent.includes(%q)`, page.shows))
				p.sound(t)
				p.inert(t)
				sum := eval[int](t, p, `performance.getEntriesByType("navigation")[0].decodedBodySize + performance.getEntriesByType("resource").filter(e => /\.(js|css|svg)$/.test(new URL(e.name).pathname)).reduce((n, e) => n + e.decodedBodySize, 0)`)
				assert.LessOrEqual(t, sum, 120<<10, "bytes of a first view without data")
				assert.Zero(t, eval[int](t, p, `performance.getEntriesByType("resource").filter(e => new URL(e.name).origin !== location.origin).length`), "nothing comes from elsewhere")
			})
		}
	})

	t.Run("on a phone, one page after the other", func(t *testing.T) {
		p := window(t, in, small, pages[0].route, pages[0].ready, 400, 800)
		for _, page := range pages {
			p.open(t, page.route)
			p.until(t, fmt.Sprintf(`document.querySelector(%q) && document.querySelector("main").textContent.includes(%q)`, page.ready, page.shows))
			assert.LessOrEqual(t, eval[int](t, p, `document.documentElement.scrollWidth - innerWidth`), 0, "%s is not wider than the screen", page.route)
			p.inert(t)
		}
		p.open(t, "#/approvals")
		p.until(t, `document.querySelector(".answer")`)
		assert.True(t, eval[bool](t, p, `[...document.querySelectorAll(".answer .btn")].every(b => { const r = b.getBoundingClientRect(); return r.top > 0 && r.bottom < document.querySelector(".nav").getBoundingClientRect().top; })`), "Allow and Deny are in view")
		p.quiet(t)
	})
}

// open goes to another page of the window, and returns when the one before is gone.
func (p *page) open(t *testing.T, route string) {
	t.Helper()
	eval[any](t, p, fmt.Sprintf(`void (window.left = location.hash === %[1]q ? null : document.querySelector("main").firstElementChild, location.hash = %[1]q)`, route))
	p.until(t, `!window.left?.isConnected`)
}

// inert requires that text is text: no element came from it, and no control character is in the
// page. Each control has a name.
func (p *page) inert(t *testing.T) {
	t.Helper()
	assert.Zero(t, eval[int](t, p, `document.querySelectorAll("main img, main script, main style, main [onclick], main [onerror]").length`))
	assert.Empty(t, eval[[]string](t, p, `[...document.querySelectorAll("body *")].filter(e => [...e.childNodes].some(n => n.nodeType === 3 && /[\x1b\u202e]/.test(n.data)) || [...e.attributes].some(a => /[\x1b\u202e]/.test(a.value))).map(e => e.outerHTML.slice(0, 200))`), "control characters are written as troupe ps writes them")
	assert.Empty(t, eval[[]string](t, p, `[...document.querySelectorAll("button, a[href], input, textarea, select, [role=grid], [role=tree], [role=listbox], nav, dialog, [role=img]")].filter(e => !(e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.textContent.trim() || e.labels?.length)).map(e => e.outerHTML.slice(0, 200))`), "what can be used has a name")
	assert.Equal(t, "undefined", eval[string](t, p, `typeof window.hit`))
}
