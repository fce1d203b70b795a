package batch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/model"
)

// batch is a batch, as far as it has requests that were not answered.
type batch struct {
	tag     string
	mark    string // the end of the names of its requests, which another batch may have, too; "": of an old record
	model   string
	at      time.Time // of the submission
	id      string    // of the endpoint; "": it is not known whether it is there
	size    int       // requests
	entries map[string]*entry
	earlier bool               // it is of an earlier program, or was left by all callers: it may be over
	cancel  context.CancelFunc // ends the task about it; nil before there is one

	canceled bool // by Client.Cancel while it had no id

	err  error // of a submission that may have made it
	vain int   // submissions before, which turned out to have made no batch
}

const (
	attempts = 12 // to submit a batch that is refused for the time being, or a request whose batches are not there
)

// submit has a task submit what is collected for a model.
func (c *Client) submit(name string) {
	q := c.queues[name]
	delete(c.queues, name)
	q.timer.Stop()
	b := &batch{model: name, size: len(q.entries), entries: map[string]*entry{}}
	sum := sha256.New()
	_, _ = fmt.Fprintln(sum, c.cfg.Clock.Now().UnixNano(), len(c.batches)) // it never fails
	for _, e := range q.entries {
		_, _ = fmt.Fprintln(sum, e.hash)
	}
	b.mark = hex.EncodeToString(sum.Sum(nil)[:6])
	for i, e := range q.entries {
		e.id, e.of = fmt.Sprintf("%s-%d-%s", e.hash, i, b.mark), b
		b.entries[e.id], b.vain = e, max(b.vain, e.to.vain)
	}
	c.name(b)
	c.run(b, func(ctx context.Context) { c.send(ctx, b) })
}

// name gives a batch a tag that no other one has.
func (c *Client) name(b *batch) {
	delete(c.batches, b.tag)
	b.at = c.cfg.Clock.Now()
	sum := sha256.New()
	_, _ = fmt.Fprintln(sum, b.tag, b.at.UnixNano(), len(c.batches)) // it never fails
	for _, id := range sortedIDs(b) {
		_, _ = fmt.Fprintln(sum, id)
	}
	b.tag = hex.EncodeToString(sum.Sum(nil)[:16])
	c.batches[b.tag] = b
}

// run starts the task about a batch. Its context ends when no caller waits for the batch.
func (c *Client) run(b *batch, fn func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	c.cfg.Exec.Go(func() {
		defer func() {
			cancel()
			c.mu.Lock()
			defer c.mu.Unlock()
			b.cancel, b.earlier = nil, true
			if attended(b) { // a caller has come while the task ended
				c.attend(b)
			}
		}()
		fn(ctx)
	})
}

func attended(b *batch) bool {
	for _, e := range b.entries {
		if e.to != nil {
			return true
		}
	}
	return false
}

// attend has a task see to a batch for which a caller waits.
func (c *Client) attend(b *batch) {
	if b.cancel != nil || c.batches[b.tag] != b {
		return
	}
	c.run(b, func(ctx context.Context) {
		if c.where(b) != "" || c.found(ctx, b) {
			c.watch(ctx, b)
		}
	})
}

// unattended ends the task about a batch for which no caller waits any more.
func (c *Client) unattended(b *batch) {
	if b.cancel != nil && !attended(b) {
		b.cancel()
	}
}

func (c *Client) where(b *batch) (id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return b.id
}

// sleep waits, unless ctx ends before.
func (c *Client) sleep(ctx context.Context, d time.Duration) bool {
	over := make(chan struct{})
	t := c.cfg.Clock.AfterFunc(d, func() { close(over) })
	defer t.Stop()
	return c.cfg.Exec.Await(ctx, over) == nil
}

// send submits a batch. The record is durable before the request is made, so that a program which
// dies meanwhile finds what it has made. A request that has no caller any more is left out.
func (c *Client) send(ctx context.Context, b *batch) {
	delay := c.cfg.Poll
	for attempt := 1; ; attempt++ {
		list, err := c.sending(b)
		if err != nil {
			c.fail(b, &model.Error{Class: model.Invalid, RetryAfter: -1, Final: true, Message: "the batch cannot be recorded", Err: err})
			return
		}
		if len(list) == 0 {
			return
		}
		// The end of the callers must not leave it open whether the batch is there.
		id, maybe, err := c.cfg.Model.SubmitBatch(context.WithoutCancel(ctx), b.tag, list)
		if err == nil {
			c.sent(b, id)
			c.end(context.WithoutCancel(ctx), b)
			c.watch(ctx, b)
			return
		}
		if maybe {
			c.uncertain(b, err)
			if c.found(ctx, b) {
				c.watch(ctx, b)
			}
			return // else its requests are collected anew, or their callers have gone
		}
		c.never(b)
		e, ok := errors.AsType[*model.Error](err)
		if !ok || !e.Temporary() || attempt == attempts {
			c.fail(b, err)
			return
		}
		if !c.sleep(ctx, max(delay, e.RetryAfter)) {
			c.forget(b)
			return
		}
		delay = min(2*delay, maxPoll)
		c.mu.Lock()
		c.name(b)
		c.mu.Unlock()
	}
}

// sending makes the requests of a batch, and records that they are submitted.
func (c *Client) sending(b *batch) ([]model.BatchRequest, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []model.BatchRequest
	for _, id := range sortedIDs(b) {
		e := b.entries[id]
		if e.to == nil {
			c.drop(e)
			continue
		}
		list = append(list, model.BatchRequest{ID: id, Body: e.to.encode()})
	}
	if b.size = len(list); b.size == 0 {
		delete(c.batches, b.tag)
		return nil, nil
	}
	return list, c.store.sending(b)
}

// drop forgets a request that is in no batch of the endpoint.
func (c *Client) drop(e *entry) {
	delete(e.of.entries, e.id)
	if c.open[e.hash] = slices.DeleteFunc(c.open[e.hash], func(o *entry) bool { return o == e }); len(c.open[e.hash]) == 0 {
		delete(c.open, e.hash)
	}
	e.of = nil
}

// sent takes note that a batch is there.
func (c *Client) sent(b *batch, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b.id = id
	c.store.sent(b) // if that fails, the next program looks for the batch
	for _, key := range sortedIDs(b) {
		if w := b.entries[key].to; w != nil {
			w.batch = id
			w.tell()
		}
	}
}

// uncertain takes note of the error of a submission that may have made a batch.
func (c *Client) uncertain(b *batch, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b.err = err
}

// never takes note that a batch was not made.
func (c *Client) never(b *batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store.never(b) // if that fails, the next program looks for the batch
}

// fail gives an error to all callers of a batch that was not made.
func (c *Client) fail(b *batch, err error) {
	e := typed(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.batches, b.tag)
	for _, id := range sortedIDs(b) {
		if one := b.entries[id]; one.to != nil {
			c.give(one, &model.BatchAnswer{Err: e})
		} else {
			c.drop(one)
		}
	}
}

// typed is an error for callers.
func typed(err error) *model.Error {
	if e, ok := errors.AsType[*model.Error](err); ok {
		return e
	}
	return &model.Error{Class: model.Network, RetryAfter: -1, Err: err}
}

// forget drops a batch that was not made. Its callers, if it has any, get an error if it was canceled, or
// if their requests were submitted often enough.
func (c *Client) forget(b *batch) {
	c.mu.Lock()
	canceled := b.canceled
	if !canceled {
		c.anew(b)
	}
	c.mu.Unlock()
	if canceled {
		c.fail(b, unsubmitted())
	}
}

// anew collects the requests of a batch that is not there once more.
func (c *Client) anew(b *batch) {
	delete(c.batches, b.tag)
	for _, id := range sortedIDs(b) {
		e := b.entries[id]
		w := e.to
		if w != nil && b.err != nil {
			if w.vain++; w.vain >= attempts {
				c.give(e, &model.BatchAnswer{ID: id, Err: typed(b.err)})
				continue
			}
		}
		c.drop(e)
		if w != nil {
			c.collect(e)
			w.tell()
		}
	}
}
