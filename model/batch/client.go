package batch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/internal/durable"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/session"
)

// Config configures [New]. Model is required.
type Config struct {
	// Model is the endpoint. It must have an API of batches: those of Anthropic and OpenAI have.
	Model *model.Client
	// Dir is where it is kept which requests are in which batch, without their texts. One program
	// at a time may use it; it is made with the first batch. "": in memory, so a program that starts
	// again pays again.
	Dir string
	// Window is how long requests are collected, from the first one on; 0: a minute.
	Window time.Duration
	// Requests is how many requests a batch has at most; 0: what the vendor takes, which is also
	// the limit of its bytes.
	Requests int
	// Poll is how long to wait before the endpoint is asked about a new batch. It doubles up to ten
	// minutes. 0: 30 s.
	Poll time.Duration
	// Again is how often a request is submitted again whose batch the endpoint gave up after a day;
	// 0: twice, below 0: never.
	Again int
	Clock session.Clock    // nil: the time of this process
	Exec  session.Executor // nil: goroutines
	Files session.Files    // of Dir; nil: those of this machine
}

const (
	defaultWindow = time.Minute
	defaultPoll   = 30 * time.Second
	maxPoll       = 10 * time.Minute
	beat          = 5 * time.Minute // how often a request that waits says so
)

// Client is a model.Model that waits for batches. It is safe for concurrent use and needs no
// Close: what it runs ends with the requests that wait.
type Client struct {
	cfg   Config
	bytes int64 // most of a batch

	mu      sync.Mutex
	store   *store // nil before the first request
	queues  map[string]*queue
	batches map[string]*batch   // by tag
	open    map[string][]*entry // by hash: requests in batches that no caller waits for
}

// queue are the requests for a model that are collected.
type queue struct {
	entries []*entry
	bytes   int64
	timer   session.Timer
}

// entry is a request.
type entry struct {
	hash string
	id   string  // in its batch
	of   *batch  // nil while it is collected
	to   *waiter // the caller, nil if it has left
	size int64
}

// waiter is a call of Stream.
type waiter struct {
	model  string
	encode func() []byte
	lost   int           // batches that have given it up
	vain   int           // submissions that failed and turned out to have made no batch
	news   chan struct{} // closed when something below has changed, and replaced
	at     *entry
	batch  string // "": it is not there yet
	answer *model.BatchAnswer
}

// New returns a client. It reads Config.Dir with the first request.
func New(c Config) *Client {
	if c.Window <= 0 {
		c.Window = defaultWindow
	}
	if c.Poll <= 0 {
		c.Poll = defaultPoll
	}
	if c.Again == 0 {
		c.Again = 2
	}
	if c.Clock == nil {
		c.Clock = kernel.NewClock(nil)
	}
	if c.Exec == nil {
		c.Exec = kernel.GoExecutor{}
	}
	c.Files = durable.Files(c.Files)
	most, bytes := c.Model.MaxBatch()
	if c.Requests <= 0 || c.Requests > most {
		c.Requests = most
	}
	return &Client{cfg: c, bytes: bytes, queues: map[string]*queue{}, batches: map[string]*batch{}, open: map[string][]*entry{}}
}

// Codec implements model.Model.
func (c *Client) Codec() model.Codec { return c.cfg.Model.Codec() }

// Endpoint is the URL of the requests that are in batches, without a password.
func (c *Client) Endpoint() string { return c.cfg.Model.Endpoint() }

// CountTokens is that of the endpoint, which answers at once.
func (c *Client) CountTokens(ctx context.Context, name, text string) (int, error) {
	return c.cfg.Model.CountTokens(ctx, name, text)
}

// Models is that of the endpoint, which answers at once.
func (c *Client) Models(ctx context.Context) ([]string, error) { return c.cfg.Model.Models(ctx) }

// Stream implements model.Model. Its first events are of the kind Waits, at least every ten minutes.
// A request that is in a batch stays there when ctx ends, and is paid: a later call with the same
// request gets its answer, once.
func (c *Client) Stream(ctx context.Context, r *model.Request, emit func(*model.Event) bool) error {
	w := &waiter{model: r.Model, encode: func() []byte { return c.cfg.Model.Encode(r) }, news: make(chan struct{})}
	if err := c.ask(w); err != nil {
		return err
	}
	a, err := c.await(ctx, w, emit)
	if err != nil {
		return err
	}
	if a.Err != nil {
		failed := *a.Err
		return &failed
	}
	if err = c.cfg.Model.Play(a, r.Raw, emit); errors.Is(err, model.ErrStopped) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.back(w.at)
	}
	return err
}

// await waits until the answer is there.
func (c *Client) await(ctx context.Context, w *waiter, emit func(*model.Event) bool) (*model.BatchAnswer, error) {
	for {
		c.mu.Lock()
		news, id, answer := w.news, w.batch, w.answer
		c.mu.Unlock()
		if answer != nil {
			return answer, nil
		}
		err := model.ErrStopped
		if emit(&model.Event{Kind: model.Waits, Batch: id, Within: 2 * beat}) {
			t := c.cfg.Clock.AfterFunc(beat, func() { c.beat(w) })
			err = c.cfg.Exec.Await(ctx, news)
			t.Stop()
		}
		if err != nil {
			c.leave(w)
			return nil, err
		}
	}
}

func (c *Client) beat(w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.tell()
}

// tell has the caller look.
func (w *waiter) tell() {
	close(w.news)
	w.news = make(chan struct{})
}

// hashOf names a request: equal requests to an endpoint have equal names.
func (c *Client) hashOf(body []byte) string {
	sum := sha256.New()
	_, _ = sum.Write([]byte(c.Endpoint() + "\n")) // it never fails
	_, _ = sum.Write(body)
	return hex.EncodeToString(sum.Sum(nil)[:20])
}

// ask finds the request in a batch, or collects it.
func (c *Client) ask(w *waiter) error {
	body := w.encode()
	hash, size := c.hashOf(body), int64(len(body))
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.load(); err != nil {
		return err
	}
	if e := c.claim(hash); e != nil {
		e.to, e.size, w.at, w.batch = w, size, e, e.of.id
		c.attend(e.of)
		return nil
	}
	c.collect(&entry{hash: hash, to: w, size: size})
	return nil
}

// collect puts a request into the queue of its model.
func (c *Client) collect(e *entry) {
	name := e.to.model
	q := c.queues[name]
	if q != nil && q.bytes+e.size > c.bytes*9/10 { // the rest is for what is around requests
		c.submit(name)
		q = nil
	}
	if q == nil {
		q = &queue{}
		c.queues[name] = q
		q.timer = c.cfg.Clock.AfterFunc(c.cfg.Window, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.queues[name] == q {
				c.submit(name)
			}
		})
	}
	e.of, e.to.at, e.to.batch = nil, e, ""
	q.entries, q.bytes = append(q.entries, e), q.bytes+e.size
	if len(q.entries) >= c.cfg.Requests {
		c.submit(name)
	}
}

// leave takes note that a caller waits no more. Its request is not submitted if it is not yet.
func (c *Client) leave(w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e := w.at; {
	case w.answer != nil:
		if w.answer.Err == nil { // else e has no answer, or was given back, and may have its next caller
			c.back(e)
		}
	case e.of != nil:
		c.back(e)
		c.unattended(e.of)
	default:
		q := c.queues[w.model]
		q.entries, q.bytes = slices.DeleteFunc(q.entries, func(o *entry) bool { return o == e }), q.bytes-e.size
		if len(q.entries) == 0 {
			q.timer.Stop()
			delete(c.queues, w.model)
		}
	}
}

// back keeps a request for the next caller: one of a batch, or one whose answer was not taken.
func (c *Client) back(e *entry) {
	e.to = nil
	e.of.entries[e.id], c.batches[e.of.tag] = e, e.of
	c.open[e.hash] = append(c.open[e.hash], e)
}

// claim takes a request that no caller waits for.
func (c *Client) claim(hash string) *entry {
	known := c.open[hash]
	if len(known) == 0 {
		return nil
	}
	e := known[len(known)-1]
	if c.open[hash] = known[:len(known)-1]; len(known) == 1 {
		delete(c.open, hash)
	}
	return e
}

// give answers a caller. A request that was not answered can be asked anew.
func (c *Client) give(e *entry, a *model.BatchAnswer) {
	w, b := e.to, e.of
	if e.to = nil; b != nil {
		delete(b.entries, e.id)
		if len(b.entries) == 0 {
			delete(c.batches, b.tag)
		}
	}
	if a.Err != nil {
		e.of = nil
	}
	w.answer = a
	w.tell()
}
