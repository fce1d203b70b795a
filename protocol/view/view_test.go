package view

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
)

// call is a tool call of the main agent and its result.
func call(id, name, input, output string) []protocol.Message {
	return []protocol.Message{
		line("", "m-"+id, "u-"+id, &protocol.ToolUseBlock{ID: id, Name: name, Input: json.RawMessage(input)}),
		told(id, output),
	}
}

func told(id, output string) *protocol.UserMessage {
	m := &protocol.UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.Content{&protocol.ToolResultBlock{ToolUseID: id}}}}
	if output != "" {
		m.ToolUseResult = json.RawMessage(output)
	}
	return m
}

func TestPlanFromTheTaskTools(t *testing.T) {
	t.Parallel()
	var p Todos
	feed := func(messages []protocol.Message) (changed bool) {
		for _, m := range messages {
			changed = p.Add(m)
		}
		return changed
	}
	assert.True(t, feed(call("1", "TaskCreate", `{"subject":"One","description":"first","activeForm":"Doing one"}`, `{"task":{"id":"1","subject":"One"}}`)))
	assert.True(t, feed(call("2", "TaskCreate", `{"subject":"Two","description":"second"}`, `{"task":{"id":"2","subject":"Two"}}`)))
	assert.True(t, feed(call("3", "TaskUpdate", `{"taskId":"1","status":"in_progress","owner":"me","addBlocks":["2"]}`, `{"success":true,"taskId":"1"}`)))
	assert.False(t, feed(call("4", "TaskUpdate", `{"taskId":"9","status":"completed"}`, `{"success":false,"taskId":"9","error":"Task not found"}`)))
	assert.False(t, feed(call("5", "Bash", `{"command":"ls"}`, `{"stdout":""}`)))
	want := []TodoEntry{
		{ID: "1", Content: "One", Description: "first", ActiveForm: "Doing one", Status: "in_progress", Owner: "me"},
		{ID: "2", Content: "Two", Description: "second", Status: "pending", BlockedBy: []string{"1"}},
	}
	assert.Equal(t, want, p.Entries())
	assert.True(t, feed(call("6", "TaskList", `{}`, `{"tasks":[{"id":"2","subject":"Two","status":"completed","blockedBy":[]},{"id":"3","subject":"Three","status":"pending","blockedBy":["2"]}]}`)))
	assert.True(t, feed(call("7", "TaskGet", `{"taskId":"3"}`, `{"task":{"id":"3","subject":"Three","description":"third","status":"pending","blocks":[],"blockedBy":[]}}`)))
	assert.True(t, feed(call("8", "TaskUpdate", `{"taskId":"2","status":"deleted"}`, `{"success":true,"taskId":"2"}`)))
	assert.Equal(t, []TodoEntry{{ID: "3", Content: "Three", Description: "third", Status: "pending"}}, p.Entries())
}

func TestPlanFromTodos(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/feature/Plan-Mode-(TodoWrite)")
	todos := `{"todos":[{"content":"One","status":"in_progress","activeForm":"Doing one"},{"description":"Two","status":"pending","priority":"high"}]}`
	messages := call("1", "TodoWrite", todos, `{"oldTodos":[],"newTodos":[]}`)
	want := []TodoEntry{{Content: "One", ActiveForm: "Doing one", Status: "in_progress"}, {Content: "Two", Status: "pending", Priority: "high"}}
	assert.Equal(t, want, TodoEntries(messages...))

	var p Todos
	assert.False(t, p.Add(messages[0]), "the call has no result yet")
	refused := told("1", `"Error: no"`)
	refused.Message.Content[0].(*protocol.ToolResultBlock).IsError = true
	assert.False(t, p.Add(refused))
	assert.Empty(t, p.Entries())

	// A subagent's todos are its own.
	sub := line("toolu_1", "m", "u", &protocol.ToolUseBlock{ID: "2", Name: "TodoWrite", Input: json.RawMessage(todos)})
	assert.False(t, p.Add(sub))
	assert.False(t, p.Add(told("2", `{}`)))
	assert.Empty(t, p.Entries())
}

func result(uuid string, usd, credits float64, models map[string]protocol.ModelUsage) *protocol.ResultMessage {
	return &protocol.ResultMessage{Common: protocol.Common{UUID: uuid}, Subtype: protocol.ResultSuccess, TotalCostUSD: usd, TotalCredits: credits, ModelUsage: models}
}

func TestCostsOfAnAgentThatReportsSums(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/feature/Cost/Usage-Stats")
	var c Costs
	require.NotNil(t, c.Add(result("1", 0.1, 2, map[string]protocol.ModelUsage{"a": {InputTokens: 5, CostUSD: 0.1, Credits: 2}})))
	require.Nil(t, c.Add(result("1", 0.1, 2, nil)), "told again")
	turn := c.Add(result("2", 0.3, 5, map[string]protocol.ModelUsage{"a": {InputTokens: 5, CostUSD: 0.1, Credits: 2}, "b": {OutputTokens: 3, CostUSD: 0.2, Credits: 3, ContextWindow: 200}}))
	require.NotNil(t, turn)
	assert.InDelta(t, 0.2, turn.USD, 1e-12)
	assert.InDelta(t, 3, turn.Credits, 1e-12)
	assert.Equal(t, map[string]protocol.ModelUsage{"b": {OutputTokens: 3, CostUSD: 0.2, Credits: 3, ContextWindow: 200}}, turn.Models)
	assert.Equal(t, []string{"a", "b"}, c.ModelNames())
	assert.InDelta(t, 0.3, c.Spent().USD, 1e-12)
	assert.InDelta(t, 5, c.Spent().Credits, 1e-12)
	assert.Zero(t, c.Gap())
	assert.Zero(t, c.Before())

	// Another process counts from nothing.
	turn = c.Add(result("3", 0.05, 1, map[string]protocol.ModelUsage{"a": {InputTokens: 1, CostUSD: 0.05, Credits: 1}}))
	assert.InDelta(t, 0.05, turn.USD, 1e-12)
	assert.InDelta(t, 0.35, c.Spent().USD, 1e-12)
	assert.EqualValues(t, 6, c.Models()["a"].InputTokens)
	assert.Equal(t, Amount{USD: 0.05, Credits: 1}, c.Reported())
	assert.Zero(t, c.Gap())
	assert.Len(t, c.Turns(), 3)
	c.Forget()
	assert.Empty(t, c.Turns())
	require.Nil(t, c.Add(result("3", 0.05, 1, nil)), "told again")
	assert.InDelta(t, 0.35, c.Spent().USD, 1e-12)
}

func TestCostsOfAResumedSession(t *testing.T) {
	t.Parallel()
	var c Costs
	r := result("1", 1.5, 0, nil)
	r.ModelUsageSinceLastResult = map[string]protocol.ModelUsage{"a": {CostUSD: 0.5}}
	c.Add(r)
	assert.InDelta(t, 1, c.Before().USD, 1e-12)
	assert.InDelta(t, 0.5, c.Spent().USD, 1e-12)
	assert.Zero(t, c.Gap())
	// The sum grows by more than the turn.
	r = result("2", 2.5, 0, nil)
	r.ModelUsageSinceLastResult = map[string]protocol.ModelUsage{"a": {CostUSD: 0.75}}
	c.Add(r)
	assert.InDelta(t, 0.25, c.Gap().USD, 1e-12)
}

func TestAResultThatHalfDecodes(t *testing.T) {
	t.Parallel()
	var c Costs
	require.NotNil(t, c.Add(&protocol.UnknownMessage{Partial: result("1", 0.1, 0, nil), Err: errors.New("odd")}))
	assert.InDelta(t, 0.1, c.Spent().USD, 1e-12)
}

func TestProgressOfACall(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/feature/Tool-Progress", "claude/feature/Tool-Use-Summary")
	var c ToolCalls
	c.Add(call("t", "Bash", `{"command":"make"}`, "")[0])
	changed := c.Add(&protocol.ToolProgressMessage{Common: protocol.Common{ParentToolUseID: "t"}, ToolUseID: "t-heartbeat-0", Heartbeat: true, ElapsedTimeSeconds: 30})
	require.Len(t, changed, 1)
	assert.Equal(t, "30s", changed[0].Elapsed.String())
	assert.Len(t, c.Running(), 1)
	changed = c.Add(&protocol.ToolUseSummaryMessage{Summary: "built it", PrecedingToolUseIDs: []string{"t", "unknown"}})
	require.Len(t, changed, 1)
	assert.Equal(t, "built it", changed[0].Summary)
	assert.Empty(t, c.Add(told("nobody's", "")))
	changed = c.Add(&protocol.PermissionDeniedMessage{ToolUseID: "t"})
	assert.Equal(t, CallDenied, changed[0].State)
	changed = c.Add(told("t", ""))
	assert.Equal(t, CallDenied, changed[0].State, "the result does not say why")
	c.Forget()
	assert.Empty(t, c.All())
	assert.Nil(t, c.Get("t"))
}

func TestCallsThatGetNoResult(t *testing.T) {
	t.Parallel()
	var c ToolCalls
	c.Add(line("", "m", "1", &protocol.ToolUseBlock{ID: "main", Name: "Agent"}, &protocol.ToolUseBlock{ID: "put off", Name: "Bash"}))
	c.Add(line("main", "m", "2", &protocol.ToolUseBlock{ID: "nested", Name: "Bash"}))
	lost := c.Add(&protocol.ResultMessage{DeferredToolUse: &protocol.DeferredToolUse{ID: "put off"}})
	require.Len(t, lost, 2)
	assert.Equal(t, CallLost, c.Get("main").State)
	assert.Equal(t, CallDeferred, c.Get("put off").State)
	assert.Equal(t, CallRunning, c.Get("nested").State)
	c.Add(&protocol.TaskNotificationMessage{ToolUseID: "main"})
	assert.Equal(t, CallLost, c.Get("nested").State)
}

// An agent without levels and without task messages for commands: the result
// of the call is all there is.
func TestBackgroundTasksByEdges(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/feature/Background-Tasks", "claude/feature/Background-Bash", "claude/feature/Background-Agents")
	var tasks Tasks
	require.Len(t, tasks.Add(told("t1", `{"kind":"backgrounded","taskId":"b1","outputFile":"/o"}`)), 1)
	tasks.Add(&protocol.TaskStartedMessage{TaskID: "a1", ToolUseID: "t2"})
	tasks.Add(&protocol.TaskStartedMessage{TaskID: "f1", ToolUseID: "t3", IsBackgrounded: new(bool)})
	assert.Equal(t, []string{"a1", "b1"}, taskIDs(tasks.Background()))
	assert.Equal(t, "b1", tasks.ByToolUse("t1").ID)
	assert.Equal(t, "/o", tasks.Get("b1").OutputFile)
	assert.Nil(t, tasks.ByToolUse(""))
	moved := true
	tasks.Add(&protocol.TaskUpdatedMessage{TaskID: "f1", Patch: protocol.TaskPatch{IsBackgrounded: &moved}})
	assert.Equal(t, []string{"a1", "b1", "f1"}, taskIDs(tasks.Background()))
	tasks.Add(&protocol.TaskNotificationMessage{TaskID: "b1", Status: "failed"})
	tasks.Add(&protocol.TaskUpdatedMessage{TaskID: "a1", Patch: protocol.TaskPatch{Status: "killed", Error: "e"}})
	assert.Equal(t, []string{"f1"}, taskIDs(tasks.Background()))
	assert.Equal(t, "e", tasks.Get("a1").Error)
	// A task that ended runs again.
	tasks.Add(&protocol.TaskStartedMessage{TaskID: "a1", RunID: "2"})
	assert.Equal(t, []string{"a1", "f1"}, taskIDs(tasks.Background()))
	tasks.Forget()
	assert.Nil(t, tasks.Get("b1"))
	assert.Len(t, tasks.All(), 2)
	// From the first level on, levels decide.
	tasks.Add(&protocol.BackgroundTasksChangedMessage{Tasks: []protocol.BackgroundTask{{TaskID: "x"}}})
	assert.Equal(t, []string{"x"}, taskIDs(tasks.Background()))
}

func TestNestedAgents(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/feature/Sub-Agent-Messages")
	var a Agents
	use := func(id string) protocol.ContentBlock {
		return &protocol.ToolUseBlock{ID: id, Name: "Task", Input: json.RawMessage(`{"subagent_type":"rev","description":"d"}`)}
	}
	// A message of the subagent comes before the call that started it.
	early := line("t2", "m2", "u2", &protocol.TextBlock{Text: "hi"})
	early.AgentID = "a2"
	a.Add(early)
	a.Add(line("", "m0", "u0", use("t1")))
	nested := line("t1", "m1", "u1", use("t2"))
	nested.AgentID = "a1"
	a.Add(nested)
	inner := a.ByID("a2")
	require.NotNil(t, inner)
	assert.Same(t, inner, a.ByToolUse("t2"))
	assert.Equal(t, 2, inner.Depth())
	assert.Equal(t, "a1", inner.Parent.AgentID)
	assert.Len(t, a.Root().Children, 1)
	// The parent of a task that no call was seen of.
	a.Add(&protocol.TaskStartedMessage{TaskID: "a3", TaskType: "local_agent", ParentTaskID: "a2"})
	assert.Equal(t, 3, a.ByID("a3").Depth())
	// Impossible reports are ignored.
	a.Add(&protocol.TaskStartedMessage{TaskID: "a1", TaskType: "local_agent", ParentTaskID: "a3"})
	assert.Equal(t, 1, a.ByID("a1").Depth())
	assert.Same(t, a.Root(), a.Add(&protocol.TaskStartedMessage{TaskID: "b", TaskType: "local_bash"}))

	failed := told("t1", `"Error: no"`)
	failed.Message.Content[0].(*protocol.ToolResultBlock).IsError = true
	a.Add(failed)
	assert.Equal(t, taskFailed, a.ByID("a1").Status)
}

// A subagent that is reported by its id, and by its call, is one.
func TestAgentsWithTwoBeginnings(t *testing.T) {
	t.Parallel()
	var a Agents
	a.Add(&protocol.TaskStartedMessage{TaskID: "a1", TaskType: "local_agent", SubagentType: "rev"})
	a.Add(&protocol.TaskStartedMessage{TaskID: "a2", TaskType: "local_agent", ParentTaskID: "a1"})
	a.Add(line("", "m0", "u0", &protocol.ToolUseBlock{ID: "t1", Name: "Task", Input: json.RawMessage(`{"description":"d"}`)}))
	require.Len(t, a.Root().Children, 2, "nothing says yet that they are one")
	both := line("t1", "m1", "u1", &protocol.TextBlock{Text: "hi"})
	both.AgentID = "a1"
	node := a.Add(both)
	assert.Same(t, a.ByID("a1"), node)
	assert.Same(t, a.ByToolUse("t1"), node)
	assert.Equal(t, []*AgentNode{node}, a.Root().Children)
	assert.Equal(t, []*AgentNode{a.ByID("a2")}, node.Children)
	assert.Equal(t, []string{"rev", "d", "a1", "t1"}, []string{node.Type, node.Description, node.AgentID, node.ToolUseID})
	a.Add(&protocol.TaskNotificationMessage{TaskID: "a1", Status: taskCompleted})
	assert.Equal(t, taskCompleted, node.Status)
	// Not where one started the other.
	a.Add(line("t1", "m2", "u2", &protocol.ToolUseBlock{ID: "t2", Name: "Task", Input: json.RawMessage(`{}`)}))
	odd := line("t2", "m3", "u3", &protocol.TextBlock{Text: "hi"})
	odd.AgentID = "a2"
	a.Add(odd)
	assert.Equal(t, 2, a.ByID("a2").Depth())
}

// History that is shown again is marked, and not counted.
func TestHistory(t *testing.T) {
	t.Parallel()
	old := line("", "m", "u", &protocol.ToolUseBlock{ID: "t", Name: "Bash"})
	old.Historical = true
	result := told("t", "")
	result.Historical = true
	var d Drafts
	var c ToolCalls
	var a Agents
	for _, m := range []protocol.Message{old, result} {
		d.Add(m)
		c.Add(m)
		a.Add(m)
		assert.True(t, Replayed(m))
	}
	assert.True(t, d.All()[0].Replayed)
	assert.True(t, c.Get("t").Replayed)
	assert.Equal(t, CallDone, c.Get("t").State)
	assert.Zero(t, a.Root().Messages)
	assert.False(t, Replayed(line("", "m", "u")))
}

func TestStatus(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/feature/Auth-Status", "claude/feature/Hook-Status", "claude/feature/Compact-Boundary", "claude/feature/Files-Persisted", "claude/feature/Status-Updates")
	var s Status
	feed := func(m protocol.Message) { assert.True(t, s.Add(m), "%T", m) }
	feed(&protocol.InitMessage{Common: protocol.Common{SessionID: "s"}, Model: "m", PermissionMode: "default"})
	feed(&protocol.StatusMessage{Status: "compacting"})
	feed(&protocol.SessionStateChangedMessage{State: "running"})
	feed(&protocol.CompactBoundaryMessage{Metadata: protocol.CompactMetadata{PreTokens: 9}})
	feed(&protocol.StatusMessage{PermissionMode: "plan", CompactResult: "failed", CompactError: "e"})
	feed(&protocol.APIRetryMessage{Attempt: 2})
	assert.Equal(t, 2, s.Retry.Attempt)
	feed(line("", "m", "u"))
	assert.Nil(t, s.Retry)
	assert.False(t, s.Add(line("", "m", "u")))
	assert.False(t, s.Add(&protocol.CompactBoundaryMessage{Historical: true}))
	feed(&protocol.AuthStatusMessage{IsAuthenticating: true})
	assert.NotNil(t, s.Auth)
	feed(&protocol.AuthStatusMessage{})
	assert.Nil(t, s.Auth)
	feed(&protocol.RateLimitMessage{Info: protocol.RateLimitInfo{Status: "allowed"}})
	feed(&protocol.FilesPersistedMessage{})
	feed(&protocol.PlanModeChangedMessage{PlanMode: protocol.PlanMode{Active: true}})
	feed(&protocol.SessionTitleChangedMessage{Title: "t"})
	feed(&protocol.GoalUpdatedMessage{Goal: protocol.Goal{ID: "g"}})
	feed(&protocol.PromptSuggestionMessage{Suggestion: "go on"})
	feed(&protocol.AvailableModelsUpdateMessage{CurrentModel: "n"})
	feed(&protocol.HookStartedMessage{HookID: "1"})
	feed(&protocol.HookStartedMessage{HookID: "2"})
	feed(&protocol.HookResponseMessage{HookID: "1"})
	assert.Equal(t, "2", s.Hooks[0].HookID)
	assert.Len(t, s.Hooks, 1)
	s.Hooks = nil
	assert.Equal(t, Status{
		SessionID: "s", Model: "n", PermissionMode: "plan", State: "running", PlanMode: true, Title: "t", Suggestion: "go on",
		Limits: &protocol.RateLimitInfo{Status: "allowed"}, Compactions: 1, Compaction: &protocol.CompactMetadata{PreTokens: 9}, CompactError: "e",
		Files: &protocol.FilesPersistedMessage{}, Goal: &protocol.Goal{ID: "g"},
	}, s)
	feed(&protocol.GoalClearedMessage{})
	feed(&protocol.ConversationResetMessage{})
	feed(&protocol.HookStartedMessage{HookID: "3"})
	feed(&protocol.ResultMessage{})
	assert.Empty(t, s.Hooks, "an interrupted hook tells nothing more")
	assert.Nil(t, s.Goal)
	assert.Nil(t, s.Compaction)
}

func ExampleDrafts() {
	var drafts Drafts
	for _, m := range []protocol.Message{
		event("", &protocol.MessageStart{Message: protocol.APIMessage{ID: "msg_1"}}),
		event("", &protocol.ContentBlockStart{Block: &protocol.TextBlock{}}),
		event("", &protocol.ContentBlockDelta{Delta: &protocol.DeltaText{Text: "Hello, "}}),
		event("", &protocol.ContentBlockDelta{Delta: &protocol.DeltaText{Text: "world"}}),
	} {
		if draft := drafts.Add(m); draft != nil {
			fmt.Printf("%s: %q\n", draft.ID, draft.Content().Text())
		}
	}
	// Output:
	// msg_1: ""
	// msg_1: ""
	// msg_1: "Hello, "
	// msg_1: "Hello, world"
}

func ExampleToolCalls() {
	var calls ToolCalls
	for _, m := range call("toolu_1", "Bash", `{"command":"ls"}`, `{"stdout":"a.txt","stderr":"","interrupted":false}`) {
		for _, c := range calls.Add(m) {
			fmt.Println(c.Name, string(c.Raw), c.State)
		}
	}
	// Output:
	// Bash {"command":"ls"} running
	// Bash {"command":"ls"} done
}

func ExampleCosts() {
	var costs Costs
	costs.Add(&protocol.ResultMessage{TotalCostUSD: 0.25})
	turn := costs.Add(&protocol.ResultMessage{TotalCostUSD: 0.75})
	fmt.Printf("this turn $%.2f, all $%.2f\n", turn.USD, costs.Spent().USD)
	// Output: this turn $0.50, all $0.75
}

func ExampleTasks() {
	var tasks Tasks
	tasks.Add(&protocol.TaskStartedMessage{TaskID: "b1", ToolUseID: "toolu_1", Description: "build"})
	fmt.Println(len(tasks.Background()), tasks.ByToolUse("toolu_1").Description)
	tasks.Add(&protocol.TaskNotificationMessage{TaskID: "b1", Status: "completed"})
	fmt.Println(len(tasks.Background()))
	// Output:
	// 1 build
	// 0
}

func ExampleAgents() {
	var agents Agents
	agents.Add(line("", "msg_1", "", &protocol.ToolUseBlock{ID: "toolu_1", Name: "Agent", Input: json.RawMessage(`{"subagent_type":"Explore"}`)}))
	writer := agents.Add(line("toolu_1", "msg_2", "", &protocol.TextBlock{Text: "I am looking."}))
	fmt.Println(writer.Type, writer.Depth())
	// Output: Explore 1
}

func ExampleTodoEntries() {
	messages := call("toolu_1", "TodoWrite", `{"todos":[{"content":"Look","status":"completed"},{"content":"Leap","status":"pending"}]}`, `{}`)
	for _, e := range TodoEntries(messages...) {
		fmt.Println(e.Status, e.Content)
	}
	// Output:
	// completed Look
	// pending Leap
}

func ExampleStatus() {
	var status Status
	status.Add(&protocol.InitMessage{Model: "opus", PermissionMode: "default"})
	status.Add(&protocol.StatusMessage{Status: "compacting"})
	fmt.Println(status.Model, status.PermissionMode, status.Activity)
	// Output: opus default compacting
}
