package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/acp/acpclient"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

const roundTripScript = `
turns:
- when: work
  steps:
  - thinking: What does the file say?
  - text: I read it.
  - tool_use: {name: Read, input: {file_path: /etc/hostname}, result: a host}
  - text: Now I change it.
  - tool_use: {name: Bash, input: {command: make, description: Build it}, gate: ask, result: made}
  - tool_use: {name: Bash, input: {command: rm -r build}, gate: ask, result: removed}
  - text: That is all.
- when: fail
  steps:
  - tool_use: {name: Read, input: {file_path: /none}, error: There is no such file.}
  - text: It failed.
`

// testACPRoundTrip: a session, whose agent is troupe acp, whose agent is the scripted one, has
// the messages of a session with the scripted agent.
func (b binaries) testACPRoundTrip(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "script.yaml")
	require.NoError(t, os.WriteFile(file, []byte(roundTripScript), 0o600))
	played := func(backend sdk.Backend, env map[string]string) (told []string, asked []string) {
		var ids []string // of the calls, in order: each run has its own
		o := &sdk.Options{
			Backend: backend, Cwd: dir, Env: env,
			CanUseTool: func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				asked = append(asked, r.ToolName+" "+string(r.Input))
				if string(r.Input) == `{"command":"rm -r build"}` {
					return sdk.Deny("keep it"), nil
				}
				return sdk.Allow(), nil
			},
		}
		c := sdk.NewClient(o)
		require.NoError(t, c.Connect(t.Context()))
		for _, prompt := range []string{"work", "fail"} {
			turn, err := c.Send(t.Context(), sdk.UserText(prompt))
			require.NoError(t, err)
			for m, err := range turn.Messages(t.Context()) {
				require.NoError(t, err)
				told = append(told, outlineOfMessage(m, &ids)...)
			}
		}
		require.NoError(t, c.Close(t.Context()))
		return told, asked
	}
	script := map[string]string{"TROUPE_SCRIPT": file}
	direct, askedDirect := played(sdk.Claude(sdk.ClaudeConfig{Path: b.agent}), script)
	over, askedOver := played(acpclient.Backend(b.troupe, "acp", "--agent", "claude", "--path", b.agent), script)
	assert.Equal(t, askedDirect, askedOver)
	assert.Len(t, askedDirect, 4)
	at := slices.Index(direct, `result of call 3 "keep it" true`)
	require.Positive(t, at, direct)
	direct[at] = `result of call 3 "The user refused permission to run the tool." true` // the protocol has no place for a reason
	assert.Equal(t, direct, over)
}

// outlineOfMessage is what a user sees of a message, with the calls of the turn in order.
func outlineOfMessage(m sdk.Message, ids *[]string) (out []string) {
	switch m := m.(type) {
	case *protocol.AssistantMessage:
		return outlineOfBlocks(m.Message.Content, ids)
	case *protocol.UserMessage:
		return outlineOfBlocks(m.Message.Content, ids)
	case *protocol.ResultMessage:
		return []string{fmt.Sprintf("%s %q, %d denied", m.Subtype, m.Result, len(m.PermissionDenials))}
	}
	return nil
}

func outlineOfBlocks(all protocol.Content, ids *[]string) (out []string) {
	for _, b := range all {
		switch b := b.(type) {
		case *protocol.TextBlock:
			out = append(out, "text "+b.Text)
		case *protocol.ThinkingBlock:
			out = append(out, "thinking "+b.Thinking)
		case *protocol.ToolUseBlock:
			*ids = append(*ids, b.ID)
			out = append(out, fmt.Sprintf("call %d %s %s", len(*ids), b.Name, b.Input))
		case *protocol.ToolResultBlock:
			out = append(out, fmt.Sprintf("result of call %d %q %t", slices.Index(*ids, b.ToolUseID)+1, b.Content.Text(), b.IsError))
		}
	}
	return out
}
