package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	if program := otherProgram(); program != nil {
		program()
		return
	}
	if signal.Ignored(os.Interrupt) { // in the background of a script: programs of these tests would inherit that
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	// troupe ps and troupe top look at what other programs of this user show: here there is nothing.
	shown, err := os.MkdirTemp("", "troupe-run-")
	if err == nil {
		err = os.Setenv("XDG_RUNTIME_DIR", shown)
	}
	if err != nil {
		panic(err)
	}
	// Most of these tests wait for a process, a signal or a limit.
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(shown)
		os.Exit(code)
	}))
}

// screen is what was written, and lets a test wait for it.
type screen struct {
	mu      sync.Mutex
	b       bytes.Buffer
	changed chan struct{}
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
	return s.b.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// await waits until text stands on the screen.
func (s *screen) await(t *testing.T, text string) {
	t.Helper()
	limit := time.After(2 * time.Minute)
	for {
		s.mu.Lock()
		if strings.Contains(s.b.String(), text) {
			s.mu.Unlock()
			return
		}
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-limit:
			require.Fail(t, "never written: "+text, "there is: %s", s)
		}
	}
}

// world is a process of a test: without a terminal, an agent or anything on
// stdin, unless the test says otherwise.
type world struct {
	process
	out, err *screen
	signal   chan os.Signal
}

func newWorld() *world {
	w := &world{out: &screen{}, err: &screen{}, signal: make(chan os.Signal, 4)}
	w.process = process{
		getenv: func(string) string { return "" }, signals: w.signal,
		stdin: strings.NewReader(""), stdout: w.out, stderr: w.err,
		openTTY:  func() (io.Reader, error) { return nil, errors.New("no such device") },
		patience: time.Hour, // on a slow machine, too, nothing takes long
	}
	return w
}

func (w *world) run(args ...string) int {
	w.args = args
	return run(context.Background(), w.process)
}

// commandLine are the settings that the arguments of a command say, or what is wrong with them.
func commandLine(t *testing.T, p page, args []string, finish func(*settings) error) (got *settings, err error) {
	t.Helper()
	a := &app{console: &console{}}
	cmd := a.command(a.settings(), "run", "", p, func(_ context.Context, _ process, _ *console, s *settings) int {
		got, err = s, finish(s)
		return exitOK
	})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	long, wrong := longFlags(cmd, args)
	if cmd.SetArgs(long); wrong == nil {
		wrong = cmd.ExecuteContext(t.Context())
	}
	return got, errors.Join(wrong, err)
}

func parseRun(t *testing.T, args []string) (*settings, error) {
	return commandLine(t, runPage(), args, (*settings).completeSession)
}

func parseBatch(t *testing.T, args []string) (*settings, error) {
	return commandLine(t, batchPage(), args, (*settings).completeBatch)
}

// start is run on a goroutine of its own.
func (w *world) start(args ...string) <-chan int {
	code := make(chan int, 1)
	go func() { code <- w.run(args...) }()
	return code
}

// script writes a script and returns the --agent that plays it.
func script(t *testing.T, yaml string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.yaml")
	require.NoError(t, os.WriteFile(file, []byte(yaml), 0o600))
	return "scripted:" + file
}

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

const scriptedSession = "scripted:testdata/session.yaml"

func TestText(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"allowed": {"--yes"},
		"denied":  {"--no"},
		"unasked": {},
		"quiet":   {"--quiet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			code := w.run(append([]string{"run", "--agent", scriptedSession, "show", "it"}, args...)...)
			assert.Equal(t, exitOK, code, w.err)
			golden(t, "answer.txt", w.out.String())
			golden(t, name+".txt", w.err.String())
		})
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	w := newWorld()
	assert.Equal(t, exitOK, w.run("run", "--agent", scriptedSession, "show it", "--output=json"))
	var got report
	require.NoError(t, json.Unmarshal([]byte(w.out.String()), &got))
	assert.Equal(t, 1, strings.Count(w.out.String(), "\n"))
	var raw map[string]any
	require.NoError(t, json.Unmarshal(got.Result, &raw))
	assert.Equal(t, []any{"result", "success", "You said: show it"}, []any{raw["type"], raw["subtype"], raw["result"]})
	got.Result = nil
	assert.Equal(t, report{Agent: "scripted", SessionID: "11111111-2222-4333-8444-555555555555", Text: "You said: show it"}, got)

	w = newWorld()
	agent := script(t, `turns: [{steps: [{result: {subtype: error_during_execution, errors: [it broke]}}]}]`)
	assert.Equal(t, exitResult, w.run("run", "--agent", agent, "go", "--output=json"))
	require.NoError(t, json.Unmarshal([]byte(w.out.String()), &got))
	assert.Equal(t, exitResult, got.ExitCode)
	assert.Equal(t, "the run ended in an error (error_during_execution): it broke", got.Error)
	assert.Equal(t, "troupe: "+got.Error+"\n", w.err.String())
}

func TestStreamJSON(t *testing.T) {
	t.Parallel()
	kinds := func(args ...string) (all []string) {
		w := newWorld()
		require.Equal(t, exitOK, w.run(append([]string{"run", "--agent", scriptedSession, "show it", "--yes", "-o", "stream-json"}, args...)...))
		assert.Empty(t, w.err.String())
		for line := range strings.Lines(w.out.String()) {
			var m struct{ Type, Subtype string }
			require.NoError(t, json.Unmarshal([]byte(line), &m), line)
			all = append(all, strings.Trim(m.Type+"/"+m.Subtype, "/"))
		}
		return all
	}
	whole := kinds()
	assert.Subset(t, whole, []string{"system/init", "assistant", "user", "system/task_started", "system/api_retry", "result/success"})
	assert.NotContains(t, whole, "stream_event")
	assert.Contains(t, kinds("--partial"), "stream_event")
}

func TestOutputOnATerminal(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.stdoutTTY, w.stderrTTY = true, true
	agent := script(t, `turns: [{steps: [{text: "\e[2Jhidden \u202e"}, {tool_use: {name: "B\e[0m", input: {command: "x\e[31m"}, gate: ask}}]}]`)
	assert.Equal(t, exitOK, w.run("run", "-y", "hi", "-a", agent))
	assert.Equal(t, "\\x1b[2Jhidden \\x202e\n", w.out.String())
	assert.Contains(t, w.err.String(), "→ \x1b[1mB\\x1b[0m\x1b[0m x\\x1b[31m\n")
	assert.Regexp(t, `scripted · \d+(ms|s)`, w.err.String())
}

func TestNoColourWhereItIsNotWelcome(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"NO_COLOR": "1", "TERM": "dumb"} {
		w := newWorld()
		w.stderrTTY = true
		w.getenv = func(n string) string { return map[string]string{name: value}[n] }
		assert.Equal(t, exitOK, w.run("run", "-v", "hello", "-a", "scripted", "--yes"))
		assert.NotContains(t, w.err.String(), "\x1b")
		assert.Contains(t, w.err.String(), "state ready -> running")
	}
}

func TestPromptFromStdin(t *testing.T) {
	t.Parallel()
	agent := script(t, `turns: []`) // says the prompt back
	for _, args := range [][]string{{}, {"-"}} {
		w := newWorld()
		w.stdin = strings.NewReader("from stdin\n")
		assert.Equal(t, exitOK, w.run(append([]string{"run", "-a", agent}, args...)...))
		assert.Equal(t, "from stdin\n", w.out.String())
	}
}

func TestBackgroundWorkIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld()
	agent := script(t, `turns: [{steps: [{shell: {command: make, takes: 20ms, then: [{text: it is made}]}}, {text: started}]}]`)
	assert.Equal(t, exitOK, w.run("run", "-q", "-y", "-a", agent, "make it"), w.err)
	assert.Equal(t, "started\n\nit is made\n", w.out.String())
}

// broken is a stdout that fails after some bytes.
type broken struct {
	left int
	err  error
}

func (b *broken) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, b.err
	}
	return len(p), nil
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	none := func(*world) {}
	turn := func(steps string) string { return "turns: [{steps: [" + steps + "]}]" }
	for name, c := range map[string]struct {
		script string
		set    func(*world)
		args   []string
		code   int
		stderr string
	}{
		"success":          {turn(`{text: hi}`), none, nil, exitOK, ``},
		"error result":     {turn(`{result: {subtype: error_max_turns}}`), none, nil, exitResult, `troupe: the run ended in an error (error_max_turns)`},
		"API error":        {turn(`{text: overloaded}, {result: {is_error: true, terminal_reason: api_error}}`), none, nil, exitResult, `troupe: the run ended in an error (api_error): overloaded`},
		"bad option":       {turn(`{text: hi}`), none, []string{"--permission-mode", "odd", "--allowed-tools", "Bash("}, exitUsage, "troupe: option --permission-mode (claude): \"odd\" is not a permission mode of this backend; use one of [default acceptEdits plan dontAsk auto bypassPermissions]\n        option --allowed-tools (claude): \"Bash(\" is not a permission rule: the closing parenthesis is missing at its end\n"},
		"refused":          {"misbehave: {initialize: {mode: refuse, error: no room}}", none, nil, exitStart, `troupe: the agent refused control request initialize: no room`},
		"dead at start":    {"misbehave: {die: {at: before-init-response, code: 3}}", none, nil, exitStart, `troupe: agent claude ended during initialize`},
		"dead in a turn":   {turn(`{text: hi}, {exit: {code: 9}}`), none, nil, exitDied, `troupe: agent claude ended during a turn`},
		"out of time":      {turn(`{delay: 1h}`), none, []string{"--timeout", "50ms"}, exitTimeout, `troupe: the time limit ran out (--timeout)`},
		"slow to start":    {"misbehave: {initialize: {mode: never}}", none, []string{"--timeout", "50ms"}, exitTimeout, `troupe: the time limit ran out (--timeout)`},
		"full disk":        {turn(`{text: hi}`), func(w *world) { w.stdout = &broken{0, syscall.ENOSPC} }, nil, exitOutput, `troupe: write the output: no space left on device`},
		"broken pipe":      {turn(`{text: hi}, {delay: 1h}`), func(w *world) { w.stdout = &broken{1, syscall.EPIPE} }, nil, 141, ``},
		"broken at JSON":   {turn(`{text: hi}`), func(w *world) { w.stdout = &broken{0, syscall.EPIPE} }, []string{"-o", "json"}, 141, ``},
		"broken in stream": {turn(`{text: hi}, {delay: 1h}`), func(w *world) { w.stdout = &broken{1, syscall.EPIPE} }, []string{"-o", "stream-json"}, 141, ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			c.set(w)
			code := w.run(append([]string{"run", "go", "-a", script(t, c.script)}, c.args...)...)
			assert.Equal(t, c.code, code, w.err)
			if c.stderr == "" {
				assert.Empty(t, w.err.String())
			}
			assert.Contains(t, w.err.String(), c.stderr)
		})
	}
}

func TestMissingAgent(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{"claude", "qoder"} {
		missing := filepath.Join(t.TempDir(), "no-such-agent")
		w := newWorld()
		assert.Equal(t, exitStart, w.run("run", "--agent", agent, "--path", missing, "hi"))
		assert.Regexp(t, "^troupe: start agent.*"+missing+".*does not exist", w.err.String())

		w = newWorld()
		assert.Equal(t, exitStart, w.run("run", "--agent", agent, "--path", missing, "hi", "-o", "json"))
		assert.Regexp(t, `^{"agent":"`+agent+`","exit_code":3,"session_id":"","text":"","error":"start agent.*"}\n$`, w.out.String())
	}
}
