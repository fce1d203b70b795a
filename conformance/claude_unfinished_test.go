//go:build conformance

package conformance_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// TestRunWhoseContextEnds while a command runs says what it waited for, and
// leaves no process.
func TestRunWhoseContextEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	prompt, running := r.hold()
	o := r.options()
	o.AllowedTools = []string{"Bash"}
	ctx, cancel := context.WithCancelCause(r.ctx)
	home := errors.New("the user went home")
	go func() {
		running()
		assert.NoError(t, r.wire.await(r.ctx, func(s spoken) bool { return s.who == "agent" && strings.Contains(s.text, `"tool_use"`) }))
		cancel(home)
	}()
	_, err := sdk.Run(ctx, prompt, o)
	var unfinished *session.UnfinishedError
	require.ErrorAs(t, err, &unfinished)
	require.ErrorIs(t, err, home)
	assert.Equal(t, "running", unfinished.State.String())
	require.Len(t, unfinished.Tools, 1)
	assert.Equal(t, "Bash", unfinished.Tools[0].Name)
	assert.Equal(t, 1, unfinished.Called)
	assert.Positive(t, unfinished.Messages)
	assert.NotErrorAs(t, err, new(*session.LeftoverError))
	assert.Empty(t, r.held(), "the command outlived the run")
}

// TestWrappedServerThatPanics fails the call, and neither the session nor this
// process. The model is not told the text of the panic.
func TestWrappedServerThatPanics(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	official := mcpsdk.NewServer(&mcpsdk.Implementation{Name: "wrapped", Version: "1"}, nil)
	mcpsdk.AddTool(official, &mcpsdk.Tool{Name: "say", Description: "Says it.", Meta: mcpsdk.Meta{"anthropic/alwaysLoad": true}},
		func(context.Context, *mcpsdk.CallToolRequest, nothing) (*mcpsdk.CallToolResult, any, error) {
			panic("a secret of the host")
		})
	wrapped, err := sdk.WrapMCPServer("three", official)
	require.NoError(t, err)
	c := r.connect(r.serving(wrapped))
	_, result := r.ask(c, r.calls(modelapi.ToolUse("mcp__three__say", modelapi.Args{})))
	assert.False(t, result.Failed())
	told := r.told()
	require.Len(t, told, 1)
	assert.True(t, told[0].IsError)
	assert.NotContains(t, told[0].Text, "secret")
	r.close(c)
}
