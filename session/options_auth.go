package session

import "fmt"

// AuthType is a way for qodercli to log in.
type AuthType string

// The ways to log in.
const (
	AuthAccessToken    AuthType = "accessToken"    // a personal access token
	AuthQoderCLI       AuthType = "qodercli"       // the login of the CLI itself
	AuthServiceAccount AuthType = "serviceAccount" // a key, or tokens from the host
	AuthJobToken       AuthType = "jobToken"       // tokens from the host
)

// DefaultTokenEnv is where AccessTokenFromEnv("") looks.
const DefaultTokenEnv = "QODER_PERSONAL_ACCESS_TOKEN"

// DefaultServiceAccountEnv is where a service account's key is looked for when it is said to be in a variable.
const DefaultServiceAccountEnv = "QODER_SERVICE_ACCOUNT_KEY"

// Auth is how qodercli logs in. Use one of the constructors. Secrets go to a 0600 file that the CLI reads at start,
// never to argv; printing an Auth does not show them.
type Auth struct {
	Type AuthType `json:"type"` // one of the ways to log in, required
	// AccessToken is the personal access token.
	AccessToken string `json:"accessToken,omitempty"`
	// EnvVar names the environment variable that holds the token or key, looked up in Options.Env and then in
	// Options.ParentEnv; for service accounts it is also hidden from the agent.
	EnvVar string `json:"envVar,omitempty"`
	// ServiceAccountKey is the key; empty: the host answers fetch_service_account_token requests.
	ServiceAccountKey string `json:"serviceAccountKey,omitempty"`
}

// AccessToken logs in with a personal access token.
func AccessToken(token string) *Auth { return &Auth{Type: AuthAccessToken, AccessToken: token} }

// AccessTokenFromEnv logs in with the token in an environment variable; "" is DefaultTokenEnv.
func AccessTokenFromEnv(name string) *Auth {
	if name == "" {
		name = DefaultTokenEnv
	}
	return &Auth{Type: AuthAccessToken, EnvVar: name}
}

// QoderCLIAuth uses the login that qodercli has.
func QoderCLIAuth() *Auth { return &Auth{Type: AuthQoderCLI} }

// ServiceAccountKey logs in with a service account's key.
func ServiceAccountKey(key string) *Auth {
	return &Auth{Type: AuthServiceAccount, ServiceAccountKey: key}
}

// ServiceAccountTokens logs in with a service account's tokens, which the host fetches when asked.
func ServiceAccountTokens() *Auth { return &Auth{Type: AuthServiceAccount} }

// JobTokens logs in with job tokens, which the host fetches when asked.
func JobTokens() *Auth { return &Auth{Type: AuthJobToken} }

// String names the way of logging in without its secrets.
func (a *Auth) String() string {
	if a == nil {
		return "none"
	}
	if a.EnvVar != "" {
		return fmt.Sprintf("%s from $%s", a.Type, a.EnvVar)
	}
	return string(a.Type)
}

// GoString is String; it keeps %#v from showing secrets.
func (a *Auth) GoString() string { return "session.Auth(" + a.String() + ")" }
