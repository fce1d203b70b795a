package cloud_test

import (
	"context"
	"fmt"

	"github.com/agent-troupe/troupe/agent/cloud"
	"github.com/agent-troupe/troupe/agent/cloud/cloudtest"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// The service is one in memory, so that the example needs no account. Leave HTTP out to talk
// to Qoder's.
func ExampleBackend() {
	opts := &sdk.Options{
		Backend: cloud.Backend(cloud.Config{HTTP: &cloudtest.Server{}}),
		Auth:    &session.Auth{Type: session.AuthAccessToken, AccessToken: "a token"},
		ExperimentalCloudAgent: &session.CloudAgent{
			Agent:   &session.CloudAgentReference{ID: "agent_7"},
			Session: session.CloudSession{Create: &session.CloudSessionCreate{EnvironmentID: "env_1"}},
		},
	}
	result, err := sdk.Run(context.Background(), "hello", opts)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Result)
	// Output: answer to hello in turn_1
}
