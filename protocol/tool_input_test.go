package protocol_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
)

func TestToolInputsDecodeByExactKeys(t *testing.T) {
	t.Parallel()
	input := json.RawMessage(`{"Command":"ls","command":"rm x"}`)
	for name, decode := range map[string]func(any) error{
		"block":              (&protocol.ToolUseBlock{Input: input}).Decode,
		"permission":         (&protocol.CanUseToolRequest{Input: input}).Decode,
		"PreToolUse":         (&protocol.PreToolUseInput{ToolInput: input}).Decode,
		"PostToolUse":        (&protocol.PostToolUseInput{ToolInput: input}).Decode,
		"PostToolUseFailure": (&protocol.PostToolUseFailureInput{ToolInput: input}).Decode,
		"PermissionRequest":  (&protocol.PermissionRequestInput{ToolInput: input}).Decode,
	} {
		var bash struct {
			Command string `json:"command"`
		}
		require.NoError(t, decode(&bash), name)
		assert.Equal(t, "rm x", bash.Command, name)
		require.Error(t, decode(&struct{ Command string }{}), "%s: a field without a tag", name)
	}
}
