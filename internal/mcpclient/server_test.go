package mcpclient_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/mcpclient"
	"github.com/agent-troupe/troupe/session"
)

type fixed struct{}

func (fixed) Int64N(n int64) int64 { return n - 1 }

var errClosed = errors.New("it is closed")

// conn is a connection that works until it is ended.
type conn struct {
	mcpclient.Conn
	ended error
	ends  int
}

func (c *conn) Ended() error { return c.ended }
func (c *conn) End(bool) error {
	c.ends++
	c.ended = &mcpclient.EndedError{}
	return nil
}

// server is one whose clock stands still: a breaker that is open stays so, however slow the machine is.
func server(dial func(context.Context) (mcpclient.Conn, error)) *mcpclient.Server {
	return mcpclient.New(mcpclient.Seams{Exec: kernel.GoExecutor{}, Clock: kernel.NewClock(clock.NewMock()), Rand: fixed{}}, mcpclient.Config{
		Name: "db", Title: "MCP server db", Limit: time.Minute, Closed: errClosed, Dial: dial,
	})
}

// A server that has ended is connected to again; one that was stopped is not.
func TestAConnectionThatEnds(t *testing.T) {
	t.Parallel()
	var all []*conn
	s := server(func(context.Context) (mcpclient.Conn, error) {
		all = append(all, &conn{})
		return all[len(all)-1], nil
	})
	assert.False(t, s.Running())
	first, err := s.Connected(t.Context())
	require.NoError(t, err)
	again, err := s.Connected(t.Context())
	require.NoError(t, err)
	assert.Same(t, first, again)
	all[0].ended = &mcpclient.EndedError{}
	assert.Nil(t, s.Conn())
	_, err = s.Connected(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Disconnect())
	assert.Equal(t, 1, all[1].ends)
	_, err = s.Connected(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Stop())
	assert.Len(t, all, 3)
	assert.Equal(t, 1, all[2].ends)
	_, err = s.Connected(t.Context())
	require.ErrorIs(t, err, errClosed)
}

// A start that does not end does not hold up the end of the server, and says why to those that
// wait for it.
func TestAStartThatHangs(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	s := server(func(ctx context.Context) (mcpclient.Conn, error) {
		close(begun)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	waits := make(chan error, 1)
	go func() {
		_, err := s.Connected(context.Background())
		waits <- err
	}()
	<-begun
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Connected(gone)
	require.ErrorIs(t, err, context.Canceled, "who does not want to wait need not")
	require.NoError(t, s.Stop())
	require.ErrorIs(t, <-waits, errClosed)
}

// After three starts that fail the breaker is open. A missing login does not count as a failure.
func TestStartsThatFail(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err    error
		opens  bool
		starts int
	}{
		"it fails":          {errors.New("no database"), true, 3},
		"it wants a login":  {mcpclient.ErrNeedsLogin, false, 5},
		"its time runs out": {&session.TimeoutError{What: "start"}, true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			starts := 0
			s := server(func(context.Context) (mcpclient.Conn, error) {
				starts++
				return nil, tt.err
			})
			var err error
			for range 5 {
				_, err = s.Connected(t.Context())
				require.ErrorAs(t, err, new(*mcpclient.StartError))
			}
			assert.Equal(t, tt.opens, errors.As(err, new(*session.BreakerOpenError)), "%v", err)
			assert.Equal(t, tt.starts, starts)
		})
	}
}
