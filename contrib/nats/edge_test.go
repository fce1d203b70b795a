package troupenats

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/contrib/nats/embedded"
	"github.com/agent-troupe/troupe/fleet/queue"
)

// A result that is acknowledged in the moment when its lease ends is not lost. With delete markers
// some are, so streams that have them are refused.
func TestFinishWhenTheLeaseEnds(t *testing.T) {
	t.Parallel()
	nc := single(t)(t, newNetwork())
	n, markers := 100, []time.Duration{0}
	if os.Getenv("TROUPE_FULL") != "" {
		n, markers = 600, append(markers, time.Hour)
	}
	for _, m := range markers {
		t.Run("markers "+m.String(), func(t *testing.T) {
			t.Parallel()
			acknowledged, late, lost := finishLate(t, nc, Config{Job: job(), TTL: 2 * time.Second, markers: m}, n)
			t.Logf("%d acknowledged around the end of the lease, %d too late, %d acknowledged and lost", acknowledged, late, lost)
			if m == 0 {
				assert.Zero(t, lost)
				assert.Equal(t, n, acknowledged+late)
				assert.NotZero(t, acknowledged)
			}
		})
	}
}

func finishLate(t *testing.T, nc *nats.Conn, cfg Config, n int) (acknowledged, late, lost int) {
	t.Helper()
	ctx, q := t.Context(), opened(t, nc, cfg)
	offers := make([]queue.Offer, n)
	for i := range offers {
		offers[i] = queue.Offer{Task: fmt.Sprint("t", i), Hash: "h"}
	}
	require.NoError(t, q.Offer(ctx, offers...))
	var mu sync.Mutex
	kept := map[string]bool{}
	var all sync.WaitGroup
	for _, o := range offers {
		all.Go(func() {
			l, err := q.Lease(ctx, o.Task, "w")
			if !assert.NoError(t, err) {
				return
			}
			time.Sleep(l.TTL + time.Duration(rand.IntN(1600)-400)*time.Millisecond)
			err = q.Finish(ctx, l, json.RawMessage(`{"n":1}`))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				kept[o.Task] = true
			} else if assert.ErrorIs(t, err, queue.ErrLeaseLost) {
				late++
			}
		})
	}
	all.Wait()
	time.Sleep(2 * time.Second) // what comes late would come now
	for task := range kept {
		r, err := q.read(ctx, q.subject(task))
		require.NoError(t, err)
		if r.state != queue.Over {
			lost++
		}
	}
	return len(kept), late, lost
}

// Streams that would lose results are refused, and say why.
func TestStreamsThatAreRefused(t *testing.T) {
	t.Parallel()
	nc := single(t)(t, newNetwork())
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change func(*jetstream.StreamConfig)
		want   error
	}{
		"delete markers":    {func(c *jetstream.StreamConfig) { c.SubjectDeleteMarkerTTL, c.AllowRollup = time.Hour, true }, ErrSettings},
		"more messages":     {func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 2 }, ErrSettings},
		"in memory":         {func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }, ErrSettings},
		"an age":            {func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, ErrSettings},
		"a limit":           {func(c *jetstream.StreamConfig) { c.MaxMsgs = 10 }, ErrSettings},
		"bytes":             {func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 20 }, ErrSettings},
		"the next protocol": {func(c *jetstream.StreamConfig) { c.Metadata = map[string]string{protocolKey: "2"} }, ErrProtocol},
		"replicas answer":   {func(c *jetstream.StreamConfig) { c.AllowDirect = true }, ErrSettings},
		"no time to live":   {func(c *jetstream.StreamConfig) { c.AllowMsgTTL = false }, ErrOldServer},
		"none":              {func(*jetstream.StreamConfig) {}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := job()
			s := jetstream.StreamConfig{Name: queueStream(j), Subjects: []string{"troupe.q." + j + ".>"}, MaxMsgsPerSubject: 1, AllowMsgTTL: true}
			c.change(&s)
			_, err := js.CreateStream(t.Context(), s)
			require.NoError(t, err)
			q, err := Open(t.Context(), nc, Config{Job: j})
			if c.want == nil {
				require.NoError(t, err)
				q.Close()
				return
			}
			require.ErrorIs(t, err, c.want)
			var says *Error
			require.ErrorAs(t, err, &says)
			assert.Equal(t, queueStream(j), says.Where)
			assert.NotEmpty(t, says.Do)
		})
	}
	require.ErrorIs(t, Config{}.refuse("s", jetstream.StreamConfig{AllowMsgTTL: true, MaxMsgsPerSubject: 1, Replicas: 1}, true), ErrReplicas)
	for _, c := range []jetstream.ObjectStoreConfig{{Storage: jetstream.MemoryStorage}, {TTL: time.Hour}} {
		j := job()
		c.Bucket = bucket(j)
		_, err := js.CreateObjectStore(t.Context(), c)
		require.NoError(t, err)
		_, err = Open(t.Context(), nc, Config{Job: j})
		require.ErrorIs(t, err, ErrSettings)
		require.ErrorContains(t, err, objectStream(j))
	}
}

// served is a server that only says which one it is.
func served(t *testing.T, info string, options ...nats.Option) *nats.Conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = fmt.Fprintf(c, "INFO {\"server_id\":\"x\",\"headers\":true,\"max_payload\":1048576,%s}\r\n", info)
		for lines := bufio.NewScanner(c); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "PING") {
				_, _ = io.WriteString(c, "PONG\r\n")
			}
		}
	}()
	nc, err := Connect("nats://"+l.Addr().String(), options...)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// failingOnce does not connect the first time.
type failingOnce struct{ failed atomic.Bool }

func (d *failingOnce) Dial(to, address string) (net.Conn, error) {
	if !d.failed.Swap(true) {
		return nil, errors.New("not yet")
	}
	return net.Dial(to, address) //nolint:noctx // that is the interface
}

func TestServersThatAreRefused(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, err := Open(ctx, served(t, `"version":"2.10.29"`), Config{Job: "j"})
	require.ErrorIs(t, err, ErrOldServer)
	assert.ErrorContains(t, err, "2.10.29")
	_, err = OpenFiles(ctx, served(t, `"version":"2.11.0","cluster":"c"`), Config{Job: "j", Replicas: 1})
	require.ErrorIs(t, err, ErrReplicas)
	// A connection that is still coming back does not know its servers.
	late := []nats.Option{nats.RetryOnFailedConnect(true), nats.ReconnectWait(300 * time.Millisecond), nats.SetCustomDialer(&failingOnce{})}
	within, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	nc := served(t, `"version":"2.10.29"`, late...)
	_, err = Open(within, nc, Config{Job: "j"})
	require.ErrorIs(t, err, ErrOldServer)
	nc.Close()
	_, err = Open(ctx, nc, Config{Job: "j"})
	require.ErrorIs(t, err, nats.ErrConnectionClosed)
	for version, want := range map[string]bool{"1.4.1": true, "2.9.0": true, "2.11.0-RC.1": false, "2.15.2": false, "3.0.0": false, "dev": false} {
		assert.Equal(t, want, old(version), version)
	}
}

func TestConfigsThatAreRefused(t *testing.T) {
	t.Parallel()
	nc := single(t)(t, newNetwork())
	for _, c := range []Config{{}, {Job: "a.b"}, {Job: strings.Repeat("x", 65)}, {Job: "j", TTL: time.Millisecond}, {Job: "j", TTL: 1500 * time.Millisecond}, {Job: "j", Try: -1}, {Job: "j", Replicas: 6}, {Job: "j", Replicas: -1}} {
		_, err := Open(t.Context(), nc, c)
		require.ErrorIs(t, err, ErrConfig, "%+v", c)
	}
	_, err := Open(t.Context(), nc, Config{Job: "j", Replicas: 3, silence: 100 * time.Millisecond})
	require.ErrorContains(t, err, "single server")
	q := opened(t, nc, Config{Job: job()})
	assert.Equal(t, 5*time.Minute, q.cfg.TTL, "of a single server")
	for _, id := range []string{"", "a b", "a*", ">", "ü", strings.Repeat("x", 257)} {
		require.ErrorIs(t, q.Offer(t.Context(), queue.Offer{Task: id, Hash: "h"}), ErrConfig, "%q", id)
	}
}

// A job that is removed stops the programs that run it, and can be made anew with higher fences.
func TestRemove(t *testing.T) {
	t.Parallel()
	nc, ctx, name := single(t)(t, newNetwork()), t.Context(), job()
	q := opened(t, nc, Config{Job: name, silence: 300 * time.Millisecond})
	f, err := OpenFiles(ctx, nc, Config{Job: name})
	require.NoError(t, err)
	require.NoError(t, f.Put(ctx, "large", strings.NewReader(strings.Repeat("x", 1<<20))))
	require.NoError(t, q.Offer(ctx, queue.Offer{Task: "a", Hash: "h"}, queue.Offer{Task: "b", Hash: "h"}))
	l, err := q.Lease(ctx, "a", "w")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		for _, err := range q.Watch(ctx) {
			if err != nil {
				ended <- err
			}
		}
	}()
	require.NoError(t, Remove(ctx, nc, name))
	require.NoError(t, Remove(ctx, nc, name), "there is nothing any more")
	within, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	require.ErrorIs(t, q.Extend(within, l)[0], ErrGone)
	_, err = q.Lease(within, "b", "w")
	require.ErrorIs(t, err, ErrGone)
	_, err = f.Get(within, "large")
	require.ErrorIs(t, err, ErrGone)
	select {
	case err := <-ended:
		require.ErrorIs(t, err, ErrGone)
	case <-within.Done():
		require.FailNow(t, "Watch does not end")
	}
	again := opened(t, nc, Config{Job: name, Above: l.Fence})
	require.NoError(t, again.Offer(ctx, queue.Offer{Task: "a", Hash: "h"}))
	higher, err := again.Lease(ctx, "a", "w")
	require.NoError(t, err)
	assert.Greater(t, higher.Fence, l.Fence)
	require.ErrorIs(t, q.check(ctx), ErrGone, "it is another one")
	_, err = Open(ctx, nc, Config{Job: name, Above: higher.Fence + 1})
	require.ErrorIs(t, err, ErrSettings, "its fences are lower")
	opened(t, nc, Config{Job: name, Above: higher.Fence})
}

// A program that opens a queue whose last message was a lease that has ended does not wait for it.
func TestTheLastMessageHasEnded(t *testing.T) {
	t.Parallel()
	nc, ctx := single(t)(t, newNetwork()), t.Context()
	cfg := Config{Job: job(), deletable: true}
	q := opened(t, nc, cfg)
	require.NoError(t, q.Offer(ctx, queue.Offer{Task: "a", Hash: "h"}))
	l, err := q.Lease(ctx, "a", "w")
	require.NoError(t, err)
	require.NoError(t, q.stream.DeleteMsg(ctx, l.Fence))
	late := opened(t, nc, cfg)
	within, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	require.NoError(t, late.Offer(within, queue.Offer{Task: "a", Hash: "h"}))
	_, err = late.Lease(within, "a", "w2")
	require.NoError(t, err)
}

// A file that has no room is refused, and what is there stays. A result waits for room. The room
// is the server's, or the account's.
func TestFull(t *testing.T) {
	t.Parallel()
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		s, err := embedded.Start(embedded.Config{Dir: t.TempDir(), MaxStore: 2 << 20, MaxPayload: 1 << 20})
		require.NoError(t, err)
		t.Cleanup(s.Stop)
		nc, err := s.Connect()
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		noRoomOn(t, nc)
	})
	t.Run("account", func(t *testing.T) {
		t.Parallel()
		url := configured(t, `accounts { A: { jetstream: { max_file: 2MB }, users: [ { user: a, password: a } ] } }`)
		noRoomOn(t, userOf(t, url, "a"))
	})
}

func noRoomOn(t *testing.T, nc *nats.Conn) {
	t.Helper()
	ctx, other := t.Context(), job()
	f, err := OpenFiles(ctx, nc, Config{Job: other})
	require.NoError(t, err)
	q := opened(t, nc, Config{Job: job()})
	require.NoError(t, q.Offer(ctx, queue.Offer{Task: "message", Hash: "h"}, queue.Offer{Task: "object", Hash: "h"}))
	leases := map[string]queue.Lease{}
	for _, task := range []string{"message", "object"} {
		leases[task], err = q.Lease(ctx, task, "w")
		require.NoError(t, err)
	}
	require.NoError(t, f.Put(ctx, "small", strings.NewReader("x")))
	require.ErrorIs(t, f.Put(ctx, "large", noise(8<<20)), ErrFull)
	_, err = f.Get(ctx, "large")
	require.ErrorIs(t, err, fs.ErrNotExist)
	got, err := f.Get(ctx, "small")
	require.NoError(t, err)
	text, err := io.ReadAll(got)
	require.NoError(t, errors.Join(err, got.Close()))
	assert.Equal(t, "x", string(text))
	for i := 0; err == nil && i < 20; i++ {
		err = f.Put(ctx, fmt.Sprint("part ", i), noise(300<<10))
	}
	require.ErrorIs(t, err, ErrFull)
	sizes := map[string]int{"message": 400 << 10, "object": 1 << 20}
	for task, size := range sizes {
		within, stop := context.WithTimeout(ctx, 300*time.Millisecond)
		require.ErrorIs(t, q.Finish(within, leases[task], blank(size)), context.DeadlineExceeded, task)
		stop()
	}
	require.NoError(t, Remove(ctx, nc, other))
	for task, size := range sizes {
		require.NoError(t, q.Finish(ctx, leases[task], blank(size)), task)
	}
}

// noise cannot be compressed.
func noise(size int64) io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{1}), size) }

func blank(size int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", size) + `"`) }

// A program whose lease another one has now cannot use it, also if it has not heard of that. An
// extension keeps the fence for all of them.
func TestALeaseOfAnotherProgram(t *testing.T) {
	t.Parallel()
	connect, ctx := single(t), t.Context()
	cfg := Config{Job: job(), deletable: true}
	a, b := opened(t, connect(t, newNetwork()), cfg), opened(t, connect(t, newNetwork()), cfg)
	require.NoError(t, a.Offer(ctx, queue.Offer{Task: "a", Hash: "h"}))
	l, err := a.Lease(ctx, "a", "w1")
	require.NoError(t, err)
	require.NoError(t, a.Extend(ctx, l)[0])
	require.NoError(t, b.mirror.current(ctx))
	now, known := b.mirror.state("a")
	require.True(t, known)
	assert.Equal(t, l.Fence, now.fence)
	require.NoError(t, a.stream.DeleteMsg(ctx, now.seq))
	b.mirror.look("a", now)
	next, err := b.Lease(ctx, "a", "w2")
	require.NoError(t, err)
	require.ErrorIs(t, a.Finish(ctx, l, json.RawMessage(`{"by":"w1"}`)), queue.ErrLeaseLost)
	require.ErrorIs(t, a.Extend(ctx, l)[0], queue.ErrLeaseLost)
	require.ErrorIs(t, a.Release(ctx, l), queue.ErrLeaseLost)
	require.NoError(t, b.Finish(ctx, next, json.RawMessage(`{"by":"w2"}`)))
}

// deaf is a connection that does not hear the answer to the first try of each write.
type deaf struct {
	jetstream.JetStream
	mu    sync.Mutex
	heard map[string]bool
}

func (d *deaf) PublishMsg(ctx context.Context, m *nats.Msg, options ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	ack, err := d.JetStream.PublishMsg(ctx, m, options...)
	d.mu.Lock()
	defer d.mu.Unlock()
	if name := m.Header.Get(headWrite); !d.heard[name] {
		d.heard[name] = true
		return nil, nats.ErrTimeout
	}
	return ack, err
}

// A write whose answer is lost is found again: it is made once, and its next try sees no conflict.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	nc, ctx := single(t)(t, newNetwork()), t.Context()
	cfg := Config{Job: job()}
	q := opened(t, nc, cfg)
	q.js = &deaf{JetStream: q.js, heard: map[string]bool{}}
	require.NoError(t, q.Offer(ctx, queue.Offer{Task: "a", Hash: "h"}))
	l, err := q.Lease(ctx, "a", "w")
	require.NoError(t, err)
	require.NoError(t, q.Extend(ctx, l)[0])
	l.Starts = 1
	require.NoError(t, q.Note(ctx, l, json.RawMessage(`{"n":0}`)))
	require.NoError(t, q.Decide(ctx, queue.Decision{ID: "d", Op: "pause"}))
	require.NoError(t, q.Release(ctx, l))
	next, err := q.Lease(ctx, "a", "w")
	require.NoError(t, err)
	// The lease of the note whose answer was lost is extended, so that it cannot land later.
	assert.Equal(t, l.Fence+6, next.Fence, "after an extension, a note and an extension, a decision and a release")
	assert.Equal(t, 1, next.Starts)
	assert.JSONEq(t, `{"n":0}`, string(next.Note))
	require.NoError(t, q.Finish(ctx, next, json.RawMessage(`{"n":1}`)))
	for c, err := range opened(t, nc, cfg).Watch(ctx) {
		require.NoError(t, err)
		if c.State == queue.Over {
			assert.JSONEq(t, `{"n":1}`, string(c.Result))
			assert.Equal(t, next.Fence, c.Fence)
			break
		}
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	nc := single(t)(t, newNetwork())
	q := opened(t, nc, Config{Job: job()})
	q.Close()
	q.Close()
	for _, err := range q.Watch(t.Context()) {
		require.ErrorIs(t, err, ErrClosed)
	}
	require.ErrorIs(t, q.Offer(t.Context(), queue.Offer{Task: "a", Hash: "h"}), ErrClosed)
}

// A large note is not in a header, and programs that watch or lease get it all the same.
func TestALargeNote(t *testing.T) {
	t.Parallel()
	connect, cfg, ctx := single(t), Config{Job: job()}, t.Context()
	a, b := opened(t, connect(t, newNetwork()), cfg), opened(t, connect(t, newNetwork()), cfg)
	require.NoError(t, a.Offer(ctx, queue.Offer{Task: "a", Hash: "h"}))
	l, err := a.Lease(ctx, "a", "w")
	require.NoError(t, err)
	for _, size := range []int{shortNote - 2, shortNote - 1, 200 << 10} {
		note := blank(size)
		require.NoError(t, a.Note(ctx, l, note))
		for c, err := range b.Watch(ctx) {
			require.NoError(t, err)
			if len(c.Note) == len(note) {
				break
			}
		}
		require.NoError(t, a.Release(ctx, l))
		l, err = b.Lease(ctx, "a", "w")
		require.NoError(t, err)
		assert.Len(t, l.Note, len(note))
		a, b = b, a
	}
}

// Results with fences that the queue has yet to reach are those of one that is lost.
func TestResultsOfALostQueue(t *testing.T) {
	t.Parallel()
	nc, ctx := single(t)(t, newNetwork()), t.Context()
	results := []queue.Offer{{Task: "a", Hash: "h", Result: blank(1), Fence: 70}, {Task: "b", Hash: "h"}, {Task: "c", Hash: "h", Result: blank(9 << 20), Fence: 80}}
	cfg := Config{Job: job()}
	require.ErrorIs(t, opened(t, nc, cfg).Offer(ctx, results...), ErrSettings)
	require.NoError(t, Remove(ctx, nc, cfg.Job))
	cfg.Above = 80
	q := opened(t, nc, cfg)
	require.NoError(t, q.Offer(ctx, results...))
	l, err := q.Lease(ctx, "b", "w")
	require.NoError(t, err)
	assert.Greater(t, l.Fence, uint64(80))
	lengths := map[string]int{}
	for c, err := range opened(t, nc, cfg).Watch(ctx) {
		require.NoError(t, err)
		if c.State == queue.Over {
			lengths[c.Task] = len(c.Result)
		}
		if len(lengths) == 2 {
			break
		}
	}
	assert.Equal(t, map[string]int{"a": 3, "c": 9<<20 + 2}, lengths)
}
