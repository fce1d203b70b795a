package embedded_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// talked is what a session's tools said: it plays the calls one after the other.
func talked(t *testing.T, store string, change func(*sdk.Options), calls ...modelapi.Block) (id string, results []string) {
	t.Helper()
	var steps []modelapi.Step
	for _, c := range calls {
		steps = append(steps, modelapi.Say(c.WithID("toolu_"+rand.Text()))) // an id that was there before is dropped
	}
	server, o := started(t, append(steps, modelapi.Say(modelapi.Text("done")))...)
	m := model.NewAnthropic(model.AnthropicConfig{Config: model.Config{URL: server.URL() + "/v1"}})
	o.Backend, o.Cwd = embedded.New(embedded.Config{Model: m, Name: "claude-sonnet-4-5", Dir: filepath.Join(store, "sessions")}), store
	if change != nil {
		change(o)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := sdk.Run(ctx, mine, o)
	require.NoError(t, err)
	requests := server.Requests()
	for _, m := range requests[len(requests)-1].Messages {
		for _, b := range m.Content {
			if b.Type == "tool_result" {
				results = append(results, b.Text)
			}
		}
	}
	return r.SessionID, results
}

func call(name string, in map[string]any) modelapi.Block { return modelapi.ToolUse(name, in) }

// The list is there again in a session that is resumed, and in a fork, which has its own.
func TestTasksComeBack(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	id, said := talked(t, dir, nil,
		call("TaskCreate", map[string]any{"title": "A", "zz": 1}), call("TaskCreate", map[string]any{"subject": "B", "description": "b"}),
		call("TaskUpdate", map[string]any{"id": "2", "addBlockedBy": []string{"1"}, "status": "in_progress", "owner": "me"}),
		call("TaskCreate", map[string]any{"subject": "C", "description": ""}), call("TaskUpdate", map[string]any{"taskId": "3", "status": "deleted"}))
	assert.Equal(t, []string{
		"Task #1 created successfully: A", "Task #2 created successfully: B", "Updated task #2 owner, status, blockedBy",
		"Task #3 created successfully: C", "Updated task #3 deleted",
	}, said)
	_, said = talked(t, dir, func(o *sdk.Options) { o.Resume, o.ForkSession = id, true },
		call("TaskList", map[string]any{}), call("TaskUpdate", map[string]any{"taskId": "1", "status": "completed"}), call("TaskCreate", map[string]any{"subject": "D", "description": "d"}))
	assert.Equal(t, []string{"#1 [pending] A\n#2 [in_progress] B (me) [blocked by #1]", "Updated task #1 status", "Task #4 created successfully: D"}, said[5:])
	_, said = talked(t, dir, func(o *sdk.Options) { o.Resume = id }, call("TaskList", map[string]any{}), call("TaskGet", map[string]any{"taskId": "1"}))
	assert.Equal(t, []string{"#1 [pending] A\n#2 [in_progress] B (me) [blocked by #1]", "Task #1: A\nStatus: pending\nDescription: A\nBlocks: #2"}, said[5:])
}

// The changes of a gate to a call are in the list, also when the session is resumed.
func TestTasksAsAGateChangedThem(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	hook := func(o *sdk.Options) {
		o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			return sdk.PreToolUseOutput{UpdatedInput: json.RawMessage(`{"subject":"changed","description":"d"}`)}, nil
		}, sdk.Match("TaskCreate"))}
	}
	id, said := talked(t, dir, hook, call("TaskCreate", map[string]any{"subject": "A", "description": "a"}), call("TaskList", map[string]any{}))
	assert.Equal(t, []string{"Task #1 created successfully: changed", "#1 [pending] changed"}, said)
	_, said = talked(t, dir, func(o *sdk.Options) { o.Resume = id }, call("TaskGet", map[string]any{"taskId": "1"}))
	assert.Equal(t, "Task #1: changed\nStatus: pending\nDescription: d", said[2])
}

// The older tool stands in place of the others where the environment says so, and its list
// comes back, too.
func TestTodoWrite(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	older := func(o *sdk.Options) { o.Env = map[string]string{"CLAUDE_CODE_ENABLE_TASKS": "0"} }
	todo := map[string]any{"todos": []any{map[string]any{"content": "A", "status": "in_progress", "activeForm": "Doing A", "id": "1"}}}
	id, said := talked(t, dir, older, call("TodoWrite", todo), call("TaskList", map[string]any{}))
	assert.Contains(t, said[0], "modified successfully")
	assert.Contains(t, said[1], "No such tool available: TaskList. TaskList is disabled for this session")
	var old []any
	_, _ = talked(t, dir, func(o *sdk.Options) {
		older(o)
		o.Resume = id
		o.OnMessage = func(m sdk.Message) {
			if u, ok := m.(*sdk.UserMessage); ok {
				var f struct {
					Result struct {
						Old []any `json:"oldTodos"`
					} `json:"tool_use_result"`
				}
				if protocol.Unmarshal(u.Raw(), &f) == nil && f.Result.Old != nil {
					old = f.Result.Old
				}
			}
		}
	}, call("TodoWrite", map[string]any{"todos": []any{}}))
	assert.Equal(t, []any{map[string]any{"content": "A", "status": "in_progress", "activeForm": "Doing A"}}, old)
}
