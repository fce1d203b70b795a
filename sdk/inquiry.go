package sdk

import (
	"encoding/json"
	"fmt"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// AcceptElicitation accepts an elicitation. content has the values of the form, and
// must marshal to a JSON object that fits the requested schema. It is nil for a page
// that the person has visited.
func AcceptElicitation(content any) (protocol.ElicitationResult, error) {
	r := protocol.ElicitationResult{Action: protocol.ElicitAccept}
	if content == nil {
		return r, nil
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return protocol.ElicitationResult{}, err
	}
	if raw[0] != '{' {
		return protocol.ElicitationResult{}, fmt.Errorf("sdk: the values of the form have type %T, which does not encode as a JSON object; pass a struct or a map", content)
	}
	r.Content = raw
	return r, nil
}

// checkTokens finds logins without a callback that provides them, and callbacks that
// are never called.
func checkTokens(o *Options) []error {
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
				Problem: "Auth says that the host provides the tokens, but the callback for them is nil",
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
