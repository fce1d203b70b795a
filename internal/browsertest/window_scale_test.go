package browsertest

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// full says that seconds count, too, and that the flow of events is a minute long: .ci/full window.
var full = os.Getenv("TROUPE_FULL") != ""

// heap is what the page holds after a collection, in bytes.
func (p *page) heap(t *testing.T) (used float64) {
	t.Helper()
	require.NoError(t, chromedp.Run(p.ctx, heapprofiler.CollectGarbage(), heapprofiler.CollectGarbage(), chromedp.ActionFunc(func(ctx context.Context) (err error) {
		used, _, _, _, err = runtime.GetHeapUsage().Do(ctx)
		return err
	})))
	return used
}

const rowsInPage = `document.querySelectorAll(".v-row").length`

// filtered types into the filter, and measures until it is painted.
func filtered(word string) string {
	return `new Promise(done => { const f = document.querySelector("main .find"), at = performance.now(); f.value = "` + word + `"; f.dispatchEvent(new Event("input")); requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - at))); })`
}

// TestTheWindowOfTenThousand has 10,000 sessions and 5,000 tasks.
func TestTheWindowOfTenThousand(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("makes ten thousand sessions")
	}
	in := browser(t)
	s := serve(t, 10000, 5000)

	t.Run("sessions", func(t *testing.T) {
		p := window(t, in, s, "#/sessions", ".v-row")
		paint := eval[float64](t, p, `performance.getEntriesByName("first-contentful-paint")[0].startTime`)
		ready := eval[float64](t, p, `performance.now()`)
		assert.LessOrEqual(t, eval[int](t, p, rowsInPage), 40)
		assert.Equal(t, "10001", eval[string](t, p, `document.querySelector("[role=grid]").getAttribute("aria-rowcount")`))
		eval[any](t, p, `new Promise(done => { const l = document.querySelector(".v-list"); let n = 0; (function next() { l.scrollTop += 4096; ++n < 40 ? requestAnimationFrame(next) : done(); })(); })`)
		assert.LessOrEqual(t, eval[int](t, p, rowsInPage), 40, "after a long scroll, too")
		p.until(t, `[...document.querySelectorAll(".v-row .c-turns")].filter(c => c.textContent === "777,777").length > 10`) // rows in view are fresh
		took := eval[float64](t, p, filtered("gold"))
		assert.LessOrEqual(t, eval[int](t, p, rowsInPage), 40)
		assert.Less(t, eval[int](t, p, `+document.querySelector("[role=grid]").getAttribute("aria-rowcount")`), 5000)
		all := eval[float64](t, p, filtered(""))
		t.Logf("first paint %.0f ms, page with its data %.0f ms, filter %.0f ms, no filter %.0f ms", paint, ready, took, all)
		if full {
			assert.LessOrEqual(t, paint, 300.0)
			assert.LessOrEqual(t, ready, 1000.0)
			assert.LessOrEqual(t, max(took, all), 200.0)
		}
		p.sound(t)
	})

	t.Run("tasks", func(t *testing.T) {
		p := window(t, in, s, "#/jobs/errors-1.24", ".v-row")
		assert.LessOrEqual(t, eval[int](t, p, rowsInPage), 40)
		assert.Contains(t, eval[string](t, p, `document.querySelector(".tasks header").textContent`), "of 5,000")
		took := eval[float64](t, p, filtered("status:rejected"))
		assert.LessOrEqual(t, eval[int](t, p, rowsInPage), 40)
		t.Logf("page with its data %.0f ms, filter %.0f ms", eval[float64](t, p, `performance.now()`), took)
		if full {
			assert.LessOrEqual(t, took, 200.0)
		}
		p.sound(t)
	})

	t.Run("200 events a second", func(t *testing.T) {
		warm, long, most := time.Second, 3*time.Second, 1.5e6
		if full {
			warm, long, most = 15*time.Second, time.Minute, 1e6
		}
		for _, route := range []string{"#/sessions", "#/overview"} {
			p := window(t, in, s, route, ".v-row, .tile .line")
			s.flow(200, warm)
			before := p.heap(t)
			s.flow(200, long)
			after := p.heap(t)
			t.Logf("%s: heap %.2f MB, after %v of 200 events a second %.2f MB", route, before/1e6, long, after/1e6)
			assert.LessOrEqual(t, after-before, most, "the heap does not grow")
			assert.LessOrEqual(t, eval[int](t, p, rowsInPage), 40)
			assert.Less(t, eval[int](t, p, `document.querySelectorAll("*").length`), 1500)
			p.sound(t)
		}
	})
}
