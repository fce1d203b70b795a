package mcpclient_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/mcpclient"
)

// The end of a connection ends the calls under way, also those that the server would never answer.
func TestARemoteConnectionEndsWithItsCalls(t *testing.T) {
	t.Parallel()
	for name, sse := range map[string]bool{"http": false, "sse": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			called, over := make(chan struct{}), make(chan struct{})
			own := mcp.NewServer(&mcp.Implementation{Name: "db", Version: "1"}, nil)
			mcp.AddTool(own, &mcp.Tool{Name: "slow"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				close(called)
				<-over
				return &mcp.CallToolResult{}, nil, nil
			})
			var handler http.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return own }, nil)
			if sse {
				handler = mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return own }, nil)
			}
			web := httptest.NewServer(handler)
			t.Cleanup(web.CloseClientConnections)
			t.Cleanup(func() { close(over) })
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			exec := kernel.GoExecutor{}
			c, err := (&mcpclient.Remote{Exec: exec, URL: web.URL, SSE: sse}).Dial(ctx)
			require.NoError(t, err)
			failed := make(chan error, 1)
			exec.Go(func() {
				_, err := c.Call(context.Background(), nil, nil, "tools/call", []byte(`{"name":"slow","arguments":{}}`))
				failed <- err
			})
			require.NoError(t, exec.Await(ctx, called))
			ended := make(chan struct{})
			exec.Go(func() {
				_ = c.End(false) // the server may be gone
				close(ended)
			})
			require.NoError(t, exec.Await(ctx, ended))
			require.ErrorAs(t, <-failed, new(*mcpclient.EndedError))
			_, err = c.Tools(ctx)
			require.ErrorAs(t, err, new(*mcpclient.EndedError))
			assert.Error(t, c.Ended())
		})
	}
}
