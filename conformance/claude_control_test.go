//go:build conformance

package conformance_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/conformance"
	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// questions asks a session one thing after another.
type questions struct {
	*rig
	c *sdk.Client
}

// answered makes a request, which has a typed answer.
func answered[R any](q questions, req protocol.HostRequest) R {
	q.t.Helper()
	r, err := sdk.Call[R](q.ctx, q.c, req)
	assert.NoError(q.t, err, req.Subtype())
	if r == nil {
		r = new(R)
	}
	return *r
}

// heard is whether the agent has accepted a request.
func heard[R any](_ *R, err error) error { return err }

// done makes a request whose answer says no more than that it was heard.
func (q questions) done(err error) {
	q.t.Helper()
	assert.NoError(q.t, err)
}

// refused makes a request that the agent has a reason to refuse here.
func (q questions) refused(err error, why string) {
	q.t.Helper()
	var refused *sdk.ControlError
	if assert.ErrorAs(q.t, err, &refused) {
		assert.Contains(q.t, refused.Error(), why)
	}
}

// What the session knows of itself.
func TestRequestsAboutTheSession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	call, release := r.waiting(modelapi.Args{"run_in_background": true})
	r.model.Script("shell", modelapi.Say(call), modelapi.Say(modelapi.Text("Started.")), modelapi.Say(modelapi.Text("Notified.")))
	o := r.options()
	o.AllowedTools, o.Title = []string{"Bash"}, "a title of my own"
	o.SettingSources = sdk.Only("user")
	c := r.connect(o)
	q := questions{r, c}
	all, _ := r.ask(c, "in the background [[scn:shell]]")
	task := only[*protocol.TaskStartedMessage](all)[0].TaskID

	title, err := c.GenerateTitle(r.ctx, "greets the world", sdk.Some(true))
	q.done(err)
	assert.Equal(t, "a title of my own", title, "the model is not asked for another one")
	q.done(heard(sdk.Call[any](r.ctx, c, protocol.RenameSessionRequest{Title: "another title"})))
	status := map[string]string{}
	for _, s := range answered[protocol.StatusResponse](q, protocol.GetStatusRequest{}).Sections {
		for _, row := range s.Rows {
			status[row.Label] = row.Value
		}
	}
	assert.Equal(t, "another title", status["Session name"])
	assert.Equal(t, c.SessionID(), status["Session ID"])
	assert.Equal(t, r.dir, status["cwd"])

	side, err := c.SideQuestion(r.ctx, "by the way [[scn:echo a side answer]]", protocol.SideQuestionTurn{Question: "first?", Response: "first."})
	q.done(err)
	assert.Equal(t, "a side answer", side.Response)
	assert.False(t, side.Synthetic)
	assert.Contains(t, texts(r.modelSaw("echo")), "first?")

	cost := answered[protocol.TextResponse](q, protocol.SessionCostRequest{})
	assert.Contains(t, cost.Text, "$0.000")
	usage := answered[protocol.UsageReport](q, protocol.UsageRequest{SkipBehaviors: true})
	assert.Positive(t, usage.Session.TotalCostUSD)
	assert.NotEmpty(t, usage.Session.ModelUsage)
	for _, detail := range []string{"summary", "full"} {
		filled := answered[protocol.ContextUsage](q, protocol.ContextUsageRequest{Detail: detail})
		assert.Positive(t, filled.TotalTokens, detail)
		assert.NotEmpty(t, filled.Model, detail)
	}
	text := answered[protocol.TextResponse](q, protocol.ExportConversationRequest{})
	assert.Contains(t, text.Text, "Started.")
	assert.True(t, strings.HasSuffix(text.DefaultFilename, ".txt"), text.DefaultFilename)
	assert.False(t, answered[protocol.PlanResponse](q, protocol.GetPlanRequest{}).Exists)

	output, err := sdk.Call[protocol.TaskOutputResponse](r.ctx, c, protocol.TaskOutputRequest{TaskID: task})
	q.done(err)
	assert.False(t, output.Truncated)
	_, err = sdk.Call[protocol.TaskOutputResponse](r.ctx, c, protocol.TaskOutputRequest{TaskID: "nosuch"})
	q.refused(err, "no shell or Monitor task")
	release()
	rd := r.read(c)
	rd.until("the second result", isA[*sdk.ResultMessage])
	r.close(c)
}

// What the agent knows of its surroundings.
func TestRequestsAboutTheSurroundings(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.SettingSources = sdk.Only("user", "local")
	c := r.connect(o)
	q := questions{r, c}
	version := answered[protocol.BinaryVersionResponse](q, protocol.BinaryVersionRequest{})
	assert.Equal(t, conformance.Claude.Version(), version.Version)
	assert.NotEmpty(t, version.BuildTime)
	models := answered[protocol.ModelsResponse](q, protocol.ListModelsRequest{})
	if assert.NotEmpty(t, models.Models) {
		assert.Equal(t, "default", models.Models[0].Value)
		assert.NotEmpty(t, models.Models[0].DisplayName)
	}
	files := answered[protocol.FileSuggestionsResponse](q, protocol.FileSuggestionsRequest{Query: "notes"})
	assert.Equal(t, r.dir, files.Cwd)

	q.done(c.UpdateSettings(r.ctx, "userSettings", json.RawMessage(`{"effortLevel":"low"}`)))
	q.done(c.UpdateSettings(r.ctx, "localSettings", json.RawMessage(`{"outputStyle":"Explanatory"}`)))
	settings, err := c.Settings(r.ctx)
	q.done(err)
	assert.Contains(t, string(settings.Sources["userSettings"]), `"effortLevel":"low"`)
	assert.JSONEq(t, `{"outputStyle":"Explanatory"}`, string(settings.Sources["localSettings"]))
	assert.Contains(t, string(settings.Effective), `"effortLevel":"low"`)
	assert.Contains(t, string(settings.Effective), `"outputStyle":"Explanatory"`)
	q.refused(c.UpdateSettings(r.ctx, "userSettings", json.RawMessage(`{"cleanupPeriodDays":9}`)), "not allowed")
	q.refused(c.UpdateSettings(r.ctx, "projectSettings", json.RawMessage(`{}`)), "unsupported source")
	hooks, err := sdk.Call[protocol.HooksListingResponse](r.ctx, c, protocol.HooksListingRequest{})
	q.done(err)
	assert.NotEmpty(t, hooks.EventCatalog)
	rules, err := sdk.Call[protocol.PermissionRulesResponse](r.ctx, c, protocol.ListPermissionRulesRequest{})
	q.done(err)
	assert.Equal(t, r.dir, rules.State.OriginalCwd)

	moved, err := sdk.Call[protocol.SetCwdResponse](r.ctx, c, protocol.SetCwdRequest{Path: r.dir})
	q.done(err)
	assert.Equal(t, "ok", moved.Status)
	moved, err = sdk.Call[protocol.SetCwdResponse](r.ctx, c, protocol.SetCwdRequest{Path: r.root})
	q.done(err)
	assert.Equal(t, "needs_trust", moved.Status)
	assert.Equal(t, r.root, moved.Directory)
	moved, err = sdk.Call[protocol.SetCwdResponse](r.ctx, c, protocol.SetCwdRequest{Path: r.at("nosuch")})
	q.done(err)
	assert.Equal(t, "rejected", moved.Status)
	assert.Equal(t, "not_found", moved.Reason)
	assert.NotEmpty(t, moved.Message)
	q.refused(heard(sdk.Call[any](r.ctx, c, protocol.RegisterRepoRootRequest{Directory: r.dir})), "already registered")

	yes := true
	q.done(heard(sdk.Call[any](r.ctx, c, protocol.SetHasSubscribersRequest{HasSubscribers: &yes})))
	q.done(heard(sdk.Call[any](r.ctx, c, protocol.RemoteControlRequest{})))
	err = heard(sdk.Call[any](r.ctx, c, protocol.SetColorRequest{Color: "blue"}))
	q.refused(err, "Unsupported control request subtype: set_color")
	var refused *sdk.ControlError
	if assert.ErrorAs(t, err, &refused) {
		assert.Equal(t, "unsupported_request", refused.Code)
	}
	again := answered[protocol.InitializeResponse](q, protocol.InitializeRequest{})
	assert.NotEmpty(t, again.Commands, "a second initialize is answered, too")
	q.done(heard(sdk.Call[any](r.ctx, c, protocol.EndSessionRequest{})))
	_, err = sdk.Collect(c.Messages(r.ctx))
	var exit *sdk.ExitError
	if assert.ErrorAs(t, err, &exit, "the agent leaves by itself") {
		assert.Equal(t, "exit code 0", exit.Status.String())
		assert.Equal(t, "idle", exit.During)
	}
	r.close(c)
}

func TestRequestsAboutServers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.served(echo)
	o.MCPServers = map[string]sdk.MCPServerConfig{"asking": {
		Command: os.Args[0], Args: []string{"-test.run=^TestAskingServer$"}, Env: map[string]string{askingServer: "nested"}, AlwaysLoad: sdk.Some(true),
	}}
	c := r.connect(o)
	q := questions{r, c}
	r.connected(c, "asking")
	servers, err := c.MCPStatus(r.ctx)
	q.done(err)
	for _, s := range servers {
		assert.Equal(t, "connected", s.Status, s.Name)
		assert.NotEmpty(t, s.Tools, s.Name)
		assert.NotEmpty(t, s.Transport, s.Name)
		if assert.NotNil(t, s.ServerInfo, s.Name) {
			assert.NotEmpty(t, s.ServerInfo.Version, s.Name)
		}
	}
	assert.Len(t, servers, 2)
	q.done(c.ReconnectMCPServer(r.ctx, "asking"))
	r.connected(c, "asking")

	called := answered[protocol.MCPCallResponse](q, protocol.MCPCallRequest{Tool: "mcp__asking__form"})
	assert.JSONEq(t, `[{"type":"text","text":"{\"action\":\"decline\"}"}]`, string(called.Content))
	assert.False(t, called.IsError)
	q.refused(heard(sdk.Call[any](r.ctx, c, protocol.MCPCallRequest{Tool: "mcp__srv__echo"})), "does not support SDK MCP servers")

	warning, err := c.OverrideMCPPermissionMode(r.ctx, "asking", sdk.ModeAuto)
	q.done(err)
	assert.Empty(t, warning)
	warning, err = c.OverrideMCPPermissionMode(r.ctx, "nobody", "")
	q.done(err)
	assert.Contains(t, warning, "not known")

	_, err = c.ReadMCPResource(r.ctx, "asking", "file:///notes")
	q.refused(err, "ui://")
	_, err = c.AuthenticateMCPServer(r.ctx, "asking", "")
	q.refused(err, "does not support OAuth")
	q.refused(c.FinishMCPLogin(r.ctx, "asking", "http://localhost/callback?code=secret-code"), "No active OAuth flow")
	q.refused(c.ClearMCPLogin(r.ctx, "asking"), "Cannot clear auth")
	q.refused(c.ReconnectMCPServer(r.ctx, "nobody"), "nobody")
	r.close(c)
}
