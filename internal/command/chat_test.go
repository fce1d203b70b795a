package command

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// chatting is a world at a terminal, and the keys typed there.
func chatting(t *testing.T) (*world, func(string)) {
	t.Helper()
	w, _ := attended(t)
	in, typed := io.Pipe()
	t.Cleanup(func() { _ = typed.Close() })
	w.stdin, w.stdinTTY, w.openTTY = in, true, nil
	return w, func(keys string) {
		_, err := io.WriteString(typed, keys)
		require.NoError(t, err)
	}
}

func TestChatHasTurnsOfOneSession(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.stdin = strings.NewReader("one\n\n  \n/help\ntwo\nthree")
	// The second turn is the script's second: the same agent has heard the first.
	agent := script(t, `turns: [{steps: [{text: "first ${prompt}"}]}, {steps: [{text: "second ${prompt}"}]}, {steps: [{text: "third ${prompt}"}]}]`)
	assert.Equal(t, exitOK, w.run("chat", "-a", agent), w.err)
	assert.Equal(t, "first one\nsecond two\nthird three\n", w.out.String())
	assert.Equal(t, chatCommands, w.err.String())
}

func TestChatEnds(t *testing.T) {
	t.Parallel()
	turn := func(steps string) string { return "turns: [{steps: [" + steps + "]}, {steps: [{text: fine}]}]" }
	for name, c := range map[string]struct {
		script string
		stdin  io.Reader
		args   []string
		code   int
		stdout string
		stderr string
	}{
		"without a line":       {turn(`{text: hi}`), strings.NewReader(""), nil, exitOK, "", ""},
		"by command":           {turn(`{text: hi}`), strings.NewReader("go\n/exit\nmore\n"), nil, exitOK, "hi\n", ""},
		"with background work": {turn(`{shell: {command: make, takes: 20ms, then: [{text: it is made}]}}, {text: hi}`), strings.NewReader("go\n"), []string{"-q", "-y"}, exitOK, "hi\n\nit is made\n", ""},
		"after a failed turn":  {turn(`{result: {subtype: error_max_turns}}`), strings.NewReader("go\n"), nil, exitResult, "", "troupe: the run ended in an error (error_max_turns)\n"},
		"after a good turn":    {turn(`{result: {subtype: error_max_turns}}`), strings.NewReader("go\ngo\n"), nil, exitOK, "fine\n", "troupe: the run ended in an error (error_max_turns)\n"},
		"at a dead agent":      {turn(`{text: hi}, {exit: {code: 9}}`), strings.NewReader("go\nmore\n"), nil, exitDied, "hi\n", "troupe: agent claude ended during a turn"},
		"at a later turn":      {`turns: [{steps: [{text: hi}]}, {steps: [{exit: {code: 9}}]}]`, strings.NewReader("go\nmore\n"), nil, exitDied, "hi\n", "troupe: agent claude ended during a turn"},
		"at the start":         {"misbehave: {initialize: {mode: refuse, error: no room}}", strings.NewReader("go\n"), nil, exitStart, "", "troupe: the agent refused control request initialize: no room"},
		"at a bad option":      {turn(`{text: hi}`), strings.NewReader("go\n"), []string{"--permission-mode", "odd"}, exitUsage, "", "troupe: option --permission-mode (claude)"},
		"out of time":          {turn(`{delay: 1h}`), strings.NewReader("go\n"), []string{"-t", "50ms"}, exitTimeout, "", "troupe: the time limit ran out (--timeout)\n"},
		"at a broken input":    {turn(`{text: hi}`), io.MultiReader(strings.NewReader("go\n"), iotest.ErrReader(errors.New("bad disk"))), nil, exitDied, "hi\n", "troupe: read the input: bad disk\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.stdin = c.stdin
			assert.Equal(t, c.code, w.run(append([]string{"chat", "-a", script(t, c.script)}, c.args...)...), w.err)
			assert.Equal(t, c.stdout, w.out.String())
			assert.Equal(t, strings.HasSuffix(c.stderr, "\n") || c.stderr == "", c.stderr == w.err.String(), w.err)
			assert.True(t, strings.HasPrefix(w.err.String(), c.stderr), w.err)
		})
	}
}

func TestChatEndsWhereTheOutputDoes(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.stdin, w.stdout = strings.NewReader("go\n"), &broken{1, syscall.EPIPE}
	assert.Equal(t, exitPipe, w.run("chat", "-a", script(t, `turns: [{steps: [{text: hi}, {delay: 1h}]}]`)))
	assert.Empty(t, w.err.String())
}

func TestChatAsksInItsPlace(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{"y": "← done", "n": "✗ " + deniedByUser} {
		w, keys := chatting(t)
		code := w.start("chat", "-a", script(t, asks))
		w.err.await(t, "> ")
		keys("go\n")
		w.err.await(t, askedFor)
		assert.Equal(t, "I will look.\n", w.out.String(), "what came before is shown before")
		keys(answer + "\n")
		w.err.await(t, want+"\n> ")
		keys("/exit\n")
		assert.Equal(t, exitOK, <-code)
		assert.Equal(t, ">   → Bash ls (and 1 more line)\n"+askedFor+"  "+want+"\n> ", w.err.String())
	}
}

// What is typed ahead of a question is the next prompt, not the answer.
func TestChatLinesTypedAheadAnswerNothing(t *testing.T) {
	t.Parallel()
	w, keys := chatting(t)
	agent := asksLater()
	agent.add(w)
	code := w.start("chat", "-a", "held")
	keys("go\n")
	w.out.await(t, "begun")
	keys("y\n")
	keys("") // until the next read: the line was taken
	agent.free.Store(true)
	w.err.await(t, "Allow it? [y/n/a/?] ")
	keys("n\n")
	w.out.await(t, "heard <y>")
	keys("/exit\n")
	assert.Equal(t, exitOK, <-code)
	assert.Contains(t, w.err.String(), "✗ "+deniedByUser)
}

func TestChatWithNobodyToAsk(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.stdin = strings.NewReader("go\ny\n")
	assert.Equal(t, exitOK, w.run("chat", "-a", script(t, asks)))
	assert.Contains(t, w.err.String(), "troupe: denied Bash: there is no terminal to ask on")

	w = newWorld()
	w.stdin = strings.NewReader("Say hello\n")
	assert.Equal(t, exitOK, w.run("chat", "-a", "scripted"))
	assert.Contains(t, w.err.String(), "troupe: allowed Bash: there is no terminal to ask on")
	assert.Contains(t, w.out.String(), "You said: Say hello\n")
}

func TestChatDeclinesWhatItCannotAsk(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.stdin = strings.NewReader("go\n")
	assert.Equal(t, exitOK, w.run("chat", "-a", script(t, `turns: [{steps: [{elicitation: {server: "sh\eop", message: "Size?"}}, {text: done}]}]`)))
	assert.Equal(t, "troupe: declined a question of the MCP server sh\\x1bop: this command cannot ask it\n", w.err.String())
	assert.Equal(t, "done\n", w.out.String())
}

func TestChatOutputIsInert(t *testing.T) {
	t.Parallel()
	w, keys := chatting(t)
	w.stdoutTTY = true
	code := w.start("chat", "-a", script(t, `turns: [{steps: [{text: "\e[2Jhidden \u202e"}, {tool_use: {name: "B\e[0m", input: {command: "x\e[31m"}, gate: ask, result: "r\e[1m"}}]}]`))
	keys("go\n")
	w.err.await(t, "Allow it? [y/n/a/?] ")
	keys("y\n")
	w.err.await(t, `← r\x1b[1m`)
	keys("/exit\n")
	assert.Equal(t, exitOK, <-code)
	assert.Equal(t, "\\x1b[2Jhidden \\x202e\n", w.out.String())
	assert.Contains(t, w.err.String(), `→ B\x1b[0m x\x1b[31m`)
	assert.NotContains(t, w.out.String()+w.err.String(), "\x1b")
}

func TestChatInterrupts(t *testing.T) {
	t.Parallel()
	const slow = `turns: [{steps: [{text: begun}, {delay: 1h}]}, {steps: [{text: next}]}]`
	for name, c := range map[string]struct {
		script string
		after  func(w *world, keys func(string)) // the first Ctrl-C
		code   int
		stderr string
	}{
		"the turn": {slow, func(w *world, keys func(string)) {
			keys("go on\n")
			w.out.await(t, "next")
			keys("/exit\n")
		}, exitOK, interrupting + "\n> > "},
		"the turn, and then the prompt": {slow, func(w *world, _ func(string)) {
			w.err.await(t, interrupting+"\n> ")
			w.signal <- os.Interrupt
		}, 130, "troupe: interrupted\n"},
		"a deaf turn": {slow + "\nmisbehave: {ignore: [interrupt]}", func(w *world, _ func(string)) {
			w.err.await(t, interrupting)
			w.signal <- os.Interrupt
		}, 130, "troupe: closing; Ctrl-C again kills the agent\ntroupe: interrupted\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, keys := chatting(t)
			code := w.start("chat", "-a", script(t, c.script))
			keys("go\n")
			w.out.await(t, "begun")
			w.signal <- os.Interrupt
			c.after(w, keys)
			assert.Equal(t, c.code, <-code)
			assert.Contains(t, w.err.String(), c.stderr)
		})
	}
}

func TestChatInterruptOfAQuestion(t *testing.T) {
	t.Parallel()
	w, keys := chatting(t)
	code := w.start("chat", "-a", script(t, asks))
	keys("go\n")
	w.err.await(t, "Allow it? [y/n/a/?] ")
	w.signal <- os.Interrupt
	w.err.await(t, "(withdrawn)\n")
	keys("/exit\n")
	assert.Equal(t, exitOK, <-code)
	assert.NotContains(t, w.err.String(), "← done")
}

// What the agent begins by itself, at the prompt, starts on a line of its own and
// has a prompt after it.
func TestChatShowsWhatComesAtThePrompt(t *testing.T) {
	t.Parallel()
	w, keys := chatting(t)
	w.stdoutTTY, w.stdout = true, w.err // one screen
	agent := endsLater()
	agent.add(w)
	code := w.start("chat", "-y", "-q", "-a", "held")
	keys("go\n")
	w.err.await(t, "> > ")
	agent.free.Store(true)
	w.err.await(t, "made\n> ")
	keys("/exit\n")
	assert.Equal(t, exitOK, <-code)
	assert.True(t, strings.HasPrefix(w.err.String(), "> > \nit is made\n> "), w.err)
}

// Lines that nobody takes do not keep the answer to a question from its place.
func TestChatDropsWhatIsTooFarAhead(t *testing.T) {
	t.Parallel()
	w, keys := chatting(t)
	code := w.start("chat", "-a", script(t, slowTurn))
	keys("go\n")
	w.out.await(t, "begun")
	keys(strings.Repeat("ahead\n", linesAhead) + "too far\n")
	w.err.await(t, "troupe: too many lines are waiting; this line is dropped: too far\n")
	w.signal <- syscall.SIGTERM
	assert.Equal(t, 143, <-code)
}

func TestChatEndsAtThePrompt(t *testing.T) {
	t.Parallel()
	for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		w, _ := chatting(t)
		code := w.start("chat", "-a", script(t, slowTurn))
		w.err.await(t, "> ")
		w.signal <- sig
		assert.Equal(t, want, <-code)
		assert.NotContains(t, w.err.String(), interrupting)
	}
	w, _ := chatting(t)
	w.stdin = strings.NewReader("")
	assert.Equal(t, exitOK, w.run("chat", "-a", "scripted"))
	assert.Equal(t, "> \n", w.err.String())
}
