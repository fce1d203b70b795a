package session

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"
)

// AuthType is a way for qodercli to log in.
type AuthType string

// The ways to log in.
const (
	AuthAccessToken    AuthType = "accessToken"    // a personal access token
	AuthQoderCLI       AuthType = "qodercli"       // the login of the CLI itself
	AuthServiceAccount AuthType = "serviceAccount" // a key, or tokens from the host
	AuthJobToken       AuthType = "jobToken"       // tokens from the host
)

// DefaultTokenEnv is the environment variable that holds a personal access token, unless Auth.EnvVar names another.
const DefaultTokenEnv = "QODER_PERSONAL_ACCESS_TOKEN"

// DefaultServiceAccountEnv is the environment variable of a service account's key, for an Auth in JSON that says that
// the key is in a variable and names none.
const DefaultServiceAccountEnv = "QODER_SERVICE_ACCOUNT_KEY"

// Auth is how qodercli logs in. Secrets go to a file of mode 0600 that the CLI reads when
// it starts, never to the argument list. Printing an Auth does not show them.
type Auth struct {
	Type AuthType `json:"type"` // one of the ways to log in, required
	// AccessToken is the personal access token.
	AccessToken string `json:"accessToken,omitempty"`
	// EnvVar names the environment variable that holds the token or the key. It is looked up in Options.Env first, then
	// in the environment of this process. For service accounts the variable is also hidden from the agent.
	EnvVar string `json:"envVar,omitempty"`
	// ServiceAccountKey is the key of the service account. Empty, and EnvVar empty: Options.FetchServiceAccountToken
	// provides tokens.
	ServiceAccountKey string `json:"serviceAccountKey,omitempty"`
}

// String returns the type of the login, without secrets.
func (a *Auth) String() string {
	if a == nil {
		return "none"
	}
	if a.EnvVar != "" {
		return fmt.Sprintf("%s from $%s", a.Type, a.EnvVar)
	}
	return string(a.Type)
}

var errSecretShape = errors.New(`session: a secret is a text, or {"envVar": NAME}`)

// secretJSON is a secret as the vendor's documents write it: the text itself, or {"envVar": NAME}.
type secretJSON struct {
	text   string
	envVar *string
}

func (s *secretJSON) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &s.text) == nil {
		return nil
	}
	var from struct {
		EnvVar *string `json:"envVar"`
	}
	if err := json.Unmarshal(b, &from); err != nil || from.EnvVar == nil {
		return errSecretShape
	}
	s.envVar = from.EnvVar
	return nil
}

// UnmarshalJSON decodes an Auth. accessToken and serviceAccountKey may be a text, or {"envVar": NAME}, which sets
// EnvVar.
func (a *Auth) UnmarshalJSON(b []byte) error {
	var w struct {
		Type              AuthType   `json:"type"`
		AccessToken       secretJSON `json:"accessToken"`
		EnvVar            string     `json:"envVar"`
		ServiceAccountKey secretJSON `json:"serviceAccountKey"`
	}
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*a = Auth{Type: w.Type, AccessToken: w.AccessToken.text, ServiceAccountKey: w.ServiceAccountKey.text, EnvVar: w.EnvVar}
	for _, from := range []struct {
		name     *string
		fallback string
	}{{w.AccessToken.envVar, DefaultTokenEnv}, {w.ServiceAccountKey.envVar, DefaultServiceAccountEnv}} {
		if from.name != nil {
			a.EnvVar = cmp.Or(*from.name, from.fallback)
		}
	}
	return nil
}

// Token is a token with which the agent logs in. Printing, logging or marshaling it
// does not show its value.
type Token struct {
	// Value is the token itself, a secret. Empty: there is no token.
	Value string
	// ExpiresAt is when the token expires; the zero time if that is unknown.
	ExpiresAt time.Time
}

func (t Token) String() string {
	switch {
	case t.Value == "":
		return "no token"
	case t.ExpiresAt.IsZero():
		return "token"
	}
	return "token until " + t.ExpiresAt.Format(time.RFC3339)
}

// Format writes String for every verb, as Token(…) for %#v.
func (t Token) Format(f fmt.State, verb rune) {
	text := t.String()
	if f.Flag('#') {
		text = "Token(" + text + ")"
	}
	if verb == 'q' {
		text = strconv.Quote(text)
	}
	_, _ = io.WriteString(f, text) // package fmt's own buffer
}

// MarshalJSON keeps the token out of logs that print JSON.
func (t Token) MarshalJSON() ([]byte, error) { return json.Marshal(t.String()) }

// LogValue keeps the token out of structured logs.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }
