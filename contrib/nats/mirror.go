package troupenats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agent-troupe/troupe/fleet/queue"
)

// mirror is what this program knows of the stream: all headers, no results. It decides nothing.
type mirror struct {
	q    *Queue
	ctx  context.Context //nolint:containedctx // of its goroutines, which end in close
	stop context.CancelFunc
	work sync.WaitGroup

	mu       sync.Mutex
	err      error         // it has ended
	seq      uint64        // of the last message that it has read
	news     chan struct{} // closed when seq rises or it ends
	bodies   map[string][]byte
	hashes   map[string]string
	order    []string
	states   map[string]record
	notes    map[string]record // of tasks that are not over
	decided  []queue.Decision
	timers   map[string]*time.Timer
	watchers []*watcher
}

func newMirror(q *Queue) *mirror {
	m := &mirror{
		q: q, news: make(chan struct{}), bodies: map[string][]byte{},
		hashes: map[string]string{}, states: map[string]record{}, notes: map[string]record{}, timers: map[string]*time.Timer{},
	}
	m.ctx, m.stop = context.WithCancel(context.Background())
	m.work.Go(m.run)
	return m
}

func (m *mirror) close() {
	m.end(&Error{m.q.name, ErrClosed, ""})
	m.stop()
	m.work.Wait()
}

// end wakes all who wait: no change comes after it.
func (m *mirror) end(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return
	}
	m.err = err
	for _, t := range m.timers {
		t.Stop()
	}
	clear(m.timers)
	m.rouse()
	for _, w := range m.watchers {
		w.wake()
	}
}

// run reads the stream on from where it was, whatever happens to the servers.
func (m *mirror) run() {
	pause := 50 * time.Millisecond // each try may leave a consumer on the servers for a while
	for m.ctx.Err() == nil {
		began, before := time.Now(), m.q.nc.LastError()
		err := m.read()
		if denied := m.q.denied(before); denied != nil {
			err = denied
		}
		if pause = min(2*pause, 2*time.Second); time.Since(began) > m.q.cfg.silence {
			pause = 50 * time.Millisecond
		}
		if m.ctx.Err() != nil {
			return
		}
		if final := (*Error)(nil); errors.As(err, &final) || fatal(err) {
			m.end(explain(m.q.name, err))
			return
		}
		_ = sleep(m.ctx, pause)
	}
}

func (m *mirror) read() error {
	if err := m.q.check(m.ctx); err != nil {
		return err
	}
	m.mu.Lock()
	from := m.seq + 1
	m.mu.Unlock()
	try, cancel := context.WithTimeout(m.ctx, m.q.cfg.Try)
	defer cancel()
	c, err := m.q.stream.OrderedConsumer(try, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{m.q.prefix + ".>"}, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from, HeadersOnly: true,
		MaxResetAttempts: 1, InactiveThreshold: 30 * time.Second,
	})
	if err != nil {
		return err
	}
	it, err := c.Messages(jetstream.PullExpiry(5*time.Second), jetstream.PullHeartbeat(time.Second))
	if err != nil {
		return err
	}
	defer it.Stop()
	for {
		msg, err := it.Next(jetstream.NextContext(m.ctx))
		if err != nil {
			return passing(err)
		}
		md, err := msg.Metadata()
		if err != nil {
			return err
		}
		if err := m.took(msg.Subject(), parse(msg.Headers(), nil, md.Sequence.Stream)); err != nil {
			return err
		}
	}
}

// passing is an error of a consumer that ended: whether the stream is there is asked when the
// next one is made.
func passing(err error) error { return errors.New("the consumer has ended: " + err.Error()) }

// took learns a message of the stream.
func (m *mirror) took(subject string, r record) error {
	kind, name, _ := strings.Cut(strings.TrimPrefix(subject, m.q.prefix+"."), ".")
	var tasks []offer
	var made queue.Decision
	if kind == "o" || kind == "c" {
		into := any(&tasks)
		if kind == "c" {
			into = &made
		}
		body, err := m.body(subject, r.seq)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(body, into); err != nil {
			return &Error{m.q.name, err, "another program wrote message " + subject + ": remove the job"}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.seq <= m.seq {
		return nil
	}
	for _, t := range tasks {
		if _, known := m.hashes[t.Task]; known {
			continue
		}
		m.hashes[t.Task] = t.Hash
		m.order = append(m.order, t.Task)
		m.tell(t.Task, m.stateOf(t.Task))
	}
	switch kind { // what else there is belongs to a later version
	case "t":
		m.set(untoken(name), r)
	case "n":
		m.note(untoken(name), r)
	case "c":
		m.decided = append(m.decided, made)
		for _, w := range m.watchers {
			w.decision(made)
			w.wake()
		}
	}
	m.seq = r.seq
	m.rouse()
	return nil
}

// expect keeps the content of a message that this program offers.
func (m *mirror) expect(subject string, body []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bodies[subject] = body
}

// body is the content of a message that offers tasks.
func (m *mirror) body(subject string, seq uint64) ([]byte, error) {
	m.mu.Lock()
	body := m.bodies[subject]
	delete(m.bodies, subject)
	m.mu.Unlock()
	if body != nil {
		return body, nil
	}
	body, err := m.q.content(m.ctx, seq)
	if err == nil && body == nil {
		err = &Error{m.q.name, fmt.Errorf("%w: the message that offers tasks, %s, was removed", ErrSettings, subject), "remove the job, and resume it"}
	}
	return body, err
}

// learn takes a record that this program has written or read before the stream brings it.
func (m *mirror) learn(task string, r record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(task, r)
}

// set keeps the newest record of a task; mu is held, as below.
func (m *mirror) set(task string, r record) {
	old := m.states[task]
	if r.seq <= old.seq || m.err != nil {
		return
	}
	if r.seen.IsZero() {
		r.seen = time.Now()
	}
	kept := r
	kept.body = nil
	m.states[task] = kept
	if t := m.timers[task]; t != nil {
		t.Stop()
		delete(m.timers, task)
	}
	if r.state == queue.Leased {
		m.lookIn(task, r, r.ttl+time.Second)
	}
	if r.state == queue.Over {
		delete(m.notes, task)
	}
	if r.state == queue.Leased && old.state == queue.Leased && old.fence == r.fence { // extended
		return
	}
	if _, known := m.hashes[task]; known {
		m.tell(task, r)
	}
}

// lookIn looks after a while whether a lease has ended: the server sends no message then.
func (m *mirror) lookIn(task string, r record, after time.Duration) {
	m.timers[task] = time.AfterFunc(after, func() {
		m.mu.Lock()
		if m.err != nil || m.states[task].seq != r.seq {
			m.mu.Unlock()
			return
		}
		m.work.Add(1)
		m.mu.Unlock()
		defer m.work.Done()
		m.look(task, r)
	})
}

// look asks whether a lease has ended.
func (m *mirror) look(task string, r record) {
	now, err := m.q.read(m.ctx, m.q.subject(task))
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.err != nil || m.states[task].seq != r.seq || m.states[task].gone:
	case err == nil && now.seq == 0:
		free := record{state: queue.Free, fence: r.fence, seq: r.seq, gone: true}
		m.states[task] = free
		m.tell(task, free)
	case err == nil && now.seq > r.seq:
		m.set(task, now)
	default:
		m.lookIn(task, r, 300*time.Millisecond)
	}
}

// current waits until the mirror has what the stream had when it was called.
func (m *mirror) current(ctx context.Context) error {
	var last uint64
	info, err := m.q.info(ctx)
	if err == nil && info.State.Msgs > 0 {
		last = info.State.LastSeq
	}
	for err == nil {
		m.mu.Lock()
		seq, end, news := m.seq, m.err, m.news
		m.mu.Unlock()
		if end != nil || seq >= last {
			return end
		}
		wait := time.NewTimer(200 * time.Millisecond)
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-news:
		case <-wait.C: // the last message may have been a lease that has ended
			var r record
			r, err = m.q.read(ctx, m.q.prefix+".>")
			last = min(last, r.seq)
		}
		wait.Stop()
	}
	return err
}

func (m *mirror) hash(task string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, known := m.hashes[task]
	return h, known
}

// state is where a task stands, and whether it was offered.
func (m *mirror) state(task string) (record, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, known := m.hashes[task]
	return m.stateOf(task), known
}

func (m *mirror) stateOf(task string) record {
	if r, ok := m.states[task]; ok {
		return r
	}
	return record{state: queue.Free}
}

// rouse wakes those who wait for the mirror.
func (m *mirror) rouse() {
	close(m.news)
	m.news = make(chan struct{})
}
