package callback_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/callback"
	"github.com/agent-troupe/troupe/actors/callback/callbacktest"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

func asks(t *testing.T, d dialect.Dialect, o *session.Options) *callbacktest.Rig {
	t.Helper()
	return callbacktest.New(t,
		func(*callbacktest.Rig) *callback.Actor {
			return &callback.Actor{Kind: session.KindInquiry, Prepare: callback.PrepareInquiry(d, o), Refuses: true}
		},
		func(f protocol.Frame, reason string) ([]byte, string) { return callback.InquiryDenial(d, f, reason) })
}

func line(request string) string {
	return `{"type":"control_request","request_id":"q","request":` + request + `}`
}

const (
	elicitation = `{"subtype":"elicitation","mcp_server_name":"s","message":"who?"}`
	older       = `{"subtype":"elicitation_response","prompt":"who?"}`
	dialog      = `{"subtype":"request_user_dialog","dialog_kind":"x"}`
	jobToken    = `{"subtype":"fetch_job_token"}`
	account     = `{"subtype":"fetch_service_account_token"}`
	memory      = `{"subtype":"memory_should_generate","callbackId":"` + dialect.MemoryCallbackID + `"}`
	review      = `{"subtype":"skill_evolution_should_review","callbackId":"` + dialect.EvolutionCallbackID + `"}`
	artifacts   = `{"subtype":"resolve_session_artifacts"}`
)

// TestWhatTheHostAnswers gives each request to a host with its callback, and to one
// whose callback fails, says nothing, or is not there.
func TestWhatTheHostAnswers(t *testing.T) {
	t.Parallel()
	secret := errors.New("a secret")
	elicit := func(r protocol.ElicitationResult, err error) session.Options {
		return session.Options{OnElicitation: func(context.Context, *protocol.ElicitationRequest) (protocol.ElicitationResult, error) { return r, err }}
	}
	show := func(r protocol.UserDialogResult, err error) session.Options {
		return session.Options{OnUserDialog: func(context.Context, *protocol.UserDialogRequest) (protocol.UserDialogResult, error) { return r, err }}
	}
	token := func(r session.Token, err error) session.Options {
		return session.Options{
			FetchJobToken:            func(context.Context, *protocol.FetchJobTokenRequest) (session.Token, error) { return r, err },
			FetchServiceAccountToken: func(context.Context, *protocol.FetchServiceAccountTokenRequest) (session.Token, error) { return r, err },
		}
	}
	decide := func(r protocol.ShouldRunReply, err error) session.Options {
		gate := func(context.Context, *protocol.TurnInfo) (protocol.ShouldRunReply, error) { return r, err }
		return session.Options{ShouldGenerateMemory: gate, ShouldReviewSkills: gate}
	}
	find := func(r string, err error) session.Options {
		return session.Options{ResolveSessionArtifacts: func(context.Context, *protocol.ResolveSessionArtifactsRequest) (json.RawMessage, error) {
			return json.RawMessage(r), err
		}}
	}
	year := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		request string
		options session.Options
		want    string // part of the answer
	}{
		"a person answers":                 {elicitation, elicit(protocol.ElicitationResult{Action: protocol.ElicitAccept, Content: json.RawMessage(`{"a":1}`)}, nil), `{"action":"accept","content":{"a":1}}`},
		"content of a refusal is not sent": {elicitation, elicit(protocol.ElicitationResult{Action: protocol.ElicitDecline, Content: json.RawMessage(`{}`)}, nil), `{"action":"decline"}`},
		"nothing is the fallback":          {older, elicit(protocol.ElicitationResult{}, nil), `{"action":"cancel"}`},
		"an odd action":                    {elicitation, elicit(protocol.ElicitationResult{Action: "perhaps"}, nil), `{"action":"cancel"}`},
		"content that is no object":        {elicitation, elicit(protocol.ElicitationResult{Action: protocol.ElicitAccept, Content: json.RawMessage(`[]`)}, nil), `{"action":"cancel"}`},
		"an elicitation fails":             {elicitation, elicit(protocol.ElicitationResult{Action: protocol.ElicitAccept}, secret), `{"action":"cancel"}`},
		"no elicitations":                  {elicitation, session.Options{}, `{"action":"cancel"}`},
		"a dialog":                         {dialog, show(protocol.UserDialogResult{Behavior: protocol.DialogCompleted, Result: json.RawMessage(`"x"`)}, nil), `"completed"`},
		"a dialog without a word":          {dialog, show(protocol.UserDialogResult{Result: json.RawMessage(`"x"`)}, nil), `{"behavior":"cancelled"}`},
		"a dialog's odd word":              {dialog, show(protocol.UserDialogResult{Behavior: "done"}, nil), `{"behavior":"cancelled"}`},
		"a dialog fails":                   {dialog, show(protocol.UserDialogResult{Behavior: protocol.DialogCompleted}, secret), `{"behavior":"cancelled"}`},
		"no dialogs":                       {dialog, session.Options{}, `{"behavior":"cancelled"}`},
		"a job token":                      {jobToken, token(session.Token{Value: "tok", ExpiresAt: year}, nil), `"token":"tok"`},
		"an account's token":               {account, token(session.Token{Value: "tok"}, nil), `"token":"tok"`},
		"a token of 1970":                  {jobToken, token(session.Token{Value: "tok", ExpiresAt: time.Unix(1, 0)}, nil), "job_token_unavailable"},
		"an empty token":                   {account, token(session.Token{}, nil), "service_account_token_unavailable"},
		"a token fails":                    {jobToken, token(session.Token{Value: "tok"}, secret), "Host did not provide a Job Token"},
		"no tokens":                        {account, session.Options{}, "No fetchServiceAccountToken callback configured"},
		"a memory":                         {memory, decide(protocol.ShouldRunReply{Run: true}, nil), `"run":true`},
		"a review":                         {review, decide(protocol.ShouldRunReply{Reason: "no"}, nil), `"reason":"no"`},
		"a memory fails":                   {memory, decide(protocol.ShouldRunReply{Run: true}, secret), `"run":false`},
		"another callback's memory":        {`{"subtype":"memory_should_generate","callbackId":"x"}`, decide(protocol.ShouldRunReply{Run: true}, nil), "Unknown memory shouldGenerate callback: x"},
		"artifacts":                        {artifacts, find(`{"a":1}`, nil), `{"a":1}`},
		"artifacts fail":                   {artifacts, find(``, secret), "the callback failed"},
		"artifacts that are no JSON":       {artifacts, find(`{`, nil), "the callback failed"},
		"no artifacts":                     {artifacts, session.Options{}, "resolve_session_artifacts_unavailable"},
		"an unreadable request":            {`{"subtype":"elicitation","mcp_server_name":7}`, session.Options{}, `{"action":"cancel"}`},
		"a request of next week":           {`{"subtype":"of_next_week"}`, session.Options{}, "Unsupported control request subtype: of_next_week"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := asks(t, qoder.New(), &c.options)
			r.Ask(line(c.request), 0)
			require.Len(t, r.Lines, 1)
			assert.Contains(t, r.Lines[0], c.want)
			assert.NotContains(t, r.Lines[0], "a secret", "what went wrong is the user's business")
		})
	}
}

// TestHowLongTheHostMayTake: people have as long as they like, programs a minute, or
// what the options say.
func TestHowLongTheHostMayTake(t *testing.T) {
	t.Parallel()
	limited := &session.Options{
		Memory: &session.Memory{Generation: &session.MemoryGeneration{TurnComplete: &session.TurnComplete{Timeout: time.Second}}},
	}
	for name, c := range map[string]struct {
		request string
		options *session.Options
		want    time.Duration
	}{
		"an elicitation":  {elicitation, &session.Options{}, 0},
		"a dialog":        {dialog, &session.Options{}, 0},
		"a token":         {jobToken, &session.Options{}, callback.InquiryTimeout},
		"a memory":        {memory, &session.Options{}, callback.InquiryTimeout},
		"a limited one":   {memory, limited, time.Second},
		"another's limit": {review, limited, callback.InquiryTimeout},

		"an elicitation that nobody attends":       {elicitation, &session.Options{Unattended: true}, time.Minute},
		"a dialog that nobody attends":             {dialog, &session.Options{Unattended: true, PermissionTimeout: time.Second}, time.Second},
		"a token of a session that nobody attends": {jobToken, &session.Options{Unattended: true}, callback.InquiryTimeout},
		"an elicitation, permissions limited":      {elicitation, &session.Options{PermissionTimeout: time.Second}, 0},
	} {
		f, err := protocol.ParseFrame([]byte(line(c.request)))
		require.NoError(t, err, name)
		job, err := callback.PrepareInquiry(claude.New(), c.options)(&callback.Request{Frame: &f})
		require.NoError(t, err, name)
		assert.Equal(t, c.want, job.Limit, name)
	}
}
