package embedded_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/sdk"
)

// scripted is a session whose model says one answer after the other, and then "ok". An input
// may name the last task as TASK, and its file as FILE.
type scripted struct {
	o      *sdk.Options
	c      *sdk.Client
	server *modeltest.Server

	mu      sync.Mutex
	frames  []string // subtypes of what is about tasks, with the status
	results []*sdk.ResultMessage
}

var taskText = regexp.MustCompile(`ID: (\w+)\)?\. Output is being written to: (\S+)\. `)

func script(t *testing.T, answers ...*modeltest.Answer) *scripted {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, dir := range []string{"proj", "home", "tmp"} {
		require.NoError(t, os.Mkdir(filepath.Join(root, dir), 0o700))
	}
	s := &scripted{}
	s.server = &modeltest.Server{Script: func(r *modeltest.Request) *modeltest.Answer {
		if r.N > len(answers) {
			return nil
		}
		a := *answers[r.N-1]
		a.Blocks = append([]model.Block(nil), a.Blocks...)
		if m := taskText.FindAllStringSubmatch(string(r.Body), -1); m != nil {
			for i, b := range a.Blocks {
				a.Blocks[i].Input = json.RawMessage(strings.NewReplacer("TASK", m[len(m)-1][1], "FILE", m[len(m)-1][2]).Replace(string(b.Input)))
			}
		}
		return &a
	}}
	s.o = &sdk.Options{
		Backend: embedded.New(embedded.Config{Model: s.server.Anthropic(model.Config{}), Name: "m", Dir: filepath.Join(root, "state")}),
		Cwd:     filepath.Join(root, "proj"), CleanEnv: true,
		Env:            map[string]string{"HOME": filepath.Join(root, "home"), "TMPDIR": filepath.Join(root, "tmp"), "PATH": os.Getenv("PATH")},
		PermissionMode: sdk.ModeBypassPermissions, AllowDangerouslySkipPermissions: true,
	}
	return s
}

func (s *scripted) saw(msg sdk.Message) {
	if r, ok := msg.(*sdk.ResultMessage); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.results = append(s.results, r)
		return
	}
	var f struct {
		Type    string `json:"type"`
		Subtype string `json:"subtype"`
		Status  string `json:"status"`
		Tasks   []any  `json:"tasks"`
		Patch   struct {
			Status string `json:"status"`
		} `json:"patch"`
		Background *bool `json:"is_backgrounded"`
	}
	if json.Unmarshal(msg.Raw(), &f) != nil || f.Type != "system" || !strings.Contains(f.Subtype, "task") {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text := f.Subtype
	switch f.Subtype {
	case "task_started":
		if f.Background != nil && *f.Background {
			text += " in the background"
		}
	case "background_tasks_changed":
		text += " " + strings.Repeat("I", len(f.Tasks))
	default:
		text += " " + f.Status + f.Patch.Status
	}
	s.frames = append(s.frames, strings.TrimSpace(text))
}

func (s *scripted) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.frames...)
}

// open opens the session and sends a prompt.
func (s *scripted) open(t *testing.T) *scripted {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	s.c = sdk.NewClient(s.o)
	require.NoError(t, s.c.Connect(ctx))
	go func() {
		for msg, err := range s.c.Messages(ctx) {
			if err == nil {
				s.saw(msg)
			}
		}
	}()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = s.c.Close(ctx) // a test may have closed it
	})
	_, err := s.c.Send(ctx, sdk.UserText("Go."))
	require.NoError(t, err)
	return s
}

// requests waits until the model has been asked so often, and returns what it was asked.
func (s *scripted) requests(t *testing.T, n int) []*modeltest.Request {
	t.Helper()
	require.Eventually(t, func() bool { return len(s.server.Requests()) >= n }, time.Minute, time.Millisecond, "request %d", n)
	return s.server.Requests()
}

// result is the first result.
func result(t *testing.T, s *scripted) *sdk.ResultMessage {
	t.Helper()
	var r *sdk.ResultMessage
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.results) > 0 {
			r = s.results[0]
		}
		return r != nil
	}, time.Minute, time.Millisecond)
	return r
}

func bashCall(in map[string]any) *modeltest.Answer { return modeltest.Say(modeltest.Call("Bash", in)) }

func background(command string) *modeltest.Answer {
	return bashCall(map[string]any{"command": command, "run_in_background": true, "description": "run"})
}

// says is what a request says of the last call.
func says(t *testing.T, r *modeltest.Request) string {
	t.Helper()
	results := r.Results()
	require.NotEmpty(t, results)
	return results[len(results)-1].Text
}

func TestACommandInTheBackground(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"echo bg; sleep 0.1; echo end": "<status>completed</status>\n<summary>Background command \"run\" completed (exit code 0)</summary>",
		"echo bg; exit 4":              "<status>failed</status>\n<summary>Background command \"run\" failed with exit code 4</summary>",
	} {
		s := script(t, background(command), modeltest.Say(modeltest.Text("waiting")))
		assert.Equal(t, "waiting", result(t, s.open(t)).Result)
		all := s.requests(t, 3)
		m := taskText.FindStringSubmatch(says(t, all[1]))
		require.NotNil(t, m, says(t, all[1]))
		assert.Equal(t, "Command running in background with ID: "+m[1]+". Output is being written to: "+m[2]+". You will be notified when it completes. To check interim output, use Read on that file path.", says(t, all[1]))
		notice := all[2].Prompt()
		assert.Contains(t, notice, want)
		assert.Contains(t, notice, "<task-id>"+m[1]+"</task-id>\n<tool-use-id>toolu_1_0</tool-use-id>\n<output-file>"+m[2]+"</output-file>\n")
		file, err := os.ReadFile(m[2])
		require.NoError(t, err)
		assert.True(t, strings.HasPrefix(string(file), "bg\n"))
		status := "completed"
		if strings.Contains(want, "failed") {
			status = "failed"
		}
		require.Eventually(t, func() bool { return len(s.seen()) >= 5 }, time.Minute, time.Millisecond)
		assert.Equal(t, []string{"background_tasks_changed I", "task_started in the background", "task_updated " + status, "task_notification " + status, "background_tasks_changed"}, s.seen())
	}
}

// One that ends in a turn is reported behind the next results, and starts no turn.
func TestTheEndOfACommandInATurn(t *testing.T) {
	t.Parallel()
	s := script(t, background("echo $$ > shell; until [ -e go ]; do sleep 0.01; done"), // not before the second call
		bashCall(map[string]any{"command": "until [ -s shell ]; do sleep 0.01; done; touch go; while kill -0 $(cat shell) 2>&-; do sleep 0.01; done; sleep 1; echo fg"}),
		modeltest.Say(modeltest.Text("end")))
	assert.Equal(t, "end", result(t, s.open(t)).Result)
	all := s.requests(t, 3)
	assert.Equal(t, "fg", says(t, all[2]))
	assert.Contains(t, all[2].Prompt(), "completed (exit code 0)")
	require.NoError(t, s.c.Close(t.Context()))
	assert.Len(t, s.server.Requests(), 3)
}

// A stopped command is gone when the result is there, and no further report comes.
func TestStoppingACommand(t *testing.T) {
	t.Parallel()
	for _, stop := range []*modeltest.Answer{
		modeltest.Say(modeltest.Call("TaskStop", map[string]any{"task_id": "TASK"})),
		modeltest.Say(modeltest.Call("KillShell", map[string]any{"shell_id": "TASK"})),
	} {
		s := script(t, background("(setsid sleep 100 & echo $! > child); echo $$ > shell; sleep 100"),
			bashCall(map[string]any{"command": "until [ -s shell ]; do sleep 0.01; done"}), stop, stop,
			modeltest.Say(modeltest.Call("TaskStop", map[string]any{})))
		result(t, s.open(t))
		all := s.requests(t, 6)
		m := taskText.FindStringSubmatch(says(t, all[1]))
		require.NotNil(t, m, says(t, all[1]))
		id := m[1]
		assert.JSONEq(t, `{"message":"Successfully stopped task: `+id+` ((setsid sleep 100 & echo $! > child); echo $$ > shell; sleep 100)","task_id":"`+id+`","task_type":"local_bash","command":"(setsid sleep 100 & echo $! > child); echo $$ > shell; sleep 100"}`, says(t, all[3]))
		assert.Equal(t, "<tool_use_error>No task found with ID: "+id+"</tool_use_error>", says(t, all[4]))
		assert.Equal(t, "<tool_use_error>Missing required parameter: task_id</tool_use_error>", says(t, all[5]))
		for _, name := range []string{"shell", "child"} {
			assert.Eventually(t, func() bool { return gone(t, filepath.Join(s.o.Cwd, name)) }, time.Minute, time.Millisecond, name)
		}
		require.Eventually(t, func() bool { return len(s.seen()) >= 5 }, time.Minute, time.Millisecond)
		assert.Equal(t, []string{"background_tasks_changed I", "task_started in the background", "task_updated killed", "task_notification stopped", "background_tasks_changed"}, s.seen())
		require.NoError(t, s.c.Close(t.Context()))
		assert.Len(t, s.server.Requests(), 6)
	}
}

// At its timeout a command keeps running in the background, with all that it has printed.
func TestATimeoutMovesACommand(t *testing.T) {
	t.Parallel()
	s := script(t, bashCall(map[string]any{"command": "echo start; until [ -e stop ]; do sleep 0.01; done; echo end", "timeout": 2500, "description": "run"}),
		bashCall(map[string]any{"command": "touch stop"}), modeltest.Say(modeltest.Text("first")))
	result(t, s.open(t))
	all := s.requests(t, 2)
	m := taskText.FindStringSubmatch(says(t, all[1]))
	require.NotNil(t, m, says(t, all[1]))
	assert.Equal(t, "start\nCommand did not complete within its 2s timeout and was moved to the background (ID: "+m[1]+"). Output is being written to: "+m[2]+". You will be notified when it completes. If it is still running after 30m in the background, it will be stopped and you will be notified. It is running now: do not start a second copy while it runs. If it is no longer needed, stop it with TaskStop. To check interim output, use Read on that file path.", says(t, all[1]))
	require.Eventually(t, func() bool { return slices.Contains(s.seen(), "task_notification completed") }, time.Minute, time.Millisecond)
	file, err := os.ReadFile(m[2])
	require.NoError(t, err)
	assert.Equal(t, "start\nend\n", string(file))
}

func TestNoBackground(t *testing.T) {
	t.Parallel()
	s := script(t, background("echo x"), bashCall(map[string]any{"command": "echo start; sleep 100", "timeout": 4000}))
	s.o.Env["CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"] = "1"
	result(t, s.open(t))
	all := s.requests(t, 3)
	assert.Contains(t, says(t, all[1]), "An unexpected parameter `run_in_background` was provided")
	assert.Equal(t, "Exit code 143\nCommand timed out after 4s\nstart", says(t, all[2]))
	assert.Empty(t, s.seen())
}

// A command in the background lives on after an interrupt, and dies with the session.
func TestTheSessionsEndEndsCommands(t *testing.T) {
	t.Parallel()
	s := script(t, background("(setsid sleep 100 & echo $! > child); echo $$ > shell; sleep 100"),
		bashCall(map[string]any{"command": "until [ -s shell ]; do sleep 0.01; done; echo $$ > fore; sleep 100"}))
	turn := s.open(t)
	require.Eventually(t, func() bool {
		b, _ := os.ReadFile(filepath.Join(s.o.Cwd, "fore"))
		return len(b) > 0
	}, time.Minute, time.Millisecond)
	_, err := s.c.Interrupt(t.Context())
	require.NoError(t, err)
	assert.True(t, result(t, turn).IsError)
	assert.True(t, gone(t, filepath.Join(s.o.Cwd, "fore")))
	assert.False(t, gone(t, filepath.Join(s.o.Cwd, "shell")))
	assert.False(t, gone(t, filepath.Join(s.o.Cwd, "child")))
	require.NoError(t, s.c.Close(t.Context()))
	assert.True(t, gone(t, filepath.Join(s.o.Cwd, "shell")))
	assert.True(t, gone(t, filepath.Join(s.o.Cwd, "child")))
	left, err := filepath.Glob(filepath.Join(s.o.Env["TMPDIR"], "troupe-tools-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// The model reads the output of a command without a question, in every mode.
func TestReadingTheOutputOfACommand(t *testing.T) {
	t.Parallel()
	s := script(t, background("echo bg; until [ -e stop ]; do sleep 0.01; done"), bashCall(map[string]any{"command": "until grep -q bg FILE; do sleep 0.01; done"}),
		modeltest.Say(modeltest.Call("Read", map[string]any{"file_path": "FILE"})), bashCall(map[string]any{"command": "touch stop"}))
	s.o.PermissionMode, s.o.AllowDangerouslySkipPermissions = sdk.ModeDefault, false
	s.o.AllowedTools = []string{"Bash"}
	result(t, s.open(t))
	assert.Equal(t, "1\tbg\n2\t", says(t, s.requests(t, 4)[3]))
}

// A message that joins the turn which the end of a task has started is answered by its result.
func TestAMessageWithinTheAgentsOwnTurn(t *testing.T) {
	t.Parallel()
	until := func(name string) string { return "until [ -e " + name + " ]; do sleep 0.01; done" }
	s := script(t, background(until("ends")), modeltest.Say(modeltest.Text("waiting")), bashCall(map[string]any{"command": until("asked")}), modeltest.Say(modeltest.Text("both")))
	touch := func(name string) { require.NoError(t, os.WriteFile(filepath.Join(s.o.Cwd, name), nil, 0o600)) }
	assert.Equal(t, "waiting", result(t, s.open(t)).Result)
	touch("ends")
	s.requests(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	turn, err := s.c.Send(ctx, sdk.UserText("And?"))
	require.NoError(t, err)
	require.NoError(t, s.c.SetPermissionMode(ctx, sdk.ModeBypassPermissions)) // the agent has read the message when it answers
	touch("asked")
	r, err := turn.Result(ctx)
	require.NoError(t, err)
	assert.Equal(t, "both", r.Result)
	assert.Len(t, s.server.Requests(), 4)
}

// The process that waits for the host's death does not belong to the command.
func TestWhatIsBesideACommandIsNotSeen(t *testing.T) {
	t.Parallel()
	s := script(t, bashCall(map[string]any{"command": `echo "[$!] $- $#"; jobs; wait; [ -e /proc/$$/fd/3 ] && echo open; read -r x; echo "$? [$x]"; sleep 0.1 & wait; echo end`}))
	result(t, s.open(t))
	assert.Equal(t, "[] hBc 2\n1 []\nend", says(t, s.requests(t, 2)[1]))
}

// An agent that is killed, as when its session's actor has crashed, leaves nothing behind.
func TestNothingOutlivesTheAgent(t *testing.T) {
	t.Parallel()
	s := script(t, background("(setsid sleep 100 & echo $! > child); echo $$ > shell; sleep 100"),
		bashCall(map[string]any{"command": "(setsid sleep 100 & echo $! > child2); until [ -s shell ]; do sleep 0.01; done; echo $$ > fore; sleep 100"}))
	m := perished(s.o)
	s.open(t)
	files := []string{"fore", "child2", "shell", "child"}
	require.Eventually(t, func() bool {
		b, _ := os.ReadFile(filepath.Join(s.o.Cwd, files[0]))
		return len(b) > 0
	}, time.Minute, time.Millisecond)
	m.kill()
	for _, file := range files {
		assert.Eventually(t, func() bool { return gone(t, filepath.Join(s.o.Cwd, file)) }, time.Minute, time.Millisecond, file)
	}
}

// A command that writes without end is not held up, and does not fill the disk.
func TestACommandThatWritesForEver(t *testing.T) {
	t.Parallel()
	s := script(t, background("yes | tee >(head -c 100000000 >/dev/null; touch enough) >&2"),
		bashCall(map[string]any{"command": "until [ -e enough ]; do sleep 0.01; done"}),
		modeltest.Say(modeltest.Call("TaskStop", map[string]any{"task_id": "TASK"})))
	result(t, s.open(t))
	file := taskText.FindStringSubmatch(says(t, s.requests(t, 2)[1]))[2]
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.InDelta(t, 64<<20, info.Size(), 1<<21)
}
