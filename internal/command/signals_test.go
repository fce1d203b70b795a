package command

import (
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

const (
	slowTurn = `turns: [{steps: [{text: begun}, {delay: 1h}]}]`
	// deaf does not take interrupts, nor the end of its input.
	deaf = slowTurn + "\nmisbehave: {ignore: [interrupt], ignore_eof: true, trap_term: true}"
)

// patient is --config with options that leave the end of a session to the next signal, however late that comes.
func patient(t *testing.T) []string {
	t.Helper()
	return []string{"--config", taskFile(t, "options.yaml", "interruptGrace: 1h\ncloseTimeout: 2h\n")}
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	w := newWorld()
	code := w.start("run", "go", "-a", script(t, slowTurn))
	w.out.await(t, "begun")
	w.signal <- os.Interrupt
	assert.Equal(t, 130, <-code)
	assert.Equal(t, "begun\n", w.out.String())
	assert.Equal(t, "troupe: interrupting; Ctrl-C again closes the session\ntroupe: interrupted\n", w.err.String())
}

func TestInterruptedReport(t *testing.T) {
	t.Parallel()
	w := newWorld()
	code := w.start("run", "go", "-a", script(t, slowTurn), "-o", "json", "-v")
	w.err.await(t, "state ready -> running")
	w.signal <- os.Interrupt
	assert.Equal(t, 130, <-code)
	assert.Regexp(t, `^{"agent":"scripted","exit_code":130,.*"error":"interrupted","result":{.*"subtype":"error_during_execution"`, w.out.String())
}

func TestSecondInterruptCloses(t *testing.T) {
	t.Parallel()
	w := newWorld()
	code := w.start("run", "go", "-a", script(t, slowTurn+"\nmisbehave: {ignore: [interrupt]}"))
	w.out.await(t, "begun")
	w.signal <- os.Interrupt
	w.err.await(t, "interrupting")
	w.signal <- os.Interrupt
	assert.Equal(t, 130, <-code)
	assert.Contains(t, w.err.String(), "troupe: closing; Ctrl-C again kills the agent\n")
}

func TestThirdInterruptKills(t *testing.T) {
	t.Parallel()
	w := newWorld()
	code := w.start(append([]string{"run", "go", "-a", script(t, deaf)}, patient(t)...)...)
	w.out.await(t, "begun")
	for _, said := range []string{"interrupting", "closing", "killing the agent"} {
		w.signal <- os.Interrupt
		w.err.await(t, said)
	}
	assert.Equal(t, 130, <-code)
}

func TestInterruptWhileStarting(t *testing.T) {
	t.Parallel()
	w := newWorld()
	code := w.start("run", "go", "-v", "-a", script(t, "misbehave: {initialize: {mode: never}}"))
	w.err.await(t, "starting -> initializing")
	w.signal <- os.Interrupt
	assert.Equal(t, 130, <-code)
}

func TestInterruptWhileThePromptIsTyped(t *testing.T) {
	t.Parallel()
	w := newWorld()
	in, typed := io.Pipe()
	defer typed.Close()
	w.stdin = in
	w.signal <- os.Interrupt
	assert.Equal(t, 130, w.run("run", "-", "-a", "scripted"))
	assert.Empty(t, w.out.String())
}

// An interrupt ends the wait for background work, too.
func TestInterruptInTheBackground(t *testing.T) {
	t.Parallel()
	w := newWorld()
	code := w.start("run", "go", "-y", "-a", script(t, `turns: [{steps: [{shell: {command: make, takes: 1h}}, {text: begun}]}]`))
	w.out.await(t, "begun")
	w.signal <- os.Interrupt
	assert.Equal(t, 130, <-code)
}

func TestTerminateCloses(t *testing.T) {
	t.Parallel()
	for sig, want := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		w := newWorld()
		code := w.start("run", "go", "-a", script(t, slowTurn))
		w.out.await(t, "begun")
		w.signal <- sig
		w.signal <- sig // as timeout(1) does
		assert.Equal(t, want, <-code)
		assert.NotContains(t, w.err.String(), "killing")
	}
}

// stuck is a stdout that nobody reads.
type stuck struct {
	*screen
	release chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	n, err := s.screen.Write(p)
	<-s.release
	return n, err
}

func TestOutputThatStandsStill(t *testing.T) {
	t.Parallel()
	w := newWorld()
	out := &stuck{screen: w.out, release: make(chan struct{})}
	defer close(out.release)
	w.stdout = out
	code := w.start("run", "go", "-a", script(t, slowTurn))
	w.out.await(t, "begun")
	w.signal <- os.Interrupt
	w.signal <- os.Interrupt
	assert.Equal(t, 130, <-code)
}

// A signal that comes while a person is asked takes the question back.
func TestInterruptOfAQuestion(t *testing.T) {
	t.Parallel()
	w, _ := attended(t)
	code := w.start("run", "go", "-a", script(t, asks))
	w.err.await(t, "Allow it? [y/n/a/?] ")
	w.signal <- os.Interrupt
	assert.Equal(t, 130, <-code)
	w.err.await(t, "(withdrawn)\n") // by the callback, which the session does not wait for
	assert.NotContains(t, w.err.String(), "← done")
}
