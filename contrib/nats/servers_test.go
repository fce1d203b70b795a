package troupenats

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet/queue"
)

// userOf connects as a user whose password is the name.
func userOf(t *testing.T, url, user string) *nats.Conn {
	t.Helper()
	nc, err := Connect(url, nats.UserInfo(user, user))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// A subject that the user of a connection may not use is an error: no call waits for an answer that
// never comes.
func TestPermissions(t *testing.T) {
	t.Parallel()
	ctx, name := t.Context(), job()
	offer := queue.Offer{Task: "b", Hash: "h"}
	cases := map[string]struct {
		subscribe bool
		deny      string
		call      func(ctx context.Context, q *Queue) error
	}{
		"create":   {deny: "$JS.API.STREAM.CREATE.>"},
		"inbox":    {subscribe: true, deny: "_INBOX.>"},
		"consumer": {deny: "$JS.API.CONSUMER.>", call: func(ctx context.Context, q *Queue) error { return q.Offer(ctx, offer) }},
		"offer":    {deny: "troupe.q.*.o.>", call: func(ctx context.Context, q *Queue) error { return q.Offer(ctx, offer) }},
		"task": {deny: "troupe.q.*.t.>", call: func(ctx context.Context, q *Queue) error {
			_, err := q.Lease(ctx, "a", "w")
			return err
		}},
		"file": {deny: "troupe.f.>", call: func(ctx context.Context, q *Queue) error { return q.files.Put(ctx, "x", strings.NewReader("x")) }},
		"object": {deny: "$O.>", call: func(ctx context.Context, q *Queue) error {
			return q.files.Put(ctx, "x", strings.NewReader(strings.Repeat("x", 1<<20)))
		}},
	}
	var users strings.Builder
	for user, c := range cases {
		kind := "publish"
		if c.subscribe {
			kind = "subscribe"
		}
		_, _ = fmt.Fprintf(&users, "{ user: %s, password: %s, permissions: { %s: { deny: %q } } }\n", user, user, kind, c.deny)
	}
	url := configured(t, "authorization { users: [ { user: all, password: all }\n"+users.String()+"] }")
	require.NoError(t, opened(t, userOf(t, url, "all"), Config{Job: name}).Offer(ctx, queue.Offer{Task: "a", Hash: "h"}))
	for user, c := range cases {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			within, stop := context.WithTimeout(t.Context(), 2*time.Minute)
			defer stop()
			of := name
			if user == "create" {
				of = job() // that is not there yet
			}
			q, err := Open(within, userOf(t, url, user), Config{Job: of, Try: 300 * time.Millisecond})
			if c.call != nil {
				require.NoError(t, err)
				defer q.Close()
				err = c.call(within, q)
			}
			require.ErrorIs(t, err, nats.ErrPermissionViolation)
			var says *Error
			require.ErrorAs(t, err, &says)
			assert.NotEmpty(t, says.Do)
		})
	}
}

// slow lets so many bytes a second pass to the server.
type slow int

func (s slow) Dial(to, address string) (net.Conn, error) {
	c, err := net.Dial(to, address) //nolint:noctx // that is the interface
	return slowWire{c, s}, err
}

type slowWire struct {
	net.Conn
	rate slow
}

func (w slowWire) Write(b []byte) (int, error) {
	time.Sleep(time.Duration(len(b)) * time.Second / time.Duration(w.rate))
	return w.Conn.Write(b)
}

// A file that the network needs longer for than one try may take arrives.
func TestALargeFileOverASlowNetwork(t *testing.T) {
	t.Parallel()
	nc, err := Connect(configured(t, ""), nats.SetCustomDialer(slow(500<<10)))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	f, err := OpenFiles(ctx, nc, Config{Job: job(), Try: 50 * time.Millisecond})
	require.NoError(t, err)
	require.Less(t, f.transfer(600<<10), time.Second)
	require.NoError(t, f.Put(ctx, "x", strings.NewReader(strings.Repeat("x", 600<<10))))
}

// The largest result that is a message, and the smallest that is an object, come back whole.
func TestAResultAtTheLimit(t *testing.T) {
	t.Parallel()
	url := configured(t, "")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	connect := func() *nats.Conn {
		nc, err := Connect(url)
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		return nc
	}
	cfg := Config{Job: job()}
	a, b := opened(t, connect(), cfg), opened(t, connect(), cfg)
	most := int(a.nc.MaxPayload())
	sizes := map[string]int{}
	for _, n := range []int{most - 4097, most - 4096, most - 4095, most, most + 1} {
		task := fmt.Sprint(n)
		sizes[task] = n
		require.NoError(t, a.Offer(ctx, queue.Offer{Task: task, Hash: "h"}))
		l, err := a.Lease(ctx, task, strings.Repeat("ü/", 200))
		require.NoError(t, err)
		require.NoError(t, a.Finish(ctx, l, blank(n-2)), task)
	}
	seen := map[string]int{}
	for c, err := range b.Watch(ctx) {
		require.NoError(t, err)
		if c.State == queue.Over {
			seen[c.Task] = len(c.Result)
		}
		if len(seen) == len(sizes) {
			break
		}
	}
	assert.Equal(t, sizes, seen)
}

// A server that is killed and comes back has the leases and the results of before, and calls that
// were made meanwhile end.
func TestAServerIsKilledAndComesBack(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	dir, cfg := t.TempDir(), Config{Job: job(), TTL: time.Hour}
	server := process(t, "alone", port, dir)
	connect := func() *nats.Conn { return reach(t, fmt.Sprintf("nats://127.0.0.1:%d", port)) }
	a, b := opened(t, connect(), cfg), opened(t, connect(), cfg)
	require.NoError(t, a.Offer(ctx, queue.Offer{Task: "over", Hash: "h"}, queue.Offer{Task: "held", Hash: "h"}, queue.Offer{Task: "free", Hash: "h"}))
	results := make(chan queue.Change, 3)
	go func() {
		for c, err := range b.Watch(ctx) {
			if err == nil && c.State == queue.Over {
				results <- c
			}
		}
	}()
	lease := func(q *Queue, task string) queue.Lease {
		l, err := q.Lease(ctx, task, "w")
		require.NoError(t, err)
		return l
	}
	over := lease(a, "over")
	require.NoError(t, a.Finish(ctx, over, json.RawMessage(`{"n":1}`)))
	held := lease(a, "held")
	require.NoError(t, server.Process.Kill())
	_ = server.Wait()
	extended := make(chan error, 1)
	go func() {
		extended <- a.Extend(ctx, held)[0]
	}()
	process(t, "alone", port, dir)
	require.NoError(t, <-extended)
	_, err := b.Lease(ctx, "held", "w2")
	require.ErrorAs(t, err, new(*queue.LeasedError))
	require.NoError(t, a.Finish(ctx, held, json.RawMessage(`{"n":2}`)))
	free := lease(b, "free")
	assert.Greater(t, free.Fence, held.Fence)
	require.NoError(t, b.Finish(ctx, free, json.RawMessage(`{"n":3}`)))
	seen := map[string]uint64{}
	for range 3 {
		select {
		case c := <-results:
			seen[c.Task] = c.Fence
		case <-ctx.Done():
		}
	}
	assert.Equal(t, map[string]uint64{"over": over.Fence, "held": held.Fence, "free": free.Fence}, seen)
}
