//go:build conformance

package conformance_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// qoder are options of the real qodercli, confined to the rig.
func (r *rig) qoder(auth *session.Auth) *sdk.Options {
	return &sdk.Options{
		Backend: sdk.Qoder(sdk.QoderConfig{Path: conformance.Qoder.CLI(r.t)}), Runtime: r.rt, Spawner: r.wire,
		Cwd: r.dir, CleanEnv: true, Env: map[string]string{"PATH": os.Getenv("PATH"), "HOME": r.home, "TMPDIR": r.home},
		SettingSources: sdk.None(), AdditionalDirectories: []string{r.dir}, OnEvent: r.record, Auth: auth,
		// It takes eight seconds to leave, and a machine without a network to start.
		Graces: session.Graces{EOF: time.Nanosecond, Terminate: time.Nanosecond},
	}
}

// A login that is not there ends the start of a session, in one way or another.
func TestQoderWithoutALogin(t *testing.T) {
	t.Parallel()
	t.Run("nobody is logged in", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		o := r.qoder(sdk.QoderCLIAuth())
		callbacks, events := r.expiries(o)
		_, err := sdk.Run(r.ctx, "hello", o)
		var auth *sdk.AuthError
		require.ErrorAs(t, err, &auth)
		assert.Equal(t, "qoder", auth.Backend)
		var exit *sdk.ExitError
		require.ErrorAs(t, err, &exit)
		assert.Equal(t, 41, exit.Status.Code)
		assert.Equal(t, "initialize", exit.During)
		assert.False(t, sdk.Retryable(err))
		r.toldOnce(callbacks)
		r.over("")
		assert.Equal(t, 1, events())
		r.nothingRuns()
	})
	t.Run("the host has no token", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		o := r.qoder(sdk.JobTokens())
		o.FetchJobToken = func(_ context.Context, ask *protocol.FetchJobTokenRequest) (session.Token, error) {
			assert.Equal(t, "initial", ask.Reason)
			return session.Token{}, errors.New("secret trouble")
		}
		_, err := sdk.Run(r.ctx, "hello", o)
		var refused *sdk.ControlError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, "job_token_unavailable", refused.Code)
		assert.NotContains(t, err.Error(), "secret")
		r.nothingRuns()
	})
}

// An initialize that does not promise to wait for the catalog of models is
// answered before the login is looked at (observed on qodercli 1.1.52). So this
// much of a session can be had without one: the answer to initialize, the
// handshake with a server of this process, the hooks around a session, the
// control plane, and a turn that fails for the login.
func TestQoderUpToTheLogin(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.wire.edit = func(b []byte) []byte {
		b = bytes.Replace(b, []byte(`"supportsCatalogReadyInitialize":true,`), nil, 1)
		return bytes.Replace(b, []byte(`"initializeTimeoutMs":120000,`), nil, 1) // a long one is such a promise, too
	}
	o := r.qoder(sdk.JobTokens())
	o.FetchJobToken = func(context.Context, *protocol.FetchJobTokenRequest) (session.Token, error) {
		return session.Token{}, errors.New("secret trouble")
	}
	server, err := sdk.NewMCPServer("srv", "1.2.3", sdk.NewTool("echo", "Says it again.", echo))
	require.NoError(t, err)
	o.SDKMCPServers = []*sdk.MCPServer{server}
	started, ended := make(chan string, 1), make(chan string, 1)
	o.Hooks = []sdk.Hook{
		sdk.OnSessionStart(func(_ context.Context, in *protocol.SessionStartInput) (sdk.SessionStartOutput, error) {
			started <- in.Source
			return sdk.SessionStartOutput{}, nil
		}),
		sdk.OnSessionEnd(func(_ context.Context, in *protocol.SessionEndInput) (sdk.HookOutput, error) {
			ended <- in.Reason
			return sdk.HookOutput{}, nil
		}),
	}
	callbacks, events := r.expiries(o)
	c := r.connect(o)
	require.Eventually(t, func() bool { return len(r.wire.rpcs()) >= 3 }, turnLimit, 10*time.Millisecond)
	assert.Equal(t, []string{"initialize", "notifications/initialized", "tools/list"}, r.wire.rpcs())
	assert.Equal(t, "startup", await(r, "the hook of the start", started))
	commands, err := c.Commands()
	require.NoError(t, err)
	assert.NotEmpty(t, commands)
	agents, err := c.Agents()
	require.NoError(t, err)
	assert.NotEmpty(t, agents)

	q := questions{r, c}
	q.qoderSession()
	q.qoderGoals()
	q.qoderSurroundings()
	q.qoderNeedsALogin()

	all, err := sdk.Collect(r.send(c, "hello").Messages(r.ctx))
	require.NoError(t, err)
	result, ok := all[len(all)-1].(*sdk.ResultMessage)
	require.True(t, ok)
	qoderTold(t, all)
	assert.True(t, result.Failed())
	assert.NotContains(t, result.Text(), "secret")
	assert.Equal(t, "other", await(r, "the hook of the end", ended))
	_ = c.Close(r.ctx) // it is leaving by itself already, with code 41
	r.nothingRuns()
	r.toldOnce(callbacks) // not before: a result does not wait for readers of events
	r.over(c.ID())
	assert.Equal(t, 1, events())
}

// qoderTold checks what the requests have left among the messages.
func qoderTold(t *testing.T, all []sdk.Message) {
	t.Helper()
	var modes []sdk.PermissionMode
	for _, m := range only[*protocol.StatusMessage](all) {
		modes = append(modes, m.PermissionMode)
	}
	assert.Equal(t, []sdk.PermissionMode{sdk.ModeAcceptEdits, sdk.ModeDontAsk, sdk.ModeAuto, sdk.ModeDefault}, modes)
	var planning []bool // by the permission mode, then by itself
	for _, m := range only[*protocol.PlanModeChangedMessage](all) {
		planning = append(planning, m.PlanMode.Active)
	}
	assert.Equal(t, []bool{true, false, true, false}, planning)
	if goals := only[*protocol.GoalUpdatedMessage](all); assert.Len(t, goals, 1) {
		assert.Equal(t, "finish", goals[0].Goal.Objective)
	}
	if cleared := only[*protocol.GoalClearedMessage](all); assert.Len(t, cleared, 1) {
		assert.Equal(t, "user", cleared[0].Reason)
	}
	assert.Len(t, only[*protocol.ControlRequestProgressMessage](all), 1, "of the side question")
}

func (q questions) qoderSession() {
	t := q.t
	t.Helper()
	interrupted, err := q.c.Interrupt(q.ctx)
	q.done(err)
	assert.Empty(t, interrupted.StillQueued)
	_, err = q.c.InterruptAll(q.ctx)
	q.done(err)
	q.done(q.c.SetModel(q.ctx, "a-model"))
	q.done(q.c.SetModel(q.ctx, ""))
	q.done(q.c.SetMaxThinkingTokens(q.ctx, sdk.Some(2000)))
	q.done(q.c.SeedReadState(q.ctx, q.at("x"), time.Now()))
	q.done(q.c.StopTask(q.ctx, "nosuch"))
	for _, mode := range []sdk.PermissionMode{sdk.ModeAcceptEdits, sdk.ModePlan, sdk.ModeDontAsk, sdk.ModeAuto, sdk.ModeDefault} {
		q.done(q.c.SetPermissionMode(q.ctx, mode))
	}
	q.refused(q.c.SetPermissionMode(q.ctx, "bogus"), "unknown permission_mode: bogus")
	q.done(q.c.SetPlanMode(q.ctx, true))
	on, err := q.c.PlanMode(q.ctx)
	q.done(err)
	assert.True(t, on)
	q.done(q.c.SetPlanMode(q.ctx, false))
	cancelled, err := q.c.CancelMessage(q.ctx, "3f2b8c1e-7a54-4d0b-9a6e-1c2d3e4f5a6b")
	q.done(err)
	assert.False(t, cancelled)
	moved, err := q.c.BackgroundTasks(q.ctx, "nosuch")
	q.done(err)
	assert.False(t, moved)
	back, err := q.c.RewindFiles(q.ctx, "3f2b8c1e-7a54-4d0b-9a6e-1c2d3e4f5a6b", true)
	q.done(err)
	assert.False(t, back.CanRewind)
	assert.NotEmpty(t, back.Error)
	rewound, err := q.c.Rewind(q.ctx, protocol.RewindRequest{UserMessageID: "3f2b8c1e-7a54-4d0b-9a6e-1c2d3e4f5a6b"})
	q.done(err)
	assert.Equal(t, "rejected", rewound.Status)
}

func (q questions) qoderGoals() {
	t := q.t
	t.Helper()
	none, err := q.c.Goal(q.ctx)
	q.done(err)
	assert.Nil(t, none)
	most, err := q.c.SetGoalMaxTurns(q.ctx, sdk.Some(7))
	q.done(err)
	assert.Equal(t, 7, most)
	goal, err := q.c.SetGoal(q.ctx, protocol.SetGoalRequest{Objective: "finish", Status: "paused"})
	q.done(err)
	if assert.NotNil(t, goal) {
		assert.Equal(t, "finish", goal.Objective)
		assert.Equal(t, "paused", goal.Status)
		assert.NotEmpty(t, goal.ID)
	}
	cleared, err := q.c.ClearGoal(q.ctx)
	q.done(err)
	assert.True(t, cleared)
}

func (q questions) qoderSurroundings() {
	t := q.t
	t.Helper()
	settings, err := q.c.Settings(q.ctx)
	q.done(err)
	assert.NotEmpty(t, settings.Effective)
	_, err = q.c.ApplyFlagSettings(q.ctx, []byte(`{}`))
	q.done(err)
	filled, err := q.c.ContextUsage(q.ctx)
	q.done(err)
	assert.NotEmpty(t, filled.Categories)
	_, err = q.c.UsageInfo(q.ctx)
	q.done(err)
	_, err = q.c.AccountInfo(q.ctx)
	q.done(err)
	plugins, err := q.c.ReloadPlugins(q.ctx, protocol.ReloadPluginsRequest{})
	q.done(err)
	assert.NotEmpty(t, plugins.Commands)
	_, err = q.c.Plugins(q.ctx)
	q.done(err)
	_, err = q.c.ReloadSkills(q.ctx)
	q.done(err)
	added, err := q.c.AddDirectories(q.ctx, q.root, "/nosuch")
	q.done(err)
	assert.Equal(t, []string{q.root}, added.Added)
	if assert.Len(t, added.Failed, 1) {
		assert.Equal(t, "/nosuch", added.Failed[0].Path)
		assert.NotEmpty(t, added.Failed[0].Error)
	}
	q.done(q.c.SetProxy(q.ctx, "http://127.0.0.1:9"))
	q.done(q.c.SetProxy(q.ctx, ""))
	servers, err := q.c.MCPStatus(q.ctx)
	q.done(err)
	if assert.Len(t, servers, 1) {
		assert.Equal(t, "srv", servers[0].Name)
		assert.NotEmpty(t, servers[0].Status)
	}
	q.refused(q.c.ReconnectMCPServer(q.ctx, "nobody"), "nobody")
	q.done(q.c.ToggleMCPServer(q.ctx, "srv", true))
	q.refused(q.c.ToggleMCPServer(q.ctx, "nobody", true), `"nobody"`)
	q.done(q.c.ClearMCPLogin(q.ctx, "nobody"))
	set, err := q.c.SetMCPServers(q.ctx, map[string]protocol.MCPServerConfig{"out": {Type: "stdio", Command: q.at("nosuch")}})
	q.done(err)
	assert.Equal(t, []string{"out"}, set.Added)
	set, err = q.c.SetMCPServers(q.ctx, nil)
	q.done(err)
	assert.Equal(t, []string{"out"}, set.Removed)
	q.refused(q.c.SetProxy(q.ctx, "nonsense://x"), "proxy must use http://")
	var foreign *session.UnsupportedCapabilityError
	_, err = sdk.Call[protocol.PermissionRulesResponse](q.ctx, q.c, protocol.ListPermissionRulesRequest{})
	assert.ErrorAs(t, err, &foreign, "Claude's alone")
}

func (q questions) qoderNeedsALogin() {
	t := q.t
	t.Helper()
	side, err := q.c.SideQuestion(q.ctx, "what?")
	q.done(err)
	assert.True(t, side.Synthetic)
	assert.NotEmpty(t, side.Response)
	title, err := q.c.GenerateTitle(q.ctx, "x", sdk.Opt[bool]{})
	q.done(err)
	assert.Empty(t, title)
	providers, err := q.c.BYOKProviders(q.ctx)
	q.done(err)
	assert.Empty(t, providers)
	assert.Empty(t, answered[protocol.BYOKConfigsResponse](q, protocol.ListBYOKConfigsRequest{}).Configs)
	var refused *sdk.ControlError
	err = q.c.CreateBYOKConfig(q.ctx, protocol.BYOKConfig{ProviderID: "p", BaseURL: "http://127.0.0.1:9", APIKey: "secret-key", Model: "m", Protocol: "openai"})
	if assert.ErrorAs(t, err, &refused) {
		assert.Contains(t, refused.Code, "BYOK_CONFIG_")
		assert.NotContains(t, err.Error(), "secret-key")
	}
	_, err = q.c.CheckBYOKConfig(q.ctx, protocol.BYOKConfig{ProviderID: "p", BaseURL: "http://127.0.0.1:9", APIKey: "secret-key", Model: "m", Protocol: "openai"})
	if assert.ErrorAs(t, err, &refused) {
		assert.Equal(t, "BYOK_CONFIG_AUTH_REQUIRED", refused.Code)
		assert.NotContains(t, err.Error(), "secret-key")
	}
	if assert.ErrorAs(t, q.c.DeleteBYOKConfig(q.ctx, "p"), &refused) {
		assert.Contains(t, refused.Code, "BYOK_CONFIG_")
	}
	valid, err := q.c.ValidateBYOKModel(q.ctx, protocol.ValidateBYOKModelRequest{})
	q.done(err)
	assert.False(t, valid.Success)
	_, err = q.c.CurrentModels(q.ctx)
	q.refused(err, "Job Token")
	q.refused(q.c.FlushMemory(q.ctx), "not enabled for this session")
	q.refused(q.c.RefreshMemory(q.ctx), "not enabled for this session")
	q.refused(q.c.FlushSkillEvolution(q.ctx), "not enabled for this session")
	q.refused(q.c.Control(q.ctx, "no_such_request", nil, nil), "Unsupported control request type")
}
