package browsertest

import (
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reads are the streams that are open, by the sessions that each one reads.
func (s *stub) reads() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.readers {
		all = append(all, of)
	}
	return all
}

// oneReader says that there is one stream, or soon one.
func (s *stub) oneReader() bool {
	for range 100 {
		if len(s.reads()) == 1 {
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}

// readsOf waits until the page reads the stream with the messages of a session.
func (s *stub) readsOf(t *testing.T, session string) {
	t.Helper()
	require.Eventually(t, func() bool { return slices.Equal(s.reads(), []string{session}) }, time.Minute, 10*time.Millisecond)
}

// streams are the same, while they are open.
func (s *stub) streams() (all []chan string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of := range s.readers {
		all = append(all, of)
	}
	return all
}

// TestSevenTabs of a browser, which opens six connections to a host: one of them reads the stream for
// all, and another one continues when it is closed.
func TestSevenTabs(t *testing.T) {
	t.Parallel()
	in := browser(t)
	s := serve(t, 40, 100)
	id := s.sessions[10]["id"].(string)
	routes := []string{"#/overview", "#/sessions", "#/jobs/errors-1.24", "#/approvals", "#/accounts", "#/tree", "#/sessions/" + id}
	var tabs []*page
	for _, route := range routes {
		p := window(t, in, s, route, "nav .link[data-on=live]")
		for !s.oneReader() { // the tab that reads has not answered within 2 s, and this one reads alone: it comes again
			require.NoError(t, chromedp.Run(p.ctx, chromedp.Reload()))
			p.until(t, `document.querySelector("nav .link[data-on=live]")`)
		}
		tabs = append(tabs, p)
	}
	for _, p := range tabs {
		p.until(t, `document.querySelector("main h1") && document.querySelector(".link").textContent.startsWith("live")`)
	}
	s.readsOf(t, id)
	last := tabs[6]
	s.say("delta", object{"session": id, "seq": 5000001, "text": "I write"})
	last.until(t, `document.querySelector(".streaming")?.textContent.includes("I write")`)
	assert.Zero(t, eval[int](t, last, `performance.getEntriesByType("resource").filter(e => e.name.includes("/w/events")).length`), "the last tab has no stream of its own")

	before := s.streams()
	require.NoError(t, chromedp.Cancel(tabs[0].ctx), "the tab that reads is closed")
	require.Eventually(t, func() bool { // a stream whose tab is gone has no reader
		return slices.Equal(s.reads(), []string{id}) && !slices.Equal(s.streams(), before)
	}, time.Minute, 10*time.Millisecond, "%v", s.reads())
	s.say("delta", object{"session": id, "seq": 5000001, "text": " and write"})
	last.until(t, `document.querySelector(".streaming")?.textContent.includes("I write and write")`)
	for _, p := range tabs[1:] {
		p.until(t, `document.querySelector(".link").textContent.startsWith("live")`)
		p.quiet(t)
	}
}
