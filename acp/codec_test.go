package acp_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/acp"
)

func TestUnions(t *testing.T) {
	t.Parallel()
	text := acp.ContentBlock{Text: &acp.TextContent{Text: ""}}
	for name, c := range map[string]struct {
		value any
		wire  string
	}{
		"chunk":        {acp.SessionUpdate{AgentMessageChunk: &acp.ContentChunk{Content: text, MessageID: "m"}}, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""},"messageId":"m"}`},
		"empty":        {acp.RequestPermissionOutcome{Cancelled: &acp.Empty{}}, `{"outcome":"cancelled"}`},
		"selected":     {acp.RequestPermissionOutcome{Selected: &acp.SelectedPermissionOutcome{OptionID: "a"}}, `{"outcome":"selected","optionId":"a"}`},
		"unknown":      {acp.SessionUpdate{Other: json.RawMessage(`{"sessionUpdate":"of_version_3","x":1}`)}, `{"sessionUpdate":"of_version_3","x":1}`},
		"empty list":   {acp.SessionUpdate{Plan: &acp.Plan{}}, `{"sessionUpdate":"plan","entries":[]}`},
		"clear a list": {acp.ToolCallUpdate{ToolCallID: "t", Content: []acp.ToolCallContent{}}, `{"toolCallId":"t","content":[]}`},
		"leave a list": {acp.ToolCallUpdate{ToolCallID: "t"}, `{"toolCallId":"t"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := json.Marshal(c.value)
			require.NoError(t, err)
			assert.JSONEq(t, c.wire, string(data))
			if u, ok := c.value.(acp.SessionUpdate); ok && u.Plan == nil {
				var back acp.SessionUpdate
				require.NoError(t, json.Unmarshal(data, &back))
				assert.Equal(t, u, back)
			}
		})
	}
	_, err := json.Marshal(acp.SessionUpdate{})
	assert.ErrorContains(t, err, "no variant")
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, params, want string
		into                 any
	}{
		"good":           {acp.MethodInitialize, `{"protocolVersion":1}`, "", &acp.InitializeRequest{}},
		"a text version": {acp.MethodInitialize, `{"protocolVersion":"1"}`, "protocolVersion has the wrong type", &acp.InitializeRequest{}},
		"no version":     {acp.MethodInitialize, `{}`, "protocolVersion is missing", &acp.InitializeRequest{}},
		"no object":      {acp.MethodSessionPrompt, `[]`, "no object", &acp.PromptRequest{}},
		"no params":      {acp.MethodSessionNew, ``, "no object", &acp.NewSessionRequest{}},
		"null":           {acp.MethodSessionNew, `{"cwd":null,"mcpServers":[]}`, "cwd is missing", &acp.NewSessionRequest{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := acp.Decode(c.method, json.RawMessage(c.params), c.into)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			var e *acp.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, acp.CodeInvalidParams, e.Code)
			assert.ErrorContains(t, err, c.want)
		})
	}
}
