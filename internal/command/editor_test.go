package command

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

// editing is a chat at a terminal whose lines are edited, and the keys typed there.
func editing(t *testing.T) (*world, func(string)) {
	t.Helper()
	w, keys := chatting(t)
	w.getenv = func(n string) string { return map[string]string{"TERM": "xterm", "NO_COLOR": "1"}[n] }
	w.stdoutTTY, w.stdout = true, w.err // one screen
	w.editTTY = func(io.Reader, func()) (func() (int, int), func(), error) {
		return func() (int, int) { return 80, 24 }, func() { _, _ = io.WriteString(w.err, "(restored)") }, nil
	}
	return w, keys
}

const echoes = `default: [{text: "heard <${prompt}>"}]`

func TestEditedLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ keys, want string }{
		"arrows":              {"helo\x1b[D\x1b[Dl\r", "heard <hello>"},
		"home and end":        {"b\x1b[1~a\x1b[4~c\x1bOHx\r", "heard <xabc>"},
		"a word":              {"one two\x1b\x7fthree\r", "heard <one three>"},
		"backspace":           {"ab\x7fc\r", "heard <ac>"},
		"history":             {"first\rsecond\r\x1b[A\x1b[A!\r", "heard <first!>"},
		"a paste":             {"see: \x1b[200~one\r\n\ttwo\nthree\x1b[201~ end\r", "heard <see: one\n\ttwo\nthree end>"},
		"a paste is inert":    {"\x1b[200~a\x1b[2Jb\x03\u009bc\x1b[201~\r", "heard <a[2Jbc>"},
		"a paste of Enter":    {"\x1b[200~/exit\n\x1b[201~ now\r", "heard </exit\n now>"},
		"a paste from before": {"\x1b[200~a\nb\x1b[201~\rx\r\x1b[A\x1b[A\r", "heard <a\nb>"},
		"other letters":       {"äöü 漢字\r", "heard <äöü 漢字>"},
		"a long paste":        {"\x1b[200~" + strings.Repeat("x", 6000) + "\x1b[201~\r", "heard <" + strings.Repeat("x", 6000) + ">"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, keys := editing(t)
			code := w.start("chat", "-q", "-a", script(t, echoes))
			keys(c.keys)
			w.err.await(t, c.want)
			keys("/exit\r")
			assert.Equal(t, exitOK, <-code)
			assert.True(t, strings.HasPrefix(w.err.String(), askPastes), w.err)
			assert.True(t, strings.HasSuffix(w.err.String(), leavePastes+"(restored)"), w.err)
		})
	}
}

// Keys before a question are part of the next prompt, and never an answer.
func TestEditedQuestion(t *testing.T) {
	t.Parallel()
	w, keys := editing(t)
	agent := asksLater()
	agent.add(w)
	code := w.start("chat", "-a", "held")
	keys("go\r")
	w.err.await(t, "begun")
	keys("y\r")
	keys("") // until the next read: they were taken
	agent.free.Store(true)
	w.err.await(t, allowQuestion)
	keys("nx\x7f\r")
	w.err.await(t, "✗ "+deniedByUser)
	w.err.await(t, "heard <y>")
	keys("\x04")
	assert.Equal(t, exitOK, <-code)
}

// What the agent does by itself takes the prompt away; what was typed there comes back.
func TestEditedPromptGivesWay(t *testing.T) {
	t.Parallel()
	w, keys := editing(t)
	agent := endsLater()
	agent.add(w)
	code := w.start("chat", "-y", "-q", "-a", "held")
	keys("go\r")
	w.err.await(t, "\r\n> ")
	keys("half")
	keys("")
	agent.free.Store(true)
	w.err.await(t, "it is made\n> half")
	keys(" whole\r")
	w.err.await(t, "heard <half whole>")
	keys("/exit\r")
	assert.Equal(t, exitOK, <-code)
}

func TestEditedPromptAndCtrlC(t *testing.T) {
	t.Parallel()
	w, keys := editing(t)
	code := w.start("chat", "-q", "-a", script(t, echoes))
	w.err.await(t, "> ")
	keys("no")
	w.err.await(t, "no")
	w.signal <- os.Interrupt
	w.err.await(t, "no\r\n> ")
	keys("yes\r")
	w.err.await(t, "heard <yes>")
	w.err.await(t, "heard <yes>\n> ")
	w.signal <- os.Interrupt
	assert.Equal(t, 130, <-code)
	assert.Contains(t, w.err.String(), "troupe: interrupted\n")
	assert.True(t, strings.HasSuffix(w.err.String(), "(restored)"), "%q", w.err)
}

func TestEditedInputEnds(t *testing.T) {
	t.Parallel()
	w, _ := editing(t)
	w.stdin = strings.NewReader("")
	assert.Equal(t, exitOK, w.run("chat", "-a", script(t, echoes)))

	w, _ = editing(t)
	code := w.start("chat", "-a", script(t, slowTurn))
	w.err.await(t, "> ")
	w.signal <- syscall.SIGTERM
	assert.Equal(t, 143, <-code)
	assert.True(t, strings.HasSuffix(w.err.String(), "(restored)"), "%q", w.err)
}

// Keys come in any pieces.
func TestKeysInPieces(t *testing.T) {
	t.Parallel()
	const typed = "a\x1b[200~one\r\n\ttwo\x1b[2\x1b[201~\x1b[1~b\x1bOA"
	var whole keys
	want := string(whole.plain([]byte(typed)))
	assert.Equal(t, "a"+pasteBegin+"one"+lineMark+tabMark+"two[2"+pasteEnd+"\x1b[Hb\x1b[A", want)
	for cut := range len(typed) {
		var k keys
		got := string(k.plain([]byte(typed[:cut]))) + string(k.plain([]byte(typed[cut:])))
		if !strings.Contains(typed[:cut], "\x1b[201~") { // a key alone comes whole
			assert.Equal(t, want, got, "cut at %d", cut)
		}
	}
}
