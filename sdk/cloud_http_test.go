package sdk_test

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/cloud"
	"github.com/agent-troupe/troupe/agent/cloud/cloudtest"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// TestCloudOverHTTP: with the transport of net/http, over sockets that break.
func TestCloudOverHTTP(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	s := &cloudtest.Server{
		Token: cloudToken,
		Turn: func(turn, text string) []cloudtest.Step {
			steps := cloudtest.Answer(turn, text)
			for i := range steps {
				steps[i].After /= 1000
			}
			return steps
		},
		Fault: func(_ int, r *cloudtest.Request) *cloudtest.Fault {
			switch n := requests.Add(1); {
			case r.Stream() && n < 20:
				return &cloudtest.Fault{ResetAt: 300}
			case n == 4 || n == 9:
				return &cloudtest.Fault{Lost: true}
			}
			return nil
		},
	}
	server := httptest.NewServer(s)
	defer server.Close()
	rt, err := runtime.New(runtime.Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	o := existing()
	o.Runtime, o.Auth, o.MaxRestarts = rt, sdk.AccessToken(cloudToken), 1
	o.Backend = cloud.Backend(cloud.Config{BaseURL: server.URL + "/api/v1/cloud"})
	c := sdk.NewClient(o)
	require.NoError(t, c.Connect(t.Context()))
	var want []string
	for i := range 3 {
		text := fmt.Sprintf("message %d", i)
		want = append(want, text)
		turn, err := c.Send(t.Context(), sdk.UserText(text))
		require.NoError(t, err)
		r, err := turn.Result(t.Context())
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("answer to %s in turn_%d", text, i+1), r.Result, "%v", r.Errors)
	}
	assert.Equal(t, want, s.Messages())
	require.NoError(t, c.Close(t.Context()))
	require.NoError(t, rt.Shutdown(t.Context()))
	server.CloseClientConnections()
	assert.Eventually(t, func() bool { return s.Streams() == 0 }, 10*time.Second, 10*time.Millisecond, "the stream is closed")
}
