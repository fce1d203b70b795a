package sdk

import (
	"encoding/json"
	"fmt"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// What the agent asks of its host besides permissions, hooks, tools and models.
type (
	// ElicitationHandler answers the question of an MCP server to the person: a form
	// to fill in (Mode form, RequestedSchema), or a page to visit (Mode url). The
	// zero result turns it down, and so does an error or a panic. It has no limit:
	// a person may be asleep.
	ElicitationHandler = session.ElicitationHandler
	// ElicitationRequest is a question of an MCP server to the person.
	ElicitationRequest = protocol.ElicitationRequest
	// ElicitationResult answers an [ElicitationRequest]: ElicitAccept with an
	// object of the requested schema, ElicitDecline or ElicitCancel.
	ElicitationResult = protocol.ElicitationResult

	// UserDialogHandler shows a dialog of one of Options.SupportedDialogKinds. The
	// zero result cancels it, and so does an error or a panic. It has no limit.
	// Claude.
	UserDialogHandler = session.UserDialogHandler
	// UserDialogRequest asks the host to show a dialog.
	UserDialogRequest = protocol.UserDialogRequest
	// UserDialogResult answers a [UserDialogRequest].
	UserDialogResult = protocol.UserDialogResult

	// Token is what qodercli logs in with. Printing it does not show it.
	Token = session.Token
	// FetchJobToken gets a job token, within a minute. An error, or a token
	// without a value, tells the agent that there is none. Qoder.
	FetchJobToken = session.FetchJobToken
	// JobTokenRequest says why the agent needs a job token: initial, unauthorized, ….
	JobTokenRequest = protocol.FetchJobTokenRequest
	// FetchServiceAccountToken gets a service account's token, within a minute.
	// Qoder.
	FetchServiceAccountToken = session.FetchServiceAccountToken
	// ServiceAccountTokenRequest says why the agent needs a token, and for which
	// scopes.
	ServiceAccountTokenRequest = protocol.FetchServiceAccountTokenRequest

	// TurnGate decides whether a turn that has ended is worth a memory, or a
	// review of the skills. The zero decision is a no, and so is an error, a
	// panic, or no answer within a minute (TurnComplete.Timeout). Qoder.
	TurnGate = session.TurnGate
	// TurnInfo is a turn that has ended.
	TurnInfo = protocol.TurnInfo
	// TurnDecision answers a [TurnGate].
	TurnDecision = protocol.ShouldRunReply

	// ResolveSessionArtifacts says where the files of a session are. The form of
	// the answer has not been observed: it is passed on as it is. Qoder.
	ResolveSessionArtifacts = session.ResolveSessionArtifacts
	// SessionArtifactsRequest names the session.
	SessionArtifactsRequest = protocol.ResolveSessionArtifactsRequest
)

// Actions of an [ElicitationResult], and behaviors of a [UserDialogResult].
const (
	ElicitAccept  = protocol.ElicitAccept
	ElicitDecline = protocol.ElicitDecline
	ElicitCancel  = protocol.ElicitCancel

	DialogCompleted = protocol.DialogCompleted
	DialogCancelled = protocol.DialogCancelled
)

// AcceptElicitation answers an elicitation with the values of a form, which
// marshal to a JSON object of the requested schema; nil for a page that was
// visited.
func AcceptElicitation(content any) (ElicitationResult, error) {
	r := ElicitationResult{Action: ElicitAccept}
	if content == nil {
		return r, nil
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return ElicitationResult{}, err
	}
	if raw[0] != '{' {
		return ElicitationResult{}, fmt.Errorf("sdk: the values of the form are %T, which is no JSON object; give a struct or a map", content)
	}
	r.Content = raw
	return r, nil
}

func (o *Options) inquiries() runtime.Inquiries {
	return runtime.Inquiries{
		Elicitation: o.OnElicitation, UserDialog: o.OnUserDialog,
		JobToken: o.FetchJobToken, ServiceAccountToken: o.FetchServiceAccountToken,
		ShouldGenerateMemory: o.ShouldGenerateMemory, ShouldReviewSkills: o.ShouldReviewSkills,
		SessionArtifacts: o.ResolveSessionArtifacts,
	}
}

// checkTokens finds logins that nobody can provide, and callbacks that nobody
// will ever ask.
func (o *Options) checkTokens() []error {
	var problems []error
	is := func(t session.AuthType) bool { return o.Auth != nil && o.Auth.Type == t }
	fromHost := is(session.AuthServiceAccount) && o.Auth.ServiceAccountKey == "" && o.Auth.EnvVar == ""
	for _, c := range []struct {
		option       string
		given, wants bool
		auth         string
	}{
		{"FetchJobToken", o.FetchJobToken != nil, is(session.AuthJobToken), "JobTokens()"},
		{"FetchServiceAccountToken", o.FetchServiceAccountToken != nil, fromHost, "ServiceAccountTokens()"},
	} {
		switch {
		case c.wants && !c.given:
			problems = append(problems, &ConfigError{
				Option:  c.option,
				Problem: "Auth says that the host provides the tokens, and there is no callback that does",
				Fix:     "give " + c.option + ", or another Auth",
			})
		case c.given && !c.wants:
			problems = append(problems, &ConfigError{
				Option: c.option, Problem: "Auth does not ask for it", Fix: "set Auth to sdk." + c.auth,
			})
		}
	}
	return problems
}
