package command

import (
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// hostile is a report of a host whose agent chooses its words with care.
func hostile(program string, pid int) *inspect.Report {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return &inspect.Report{
		Host: inspect.Host{PID: pid, Program: program},
		Tree: runtime.Tree{At: at, Sessions: []runtime.SessionTree{
			{
				At: at, ID: "6y7evp9o8sye0", State: session.StateAwaitingHost, StateSince: at.Add(-182 * time.Second), Opened: at.Add(-2 * time.Hour),
				Backend: "claude", Dir: "/work", AgentSessionID: "b5914de1", PID: 77, Restarts: 1, Transport: "up", Unread: 6, UnreadLimit: 4096,
				Waits: []session.Wait{{
					What: "permission request \x1b]0;owned\x07\x1b[2JBash\u202e\n", ID: "d60144b6", Age: 182 * time.Second, Limit: 5 * time.Minute, SetBy: "PermissionTimeout",
				}},
				Actors: []session.ActorInfo{{Name: "router\u009b#2", State: "running", Restarts: 1, Depth: 3, Handled: 7, LastFailure: "boom\x1b[2J\n"}},
			},
			{
				At: at, ID: "a1", State: session.StateReady, StateSince: at.Add(-time.Second), Opened: at, Backend: "qoder",
				Transport: "up", Unread: 7, UnreadLimit: 4096, Waits: []session.Wait{}, Actors: []session.ActorInfo{},
			},
		}},
	}
}

// screenOf is what a model shows after some messages.
func screenOf(t *testing.T, m tea.Model, messages ...tea.Msg) (tea.Model, []string) {
	t.Helper()
	for _, msg := range messages {
		m, _ = m.Update(msg)
	}
	view := m.View()
	assert.True(t, view.AltScreen)
	assert.False(t, strings.ContainsAny(view.Content, "\x1b\x07\u202e"), "nothing steers the terminal: %q", view.Content)
	return m, strings.Split(view.Content, "\n")
}

func key(code rune) tea.KeyPressMsg { return tea.KeyPressMsg{Code: code, Text: string(code)} }

var (
	enter = tea.KeyPressMsg{Code: tea.KeyEnter}
	esc   = tea.KeyPressMsg{Code: tea.KeyEsc}
	down  = tea.KeyPressMsg{Code: tea.KeyDown}
	up    = tea.KeyPressMsg{Code: tea.KeyUp}
)

// seen are the reports of two hosts that give the same ids to their sessions.
func seen() looked {
	a, b := hostile("builder", 1), hostile("tester", 2)
	a.Host.Socket, b.Host.Socket = "/run/1.sock", "/run/2.sock"
	return looked{reports: []*inspect.Report{a, b}}
}

// marked is the line of the selected session.
func marked(t *testing.T, lines []string) string {
	t.Helper()
	found := ""
	for _, line := range lines {
		if strings.HasPrefix(line, "> ") {
			assert.Empty(t, found, "one session is selected")
			found = line
		}
	}
	return found
}

func TestTopScreens(t *testing.T) {
	t.Parallel()
	var all []string
	add := func(title string, lines []string) { all = append(append(all, "=== "+title), lines...) }
	m, lines := screenOf(t, topModel{})
	add("at first", lines)
	_, lines = screenOf(t, m, looked{})
	add("nobody", lines)
	m, lines = screenOf(t, m, seen())
	add("a list", lines)
	m, lines = screenOf(t, m, down)
	add("the second is selected", lines)
	opened, lines := screenOf(t, m, enter)
	add("it is shown", lines)
	_, lines = screenOf(t, opened, esc)
	assert.Contains(t, marked(t, lines), "6y7evp9o8sye0")
	_, lines = screenOf(t, m, tea.WindowSizeMsg{Width: 60, Height: 7})
	add("60 by 7", lines)
	_, lines = screenOf(t, m, looked{reports: seen().reports[:1], err: errors.New("host 2: no \x1b[2Janswer")})
	add("a host does not answer", lines)
	failing := seen()
	failing.reports[0].Tree.Breakers = []runtime.Breaker{{
		Kind: session.BreakerAgent, Name: "cla\x1b[2Jude", State: session.BreakerOpen, Since: failing.reports[0].Tree.At.Add(-time.Second),
		NextProbe: failing.reports[0].Tree.At.Add(time.Second), Held: 7, LastFailure: "exit code 1\x1b[2J",
	}}
	failing.reports[0].Tree.Accounts = []runtime.AccountStat{{
		Label: "claude-1", Working: 2, Limit: 4, Paced: true, Jobs: 2, Parked: failing.reports[0].Tree.At.Add(time.Hour), Why: "spent\x1b[2J",
	}}
	_, lines = screenOf(t, m, failing)
	add("a breaker is open, and an account is parked", lines)
	golden(t, "top-screens.txt", strings.Join(all, "\n")+"\n")
}

func TestTopSorts(t *testing.T) {
	t.Parallel()
	m, _ := screenOf(t, topModel{}, seen())
	first := map[string]string{}
	for range topOrders() {
		var lines []string
		title := strings.TrimPrefix(m.View().Content[strings.Index(m.View().Content, "sorted by "):], "sorted by ")
		title, _, _ = strings.Cut(title, "\n")
		_, lines = screenOf(t, m)
		first[title] = strings.Fields(strings.TrimLeft(lines[3], "> "))[1]
		m, _ = screenOf(t, m, key('s'))
	}
	assert.Equal(t, map[string]string{
		"SESSION": "6y7evp9o8sye0", "STATE": "6y7evp9o8sye0", "FOR": "6y7evp9o8sye0", "RESTARTS": "6y7evp9o8sye0", "UNREAD": "a1", "WAITS FOR": "6y7evp9o8sye0",
	}, first)
	_, lines := screenOf(t, m, key('r'))
	assert.Contains(t, lines[0], "sorted by SESSION, reversed")
	assert.Contains(t, lines[3], "a1")
	assert.Contains(t, marked(t, lines), "6y7evp9o8sye0", "the selection stays with its session")
}

// TestTopSelects moves over the ends of the list, and loses the session it is on.
func TestTopSelects(t *testing.T) {
	t.Parallel()
	m, lines := screenOf(t, topModel{}, seen(), up)
	assert.Equal(t, lines[3], marked(t, lines))
	m, lines = screenOf(t, m, down, down, down, down, key('j'), key('k'), key('j'))
	assert.Equal(t, lines[6], marked(t, lines))
	m, _ = screenOf(t, m, enter)
	_, lines = screenOf(t, m, looked{reports: seen().reports[:1]})
	assert.Equal(t, lines[3], marked(t, lines), "a session that has ended is shown no more")
	_, lines = screenOf(t, topModel{}, looked{}, enter, down)
	assert.Contains(t, lines[2], nobodyShows)
	for height := range 9 { // of a terminal that is smaller and smaller, the selected line remains
		_, lines = screenOf(t, m, esc, tea.WindowSizeMsg{Width: 200, Height: height})
		assert.NotEmpty(t, marked(t, lines), height)
		if height >= 6 {
			assert.LessOrEqual(t, len(lines), height)
		}
	}
}

// TestTopLooksAgain follows the commands: look, wait, look.
func TestTopLooksAgain(t *testing.T) {
	t.Parallel()
	looks := 0
	m := tea.Model(topModel{look: func() tea.Msg { looks++; return seen() }})
	msg := m.Init()()
	require.IsType(t, looked{}, msg)
	m, wait := m.Update(msg)
	require.NotNil(t, wait)
	start := time.Now()
	msg = wait()
	assert.GreaterOrEqual(t, time.Since(start), topInterval)
	_, look := m.Update(msg)
	require.NotNil(t, look)
	look()
	assert.Equal(t, 2, looks)
	for _, k := range []tea.KeyPressMsg{key('q'), {Code: 'c', Mod: tea.ModCtrl}} {
		_, quit := m.Update(k)
		require.NotNil(t, quit)
		assert.IsType(t, tea.QuitMsg{}, quit())
	}
}
