//go:build conformance

package conformance_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance"
	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

func TestInitialized(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.connect(r.options())
	init, err := c.Initialized()
	require.NoError(t, err)
	assert.Equal(t, conformance.Claude.Version(), init.ClaudeCodeVersion)
	assert.Equal(t, r.rt.Sessions()[0].PID(), init.PID)
	commands, err := c.Commands()
	require.NoError(t, err)
	assert.NotEmpty(t, commands)
	models, err := c.Models()
	require.NoError(t, err)
	assert.NotEmpty(t, models)
	agents, err := c.Agents()
	require.NoError(t, err)
	assert.NotEmpty(t, agents)
	_, err = c.Account()
	require.NoError(t, err)
	r.close(c)
}

// What the agent answers to each question without an account.
func TestRequestsWithAnAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.connect(r.served(echo))
	r.ask(c, "hi [[scn:text]]")

	settings, err := c.Settings(r.ctx)
	require.NoError(t, err)
	assert.NotEmpty(t, settings.Effective)
	require.NotNil(t, settings.Applied)
	usage, err := c.ContextUsage(r.ctx)
	require.NoError(t, err)
	assert.NotEmpty(t, usage.Categories)
	_, err = c.Usage(r.ctx)
	require.NoError(t, err)
	servers, err := c.MCPStatus(r.ctx)
	require.NoError(t, err)
	require.Len(t, servers, 1)
	assert.Equal(t, "srv", servers[0].Name)
	rules, err := sdk.Call[protocol.PermissionRulesResponse](r.ctx, c, protocol.ListPermissionRulesRequest{})
	require.NoError(t, err)
	assert.NotNil(t, rules)
	_, err = sdk.Call[protocol.HooksListingResponse](r.ctx, c, protocol.HooksListingRequest{})
	require.NoError(t, err)
	_, err = c.ReloadSkills(r.ctx)
	require.NoError(t, err)
	styles, err := c.ReloadOutputStyles(r.ctx)
	require.NoError(t, err)
	assert.NotEmpty(t, styles)
	_, err = c.ReloadPlugins(r.ctx, protocol.ReloadPluginsRequest{})
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(r.at("notes"), []byte("some notes"), 0o600))
	file, err := c.ReadFile(r.ctx, protocol.ReadFileRequest{Path: r.at("notes")})
	require.NoError(t, err)
	assert.Equal(t, "some notes", file.Contents)
	require.NoError(t, c.SeedReadState(r.ctx, r.at("notes"), time.Now()))
	require.NoError(t, c.SetMaxThinkingTokens(r.ctx, sdk.Some(2000)))
	require.NoError(t, c.SetMaxThinkingTokens(r.ctx, sdk.Opt[int]{}))
	_, err = c.ApplyFlagSettings(r.ctx, json.RawMessage(`{"cleanupPeriodDays":7}`))
	require.NoError(t, err)
	require.NoError(t, heard(sdk.Call[any](r.ctx, c, protocol.RenameSessionRequest{Title: "a name"})))
	require.NoError(t, c.StopTask(r.ctx, "no-such-task"))
	moved, err := c.BackgroundTasks(r.ctx, "no-such-call")
	require.NoError(t, err)
	assert.False(t, moved)
	cancelled, err := c.CancelMessage(r.ctx, "3f2b8c1e-7a54-4d0b-9a6e-1c2d3e4f5a6b")
	require.NoError(t, err)
	assert.False(t, cancelled)
	_, result := r.ask(c, "still there? [[scn:echo yes]]")
	assert.Equal(t, "yes", result.Result)
	r.close(c)
}

func TestRewindFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.EnableFileCheckpointing = sdk.Some(true)
	o.PermissionMode = sdk.ModeAcceptEdits
	c := r.connect(o)
	turn := r.send(c, "write [[scn:write]]")
	_, err := turn.Result(r.ctx)
	require.NoError(t, err)
	require.FileExists(t, r.at("w1.txt"))
	dry, err := c.RewindFiles(r.ctx, turn.UUID(), true)
	require.NoError(t, err)
	assert.True(t, dry.CanRewind)
	assert.Equal(t, []string{r.at("w1.txt")}, dry.FilesChanged)
	assert.FileExists(t, r.at("w1.txt"))
	done, err := c.RewindFiles(r.ctx, turn.UUID(), false)
	require.NoError(t, err)
	assert.True(t, done.CanRewind)
	assert.NoFileExists(t, r.at("w1.txt"))
	r.close(c)
}

func TestTurningAServerOff(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.connect(r.served(echo))
	require.NoError(t, c.ToggleMCPServer(r.ctx, "srv", false))
	r.ask(c, "without [[scn:text]]")
	assert.NotContains(t, r.modelSaw("text").Tools, "mcp__srv__echo")
	require.NoError(t, c.ToggleMCPServer(r.ctx, "srv", true)) // now there is a handshake
	all, result := r.ask(c, "with [[scn:mcp]]")
	assert.Equal(t, "MCP done.", result.Result)
	assert.Equal(t, "again: hey", r.toolResult(all).Content.Text())
	r.close(c)
}

// A line far above what fits one read, or one pipe.
func TestLongLine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	long := strings.Repeat("0123456789ä", 300_000)
	r.model.Script("long", modelapi.Always(modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text(long)}, Chunks: 3}))
	all, result := r.once(r.options(), "much [[scn:long]]")
	said := only[*sdk.AssistantMessage](all)
	require.Len(t, said, 1)
	assert.Zero(t, strings.Compare(long, sdk.TextOf(said[0])), "what came is not what was said") // not to print it
	assert.Zero(t, strings.Compare(long, result.Result))
}

// The other direction: a prompt that no pipe holds at once.
func TestLongPrompt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	long := strings.Repeat("0123456789ä", 100_000)
	_, result := r.once(r.options(), long+" [[scn:text]]")
	assert.False(t, result.Failed())
	assert.Contains(t, texts(r.modelSaw("text")), long)
}

// The agent is held back while nobody reads, and can still be interrupted.
func TestReaderThatStandsStill(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const pieces = 4000
	r.model.Script("many", modelapi.Always(modelapi.Reply{
		Blocks: []modelapi.Block{modelapi.Text(strings.Repeat("word ", pieces))}, Chunks: pieces,
	}))
	o := r.options()
	o.IncludePartialMessages = true
	o.Limits = session.Limits{Messages: 50}
	c := r.connect(o)
	events := c.Events(r.ctx)
	turn := r.send(c, "many [[scn:many]]")
	for e := range events {
		if strings.Contains(e.Event.String(), "-> awaiting_consumer") {
			break
		}
	}
	var text strings.Builder
	for m, err := range turn.Messages(r.ctx) {
		require.NoError(t, err)
		if p, ok := m.(*sdk.PartialAssistantMessage); ok {
			text.WriteString(p.Text())
		}
	}
	assert.Equal(t, strings.Repeat("word ", pieces), text.String())
	r.close(c)
}
