package batch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/model"
)

const (
	settling = time.Minute      // until a batch that was made is in the endpoint's list
	skew     = 10 * time.Minute // between the clocks
	failures = 150              // in a row, while the endpoint is asked about a batch: a day
)

func sortedIDs(b *batch) []string { return slices.Sorted(maps.Keys(b.entries)) }

// watch waits until a batch is over, and gives its answers to their callers.
func (c *Client) watch(ctx context.Context, b *batch) {
	delay, failed := c.cfg.Poll, 0
	for at := c.earlier(b); ; at = false {
		if !at && !c.sleep(ctx, delay) {
			return
		}
		c.end(ctx, b)
		state, err := c.cfg.Model.Batch(ctx, b.id)
		if err == nil && state.Over {
			if err = c.take(ctx, b, state); err == nil {
				return
			}
		}
		if ctx.Err() != nil {
			return
		}
		if failed++; err == nil {
			failed = 0
		}
		e, _ := errors.AsType[*model.Error](err)
		switch {
		case err == nil:
		case e != nil && e.Status == http.StatusNotFound:
			c.never(b)
			c.fail(b, &model.Error{Class: model.Invalid, Status: e.Status, RetryAfter: -1, Final: true, Message: fmt.Sprintf("the endpoint does not know the batch %s any more", b.id), Err: err})
			return
		case e == nil || !e.Temporary() || failed == failures:
			c.excuse(b, err)
			return
		}
		delay = min(2*delay, maxPoll)
	}
}

// earlier reports whether a batch may be over.
func (c *Client) earlier(b *batch) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return b.earlier
}

// take reads the answers of a batch.
func (c *Client) take(ctx context.Context, b *batch, state *model.Batch) error {
	seen := map[string]bool{}
	err := c.cfg.Model.BatchResults(ctx, state, func(a *model.BatchAnswer) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		if e := b.entries[a.ID]; e != nil && e.to != nil && !seen[a.ID] {
			c.settle(e, a)
		}
		seen[a.ID] = true
		return true
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range sortedIDs(b) {
		if e := b.entries[id]; e.to != nil && !seen[id] { // the caller of one that was seen reads again
			why := &model.Error{Class: model.Broken, RetryAfter: -1, Message: "the batch " + b.id + " is over and has no answer to the request"}
			if state.Err != nil {
				why = state.Err
			}
			c.give(e, &model.BatchAnswer{ID: id, Err: why})
		}
	}
	return nil
}

// settle gives an answer to its caller, or collects the request once more if a day was not enough.
func (c *Client) settle(e *entry, a *model.BatchAnswer) {
	w, b := e.to, e.of
	if !a.Dropped || a.Err.Type != "expired" || w.lost >= c.cfg.Again {
		c.give(e, a)
		return
	}
	w.lost++
	if delete(b.entries, e.id); len(b.entries) == 0 {
		delete(c.batches, b.tag)
	}
	c.collect(e)
	w.tell()
}

// excuse gives an error to the callers of a batch. Its requests stay in it: the next caller asks
// about it again.
func (c *Client) excuse(b *batch, err error) {
	e := typed(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range sortedIDs(b) {
		if one := b.entries[id]; one.to != nil {
			w := one.to
			c.back(one)
			w.answer = &model.BatchAnswer{ID: id, Err: e}
			w.tell()
		}
	}
}

// found finds out whether a batch is there whose submission has no answer. If not, its requests
// are collected once more. It reports false, too, when all callers have gone.
func (c *Client) found(ctx context.Context, b *batch) bool {
	others, delay, failed := map[string]bool{}, min(settling<<b.vain, maxPoll), 0 // after each failure longer
	for {
		// The submission may still be under way, however long ago it began: a large one takes half an hour.
		if !c.sleep(ctx, delay) {
			return false
		}
		id, perhaps, err := c.look(ctx, b, others)
		e, _ := errors.AsType[*model.Error](err)
		switch failed++; {
		case ctx.Err() != nil:
			return false
		case id != "":
			c.sent(b, id)
			return true
		case err != nil && (e == nil || !e.Temporary() || failed == failures):
			c.excuse(b, err)
			return false
		case err == nil && !perhaps:
			c.never(b)
			c.forget(b)
			return false
		case err == nil:
			failed = 0
		}
		delay = min(2*delay, maxPoll)
	}
}

// look looks for a batch in the list of the endpoint. perhaps: another one that is not over may be
// it. others are those that are not, by id.
func (c *Client) look(ctx context.Context, b *batch, others map[string]bool) (id string, perhaps bool, err error) {
	var like []*model.Batch
	err = c.cfg.Model.Batches(ctx, b.at.Add(-skew), func(o *model.Batch) bool {
		if o.Tag != "" && o.Tag == b.tag {
			id = o.ID
		}
		if o.Tag == "" && o.Total == b.size && !others[o.ID] && !c.knows(o.ID) {
			like = append(like, o)
		}
		return id == ""
	})
	if err != nil || id != "" || c.Codec().Name() == "openai" { // which keeps tags
		return id, false, err
	}
	// The requests of a batch show only once it is over.
	for _, o := range like {
		if !o.Over {
			perhaps = true
			continue
		}
		is := false
		if err = c.cfg.Model.BatchResults(ctx, o, func(a *model.BatchAnswer) bool {
			is = b.has(a.ID)
			return false
		}); err != nil {
			return "", false, err
		}
		if is {
			return o.ID, false, nil
		}
		others[o.ID] = true
	}
	return "", perhaps, nil
}

// has reports whether a request of that name was submitted with the batch. It may have been answered
// since, so b.entries do not tell.
func (b *batch) has(id string) bool {
	if b.mark == "" {
		return b.entries[id] != nil
	}
	return strings.HasSuffix(id, "-"+b.mark)
}

// knows reports whether a batch of the endpoint is another one of the client's.
func (c *Client) knows(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.batches {
		if b.id == id {
			return true
		}
	}
	return false
}

// Cancel ends what is collected and all batches whose answers were not read, also those of earlier
// programs with the same Config.Dir: their requests fail. A request that the endpoint is working on may still
// be answered, and is paid. A batch that is being submitted ends as soon as it is there; if it is not known
// whether the batch is there, once a caller has asked for one of its requests and it was found. The error joins
// those of the endpoint.
func (c *Client) Cancel(ctx context.Context) error {
	c.mu.Lock()
	if err := c.load(); err != nil {
		c.mu.Unlock()
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(c.queues)) {
		q := c.queues[name]
		q.timer.Stop()
		delete(c.queues, name)
		for _, e := range q.entries {
			c.give(e, &model.BatchAnswer{Err: unsubmitted()})
		}
	}
	var ids []string
	for _, tag := range slices.Sorted(maps.Keys(c.batches)) {
		b := c.batches[tag]
		if b.id != "" {
			ids = append(ids, b.id)
			continue
		}
		if b.canceled = true; b.cancel != nil {
			b.cancel() // it may sleep between two attempts
		}
	}
	c.mu.Unlock()
	var wrong []error
	for _, id := range ids {
		wrong = append(wrong, c.cancelBatch(ctx, id))
	}
	return errors.Join(wrong...)
}

func (c *Client) cancelBatch(ctx context.Context, id string) error {
	err := c.cfg.Model.CancelBatch(ctx, id)
	if e, ok := errors.AsType[*model.Error](err); ok && e.Class == model.Invalid { // it is over, or gone
		return nil
	}
	return err
}

// end cancels a batch that was not there yet when Cancel was called. It is called until that has succeeded.
func (c *Client) end(ctx context.Context, b *batch) {
	c.mu.Lock()
	canceled := b.canceled
	c.mu.Unlock()
	if canceled && c.cancelBatch(ctx, b.id) == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		b.canceled = false
	}
}

// unsubmitted is the error of a request that Cancel ended in time.
func unsubmitted() *model.Error {
	return &model.Error{Class: model.Invalid, Type: "canceled", RetryAfter: -1, Final: true, Message: "the request was canceled before it was submitted"}
}
