package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/protocol/view"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// The tests of this file are about the rest of what the vendors' SDKs have:
// ways to begin, to read and to end, and what an error is here.

// like is the options of a session with an agent that plays a script, and
// speaks as one of the two.
func (w *world) like(d agent.Dialect, s scripted.Script) *sdk.Options {
	s.Dialect = d
	o := &sdk.Options{Runtime: w.rt, Backend: sdk.InMemory(scripted.New(scripted.WithScript(&s)), d), Graces: w.graces()}
	if d == agent.Qoder {
		o.Auth = sdk.QoderCLIAuth()
	}
	return o
}

func script(turns ...scripted.Turn) scripted.Script { return scripted.Script{Turns: turns} }

func TestQueryOnQoder(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "qoder/function/query", "qoder/method/return", "qoder/option/stderr")
	in(t, func(w *world) {
		seen := make(chan struct{})
		o := w.like(agent.Qoder, script(turn(scripted.Stderr("look out"), scripted.Text("one"))))
		o.Stderr = func(line string) {
			if line == "look out" {
				close(seen)
			}
		}
		all, err := sdk.Collect(sdk.Query(w.Context(), "hi", o))
		require.NoError(w, err)
		assert.Equal(w, []string{"init", "assistant", "result/success"}, kinds(all))
		w.await(seen)

		for _, err := range sdk.Query(w.Context(), "hi", w.like(agent.Qoder, script(turn(scripted.Text("one"), hour)))) {
			require.NoError(w, err)
			break
		}
		assert.Empty(w, open(w.rt), "leaving the loop ends the session")
	})
}

func TestClientOnQoder(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "qoder/function/QoderSDKClient", "qoder/function/qodercliAuth", "qoder/method/connect", "qoder/method/startup",
		"qoder/method/streamInput", "qoder/method/receiveResponse", "qoder/method/receiveMessages", "qoder/method/close", "qoder/error/Transport-closed")
	in(t, func(w *world) {
		c := w.connect(w.like(agent.Qoder, script(turn(scripted.Text("one")), turn(scripted.Text("two")))))
		first, err := c.Send(w.Context(), sdk.UserText("hi"))
		require.NoError(w, err)
		all, err := sdk.Collect(first.Messages(w.Context()))
		require.NoError(w, err)
		assert.Equal(w, []string{"init", "assistant", "result/success"}, kinds(all))

		_, err = c.Send(w.Context(), sdk.UserText("and?"))
		require.NoError(w, err)
		for m, err := range c.Messages(w.Context()) {
			require.NoError(w, err)
			if r, ok := m.(*sdk.ResultMessage); ok {
				assert.Equal(w, "two", r.Result)
				w.close(c) // ends the loop
			}
		}
		require.ErrorIs(w, c.SetModel(w.Context(), "lite"), sdk.ErrClosed)
	})
}

func TestCancelledOnQoder(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "qoder/option/abortController")
	in(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		var last error
		for m, err := range sdk.Query(ctx, "hi", w.like(agent.Qoder, script(turn(scripted.Text("one"), hour)))) {
			if _, ok := m.(*sdk.AssistantMessage); ok {
				cancel()
			}
			last = err
		}
		require.ErrorIs(w, last, context.Canceled)
		assert.Empty(w, open(w.rt))
	})
}

func TestLoginsHaveConstructors(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "qoder/function/accessTokenFromEnv")
	assert.Equal(t, &session.Auth{Type: "accessToken", EnvVar: "QODER_PERSONAL_ACCESS_TOKEN"}, sdk.AccessTokenFromEnv(""))
	assert.Equal(t, &session.Auth{Type: "accessToken", EnvVar: "MINE"}, sdk.AccessTokenFromEnv("MINE"))
}

func TestPromptFileOnQoder(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "qoder/option/systemPrompt.file")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "prompt.md"), []byte("Be brief."), 0o600))
	o := &sdk.Options{Backend: sdk.Qoder(sdk.QoderConfig{}), Auth: sdk.QoderCLIAuth(), Cwd: dir, SystemPrompt: sdk.PromptFile("prompt.md")}
	p, err := sdk.PreviewLaunch(o)
	require.NoError(t, err)
	var init struct{ SystemPrompt string }
	require.NoError(t, json.Unmarshal(p.Initialize, &init))
	assert.Equal(t, "Be brief.", init.SystemPrompt)
}

// asked keeps the command it is to start, and starts nothing.
type asked struct{ commands chan session.Command }

var errNoSpawn = errors.New("there is no container")

func (s asked) Spawn(_ context.Context, c session.Command) (session.Process, error) {
	s.commands <- c
	return nil, errNoSpawn
}

func TestSpawnerOnQoder(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "qoder/option/spawnQoderCLIProcess")
	s := asked{make(chan session.Command, 1)}
	_, err := sdk.Run(t.Context(), "hi", &sdk.Options{
		Backend: sdk.Qoder(sdk.QoderConfig{Path: "/opt/qodercli"}), Auth: sdk.QoderCLIAuth(), Spawner: s, Model: "lite", Cwd: "/work",
	})
	require.ErrorIs(t, err, errNoSpawn)
	c := <-s.commands
	assert.Equal(t, "/opt/qodercli", c.Path)
	assert.Equal(t, "/work", c.Dir)
	assert.Contains(t, c.Args, "--model")
}

// The vendor's bounds are Limits and Graces here.
func TestBoundsOnQoder(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "qoder/option/controlRequestTimeoutMs", "qoder/option/closeGraceMs")
	in(t, func(w *world) {
		o := w.like(agent.Qoder, scripted.Script{Misbehave: scripted.Misbehaviour{Ignore: []string{"set_model"}}})
		o.Limits.Control = 20 * time.Millisecond
		c := w.connect(o)
		var late *sdk.TimeoutError
		require.ErrorAs(w, c.SetModel(w.Context(), "lite"), &late)
		assert.Equal(w, 20*time.Millisecond, late.Limit)
		w.close(c)

		before := w.rt.Clock().Now()
		o = w.like(agent.Qoder, scripted.Script{Misbehave: scripted.Misbehaviour{IgnoreEOF: true}})
		o.Graces = session.Graces{EOF: 30 * time.Millisecond}
		w.close(w.connect(o))
		assert.GreaterOrEqual(w, w.rt.Clock().Now().Sub(before), 30*time.Millisecond)
	})
}

func TestEndsOfAnAgent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		row    string
		like   agent.Dialect
		exit   scripted.Exit
		code   int
		signal string
	}{
		{"claude/error/process-exited-with-code-N", agent.Claude, scripted.Exit{Code: 3}, 3, ""},
		{"claude/error/process-terminated-by-signal", agent.Claude, scripted.Exit{Signal: "KILL"}, -1, "SIGKILL"},
		{"qoder/error/QoderCliProcessError", agent.Qoder, scripted.Exit{Code: 2}, 2, ""},
	} {
		t.Run(c.row, func(t *testing.T) {
			t.Parallel()
			parity.Covers(t, c.row)
			in(t, func(w *world) {
				_, err := sdk.Collect(sdk.Query(w.Context(), "hi", w.like(c.like, script(turn(&c.exit)))))
				var exit *sdk.ExitError
				require.ErrorAs(w, err, &exit)
				assert.Equal(w, session.ExitStatus{Code: c.code, Signal: c.signal}, exit.Status)
			})
		})
	}
}

// Results in which the agent says that it was not logged in, or not ready.
func TestReasonsOfAResult(t *testing.T) {
	t.Parallel()
	yes := true
	for reason, login := range map[string]bool{"auth_payload_missing": true, "auth_required": true, "initialize_required": false} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			parity.Covers(t, "qoder/error/"+reason)
			in(t, func(w *world) {
				_, err := sdk.Run(w.Context(), "hi", w.like(agent.Qoder, script(turn(&scripted.Result{IsError: &yes, TerminalReason: reason}))))
				var result *sdk.ResultError
				require.ErrorAs(w, err, &result)
				assert.Equal(w, reason, result.Result.TerminalReason)
				var auth *sdk.AuthError
				assert.Equal(w, login, errors.As(err, &auth))
			})
		})
	}
}

// refuser answers one kind of request with an error, or not at all; it keeps
// what it did not answer, and the errors that it is answered with.
type refuser struct {
	*scripted.Agent
	like    agent.Dialect
	subtype string
	refusal json.RawMessage // the value of "response"; nil: it answers nothing
	errors  chan json.RawMessage
}

func (p *refuser) Dialect() agent.Dialect { return p.like }

func (p *refuser) Serve(l agent.Launch, port agent.Port) agent.Exit {
	return p.Agent.Serve(l, &refusing{port, p})
}

type refusing struct {
	agent.Port
	p *refuser
}

func (r *refusing) Next(wait time.Duration) ([]byte, error) {
	for {
		line, err := r.Port.Next(wait)
		if err != nil {
			return nil, err
		}
		f, err := protocol.ParseFrame(line)
		if err != nil {
			return nil, err
		}
		if f.Type == protocol.TypeControlResponse && f.Subtype == protocol.ResponseError && r.p.errors != nil {
			r.p.errors <- f.Body()
		}
		if f.Type != protocol.TypeControlRequest || f.Subtype != r.p.subtype {
			return line, nil
		}
		if r.p.refusal == nil {
			r.p.errors <- f.Body()
			continue
		}
		var keys map[string]any
		if err := json.Unmarshal(r.p.refusal, &keys); err != nil {
			return nil, err
		}
		keys["subtype"], keys["request_id"] = "error", f.RequestID
		answer, err := json.Marshal(map[string]any{"type": "control_response", "response": keys})
		if err != nil {
			return nil, err
		}
		if err := r.Port.Write(append(answer, '\n')); err != nil {
			return nil, err
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for row, c := range map[string]struct {
		like             agent.Dialect
		subtype, refusal string
		call             func(context.Context, *sdk.Client) error
		want             sdk.ControlError
	}{
		"claude/error/unsupported_request": {agent.Claude, "get_plan", `{"error":"Unsupported control request subtype: get_plan","error_code":"unsupported_request"}`,
			func(ctx context.Context, c *sdk.Client) error { return c.Control(ctx, "get_plan", nil, nil) },
			sdk.ControlError{Code: "unsupported_request", Message: "Unsupported control request subtype: get_plan"}},
		"claude/error/invalid_mode": {agent.Claude, "set_permission_mode", `{"error":"no such mode","error_code":"invalid_mode"}`,
			func(ctx context.Context, c *sdk.Client) error { return c.SetPermissionMode(ctx, sdk.ModeAuto) },
			sdk.ControlError{Code: "invalid_mode", Message: "no such mode"}},
		"claude/error/bypass_not_launched": {agent.Claude, "set_permission_mode", `{"error":"not launched with it","error_code":"bypass_not_launched"}`,
			func(ctx context.Context, c *sdk.Client) error {
				return c.SetPermissionMode(ctx, sdk.ModeBypassPermissions)
			},
			sdk.ControlError{Code: "bypass_not_launched", Message: "not launched with it"}},
		"qoder/error/ControlRequestError": {agent.Qoder, "set_model", `{"error":"busy","code":"later","retryable":true,"details":{"a":1}}`,
			func(ctx context.Context, c *sdk.Client) error { return c.SetModel(ctx, "lite") },
			sdk.ControlError{Code: "later", Message: "busy", Retryable: true, Details: json.RawMessage(`{"a":1}`)}},
		"qoder/error/BYOK_CONFIG_AUTH_REQUIRED": {agent.Qoder, "create_byok_config", `{"error":"BYOK configuration requires sign-in","code":"BYOK_CONFIG_AUTH_REQUIRED"}`,
			func(ctx context.Context, c *sdk.Client) error {
				return c.CreateBYOKConfig(ctx, protocol.BYOKConfig{ProviderID: "p"})
			},
			sdk.ControlError{Code: "BYOK_CONFIG_AUTH_REQUIRED", Message: "BYOK configuration requires sign-in"}},
		"qoder/error/service_account_token_invalid": {agent.Qoder, "initialize", `{"error":"issuer or audience is invalid","code":"service_account_token_invalid"}`, nil,
			sdk.ControlError{Code: "service_account_token_invalid", Message: "issuer or audience is invalid"}},
	} {
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			parity.Covers(t, row)
			p := &refuser{like: c.like, subtype: c.subtype, refusal: json.RawMessage(c.refusal), Agent: scripted.New(scripted.WithScript(
				&scripted.Script{Dialect: c.like, Capabilities: []string{"byok_config_management_v1"}}))}
			o := &sdk.Options{Backend: p}
			if c.like == agent.Qoder {
				o.Auth = sdk.QoderCLIAuth()
			}
			client := sdk.NewClient(o)
			err := client.Connect(t.Context())
			if c.call != nil {
				require.NoError(t, err)
				err = c.call(t.Context(), client)
			}
			var refused *sdk.ControlError
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, c.want, sdk.ControlError{Code: refused.Code, Message: refused.Message, Retryable: refused.Retryable, Details: refused.Details})
			_ = client.Close(context.Background())
		})
	}
}

// What the agent is told when the host has not what it asks for.
func TestWhatTheHostHasNot(t *testing.T) {
	t.Parallel()
	for code, subtype := range map[string]string{
		"job_token_unavailable":                 "fetch_job_token",
		"service_account_token_unavailable":     "fetch_service_account_token",
		"resolve_session_artifacts_unavailable": "resolve_session_artifacts",
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			parity.Covers(t, "qoder/error/"+code)
			p := &refuser{like: agent.Qoder, errors: make(chan json.RawMessage, 1), Agent: scripted.New(scripted.WithScript(&scripted.Script{
				Dialect: agent.Qoder, Turns: []scripted.Turn{turn(&scripted.Request{Subtype: subtype, Type: true}, scripted.Text("done"))}}))}
			_, err := sdk.Run(t.Context(), "hi", &sdk.Options{Backend: p, Auth: sdk.QoderCLIAuth()})
			require.NoError(t, err)
			var answer struct{ Code, Error string }
			require.NoError(t, json.Unmarshal(<-p.errors, &answer))
			assert.Equal(t, code, answer.Code)
			assert.NotEmpty(t, answer.Error)
		})
	}
}

func TestCapabilityThatIsMissing(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "qoder/error/UnsupportedCliCapabilityError")
	in(t, func(w *world) {
		c := w.connect(w.like(agent.Qoder, scripted.Script{Capabilities: []string{"plan_mode_v1"}}))
		defer w.close(c)
		_, err := c.Goal(w.Context())
		var lacks *session.UnsupportedCapabilityError
		require.ErrorAs(w, err, &lacks)
		assert.Equal(w, "goal_v1", lacks.Capability)
		require.NoError(w, c.SetPlanMode(w.Context(), true))
	})
}

func TestProtocolOfAnotherAge(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "qoder/error/ProtocolVersionMismatchError")
	in(t, func(w *world) {
		_, err := sdk.Run(w.Context(), "hi", w.like(agent.Qoder, scripted.Script{ProtocolVersion: "2.0.0"}))
		var wrong *session.ProtocolVersionError
		require.ErrorAs(w, err, &wrong)
		assert.Equal(w, "2.0.0", wrong.Version)
		_, err = sdk.Run(w.Context(), "hi", w.like(agent.Qoder, scripted.Script{ProtocolVersion: "1.9.0"}))
		require.NoError(w, err)
	})
}

// A line above the ceiling is skipped, and told of; the session lives.
func TestLineThatIsTooLong(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "qoder/error/FrameTooLargeError")
	in(t, func(w *world) {
		raw := scripted.Raw(`{"type":"system","subtype":"status","padding":"` + strings.Repeat("x", 9000) + `"}`)
		o := w.like(agent.Qoder, script(turn(&raw, scripted.Text("one"))))
		o.MaxLine = 8192
		l := record(o)
		r, err := sdk.Run(w.Context(), "hi", o)
		require.NoError(w, err)
		assert.Equal(w, "one", r.Result)
		skipped := 0
		for _, e := range w.events(l) {
			if _, ok := e.(*session.OversizeLine); ok {
				skipped++
			}
		}
		assert.Equal(w, 1, skipped)
	})
}

// A call that waits for its answer when the session is closed.
func TestClosedBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/error/Query-closed-before-response-received")
	p := &refuser{like: agent.Claude, subtype: "set_model", errors: make(chan json.RawMessage, 1), Agent: scripted.New()}
	c := sdk.NewClient(&sdk.Options{Backend: p})
	require.NoError(t, c.Connect(t.Context()))
	failed := make(chan error)
	go func() { failed <- c.SetModel(context.Background(), "opus") }()
	<-p.errors // the agent has read it
	require.NoError(t, c.Close(context.Background()))
	require.ErrorIs(t, <-failed, sdk.ErrClosed)
}

// A session is taken up again where it ended, or a copy of it under an id of its own.
func TestResumeAndFork(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/function/unstable_v2_resumeSession", "claude/feature/Session-Resume/Fork")
	in(t, func(w *world) {
		kept := &scripted.MemoryHistory{}
		run := func(o sdk.Options) *sdk.ResultMessage {
			o.Runtime, o.Cwd = w.rt, "/"
			o.Backend = scripted.New(scripted.WithHistory(kept), scripted.WithScript(&scripted.Script{Default: scripted.Steps{scripted.Text("${history}")}}))
			r, err := sdk.Run(w.Context(), "remember 42", &o)
			require.NoError(w, err)
			return r
		}
		first := run(sdk.Options{})
		again := run(sdk.Options{Resume: first.SessionID})
		assert.Equal(w, first.SessionID, again.SessionID)
		assert.Contains(w, again.Result, "remember 42", "the history")
		fork := run(sdk.Options{Resume: first.SessionID, ForkSession: true})
		assert.NotEqual(w, first.SessionID, fork.SessionID)
		assert.Contains(w, fork.Result, "remember 42")
	})
}

// The mode and the model of a running session change, and it tells.
func TestModesAndModelsOfASession(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/feature/Permission-Modes", "claude/feature/Model-Switching")
	in(t, func(w *world) {
		o := w.options(turn(scripted.Text("one")), turn(scripted.Text("two")))
		o.PermissionMode, o.Model = sdk.ModeAcceptEdits, "sonnet"
		c := w.connect(o)
		defer w.close(c)
		state := func(prompt string) view.Status {
			var s view.Status
			t, err := c.Send(w.Context(), sdk.UserText(prompt))
			require.NoError(w, err)
			all, err := sdk.Collect(t.Messages(w.Context()))
			require.NoError(w, err)
			for _, m := range all {
				s.Add(m)
			}
			return s
		}
		s := state("hi")
		assert.Equal(w, sdk.ModeAcceptEdits, s.PermissionMode)
		assert.Equal(w, "sonnet", s.Model)
		require.NoError(w, c.SetPermissionMode(w.Context(), sdk.ModePlan))
		require.NoError(w, c.SetModel(w.Context(), "opus"))
		s = state("and?")
		assert.Equal(w, sdk.ModePlan, s.PermissionMode)
		assert.Equal(w, "opus", s.Model)
	})
}

// Copies of changed files are asked for at the start, and files are taken back by request.
func TestFileCheckpointing(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/feature/File-Checkpointing")
	o := &sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{}), EnableFileCheckpointing: sdk.Some(true)}
	p, err := sdk.PreviewLaunch(o)
	require.NoError(t, err)
	assert.Contains(t, p.Env, sdk.PreviewVar{Name: "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", Value: "true"})
	requestCase{agent.Claude, func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.RewindFiles(ctx, "u", false)) },
		`{"subtype":"rewind_files","user_message_id":"u"}`, `{"canRewind":true,"filesChanged":["f"],"insertions":1,"deletions":2}`,
		&protocol.RewindFilesResponse{CanRewind: true, FilesChanged: []string{"f"}, Insertions: 1, Deletions: 2}}.check(t)
}
