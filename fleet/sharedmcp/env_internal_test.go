package sharedmcp

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/acp/acpclient"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// A shared server has no variable of the host that the agent would not have had.
func TestEnvironmentOfASharedServer(t *testing.T) {
	t.Parallel()
	host := []string{"PATH=/bin", "TOKEN=host", "NODE_OPTIONS=--require=x", "DEBUG=1", "CLAUDECODE=1", "QODER_SERVICE_ACCOUNT_KEY=key", "MY_KEY=key", "broken", "=C:=x"}
	for name, c := range map[string]struct {
		o    sdk.Options
		own  map[string]string
		want []string
	}{
		"claude":            {o: sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{})}, want: []string{"MY_KEY=key", "PATH=/bin", "QODER_SERVICE_ACCOUNT_KEY=key", "TOKEN=host"}},
		"qoder":             {o: sdk.Options{Backend: sdk.Qoder(sdk.QoderConfig{})}, want: []string{"CLAUDECODE=1", "DEBUG=1", "MY_KEY=key", "PATH=/bin", "QODER_SERVICE_ACCOUNT_KEY=key", "TOKEN=host"}},
		"a service account": {o: sdk.Options{Backend: sdk.Qoder(sdk.QoderConfig{}), Auth: &session.Auth{Type: session.AuthServiceAccount, EnvVar: "MY_KEY"}}, want: []string{"CLAUDECODE=1", "DEBUG=1", "PATH=/bin", "TOKEN=host"}},
		"another agent":     {o: sdk.Options{Backend: acpclient.Backend("x")}, want: []string{"CLAUDECODE=1", "DEBUG=1", "MY_KEY=key", "NODE_OPTIONS=--require=x", "PATH=/bin", "QODER_SERVICE_ACCOUNT_KEY=key", "TOKEN=host"}},
		"not chosen":        {o: sdk.Options{}, want: []string{"MY_KEY=key", "PATH=/bin", "QODER_SERVICE_ACCOUNT_KEY=key", "TOKEN=host"}},
		"UnsetEnv":          {o: sdk.Options{UnsetEnv: []string{"TOKEN", "MY_KEY", "QODER_SERVICE_ACCOUNT_KEY"}}, want: []string{"PATH=/bin"}},
		"CleanEnv":          {o: sdk.Options{CleanEnv: true, Env: map[string]string{"PATH": "/own"}}, own: map[string]string{"A": "b"}, want: []string{"A=b", "PATH=/own"}},
		"what is given stays": {o: sdk.Options{Env: map[string]string{"NODE_OPTIONS": "mine", "TOKEN": "session"}, UnsetEnv: []string{"MY_KEY", "QODER_SERVICE_ACCOUNT_KEY"}},
			own: map[string]string{"DEBUG": "server", "TOKEN": "server"}, want: []string{"DEBUG=server", "NODE_OPTIONS=mine", "PATH=/bin", "TOKEN=server"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, sharedEnv(host, &c.o, c.own))
		})
	}
}
