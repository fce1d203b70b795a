package browsertest

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sent are the changes that the stub was asked for.
func (s *stub) sent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.posts...)
}

// set changes the stub between two requests.
func (s *stub) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// TestUsingTheWindow does what a person does, with the keyboard alone.
func TestUsingTheWindow(t *testing.T) {
	t.Parallel()
	in := browser(t)

	t.Run("keys go through the pages", func(t *testing.T) {
		s := serve(t, 400, 600)
		p := window(t, in, s, "#/overview", ".tile .line")
		p.press(t, "g", "s")
		p.until(t, `location.hash.startsWith("#/sessions") && document.querySelector(".v-row")`)
		p.press(t, "/", "b", "i", "l", "l", "i", "n", "g", kb.Enter)
		p.until(t, `document.querySelectorAll(".v-row").length === 1 && document.querySelector(".v-row[aria-selected=true]")`)
		assert.Equal(t, "list", eval[string](t, p, `document.activeElement.id`))
		assert.Equal(t, "#/sessions?q=billing", eval[string](t, p, `location.hash`), "the view has an address")
		p.press(t, kb.Enter)
		p.until(t, `document.querySelector(".msg")`)
		p.press(t, kb.Escape)
		p.until(t, `document.querySelector("#find")?.value === "billing" && document.querySelectorAll(".v-row").length === 1`)
		p.press(t, kb.Escape)
		p.until(t, `document.querySelectorAll(".v-row").length > 10`)
		p.press(t, "g", "t")
		p.until(t, `document.querySelector("[role=treeitem]")`)
		eval[any](t, p, `void document.querySelector("[role=tree]").focus()`)
		before := eval[int](t, p, `document.querySelectorAll("[role=treeitem]").length`)
		p.press(t, kb.Home, kb.ArrowLeft)
		p.until(t, `document.querySelectorAll("[role=treeitem]").length === 1`)
		p.press(t, kb.ArrowRight)
		assert.Equal(t, before, eval[int](t, p, `document.querySelectorAll("[role=treeitem]").length`), "what was open inside is open again")
		p.press(t, "?")
		p.until(t, `document.querySelector("dialog.help[open]")`)
		p.press(t, kb.Escape)
		p.sound(t)
	})

	t.Run("an answer needs two keys", func(t *testing.T) {
		s := serve(t, 10, 100)
		p := window(t, in, s, "#/approvals", ".aitem")
		p.until(t, `document.title.startsWith("(3)")`)
		p.press(t, "a")
		p.until(t, `document.activeElement.textContent.startsWith("Allow once") && !document.querySelector(".armed").hidden`)
		assert.Empty(t, s.sent(), "one key alone never allows")
		// The keys of a fast person come in the moment in which the list has moved.
		eval[any](t, p, `void (window.early = new Promise(done => new MutationObserver((_, o) => {
			if (document.querySelectorAll(".aitem:not(.was)").length !== 2) return;
			o.disconnect();
			for (const key of ["a", "Enter"]) document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
			done(document.activeElement.textContent);
		}).observe(document.querySelector(".alist"), { childList: true })))`)
		p.press(t, kb.Enter)
		assert.NotContains(t, eval[string](t, p, `window.early.then(t => t.slice(0, 10))`), "Allow once", "keys do not count while the list moves")
		p.until(t, `document.querySelectorAll(".aitem:not(.was)").length === 2`)
		p.pause(t, 450)
		assert.Equal(t, []string{`api/approvals/4be1c09d77f2a6103c55e8b1 {"allow":true}`}, s.sent())
		p.press(t, "d", "n", "o", kb.Enter)
		p.until(t, `document.querySelectorAll(".aitem:not(.was)").length === 1`)
		assert.Equal(t, `api/approvals/91d0e7a2c4b85f6021aa9e3d {"allow":false,"reason":"no"}`, s.sent()[1])
		p.quiet(t)
	})

	t.Run("of two people one answer counts", func(t *testing.T) {
		s := serve(t, 10, 100)
		p := window(t, in, s, "#/approvals", ".aitem")
		s.set(func() { s.answers["api/approvals/4be1c09d77f2a6103c55e8b1"] = http.StatusConflict })
		p.press(t, "a", kb.Enter)
		p.until(t, `document.querySelector(".adetail").textContent.includes("noa has denied this call") && document.querySelector(".adetail").textContent.includes("Keep vendor/")`)
		// Another person answers the next one while it is looked at: the page stays with it.
		p.pause(t, 450)
		p.press(t, "j")
		p.until(t, `document.querySelector(".adetail h2")`)
		p.pause(t, 450)
		s.say("decided", object{"id": "91d0e7a2c4b85f6021aa9e3d", "allow": true, "who": "noa", "at": s.ago(0)})
		s.say("decided", object{"id": "77aa", "allow": true, "who": "noa", "at": s.ago(0)})
		p.until(t, `document.querySelector(".adetail").textContent.includes("noa has allowed this call") && document.querySelectorAll(".aitem:not(.was)").length === 0`)
	})

	t.Run("without Steer nothing is sent", func(t *testing.T) {
		s := serve(t, 10, 100)
		s.steer = false
		p := window(t, in, s, "#/jobs/errors-1.24", ".v-row")
		p.press(t, "p")
		p.until(t, `document.querySelector(".toast.on")?.textContent.includes("Read-only")`)
		assert.Equal(t, 0, eval[int](t, p, `[...document.querySelectorAll(".title .btn")].filter(b => !b.getAttribute("aria-disabled")).length`))
		eval[any](t, p, `[...document.querySelectorAll(".title .btn")].forEach(b => b.click())`)
		assert.Empty(t, s.sent())
		assert.Zero(t, eval[int](t, p, `document.querySelectorAll("dialog.ask").length`))
		p.quiet(t)
	})

	t.Run("without Content no message is fetched", func(t *testing.T) {
		s := serve(t, 10, 0)
		s.content = false
		p := window(t, in, s, "#/sessions/6y7evp9o8sye0", ".tx .empty")
		assert.Contains(t, eval[string](t, p, `document.querySelector(".tx").textContent`), "Access.Content")
		assert.Zero(t, eval[int](t, p, `performance.getEntriesByType("resource").filter(e => e.name.includes("/messages")).length`))
		p.quiet(t)
	})

	t.Run("what ran at each moment", func(t *testing.T) {
		s := serve(t, 10, 600)
		p := window(t, in, s, "#/jobs/errors-1.24", ".v-row")
		p.until(t, `document.querySelector("[aria-label^='Running attempts'] .area.f-work")`)
		eval[any](t, p, `void document.querySelector("[aria-label^='Running attempts'] .astable").click()`)
		p.until(t, `document.querySelectorAll("dialog[open] tbody tr").length > 100`)
		assert.Equal(t, 47, eval[int](t, p, `Math.max(...[...document.querySelectorAll("dialog[open] tbody tr")].slice(-3).map(r => +r.cells[1].textContent || 0))`), "those that run now")
		p.press(t, kb.Escape)
		p.until(t, `!document.querySelector("dialog[open]")`)
		assert.Zero(t, eval[int](t, p, `[...document.querySelectorAll(".chart")].filter(c => !c.querySelector(".astable")).length`), "each chart has a table")
		for range eval[int](t, p, `document.querySelectorAll(".chart .astable").length`) {
			eval[any](t, p, `void (() => { const all = [...document.querySelectorAll(".chart .astable")]; window.nth = (window.nth ?? -1) + 1; all[window.nth].click(); })()`)
			p.until(t, `document.querySelectorAll("dialog[open] th[scope=col]").length > 1 && document.querySelector("dialog[open] tbody td")`)
			p.press(t, kb.Escape)
			p.until(t, `!document.querySelector("dialog[open]")`)
		}
		p.inert(t)
		p.quiet(t)
	})

	t.Run("dialogs", func(t *testing.T) {
		s := serve(t, 10, 100)
		p := window(t, in, s, "#/jobs/errors-1.24", ".v-row")
		click := func(button string) {
			t.Helper()
			eval[any](t, p, `void [...document.querySelectorAll("main .btn")].find(b => b.textContent.startsWith("`+button+`")).click()`)
			p.until(t, `document.querySelector("dialog.ask[open]")`)
		}
		click("Retune")
		p.press(t, "1", "2", kb.Enter)
		p.until(t, `!document.querySelector("dialog.ask")`)
		click("Cancel")
		assert.True(t, eval[bool](t, p, `document.querySelector("dialog.ask [type=submit]").disabled`), "the name comes first")
		for _, c := range "errors-1.24" {
			p.press(t, string(c))
		}
		p.press(t, kb.Enter)
		p.until(t, `!document.querySelector("dialog.ask")`)
		click("Retune")
		s.set(func() { s.steer = false })
		p.press(t, "3", kb.Enter)
		p.until(t, `document.querySelector("dialog.ask [role=alert]").textContent.includes("refused")`)
		s.set(func() { s.steer = true })
		p.press(t, kb.Escape)
		p.until(t, `!document.querySelector("dialog.ask")`)
		p.open(t, "#/accounts")
		p.until(t, `document.querySelector(".acc")`)
		click("Park")
		eval[any](t, p, `(() => { const i = document.querySelector("dialog.ask input"); i.value = "soon"; i.dispatchEvent(new Event("input", { bubbles: true })); })()`)
		assert.True(t, eval[bool](t, p, `document.querySelector("dialog.ask [type=submit]").disabled`), "soon is not a time")
		eval[any](t, p, `(() => { const i = document.querySelector("dialog.ask input"); i.value = "2h"; i.dispatchEvent(new Event("input", { bubbles: true })); })()`)
		p.press(t, kb.Enter)
		p.until(t, `!document.querySelector("dialog.ask")`)
		assert.Equal(t, []string{
			`api/jobs/errors-1.24/retune {"limit":12}`, `api/jobs/errors-1.24/cancel {"confirm":"errors-1.24"}`, `api/jobs/errors-1.24/retune {"limit":3}`, `api/accounts/claude 3f9c12/park {"for_ms":7200000,"why":""}`,
		}, s.sent())
	})

	t.Run("a transcript", func(t *testing.T) {
		s := serve(t, 40, 0)
		id := s.sessions[10]["id"].(string)
		p := window(t, in, s, "#/sessions/"+id, ".msg")
		assert.Equal(t, 200, eval[int](t, p, `document.querySelectorAll(".msg").length`), "the last ones")
		p.until(t, `document.querySelector(".tx").scrollTop > 1000`)
		s.readsOf(t, id)
		s.say("delta", object{"session": id, "seq": 1001, "text": "I write "})
		s.say("delta", object{"session": id, "seq": 1001, "text": hostile})
		p.until(t, `document.querySelector(".streaming")?.textContent.includes("I write </script>")`)
		s.say("message", object{"session": id, "seq": 1001, "at": s.ago(0), "type": "assistant", "message": object{"role": "assistant", "content": []object{{"type": "text", "text": "I wrote it."}}}})
		p.until(t, `!document.querySelector(".streaming") && document.querySelector(".tx").textContent.includes("I wrote it.")`)
		p.press(t, "/", "n", "e", "e", "d", "l", "e", kb.Enter)
		p.until(t, `document.activeElement.matches(".tx-bar .find") && document.querySelector(".tx-bar").textContent.includes("1 of 1 message")`)
		assert.Equal(t, 1001, eval[int](t, p, `document.querySelectorAll(".msg").length`), "it was in the first page")
		assert.True(t, eval[bool](t, p, `(() => { const e = [...document.querySelectorAll(".msg")].find(e => e.textContent.includes("needle")).getBoundingClientRect(), b = document.querySelector(".tx").getBoundingClientRect(); return e.top >= b.top && e.bottom <= b.bottom; })()`), "it is in view")
		assert.Equal(t, 1, eval[int](t, p, `[...CSS.highlights.get("found")].length`))
		assert.LessOrEqual(t, eval[int](t, p, `document.querySelectorAll(".c-lanes rect").length`), 900, "600 turns and 600 calls are fewer bars")
		eval[any](t, p, `void document.querySelector(".c-lanes .astable").click()`)
		p.until(t, `document.querySelectorAll("dialog[open] tbody tr").length === 500`)
		p.press(t, kb.Escape)
		p.inert(t)
		p.quiet(t)
	})

	t.Run("a crash is seen", func(t *testing.T) {
		s := serve(t, 40, 0)
		p := window(t, in, s, "#/tree?s=6y7evp9o8sye0", "[role=treeitem]")
		s.say("actor", object{"session": "6y7evp9o8sye0", "name": "router#2", "incarnation": 2, "state": "crashed", "restarts": 0, "last_failure": hostile})
		s.say("actor", object{"session": "6y7evp9o8sye0", "name": "router", "state": "restarting", "restarts": 0})
		s.say("actor", object{"session": "6y7evp9o8sye0", "name": "router#3", "incarnation": 3, "state": "running", "restarts": 2})
		p.until(t, `document.querySelector(".trow.is-crashed")?.textContent.includes("router#2") && document.querySelector(".nd.is-crashed")`)
		p.until(t, `document.querySelector(".trow.is-restarting") && document.querySelector(".ln.is-restarting")`)
		p.until(t, `document.querySelector(".trow.is-born")?.textContent.match(/router#3.*↻2/) && document.querySelector(".nd.is-born")`)
		p.inert(t)
		p.sound(t)
	})

	t.Run("several hosts", func(t *testing.T) {
		s := serve(t, 40, 0)
		s.hosts = []object{{"id": "a-1", "name": hostile, "up": true}, {"id": "b-2", "name": "fleetd 7", "up": true}}
		for i, o := range s.sessions {
			o["host"] = []string{"a-1", "b-2"}[i%2]
		}
		p := window(t, in, s, "#/sessions?q=billing", ".v-row")
		p.until(t, `document.querySelectorAll("select.host option").length === 3 && document.querySelector(".v-row .c-host").textContent === "a-1"`)
		p.inert(t)
		eval[any](t, p, `void document.querySelector(".v-row").click()`)
		p.until(t, `location.hash === "#/sessions/6y7evp9o8sye0?host=a-1" && document.querySelector(".msg")`)
		p.until(t, `performance.getEntriesByType("resource").some(e => e.name.endsWith("session=6y7evp9o8sye0&host=a-1"))`)
		p.until(t, `performance.getEntriesByType("resource").some(e => e.name.endsWith("/timeline?host=a-1"))`)
		p.quiet(t)
		p = tab(t, in, s.URL+"/w/?host=b-2#/overview", ".tile")
		p.until(t, `document.querySelector("header.page").textContent.includes("20 sessions")`) // of that host alone
		p.quiet(t)
	})

	t.Run("jobs of several hosts", func(t *testing.T) {
		s := serve(t, 10, 100)
		s.hosts = []object{{"id": "a-1", "name": "fleetd 7", "up": true}, {"id": "w-2", "name": "w-2", "pid": 7, "up": true, "drain": true}}
		other := maps.Clone(s.jobs[0])
		s.jobs[0]["host_id"], other["host_id"] = "a-1", "w-2"
		s.jobs = append(s.jobs, other)
		for _, a := range s.approvals {
			a["host"] = "a-1"
		}
		p := window(t, in, s, "#/jobs", ".jobcard")
		p.until(t, `[...document.querySelectorAll(".jobcard")].map(c => c.getAttribute("href")).join() === "#/jobs/errors-1.24?host=a-1,#/jobs/errors-1.24?host=w-2"`)
		eval[any](t, p, `void document.querySelectorAll(".jobcard")[1].click()`)
		p.until(t, `document.querySelector(".v-row")`)
		p.press(t, "p")
		p.until(t, `document.querySelector(".toast.on")?.textContent.includes("Asked")`)
		p.open(t, "#/approvals")
		p.until(t, `document.querySelector(".adetail .btn.good")`)
		p.pause(t, 500)
		p.press(t, "a", kb.Enter)
		p.until(t, `document.querySelector(".aitem.was")`)
		s.say("event", object{"at": s.ago(0), "type": "WorkerGone", "level": "WARN", "text": hostile, "host": "w-2"})
		p.open(t, "#/overview")
		p.until(t, `document.querySelector(".events").textContent.includes(" at w-2")`)
		p.inert(t)
		assert.Equal(t, []string{"a-1", "w-2"}, slices.Sorted(maps.Keys(s.posted())), "each order goes to its host")
		p.quiet(t)
		p = tab(t, in, s.URL+"/w/?host=w-2#/overview", "select.host")
		p.until(t, `[...document.querySelectorAll(".brand .btn")].some(b => b.textContent === "Drain…")`)
		eval[any](t, p, `void document.querySelector(".brand .btn").click()`)
		p.until(t, `document.querySelector("dialog.ask[open] [type=submit]")`)
		eval[any](t, p, `void document.querySelector("dialog.ask [type=submit]").click()`)
		p.until(t, `!document.querySelector("dialog.ask")`)
		assert.Contains(t, s.sent(), "api/host/drain {}")
		p.quiet(t)
	})

	t.Run("login", func(t *testing.T) {
		s := serve(t, 40, 0)
		s.locked = true
		p := tab(t, in, s.URL+"/w/#/tree", "#code")
		assert.Zero(t, eval[int](t, p, `document.querySelectorAll("nav").length`), "nothing of the program is shown")
		p.press(t, "w", "r", "o", "n", "g", kb.Enter)
		p.until(t, `document.querySelector("[role=alert]").textContent.includes("does not count")`)
		p.press(t, "r", "i", "g", "h", "t", kb.Enter)
		p.until(t, `document.querySelector("[role=treeitem]")`)
		s.set(func() { s.locked = true })
		p.open(t, "#/sessions")
		p.until(t, `document.querySelector("#code") && !document.querySelector("nav")`)
		p.press(t, "u", "s", "e", "d", kb.Enter)
		p.until(t, `document.querySelector("[role=alert]").textContent.includes("does not count")`)
	})

	t.Run("a stream that says nothing", func(t *testing.T) {
		s := serve(t, 400, 0)
		p := window(t, in, s, "#/sessions?q=chat&sort=usd", ".v-row")
		p.until(t, `document.querySelector(".link").textContent.startsWith("live")`)
		s.say("event", object{"at": s.ago(0), "level": "INFO", "type": "Note", "text": "x"})
		eval[any](t, p, `void (document.querySelector(".v-list").scrollTop = 1600)`)
		p.until(t, `[...document.querySelectorAll(".v-row")].every(r => r.getAttribute("aria-rowindex") > 40)`) // those that are in view now
		first := eval[string](t, p, `[...document.querySelectorAll(".v-row")].map(r => r.textContent.slice(0, 40)).sort()[0]`)
		s.set(func() { s.mute = true })
		p.until(t, `document.querySelector(".lost").textContent.includes("Connection lost")`)
		assert.True(t, eval[bool](t, p, `document.documentElement.classList.contains("is-lost")`))
		s.set(func() { s.mute = false })
		eval[any](t, p, `void document.querySelector(".lost .btn").click()`)
		p.until(t, `document.querySelector(".link").textContent.startsWith("live") && !document.querySelector(".lost").textContent`)
		s.set(func() { require.NotEmpty(t, s.last[len(s.last)-1], "it goes on where it was") })
		eval[any](t, p, `void (window.fetched = () => performance.getEntriesByType("resource").filter(e => e.name.includes("api/sessions")).length, window.before = window.fetched())`)
		assert.Equal(t, 1, eval[int](t, p, `window.before`), "the new stream is no reason to fetch them again")
		s.say("resync", object{"reason": "1,024 behind"})
		p.until(t, `window.fetched() > window.before`)
		p.pause(t, 300)
		assert.Equal(t, 1600.0, eval[float64](t, p, `document.querySelector(".v-list").scrollTop`), "the place is kept")
		assert.Equal(t, "#/sessions?q=chat&sort=usd", eval[string](t, p, `location.hash`), "filter and order are kept")
		assert.Equal(t, first, eval[string](t, p, `[...document.querySelectorAll(".v-row")].map(r => r.textContent.slice(0, 40)).sort()[0]`))
		p.quiet(t)
	})
}
