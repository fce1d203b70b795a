package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// inquire lets an agent ask one thing and returns what it was answered, with
// the errors of callbacks.
func inquire(w *world, o *sdk.Options, dialect agent.Dialect, ask scripted.Step) (string, []error) {
	script := scripted.Script{Dialect: dialect, Turns: []scripted.Turn{turn(ask, scripted.Text("${answer}"))}}
	o.Runtime, o.Backend = w.rt, sdk.InMemory(scripted.New(scripted.WithScript(&script)), dialect)
	if o.Auth == nil && dialect == agent.Qoder {
		o.Auth = sdk.QoderCLIAuth()
	}
	l := record(o)
	r, err := sdk.Run(w.Context(), "hi", o)
	require.NoError(w, err)
	var failed []error
	for _, f := range w.failures(l) {
		failed = append(failed, f.Err)
	}
	return r.Result, failed
}

var errOdd = errors.New("odd")

// The expected answers are those of the vendors' SDKs (observed on the Claude Agent SDK
// 0.3.329 and the Qoder SDK 1.0.39), unless a case says otherwise.
func TestWhatTheAgentAsksBesides(t *testing.T) {
	t.Parallel()
	elicit := &scripted.Elicitation{Server: "srv", Message: "who?"}
	url := &scripted.Elicitation{Server: "srv", Message: "log in", Mode: "url"}
	older := &scripted.Request{Subtype: "elicitation_response", Type: true, Fields: map[string]any{"elicitation_id": "e", "prompt": "who?", "options": []any{"a"}}}
	dialog := &scripted.Dialog{Kind: "pick", Payload: map[string]any{"p": 1}}
	job := &scripted.Request{Subtype: "fetch_job_token", Type: true, Fields: map[string]any{"reason": "initial"}}
	account := &scripted.Request{Subtype: "fetch_service_account_token", Fields: map[string]any{"required_scopes": []any{"chat"}}}
	memory := &scripted.Request{Subtype: "memory_should_generate", Type: true, Fields: map[string]any{
		"callbackId": "memory_should_generate_0", "input": map[string]any{"turnIndex": 1, "prompt": "p"}}}
	otherMemory := &scripted.Request{Subtype: "memory_should_generate", Fields: map[string]any{"callbackId": "nope", "input": map[string]any{}}}
	skills := &scripted.Request{Subtype: "skill_evolution_should_review", Fields: map[string]any{
		"callbackId": "skill_evolution_should_review_0", "input": map[string]any{}}}
	files := &scripted.Request{Subtype: "resolve_session_artifacts", Fields: map[string]any{"local_session_id": "a", "cwd": "/"}}

	answer := func(r protocol.ElicitationResult, err error) session.ElicitationHandler {
		return func(_ context.Context, q *protocol.ElicitationRequest) (protocol.ElicitationResult, error) {
			if q.Message != "who?" && q.Mode != "url" {
				return r, errOdd
			}
			return r, err
		}
	}
	show := func(r protocol.UserDialogResult, err error) session.UserDialogHandler {
		return func(_ context.Context, q *protocol.UserDialogRequest) (protocol.UserDialogResult, error) {
			if q.DialogKind != "pick" || string(q.Payload) != `{"p":1}` {
				return r, errOdd
			}
			return r, err
		}
	}
	fetch := func(token session.Token, err error) session.FetchJobToken {
		return func(_ context.Context, r *protocol.FetchJobTokenRequest) (session.Token, error) {
			if r.Reason != "initial" {
				return token, errOdd
			}
			return token, err
		}
	}
	gate := func(d protocol.ShouldRunReply, err error) session.TurnGate {
		return func(context.Context, *protocol.TurnInfo) (protocol.ShouldRunReply, error) { return d, err }
	}
	yes := protocol.ElicitationResult{Action: protocol.ElicitAccept, Content: json.RawMessage(`{"x":1}`)}
	no := protocol.ElicitationResult{Action: protocol.ElicitDecline, Content: json.RawMessage(`{"x":1}`)}
	picked := protocol.UserDialogResult{Behavior: protocol.DialogCompleted, Result: json.RawMessage(`{"choice":1}`)}
	kinds := []string{"pick"}
	until := time.UnixMilli(1_900_000_000_000)

	rows := map[string][]string{
		"a form":             {"both/ask/elicitation", "claude/option/onElicitation"},
		"a form on Qoder":    {"both/ask/elicitation", "qoder/option/onElicitation"},
		"the older form":     {"qoder/ask/elicitation_response"},
		"a dialog":           {"claude/ask/request_user_dialog", "claude/option/onUserDialog"},
		"a job token":        {"qoder/ask/fetch_job_token"},
		"an account's token": {"qoder/ask/fetch_service_account_token"},
		"a memory":           {"qoder/ask/memory_should_generate"},
		"a review":           {"qoder/ask/skill_evolution_should_review"},
		"files":              {"qoder/ask/resolve_session_artifacts", "qoder/option/resolveSessionArtifacts"},
	}
	for name, c := range map[string]struct {
		like    agent.Dialect
		ask     scripted.Step
		options sdk.Options
		want    string
		failed  string // in the callback's error; empty: it went well
	}{
		"a form":                          {agent.Claude, elicit, sdk.Options{OnElicitation: answer(yes, nil)}, `{"action":"accept","content":{"x":1}}`, ""},
		"a form on Qoder":                 {agent.Qoder, elicit, sdk.Options{OnElicitation: answer(yes, nil)}, `{"action":"accept","content":{"x":1}}`, ""},
		"a page":                          {agent.Claude, url, sdk.Options{OnElicitation: answer(protocol.ElicitationResult{Action: protocol.ElicitAccept}, nil)}, `{"action":"accept"}`, ""},
		"the older form":                  {agent.Qoder, older, sdk.Options{OnElicitation: answer(yes, nil)}, `{"action":"accept","content":{"x":1}}`, ""},
		"declined, and nothing disclosed": {agent.Claude, elicit, sdk.Options{OnElicitation: answer(no, nil)}, `{"action":"decline"}`, ""},
		"zero answer":                     {agent.Claude, elicit, sdk.Options{OnElicitation: answer(protocol.ElicitationResult{}, nil)}, `{"action":"decline"}`, ""},
		"nobody to elicit from":           {agent.Claude, elicit, sdk.Options{}, `{"action":"decline"}`, ""},
		"nobody to elicit from, Qoder":    {agent.Qoder, elicit, sdk.Options{}, `{"action":"cancel"}`, ""},
		// The vendors send the error's text; ours goes to events.
		"elicitation fails":  {agent.Claude, elicit, sdk.Options{OnElicitation: answer(yes, errOdd)}, `{"action":"decline"}`, "odd"},
		"elicitation panics": {agent.Qoder, elicit, sdk.Options{OnElicitation: func(context.Context, *protocol.ElicitationRequest) (protocol.ElicitationResult, error) { panic(errOdd) }}, `{"action":"cancel"}`, "odd"},
		"no object":          {agent.Claude, elicit, sdk.Options{OnElicitation: answer(protocol.ElicitationResult{Action: protocol.ElicitAccept, Content: json.RawMessage(`[1]`)}, nil)}, `{"action":"decline"}`, "not a JSON object"},
		"no such action":     {agent.Claude, elicit, sdk.Options{OnElicitation: answer(protocol.ElicitationResult{Action: "maybe"}, nil)}, `{"action":"decline"}`, `Action is "maybe"`},

		"a dialog":           {agent.Claude, dialog, sdk.Options{SupportedDialogKinds: kinds, OnUserDialog: show(picked, nil)}, `{"behavior":"completed","result":{"choice":1}}`, ""},
		"a dialog cancelled": {agent.Claude, dialog, sdk.Options{SupportedDialogKinds: kinds, OnUserDialog: show(protocol.UserDialogResult{}, nil)}, `{"behavior":"cancelled"}`, ""},
		// The vendor's SDK never answers here.
		"nobody shows dialogs": {agent.Claude, dialog, sdk.Options{}, `{"behavior":"cancelled"}`, ""},
		"a dialog fails":       {agent.Claude, dialog, sdk.Options{SupportedDialogKinds: kinds, OnUserDialog: show(picked, errOdd)}, `{"behavior":"cancelled"}`, "odd"},
		"no such behavior":     {agent.Claude, dialog, sdk.Options{SupportedDialogKinds: kinds, OnUserDialog: show(protocol.UserDialogResult{Behavior: "x"}, nil)}, `{"behavior":"cancelled"}`, `Behavior is "x"`},

		"a job token": {agent.Qoder, job, sdk.Options{Auth: sdk.JobTokens(), FetchJobToken: fetch(session.Token{Value: "JT", ExpiresAt: until}, nil)},
			`{"token":"JT","expires_at":1900000000000}`, ""},
		"a job token without an end": {agent.Qoder, job, sdk.Options{Auth: sdk.JobTokens(), FetchJobToken: fetch(session.Token{Value: "JT"}, nil)}, `{"token":"JT"}`, ""},
		"no job token": {agent.Qoder, job, sdk.Options{Auth: sdk.JobTokens(), FetchJobToken: fetch(session.Token{}, nil)},
			`{"error":"Host did not provide a Job Token"}`, "returned no token"},
		"a job token's time in seconds": {agent.Qoder, job, sdk.Options{Auth: sdk.JobTokens(), FetchJobToken: fetch(session.Token{Value: "JT", ExpiresAt: time.UnixMilli(1_900_000_000)}, nil)},
			`{"error":"Host did not provide a Job Token"}`, "ExpiresAt"},
		"a job token fails": {agent.Qoder, job, sdk.Options{Auth: sdk.JobTokens(), FetchJobToken: fetch(session.Token{}, errOdd)},
			`{"error":"Host did not provide a Job Token"}`, "odd"},
		"nobody has job tokens": {agent.Qoder, job, sdk.Options{}, `{"error":"No fetchJobToken callback configured"}`, "configured"},
		"an account's token": {agent.Qoder, account, sdk.Options{Auth: sdk.ServiceAccountTokens(),
			FetchServiceAccountToken: func(_ context.Context, r *protocol.FetchServiceAccountTokenRequest) (session.Token, error) {
				return session.Token{Value: "for " + r.RequiredScopes[0]}, nil
			}}, `{"token":"for chat"}`, ""},
		"nobody has an account's tokens": {agent.Qoder, account, sdk.Options{}, `{"error":"No fetchServiceAccountToken callback configured"}`, "configured"},

		"a memory": {agent.Qoder, memory, sdk.Options{ShouldGenerateMemory: gate(protocol.ShouldRunReply{Run: true, Reason: "ok"}, nil)}, `{"run":true,"reason":"ok"}`, ""},
		// A gate that fails stays shut; the vendor's SDK sends an error.
		"a memory's gate fails":    {agent.Qoder, memory, sdk.Options{ShouldGenerateMemory: gate(protocol.ShouldRunReply{Run: true}, errOdd)}, `{"run":false,"reason":"the callback failed"}`, "odd"},
		"another memory's gate":    {agent.Qoder, otherMemory, sdk.Options{ShouldGenerateMemory: gate(protocol.ShouldRunReply{Run: true}, nil)}, `{"error":"Unknown memory shouldGenerate callback: nope"}`, "Unknown"},
		"nobody gates memories":    {agent.Qoder, memory, sdk.Options{}, `{"error":"Unknown memory shouldGenerate callback: memory_should_generate_0"}`, "Unknown"},
		"a review":                 {agent.Qoder, skills, sdk.Options{ShouldReviewSkills: gate(protocol.ShouldRunReply{Run: true}, nil)}, `{"run":true}`, ""},
		"nobody knows where files": {agent.Qoder, files, sdk.Options{}, `{"error":"No resolveSessionArtifacts callback configured"}`, "configured"},
		"files": {agent.Qoder, files, sdk.Options{ResolveSessionArtifacts: func(_ context.Context, r *protocol.ResolveSessionArtifactsRequest) (json.RawMessage, error) {
			return json.RawMessage(`{"at":"` + r.Cwd + r.LocalSessionID + `"}`), nil
		}}, `{"at":"/a"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if rows := rows[name]; rows != nil {
				parity.Covers(t, rows...)
			}
			in(t, func(w *world) {
				o := c.options
				got, failed := inquire(w, &o, c.like, c.ask)
				assert.JSONEq(w, c.want, got)
				if c.failed == "" {
					assert.Empty(w, failed)
					return
				}
				require.Len(w, failed, 1)
				assert.ErrorContains(w, failed[0], c.failed)
			})
		})
	}
}

func TestAGateOfATurnThatTakesTooLong(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := &sdk.Options{
			Memory: &session.Memory{Generation: &session.MemoryGeneration{TurnComplete: &session.TurnComplete{Timeout: 100 * time.Millisecond}}},
			ShouldGenerateMemory: func(ctx context.Context, _ *protocol.TurnInfo) (protocol.ShouldRunReply, error) {
				return protocol.ShouldRunReply{Run: true}, w.rt.Executor().Await(ctx, nil)
			},
		}
		got, failed := inquire(w, o, agent.Qoder, &scripted.Request{Subtype: "memory_should_generate",
			Fields: map[string]any{"callbackId": "memory_should_generate_0", "input": map[string]any{}}})
		assert.JSONEq(w, `{"run":false,"reason":"no decision was made in time"}`, got)
		var timeout *sdk.TimeoutError
		require.ErrorAs(w, failed[0], &timeout)
		assert.Equal(w, 100*time.Millisecond, timeout.Limit)
		assert.Equal(w, "Memory", timeout.SetBy)
	})
}

func TestAcceptElicitation(t *testing.T) {
	t.Parallel()
	r, err := sdk.AcceptElicitation(nil)
	require.NoError(t, err)
	assert.Equal(t, protocol.ElicitationResult{Action: protocol.ElicitAccept}, r)
	for _, values := range []any{7, "x", []int{1}, map[string]any(nil), func() {}} {
		r, err = sdk.AcceptElicitation(values)
		require.Error(t, err, "%T", values)
		assert.Empty(t, r.Action, "%T: nobody has agreed", values)
	}
}

func TestASessionThatWaitsForAForm(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.options(turn(&scripted.Elicitation{Server: "srv", Message: "who?"}, scripted.Text("${answer}")))
		waits := make(chan struct{})
		o.OnEvent = func(r sdk.EventRecord) {
			if e, ok := r.Event.(*session.StateChanged); ok && e.To == "awaiting_host" {
				close(waits)
			}
		}
		o.OnElicitation = func(ctx context.Context, _ *protocol.ElicitationRequest) (protocol.ElicitationResult, error) {
			if err := w.rt.Executor().Await(ctx, waits); err != nil {
				return protocol.ElicitationResult{}, err
			}
			return sdk.AcceptElicitation(map[string]string{"name": "Ada"})
		}
		c := w.connect(o)
		assert.JSONEq(w, `{"action":"accept","content":{"name":"Ada"}}`, w.say(c, "hi").Result)
		w.close(c)
	})
}

func TestTokensThatNobodyProvides(t *testing.T) {
	t.Parallel()
	token := func(context.Context, *protocol.FetchJobTokenRequest) (session.Token, error) {
		return session.Token{}, nil
	}
	for name, c := range map[string]struct {
		o    sdk.Options
		want string
	}{
		"job tokens promised":     {sdk.Options{Auth: sdk.JobTokens()}, "FetchJobToken"},
		"account tokens promised": {sdk.Options{Auth: sdk.ServiceAccountTokens()}, "FetchServiceAccountToken"},
		"job tokens not asked":    {sdk.Options{Auth: sdk.QoderCLIAuth(), FetchJobToken: token}, "FetchJobToken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.o.Backend = sdk.InMemory(scripted.New(), agent.Qoder)
			_, err := sdk.Run(t.Context(), "hi", &c.o)
			problems := sdk.ConfigErrors(err)
			require.Len(t, problems, 1, "%v", err)
			assert.Equal(t, c.want, problems[0].Option)
		})
	}
}

func TestAuthExpired(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "qoder/option/onAuthExpired", "qoder/error/authentication_failed")
	in(t, func(w *world) {
		told := make(chan struct{})
		var reason string
		line := func(text string) *scripted.Raw {
			raw := scripted.Raw(`{"type":"assistant","error":"authentication_failed","message":{"id":"m","type":"message","role":"assistant",` +
				`"model":"<synthetic>","content":[{"type":"text","text":"` + text + `"}]},"parent_tool_use_id":null,"session_id":"s","uuid":"u"}`)
			return &raw
		}
		o := w.like(agent.Qoder, script(turn(line("Not logged in"), line("again"), scripted.Text("done"))))
		o.OnAuthExpired = func(r string) { // once, or close panics
			reason = r
			close(told)
		}
		l := record(o)
		r, err := sdk.Run(w.Context(), "hi", o)
		require.NoError(w, err)
		assert.Equal(w, "done", r.Result)
		w.await(told)
		assert.Equal(w, "Not logged in", reason)
		assert.Empty(w, w.failures(l))
	})
}
