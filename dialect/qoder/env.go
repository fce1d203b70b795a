package qoder

import (
	"fmt"
	"strings"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/session"
)

const authFile = "payload.json"

// environment adds what the SDK adds. Like there, options win over variables of the user's.
func environment(o *dialect.Input, l *dialect.Launch, p *build.Problems) {
	e := build.NewEnv(o, p)
	e.Own("QODER_AGENT_SDK_ENTRYPOINT", entrypoint)
	e.Own("QODER_AGENT_SDK_VERSION", sdkVersion)
	if endpoint := strings.TrimSpace(o.VPCEndpoint); endpoint != "" {
		e.Set("QODER_VPC_ENDPOINT", endpoint, build.URLCredential(endpoint))
	} else if o.VPCEndpoint != "" {
		e.Unset("QODER_VPC_ENDPOINT")
	}
	if o.Proxy != "" && build.URLCredential(o.Proxy) {
		e.Set("HTTPS_PROXY", o.Proxy, true)
	}
	if _, given := o.Env["NODE_OPTIONS"]; !given {
		e.Unset("NODE_OPTIONS")
	}
	if payload, err := authPayload(o); err != nil {
		p.Add("Auth", err.Error(), "use one of AccessToken, AccessTokenFromEnv, QoderCLIAuth, ServiceAccountKey, ServiceAccountTokens, JobTokens")
	} else {
		l.Files = append(l.Files, dialect.File{Name: authFile, Content: payload, Reason: "the agent reads its login from a file"})
		e.Set("QODER_SDK_AUTH_PAYLOAD_FILE", dialect.FileRef(authFile), false)
	}
	for _, name := range serviceAccountEnv(o.Auth) {
		e.Unset(name)
	}
	l.Env, l.Unset = e.Vars(), e.Removed()
}

// NotInherited names the variables of the host that an agent with this login never gets, unless
// Options.Env has them. nil: another login than a service account.
func NotInherited(auth *session.Auth) []string {
	// NODE_OPTIONS are those of a runtime that the host runs under.
	return append(serviceAccountEnv(auth), "NODE_OPTIONS")
}

// serviceAccountEnv names the variables with the key of a service account, which only the host
// needs.
func serviceAccountEnv(auth *session.Auth) []string {
	if auth == nil || auth.Type != session.AuthServiceAccount {
		return nil
	}
	names := []string{session.DefaultServiceAccountEnv}
	if auth.EnvVar != "" {
		names = append(names, auth.EnvVar)
	}
	return names
}

// authPayload is the content of the file that the CLI reads its login from.
func authPayload(o *dialect.Input) ([]byte, error) {
	a := o.Auth
	if a == nil {
		return nil, fmt.Errorf("is missing, and qodercli does not start without")
	}
	var payload build.Object
	payload.Set("type", a.Type)
	switch a.Type {
	case session.AuthQoderCLI:
	case session.AuthJobToken:
		payload.Set("jobTokenProvider", "host")
	case session.AuthAccessToken:
		token, err := secret(o, a.AccessToken, a.EnvVar)
		if err != nil {
			return nil, err
		}
		if token == "" {
			return nil, fmt.Errorf("has no access token")
		}
		payload.Set("accessToken", token)
	case session.AuthServiceAccount:
		key, err := secret(o, a.ServiceAccountKey, a.EnvVar)
		if err != nil {
			return nil, err
		}
		if key == "" {
			payload.Set("serviceAccountTokenProvider", "host")
		} else {
			payload.Set("serviceAccountKey", key)
		}
	default:
		return nil, fmt.Errorf("is of unknown type %q", a.Type)
	}
	return payload.JSON()
}

// secret is the given one, or the one in a variable of the host.
func secret(o *dialect.Input, given, name string) (string, error) {
	if given != "" || name == "" {
		return given, nil
	}
	value, _ := o.LookupHostEnv(name)
	if value == "" {
		return "", fmt.Errorf("names the environment variable %s, which is not set", name)
	}
	return value, nil
}
