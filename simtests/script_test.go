package simtests_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/simtests"
)

// judge is a test whose verdict another test reads.
type judge struct {
	said    []string
	cleanup []func()
}

func (j *judge) Helper() {}
func (j *judge) Errorf(format string, args ...any) {
	j.said = append(j.said, fmt.Sprintf(format, args...))
}
func (j *judge) Cleanup(fn func()) { j.cleanup = append(j.cleanup, fn) }

// end ends the test.
func (j *judge) end() []string {
	for i := len(j.cleanup) - 1; i >= 0; i-- {
		j.cleanup[i]()
	}
	return j.said
}

// deep is a script with steps inside steps.
func deep() *scripted.Script {
	return &scripted.Script{
		Turns: []scripted.Turn{
			{Steps: scripted.Steps{
				&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "make"}, Gate: agent.GateAsk, Steps: scripted.Steps{scripted.Text("inside")}},
				scripted.Parallel{&scripted.ToolUse{Name: "Read"}, &scripted.ToolUse{Name: "Glob"}},
			}},
			{When: "refund", Steps: scripted.Steps{scripted.Text("a refund"), &scripted.SubAgent{Prompt: "p", Steps: scripted.Steps{scripted.Text("sub")}}}},
			{Steps: scripted.Steps{scripted.Text("bye")}},
		},
		Default: scripted.Steps{scripted.Text("nothing is left")},
	}
}

func TestScriptRecordsWhatTheAgentIsTold(t *testing.T) {
	t.Parallel()
	j := &judge{}
	a, record := simtests.Script(j, deep())
	c := sdk.NewClient(&sdk.Options{Backend: a, CanUseTool: func(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
		return sdk.Deny("not now"), nil
	}})
	require.NoError(t, c.Connect(t.Context()))
	_, _, err := simtests.Ask(t.Context(), c, "hello")
	require.NoError(t, err)
	require.NoError(t, c.SetPermissionMode(t.Context(), sdk.ModePlan))
	require.NoError(t, c.Close(t.Context()))

	require.Equal(t, []string{"hello"}, record.Prompts())
	answers := record.Answers()
	require.Len(t, answers, 1)
	require.Equal(t, "can_use_tool", answers[0].Subtype)
	require.Equal(t, "Bash", answers[0].About)
	var denial protocol.PermissionResult
	require.NoError(t, json.Unmarshal(answers[0].Body, &denial))
	require.Equal(t, "not now", denial.Message)
	requests := record.Requests()
	require.Equal(t, "initialize", requests[0].Subtype)
	require.Equal(t, "set_permission_mode", requests[len(requests)-1].Subtype)
	var mode struct{ Mode string }
	require.NoError(t, json.Unmarshal(requests[len(requests)-1].Body, &mode))
	require.Equal(t, "plan", mode.Mode)

	unreached := []string{
		"turns[0].steps[0].tool_use.steps[0]: text",
		"turns[1].steps[0]: text", "turns[1].steps[1]: agent", "turns[1].steps[1].agent.steps[0]: text",
		"turns[2].steps[0]: text",
	}
	require.Equal(t, unreached, record.Unreached())
	said := j.end()
	require.Len(t, said, len(unreached))
	require.Equal(t, "simtests: the scripted agent did not reach turns[0].steps[0].tool_use.steps[0]: text", said[0])
}

func TestScriptThatIsPlayedToItsEnd(t *testing.T) {
	t.Parallel()
	j := &judge{}
	a, record := simtests.Script(j, deep())
	c := sdk.NewClient(&sdk.Options{Backend: a, CanUseTool: allowAll})
	require.NoError(t, c.Connect(t.Context()))
	for _, prompt := range []string{"hello", "refund", "bye"} {
		_, _, err := simtests.Ask(t.Context(), c, prompt)
		require.NoError(t, err)
	}
	require.NoError(t, c.Close(t.Context()))
	require.Equal(t, []string{"hello", "refund", "bye"}, record.Prompts())
	require.Empty(t, j.end())
}

func TestScriptThatIsNotPlayed(t *testing.T) {
	t.Parallel()
	j := &judge{}
	_, record := simtests.Script(j, deep())
	require.Empty(t, record.Unreached())
	require.Equal(t, []string{"simtests: the scripted agent was never started"}, j.end())
}

func ExampleScript() {
	t := &judge{} // in a test: its *testing.T
	a, record := simtests.Script(t, &scripted.Script{Turns: []scripted.Turn{
		{Steps: scripted.Steps{scripted.Text("hello")}},
		{Steps: scripted.Steps{scripted.Text("still there?")}},
	}})
	result, err := sdk.Run(context.Background(), "hi", &sdk.Options{Backend: a})
	fmt.Println(sdk.TextOf(result), err, record.Prompts())
	fmt.Println(t.end())
	// Output:
	// hello <nil> [hi]
	// [simtests: the scripted agent did not reach turns[1].steps[0]: text]
}
