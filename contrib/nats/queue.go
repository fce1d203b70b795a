package troupenats

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agent-troupe/troupe/fleet/queue"
)

// Queue is a queue.Queue in a stream. Its calls repeat what fails until their context ends: while
// no server leads the stream, or the servers are full, they wait. Errors are those of package
// queue, that of the context, and an [*Error]. It is safe for concurrent use.
type Queue struct {
	*link
	files  *Files // for results that are too large for a message
	prefix string
	mirror *mirror

	mu   sync.Mutex
	held map[string]grant // by task
}

// grant is a lease of this program: the sequence that granted it, and that of its last message.
type grant struct{ fence, seq uint64 }

var _ queue.Queue = (*Queue)(nil)

// Open opens the queue of a job, which is made if it is not there: streams TROUPE_Q_<job> and
// TROUPE_F_<job>, and object store TROUPE_<job>. It waits until the servers have a leader. Its
// error is an [*Error], or that of ctx. Close ends the queue.
func Open(ctx context.Context, nc *nats.Conn, cfg Config) (*Queue, error) {
	cfg, err := cfg.complete(ctx, nc)
	if err != nil {
		return nil, err
	}
	q := &Queue{prefix: "troupe.q." + cfg.Job, held: map[string]grant{}}
	q.link, err = open(ctx, nc, cfg, jetstream.StreamConfig{
		Name: queueStream(cfg.Job), Subjects: []string{q.prefix + ".>"}, Storage: jetstream.FileStorage, Replicas: cfg.Replicas,
		MaxMsgsPerSubject: 1, AllowMsgTTL: true, DenyDelete: !cfg.deletable, DenyPurge: true, FirstSeq: cfg.Above + 1, SubjectDeleteMarkerTTL: cfg.markers,
	}, cfg.refuse)
	if err != nil {
		return nil, err
	}
	if last := q.stream.CachedInfo().State.LastSeq; last < cfg.Above {
		return nil, wrong(q.name, fmt.Sprintf("its fences begin at %d, and not above %d (Config.Above)", last+1, cfg.Above))
	}
	if q.files, err = OpenFiles(ctx, nc, cfg); err != nil {
		return nil, err
	}
	q.mirror = newMirror(q)
	return q, nil
}

// Close ends the loops of Watch with [ErrClosed]. It gives no lease back, and leaves the
// connection open.
func (q *Queue) Close() { q.mirror.close() }

// Lease implements queue.Queue.
func (q *Queue) Lease(ctx context.Context, task, worker string) (queue.Lease, error) {
	r, known := q.mirror.state(task)
	if !known {
		if err := q.mirror.current(ctx); err != nil {
			return queue.Lease{}, err
		}
		if r, known = q.mirror.state(task); !known {
			return queue.Lease{}, fmt.Errorf("task %q: %w", task, queue.ErrNotOffered)
		}
	}
	if r.state == queue.Leased { // as this program has heard
		now, err := q.read(ctx, q.subject(task))
		if err != nil {
			return queue.Lease{}, err
		}
		if now.seq == r.seq {
			now.seen = r.seen
		}
		r = now
	}
	for {
		switch r.state {
		case queue.Over:
			return queue.Lease{}, fmt.Errorf("task %q: %w", task, queue.ErrFinished)
		case queue.Leased:
			return queue.Lease{}, &queue.LeasedError{Task: task, Worker: r.worker, TTL: max(min(r.left(), r.ttl), 0)}
		}
		want := record{state: queue.Leased, worker: worker, ttl: q.cfg.TTL}
		seq, other, err := q.swap(ctx, q.subject(task), r.expected(), want, nil)
		if err != nil {
			return queue.Lease{}, err
		}
		if other != nil {
			q.mirror.learn(task, *other)
			r = *other
			continue
		}
		want.seq, want.fence = seq, seq
		q.mu.Lock()
		q.held[task] = grant{seq, seq}
		q.mu.Unlock()
		q.mirror.learn(task, want)
		l := queue.Lease{Task: task, Worker: worker, Fence: seq, TTL: q.cfg.TTL}
		l.Starts, l.Note, err = q.left(ctx, task, seq)
		return l, err
	}
}

// inFlight is how many writes of one call are on their way at the same time.
const inFlight = 64

// Extend implements queue.Queue. Each lease is one message.
func (q *Queue) Extend(ctx context.Context, leases ...queue.Lease) []error {
	errs := make([]error, len(leases))
	each(len(leases), func(i int) { errs[i] = q.extend(ctx, leases[i]) })
	return errs
}

func (q *Queue) extend(ctx context.Context, l queue.Lease) error {
	return q.replace(ctx, l, record{state: queue.Leased, worker: l.Worker, fence: l.Fence, ttl: q.cfg.TTL}, nil)
}

// each calls f for each number below n, inFlight at a time.
func each(n int, f func(i int)) {
	var all sync.WaitGroup
	var next atomic.Int64
	for range min(n, inFlight) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	all.Wait()
}

// Finish implements queue.Queue. A result that is too large for a message is an object.
func (q *Queue) Finish(ctx context.Context, l queue.Lease, result json.RawMessage) error {
	r := record{state: queue.Over, worker: l.Worker, fence: l.Fence}
	body, err := q.body(ctx, &r, result)
	if err != nil {
		return err
	}
	return q.replace(ctx, l, r, body)
}

// body is a copy of a result for its message, or nil if it is an object.
func (q *Queue) body(ctx context.Context, r *record, result json.RawMessage) (json.RawMessage, error) {
	result = bytes.Clone(result)
	if int64(len(result)) <= q.nc.MaxPayload()-4096 {
		return result, nil
	}
	r.object = fmt.Sprintf("%d/result.json@%s", r.fence, newName())
	return nil, q.files.object(ctx, r.object, bytes.NewReader(result), true)
}

// Release implements queue.Queue.
func (q *Queue) Release(ctx context.Context, l queue.Lease) error {
	return q.replace(ctx, l, record{state: queue.Free, fence: l.Fence}, nil)
}

// replace writes the next record of a task whose lease is valid.
func (q *Queue) replace(ctx context.Context, l queue.Lease, r record, body []byte) error {
	lost := fmt.Errorf("task %q: %w", l.Task, queue.ErrLeaseLost)
	q.mu.Lock()
	g := q.held[l.Task]
	q.mu.Unlock()
	if g.fence != l.Fence || g.fence == 0 { // another program's lease, or one that has ended
		now, err := q.read(ctx, q.subject(l.Task))
		switch {
		case err != nil:
			return err
		case now.repeats(l, r):
			return nil
		case !now.holds(l):
			return lost
		}
		g = grant{l.Fence, now.seq}
	}
	for {
		seq, other, err := q.swap(ctx, q.subject(l.Task), g.seq, r, body)
		if err != nil {
			return err
		}
		if other == nil {
			r.seq, r.body = seq, body
			break
		}
		q.mirror.learn(l.Task, *other)
		switch {
		case other.repeats(l, r):
			return nil
		case !other.holds(l):
			q.forget(l)
			return lost
		}
		g.seq = other.seq // another call has extended it
	}
	q.mu.Lock()
	if now := q.held[l.Task]; now.fence == l.Fence && r.state == queue.Leased {
		q.held[l.Task] = grant{l.Fence, max(r.seq, now.seq)}
	}
	q.mu.Unlock()
	if r.state != queue.Leased {
		q.forget(l)
	}
	q.mirror.learn(l.Task, r)
	return nil
}

func (q *Queue) forget(l queue.Lease) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.held[l.Task].fence == l.Fence {
		delete(q.held, l.Task)
	}
}

// Watch implements queue.Queue. Results are read as the loop takes them.
func (q *Queue) Watch(ctx context.Context) iter.Seq2[queue.Change, error] { return q.mirror.watch(ctx) }

// subject is that of a task.
func (q *Queue) subject(task string) string { return q.prefix + ".t." + token(task) }
