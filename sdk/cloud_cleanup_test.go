package sdk_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/cloud"
	"github.com/agent-troupe/troupe/agent/cloud/cloudtest"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

func cleanupOptions(server *cloudtest.Server) *sdk.Options {
	return &sdk.Options{Backend: cloud.Backend(cloud.Config{HTTP: server}), Auth: sdk.AccessToken("secret-1")}
}

// TestCloudCleanup: what a session has created is archived, or deleted, and nothing else.
func TestCloudCleanup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &cloudtest.Server{Token: "secret-1"}
		rt, err := runtime.New(runtime.Config{})
		require.NoError(t, err)
		opened := make(chan *session.CloudOpened, 1)
		o := cleanupOptions(server)
		o.Runtime = rt
		o.ExperimentalCloudAgent = &session.CloudAgent{
			Agent:   &session.CloudAgentReference{Create: &session.CloudAgentCreate{Name: "n", Model: "auto"}},
			Session: session.CloudSession{Create: &session.CloudSessionCreate{EnvironmentID: "env_1"}},
		}
		o.OnEvent = func(r session.EventRecord) {
			if e, ok := r.Event.(*session.CloudOpened); ok {
				opened <- e
			}
		}
		_, err = sdk.Run(t.Context(), "hello", o)
		require.NoError(t, err)
		made := <-opened
		require.True(t, made.AgentCreated && made.SessionCreated)

		clean, err := cloud.NewCleanup(o)
		require.NoError(t, err)
		require.NoError(t, clean.Archive(t.Context(), made))
		assert.Equal(t, []string{made.SessionID, made.AgentID}, server.Archived())
		require.NoError(t, clean.Delete(t.Context(), made))
		assert.Equal(t, []string{made.SessionID, made.AgentID}, server.Deleted())

		err = clean.DeleteAgent(t.Context(), made.AgentID)
		refused, ok := errors.AsType[*session.CloudError](err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, http.StatusNotFound, refused.Status)
		assert.Equal(t, "delete agent", refused.Op)

		before := len(server.Requests())
		require.NoError(t, clean.Archive(t.Context(), &session.CloudOpened{SessionID: "s", AgentID: "a"}), "an existing session, with an existing agent")
		assert.Len(t, server.Requests(), before)
		require.NoError(t, rt.Shutdown(t.Context()))
	})
}

// TestCloudCleanupRequests: the paths are those of the service's documents, with ids escaped.
func TestCloudCleanupRequests(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		do   func(*cloud.Cleanup, context.Context, string) error
		want string
	}{
		"archive a session": {(*cloud.Cleanup).ArchiveSession, "POST /sessions/a%2Fb/archive"},
		"archive an agent":  {(*cloud.Cleanup).ArchiveAgent, "POST /agents/a%2Fb/archive"},
		"delete a session":  {(*cloud.Cleanup).DeleteSession, "DELETE /sessions/a%2Fb"},
		"delete an agent":   {(*cloud.Cleanup).DeleteAgent, "DELETE /agents/a%2Fb"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				faults := []*cloudtest.Fault{{NoConnection: true}, {Status: 429, RetryAfter: "7"}, nil, {Status: 500}, nil}
				server := &cloudtest.Server{Fault: func(n int, _ *cloudtest.Request) *cloudtest.Fault { return faults[n-1] }}
				clean, err := cloud.NewCleanup(cleanupOptions(server))
				require.NoError(t, err)
				began := time.Now()
				require.NoError(t, c.do(clean, t.Context(), "a/b"))
				assert.GreaterOrEqual(t, time.Since(began), 7*time.Second)
				all := server.Requests()
				require.Len(t, all, 3, "what had no effect is asked for again")
				for _, r := range all {
					assert.Equal(t, c.want, r.Method+" "+r.Path)
					assert.Equal(t, "Bearer secret-1", r.Header.Get("Authorization"))
					assert.Empty(t, r.Body)
				}
				assert.Equal(t, []string{"a/b"}, append(server.Archived(), server.Deleted()...))

				err = c.do(clean, t.Context(), "a/b") // it may have had its effect
				failed, ok := errors.AsType[*session.CloudError](err)
				require.True(t, ok, "%v", err)
				assert.True(t, failed.Unclear)
				assert.Len(t, server.Requests(), 4)

				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				require.ErrorIs(t, c.do(clean, ctx, "x"), context.Canceled)
			})
		})
	}
}

func TestCloudCleanupMistakes(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		o    sdk.Options
		want string
	}{
		"not in the cloud": {sdk.Options{Backend: sdk.Qoder(sdk.QoderConfig{Path: "/q"})}, "Backend"},
		"no login":         {sdk.Options{Backend: cloud.Backend(cloud.Config{})}, "Auth"},
		"another login":    {sdk.Options{Backend: cloud.Backend(cloud.Config{}), Auth: sdk.AccessToken("")}, "Auth"},
		"a wrong address":  {sdk.Options{Backend: cloud.Backend(cloud.Config{BaseURL: "ftp://x"}), Auth: sdk.AccessToken("t")}, "Backend"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := cloud.NewCleanup(&c.o)
			wrong, ok := errors.AsType[*session.ConfigError](err)
			require.True(t, ok, "%v", err)
			assert.Equal(t, c.want, wrong.Option)
		})
	}
}
