package demo_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agent-troupe/troupe/agent/embedded/demo"
	"github.com/agent-troupe/troupe/sdk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inProject returns options for sessions in a new directory with the project.
func inProject(t *testing.T) (o *sdk.Options, dir string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, demo.Project(dir))
	o = demo.Options()
	o.Backend, o.Cwd = demo.New(demo.Config{InCwd: true}), dir
	o.Env = map[string]string{"HOME": t.TempDir(), "XDG_STATE_HOME": t.TempDir()} // without a ~/.bashrc
	return o, dir
}

func fileOf(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return string(text)
}

// With a prompt that it does not understand it repairs its project, for real.
func TestAnyPrompt(t *testing.T) {
	t.Parallel()
	o, dir := inProject(t)
	asked := 0
	o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		asked++
		return sdk.Deny("no"), nil
	}
	r, err := sdk.Run(t.Context(), "Colourless * green ideas\n\tsleep? \\n $(rm) furiously now", o)
	require.NoError(t, err)
	t.Log(r.Text())
	assert.Zero(t, asked, "its rules allow its own calls")
	assert.Empty(t, r.PermissionDenials)
	assert.Zero(t, r.TotalCostUSD)
	assert.Contains(t, r.ModelUsage, demo.ModelName)
	assert.Contains(t, r.Text(), "The check passes: 3 cases.")
	assert.Contains(t, fileOf(t, dir, "words.sh"), "echo $#\n")
	assert.Contains(t, fileOf(t, dir, "cases.txt"), "8 Colourless * green ideas sleep? \\n $(rm) furiously\n")
}

// The same prompt in the same state of the files gives the same text and the same calls.
func TestTheSameEachTime(t *testing.T) {
	t.Parallel()
	play := func() (said []string) {
		o, dir := inProject(t)
		client := sdk.NewClient(o)
		require.NoError(t, client.Connect(t.Context()))
		for _, prompt := range []string{"One thing.", "Read words.sh, write notes.md and run the tests."} {
			turn, err := client.Send(t.Context(), sdk.UserText(prompt))
			require.NoError(t, err)
			for m, err := range turn.Messages(t.Context()) {
				require.NoError(t, err)
				text := sdk.TextOf(m)
				for _, c := range sdk.ToolUses(m) {
					text += c.Name + string(c.Input) + c.ID
				}
				if _, ok := m.(*sdk.AssistantMessage); ok {
					said = append(said, strings.ReplaceAll(text, dir, "DIR"))
				}
			}
		}
		require.NoError(t, client.Close(context.Background()))
		return said
	}
	first := play()
	assert.Len(t, first, 19)
	assert.Equal(t, first, play())
}

// A few words choose what it does. Each answer says what happened.
func TestPrompts(t *testing.T) {
	t.Parallel()
	for prompt, want := range map[string]struct{ ends, file, content string }{
		"What is in this directory?":            {"- The directory has 4 files: README.md, cases.txt, check.sh, words.sh.", "", ""},
		"Read words.sh":                         {"- words.sh has 6 lines.", "", ""},
		"Show me none.go":                       {"- To read none.go did not work: File does not exist.", "", ""},
		"Create src/hello.go and run the tests": {"- src/hello.go is written.\n- The check fails: 2 of 2 cases. Say \"fix it\".", "src/hello.go", "// Written by Troupe's demonstration, which was asked: Create src/hello.go and run the tests\n"},
		"Write words.sh":                        {"- words.sh is written.", "words.sh", "# Written by Troupe's demonstration, which was asked: Write words.sh\n"},
		"Delete the file words.sh":              {"- To delete words.sh did not work: no", "words.sh", "echo $(($# - 1))\n"},
		"Remove ../../etc/passwd.txt":           {"- The check passes: 3 cases.", "words.sh", "echo $#\n"},
		"Say hi from a shell, wait 0":           {"- echo hi has ended.", "", ""},
		"Fix the failing test in main.go":       {"- The check passes: 3 cases.", "words.sh", "echo $#\n"},
		"Careless work, please":                 {"- The prompt says careless, so I did not run the check.", "words.sh", "echo $(($# - 1))\n"},
	} {
		t.Run(prompt, func(t *testing.T) {
			t.Parallel()
			o, dir := inProject(t)
			o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				return sdk.Deny("no"), nil
			}
			r, err := sdk.Run(t.Context(), prompt, o)
			require.NoError(t, err)
			assert.Contains(t, r.Text(), "The demonstration has done this:\n")
			assert.Contains(t, r.Text(), want.ends)
			if want.file != "" {
				assert.Contains(t, fileOf(t, dir, want.file), want.content)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	o, dir := inProject(t)
	r, err := sdk.Run(t.Context(), "Help! What can you do?", o)
	require.NoError(t, err)
	assert.Contains(t, r.Text(), "I react to these words")
	assert.Contains(t, fileOf(t, dir, "words.sh"), "$# - 1", "nothing is done")

	r, err = sdk.Run(t.Context(), "Read words.sh, then help me.", o)
	require.NoError(t, err)
	assert.Contains(t, r.Text(), "words.sh has 6 lines")
}

// The answer names refused calls, and claims none of them as done.
func TestDenials(t *testing.T) {
	t.Parallel()
	o, dir := inProject(t)
	o.AllowedTools, o.DisallowedTools = nil, []string{"Edit"}
	r, err := sdk.Run(t.Context(), "Work.", o)
	require.NoError(t, err)
	assert.NotContains(t, r.Text(), "passes")
	assert.Contains(t, r.Text(), "did not work")
	assert.Contains(t, fileOf(t, dir, "words.sh"), "$# - 1")

	o, _ = inProject(t)
	o.Tools = sdk.None()
	r, err = sdk.Run(t.Context(), "Work.", o)
	require.NoError(t, err)
	assert.Contains(t, r.Text(), "this session does not have the tool Read")
}

// It writes its project into a directory that lacks it.
func TestAnotherDirectory(t *testing.T) {
	t.Parallel()
	o, _ := inProject(t)
	o.Cwd = t.TempDir()
	r, err := sdk.Run(t.Context(), "Work on this.", o)
	require.NoError(t, err)
	assert.Contains(t, r.Text(), "The check passes: 3 cases.")
	assert.Contains(t, fileOf(t, o.Cwd, "cases.txt"), "3 Work on this.\n")
}

// Without InCwd each session has another directory, and keeps it when it is resumed.
func TestItsOwnDirectory(t *testing.T) {
	t.Parallel()
	for _, stored := range []string{"XDG_STATE_HOME", "TROUPE_EMBEDDED_DIR"} {
		users, tmp := t.TempDir(), t.TempDir()
		o := demo.Options()
		o.Cwd, o.Env = users, map[string]string{"HOME": t.TempDir(), "TMPDIR": tmp, stored: t.TempDir()}
		r, err := sdk.Run(t.Context(), "One.", o)
		require.NoError(t, err)
		_, err = sdk.Run(t.Context(), "Two.", o)
		require.NoError(t, err)
		o.Resume = r.SessionID
		r, err = sdk.Run(t.Context(), "Three.", o)
		require.NoError(t, err)
		assert.Contains(t, r.Text(), "The check passes: 4 cases.")
		made, err := os.ReadDir(tmp)
		require.NoError(t, err)
		assert.Len(t, made, 2, "the third session goes on in the directory of the first")
		left, err := os.ReadDir(users)
		require.NoError(t, err)
		assert.Empty(t, left)
	}
}

func TestNoPlaceForItsDirectory(t *testing.T) {
	t.Parallel()
	o := demo.Options()
	o.Env = map[string]string{"TMPDIR": filepath.Join(t.TempDir(), "none")}
	_, err := sdk.Run(t.Context(), "One.", o)
	require.ErrorContains(t, err, "make the directory of the demonstration")
}

// The tools of the host that a prompt mentions are called.
func TestHostTools(t *testing.T) {
	t.Parallel()
	type order struct {
		ID    string `json:"order_id"`
		Kind  string `json:"kind" enum:"short,full"`
		Times int    `json:"times"`
		Loud  bool   `json:"loud"`
		More  string `json:"more,omitempty"`
	}
	var got order
	server, err := sdk.NewMCPServer("orders", "1", sdk.NewTool("lookup", "Looks up an order.", func(_ context.Context, in order) (*sdk.ToolResult, error) {
		got = in
		return sdk.JSONResult(map[string]string{"status": "shipped"}), nil
	}))
	require.NoError(t, err)
	o, _ := inProject(t)
	o.SDKMCPServers, o.AllowedTools = []*sdk.MCPServer{server}, []string{"mcp__orders__lookup"}
	r, err := sdk.Run(t.Context(), "What is the full status of order O-1001? Ask 3 times.", o)
	require.NoError(t, err)
	assert.Equal(t, order{ID: "O-1001", Kind: "full", Times: 3, Loud: true}, got)
	assert.Contains(t, r.Text(), `- mcp__orders__lookup says: {"status":"shipped"}`)
}

// An interrupt ends the command that runs, and the next turn knows of it.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	o, _ := inProject(t)
	client := sdk.NewClient(o)
	require.NoError(t, client.Connect(t.Context()))
	turn, err := client.Send(t.Context(), sdk.UserText("Wait for 60 seconds."))
	require.NoError(t, err)
	for m, err := range turn.Messages(t.Context()) {
		require.NoError(t, err)
		if len(sdk.ToolUses(m)) > 0 {
			_, err := client.Interrupt(t.Context())
			require.NoError(t, err)
		}
	}
	turn, err = client.Send(t.Context(), sdk.UserText("Go on, please."))
	require.NoError(t, err)
	text := ""
	for m, err := range turn.Messages(t.Context()) {
		require.NoError(t, err)
		if _, ok := m.(*sdk.AssistantMessage); ok {
			text += sdk.TextOf(m)
		}
	}
	assert.Contains(t, text, "You interrupted me, so I stopped.")
	assert.Contains(t, text, "The check passes: 3 cases.")
	require.NoError(t, client.Close(context.Background()))
}

// With partial messages the text comes in pieces.
func TestPartialMessages(t *testing.T) {
	t.Parallel()
	o, _ := inProject(t)
	o.IncludePartialMessages = true
	pieces, partial, whole := 0, "", ""
	for m, err := range sdk.Query(t.Context(), "Hi.", o) {
		require.NoError(t, err)
		switch m := m.(type) {
		case *sdk.PartialAssistantMessage:
			if m.Text() != "" {
				pieces++
			}
			partial += m.Text()
		case *sdk.AssistantMessage:
			whole += sdk.TextOf(m)
			assert.Equal(t, demo.ModelName, m.Message.Model)
		}
	}
	assert.Equal(t, whole, partial)
	assert.Greater(t, pieces, 30)
}
