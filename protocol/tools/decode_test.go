package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
)

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func TestUnknownToolsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	in, err := DecodeInput("Teleport", raw(`{"to":"mars"}`))
	require.NoError(t, err)
	assert.Equal(t, &UnknownInput{Name: "Teleport", Raw: raw(`{"to":"mars"}`)}, in)
	again, err := EncodeInput(in)
	require.NoError(t, err)
	assert.JSONEq(t, `{"to":"mars"}`, string(again))

	out, err := DecodeOutput("Teleport", raw(`[1]`))
	require.NoError(t, err)
	assert.Equal(t, &UnknownOutput{Name: "Teleport", Raw: raw(`[1]`)}, out)
	again, err = protocol.Marshal(out)
	require.NoError(t, err)
	assert.JSONEq(t, `[1]`, string(again))
}

func TestWrongShapesSayWhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in, path, says string
		output               bool
	}{
		{"Bash", `{"command":7}`, "command", "got a number, want a string", false},
		{"Bash", `{"command":"x","timeout":"5s"}`, "timeout", "got a string, want a number", false},
		{"Bash", `"ls"`, "", "it is not an object", false},
		{"Task", `[]`, "", "it is not an object", false},
		{"TodoWrite", `{"todos":[{"content":"a","status":"pending"},{"content":"b","status":{}}]}`, "todos[1].status", "got an object, want a string", false},
		{"AskUserQuestion", `{"questions":[{"question":"q","options":["a"]}]}`, "questions[0].options[0]", "got a string, want an object", false},
		{"AskUserQuestion", `{"questions":{"question":"q"}}`, "questions", "got an object, want a list", false},
		{"Edit", `{"structuredPatch":[{"lines":"x"}]}`, "structuredPatch[0].lines", "got a string, want a list", true},
		{"Read", `7`, "", "got a number, want an object", true},
		{"TaskList", `{"tasks":[{"id":"1"},{"id":2}]}`, "tasks[1].id", "got a number, want a string", true},
	} {
		at := c.name + " " + c.in
		var v any
		var err error
		if c.output {
			v, err = DecodeOutput(c.name, raw(c.in))
			assert.Equal(t, &UnknownOutput{Name: c.name, Raw: raw(c.in)}, v, at)
		} else {
			v, err = DecodeInput(c.name, raw(c.in))
			assert.Equal(t, &UnknownInput{Name: c.name, Raw: raw(c.in)}, v, at)
		}
		var shape *ShapeError
		require.ErrorAs(t, err, &shape, at)
		assert.Equal(t, c.path, shape.Path, at)
		assert.Equal(t, c.output, shape.Output, at)
		assert.Equal(t, c.says, shape.Err.Error(), at)
		assert.Contains(t, err.Error(), c.says)
	}
}

func TestBrokenJSON(t *testing.T) {
	t.Parallel()
	_, err := DecodeInput("Bash", raw(`{"command":`))
	var syntax *json.SyntaxError
	require.ErrorAs(t, err, &syntax)
	_, err = DecodeOutput("Bash", raw(`{]`))
	require.ErrorAs(t, err, &syntax)
}

func TestStringsInPlaceOfAnOutput(t *testing.T) {
	t.Parallel()
	for s, failed := range map[string]bool{
		"Error: Exit code 7":                      true,
		"User rejected tool use":                  true,
		"Structured output provided successfully": false,
	} {
		b, err := protocol.Marshal(s)
		require.NoError(t, err)
		out, err := DecodeOutput("Bash", b)
		require.NoError(t, err)
		text, ok := out.(*Text)
		require.True(t, ok)
		assert.Equal(t, failed, text.Failed(), s)
	}
	text := Text("Error: Exit code 7")
	assert.Equal(t, "Exit code 7", text.String())
}

func TestNothing(t *testing.T) {
	t.Parallel()
	for _, none := range []json.RawMessage{nil, raw(""), raw(" null ")} {
		in, err := DecodeInput("TaskList", none)
		require.NoError(t, err)
		assert.Equal(t, &TaskListInput{}, in)
		out, err := DecodeOutput("TaskList", none)
		require.NoError(t, err)
		assert.Nil(t, out)
	}
}

func TestExtraSurvivesAChange(t *testing.T) {
	t.Parallel()
	in, err := DecodeInput("Bash", raw(`{"later":[1,2],"command":"ls","an":"x"}`))
	require.NoError(t, err)
	bash, ok := in.(*BashInput)
	require.True(t, ok)
	bash.Command = "ls -l <dir>"
	again, err := EncodeInput(bash)
	require.NoError(t, err)
	assert.JSONEq(t, `{"command":"ls -l <dir>","an":"x","later":[1,2]}`, string(again))
	assert.Contains(t, string(again), `<dir>","an":"x","later"`, "in the order of the keys")

	again, err = EncodeInput(&TaskListInput{Extra: Extra{"b": nil, "a": raw("1")}})
	require.NoError(t, err)
	assert.JSONEq(t, `{"a":1,"b":null}`, string(again))
}

// A name in another case is another member: what the agent does not read must
// not stand for what it runs.
func TestNamesAreExact(t *testing.T) {
	t.Parallel()
	for _, given := range []string{
		`{"command":"rm -rf /","Command":"ls"}`,
		`{"Command":"ls","command":"rm -rf /"}`,
		`{"command":"ls","command":"rm -rf /","COMMAND":"ls"}`, // the last of the same counts, as in JavaScript
	} {
		in, err := DecodeInput("Bash", raw(given))
		require.NoError(t, err)
		assert.Equal(t, "rm -rf /", in.(*BashInput).Command, given)
	}
	in, err := DecodeInput("Bash", raw(`{"Command":"ls"}`))
	require.NoError(t, err)
	assert.Equal(t, &BashInput{Extra: Extra{"Command": raw(`"ls"`)}}, in)
	again, err := EncodeInput(in)
	require.NoError(t, err)
	assert.JSONEq(t, `{"command":"","Command":"ls"}`, string(again))
}

func TestNames(t *testing.T) {
	t.Parallel()
	for from, to := range map[string]string{
		"Task": "Agent", "KillShell": "TaskStop", "AgentOutputTool": "TaskOutput", "ListMcpResourcesTool": "ListMcpResources",
		"ReadMcpResourceTool": "ReadMcpResource", "ReadMcpResourceDirTool": "ReadMcpResourceDir", "Bash": "Bash", "Teleport": "Teleport",
	} {
		assert.Equal(t, to, Canonical(from))
	}
	for name, want := range map[string][3]any{
		"mcp__srv__echo":    {"srv", "echo", true},
		"mcp__srv__a__b":    {"srv", "a__b", true},
		"mcp__my_srv__do_x": {"my_srv", "do_x", true},
		"mcp__srv":          {"", "", false},
		"mcp____x":          {"", "", false},
		"Bash":              {"", "", false},
	} {
		server, tool, ok := SplitMCP(name)
		assert.Equal(t, want, [3]any{server, tool, ok}, name)
		if ok {
			assert.Equal(t, name, protocol.MCPToolName(server, tool))
		}
	}
	assert.Equal(t, "mcp__my_srv__do_it", protocol.MCPToolName("my.srv", "do it"))
}

// The shapes of Qoder's document, and those that qodercli declares.
func TestQoder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, out string }{
		{"Bash", `{"stdout":"o","stderr":"e","exitCode":3,"interrupted":true}`},
		{"Bash", `{"kind":"backgrounded","pid":7,"taskId":"t","outputFile":"/o","command":"c","stdout":"s","initialOutput":"i","backgroundReason":"auto","telemetryExecutionId":"x","totalLines":1,"totalBytes":2}`},
		{"Agent", `{"kind":"agent-result","agentId":"a","agentType":"t","content":"all of it","state":"error","apiError":"e","terminateReason":"MAX_TURNS","terminationDetails":{"maxTurns":4},"outputPath":"/o","transcriptPath":"/t","worktreePath":"/w","worktreeBranch":"b","remoteContextId":"c","remoteTaskId":"r"}`},
		{"Agent", `{"status":"teammate_spawned","prompt":"p","teammate_id":"i","agent_id":"a","agent_type":"t","model":"m","name":"n","color":"c","tmux_session_name":"in-process","tmux_window_name":"in-process","tmux_pane_id":"in-process","team_name":"t","plan_mode_required":true}`},
		{"Read", `{"type":"pdf","pages":[{"page_number":1,"content":"c"}],"file_path":"f","totalPages":3}`},
		{"Read", `{"type":"parts","parts":[{"type":"text","text":"t"},{"type":"image","source":{"type":"base64","media_type":"m","data":"d"}}],"file_path":"f"}`},
		{"Read", `{"type":"notebook","cells":[{"cell_number":1,"cell_type":"code","source":"s","outputs":["o"]}],"file_path":"f"}`},
		{"Read", `{"type":"file_unchanged","file_path":"f","message":"m"}`},
		{"Read", `{"type":"image","file":{"url":"u","type":"image/png","originalSize":3}}`},
		{"Edit", `{"success":true,"file_path":"f","diff":"d","diff_truncated":true,"additions":1,"deletions":2}`},
		{"Write", `{"success":true,"file_path":"f","bytesWritten":3,"error":"e"}`},
		{"Glob", `{"files":["a"],"totalMatches":1,"truncated":true}`},
		{"Grep", `{"results":"r","matchCount":2}`},
		{"WebFetch", `{"content":"c","url":"u","statusCode":200,"error":"e","redirectUrl":"r"}`},
		{"WebSearch", `{"query":"q","results":[{"title":"t","url":"u","snippet":"s"}]}`},
		{"WebSearch", `{"query":"q","results":["a remark",{"tool_use_id":"i","content":[{"title":"t","url":"u"}]}],"durationSeconds":1.5}`},
		{"AskUserQuestion", `{"answer":"a"}`},
		{"TodoWrite", `{"success":true,"todos":[{"id":"1","content":"c","status":"pending","priority":"high"}]}`},
		{"TodoWrite", `{"newTodos":[{"description":"d","status":"blocked"}]}`},
		{"TaskStop", `{"success":true,"task_id":"t","error":"e"}`},
		{"TaskOutput", `{"retrieval_status":"success","task":{"task_id":"t","task_type":"local_bash","status":"completed","description":"d","output":"o","exitCode":1}}`},
		{"ExitPlanMode", `{"plan":"p","status":"rejected","filePath":"f","feedback":"b"}`},
		{"Config", `{"success":true,"values":{"a":1}}`},
		{"EnterWorktree", `{"worktree_path":"p","branch_name":"b","success":true}`},
		{"ListMcpResources", `{"resources":[{"uri":"u","name":"n"}],"server_name":"s"}`},
		{"ListMcpResources", `[{"uri":"u","name":"n","server":"s"}]`},
		{"RefreshMcpTools", `[{"server":"s","status":"refreshed","toolCount":2}]`},
		{"Mcp", `{"content":"x","isError":true}`},
		{"mcp__s__t", `[{"type":"text","text":"t"}]`},
		{"mcp__s__t", `{"structured":1}`},
		{"VideoGen", `{"taskId":"t","status":"s","requestId":"r"}`},
		{"Skill", `{"success":true,"commandName":"c","status":"forked","result":"r"}`},
	} {
		out, err := DecodeOutput(c.name, raw(c.out))
		require.NoError(t, err, c.out)
		require.IsNotType(t, &UnknownOutput{}, out)
		again, err := protocol.Marshal(out)
		require.NoError(t, err)
		assert.Equal(t, withoutZeros(generic(t, raw(c.out))), withoutZeros(generic(t, again)), c.name)
	}
	for _, c := range []struct{ name, in string }{
		{"AskUserQuestion", `{"question":"q","options":["a"],"default":"a"}`},
		{"TodoWrite", `{"todos":[{"id":"1","content":"c","status":"pending","priority":"high"}]}`},
		{"Config", `{"action":"set","key":"k","value":[1],"scope":"user"}`},
		{"Edit", `{"file_path":"f","old_string":"o","new_string":"n","allow_multiple":true}`},
		{"CreateGoal", `{"objective":"o","max_turns":3}`},
		{"VideoGen", `{"name":"n","mode":"m","prompt":"p","media":{"first_frame":{"source":"s","type":"image"}},"duration_seconds":4}`},
		{"Mcp", `{"server_name":"s","tool_name":"t","arguments":{"a":1}}`},
	} {
		checkInput(t, c.name, c.name, raw(c.in))
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	in := &AskUserQuestionInput{Questions: []Question{{Question: "Which color?"}}}
	require.NoError(t, in.Answer("Which color?", "Blue"))
	assert.Equal(t, map[string]string{"Which color?": "Blue"}, in.Answers)
	assert.ErrorContains(t, in.Answer("Why?", "because"), "does not ask")
}

func ExampleDecodeInput() {
	in, err := DecodeInput("Bash", json.RawMessage(`{"command":"make test","timeout":60000}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	switch in := in.(type) {
	case *BashInput:
		fmt.Println(in.Command, in.TimeoutMS.Duration())
	default:
		fmt.Println("some other tool:", in.Tool())
	}

	_, err = DecodeInput("TodoWrite", json.RawMessage(`{"todos":[{"content":7}]}`))
	var shape *ShapeError
	if errors.As(err, &shape) {
		fmt.Println(shape.Path, "-", shape.Err)
	}
	// Output:
	// make test 1m0s
	// todos[0].content - got a number, want a string
}

func FuzzDecode(f *testing.F) {
	for _, name := range []string{"Agent", "Bash", "Read", "TodoWrite", "AskUserQuestion", "ListMcpResources", "StructuredOutput", "WebSearch", "mcp__a__b", "None"} {
		f.Add(name, []byte(`{"a":[1,{"b":"c"}],"todos":[{"content":1}],"results":["x"]}`))
		f.Add(name, []byte(`[{"uri":"u"}]`))
		f.Add(name, []byte(`"Error: x"`))
		f.Add(name, []byte(`{"command":"x","Command":"y","timeout":1e3}`))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		in, err := DecodeInput(name, data)
		require.NotNil(t, in)
		var shape *ShapeError
		if err != nil {
			require.ErrorAs(t, err, &shape)
		} else if _, unknown := in.(*UnknownInput); !unknown {
			again, err := EncodeInput(in)
			require.NoError(t, err)
			require.True(t, json.Valid(again), "%s", again)
			twice, err := DecodeInput(name, again)
			require.NoError(t, err)
			third, err := EncodeInput(twice)
			require.NoError(t, err)
			require.Equal(t, string(again), string(third))
		}
		out, err := DecodeOutput(name, data)
		if err != nil {
			require.ErrorAs(t, err, &shape)
			require.NotNil(t, out)
		}
	})
}
