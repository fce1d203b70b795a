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
